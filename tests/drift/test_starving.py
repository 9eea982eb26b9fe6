"""A model is replaced without notice: scores move, labels may not, and policies underspend."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gatekeeper import Budget, Candidate, Decision, Generation, Reason, VerificationGate
from gatekeeper.analysis.replay import outcome_of
from gatekeeper.budget import Ledger
from gatekeeper.drift.guard import RELEARNING, TESTS, DriftGuard
from gatekeeper.drift.pace import UNDERSPENT
from gatekeeper.log import FingerprintChanged, MemoryLog
from gatekeeper.policies import make_policy
from gatekeeper.testing import ScriptedVerifier
from gatekeeper.types import PolicyHealth, Signals

N, HALF = 1600, 800
POLICIES = (
    *("threshold", "cst", "cst-memory", "mp-adapt", "mp-strat"),
    *("split-conformal", "hga", "calibrated"),
)


def outputs(n: int = N, *, margins: Sequence[float] = (1.0, 4.0)) -> list[Generation]:
    """Equal parts whose margins are of these sizes; ids, costs and model do not change."""
    rng = np.random.default_rng(6)
    found = []
    for i in range(n):
        margin = rng.exponential(margins[i * len(margins) // n] * rng.uniform(0.5, 1.5), 10)
        top1 = -np.log1p(np.exp(-margin))
        tokens = int(rng.integers(5, 200))
        found.append(Generation(f"g{i}", "", top1, top1, top1 - margin, prompt_tokens=tokens))
    return found


def labels() -> dict[str, Any]:
    """Three in ten wrong, whatever the scores."""
    return {f"g{i}": int(wrong) for i, wrong in enumerate(np.random.default_rng(1).random(N) < 0.3)}


def gate_of(policy: str, **more: Any) -> VerificationGate:
    budget = Budget(fraction=0.2, horizon=N)
    verifier = ScriptedVerifier(labels())
    return VerificationGate(policy, **{"budget": budget, "verifier": verifier, "seed": 2} | more)


@pytest.mark.parametrize("policy", POLICIES)
def test_an_unnamed_switch_is_noticed_and_the_budget_is_spent(policy: str) -> None:
    gate, stream = gate_of(policy), outputs()
    for output in stream[:HALF]:
        gate.maybe_verify(output)
    before = gate.status()
    assert (before.health, before.drift) == (PolicyHealth.VALID, "")
    assert before.shift < 1 / 0.01
    for output in stream[HALF : HALF + 100]:
        gate.maybe_verify(output)
    status = gate.status()
    assert status.health is PolicyHealth.DRIFTED
    assert "scores shifted" in status.drift
    assert "lower" in status.drift
    assert status.phase == RELEARNING
    for output in stream[HALF + 100 :]:
        gate.maybe_verify(output)
    status = gate.status()
    assert status.health is PolicyHealth.VALID
    assert status.spent - before.spent >= 0.9 * min(0.2 * HALF, before.cap - before.spent)
    assert status.pace is not None
    assert status.pace == pytest.approx(status.spent / status.cap)
    if policy != "split-conformal":  # which spends nothing in its calibration, before the switch
        assert 0.95 < status.pace <= 1.0


def test_with_report_the_policy_underspends_and_status_says_so() -> None:
    gate = gate_of("cst", on_drift="report")
    spent = []
    for output in outputs():
        gate.maybe_verify(output)
        spent.append(gate.status().spent)
    status = gate.status()
    assert status.health is PolicyHealth.DRIFTED
    assert "scores shifted" in status.drift
    assert spent[-1] - spent[HALF] < 0.5 * 0.2 * HALF
    assert status.pace is not None
    assert status.pace < 0.8


@pytest.mark.parametrize("policy", ["cst", "calibrated", "split-conformal"])
def test_a_resume_anywhere_goes_on_as_an_uninterrupted_gate(policy: str) -> None:
    stream = outputs()

    def run(cuts: Sequence[int]) -> tuple[list[Any], Any]:
        log = MemoryLog()
        for start, end in zip((0, *cuts), (*cuts, N), strict=True):
            gate = gate_of(policy, log=log)
            for output in stream[start:end]:
                gate.maybe_verify(output)
        return list(log.rows()), gate.status()

    def settled(found: tuple[list[Any], Any]) -> tuple[list[Any], Any]:
        return [row for row in found[0] if row.kind != "outcome"], found[1]

    assert settled(run([700, 806, 830, 1000, 1400])) == settled(run([]))


def test_a_guard_goes_on_from_its_state_in_the_middle_of_everything() -> None:
    """The state is JSON, and all of it: ranks, wealth, pace and draws beside the policy."""
    stream = [
        Candidate(f"s{i}", Signals(h + 1.0 * (i >= 500), -h, h), 1.0 + (i % 7))
        for i, h in enumerate(np.random.default_rng(3).random(1000).tolist())
    ]

    def run(cuts: Sequence[int]) -> list[str]:
        def fresh(ledger: Ledger) -> DriftGuard:
            guard = DriftGuard(make_policy("cst", 0.2), rate=0.2)
            guard.behind = ledger.behind
            return guard

        ledger = Ledger(Budget(fraction=0.2, horizon=len(stream)), 1.0)
        guard, found = fresh(ledger), []
        for t, candidate in enumerate(stream):
            if t in cuts:
                state = json.loads(json.dumps(guard.state(), allow_nan=False))
                guard = fresh(ledger)
                guard.restore(state)
            proposal = guard.decide(candidate)
            hold = ledger.see(candidate.cost_estimate, warmup=proposal.reason is Reason.WARMUP)
            verified = proposal.verify and ledger.reserve(candidate.id, hold)
            decision = replace(proposal, verify=verified)
            guard.observe(candidate, decision)
            if verified:
                ledger.settle(candidate.id, 1.0)
                guard.update(candidate, decision, outcome_of(t % 3 == 0, 1.0))
            found.append(f"{decision} {guard.health} {guard.why} {guard.shift}")
        assert any("drifted" in line for line in found[500:])
        return found

    assert run(range(30, 1000, 97)) == run([])


def test_a_policy_that_underspends_by_itself_is_noticed_by_its_pace() -> None:
    """Nothing about the outputs changes."""

    class Tiring:
        """Draws at 20 % for a while, and then no more."""

        phase = "steady"

        def __init__(self) -> None:
            self.seen = 0

        def decide(self, candidate: Candidate) -> Any:
            self.seen += 1
            verify = self.seen < 600 and self.seen % 5 == 0
            return replace(make_policy("random", 0.2).decide(candidate), verify=verify)

        def update(self, *_: object) -> None: ...

        def state(self) -> dict[str, Any]:
            return {"seen": self.seen}

        def restore(self, state: dict[str, Any]) -> None:
            self.seen = state["seen"]

    guard, rng = DriftGuard(Tiring(), rate=0.2), np.random.default_rng(2)
    for t, h in enumerate(rng.random((800, 3)).tolist()):
        candidate = Candidate(f"s{t}", Signals(*h), 1.0)
        guard.observe(candidate, guard.decide(candidate))
        assert not guard.why or t >= 600
    assert guard.why == UNDERSPENT


class Idle:
    """Verifies nothing, as `split-conformal` does while it calibrates."""

    phase = "calibration"

    def decide(self, candidate: Candidate) -> Decision:
        return Decision(False, Reason.CALIBRATION, propensity=0.0)

    def update(self, *_: object) -> None: ...

    def state(self) -> dict[str, Any]:
        return {}

    def restore(self, state: dict[str, Any]) -> None: ...


@pytest.mark.parametrize("relearns", [True, False])
def test_on_a_suspicion_outputs_are_drawn_beside_a_policy_that_verifies_little(
    relearns: bool,
) -> None:
    """The labels of the draws then show what the scores alone show later."""
    guard, rng = DriftGuard(Idle(), rate=0.2, relearns=relearns), np.random.default_rng(5)
    guard.behind = lambda: 100.0
    found = []
    for t in range(1400):
        h = rng.random(3) + 0.06 * (t >= 900)
        candidate = Candidate(f"s{t}", Signals(*h.tolist()), 1.0)
        decision = guard.decide(candidate)
        guard.observe(candidate, decision)
        if guard.why:
            break
        found.append(decision)
    assert "scores shifted" in guard.why
    drawn = [t for t, decision in enumerate(found) if decision.propensity]
    assert (min(drawn) > 900 and len(drawn) > 20) if relearns else not drawn
    for t in drawn:
        reason = Reason.EXPLORE if found[t].verify else Reason.CALIBRATION
        assert (found[t].reason, found[t].propensity) == (reason, 0.5)
    assert 0.2 < np.mean([found[t].verify for t in drawn] or [0.5]) < 0.8


def test_of_several_outputs_of_one_task_only_the_first_is_compared() -> None:
    """They resemble each other, so that a hundred of them would look like a change."""
    rng = np.random.default_rng(0)
    guards = {many: DriftGuard(make_policy("random", 0.2), rate=0.2) for many in (True, False)}
    for task in range(150):
        h, cost = rng.random(3) + 2.0 * (task % 50 == 49), float(rng.random() + 1)
        for k in range(20):
            for many, guard in guards.items():
                id_ = f"t{task}/{k}" if many else f"t{task}-{k}"
                candidate = Candidate(id_, Signals(*(h + 0.1 * rng.random(3))), cost)
                guard.observe(candidate, guard.decide(candidate))
    assert guards[True].why == ""
    assert "scores shifted" in guards[False].why


def test_a_log_that_was_written_with_other_tests_is_followed_and_then_tested() -> None:
    """Drift is what the log says, also where today's tests would have found it."""
    log, stream = MemoryLog(), outputs()
    gate = gate_of("cst", log=log, on_drift="report", explore=0.0)
    for output in stream[:1200]:
        gate.maybe_verify(output)
    assert gate.status().health is PolicyHealth.DRIFTED
    old = MemoryLog()
    old.configure(log.settings())
    old.append(
        replace(event, tests=1) if isinstance(event, FingerprintChanged) else event
        for event in log.events()
        if not (event.kind == "calibration" and event.health is PolicyHealth.DRIFTED)
    )
    again = gate_of("cst", log=old, on_drift="report", explore=0.0)
    assert again.status().health is PolicyHealth.VALID
    last = list(old.events())[-1]
    assert isinstance(last, FingerprintChanged)
    assert (last.tests, last.why) == (TESTS, "")
    for output in stream[1200:]:
        again.maybe_verify(output)
    assert again.status().drift in ("", UNDERSPENT)  # outputs have not changed since
    resumed = gate_of("cst", log=old, on_drift="report", explore=0.0).status()
    assert repr(resumed) == repr(
        # how long verifications took is known in the process that made them
        replace(again.status(), durations=resumed.durations, seconds=resumed.seconds)
    )


@pytest.mark.parametrize(
    ("budget", "allowed"),
    [
        (Budget(fraction=0.2, horizon=150), 0.2 * 40),  # 40 of 100 after the warm-up
        (Budget(fraction=0.2), 0.2 * 40 + 1.0),  # and the allowance at the start
        (Budget(total=70.0, horizon=150), 20.0 * 40 / 100),
        (Budget(total=70.0), None),
    ],
)
def test_the_ledger_says_what_is_allowed_so_far(budget: Budget, allowed: float | None) -> None:
    ledger = Ledger(budget, 1.0)
    for t in range(90):
        hold = ledger.see(1.0, warmup=t < 50)
        if t < 50 or t % 20 == 0:
            ledger.reserve(f"s{t}", hold)
            ledger.settle(f"s{t}", 1.0)
    assert ledger.allowed == (None if allowed is None else pytest.approx(allowed))
    assert ledger.behind() == pytest.approx(0.0 if allowed is None else allowed - ledger.spent)
