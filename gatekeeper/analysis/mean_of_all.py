"""The mean value of all outputs, from the values of those drawn and from predictions.

Of N outputs of weights w_i those that were certain to be verified are known and add no uncertainty.
Of the others each was drawn with probability p_i, and m_i is its predicted value. With
q_i = 1/p_i - 1, S the outputs drawn and U those not drawn, the total of the others is

    Σ_S w y + Σ_U w m + (Σ_U w) · Σ_S w q (y - m) / Σ_S w q

A drawn output stands for q_i others beside itself: what is known enters as it is, and only U is
estimated. Where all p are equal and m is constant this is the mean of the sample.
Predictions of drawn outputs leave their own value out, so that a prediction fitted to chance does
not make the interval too narrow.

Outputs that vary more may have been drawn more, so that each stands for fewer others; and draws
that are spread over the stream differ from the rest only within their part of it. So the variance
is that of the residuals as they enter the estimate, by the differences between successive ones;
as far as there are many, because these are less certain than the variance of all values.

For values of 0 and 1 the interval is the mid-p interval of a proportion, for an effective number of
labels. For others each end is a quantile of the Beta distribution with mean and variance of the
estimate, as if a part of a value more had been drawn, at that end of the range: a sample may have
missed rare values there. No interval is symmetric.

References
----------
Särndal, Swensson and Wretman (1992), "Model Assisted Survey Sampling", the difference estimator.
Angelopoulos et al. (2023), "Prediction-powered inference". Korn and Graubard (1998), the interval
of an effective number. Learned-Miller and Thomas (2019), "A new confidence interval for the mean of
a bounded random variable": the value at the end of the range. Wolter (2007), "Introduction to
Variance Estimation", the successive differences of systematic samples.
"""

from __future__ import annotations

from math import nan
from typing import NamedTuple

import numpy as np

from gatekeeper.stats.interval import UPPER, Interval
from gatekeeper.stats.mid_p import midp_interval
from gatekeeper.stats.value_model import Columns, predict
from gatekeeper.types import BoolArray, FloatArray

__all__ = ["Drawn", "Mean", "interval_of", "mean_of_all", "possible_mean", "unchecked_interval"]

MISSED = 0.3  # of a value at the end of the range, which a sample may have missed
CAUTION = 4.0  # labels of prior weight for a prediction that explains nothing
ALIKE = 50.0  # labels of prior weight for outputs that vary alike, in an order without effect


class Drawn(NamedTuple):
    """Outputs with a chance to be verified."""

    p: FloatArray  # propensities in (0, 1], (N,)
    known: BoolArray  # which were verified and have a value, (N,)
    y: FloatArray  # values in [0, 1], (N,); NaN unknown. One that is not `known` is only a limit
    weight: FloatArray  # w > 0, (N,)


class Part(NamedTuple):
    """The outputs that were left to chance: only their mean is estimated."""

    value: float  # in [0, 1]
    spread: float  # variance of the estimate, per unit of `variance`
    variance: float  # of their values; NaN for values of 0 and 1
    share: float  # of the weight of all


NONE = Part(0.0, 0.0, nan, 0.0)


class Mean(NamedTuple):
    """The weighted mean of all, and how well it is known."""

    value: float  # in [0, 1]
    part: Part
    spread: float  # variance of the estimate, per unit of `variance`; 0 where known
    variance: float  # of all values; NaN for values of 0 and 1
    low: float  # the least that is possible
    high: float  # the most
    explained: float  # share of the variance that predictions remove, at most 1; below 0: they add
    expansion: FloatArray  # of the known outputs (n,): how many each stands for


def mean_of_all(drawn: Drawn, columns: Columns | None) -> Mean | None:
    """The weighted mean of the values of all these outputs.

    Parameters
    ----------
    drawn
        The outputs.
    columns
        What predictions are made from; None: no predictions.

    Returns
    -------
    Mean or None
        None where some output may have any value because none that was drawn by chance is known.
    """
    p, known, y, weight = _missing_at_random(drawn)
    whole = float(weight.sum())
    # sums in this order are exact where every output is known
    of_known = float(weight[known] @ y[known]) / whole
    unknown = float(weight[~known].sum()) / whole
    limits = possible_mean(y, weight)
    expansion = np.ones(int(known.sum()))
    if not unknown:
        graded = _variance(y[known], weight[known], of_known)
        return Mean(of_known, NONE, 0.0, graded, of_known, of_known, 0.0, expansion)
    q = (1.0 / p - 1.0)[known]
    by_chance = q > 0.0
    if not by_chance.any():
        return None
    w, of_drawn = weight[known], weight[known] * q
    scale = float(weight[~known].sum() / of_drawn.sum())  # about 1
    expansion += scale * q
    share = of_drawn / of_drawn.sum()
    # Variance of the estimate: Σ w² (κq) (κq + 1) e², κ the scale.
    each = w * w * scale * q * (scale * q + 1.0) / whole**2
    plain = _residuals(y, known, by_chance, None)
    assisted = plain if columns is None else _residuals(y, known, by_chance, columns)
    off, off_assisted = (r.known - share @ r.known for r in (plain, assisted))
    base, left = float(each @ off**2), float(each @ off_assisted**2)
    ratio = left / base if base > 0.0 else 1.0
    if ratio > 1.0:  # predictions do harm
        assisted, off_assisted, ratio = plain, off, 1.0
    mean_unknown = assisted.predicted @ weight[~known] / weight[~known].sum()
    mean_unknown += share @ assisted.known
    value = min(max(of_known + unknown * float(mean_unknown), limits[0]), limits[1])
    n = float(of_drawn.sum() ** 2 / (of_drawn @ of_drawn))
    spread = float(each.sum()) * (n * ratio + CAUTION) / (n + CAUTION)
    if min(base, left) > 0.0:
        of_all = (w * expansion)[by_chance]
        level = float(of_all @ off[by_chance] ** 2 / of_all.sum())
        relative = base / (float(each.sum()) * level)  # 1 where p and w are equal
        if _is_spread(p, known):
            relative *= _between_neighbours((np.sqrt(each) * off_assisted)[by_chance])
        spread *= (n * relative + ALIKE) / (n + ALIKE)
    certain = ~by_chance
    size = 1.0 - float(w[certain].sum()) / whole
    of_part = (value - float(w[certain] @ y[known][certain]) / whole) / size
    of_part = min(max(of_part, 0.0), 1.0)  # sums of floats
    graded = _variance(y[known], w * expansion, value)
    in_part = _variance(y[known][by_chance], (w * expansion)[by_chance], of_part)
    part = Part(of_part, spread / size**2, in_part, size)
    own, all_ = (
        mean * (1.0 - mean) if variance != variance else variance
        for mean, variance in ((of_part, in_part), (value, graded))
    )
    if own > 0.0 and all_ > 0.0:
        spread *= own / all_
    return Mean(value, part, spread, graded, *limits, 1.0 - ratio, expansion)


def possible_mean(y: FloatArray, weight: FloatArray) -> tuple[float, float]:
    """The least and the greatest weighted mean of values (N,) in [0, 1], NaN unknown."""
    there, whole = np.isfinite(y), float(weight.sum())
    low = float(weight[there] @ y[there]) / whole
    return low, low + float(weight[~there].sum()) / whole


def interval_of(mean: Mean, spread: float) -> Interval:
    """The 95 % interval about a mean.

    Parameters
    ----------
    mean
        From `mean_of_all`.
    spread
        Variance of the estimate, per unit of variance of the values: `mean.spread`, or with more
        in it.
    """
    low, high = _ends(mean.value, mean.variance, mean.expansion.size, spread)
    return Interval(mean.value, low, high, mean.expansion.size)


def unchecked_interval(mean: Mean) -> Interval:
    """The interval for these outputs, which lies within what is possible."""
    n, part = mean.expansion.size, mean.part
    low, high = _ends(part.value, part.variance, n, part.spread)
    known = mean.value - part.share * part.value  # of those that were certain to be verified
    low = max(known + part.share * low, mean.low)
    high = min(known + part.share * high, mean.high)
    return Interval(mean.value, min(low, mean.value), max(high, mean.value), n)


def _ends(value: float, variance: float, n: int, spread: float) -> tuple[float, float]:
    """Ends of the interval of a mean; n values were drawn, and `variance` is NaN for 0 and 1."""
    if not spread:
        return value, value
    if variance == variance:
        low = 1.0 - _upper(1.0 - value, variance, n, spread)
        high = _upper(value, variance, n, spread)
    else:
        found = midp_interval(value, 1.0 / spread)
        low, high = found.low, found.high
    return min(low, value), max(high, value)


def _missing_at_random(drawn: Drawn) -> Drawn:
    """Outputs that were certain to be verified but have no value are missing at random."""
    certain = drawn.p == 1.0
    n, of_n = int(certain.sum()), int((certain & drawn.known).sum())
    if n == of_n:
        return drawn
    return drawn._replace(p=np.where(certain, max(of_n, 0.5) / n, drawn.p))


def _is_spread(p: FloatArray, known: BoolArray) -> bool:
    """Whether the draws keep to the sum of their propensities, as those of `SequentialDraws` do in
    the order of the stream. In any other order, such as that of the values, few do."""
    return float(np.ptp(np.cumsum(known - p))) < 2.0


def _between_neighbours(x: FloatArray) -> float:
    """The variance between successive terms (n,) of a sum, relative to that of all."""
    return float((np.diff(x) ** 2).sum()) / (2.0 * float(x @ x))


class _Residuals(NamedTuple):
    predicted: FloatArray  # values of the outputs that are not known
    known: FloatArray  # value minus prediction, of those that are; 0 for the certain ones


def _residuals(
    y: FloatArray,
    known: BoolArray,
    by_chance: BoolArray,
    columns: Columns | None,
) -> _Residuals:
    """Predictions from the known outputs that were drawn by chance, as were the unknown ones not;
    those certain to be verified may be of another kind."""
    if columns is None:
        columns = Columns(np.zeros((y.size, 0)), np.zeros(0))
    at = np.flatnonzero(known)
    found = predict(columns, at[by_chance], y[at[by_chance]])
    off = np.zeros(at.size)
    off[by_chance] = y[at[by_chance]] - found.left_out
    return _Residuals(found.intercept + columns.z[~known] @ found.slope, off)


def _variance(y: FloatArray, weight: FloatArray, mean: float) -> float:
    """Variance of graded values about their mean; NaN for values of 0 and 1 only."""
    if np.isin(y, (0.0, 1.0)).all():
        return nan
    return float(weight @ (y - mean) ** 2 / weight.sum()) * y.size / max(y.size - 1, 1)


def _upper(value: float, variance: float, n: int, spread: float) -> float:
    """The upper end of the interval of a mean of graded values; n were drawn."""
    from scipy.special import betaincinv

    share = MISSED / (n + MISSED)
    gap = 1.0 - value
    # The missed value counts only as far as there is something to miss: spread n is 1 - n/N.
    mean = value + min(spread * n, 1.0) * share * gap
    error = spread * (1.0 - share) * (variance + share * gap * gap)
    labels = mean * (1.0 - mean) / error - 1.0
    if labels <= 0.0:
        return 1.0
    return float(betaincinv(mean * labels, (1.0 - mean) * labels, UPPER))
