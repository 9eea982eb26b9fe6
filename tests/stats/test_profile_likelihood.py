"""Profile likelihood: what a search over all rates finds, and covered as often as said."""

from itertools import product
from math import comb, inf, log

import numpy as np
import pytest

from gatekeeper.stats.interval import Interval
from gatekeeper.stats.profile_likelihood import Part, interval_of_ratio, interval_of_sum

GRID = np.linspace(0.0, 1.0, 101)


def part(size: int, wrong: int, right: int, labels: float | None = None) -> Part:
    n = wrong + right
    rate = wrong / n if n else 0.5
    return Part(size, rate, n if labels is None else labels, wrong / size, 1.0 - right / size)


KNOWN = Part(10, 0.3, inf, 0.3, 0.3)
CASES = (
    (part(40, 2, 6), part(60, 9, 3)),
    (part(50, 0, 1), KNOWN, part(50, 4, 4)),
    (part(40, 0, 0), part(60, 3, 9, labels=20.0)),
    (part(5, 1, 2, labels=4.0), part(100, 5, 5)),
    (part(50, 0, 6), part(50, 0, 5), KNOWN),
    (part(50, 3, 0), part(30, 0, 2), part(20, 1, 1)),
)


def likely(parts: tuple[Part, ...]) -> np.ndarray:
    """All likely rates of a grid, by the formula: (m, parts)."""
    grids = [
        np.array([p.rate])
        if p.low == p.high
        else np.unique(np.clip([*GRID, p.rate], p.low, p.high))
        for p in parts
    ]
    found = []
    for rates in product(*(g.tolist() for g in grids)):
        far = 0.0
        for p, q in zip(parts, rates, strict=True):
            if p.labels in (0.0, inf):
                continue
            for share, other in ((p.rate, q), (1.0 - p.rate, 1.0 - q)):
                if share > 0.0:
                    far += 2.0 * p.labels * share * (log(share / other) if other > 0.0 else inf)
        if far <= 3.841459:
            found.append(rates)
    return np.array(found)


@pytest.mark.parametrize("parts", CASES)
def test_the_intervals_are_what_a_search_finds(parts: tuple[Part, ...]) -> None:
    """A difference, whose weights are of both signs, and the share of the first part in all."""
    rates = likely(parts)
    whole = [float(p.size) for p in parts]
    first = [whole[0], *[0.0] * (len(parts) - 1)]
    apart = [w if i == 0 else -0.5 * w for i, w in enumerate(whole)]
    sums, ratios = rates @ np.array(apart), rates @ np.array(first) / (rates @ np.array(whole))
    for found, searched, step in (
        (interval_of_sum(parts, apart), sums, 0.01 * sum(whole)),
        (interval_of_ratio(parts, first, whole), ratios, 0.02),
    ):
        assert found.low - 1e-6 <= searched.min() <= found.low + step
        assert found.high - step <= searched.max() <= found.high + 1e-6


def test_what_is_known_has_no_width() -> None:
    parts = [KNOWN, Part(30, 0.5, inf, 0.5, 0.5)]
    total = interval_of_sum(parts, [10.0, -30.0])
    assert (total.value, total.low, total.high) == pytest.approx((-12.0, -12.0, -12.0))
    ratio = interval_of_ratio(parts, [10.0, 0.0], [10.0, 30.0])
    assert (ratio.value, ratio.low, ratio.high) == pytest.approx((1 / 6, 1 / 6, 1 / 6))
    assert interval_of_sum([], []) == Interval(0.0, 0.0, 0.0)


@pytest.mark.parametrize(("n", "mean"), [(3, 0.953), (10, 0.946), (40, 0.948)])
def test_it_covers_as_often_as_said(n: int, mean: float) -> None:
    """One part, averaged over its rates: the figures of the module's docstring."""
    ends = [interval_of_sum([part(10**6, x, n - x)], [1.0]) for x in range(n + 1)]
    covers = [
        sum(
            comb(n, x) * q**x * (1 - q) ** (n - x)
            for x, found in enumerate(ends)
            if found.low <= q <= found.high
        )
        for q in np.linspace(0.0005, 0.9995, 1000).tolist()
    ]
    assert np.mean(covers) == pytest.approx(mean, abs=0.001)


def test_few_verdicts_beside_more_cover_as_often_as_said() -> None:
    """What a log has of a policy's choices and of the rest. Averaged over rates and verdicts."""
    rng = np.random.default_rng(0)
    runs, labels, sizes = 1500, np.array([2, 15]), [20.0, 80.0]
    covered = 0
    for q, x in ((q, rng.binomial(labels, q)) for q in rng.random((runs, 2))):
        parts = [part(10**6, k, n - k) for k, n in zip(x.tolist(), labels.tolist(), strict=True)]
        found = interval_of_sum(parts, sizes)
        covered += found.low <= q @ sizes <= found.high
    assert 0.93 * runs <= covered <= 0.97 * runs
