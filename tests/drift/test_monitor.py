"""The tests for drift: their guarantees, what they notice, and their states."""

from __future__ import annotations

import json
from bisect import bisect_left
from math import exp, log, prod

import numpy as np
import pytest

from gatekeeper.drift.monitor import (
    AGAINST,
    ALPHA,
    ANY_WAY,
    CHANGES,
    LABELS_ALONE,
    LITTLE,
    PATIENCE,
    SCORES_ALONE,
    SHARES,
    SHIFTS,
    TOGETHER,
    UNCERTAINTY,
    Monitor,
)
from gatekeeper.drift.pace import ALPHA as PACE_ALPHA
from gatekeeper.drift.pace import PaceTest
from gatekeeper.drift.ranks import BINS, MOST, PER_BIN, RunningRanks
from gatekeeper.drift.recalibration import Recalibration
from gatekeeper.drift.scores import START, STATISTICS, ScoreRanks
from gatekeeper.errors import BadInputError
from gatekeeper.types import FloatArray

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
        monitor.observe_outputs(np.array([scores]))
        if label is not None:
            monitor.observe_label(*label)


def gain(label: int, shift: float, p: float) -> float:
    """Likelihood ratio of log odds higher by `shift`, for a label of probability p or less."""
    other = p * exp(shift) / (1.0 - p + p * exp(shift))
    return other / p if label else (1.0 - other) / (1.0 - p)


def test_the_wealth_is_that_of_bets_begun_at_every_output() -> None:
    """Against the mixture written out: a product for each start and pair of changes."""
    stream = outputs(25, 3)
    monitor = Monitor(alpha=1e-9)
    observe(monitor, stream)

    def of_score(scores: list[float], j: int, mu: float, sigma: float) -> float:
        x = scores[j]
        return exp(0.5 * x * x - 0.5 * ((x - mu) / sigma) ** 2 - log(sigma))

    def of_label(label: tuple[int, float, float] | None, side: int, shift: float) -> float:
        if label is None:
            return 1.0
        y, least, most = label
        return gain(y, shift, most) if side else gain(1 - y, shift, 1.0 - least)

    wealth = shift = 0.0
    for start in range(len(stream)):
        rest = stream[start:]
        begun = PATIENCE / (start + PATIENCE) - PATIENCE / (start + 1 + PATIENCE)
        labels = {
            (side, by): prod(of_label(label, side, by) for _, label in rest)
            for side in (0, 1)
            for by in SHIFTS
        }
        scores = {
            (j, change): prod(of_score(s, j, *change[:2]) for s, _ in rest)
            for j in range(len(SHARES))
            for change in CHANGES
        }
        by_labels = float(np.mean([*labels.values()]))
        by_scores = sum(SHARES[j] * change[2] * x for (j, change), x in scores.items())
        together = 0.0
        for (more, _), of_labels in labels.items():
            for (j, (mu, sigma, _)), of_scores in scores.items():
                if j == UNCERTAINTY and sigma == 1.0 and abs(mu) in LITTLE:
                    share = 1.0 - AGAINST if (mu > 0) == bool(more) else AGAINST
                    together += share / len(LITTLE) / len(labels) * of_labels * of_scores
        wealth += begun * (
            LABELS_ALONE * by_labels
            + SCORES_ALONE * by_scores
            + ANY_WAY * by_labels * by_scores
            + TOGETHER * together
        )
        shift += begun * by_scores
    cash = PATIENCE / (len(stream) + PATIENCE)
    assert monitor.wealth == pytest.approx(cash + wealth, rel=1e-9)
    assert monitor.shift == pytest.approx(cash + shift, rel=1e-9)


@pytest.mark.parametrize("batch", [7, 32])
def test_scores_at_once_are_the_same_bets(batch: int) -> None:
    scores = np.random.default_rng(1).standard_normal((100, len(STATISTICS)))
    single, many = Monitor(alpha=1e-9), Monitor(alpha=1e-9)
    for i in range(0, 100, batch):
        for row in scores[i : i + batch]:
            single.observe_outputs(row[None])
        many.observe_outputs(scores[i : i + batch])
        for monitor in (single, many):
            monitor.observe_label(1, 0.3, 0.4)
        np.testing.assert_allclose(many.state()["wealth"], single.state()["wealth"], rtol=1e-9)
        assert many.wealth == pytest.approx(single.wealth, rel=1e-9)


def test_false_alarms_stay_below_alpha_when_nothing_changes() -> None:
    """100 streams of 1,000 outputs, of which 30 % have a label; looked at after every one."""
    alarms = 0
    for seed in range(100):
        monitor = Monitor()
        observe(monitor, outputs(1000, seed))
        alarms += monitor.drifted
    assert alarms <= 100 * ALPHA + 1


@pytest.mark.parametrize("side", [1, -1])
def test_false_alarms_stay_below_alpha_at_the_edge_of_the_predicted_range(side: int) -> None:
    """500 streams of 300 labels."""
    rng = np.random.default_rng(7)
    alarms = 0
    for _ in range(500):
        p = rng.uniform(0.1, 0.9, 300)
        labels = (rng.random(300) < p + side * 0.03).astype(int)
        monitor = Monitor()
        monitor.observe_outputs(np.zeros((1, len(STATISTICS))))
        for label, predicted in zip(labels.tolist(), p.tolist(), strict=True):
            monitor.observe_label(label, predicted - 0.03, predicted + 0.03)
        alarms += monitor.drifted
    assert alarms <= 500 * ALPHA


@pytest.mark.parametrize(("before", "after", "why"), [(0.3, 0.7, "more"), (0.7, 0.3, "fewer")])
def test_a_late_change_of_the_labels_is_noticed(before: float, after: float, why: str) -> None:
    for seed in range(10):
        rng, monitor = np.random.default_rng(seed), Monitor()
        for rate, n in ((before, 1000), (after, 200)):
            for scores in rng.standard_normal((n, len(STATISTICS))).tolist():
                assert (monitor.drifted, monitor.why) == (False, "") or rate == after
                monitor.observe_outputs(np.array([scores]))
                monitor.observe_label(int(rng.random() < rate), before, before)
        assert (monitor.drifted, monitor.why) == (True, f"{why} errors than predicted")


@pytest.mark.parametrize(("by", "how"), [(0.7, "higher"), (-0.7, "lower")])
def test_a_late_change_of_one_statistic_is_noticed(by: float, how: str) -> None:
    for j, name in enumerate(STATISTICS):
        rng, monitor = np.random.default_rng(j), Monitor()
        for t, scores in enumerate(rng.standard_normal((1150, len(STATISTICS))).tolist()):
            scores[j] += by * (t >= 1000)
            monitor.observe_outputs(np.array([scores]))
            assert not monitor.drifted or t >= 1000
        assert (monitor.drifted, monitor.why) == (True, f"scores shifted: {name} {how}")
        assert monitor.shift > 1 / ALPHA


def test_evidence_of_scores_and_labels_adds_up() -> None:
    """A change that neither shows alone, both together do."""
    rng = np.random.default_rng(0)
    scores = rng.standard_normal((1120, len(STATISTICS)))
    same = scores.copy()
    scores[1000:, 3] += 0.35
    labels = (rng.random(1120) < np.where(np.arange(1120) < 1000, 0.3, 0.7)).tolist()
    drifted = []
    for with_scores, with_labels in ((True, False), (False, True), (True, True)):
        monitor = Monitor()
        for t, row in enumerate((scores if with_scores else same).tolist()):
            monitor.observe_outputs(np.array([row]))
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
            monitor.observe_outputs(np.array([scores]))
            if label is not None:
                monitor.observe_label(*label)
        assert (whole.state(), whole.wealth) == (halves.state(), halves.wealth)
    assert whole.drifted
    at_alarm = whole.state()
    whole.observe_outputs(np.zeros((1, len(STATISTICS))))
    whole.observe_label(0, 0.2, 0.2)
    assert whole.state() == at_alarm  # after the alarm its state no longer changes
    whole.reset()
    assert (whole.state(), whole.wealth) == (Monitor().state(), 1.0)


@pytest.mark.parametrize("bad", [{"alpha": 0.0}, {"alpha": 1.0}])
def test_a_test_that_cannot_be_is_refused(bad: dict[str, float]) -> None:
    with pytest.raises(BadInputError, match=next(iter(bad))):
        Monitor(**bad)


# -- predictions of labels ------------------------------------------------------------------------


def test_predictions_learn_their_own_error() -> None:
    """Too extreme by 1.6 and too low by 0.5 in log odds; the state goes through JSON."""
    rng, correct = np.random.default_rng(3), Recalibration()
    true = rng.uniform(-2.0, 2.0, 3000)
    said = 1.0 / (1.0 + np.exp(-1.6 * (true - 0.5)))
    labels = rng.random(true.size) < 1.0 / (1.0 + np.exp(-true))
    for q, label in zip(said.tolist(), labels.tolist(), strict=True):
        correct.learn(q, int(label))
        assert 0.0 < correct(q) < 1.0
    again = Recalibration()
    again.restore(json.loads(json.dumps(correct.state())))
    for odds in (-1.5, 0.0, 1.5):
        q, p = 1.0 / (1.0 + exp(-1.6 * (odds - 0.5))), 1.0 / (1.0 + exp(-odds))
        assert correct(q) == pytest.approx(p, abs=0.05)
        assert again(q) == correct(q)


def test_a_few_labels_hardly_correct_a_prediction() -> None:
    correct = Recalibration()
    assert correct(0.5) == 0.5
    for _ in range(3):
        correct.learn(0.3, 1)
    assert 0.3 < correct(0.3) < 0.4


# -- ranks ----------------------------------------------------------------------------------------


def ranks_of(values: FloatArray, draws: FloatArray, *, batch: int) -> FloatArray:
    """p of (k, n) values, so many at a time; the state goes through JSON."""
    parts, ranks = [], RunningRanks(len(values))
    for i in range(0, values.shape[1], batch):
        part = slice(i, i + batch)
        parts.append(ranks(values[:, part], draws[0, :, part], draws[1, :, part]))
        if i % 160 == 0:
            state = json.loads(json.dumps(ranks.state(), allow_nan=False))
            ranks = RunningRanks(len(values))
            ranks.restore(state)
    assert np.size(ranks.state()[0]) < 100 * len(values) or values.shape[1] < MOST
    return np.concatenate(parts, axis=1)


def plain_ranks(values: FloatArray, draws: FloatArray) -> list[float]:
    """The rule for one sequence, value by value."""
    kept: list[tuple[float, float]] = []
    counts: list[int] = []
    found = []
    for value, tie, within in zip(values.tolist(), *draws.tolist(), strict=True):
        at = bisect_left(kept, (value, tie))
        if counts:
            found.append((sum(counts[:at]) + within * counts[at]) / sum(counts))
            counts[at] += 1
            continue
        found.append((at + within) / (len(kept) + 1))
        kept.insert(at, (value, tie))
        if len(kept) == MOST:
            kept = kept[PER_BIN - 1 :: PER_BIN][: BINS - 1]
            counts = [PER_BIN] * (BINS - 1) + [PER_BIN + 1]
    return found


def drawn(kind: str, rng: np.random.Generator, shape: tuple[int, int]) -> FloatArray:
    values = rng.standard_normal(shape)
    return {"normal": values, "rounded": values.round(), "constant": 0.0 * values}[kind]


@pytest.mark.parametrize("kind", ["normal", "rounded", "constant"])
def test_ranks_are_uniform_and_independent_whatever_the_values(kind: str) -> None:
    """Ties included, and beyond the values that are kept one by one."""
    rng, n = np.random.default_rng(4), 3 * MOST
    (p,) = ranks_of(drawn(kind, rng, (1, n)), rng.random((2, 1, n)), batch=32)
    for part in (p[:MOST], p[MOST:]):
        distance = np.abs(np.sort(part) - (np.arange(part.size) + 0.5) / part.size).max()
        assert distance < 1.63 / part.size**0.5  # Kolmogorov's, at 1 %
        assert abs(np.corrcoef(part[:-1], part[1:])[0, 1]) < 3.0 / part.size**0.5


@pytest.mark.parametrize("kind", ["normal", "rounded", "constant"])
def test_ranks_are_those_of_one_value_after_the_other(kind: str) -> None:
    """However many come at a time."""
    rng, n = np.random.default_rng(5), MOST + 640
    values, draws = drawn(kind, rng, (3, n)), rng.random((2, 3, n))
    plain = np.array([plain_ranks(v, draws[:, i]) for i, v in enumerate(values)])
    for batch in (1, 16, 32):
        np.testing.assert_allclose(ranks_of(values, draws, batch=batch), plain, rtol=1e-12)


def test_a_rank_is_that_among_all_before() -> None:
    """Also where the values that are kept one by one become more than fit the bins."""
    rng = np.random.default_rng(2)
    values = rng.random(MOST + 2000)
    (p,) = ranks_of(values[None], np.full((2, 1, values.size), 0.5), batch=100)
    for t, v in enumerate(values):
        if t < MOST:
            assert p[t] == pytest.approx((np.sum(values[:t] < v) + 0.5) / (t + 1))
        elif t % 100 == 0:  # within the width of a bin
            assert p[t] == pytest.approx(float(np.mean(values[:t] < v)), abs=2 / 64)


def test_score_ranks_go_on_from_their_state_and_take_missing_signals() -> None:
    rows = np.random.default_rng(8).standard_normal((320, 5))
    rows[::7, :3] = np.nan
    whole, halves = ScoreRanks(1), ScoreRanks(1)
    for i in range(0, 320, 32):
        if i in (32, 160):
            state = json.loads(json.dumps(halves.state(), allow_nan=False))
            halves = ScoreRanks(1)
            halves.restore(state)
        part = rows[i : i + 32]
        found = whole(part)
        assert (found == halves(part)).all()
        assert len(found) == (0 if i < START else 32)
        if i > 200:
            lacks = np.isnan(part[:, 0])
            assert found[lacks, :4].max() < -0.8  # a category of its own, at the lower end
            assert found[~lacks, :4].min() > -2.6


def test_the_scale_of_the_mean_is_that_of_the_signals_there_are() -> None:
    """An output is as uncertain as its known signals are; a signal that all lack has no scale."""
    rng = np.random.default_rng(3)
    level = rng.permutation(640)
    rows = np.column_stack([level, -1.0 * level, level, np.ones((640, 2))])
    rows[:, 1] = np.nan
    rows[::5, 2] = np.nan
    ranks = ScoreRanks(1)
    found = np.concatenate([ranks(rows[i : i + 32]) for i in range(0, 640, 32)])
    assert np.corrcoef(found[:, 0], found[:, 3])[0, 1] > 0.95


# -- the pace -------------------------------------------------------------------------------------


def test_a_steady_pace_gives_no_alarm_and_a_slow_one_does() -> None:
    alarms, late = 0, []
    for seed in range(200):
        rng, test = np.random.default_rng(seed), PaceTest(0.2)
        for verified in (rng.random(1500) < 0.2).tolist():
            test.observe(verified)
        alarms += test.underspent
        for t, verified in enumerate((rng.random(1000) < 0.04).tolist()):
            test.observe(verified)
            if test.underspent:
                late.append(t)
                break
    assert alarms <= 200 * PACE_ALPHA + 1
    assert len(late) == 200
    assert np.median(late) < 400


def test_a_pace_without_a_rate_is_compared_with_its_own() -> None:
    test = PaceTest(None)
    for t in range(600):
        test.observe(t % 3 == 0)
    assert not test.underspent
    state = json.loads(json.dumps(test.state()))
    again = PaceTest(None)
    again.restore(state)
    for _ in range(60):
        test.observe(False)
        again.observe(False)
    assert test.underspent
    assert test.state() == again.state()
