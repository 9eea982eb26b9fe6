"""The tests for drift: their guarantees, what they notice, and their states."""

from __future__ import annotations

import json
from math import exp, log, prod
from typing import Any

import numpy as np
import pytest

from gatekeeper.drift.monitor import (
    ALPHA,
    CHANGES,
    PATIENCE,
    SHARES,
    STAKES,
    TOLERANCE,
    Monitor,
)
from gatekeeper.drift.pace import ALPHA as PACE_ALPHA
from gatekeeper.drift.pace import PaceTest
from gatekeeper.drift.ranks import MOST, RunningRank
from gatekeeper.drift.scores import STATISTICS, ScoreRanks
from gatekeeper.errors import BadInputError

# Normal scores; label and the predicted range of its probability, if there is a label.
Output = tuple[list[float], tuple[int, float, float] | None]


def outputs(n: int, seed: int, *, shift: float = 0.0, labelled: float = 0.3) -> list[Output]:
    rng = np.random.default_rng(seed)
    found: list[Output] = []
    for scores in (rng.standard_normal((n, len(STATISTICS))) + shift).tolist():
        p, width = rng.uniform(0.1, 0.9), rng.uniform(0.0, 0.1)
        label = (int(rng.random() < p), p - width, p + width) if rng.random() < labelled else None
        found.append((scores, label))
    return found


def observe(monitor: Monitor, stream: list[Output]) -> None:
    for scores, label in stream:
        monitor.observe_output(scores)
        if label is not None:
            monitor.observe_label(*label)


def gain(label: int, kappa: float, p: float) -> float:
    return 1.0 - kappa + kappa * label / min(p + TOLERANCE, 1.0)


def test_the_wealth_is_that_of_bets_begun_at_every_output() -> None:
    """Against the mixture written out: a product for each start and pair of changes."""
    stream = outputs(25, 3)
    monitor = Monitor(alpha=1e-9)
    observe(monitor, stream)

    def of_scores(scores: list[float], j: int, mu: float, sigma: float) -> float:
        x = scores[j]
        return exp(0.5 * x * x - 0.5 * ((x - mu) / sigma) ** 2 - log(sigma))

    def of_label(label: tuple[int, float, float] | None, side: int, kappa: float) -> float:
        if label is None:
            return 1.0
        y, least, most = label
        return gain(y, kappa, most) if side else gain(1 - y, kappa, 1.0 - least)

    wealth = shift = 0.0
    for start in range(len(stream)):
        rest = stream[start:]
        begun = PATIENCE / (start + PATIENCE) - PATIENCE / (start + 1 + PATIENCE)
        labels = [
            prod(of_label(label, side, kappa) for _, label in rest)
            for side in (0, 1)
            for kappa in STAKES
        ]
        scores = [
            share * prior * prod(of_scores(s, j, mu, sigma) for s, _ in rest)
            for j, share in enumerate(SHARES)
            for mu, sigma, prior in CHANGES
        ]
        by_labels, by_scores = float(np.mean(labels)), sum(scores)
        wealth += begun * (by_labels + by_scores + 2.0 * by_labels * by_scores) / 4.0
        shift += begun * by_scores
    cash = PATIENCE / (len(stream) + PATIENCE)
    assert monitor.wealth == pytest.approx(cash + wealth, rel=1e-9)
    assert monitor.shift == pytest.approx(cash + shift, rel=1e-9)


def test_false_alarms_stay_below_alpha_when_nothing_changes() -> None:
    """100 streams of 1,000 outputs, of which 30 % have a label; looked at after every one."""
    alarms = 0
    for seed in range(100):
        monitor = Monitor()
        observe(monitor, outputs(1000, seed))
        alarms += monitor.drifted
    assert alarms <= 100 * ALPHA + 1


@pytest.mark.parametrize("side", [1, -1])
def test_false_alarms_stay_below_alpha_at_the_edge_of_the_tolerance(side: int) -> None:
    """500 streams of 300 labels, each off by the whole tolerance."""
    rng = np.random.default_rng(7)
    alarms = 0
    for _ in range(500):
        p = rng.uniform(0.1, 0.9, 300)
        labels = (rng.random(300) < p + side * TOLERANCE).astype(int)
        monitor = Monitor()
        monitor.observe_output([0.0] * len(STATISTICS))
        for label, predicted in zip(labels.tolist(), p.tolist(), strict=True):
            monitor.observe_label(label, predicted, predicted)
        alarms += monitor.drifted
    assert alarms <= 500 * ALPHA


@pytest.mark.parametrize(("before", "after", "why"), [(0.3, 0.7, "more"), (0.7, 0.3, "fewer")])
def test_a_late_change_of_the_labels_is_noticed(before: float, after: float, why: str) -> None:
    for seed in range(10):
        rng, monitor = np.random.default_rng(seed), Monitor()
        for rate, n in ((before, 1000), (after, 200)):
            for scores in rng.standard_normal((n, len(STATISTICS))).tolist():
                assert (monitor.drifted, monitor.why) == (False, "") or rate == after
                monitor.observe_output(scores)
                monitor.observe_label(int(rng.random() < rate), before, before)
        assert (monitor.drifted, monitor.why) == (True, f"{why} errors than predicted")


@pytest.mark.parametrize(("by", "how"), [(0.7, "higher"), (-0.7, "lower")])
def test_a_late_change_of_one_statistic_is_noticed(by: float, how: str) -> None:
    for j, name in enumerate(STATISTICS):
        rng, monitor = np.random.default_rng(j), Monitor()
        for t, scores in enumerate(rng.standard_normal((1150, len(STATISTICS))).tolist()):
            scores[j] += by * (t >= 1000)
            monitor.observe_output(scores)
            assert not monitor.drifted or t >= 1000
        assert (monitor.drifted, monitor.why) == (True, f"scores shifted: {name} {how}")
        assert monitor.shift > 1 / ALPHA


def test_evidence_of_scores_and_labels_adds_up() -> None:
    """A change that neither shows alone, both together do."""
    rng = np.random.default_rng(0)
    scores = rng.standard_normal((1100, len(STATISTICS)))
    same = scores.copy()
    scores[1000:, 3] += 0.5
    labels = (rng.random(1100) < np.where(np.arange(1100) < 1000, 0.3, 0.7)).tolist()
    drifted = []
    for with_scores, with_labels in ((True, False), (False, True), (True, True)):
        monitor = Monitor()
        for t, row in enumerate((scores if with_scores else same).tolist()):
            monitor.observe_output(row)
            if with_labels and t % 5 == 0:
                monitor.observe_label(int(labels[t]), 0.3, 0.3)
        drifted.append(monitor.drifted)
    assert drifted == [False, False, True]


def test_a_monitor_goes_on_from_its_state_and_begins_again() -> None:
    stream = outputs(120, 5, shift=0.6)
    whole, halves = Monitor(), Monitor()
    for i, (scores, label) in enumerate(stream):
        if i == 20:
            state = json.loads(json.dumps(halves.state()))
            halves = Monitor()
            halves.restore(state)
        for monitor in (whole, halves):
            monitor.observe_output(scores)
            if label is not None:
                monitor.observe_label(*label)
        assert (whole.state(), whole.wealth) == (halves.state(), halves.wealth)
    assert whole.drifted
    at_alarm = whole.state()
    whole.observe_output([0.0] * len(STATISTICS))
    whole.observe_label(0, 0.2, 0.2)
    assert whole.state() == at_alarm  # it stays, and takes no more bets
    whole.reset()
    assert (whole.state(), whole.wealth) == (Monitor().state(), 1.0)


@pytest.mark.parametrize("bad", [{"alpha": 0.0}, {"alpha": 1.0}, {"tolerance": 0.0}])
def test_a_test_that_cannot_be_is_refused(bad: dict[str, float]) -> None:
    with pytest.raises(BadInputError, match=next(iter(bad))):
        Monitor(**bad)


# -- ranks ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("draw", ["normal", "rounded", "constant"])
def test_ranks_are_uniform_and_independent_whatever_the_values(draw: str) -> None:
    """Ties included, and beyond the values that are kept one by one."""
    rng, n = np.random.default_rng(4), 3 * MOST
    values = rng.standard_normal(n)
    values = {"normal": values, "rounded": values.round(), "constant": 0.0 * values}[draw]
    rank = RunningRank()
    draws = rng.random((n, 2)).tolist()
    p = np.array([rank(v, *d) for v, d in zip(values.tolist(), draws, strict=True)])
    for part in (p[:MOST], p[MOST:]):
        distance = np.abs(np.sort(part) - (np.arange(part.size) + 0.5) / part.size).max()
        assert distance < 1.63 / part.size**0.5  # Kolmogorov's, at 1 %
        assert abs(np.corrcoef(part[:-1], part[1:])[0, 1]) < 3.0 / part.size**0.5
    state = rank.state()
    assert len(state[0]) < 100  # what is kept does not grow


def test_a_rank_is_that_among_all_before() -> None:
    rng = np.random.default_rng(2)
    values = rng.random(MOST + 2000).tolist()
    rank = RunningRank()
    for t, v in enumerate(values):
        p = rank(v, 0.5, 0.5)
        if t < MOST:
            exact = (sum(u < v for u in values[:t]) + 0.5) / (t + 1)
            assert p == pytest.approx(exact)
        elif t % 100 == 0:  # within the width of a bin
            assert p == pytest.approx(float(np.mean(np.array(values[:t]) < v)), abs=2 / 64)


def test_score_ranks_go_on_from_their_state_and_take_missing_signals() -> None:
    rng = np.random.default_rng(8)
    rows: list[Any] = [tuple(row) for row in rng.standard_normal((300, 5)).tolist()]
    for i in range(0, 300, 7):
        rows[i] = (float("nan"),) * 3 + rows[i][3:]
    whole, halves = ScoreRanks(1), ScoreRanks(1)
    for i, row in enumerate(rows):
        if i in (20, 150):
            state = json.loads(json.dumps(halves.state(), allow_nan=False))
            halves = ScoreRanks(1)
            halves.restore(state)
        found = whole(row)
        assert found == halves(row)
        assert (found is None) == (i < 50)
        if found is not None and i > 200 and row[0] != row[0]:
            assert max(found[:4]) < -0.8  # a category of its own, at the lower end


# -- the pace -------------------------------------------------------------------------------------


def test_a_steady_pace_gives_no_alarm_and_a_slow_one_does() -> None:
    alarms, late = 0, []
    for seed in range(200):
        rng, test = np.random.default_rng(seed), PaceTest(0.2)
        for verified in (rng.random(1500) < 0.2).tolist():
            test.observe(verified)
        alarms += test.starved
        for t, verified in enumerate((rng.random(1000) < 0.04).tolist()):
            test.observe(verified)
            if test.starved:
                late.append(t)
                break
    assert alarms <= 200 * PACE_ALPHA + 1
    assert len(late) == 200
    assert np.median(late) < 400


def test_a_pace_without_a_rate_is_compared_with_its_own() -> None:
    test = PaceTest(None)
    for t in range(600):
        test.observe(t % 3 == 0)
    assert not test.starved
    state = json.loads(json.dumps(test.state()))
    again = PaceTest(None)
    again.restore(state)
    for _ in range(60):
        test.observe(False)
        again.observe(False)
    assert test.starved
    assert test.state() == again.state()
