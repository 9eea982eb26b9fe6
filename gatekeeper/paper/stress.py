"""Stress streams: records of known truth in which a policy may go wrong, made from a seed.

Beside the streams that are calibrated to the paper (`gatekeeper.paper.streams`), these are drawn
by chance and each stresses one thing. A candidate at rank q in (0, 1) of the ex-ante cost is wrong
with probability p(q), and has a score ~ N(m + d(q) y, 1) with d the separation of wrong from right.
Three signals see that score, each with noise of its own and on a scale of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import sqrt

import numpy as np

from gatekeeper.arguments import check_count
from gatekeeper.errors import BadInputError
from gatekeeper.io.records import RecordTable
from gatekeeper.types import FloatArray
from gatekeeper.wording import choose

__all__ = ["STREAMS", "Recipe", "make_stream", "stream_names", "true_error_probability"]

LEAST, MOST = 300, 100_000  # candidates


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """How a stream is drawn. Tuples are values from the cheapest to the most expensive candidate,
    interpolated linearly."""

    error_rate: tuple[float, ...] = (0.4,)  # p, in [0, 1]
    separation: tuple[float, ...] = (0.8,)  # d, in standard deviations of the score
    level: float = 0.0  # m rises by this per standard deviation of log ĉ, errors or not
    steps: bool = False  # the tuples are steps of equal width, not corners of lines
    signal_noise: float = 0.5  # of each signal about the score, in its standard deviations
    missing: float = 0.0  # probability with which a candidate has no signal
    only: tuple[int, ...] = (0, 1, 2)  # indices of the signals that the provider gives
    cost_spread: float = 0.6  # standard deviation of log c, and of log ĉ
    correlation: float = 0.8  # of log ĉ and log c
    tail: float = 0.0  # > 0: costs are Pareto with this index, instead of log-normal
    error_cost: float = 0.0  # added to log c where the output is wrong
    then: Recipe | None = None  # from the middle of the stream on


_USUAL = Recipe(error_rate=(0.3, 0.5))

STREAMS: Mapping[str, Recipe] = {
    "usual": _USUAL,
    "homogeneous": Recipe(cost_spread=0.0),
    "exact-cost": Recipe(error_rate=(0.3, 0.5), correlation=1.0),
    "weak-cost": Recipe(error_rate=(0.3, 0.5), correlation=0.3),
    "unrelated-cost": Recipe(error_rate=(0.3, 0.5), correlation=0.0),
    "heavy-tail": Recipe(error_rate=(0.3, 0.5), tail=1.5),
    "rising": Recipe(error_rate=(0.05, 0.8)),
    "falling": Recipe(error_rate=(0.8, 0.05)),
    "u-shaped": Recipe(error_rate=(0.8, 0.1, 0.8)),
    "no-signal": Recipe(separation=(0.0,)),
    "no-signal-homogeneous": Recipe(separation=(0.0,), cost_spread=0.0),
    "inverted-signal": Recipe(separation=(-0.8,)),
    "inverted-homogeneous": Recipe(separation=(-0.8,), cost_spread=0.0),
    "one-bad-stratum": Recipe(separation=(0.9, 0.9, 0.9, -0.9), steps=True),
    "incomparable": Recipe(separation=(0.2, 0.6, 1.0, 1.4), steps=True, level=-1.0),
    "confounded": Recipe(error_rate=(0.5, 0.3), level=1.0),
    "drift": Recipe(
        separation=(1.2,), error_rate=(0.4, 0.2), then=Recipe(error_rate=(0.2, 0.6), level=0.5)
    ),
    "drift-inverted": Recipe(separation=(1.0,), then=Recipe(separation=(-1.0,))),
    "rare-errors": Recipe(error_rate=(0.03, 0.08), separation=(1.2,)),
    "common-errors": Recipe(error_rate=(0.75, 0.9)),
    "one-signal": Recipe(error_rate=(0.3, 0.5), only=(0,), signal_noise=0.0),
    "sharp-signal": Recipe(separation=(2.5,)),
    "missing-signals": Recipe(error_rate=(0.3, 0.5), missing=0.2),
    "costly-errors": Recipe(error_cost=0.7),
}


def stream_names() -> list[str]:
    """The names that `make_stream` accepts."""
    return list(STREAMS)


def make_stream(name: str | Recipe, n: int, seed: int) -> RecordTable:
    """The stream of that name or recipe, in stream order; equal arguments give equal records.

    Parameters
    ----------
    name
        One of `stream_names()`, or a `Recipe`.
    n
        Number of records, from 300 to 100,000.
    seed
        Seed of the random numbers.

    Raises
    ------
    BadInputError
        For an unknown name, and for another n.
    """
    return _draw(_recipe(name), n, seed)[0]


def true_error_probability(name: str | Recipe, n: int, seed: int) -> FloatArray:
    """P(error | score, ĉ) of the same records, (n,) in [0, 1]: the best possible prediction.

    It ignores true costs, so it is meant for recipes without `error_cost`.
    Parameters are those of `make_stream`.
    """
    return _draw(_recipe(name), n, seed)[1]


def _recipe(name: str | Recipe) -> Recipe:
    if isinstance(name, Recipe):
        return name
    if name not in STREAMS:
        raise BadInputError(f"name={name!r} is not a stream: {choose(name, STREAMS)}")
    return STREAMS[name]


def _draw(recipe: Recipe, n: int, seed: int) -> tuple[RecordTable, FloatArray]:
    if not LEAST <= check_count("n", n) <= MOST:
        raise BadInputError(f"n={n!r}: a stream has {LEAST} to {MOST:,} candidates")
    rng = np.random.default_rng(check_count("seed", seed, least=0))
    parts = [recipe] if recipe.then is None else [recipe, recipe.then]
    sizes = [n] if recipe.then is None else [n // 2, n - n // 2]
    drawn = [_columns(part, m, rng) for part, m in zip(parts, sizes, strict=True)]
    h, estimate, cost, error, p = map(np.concatenate, zip(*drawn, strict=True))
    return RecordTable([f"s{i}" for i in range(n)], h, estimate, cost, error), p


def _columns(recipe: Recipe, n: int, rng: np.random.Generator) -> tuple[FloatArray, ...]:
    """h (n, 3), ĉ, c, y and the true P(error), (n,)."""
    rank = rng.random(n)
    size = _normal_score(rank)
    prior, d = (_along(v, rank, recipe.steps) for v in (recipe.error_rate, recipe.separation))
    y = (rng.random(n) < prior).astype(np.float64)
    score = recipe.level * size + d * y + rng.standard_normal(n)
    with np.errstate(divide="ignore"):
        odds = np.log(prior) - np.log1p(-prior)
    p = 1.0 / (1.0 + np.exp(-(odds + d * (score - recipe.level * size) - d * d / 2)))

    seen = score[:, None] + recipe.signal_noise * rng.standard_normal((n, 3))
    h = np.empty((n, 3))
    h[:, 0] = 0.3 * np.exp(0.5 * seen[:, 0])  # nats per token: skewed, >= 0
    h[:, 1] = -2.0 * np.exp(-0.7 * seen[:, 1])  # minus a margin, <= 0
    h[:, 2] = 1.0 / (1.0 + np.exp(1.0 - seen[:, 2]))  # in (0, 1]
    h[:, [j for j in range(3) if j not in recipe.only]] = np.nan
    h[rng.random(n) < recipe.missing] = np.nan

    r = recipe.correlation
    own = rng.standard_normal(n)
    if recipe.tail:
        log_estimate = -np.log1p(-rank) / recipe.tail
        noise = sqrt(1.0 - r * r) * recipe.cost_spread * own
        log_cost = log_estimate + noise
    else:
        log_estimate = recipe.cost_spread * size
        log_cost = recipe.cost_spread * (r * size + sqrt(1.0 - r * r) * own)
    return h, np.exp(log_estimate), np.exp(log_cost + recipe.error_cost * y), y, p


def _along(values: tuple[float, ...], rank: FloatArray, steps: bool) -> FloatArray:
    """The value at each rank."""
    v = np.array(values)
    if steps or v.size == 1:
        return np.asarray(v[np.minimum((rank * v.size).astype(int), v.size - 1)])
    return np.asarray(np.interp(rank, np.linspace(0.0, 1.0, v.size), v))


def _normal_score(rank: FloatArray) -> FloatArray:
    """Φ⁻¹ of ranks in (0, 1), by interpolation in a fine table."""
    from statistics import NormalDist

    grid = np.concatenate([np.logspace(-6, -2, 200), np.linspace(0.01, 0.5, 500)[1:]])
    grid = np.concatenate([grid, 1.0 - grid[-2::-1]])
    inverse = NormalDist().inv_cdf
    return np.asarray(np.interp(rank, grid, [inverse(g) for g in grid.tolist()]))
