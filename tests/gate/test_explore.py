"""Exploration: every output has a known propensity above 0, for every policy."""

from __future__ import annotations

from functools import cache
from itertools import pairwise, product
from math import nan, sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gatekeeper import (
    BadInputError,
    Budget,
    Candidate,
    Decision,
    Generation,
    LogError,
    Outcome,
    Policy,
    Random,
    Reason,
    Verdict,
    VerificationGate,
)
from gatekeeper.log import MemoryLog, SQLiteLog
from gatekeeper.log.run import read_run
from gatekeeper.policies import policy_names
from gatekeeper.testing import ScriptedVerifier, make_generation

N, T0 = 400, 50
NAMES = ["random", "threshold", "cst", "mp-adapt", "mp-strat", "hga", "calibrated"]


class Wants(Random):
    """Proposes outputs whose number `every` divides; keeps the decisions that it observes."""

    def __init__(self, every: int = 2, *, warmup: int = 0) -> None:
        super().__init__(0.5, warmup=warmup)
        self.every = every
        self._observed: list[Decision] = []
        self._taught: dict[str, Decision] = {}

    def decide(self, candidate: Candidate) -> Decision:
        self._seen += 1
        if self._seen <= self.warmup:
            return Decision(True, Reason.WARMUP)
        verify = int(candidate.id[1:]) % self.every == 0
        return Decision(verify, Reason.POLICY, 0.5, 0.1, 3, propensity=float(verify))

    def observe(self, candidate: Candidate, decision: Decision) -> None:
        self._observed.append(decision)

    def update(self, candidate: Candidate, decision: Decision, outcome: Outcome) -> None:
        self._taught[candidate.id] = decision


def stream(n: int = N) -> list[Generation]:
    rng = np.random.default_rng(4)
    sizes = rng.integers((1, 5), (40, 200), size=(n, 2)).tolist()
    return [
        make_generation(f"g{i}", seed=i, tokens=tokens, prompt_tokens=prompt)
        for i, (tokens, prompt) in enumerate(sizes)
    ]


STREAM = stream()
LABELS: dict[str, Any] = {g.id: i * 7 % 5 < 2 for i, g in enumerate(STREAM)}
VERDICTS = (Verdict.PASSED, Verdict.FAILED)
SEEDS = (5, 6, 7)


def run(policy: str | Policy, **more: Any) -> list[Decision]:
    more = {"budget": Budget(fraction=0.2), "verifier": ScriptedVerifier(LABELS)} | more
    with VerificationGate(policy, **more) as gate:
        decisions = [gate.maybe_verify(g).decision for g in STREAM]
        status = gate.status()
    assert status.spent + status.held <= status.cap
    return decisions


@cache
def after_warm_up(
    name: str, fraction: float, horizon: int | None, explore: float, seed: int
) -> list[Decision]:
    return run(name, budget=Budget(fraction=fraction, horizon=horizon), explore=explore, seed=seed)[
        T0:
    ]


@pytest.mark.parametrize("horizon", [None, N])
@pytest.mark.parametrize("fraction", [0.1, 0.5])
@pytest.mark.parametrize("name", NAMES)
def test_every_output_after_the_warm_up_may_be_drawn(
    name: str, fraction: float, horizon: int | None
) -> None:
    """With at least ε, unless more draws than expected have used up their reserve."""
    without = 0.0
    for seed in SEEDS:
        decisions = after_warm_up(name, fraction, horizon, 0.1, seed)
        without += sum(d.propensity < 0.1 * fraction for d in decisions) / len(SEEDS)
    assert without <= 1.0


@pytest.mark.parametrize("horizon", [None, N])
@pytest.mark.parametrize("fraction", [0.1, 0.5])
@pytest.mark.parametrize("name", NAMES)
def test_with_draws_the_budget_is_used_as_well_as_without(
    name: str, fraction: float, horizon: int | None
) -> None:
    # Calibrated draws by itself as well, and a small budget leaves little to compare.
    seeds = range(5, 17) if name == "calibrated" and fraction < 0.5 else SEEDS
    used = {0.0: 0.0, 0.1: 0.0}  # on average over the seeds
    for explore, seed in product(used, seeds):
        decisions = after_warm_up(name, fraction, horizon, explore, seed)
        used[explore] += sum(d.verify for d in decisions) / len(seeds)
    spread = 2 if horizon is None else 1  # kept for draws that did not come
    chance = 3 * sqrt(fraction * (1 - fraction) * (N - T0)) if name == "random" else 0
    assert used[0.1] >= used[0.0] - spread - 0.03 * used[0.0] - chance


def test_the_draws_are_as_likely_as_their_propensity_says() -> None:
    """Over many seeds: of the decisions with a propensity near p, about the share p verifies."""
    for policy in (lambda seed: Wants(3), lambda seed: Random(0.25, warmup=0, seed=seed)):
        chances, verified = [], []
        for seed in range(40):
            decisions = run(policy(seed), seed=seed, explore=0.3)
            chances += [d.propensity for d in decisions]
            verified += [d.verify for d in decisions]
        p, v = np.array(chances), np.array(verified)
        assert ((p > 0.0) & (p < 1.0)).mean() > 0.5
        for low, high in pairwise((0.0, 0.1, 0.4, 1.0)):
            part = (p > low) & (p < high)
            expected, spread = p[part].sum(), sqrt((p * (1 - p))[part].sum())
            assert abs(v[part].sum() - expected) <= 4.0 * spread
        assert v[p == 1.0].all()
        assert not v[p == 0.0].any()


def test_an_explored_decision_keeps_the_policy_s_score() -> None:
    """Reason, score, threshold and stratum; the policy observes the same decision."""
    policy = Wants(2, warmup=5)
    decisions = run(policy, budget=Budget(fraction=0.6), explore=0.25)
    epsilon = 0.25 * 0.6
    assert policy._observed == decisions
    for g, decision in zip(STREAM[:5], decisions[:5], strict=True):
        assert (decision.reason, decision.propensity) == (Reason.WARMUP, 1.0), g.id
    kinds = set()
    for g, decision in list(zip(STREAM, decisions, strict=True))[5:]:
        wanted = int(g.id[1:]) % 2 == 0
        assert (decision.score, decision.threshold, decision.stratum) == (0.5, 0.1, 3)
        kinds.add((wanted, decision.verify, decision.reason))
        if decision.verify:
            assert policy._taught[g.id] == decision
        mine = wanted and decision.reason is Reason.POLICY
        assert decision.propensity == pytest.approx(1.0 if mine else epsilon)
    assert kinds >= {
        (True, True, Reason.POLICY),
        (False, True, Reason.EXPLORE),
        (False, False, Reason.POLICY),
    }


def test_a_proposal_that_would_use_the_draws_reserve_is_only_drawn() -> None:
    """A policy that proposes everything gets most of the budget, not the reserve of the draws."""
    decisions = run(Wants(1), budget=Budget(fraction=0.2, horizon=N))
    assert {d.reason for d in decisions} >= {Reason.POLICY, Reason.BUDGET_EXHAUSTED}
    assert Reason.EXPLORE in {d.reason for d in decisions[N // 2 :]}
    late = [d for d in decisions if d.reason is Reason.BUDGET_EXHAUSTED]
    assert len(late) > N / 2
    assert {d.propensity for d in late} == {0.1 * 0.2}
    assert sum(d.verify for d in decisions) >= 0.2 * N - 2


def test_a_forced_output_is_certain_and_only_needs_room() -> None:
    with VerificationGate(
        Wants(10**9), budget=Budget(fraction=0.2, horizon=10), verifier=ScriptedVerifier()
    ) as gate:
        results = [gate.maybe_verify(g, force=True).decision for g in STREAM[:4]]
    assert [(d.reason, d.propensity) for d in results[:2]] == [(Reason.FORCED, 1.0)] * 2
    assert [(d.reason, d.propensity) for d in results[2:]] == [(Reason.BUDGET_EXHAUSTED, 0.0)] * 2


@pytest.mark.parametrize(
    "budget",
    [Budget(total=99), Budget(total=99, horizon=40), Budget(total=9, unit="usd", max_cost=1)],
)
def test_without_a_rate_nothing_is_drawn(budget: Budget) -> None:
    decisions = run(Wants(2), budget=budget)
    assert {d.propensity for d in decisions} <= {0.0, 1.0}
    assert Reason.EXPLORE not in {d.reason for d in decisions}


# -- everything --------------------------------------------------------------------------------


@pytest.mark.parametrize("explore", [0.0, 0.1])
@pytest.mark.parametrize("unit", ["verifications", "seconds", "usd"])
@pytest.mark.parametrize("horizon", [None, 100, N])
def test_a_fraction_of_one_verifies_everything(
    unit: Any, horizon: int | None, explore: float
) -> None:
    """In any unit, also beyond the horizon and with every verdict pending: nothing is refused, and
    every propensity is 1. A total still caps."""
    budget = Budget(
        fraction=1.0, unit=unit, horizon=horizon, max_cost=None if unit == "verifications" else 2.0
    )
    costs = np.random.default_rng(2).choice([0.0, 0.01, 2.0, 5.0, nan], N)
    with VerificationGate("cst", budget=budget, explore=explore) as gate:
        for i, g in enumerate(STREAM):
            decision = gate.maybe_verify(g).decision
            assert (decision.verify, decision.propensity) == (True, 1.0)
            if i % 3 == 0:
                gate.report_outcome(g.id, "infra_error")
            elif i % 3 == 1:
                gate.report_outcome(g.id, Outcome(VERDICTS[i % 2], cost=float(costs[i])))
            status = gate.status()
            assert status.spent + status.held <= status.cap
        assert status.budget_exhausted == 0
    if unit == "verifications":
        capped = run("cst", budget=Budget(fraction=1.0, total=80), explore=explore)
        assert [d.verify for d in capped] == [True] * 80 + [False] * (N - 80)
        assert {d.propensity for d in capped[80:]} == {0.0}


@pytest.mark.parametrize("name", policy_names())
def test_every_policy_by_name_takes_a_fraction_of_one(name: str) -> None:
    """And learns; its own proposals keep their reason."""
    budget = Budget(fraction=1.0, horizon=N)
    decisions = run(name, budget=budget)
    assert {(d.verify, d.propensity) for d in decisions} == {(True, 1.0)}
    assert {d.reason for d in decisions[:T0]} == {Reason.WARMUP}
    assert {d.reason for d in decisions[T0:]} > {Reason.EXPLORE}


# -- the log -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["cst", "random", "calibrated"])
def test_a_resumed_run_draws_alike(name: str, tmp_path: Path) -> None:
    """Cut anywhere: the same decisions as in one go, and the account that `read_run` gives."""
    budget = Budget(fraction=0.3, horizon=N)
    whole = run(name, budget=budget, explore=0.4, seed=9)
    assert Reason.EXPLORE in {d.reason for d in whole}
    log, got = tmp_path / "run.db", []
    for part in (STREAM[:70], STREAM[70:71], STREAM[71:300], STREAM[300:]):
        with VerificationGate(
            name, budget=budget, explore=0.4, seed=9, log=log, verifier=ScriptedVerifier(LABELS)
        ) as gate:
            got += [gate.maybe_verify(g).decision for g in part]
            status = gate.status()
    assert repr(got) == repr(whole)
    read = read_run(log)
    assert repr([r.decision for r in read.results.values()]) == repr(whole)
    ledger = read.ledger
    assert (ledger.spent, ledger.held, ledger.warmup_spent, ledger.cap, ledger.seen) == (
        status.spent,
        status.held,
        status.warmup_spent,
        status.cap,
        status.seen,
    )


def test_a_log_goes_on_with_its_own_exploration_only(tmp_path: Path) -> None:
    """Another share or seed is refused by name; so is one where an older log has none."""
    budget, log = Budget(fraction=0.2), tmp_path / "run.db"

    def again(log: Any, **more: Any) -> None:
        with VerificationGate(Wants(2), budget=budget, log=log, **more) as gate:
            gate.maybe_verify(STREAM[0])

    again(log)
    again(log)
    for more, message in (({"explore": 0.0}, "explore=0.1"), ({"seed": 1}, "seed=0")):
        with pytest.raises(LogError, match=message):
            again(log, **more)

    old = MemoryLog()
    again(old, explore=0)
    settings = old.settings()
    assert settings.pop("exploration") == {"explore": 0, "seed": 0}
    old.configure(settings)
    again(old, explore=0, seed=7)
    with pytest.raises(LogError, match=r"explore=0\.0 .*this gate has 0\.1"):
        again(old)
    with SQLiteLog(log, read_only=True) as written:
        assert written.settings()["exploration"] == {"explore": 0.1, "seed": 0}


@pytest.mark.parametrize("explore", [-0.1, 1.0, 2, nan, "0.1", True, None])
def test_a_share_out_of_range_is_refused(explore: Any) -> None:
    with pytest.raises(BadInputError, match=f"explore={explore!r}"):
        VerificationGate(Wants(), budget=Budget(fraction=0.2), explore=explore)


@pytest.mark.parametrize("total", [2, 60])
@pytest.mark.parametrize("horizon", [None, 120])
@pytest.mark.parametrize("kind", ["by name", "instance", "score"])
def test_a_share_of_1_with_a_total_is_used_up_and_not_exceeded(
    kind: str, total: int, horizon: int | None
) -> None:
    policies: dict[str, dict[str, Any]] = {
        "by name": {},
        "instance": {"policy": Random(0.5, warmup=0)},
        "score": {"goal": "score"},
    }
    budget = Budget(fraction=1.0, total=total, horizon=horizon)
    gate = VerificationGate(budget=budget, verifier=ScriptedVerifier(), seed=3, **policies[kind])
    results = [gate.maybe_verify(make_generation(f"{n}", seed=n)) for n in range(120)]
    assert sum(result.verified for result in results) == total
    if horizon and kind == "score":  # each output has a chance
        assert {round(r.decision.propensity, 6) for r in results} == {round(total / horizon, 6)}
