"""Records of a gate's log equal what the gate saw; reading changes nothing."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gatekeeper import (
    CST,
    BadInputError,
    Budget,
    LogError,
    Outcome,
    Signals,
    Verdict,
    VerificationGate,
)
from gatekeeper.io.records import load_records, records_of_log, write_records
from gatekeeper.log import Learned, SQLiteLog
from gatekeeper.testing import ScriptedVerifier, make_generation


@pytest.mark.parametrize("unit", ["verifications", "usd"])
def test_a_log_gives_what_the_gate_saw(tmp_path: Path, unit: Any) -> None:
    path = tmp_path / "run.db"
    labels: Any = {f"g{i}": int(i % 3 == 0) for i in range(120)} | {"g3": None}
    generations = [
        make_generation(f"g{i}", tokens=i % 9, seed=i, prompt_tokens=10 + i) for i in range(120)
    ]
    with VerificationGate(
        CST(0.3, warmup=20),
        budget=Budget(total=60, unit=unit, max_cost=1.0),
        verifier=ScriptedVerifier(labels, cost=0.25),
        log=path,
        on_unavailable="pass",
    ) as gate:
        results = gate.verify_batch((generation, None) for generation in generations)
        unverified = [r.id for r in results if not r.decision.verify]
        outcome = Outcome(Verdict.FAILED, cost=0.5)
        results = [
            gate.report_outcome(r.id, outcome) if r.id == unverified[0] else r for r in results
        ]
        table = load_records(path)  # while the gate has it open
    assert table.ids == [r.id for r in results]
    for record, result in zip(table, results, strict=True):
        signals, decision = result.signals, result.decision
        assert repr(record.signals) == repr(Signals(signals.h1, signals.h2, signals.h3))
        assert record.stratum == decision.stratum
        assert record.propensity == decision.propensity
        assert record.error == (None if result.outcome is None else result.outcome.error)
        assert record.verified == (result.verified and result.id != unverified[0])
        charge = 1.0 if unit == "verifications" else 0.5 if result.id == unverified[0] else 0.25
        assert record.cost == charge if record.error is not None else np.isnan(record.cost)
    assert (table.cost_estimate > 0).all()
    write_records(tmp_path / "run.jsonl", table)
    assert list(map(repr, load_records(tmp_path / "run.jsonl"))) == list(map(repr, table))

    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    records_of_log(path)
    assert hashlib.sha256(path.read_bytes()).hexdigest() == digest


def test_other_databases_and_empty_logs_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    with VerificationGate(CST(0.3), budget=Budget(total=5), log=path, verifier=None):
        pass
    with pytest.raises(BadInputError, match="holds no record"):
        load_records(path)
    with pytest.raises(LogError, match="does not exist"):
        records_of_log(tmp_path / "absent.db")
    (tmp_path / "bad.db").write_bytes(b"SQLite format 3\0 and then nothing of the kind")
    with pytest.raises(LogError):
        load_records(tmp_path / "bad.db")


@pytest.fixture
def elsewhere(tmp_path: Path) -> Iterator[Path]:
    """A folder that may be read but not written; root becomes another user for it."""
    if os.geteuid():
        tmp_path.chmod(0o500)
        yield tmp_path
        tmp_path.chmod(0o700)
        return
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    os.seteuid(65534)
    try:
        yield folder
    finally:
        os.seteuid(0)
        shutil.rmtree(folder)


@contextmanager
def writable(folder: Path) -> Iterator[None]:
    """As its owner, who may write."""
    me, mode = os.geteuid(), folder.stat().st_mode
    if os.getuid() == 0:
        os.seteuid(0)
    folder.chmod(0o755)
    yield
    folder.chmod(mode)
    os.seteuid(me)


def a_finished_log(path: Path) -> None:
    with SQLiteLog(path) as log:
        log.append([Learned("g")])
    path.chmod(0o644)  # its owner shares it: by default only the owner can read a log


def test_a_log_in_a_folder_of_others_is_read(elsewhere: Path) -> None:
    path = elsewhere / "run.db"
    with writable(elsewhere):
        a_finished_log(path)
    before = sorted(elsewhere.iterdir())
    with SQLiteLog(path, read_only=True) as log:
        assert [event.id for event in log.events()] == ["g"]
        with pytest.raises(LogError):
            log.configure({"a": 1})
    assert sorted(elsewhere.iterdir()) == before

    # After a crash, events that are only in the write-ahead log are not silently left out.
    with writable(elsewhere):
        with SQLiteLog(path) as log:
            log.append([Learned("h")])
            left = {name: (elsewhere / name).read_bytes() for name in ("run.db", "run.db-wal")}
        for name, content in left.items():
            (elsewhere / name).write_bytes(content)
    with pytest.raises(LogError, match=r"events stand in run\.db-wal\. Copy both"):
        SQLiteLog(path, read_only=True)


def test_reading_leaves_nothing_beside_a_log(tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    a_finished_log(path)
    before = sorted(tmp_path.iterdir()), path.read_bytes()
    with SQLiteLog(path, read_only=True) as log:
        assert len(list(log.events())) == 1
    assert (sorted(tmp_path.iterdir()), path.read_bytes()) == before
