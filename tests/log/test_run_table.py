"""A run as columns has what a plain reading of each output's events has."""

from __future__ import annotations

import gzip
import json
import random
import re
import sqlite3
import tempfile
from collections import Counter
from dataclasses import asdict
from math import inf, nan
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from histories import UNITS, SetVerifier, Step, attempt, play, steps
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from row_by_row import stored, wanted

from gatekeeper import Budget, Generation, Outcome, Reason, Signals, Verdict, VerificationGate
from gatekeeper.analysis.summary import summarise
from gatekeeper.budget import Unit
from gatekeeper.errors import BadInputError, LogError
from gatekeeper.gate.notices import Shortfall
from gatekeeper.io.records import records_of_log
from gatekeeper.log import (
    Decided,
    Event,
    ExternalVerdict,
    Learned,
    PostgresRun,
    Released,
    ReservedAgain,
    Settled,
    SQLiteLog,
    decision_table,
)
from gatekeeper.log.events import HealthChanged, WarmupRepeated
from gatekeeper.log.opening import open_log
from gatekeeper.log.run import read_run
from gatekeeper.log.run_table import NO_VERDICT, RunTable, read_table
from gatekeeper.policies import CST
from gatekeeper.report.data import read_data, shortfall_of
from gatekeeper.testing import make_generation
from gatekeeper.types import Candidate, Decision, FloatArray, PolicyHealth

CAPTURED = sorted((Path(__file__).parent / "captured").glob("*.db.gz"))
FEW = 3  # of the wrong outputs
OUTPUTS = [
    make_generation(f"g{i}", seed=i, tokens=0 if i % 11 == 7 else 5, prompt_tokens=20 + i)
    for i in range(90)
]


def check(path: Path | PostgresRun) -> RunTable:
    """The table, its records, counts and texts are those of the plain reading."""
    table = read_table(path, wrong_rows=FEW)
    if isinstance(path, Path):
        events = [(kind, id_, json.loads(data)) for kind, id_, data in stored(path)]
    else:
        with open_log(path, read_only=True) as log:
            events = [(kind, id_, dict(data)) for kind, id_, data in log.rows()]
    outputs = wanted(events, table.ledger.budget.unit)
    check_columns(table, outputs)
    check_records(path, outputs)
    check_whole(path, table, outputs)
    return table


def check_columns(table: RunTable, outputs: list[dict[str, Any]]) -> None:
    assert table.ids == [output["id"] for output in outputs]
    names = ("cost_estimate", "propensity", "error", "value", "cost")
    for name in names:
        assert same(getattr(table, name), [output[name] for output in outputs]), name
    assert table.h.shape == (len(outputs), 3)
    assert same(table.h, [output["h"] for output in outputs])
    for name in ("stratum", "selected", "scored", "missing", "external"):
        assert getattr(table, name).tolist() == [output[name] for output in outputs], name
    reasons, verdicts = list(Reason), [*Verdict, None]
    assert [reasons[i] for i in table.reason] == [output["reason"] for output in outputs]
    assert verdicts.index(None) == len(verdicts) + NO_VERDICT
    assert [verdicts[i] for i in table.verdict] == [output["verdict"] for output in outputs]
    assert list(table.features) == sorted({name for o in outputs for name in o["features"]})
    for name, column in table.features.items():
        assert same(column, [output["features"].get(name, nan) for output in outputs]), name


def check_records(path: Path | PostgresRun, outputs: list[dict[str, Any]]) -> None:
    if not outputs:
        with pytest.raises(BadInputError, match="has not decided on any output yet"):
            records_of_log(path)
        return
    for record, output in zip(records_of_log(path), outputs, strict=True):
        assert record.id == output["id"]
        assert same((record.signals.h1, record.signals.h2, record.signals.h3), output["h"])
        assert record.stratum == (None if output["stratum"] < 0 else output["stratum"])
        assert (record.verified, record.features) == (output["verified"], output["features"])
        assert same([record.cost_estimate, record.cost], [output["cost_estimate"], output["paid"]])
        for name in ("error", "value", "propensity"):
            found = getattr(record, name)
            assert same([nan if found is None else found], [output[name]]), name


def check_whole(path: Path | PostgresRun, table: RunTable, outputs: list[dict[str, Any]]) -> None:
    """What follows for the run, and the rows of the outputs that were found wrong."""
    run = read_run(path)
    assert list(run.outputs) == table.ids
    assert table.ledger.state() == run.ledger.state()
    assert (table.settings, table.fingerprint) == (run.settings, run.fingerprint)
    assert (table.health_changes, table.warmups) == (run.health_changes, run.warmups)
    failures = [output["why"] for output in outputs if output["why"] is not None]
    chosen = [output for output in outputs if output["selected"] and output["verdict"]]
    after = [output for output in outputs if output["reason"] != "warmup"]
    assert shortfall_of(table) == Shortfall(
        outputs=len(outputs),
        missing=sum(output["missing"] for output in outputs),
        evaluated=len(after),
        unscored=sum(
            not output["scored"] and (output["missing"] or output["reason"] == "missing_signal")
            for output in after
        ),
        verdicts=sum(output["error"] == output["error"] for output in chosen),
        failed=sum(output["error"] != output["error"] for output in chosen),
        why=failures[-1] if failures else "",
        warmups=run.warmups,
    )
    for reason, count in Counter(output["reason"] for output in outputs).items():
        assert table.of_reason(Reason(reason)).sum() == count
    for verdict, count in Counter(output["verdict"] for output in chosen).items():
        assert (table.of_verdict(Verdict(verdict)) & table.selected).sum() == count
    wrong = [output["id"] for output in outputs if output["error"] == 1.0]
    assert [table.ids[i] for i in np.flatnonzero(table.wrong)] == wrong
    assert table.labelled.tolist() == [output["error"] in (0.0, 1.0) for output in outputs]
    rows = tuple(row for row in run.rows() if row["id"] in wrong)
    assert table.wrong_rows == rows[:FEW]


def same(one: Any, other: Any) -> bool:
    """The same floats, bit by bit; NaN equals NaN."""
    found, expected = (np.array(each, dtype=np.float64).ravel() for each in (one, other))
    return found.tobytes() == expected.tobytes() or (
        np.array_equal(found, expected, equal_nan=True)
        and np.array_equal(np.signbit(found), np.signbit(expected))
    )


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    history=steps,
    unit=st.sampled_from(sorted(UNITS)),
    later=st.lists(st.integers(0, 89), max_size=20),
)
def test_histories_of_a_gate(history: list[Step], unit: str, later: list[int]) -> None:
    """Any calls, and then verdicts from outside, in any order; also while the gate is open."""
    with tempfile.TemporaryDirectory() as folder:
        path, verifier = Path(folder) / "run.db", SetVerifier()
        options: Any = {"budget": UNITS[unit], "log": path, "on_unavailable": "pass"}
        with VerificationGate(CST(0.3, warmup=4), verifier=verifier, **options) as gate:
            play(gate, verifier, history, OUTPUTS)
            check(path)
            for i in later:
                result = gate.find(f"g{i}")
                if result is not None and result.outcome is None and not result.decision.verify:
                    verdict = Verdict.FAILED if i % 3 else Verdict.PASSED
                    gate.report_outcome(f"g{i}", Outcome(verdict, cost=0.5, seconds=0.2))
        check(path)


def a_decision(rng: random.Random, i: int, stratum: int | None) -> Decided:
    """Signals, features, costs and scores that are missing, infinite, negative zero or huge."""
    h = [rng.choice((nan, rng.gauss(0.0, 1.0), -inf, -0.0, 1e300)) for _ in range(3)]
    values = (0.0, -0.0, 1e308, -5e-324, rng.random())
    features = {f"f{k}": rng.choice(values) for k in range(4) if rng.random() < 0.4}
    generation = Generation(
        f"g{i}", f"text {i} é", model=rng.choice((None, "m")), features=features
    )
    verify = rng.random() < 0.6
    decision = Decision(
        verify,
        rng.choice(list(Reason)),
        rng.choice((nan, 0.0, rng.random())),
        rng.choice((nan, inf, -inf, 0.5)),
        stratum if rng.random() < 0.7 else None,
        rng.choice((0.0, 1.0, rng.random(), 1e-300)),
        i,
    )
    estimate = rng.choice((1e-100, 1e100, 1.0, rng.random() + 0.1))
    groups = {"tenant": "a"} if rng.random() < 0.3 else {}
    candidate = Candidate(generation.id, Signals(*h, 5, 5), estimate, generation.features, groups)
    return Decided(generation, candidate, decision, "warmup", False, rng.random() < 0.2, 1.0)


def an_outcome(rng: random.Random, verdicts: list[Verdict]) -> Outcome:
    return Outcome(
        rng.choice(verdicts),
        rng.choice((None, 0.0, rng.random(), 1e308)),
        rng.choice((0.0, rng.random(), 1e300)),
        rng.choice(("", "because", "é")),
        value=rng.choice((None, 0.0, -1e308, rng.random())),
    )


def some_events(rng: random.Random, n: int) -> list[Event]:
    """Events that a log may have, in any order that the account allows: open, repeated, settled and
    late verifications, and verdicts from outside on any output, also two."""
    events: list[Event] = []
    held: list[str] = []
    released: list[str] = []
    everything: list[str] = []
    labels, failure = [v for v in Verdict if v.error is not None], [Verdict.INFRA_ERROR]
    stratum = rng.choice((None, 0, 3))
    for i in range(n):
        kind = rng.choice(("decide", "decide", "settle", "release", "again", "outside", "other"))
        if kind == "decide":
            event = a_decision(rng, i, stratum)
            events.append(event)
            everything.append(event.id)
            if event.decision.verify:
                held.append(event.id)
        elif kind == "settle" and held:
            id_ = held.pop(rng.randrange(len(held)))
            cost = rng.choice((0.0, rng.random(), 1e300))
            outcome = an_outcome(rng, labels)
            events.append(Settled(id_, Outcome(outcome.verdict, cost, value=outcome.value), cost))
            if rng.random() < 0.8:
                events.append(Learned(id_))
        elif kind == "release" and held:
            id_ = held.pop(rng.randrange(len(held)))
            released.append(id_)
            events.append(Released(id_, "", rng.choice((None, an_outcome(rng, failure)))))
        elif kind == "again" and released:
            held.append(released.pop(rng.randrange(len(released))))
            events.append(ReservedAgain(held[-1]))
        elif kind == "outside" and everything:
            events.append(ExternalVerdict(rng.choice(everything), an_outcome(rng, labels)))
        elif kind == "other":
            health = rng.choice(list(PolicyHealth))
            events.append(rng.choice((HealthChanged(health, "why"), WarmupRepeated("why"))))
    return events


@pytest.mark.parametrize("unit", ["verifications", "seconds", "usd"])
@pytest.mark.parametrize("seed", range(12))
def test_any_events(seed: int, unit: Unit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many decisions become columns together."""
    rng, path = random.Random(f"{unit} {seed}"), tmp_path / "run.db"
    monkeypatch.setattr(decision_table, "ROWS", rng.choice((1, 7, decision_table.ROWS)))
    max_cost = None if unit == "verifications" else 2.0
    budget = Budget(
        total=1e9,
        unit=unit,
        max_cost=max_cost,
        groups={"tenant": {"total": 1e6}} if seed % 2 else {},
    )
    with SQLiteLog(path) as log:
        log.configure({"budget": asdict(budget), "policy": {"type": "CST"}, "more": {}})
        log.append(some_events(rng, rng.choice((0, 1, 30, 400))))
    check(path)


@pytest.mark.parametrize("packed", CAPTURED, ids=lambda packed: packed.name)
def test_captured_logs(packed: Path, tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    path.write_bytes(gzip.decompress(packed.read_bytes()))
    table = check(path)
    assert len(table.ids) == 200
    run = read_data(path, beta=None, skip_bad=False, on_bad=print, command="").run
    assert run is not None
    assert run.summary == summarise(read_run(path).results.values())


def test_a_damaged_decision_is_reported_as_by_the_fold(tmp_path: Path) -> None:
    """Any field of a decision not to verify, absent or of another type."""
    path, passes = tmp_path / "run.db", Outcome(Verdict.PASSED)
    with VerificationGate(
        CST(0.1, warmup=4),
        verifier=lambda output, task: passes,
        log=path,
        budget=Budget(fraction=0.1),
    ) as gate:
        for output in OUTPUTS[:40]:
            gate.maybe_verify(output)
    with sqlite3.connect(path) as db:
        seq, text = db.execute(
            "SELECT seq, data FROM events WHERE json_extract(data, '$.verify') = 0"
            " AND json_extract(data, '$.score') > 0 LIMIT 1"
        ).fetchone()
        data, reported = json.loads(text), 0
        damaged = [{k: v for k, v in data.items() if k != name} for name in data]
        odd = (None, [], "x", 1, -1, 2.5, True)
        damaged += [data | {name: value} for name in data if name != "warmup" for value in odd]
        for other in damaged:
            db.execute("UPDATE events SET data = ? WHERE seq = ?", (json.dumps(other), seq))
            db.commit()
            try:
                read_run(path)
            except LogError as error:
                reported += 1
                with pytest.raises(LogError, match=re.escape(str(error))):
                    read_table(path)
            else:
                read_table(path)
    assert reported > 40


def test_a_run_of_several_processes(postgres: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some outputs have one id in two gates, and some have verdicts from outside or none."""
    monkeypatch.setattr("gatekeeper.log.postgres_shared.FOLLOW", 3600.0)
    place, verifier = postgres.new_run(), SetVerifier()
    options: Any = {"budget": Budget(fraction=0.3), "log": place, "shared": True, "warmup": 6}
    options |= {"policy": "cst", "verifier": verifier, "on_unavailable": "pass"}
    verifier.cost = 1.0
    with VerificationGate(**options) as one, VerificationGate(**options) as two:
        for i in range(60):
            verifier.now = (0, 1, 1, None)[i % 4]
            gates = (one, two) if i % 7 == 0 else (one,) if i % 2 else (two,)
            for gate in gates:
                result = gate.maybe_verify(OUTPUTS[i])
                if i % 3 == 0 and not result.decision.verify:
                    attempt(lambda: gate.report_outcome(f"g{i}", "failed"))  # noqa: B023
    table = check(place)
    assert len(table.ids) == 69
    assert table.external.any()
    assert (table.verdict == NO_VERDICT).any()


def test_a_log_without_a_decision(tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    VerificationGate("cst", budget=Budget(fraction=0.3), verifier=SetVerifier(), log=path).close()
    table = check(path)
    assert (table.ids, table.h.shape, table.features) == ([], (0, 3), {})


def test_a_feature_that_comes_late_and_goes(tmp_path: Path) -> None:
    """Absent values are NaN before, between and after, and names are in their order."""
    path, given = tmp_path / "run.db", [{}, {"b": 2}, {}, {"b": 0.5, "a": -0.0}, {"a": True}, {}]
    passes = Outcome(Verdict.PASSED)
    with VerificationGate(
        "cst", budget=Budget(fraction=0.3), verifier=lambda output, task: passes, log=path
    ) as gate:
        for i, features in enumerate(given):
            gate.maybe_verify(Generation(f"g{i}", "text", features=features))
    table = check(path)
    assert list(table.features) == ["a", "b"]
    columns: list[FloatArray] = list(table.features.values())
    assert same(columns[0], [nan, nan, nan, -0.0, 1.0, nan])
    assert same(columns[1], [nan, 2.0, nan, 0.5, nan, nan])
