"""Draws for a score: each with its own probability, as many as the budget pays for."""

from __future__ import annotations

from collections import deque
from dataclasses import replace

import numpy as np
import pytest

from gatekeeper import Budget, Generation, Outcome, Reason, Verdict, VerificationGate
from gatekeeper.policies import Survey
from gatekeeper.stats.sequential_draws import SequentialDraws
from gatekeeper.testing import (
    ScriptedVerifier,
    check_policy,
    make_candidates,
    make_generation,
)


def test_each_output_is_drawn_with_its_probability() -> None:
    """Whatever the others' probabilities; the count stays within 1 of their sum."""
    p = [0.3, 0.9, 0.05, 0.5, 0.7, 0.2, 0.99, 0.01, 0.35]
    runs = 6000
    counts = np.zeros(len(p))
    for seed in range(runs):
        draw = SequentialDraws(seed)
        drawn = [draw(q) for q in p]
        assert all(type(d) is bool for d in drawn)
        assert (np.abs(np.cumsum(drawn) - np.cumsum(p)) < 1.0).all()
        counts += drawn
    error = np.sqrt(np.array(p) * (1 - np.array(p)) / runs)
    assert (np.abs(counts / runs - p) < 4.0 * error).all()


@pytest.mark.parametrize("horizon", [300, 290, None])
@pytest.mark.parametrize("beta", [0.05, 0.5, 0.9])
def test_it_keeps_the_contract_and_the_budget(beta: float, horizon: int | None) -> None:
    check_policy(lambda: Survey(beta, horizon=horizon, seed=3), n=300)
    policy, drawn, certain = Survey(beta, horizon=horizon), 0, 0
    rng = np.random.default_rng(7)
    unequal = set()
    for t, candidate in enumerate(make_candidates(horizon or 300, seed=1)):
        decision = policy.decide(candidate)
        certain += decision.propensity in (0.0, 1.0)
        unequal.add(decision.propensity)
        drawn += decision.verify
        growing = 1 + np.floor(beta * (t + 1) + 0.5)
        assert drawn <= (growing if horizon is None else np.floor(beta * horizon + 0.5))
        if decision.verify:
            wrong = rng.random() < (0.5 if candidate.signals.h1 > 0.5 else 0.02)
            verdict = Verdict.FAILED if wrong else Verdict.PASSED
            policy.update(candidate, decision, Outcome(verdict))
    assert drawn == pytest.approx(beta * (horizon or 300), abs=1.0)
    assert certain <= 1  # the very last one of a horizon may be
    assert (len(unequal) > 10) is (beta > 0.1)  # from 40 labels on


@pytest.mark.parametrize("horizon", [300, None])
def test_forced_verifications_leave_probabilities(horizon: int | None) -> None:
    """They may spend more than the outputs so far pay for: then an output has no chance."""
    policy = Survey(0.2, horizon=horizon)
    propensities = []
    for t, candidate in enumerate(make_candidates(300, seed=4)):
        decision = policy.decide(candidate)
        propensities.append(decision.propensity)
        if t < 10:
            forced = replace(decision, verify=True, reason=Reason.FORCED, propensity=1.0)
            policy.observe(candidate, forced)
    assert 0.0 <= min(propensities) <= max(propensities) <= 1.0
    assert sum(propensities) == pytest.approx(0.2 * 300 - 10, abs=1.0)


def test_it_draws_more_where_values_vary_more() -> None:
    policy = Survey(0.3, horizon=600)
    rng, steady, varied = np.random.default_rng(0), [], []
    for candidate in make_candidates(600, seed=2):
        decision = policy.decide(candidate)
        uncertain = candidate.signals.h1 > 0.5
        if policy._labels > 100:
            (varied if uncertain else steady).append(decision.propensity)
        if decision.verify:
            value = float(rng.random() < 0.5) if uncertain else 1.0
            policy.update(candidate, decision, Outcome(Verdict.PASSED, value=value))
    assert np.mean(varied) > 1.3 * np.mean(steady)
    assert min(steady) > 0.3 / 3.0


@pytest.mark.parametrize("horizon", [400, None])
def test_costs_that_vary_rarely_leave_an_output_without_a_chance(horizon: int | None) -> None:
    """And as many are verified as the propensities say. Without pacing by costs 7 % of the outputs
    have no chance with a horizon, 15 % without."""
    check_policy(lambda: Survey(0.2, horizon=horizon, unit="usd", seed=3), n=400)
    outputs = [make_generation(f"c{i}", seed=i) for i in range(400)]
    propensities, verified, used = [], 0, []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        drawn = rng.lognormal(-0.35, 0.83, 400) * 10.0 ** (-4 * (seed % 2))  # in any currency
        costs = dict(zip((o.id for o in outputs), drawn, strict=True))

        def verify(output: Generation, task: object, costs: dict[str, float] = costs) -> Outcome:
            return Outcome(Verdict.PASSED, cost=costs[output.id])

        most = max(costs.values())
        budget = Budget(fraction=0.2, unit="usd", max_cost=most, horizon=horizon)
        with VerificationGate(goal="score", budget=budget, verifier=verify, seed=seed) as gate:
            decisions = [gate.maybe_verify(output, None).decision for output in outputs]
            assert gate.status().spent <= gate.status().cap
            used.append(gate.status().spent / (0.2 * sum(costs.values())))
        propensities += [d.propensity for d in decisions]
        verified += sum(d.verify for d in decisions)
    without = np.mean(np.array(propensities) == 0.0)
    assert without < (0.01 if horizon else 0.06)
    assert verified == pytest.approx(sum(propensities), rel=0.02)
    assert np.mean(used) == pytest.approx(0.95, abs=0.1)


@pytest.mark.parametrize("horizon", [600, None])
def test_many_verifications_at_once_need_as_many_reservations_to_start(
    horizon: int | None,
) -> None:
    """Then every output has a chance; without, none has before the first cost is known."""
    at_once, last, without = 16, 16 / 0.2, []
    for startup in (6.0 * at_once, None):
        budget = Budget(fraction=0.2, unit="usd", max_cost=6.0, horizon=horizon, startup=startup)
        rng, under_way = np.random.default_rng(1), deque[tuple[int, str]]()
        with VerificationGate(goal="score", budget=budget, verifier=None) as gate:
            propensities = []
            for i in range(600):
                while under_way and under_way[0][0] + last <= i:
                    cost = float(rng.uniform(0.2, 6.0))
                    gate.report_outcome(under_way.popleft()[1], Outcome(Verdict.PASSED, cost=cost))
                decision = gate.maybe_verify(make_generation(f"c{i}", seed=i), None).decision
                propensities.append(decision.propensity)
                if decision.verify:
                    under_way.append((i, f"c{i}"))
        without.append(propensities.count(0.0))
    assert without[0] == 0
    assert without[1] > 0.75 * last


def test_verifications_may_cost_nothing() -> None:
    budget = Budget(fraction=0.2, unit="usd", max_cost=1.0, horizon=200)
    outputs = [make_generation(f"c{i}", seed=i) for i in range(200)]
    free = ScriptedVerifier(cost=0.0)
    with VerificationGate(goal="score", budget=budget, verifier=free) as gate:
        decisions = [gate.maybe_verify(output, None).decision for output in outputs]
    assert 20 < sum(d.verify for d in decisions) < 60
