"""The runs that benchmarks/scores.py computes together equal those of a gate."""

from __future__ import annotations

from math import nan
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gatekeeper import Budget, Candidate, Signals, VerificationGate
from gatekeeper.analysis.score import estimate_score
from gatekeeper.io.records import load_records
from gatekeeper.policies import Survey
from gatekeeper.stats.error_model import raw_of
from gatekeeper.stats.raw_table import RawTable
from gatekeeper.testing import make_generation
from gatekeeper.types import Outcome, Verdict


@pytest.fixture
def scores(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "benchmarks"))
    import scores

    return scores


def test_draws_are_those_of_the_policy(scores: Any) -> None:
    """Of streams with absent signals and features, longer than what the policy remembers."""
    rng = np.random.default_rng(0)
    n, budgets, seeds = 4600, [0.1, 0.3, 0.5], [3, 4, 3]
    streams = []
    for _ in range(2):
        h = np.where(rng.random((n, 3)) < 0.1, nan, rng.normal(size=(n, 3)))
        of = [{"a": float(a)} if a < 3 else {} for a in rng.integers(0, 4, n)]
        rows = zip(h.tolist(), rng.uniform(1.0, 9.0, n).tolist(), of, strict=True)
        streams.append(
            [Candidate(f"c{i}", Signals(*h), cost, f) for i, (h, cost, f) in enumerate(rows)]
        )
    tables = [RawTable.of([raw_of(c) for c in stream]) for stream in streams]
    y = np.array([[0.0], [0.0], [1.0]]) + rng.random((3, n)).round(2) ** [[1.0], [4.0], [0.0]]
    y = y.clip(0.0, 1.0)
    stream = np.array([0, 1, 0])
    p, drawn = scores.survey_of(scores.Runs(tables, stream, y, np.array(budgets), seeds))
    for run in range(3):
        policy = Survey(budgets[run], horizon=n, seed=seeds[run])
        for t, candidate in enumerate(streams[stream[run]]):
            decision = policy.decide(candidate)
            assert decision.verify == drawn[run, t]
            assert decision.propensity == pytest.approx(p[run, t], abs=1e-10)
            if decision.verify:
                policy.update(candidate, decision, Outcome(Verdict.PASSED, value=y[run, t]))
    assert len(set(p[0].tolist())) > n / 2  # it has learned


@pytest.mark.parametrize("graded", [False, True])
def test_results_are_those_of_a_gate_and_its_log(scores: Any, graded: bool, tmp_path: Path) -> None:
    n, budget, seed = 260, 0.4, 7
    outputs = [make_generation(f"q{i}", seed=i) for i in range(n)]
    rng = np.random.default_rng(1)
    value = dict(zip((o.id for o in outputs), rng.random(n) ** 2, strict=True))
    if not graded:
        value = {id_: float(v > 0.3) for id_, v in value.items()}
    log = tmp_path / "run.db"
    with VerificationGate(
        goal="score",
        budget=Budget(fraction=budget, horizon=n),
        verifier=lambda output, task: value[output.id],
        log=log,
        seed=seed,
    ) as gate:
        for output in outputs:
            gate.maybe_verify(output)
    records = load_records(log)
    found = estimate_score(records)
    table = RawTable.of([raw_of(scores.candidate_of(record)) for record in records])
    y = np.array(list(value.values()))
    ((p,), (drawn,)) = scores.survey_of(
        scores.Runs([table], np.array([0]), y[None], np.array([budget]), [seed])
    )
    assert [record.verified for record in records] == drawn.tolist()
    assert [record.propensity for record in records] == pytest.approx(p, abs=1e-10)
    columns = scores.Design.of(table).of_rows(table)
    off, _, _, too_high, too_low, width, checks = scores.result(p, drawn, y, columns, nan)
    assert checks == found.checks == 104
    assert off == pytest.approx(found.point - y.mean(), abs=1e-9)
    assert (bool(too_high), bool(too_low)) == (y.mean() < found.low, y.mean() > found.high)
    uniform = y.var(ddof=1) * (1.0 - checks / n) / checks
    assert width == pytest.approx((found.high - found.low) / (3.92 * uniform**0.5))
