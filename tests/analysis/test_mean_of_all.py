"""The variance of an estimate is that of the draws: of their propensities and of their order."""

from __future__ import annotations

from math import nan

import numpy as np
import pytest

from gatekeeper.analysis.mean_of_all import Drawn, Mean, mean_of_all, unchecked_interval
from gatekeeper.stats.sequential_draws import SequentialDraws
from gatekeeper.types import FloatArray, IntArray

N, RUNS = 1500, 200


def drawn_of(y: FloatArray, p: FloatArray, seed: int) -> Drawn:
    """Outputs in the order of a stream, drawn as `Survey` draws them."""
    draw = SequentialDraws(seed)
    known = np.array([draw(each) for each in p.tolist()])
    return Drawn(p, known, np.where(known, y, nan), np.ones(y.size))


def mean_of(drawn: Drawn, order: IntArray | None = None) -> Mean:
    found = mean_of_all(drawn if order is None else Drawn(*(x[order] for x in drawn)), None)
    assert found is not None
    return found


def width(mean: Mean) -> float:
    found = unchecked_interval(mean)
    return found.high - found.low


def claimed_by_true(y: FloatArray, p: FloatArray) -> float:
    """The variance that estimates claim, relative to the variance that they have."""
    means = [mean_of(drawn_of(y, p, seed)) for seed in range(RUNS)]
    variance = [mean.value * (1.0 - mean.value) for mean in means]
    if not np.isin(y, (0.0, 1.0)).all():
        variance = [mean.variance for mean in means]
    off = [mean.value - float(y.mean()) for mean in means]
    claimed = [mean.spread * v for mean, v in zip(means, variance, strict=True)]
    return float(np.mean(claimed) / np.mean(np.square(off)))


def test_outputs_that_vary_more_and_were_drawn_more_widen_it_less() -> None:
    """Half of the values are 0 or 1, the others nearly the same. As if all varied alike, the
    variance would be 2.4 times the true one."""
    rng = np.random.default_rng(0)
    varies = rng.random(N) < 0.5
    y = np.where(varies, rng.random(N) < 0.5, rng.uniform(0.45, 0.55, N)).astype(float)
    assert 0.8 < claimed_by_true(y, np.where(varies, 0.5, 0.2)) < 1.3


def test_spread_draws_of_a_stream_that_drifts_have_the_variance_between_neighbours() -> None:
    """As if the order were random, the variance would be 7 times the true one."""
    rng = np.random.default_rng(1)
    y = (rng.random(N) < np.linspace(0.0, 1.0, N) ** 0.2 * (np.arange(N) > N / 2)).astype(float)
    assert 0.8 < claimed_by_true(y, np.full(N, 0.3)) < 1.7


@pytest.mark.parametrize("seed", range(5))
def test_no_other_order_makes_it_narrower(seed: int) -> None:
    """Such as that of the values: the draws are not spread over it."""
    rng = np.random.default_rng(seed)
    y = np.sort(rng.random(N) < 0.5).astype(float)
    drawn = drawn_of(y, np.full(N, 0.3), seed)
    random = width(mean_of(drawn, rng.permutation(N)))
    assert width(mean_of(drawn)) < 0.6 * random
    assert width(mean_of(drawn, np.argsort(drawn.y))) == pytest.approx(random)
    repeated = width(mean_of(drawn_of(rng.permutation(y), drawn.p, seed)))
    assert repeated == pytest.approx(random, rel=0.06)
