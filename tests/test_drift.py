"""Drift: the test's guarantee, what it notices, and what gate and policies do about it."""

from __future__ import annotations

import json
from math import prod

import numpy as np
import pytest

from gatekeeper.drift import ALPHA, PATIENCE, STAKES, TOLERANCE, Monitor
from gatekeeper.errors import BadInputError


def test_the_wealth_is_that_of_bets_begun_at_every_label() -> None:
    """Against the mixture written out: a product for each start, side and stake."""
    rng = np.random.default_rng(3)
    labels, ps = rng.integers(0, 2, 60).tolist(), rng.random(60).tolist()
    monitor = Monitor(alpha=1e-9)
    for label, p in zip(labels, ps, strict=True):
        monitor.observe(label, p)

    def gain(kappa: float, label: int, p: float) -> float:
        return 1.0 + kappa * (label - min(p + TOLERANCE, 1.0)) / min(p + TOLERANCE, 1.0)

    wealth = 1.0
    for start in range(60):
        begun = PATIENCE / (start + PATIENCE) - PATIENCE / (start + 1 + PATIENCE)
        bets = [
            prod(gain(kappa, label, p) for label, p in side)
            for kappa in STAKES
            for side in (
                list(zip(labels, ps, strict=True))[start:],
                [(1 - label, 1.0 - p) for label, p in zip(labels, ps, strict=True)][start:],
            )
        ]
        wealth += begun * (float(np.mean(bets)) - 1.0)
    assert monitor.wealth == pytest.approx(wealth, rel=1e-12)


@pytest.mark.parametrize("side", [1, -1])
def test_false_alarms_stay_below_alpha_at_the_edge_of_the_tolerance(side: int) -> None:
    """1,000 streams of 400 labels, each off by the whole tolerance; looked at after every one."""
    rng = np.random.default_rng(7)
    alarms = 0
    for _ in range(1000):
        p = rng.uniform(0.1, 0.9, 400)
        labels = (rng.random(400) < p + side * TOLERANCE).astype(int)
        monitor = Monitor()
        for label, predicted in zip(labels.tolist(), p.tolist(), strict=True):
            monitor.observe(label, predicted)
        alarms += monitor.drifted
    assert alarms <= 1000 * ALPHA


@pytest.mark.parametrize(("before", "after", "why"), [(0.3, 0.7, "more"), (0.7, 0.3, "fewer")])
def test_a_late_change_is_noticed(before: float, after: float, why: str) -> None:
    rng = np.random.default_rng(11)
    for _ in range(20):
        monitor = Monitor()
        for label in (rng.random(1000) < before).tolist():
            monitor.observe(int(label), before)
        assert (monitor.drifted, monitor.why) == (False, "")
        for label in (rng.random(200) < after).tolist():
            monitor.observe(int(label), before)
        assert (monitor.drifted, monitor.why) == (True, f"{why} errors than predicted")


def test_a_monitor_goes_on_from_its_state_and_begins_anew() -> None:
    rng = np.random.default_rng(5)
    labels = (rng.random(300) < 0.6).astype(int).tolist()
    whole, halves = Monitor(), Monitor()
    for i, label in enumerate(labels):
        if i == 20:
            state = json.loads(json.dumps(halves.state()))
            halves = Monitor()
            halves.restore(state)
        whole.observe(label, 0.2)
        halves.observe(label, 0.2)
        assert (whole.state(), whole.wealth) == (halves.state(), halves.wealth)
    assert whole.drifted
    at_alarm = whole.state()
    whole.observe(0, 0.2)
    assert whole.state() == at_alarm  # it stays, and takes no more bets
    whole.reset()
    assert (whole.state(), whole.wealth) == (Monitor().state(), 1.0)


@pytest.mark.parametrize("bad", [{"alpha": 0.0}, {"alpha": 1.0}, {"tolerance": 0.0}])
def test_a_test_that_cannot_be_is_refused(bad: dict[str, float]) -> None:
    with pytest.raises(BadInputError, match=next(iter(bad))):
        Monitor(**bad)
