"""Verifications that end without a verdict: the budget that they leave is for later outputs."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from gatekeeper import Budget, Decision, Generation, Outcome, Verdict, VerificationGate
from gatekeeper.policies import Goal
from gatekeeper.testing import make_generation

OUTPUTS = [make_generation(f"c{i}", seed=i) for i in range(600)]
BUDGETS = {
    f"{goal}, {unit}, horizon={horizon}": (goal, Budget(
        fraction=0.2, unit=unit, max_cost=6.0 if unit == "usd" else None, horizon=horizon
    ))
    for goal in ("errors", "score")
    for unit in ("verifications", "usd")
    for horizon in (None, len(OUTPUTS))
}  # fmt: skip


class Broken:
    """A verifier that cannot tell in `share` of all cases; never for an output that comes again."""

    def __init__(self, share: float) -> None:
        rng = np.random.default_rng(3)
        self.left = {o.id for o in OUTPUTS if rng.random() < share}

    def verify(self, output: Generation, task: object) -> Outcome:
        if output.id in self.left:
            self.left.remove(output.id)
            return Outcome(Verdict.INFRA_ERROR)
        rng = np.random.default_rng(int(output.id[1:]))
        verdict = Verdict.FAILED if rng.random() < 0.4 else Verdict.PASSED
        return Outcome(verdict, cost=float(rng.uniform(0.2, 6.0)))


def gate_of(
    goal: Goal, budget: Budget, verifier: Broken, log: Path | None = None
) -> VerificationGate:
    return VerificationGate(
        goal=goal, budget=budget, verifier=verifier, on_unavailable="pass", log=log
    )


def go(gate: VerificationGate, outputs: list[Generation], *, again: bool = False) -> list[Decision]:
    decisions = []
    for output in outputs:
        result = gate.maybe_verify(output, None)
        if again and result.outcome is not None and result.outcome.error is None:
            assert gate.maybe_verify(output, None).verified
        decisions.append(result.decision)
    return decisions


@pytest.mark.parametrize("name", BUDGETS)
def test_the_budget_is_spent_as_if_all_had_a_verdict(name: str) -> None:
    """But for a few verifications by which pacing is behind, even if 30 % have none; if they kept
    their budget, 30 % of it would stay unspent.
    """
    goal, budget = BUDGETS[name]
    spent = []
    for share in (0.0, 0.3):
        with gate_of(goal, budget, Broken(share)) as gate:
            go(gate, OUTPUTS)
            spent.append(gate.status().spent)
    assert spent[1] > 0.84 * spent[0]


@pytest.mark.parametrize("name", BUDGETS)
def test_a_verification_that_is_repeated_counts_once(name: str) -> None:
    goal, budget = BUDGETS[name]
    found = []
    for share in (0.0, 0.3):
        with gate_of(goal, budget, Broken(share)) as gate:
            decisions = go(gate, OUTPUTS, again=True)
            found.append([(d.verify, d.reason, round(d.propensity, 9)) for d in decisions])
    assert found[0] == found[1]


@pytest.mark.parametrize("name", BUDGETS)
def test_a_resumed_run_goes_on_as_an_uninterrupted_one(name: str, tmp_path: Path) -> None:
    """Also where outputs without a verdict come again after it."""
    goal, budget = BUDGETS[name]

    def state_of(gate: VerificationGate) -> str:
        return json.dumps(gate.policy.state(), sort_keys=True)

    with gate_of(goal, budget, Broken(0.3)) as gate:
        expected = go(gate, OUTPUTS[:200]) + go(gate, OUTPUTS[150:])
        at_end = state_of(gate)
    log, verifier = tmp_path / "run.db", Broken(0.3)
    with gate_of(goal, budget, verifier, log) as gate:
        got = go(gate, OUTPUTS[:200])
        assert {output.id for output in gate.pending()} & {o.id for o in OUTPUTS[150:200]}
    with gate_of(goal, budget, verifier, log) as gate:
        got += go(gate, OUTPUTS[150:])
        assert state_of(gate) == at_end
    assert repr(got) == repr(expected)


class Outage(Broken):
    """A verifier that gives no verdict on the second half of the outputs."""

    def __init__(self) -> None:
        super().__init__(0.0)
        self.left = {o.id for o in OUTPUTS[len(OUTPUTS) // 2 :]}


@pytest.mark.parametrize("name", BUDGETS)
def test_while_there_are_no_verdicts_no_further_outputs_are_selected(name: str) -> None:
    """In place of those that wait for one: the verifier may be back, and they come again."""
    goal, budget = BUDGETS[name]
    selected = []
    for verifier in (Broken(0.0), Outage()):
        with gate_of(goal, budget, verifier) as gate:
            selected.append(sum(decision.verify for decision in go(gate, OUTPUTS)))
            if isinstance(verifier, Outage):
                go(gate, OUTPUTS)
                assert gate.status().unresolved <= 0.05 * selected[-1]
    assert selected[1] <= 1.1 * selected[0]
