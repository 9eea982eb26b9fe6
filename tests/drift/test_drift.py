"""Drift: what a guard, a gate and the command line do about it."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gatekeeper import Budget, Candidate, Decision, Generation, Policy, Reason, VerificationGate
from gatekeeper.analysis.replay import outcome_of
from gatekeeper.budget import Ledger
from gatekeeper.cli import main as cli
from gatekeeper.costs import prompt_length
from gatekeeper.drift.fingerprint import Fingerprint
from gatekeeper.drift.guard import RELEARNING, DriftGuard
from gatekeeper.errors import LogMismatchError
from gatekeeper.io.records import RecordTable, records_of_log
from gatekeeper.log import Log, MemoryLog, Row, SQLiteLog
from gatekeeper.log.run import read_run
from gatekeeper.paper.stress import Recipe, make_stream
from gatekeeper.policies import T0, Threshold, make_policy
from gatekeeper.programs import task_run
from gatekeeper.protocols import ObservingPolicy
from gatekeeper.report.report import report
from gatekeeper.testing import ScriptedVerifier, check_policy, make_generation
from gatekeeper.types import GateStatus, PolicyHealth
from gatekeeper.verifiers import ByKind

# -- a guarded policy -----------------------------------------------------------------------------


def go_through(policy: Policy, table: RecordTable, *, restart: int = -1) -> list[Decision]:
    """Decide on all, each label following at once; at `restart` from its own state, as JSON."""
    decisions = []
    for t, record in enumerate(table):
        if t == restart:
            state = json.loads(json.dumps(policy.state()))
            policy = guarded()
            policy.restore(state)
        candidate = Candidate(record.id, record.signals, record.cost_estimate)
        decision = policy.decide(candidate)
        if isinstance(policy, ObservingPolicy):
            policy.observe(candidate, decision)
        if decision.verify:
            policy.update(candidate, decision, outcome_of(record.error or 0, 1.0))
        decisions.append(decision)
    return decisions


def guarded() -> DriftGuard:
    return DriftGuard(Threshold(0.3, seed=2), rate=0.3, seed=2)


TURNED = Recipe(error_rate=(0.2,), then=Recipe(error_rate=(0.8,)))  # the rate of errors, at once


@pytest.mark.parametrize("name", ["calibrated", "hga", "mp-adapt", "random", "threshold"])
def test_a_guarded_policy_keeps_the_contract(name: str) -> None:
    def make() -> DriftGuard:
        return DriftGuard(make_policy(name, 0.3, horizon=300, seed=3), seed=3)

    check_policy(make, n=300, seed=1)


@pytest.mark.parametrize("name", ["calibrated", "cst", "cst-memory", "hga", "threshold"])
def test_while_nothing_drifts_a_guarded_policy_decides_as_ever(name: str) -> None:
    table = make_stream("missing-signals", 900, 5)
    plain = make_policy(name, 0.2, horizon=900, seed=1)
    guard = DriftGuard(make_policy(name, 0.2, horizon=900, seed=1))
    assert guard.health is PolicyHealth.COLD
    assert repr(go_through(guard, table)) == repr(go_through(plain, table))  # NaN equals NaN
    assert (guard.health, guard.why) == (PolicyHealth.VALID, "")
    assert guard.state()["policy"] == plain.state() or repr(guard.state()["policy"]) == repr(
        plain.state()
    )


@pytest.mark.parametrize("error", [0, 1])
def test_labels_that_all_agree_are_predicted(error: int) -> None:
    """A model that is never wrong, or always, has not drifted."""
    guard = guarded()
    for record in make_stream("usual", 600, 3):
        candidate = Candidate(record.id, record.signals, record.cost_estimate)
        decision = guard.decide(candidate)
        guard.observe(candidate, decision)
        guard.update(candidate, decision, outcome_of(error, 1.0))
    assert guard.health is PolicyHealth.VALID


def test_on_drift_it_draws_uniformly_and_learns_again() -> None:
    guard, table = guarded(), make_stream(TURNED, 1600, 4)
    phases, known = [], []
    for t, record in enumerate(table):
        candidate = Candidate(record.id, record.signals, record.cost_estimate)
        phases.append(guard.phase)
        decision = guard.decide(candidate)
        guard.observe(candidate, decision)
        if phases[-1] == RELEARNING:
            assert decision.propensity == 0.3
            assert decision.reason is (Reason.EXPLORE if decision.verify else Reason.POLICY)
        else:
            assert (decision.reason is Reason.WARMUP) == (t < T0)  # never again
        if decision.verify:
            guard.update(candidate, decision, outcome_of(record.error or 0, 1.0))
        known.append(guard.health)
    first = known.index(PolicyHealth.DRIFTED)
    assert first > 800
    assert guard.why.startswith("more errors than predicted")
    begun, ended = phases.index(RELEARNING), 1600 - phases[::-1].index(RELEARNING)
    assert phases[begun:ended] == [RELEARNING] * (ended - begun)
    fresh = guard.state()["policy"]["warmup"]
    assert len(fresh["ids"]) == T0
    assert int(fresh["ids"][0][1:]) > first  # its new warm-up is from after the alarm
    assert known[-1] is PolicyHealth.VALID


def test_a_guard_goes_on_from_its_state_in_the_middle_of_a_drift() -> None:
    table = make_stream(TURNED, 1600, 4)
    whole = go_through(guarded(), table)
    relearning = [t for t, d in enumerate(whole) if d.reason is Reason.EXPLORE]
    for t in (400, relearning[0] + 1, relearning[len(relearning) // 2], relearning[-1] + 1, 1500):
        assert repr(go_through(guarded(), table, restart=t)) == repr(whole)


def test_labels_from_before_a_drift_teach_nothing_after_it() -> None:
    """Verdicts come late: what was decided before is no part of the new warm-up."""
    guard, table = guarded(), list(make_stream(TURNED, 400, 4))
    for record in table[:100]:
        candidate = Candidate(record.id, record.signals, record.cost_estimate)
        guard.observe(candidate, guard.decide(candidate))
    guard.relearn()
    before = guard.state()
    first = Candidate(table[0].id, table[0].signals, table[0].cost_estimate)
    guard.update(first, Decision(True, Reason.WARMUP), outcome_of(1, 1.0))
    after = guard.state()
    assert before.pop("pending").keys() - after.pop("pending").keys() == {first.id}
    assert repr(before) == repr(after)


# -- what a gate does about it ---------------------------------------------------------------------


def outputs(n: int, models: Sequence[str] = "a") -> list[Generation]:
    """Outputs of one model after the other, in parts of equal size."""
    rng = np.random.default_rng(1)
    return [
        replace(
            make_generation(f"g{i}", seed=i, prompt_tokens=int(rng.integers(5, 200))),
            model=models[i * len(models) // n],
        )
        for i in range(n)
    ]


def labels(n: int, *rates: float) -> dict[str, Any]:
    """Errors at these rates, in parts of equal size."""
    rng = np.random.default_rng(2)
    return {f"g{i}": int(rng.random() < rates[i * len(rates) // n]) for i in range(n)}


def gate_of(n: int, log: Log, rates: Sequence[float] = (0.4,), **more: Any) -> VerificationGate:
    settings: dict[str, Any] = {
        "policy": "threshold",
        "budget": Budget(fraction=0.3),
        "verifier": ScriptedVerifier(labels(n, *rates), cost=0.5),
    }
    return VerificationGate(log=log, **settings | more)


def said(log: Log) -> list[tuple[str, Any]]:
    return [
        (e.kind, e.data["status"] if e.kind == "calibration" else e.data["models"])
        for e in log.rows()
        if e.kind in ("calibration", "fingerprint")
    ]


@pytest.mark.parametrize("policy", ["threshold", "calibrated", "hga"])
def test_another_model_is_drift_at_once(policy: str) -> None:
    n, log = 900, MemoryLog()
    gate = gate_of(n, log, policy=policy)
    stream = outputs(n, "ab")
    for output in stream[: n // 2]:
        gate.maybe_verify(output)
    status = gate.status()
    assert (status.health, status.drift) == (PolicyHealth.VALID, "")
    results = [gate.maybe_verify(output) for output in stream[n // 2 :]]
    relearning = [r for r in results if gate.phase_of(r.id) == RELEARNING]
    assert relearning == results[: len(relearning)]
    beside = 0.03  # share of draws that find no room in the budget
    for result in relearning:
        propensity = round(result.decision.propensity, 12)
        assert propensity >= 0.3 or propensity == beside
        assert result.decision.reason in (
            *(Reason.EXPLORE, Reason.POLICY),
            Reason.BUDGET_EXHAUSTED,
        )
    verified = sum(r.verified for r in relearning)
    assert verified == T0
    status = gate.status()
    assert (status.health, status.drift) == (PolicyHealth.VALID, "model 'b' instead of 'a'")
    assert "valid; last drift: model " in status._repr_html_()
    assert (status.warmup_seen, status.warmup_verified) == (T0, T0)
    assert said(log) == [
        ("fingerprint", []),
        ("fingerprint", ["a"]),
        ("calibration", "valid"),
        ("fingerprint", ["a", "b"]),
        ("calibration", "drifted"),
        ("calibration", "valid"),
    ]
    gate.maybe_verify(replace(make_generation("again"), model="a"))
    assert gate.status().health is PolicyHealth.VALID  # one that is known comes back


def test_labels_against_all_predictions_are_drift() -> None:
    n, log = 1600, MemoryLog()
    gate = gate_of(n, log, (0.1, 0.9))
    status = [gate.maybe_verify(output) and gate.status() for output in outputs(n)]
    drifted = [s.health for s in status].index(PolicyHealth.DRIFTED)
    assert n // 2 < drifted
    assert status[drifted].drift == "more errors than predicted"
    assert status[-1].health is PolicyHealth.VALID
    assert all(s.spent + s.held <= s.cap for s in status)


def test_report_only_says_so() -> None:
    n, stream = 1600, outputs(1600)
    gate = gate_of(n, MemoryLog(), (0.1, 0.9), on_drift="report", explore=0.0)
    plain, ledger = make_policy("threshold", 0.3), Ledger(Budget(fraction=0.3), 1.0)
    for output in stream:  # without a guard
        result = gate.maybe_verify(output)
        candidate = Candidate(result.id, result.signals, prompt_length(output, None))
        proposal = plain.decide(candidate)
        hold = ledger.see(candidate.cost_estimate, warmup=proposal.reason is Reason.WARMUP)
        verified = proposal.verify and ledger.reserve(result.id, hold)
        assert (result.decision.verify, result.decision.score) == pytest.approx(
            (verified, proposal.score), nan_ok=True
        )
        if verified:
            assert result.outcome is not None
            ledger.settle(result.id, 1.0)
            plain.update(candidate, proposal, result.outcome)
    status = gate.status()
    assert (status.health, status.drift) == (PolicyHealth.DRIFTED, "more errors than predicted")

    swapped = gate_of(n, MemoryLog(), on_drift="report")
    for output in outputs(400, "ab"):
        swapped.maybe_verify(output)
    assert swapped.status().health is PolicyHealth.DRIFTED
    assert swapped.status().phase == "steady"


@pytest.mark.parametrize("unit", ["verifications", "seconds", "usd"])
@pytest.mark.parametrize("bound", [{"fraction": 0.2}, {"fraction": 0.2, "horizon": 700}])
def test_the_cap_holds_while_it_relearns(unit: Any, bound: dict[str, Any]) -> None:
    n = 700
    budget = Budget(unit=unit, max_cost=None if unit == "verifications" else 1.0, **bound)
    gate = gate_of(n, MemoryLog(), budget=budget)
    for output in outputs(n, "abc"):
        gate.maybe_verify(output)
        status = gate.status()
        assert status.spent + status.held <= status.cap
    assert status.drift == "model 'c' instead of 'a' or 'b'"
    assert status.overrun == 0.0
    assert status.warmup_verified == T0
    assert status.spent > 0.85 * status.cap


@pytest.mark.parametrize("size", [1, 16])
@pytest.mark.parametrize("policy", ["threshold", "calibrated"])
def test_a_resume_in_a_drift_goes_on_as_an_uninterrupted_gate(policy: str, size: int) -> None:
    """Decision by decision, the log event by event; by another model, then by labels."""
    n = 1200

    def run(cuts: Sequence[int]) -> list[Row]:
        log, stream = MemoryLog(), outputs(n, "aab")
        for start, end in pairwise((0, *cuts, n)):
            gate = gate_of(n, log, (0.1, 0.1, 0.1, 0.9), policy=policy)
            for i in range(start, end, size):
                gate.verify_batch([(g, None) for g in stream[i : min(i + size, end)]])
        return list(log.rows())

    def settled(events: list[Row]) -> list[Row]:
        return [e for e in events if e.kind != "outcome"]  # as fast as their threads

    whole = run([])
    at = [i for i, event in enumerate(whole) if event.data.get("status") == "drifted"]
    cuts = [sum(e.kind == "decided" for e in whole[:i]) // size * size + 2 * size for i in at]
    assert len(cuts) in (1, 2)
    assert settled(run([320, *cuts])) == settled(whole)


def test_other_settings_of_another_process_may_be_drift() -> None:
    """Another template and another verifier are drift; a setting that is absent is not."""
    n, log, stream = 500, MemoryLog(), outputs(500)

    class Stricter(ScriptedVerifier):
        pass

    def status_of(part: slice, **more: Any) -> GateStatus:
        gate = gate_of(n, log, **more)
        for output in stream[part]:
            gate.maybe_verify(output)
        return gate.status()

    assert status_of(slice(0, 100), prompt_template="Q: {}").health is PolicyHealth.VALID
    assert status_of(slice(0), verifier=None).health is PolicyHealth.VALID
    status = status_of(slice(0), prompt_template="Question: {}")
    assert (status.health, status.drift) == (PolicyHealth.DRIFTED, "another prompt template")
    assert status_of(slice(100, 400), prompt_template="Question: {}").health is (PolicyHealth.VALID)
    status = status_of(slice(0), verifier=Stricter(labels(n, 0.4)))
    assert status.drift == "another verifier, or another setting of it"
    assert "Question" not in repr(list(log.events()))  # a hash of the template is kept
    with pytest.raises(LogMismatchError, match="on_drift='relearn'"):
        gate_of(n, log, on_drift="report")


def test_a_verifier_is_known_by_what_its_verdicts_depend_on() -> None:
    class Timed:
        def __init__(self, limit: float = inf, *, workers: int = 2) -> None:
            self.limit, self.workers = limit, workers
            self.calls = 0  # it counts, which is no setting

        def verify(self, generation: Generation, task: Any) -> Any: ...

    def of(verifier: Timed) -> dict[str, Any]:
        data = Fingerprint.of(None, ByKind({"code": verifier})).data()
        assert json.loads(json.dumps(data, allow_nan=False)) == data  # as a log keeps it
        return data["verifier"]["verifiers"]["code"]

    used = Timed(workers=4)
    used.calls = 7
    assert of(used) == of(Timed()) != of(Timed(2.0))
    assert of(Timed(2.0))["limit"] == 2.0
    assert of(used)["type"].endswith("Timed")


def test_a_log_from_before_there_were_fingerprints_is_resumed() -> None:
    """What it decided stands, drift or not; it is watched from here on."""
    n, log, stream = 1600, MemoryLog(), outputs(1600)
    old = gate_of(n, log, (0.1, 0.9), on_drift="report")  # decides as without a test for drift
    for output in stream[:1400]:
        old.maybe_verify(output)
    assert old.status().health is PolicyHealth.DRIFTED
    before = MemoryLog()
    before.configure(log.settings())
    before.append(e for e in log.events() if e.kind not in ("calibration", "fingerprint"))
    gate = gate_of(n, before, (0.1, 0.9))
    assert said(before) == [("fingerprint", ["a"])]
    assert (gate.status().health, gate.status().phase) == (PolicyHealth.COLD, "steady")
    for output in stream[1400:]:
        gate.maybe_verify(output)
    again = gate_of(n, before, (0.1, 0.9))
    assert again.status() == gate.status()
    assert again.status().health is PolicyHealth.VALID


# -- report and command line -----------------------------------------------------------------------


def test_a_report_says_what_drifted_and_what_labels_depend_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    n, path = 400, tmp_path / "run.db"
    verifier = ByKind({"math": ScriptedVerifier(labels(n, 0.4))})
    with gate_of(n, SQLiteLog(path), prompt_template="Q: {}", verifier=verifier) as gate:
        for output in outputs(n, "ab"):
            gate.maybe_verify(output, {"kind": "math"})
    assert cli(["diagnose", str(path), "--seeds", "1"]) in (0, 3, 4)
    said = " ".join(capsys.readouterr().out.split())
    assert "Note: drifted by output 200: model 'b' instead of 'a'." in said
    run = read_run(path)
    assert [s.health for s in run.health_changes] == ["valid", "drifted", "valid"]
    assert (run.health_changes[1].after, run.health_changes[1].why) == (
        n // 2,
        "model 'b' instead of 'a'",
    )
    assert run.ledger.seen == gate.status().seen
    assert run.ledger.spent == gate.status().spent
    assert len(records_of_log(path)) == n
    page = re.sub(r"<[^>]*>", " ", report(path))
    for text in (
        "Policy health",
        "number 201",
        "drifted: outputs, labels or their conditions changed",
        "model &#x27;b&#x27; instead of &#x27;a&#x27;",
        "a, b",
        "math: ScriptedVerifier",
        "from outputs drawn at random within the budget",
    ):
        assert text in page


@pytest.mark.parametrize("on_drift", ["relearn", "report"])
def test_run_says_when_it_drifts(
    on_drift: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    n = 320
    tasks = [
        {"id": f"g{i}", "prompt": f"{i} - {i} = ?", "kind": "math", "gold": "0"} for i in range(n)
    ]
    path = tmp_path / "tasks.jsonl"
    path.write_text("".join(json.dumps(task) + "\n" for task in tasks))
    answers = {output.id: output for output in outputs(n, ("a", "b[/x]"))}

    def make(options: object) -> object:
        return lambda: lambda prompts, ids: map(answers.get, ids)

    monkeypatch.setattr(task_run, "make_sampler", make)
    verifier = ByKind({"math": ScriptedVerifier(labels(n, 0.4))})
    monkeypatch.setattr(task_run, "_verifier", lambda tasks, options: verifier)
    how = ["--policy", "cst", "--budget", "0.4", "--on-drift", on_drift]
    log = tmp_path / "run.db"

    assert cli(["run", str(path), "--log", str(log), *how]) == 0
    out, err = capsys.readouterr()
    _, drifted = err.splitlines()  # after what will be verified
    assert drifted == "gatekeeper: drifted by output 192: model 'b[/x]' instead of 'a'"
    now = "learned again" if on_drift == "relearn" else "kept what it had learned"
    assert "outputs drifted: model 'b[/x]' instead of 'a'." in " ".join(out.split())
    assert now in " ".join(out.split())

    assert cli(["run", str(path), "--log", str(log), *how, "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["drift"] == "model 'b[/x]' instead of 'a'"
    assert shown["health"] == ("valid" if on_drift == "relearn" else "drifted")
