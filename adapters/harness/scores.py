"""The score of all outputs of a harness run: the weighted mean of a metric with its interval.

Any number that the harness computes for an output counts as itself, not as right or wrong. Values
are brought into [0, 1] by the range of the metric. Verified outputs are known. The others are
estimated from those of them that were drawn, as `analysis.rate_of_all` does for errors:

    mean = Σ w m / W + Σ v (w/p) (y - m) / Σ v w/p

per part of similar propensity p, with weights w (of sum W), values y of the drawn outputs (v = 1),
and predictions m, linear in a cross-fitted prediction of whether y is high. The interval is the
mid-p interval for as many independent labels as have the variance of this mean.

References
----------
Hájek (1971); Särndal, Swensson and Wretman (1992), regression estimator; Zou and Donner (2008), the
sum of intervals.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import hypot, log1p, nan
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from gatekeeper.analysis.predictions import cross_fitted
from gatekeeper.analysis.rate_of_all import by_propensity
from gatekeeper.stats.error_model import Raw
from gatekeeper.stats.interval import NORMAL
from gatekeeper.stats.mid_p import midp_interval
from gatekeeper.types import FloatArray, GateResult

__all__ = ["Score", "range_of", "score_of"]

CAUTION = 4.0  # labels of prior weight for a prediction that explains nothing
FEW = 8  # drawn outputs below which no prediction is fitted


@dataclass(frozen=True, slots=True)
class Score:
    """The mean of a metric over all outputs, in the metric's unit.

    Parameters
    ----------
    kind : {"known", "estimate", "bounds"}
        Known: every output has a value, low and high are it. Estimate: a 95 % interval. Bounds:
        nothing is known of the outputs left out, and the mean lies between low and high whatever
        their values are; `value` is then None.
    value : float or None
    low, high : float
    verified, outputs : int
        Outputs with a value, and all.
    sampling : tuple of float, or None
        95 % interval for the model's score on all questions like these: `low` and `high`, widened
        by the standard error of the questions as a sample. None without a value.
    """

    kind: Literal["known", "estimate", "bounds"]
    value: float | None
    low: float
    high: float
    verified: int
    outputs: int
    sampling: tuple[float, float] | None = None

    def as_json(self) -> dict[str, Any]:
        """The fields as JSON values."""
        return asdict(self)

    def sentence(self, name: str) -> str:
        """One line of a report."""
        if self.kind == "bounds":
            return (
                f"{name}: between {self.low:.4f} and {self.high:.4f}, whatever the "
                f"{self.outputs - self.verified} unverified outputs are (no estimate: none of "
                "them was drawn)"
            )
        text = f"{name}: {self.value:.4f}"
        text += (
            f", known from all {self.outputs} outputs"
            if self.kind == "known"
            else f", 95 % interval {self.low:.4f} to {self.high:.4f}, from {self.verified} of "
            f"{self.outputs} outputs"
        )
        if self.sampling is not None:
            low, high = self.sampling
            text += f"; with the questions as a sample of all: {low:.4f} to {high:.4f}"
        return text


def range_of(values: Sequence[float]) -> tuple[float, float]:
    """The range that a metric has, by these values: [0, 1], [0, 100], or what was observed."""
    low, high = min(values, default=0.0), max(values, default=1.0)
    for top in (1.0, 100.0):
        if 0.0 <= low and high <= top:
            return 0.0, top
    return low, high


def score_of(
    results: Sequence[GateResult],
    values: Sequence[float | None],
    *,
    weights: Sequence[float] | None = None,
    clusters: Sequence[object] | None = None,
    within: tuple[float, float] | None = None,
) -> Score:
    """The weighted mean of a metric over all outputs.

    Parameters
    ----------
    results : sequence of GateResult
        Of all N outputs, with their propensities.
    values : sequence of float or None
        The metric, shape (N,); None where there is no value.
    weights : sequence of float or None
        Positive, shape (N,); None: equal.
    clusters : sequence or None
        The question of each output, shape (N,), where several answer one; None: one each.
    within : tuple of float or None
        The metric's range; None: `range_of` the values.
    """
    y = np.array([nan if value is None else float(value) for value in values])
    known = np.isfinite(y)
    w = np.ones(y.size) if weights is None else np.asarray(weights, dtype=float)
    w = w / w.sum()
    count, n = int(known.sum()), int(y.size)
    if known.all():
        mean = float(w @ y)
        around = _around(mean, mean, mean, _standard_error(y, w, w, clusters))
        return Score("known", mean, mean, mean, count, n, around)
    bottom, top = within or range_of(y[known].tolist())
    scale = (top - bottom) or 1.0
    y = (y - bottom) / scale
    p = np.array([result.decision.propensity for result in results])
    drawn = known & np.array([result.decision.verify for result in results])
    least = float(w[known] @ y[known])
    most = least + float(w[~known].sum())
    by_chance = (p > 0.0) & (p < 1.0)
    source = by_chance if by_chance.any() else p > 0.0
    if np.isnan(p).any() or not (drawn & source).any():
        return Score("bounds", None, bottom + scale * least, bottom + scale * most, count, n)
    m = _predictions(results, drawn & source, y)
    value, low, high = _mean(p, drawn, y, w, m, source)
    low, high = max(low, least), min(high, most)
    value = min(max(value, low), high)
    weight = np.where(drawn, w / np.where(p > 0.0, p, 1.0), 0.0)
    error = _standard_error(np.where(drawn, y, 0.0), weight / weight.sum(), w, clusters)
    value, low, high = (bottom + scale * x for x in (value, low, high))
    return Score("estimate", value, low, high, count, n, _around(value, low, high, scale * error))


def _mean(
    p: FloatArray,
    drawn: NDArray[np.bool_],
    y: FloatArray,
    w: FloatArray,
    m: FloatArray,
    source: NDArray[np.bool_],
) -> tuple[float, float, float]:
    """Mean and interval of values in [0, 1]. A part that nothing was drawn from may have any mean;
    its value is then that of the outputs drawn elsewhere."""
    first = drawn & source
    elsewhere = float(np.average(y[first], weights=w[first] / p[first]))
    value = below = above = 0.0
    least = most = 0.0  # ends of the parts without a verdict, which no chance makes up for
    parts = np.where(p > 0.0, by_propensity(np.where(p > 0.0, p, 1.0)) + 1, 0)
    for k in np.unique(parts).tolist():
        part = parts == k
        mine, share = part & drawn, float(w[part].sum())
        if not mine.any():
            value += share * elsewhere
            least += share * elsewhere
            most += share * (1.0 - elsewhere)
            continue
        rate, low, high = _part(p, mine, part, y, w, m)
        value += share * rate
        below = hypot(below, share * (rate - low))
        above = hypot(above, share * (high - rate))
    return value, value - below - least, value + above + most


def _part(
    p: FloatArray,
    mine: NDArray[np.bool_],
    part: NDArray[np.bool_],
    y: FloatArray,
    w: FloatArray,
    m: FloatArray,
) -> tuple[float, float, float]:
    """Mean and interval of one part, from its drawn outputs `mine`."""
    if (mine == part).all():
        rate = float(np.average(y[mine], weights=w[mine]))
        return rate, rate, rate
    # Outputs certain to be verified, but without a value, are missing at random.
    chance = np.where(p[mine] < 1.0, p[mine], mine.sum() / part.sum())
    h = w[mine] / chance
    total = float(h.sum())
    residual = y[mine] - m[mine]
    shift = float(h @ residual) / total
    rate = float(np.average(m[part], weights=w[part])) + shift
    rate = min(max(rate, 0.0), 1.0)
    spread = h * h * (1.0 - chance)
    labels = total**2 / float(spread.sum())
    if 0.0 < rate < 1.0:
        left = float(spread @ (residual - shift) ** 2) / float(spread.sum())
        n = total**2 / float(h @ h)
        labels *= (n + CAUTION) / (n * left / (rate * (1.0 - rate)) + CAUTION)
    found = midp_interval(rate, labels)
    return rate, found.low, found.high


def _predictions(
    results: Sequence[GateResult], drawn: NDArray[np.bool_], y: FloatArray
) -> FloatArray:
    """Predicted values in [0, 1], shape (N,): none uses the output's own value but for the slope
    and the level, which are fitted to the drawn outputs."""
    mean = float(y[drawn].mean())
    flat = np.full(y.size, mean)
    high = y > mean
    if drawn.sum() < FEW or high[drawn].all() or not high[drawn].any():
        return flat
    raw = [
        Raw(h.h1, h.h2, h.h3, 0.0, log1p(h.n_tokens))
        for h in (result.signals for result in results)
    ]
    q = 1.0 / (1.0 + np.exp(-cross_fitted(raw, drawn, high.astype(float))))
    centred = q - q[drawn].mean()
    size = float(centred[drawn] @ centred[drawn])
    if size < 1e-9:
        return flat
    slope = float(centred[drawn] @ (y[drawn] - mean)) / size
    return np.asarray(np.clip(mean + max(slope, 0.0) * centred, 0.0, 1.0))


def _standard_error(
    y: FloatArray, estimated: FloatArray, w: FloatArray, clusters: Sequence[object] | None
) -> float:
    """Of the mean, with the questions as a sample of all questions like them.

    `estimated` are the weights with which known values stand for all, `w` those of all, both of
    sum 1. Where values are missing, several answers to a question are assumed to agree: that is
    the largest error there can be.
    """
    which = np.arange(y.size)
    if clusters is not None:
        number: dict[object, int] = {}
        which = np.array([number.setdefault(cluster, len(number)) for cluster in clusters])
    n = int(which.max()) + 1
    if n < 2:
        return 0.0
    off = y - estimated @ y
    if (estimated == w).all():
        variance = float((np.bincount(which, w * off) ** 2).sum())
    else:
        variance = float(estimated @ off**2) * float((np.bincount(which, w) ** 2).sum())
    return float(np.sqrt(variance * n / (n - 1)))


def _around(value: float, low: float, high: float, error: float) -> tuple[float, float]:
    margin = NORMAL * error
    return value - hypot(value - low, margin), value + hypot(high - value, margin)
