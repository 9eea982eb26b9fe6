"""The gain of a useful feature is distinguished from that of noise, on records and logs."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gatekeeper import Budget, Generation, VerificationGate
from gatekeeper.analysis.feature_worth import feature_worth
from gatekeeper.cli import main
from gatekeeper.io.records import RecordTable
from gatekeeper.paper.stress import make_stream
from gatekeeper.testing import ScriptedVerifier

N = 1500


def with_features(seed: int) -> RecordTable:
    table, draw = make_stream("usual", N, seed), np.random.default_rng((seed, 5)).standard_normal
    useful = 1.5 * table.error + draw(N)
    useful[::5] = np.nan
    return replace(table, features={"noise": draw(N), "useful": useful})


def test_a_useful_feature_is_distinguished_from_noise() -> None:
    noise, useful, both = feature_worth(with_features(0), 0.2)
    assert (noise.features, useful.features) == (("noise",), ("useful",))
    assert both.features == ("noise", "useful")
    assert (useful.present, both.present) == (0.8, 1.0)
    assert useful.beside_signals.low > 0.02
    assert useful.beside_all is not None
    assert useful.beside_all.low > 0.02
    assert noise.beside_signals.low <= 0.0 <= noise.beside_signals.high < 0.03
    assert both.beside_all is None
    # A copy of it adds nothing beside it, and as much alone.
    table = with_features(0)
    assert table.features is not None
    copied = replace(table, features={"a": table.features["useful"], "b": table.features["useful"]})
    a, b, _ = feature_worth(copied, 0.2)
    assert a.beside_signals == b.beside_signals
    assert a.beside_all is not None
    assert abs(a.beside_all.value) < 0.01


def test_without_features_or_labels_there_is_none() -> None:
    table = with_features(1)
    assert feature_worth(replace(table, features=None), 0.2) == []
    unlabelled = replace(table, error=np.full(N, np.nan))
    assert feature_worth(unlabelled, 0.2) == []


def test_diagnose_of_a_log_prints_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng, path = np.random.default_rng(2), tmp_path / "run.db"
    labels = {f"g{i}": int(rng.random() < 0.4) for i in range(600)}
    with VerificationGate(
        "random", budget=Budget(fraction=0.3), verifier=ScriptedVerifier(labels), log=path
    ) as gate:
        for id_, y in labels.items():
            features = {"f[/x]": float(rng.standard_normal() + 2.0 * y)}
            gate.maybe_verify(Generation(id_, "x", features=features))
    main(["diagnose", str(path), "--json"])
    (found,) = json.loads(capsys.readouterr().out)["features"]
    assert found["features"] == ["f[/x]"]
    assert found["beside_signals"]["low"] > 0.1
    assert found["beside_all"] is None
    main(["diagnose", str(path)])
    shown = " ".join(capsys.readouterr().out.split())
    assert "points of recall that calibrated gains" in shown
    assert "f[/x]" in shown
