"""The mean value of all outputs, from the values of those drawn and from predictions.

Of N outputs of weights w_i those that were certain to be verified are known and add no uncertainty.
Of the others each was drawn with probability p_i, and m_i is its predicted value. With
q_i = 1/p_i - 1, S the outputs drawn and U those not drawn, the total of the others is

    Σ_S w y + Σ_U w m + (Σ_U w) · Σ_S w q (y - m) / Σ_S w q

A drawn output stands for q_i others beside itself: what is known enters as it is, and only U is
estimated. Where all p are equal and m is constant this is the mean of the sample.
Predictions of drawn outputs leave their own value out, so that a prediction fitted to chance does
not make the interval too narrow.

The interval is the mid-p interval of a proportion, for an effective number of labels: the variance
of the estimate, relative to that of a proportion. It is not symmetric near the ends of the range.

References
----------
Särndal, Swensson and Wretman (1992), "Model Assisted Survey Sampling", the difference estimator.
Angelopoulos et al. (2023), "Prediction-powered inference". Korn and Graubard (1998), the interval
of an effective number.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gatekeeper.stats.interval import NORMAL, UPPER, Interval
from gatekeeper.stats.mid_p import midp_interval
from gatekeeper.stats.value_model import Columns, predict
from gatekeeper.types import FloatArray

__all__ = ["Drawn", "Mean", "interval_of", "mean_of_all", "unchecked_interval"]

WIDEST = 0.25  # labels of prior weight for the widest spread that values can have
CAUTION = 4.0  # labels of prior weight for a prediction that explains nothing


class Drawn(NamedTuple):
    """Outputs with a chance to be verified."""

    p: FloatArray  # propensities in (0, 1], (N,)
    known: NDArray[np.bool_]  # which were verified and have a value, (N,)
    y: FloatArray  # values in [0, 1], (N,); NaN where not known
    weight: FloatArray  # w > 0, (N,)


class Mean(NamedTuple):
    """The weighted mean of all, and how well it is known."""

    value: float  # in [0, 1]
    spread: float  # variance of the estimate, relative to value (1 - value); 0 where known
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
    expansion = np.ones(int(known.sum()))
    if not unknown:
        return Mean(of_known, 0.0, of_known, of_known, 0.0, expansion)
    q = (1.0 / p - 1.0)[known]
    by_chance = q > 0.0
    if not by_chance.any():
        return None
    w, of_drawn = weight[known], weight[known] * q
    scale = float(weight[~known].sum() / of_drawn.sum())  # about 1
    expansion += scale * q
    m_unknown, left, plain = _residuals(y, known, columns)
    share = of_drawn / of_drawn.sum()
    mean_unknown = m_unknown @ weight[~known] / weight[~known].sum() + share @ left
    value = of_known + unknown * float(min(max(mean_unknown, 0.0), 1.0))
    # Variance of the estimate: Σ w² (κq) (κq + 1) e², κ the scale.
    each = w * w * scale * q * (scale * q + 1.0) / whole**2
    base = float(each @ (plain - share @ plain) ** 2)
    assisted = float(each @ (left - share @ left) ** 2)
    n = float(of_drawn.sum() ** 2 / (of_drawn @ of_drawn))
    ratio = assisted / base if base > 0.0 else 1.0
    values = y[known][by_chance]
    spread = float(each.sum()) * (n * ratio + CAUTION) / (n + CAUTION)
    of_part = float(share @ y[known])
    spread *= _relative_variance(values, share[by_chance], of_part, n)
    # The part that is left to chance has a mean of its own.
    if 0.0 < value < 1.0 and 0.0 < of_part < 1.0:
        spread *= of_part * (1.0 - of_part) / (value * (1.0 - value))
    return Mean(value, spread, of_known, of_known + unknown, 1.0 - ratio, expansion)


def interval_of(mean: Mean, spread: float) -> Interval:
    """The 95 % interval about a mean.

    Parameters
    ----------
    mean
        From `mean_of_all`.
    spread
        Variance of the estimate, relative to value (1 - value): `mean.spread`, or with more in it.
    """
    n = mean.expansion.size
    if not spread:
        return Interval(mean.value, mean.value, mean.value, n)
    found = midp_interval(mean.value, 1.0 / spread)
    return Interval(mean.value, min(found.low, mean.value), max(found.high, mean.value), n)


def unchecked_interval(mean: Mean) -> Interval:
    """The interval for these outputs, which lies within what is possible."""
    found = interval_of(mean, mean.spread)
    return Interval(found.value, max(found.low, mean.low), min(found.high, mean.high), found.n)


def _missing_at_random(drawn: Drawn) -> Drawn:
    """Outputs that were certain to be verified but have no value are missing at random."""
    certain = drawn.p == 1.0
    n, of_n = int(certain.sum()), int((certain & drawn.known).sum())
    if n == of_n:
        return drawn
    return drawn._replace(p=np.where(certain, max(of_n, 0.5) / n, drawn.p))


def _residuals(
    y: FloatArray, known: NDArray[np.bool_], columns: Columns | None
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Predictions of the unknown values, and residuals of the known ones: from the prediction
    without them, and from the mean of the others."""
    at = np.flatnonzero(known)
    if columns is None:
        columns = Columns(np.zeros((y.size, 0)), np.zeros(0))
    found = predict(columns, at, y[at])
    of_unknown = found.intercept + columns.z[~known] @ found.slope
    return of_unknown, y[at] - found.left_out, y[at] - found.mean_left_out


def _relative_variance(y: FloatArray, share: FloatArray, mean: float, n: float) -> float:
    """Variance of values relative to that of a proportion, mean (1 - mean), with the factor for
    its being estimated; 1 for values of 0 and 1 only."""
    from scipy.special import stdtrit

    most = mean * (1.0 - mean)
    if most <= 0.0 or np.isin(y, (0.0, 1.0)).all():
        return 1.0
    found = float(share @ (y - mean) ** 2) * n / max(n - 1.0, 1.0)
    variance = (n * found + WIDEST * most) / (n + WIDEST)
    wider = float(stdtrit(max(n - 1.0, 1.0), UPPER)) / NORMAL
    return min(variance * wider**2 / most, max(wider**2, 1.0))
