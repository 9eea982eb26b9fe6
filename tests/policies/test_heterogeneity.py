"""`HGA(test="heterogeneity")`: noise alone does not open the gate, and the gate follows change."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gatekeeper import HGA, BadInputError, Reason
from gatekeeper.analysis.experiment import Protocol, compare
from gatekeeper.analysis.policy_run import Contender
from gatekeeper.analysis.replay import replay
from gatekeeper.paper.stress import Recipe, make_stream
from gatekeeper.policies.hga import CalibrationSample, GateEvidence, Rule, weigh
from gatekeeper.types import Decision

SAME = Recipe(error_rate=(0.3, 0.6), cost_spread=0.3, steps=True)  # ρ_k equal, p_k not
UNEQUAL = replace(SAME, separation=(0.0, 0.6, 1.2, 1.8), level=-0.8)
TESTED = Rule(test="heterogeneity", level=0.05)


def evidence(seed: int, rule: Rule, *, rho: tuple[float, ...], n: int = 40) -> GateEvidence:
    """Evidence of n labels per stratum with these ρ_k; both policies propose the same, so that hit
    rates do not prevent opening."""
    rng = np.random.default_rng(seed)
    k = np.repeat(np.arange(4), n)
    p, r = np.array([0.3, 0.4, 0.5, 0.6])[k], np.array(rho)[k]
    y = (rng.random(k.size) < p).astype(float)
    s = r / np.sqrt((1 - r * r) * p * (1 - p)) * y + rng.standard_normal(k.size)
    wanted = rng.random(k.size) < 0.3
    known = np.ones(k.size, dtype=bool)
    cost = np.ones(k.size)
    sample = CalibrationSample(s, k.astype(np.intp), wanted, wanted, y, cost, known)
    return weigh(sample, beta=0.3, rule=rule)


def test_it_opens_falsely_as_often_as_stated() -> None:
    """Equal ρ_k: the paper's rule opens nearly always, the test at its level."""
    runs = 600
    tested = [evidence(i, TESTED, rho=(0.25,) * 4) for i in range(runs)]
    paper = [evidence(i, Rule(), rho=(0.25,) * 4) for i in range(runs)]
    most = 0.05 + 3 * np.sqrt(0.05 * 0.95 / runs)
    assert 0.01 < np.mean([e.open for e in tested]) < most
    assert np.mean([e.open for e in paper]) > 0.9
    assert np.mean([e.dispersion for e in tested]) < np.mean([e.dispersion for e in paper]) / 2
    for e in paper:
        assert np.isnan(e.p_value)
    unequal = [evidence(i, TESTED, rho=(0.0, 0.2, 0.5, 0.7), n=100) for i in range(50)]
    assert np.mean([e.open for e in unequal]) > 0.95


def test_an_open_gate_is_slower_to_close() -> None:
    rho = (0.15, 0.2, 0.3, 0.4)
    before, after = replace(TESTED, was_open=False), replace(TESTED, was_open=True)
    found = [(evidence(i, before, rho=rho), evidence(i, after, rho=rho)) for i in range(200)]
    for closed, opened in found:
        assert opened.open >= closed.open
        assert opened.open == (opened.dispersion > 0.0)
    assert np.mean([e.open for e, _ in found]) < 0.5 < np.mean([e.open for _, e in found])


def judged(table: Any, **settings: Any) -> tuple[HGA, list[Decision], list[bool]]:
    """A live-like run, and whether the gate was open at each step."""
    hga = HGA(0.4, test="heterogeneity", warmup=50, **settings)
    opened: list[bool] = []

    class Watched:
        phase = "steady"

        def decide(self, candidate: Any) -> Decision:
            decision = hga.decide(candidate)
            opened.append(hga.evidence is not None and hga.evidence.open)
            return decision

        def update(self, *known: Any) -> None:
            hga.update(*known)

        state, restore = hga.state, hga.restore

    found = replay(list(table), Watched(), 0.4, feedback="partial")
    return hga, list(found.decisions), opened


def test_over_a_whole_stream_too_it_rarely_opens_falsely() -> None:
    opened = [
        any(judged(make_stream(SAME, 2500, seed), calibration=200, seed=seed)[2])
        for seed in range(40)
    ]
    assert sum(opened) <= 5  # 2 expected at most


def test_it_opens_when_strata_diverge_and_closes_when_they_converge() -> None:
    turns = {True: 0, False: 0}
    for seed in range(3):
        for first, then in ((SAME, UNEQUAL), (UNEQUAL, SAME)):
            table = make_stream(replace(first, then=then), 24_000, seed)
            _, decisions, opened = judged(table, calibration=600, epsilon_p=0.0, seed=seed)
            if first is UNEQUAL:
                turns[False] += opened[11_000] and not opened[-1]
            else:
                turns[True] += not opened[11_000] and opened[-1]
            drawn = [d for d in decisions if d.reason is Reason.CALIBRATION]
            assert {d.propensity for d in drawn} == {0.4}
            assert np.mean([d.verify for d in drawn]) == pytest.approx(0.4, abs=0.05)
            assert 0.08 < (len(drawn) - 600) / (24_000 - 650) < 0.12
    assert turns[True] >= 2
    assert turns[False] >= 2


def test_its_memory_does_not_grow() -> None:
    hga, _, _ = judged(make_stream(SAME, 9000, 0), calibration=100)
    assert len(hga.state()["seen"]) <= 150
    assert len(hga.state()["found"]) <= 150


def test_the_papers_rule_is_the_default_and_replays_take_the_other() -> None:
    table = make_stream("incomparable", 900, 0)
    protocol = Protocol(seeds=3)
    rules = [Contender("hga"), Contender("hga", {"test": "paper"})]
    rules.append(Contender("hga", {"test": "heterogeneity", "alpha": 0.2}))
    found = compare(table, rules, [0.3], protocol)
    assert (found.values[0] == found.values[1]).all()
    assert np.isfinite(found.gate_open[2]).all()
    for wrong in ({"test": "chance"}, {"alpha": 0.0}, {"alpha": 1.0}):
        with pytest.raises(BadInputError, match=next(iter(wrong))):
            HGA(0.2, **wrong)  # type: ignore[arg-type]
