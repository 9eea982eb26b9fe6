"""The error rate of all outputs, from the verdicts on those drawn and from predictions.

Outputs that were certain to be verified are known and add no uncertainty. The others fall into
parts, within which propensities differ by a factor of two at most. In a part of N outputs with
propensities p_i, of which v_i = 1 were drawn and y_i = 1 are wrong,

    rate = Σ m_i / N + Σ v_i/p_i (y_i - m_i) / Σ v_i/p_i

where log odds m_i are those predicted, shifted by the one number that makes the second term 0; for
the weighted estimate they are the same for all, and this is Hájek's Σ v y/p / Σ v/p. Predictions
are cross-fitted: no output's own verdict is in its m_i. The interval is that of the effective
number of independent labels (`stats.mid_p`), and intervals of parts add up by their squares, each
side separately (Zou & Donner 2008). `benchmarks/estimates.py` checks how often it covers.

References
----------
Hájek (1971), the weighted estimate. Lehtonen and Veijanen (1998), logistic assistance. Zou and
Donner (2008), the sum of intervals.
"""

from __future__ import annotations

from math import hypot, inf
from typing import NamedTuple

import numpy as np

from gatekeeper.stats.interval import Interval
from gatekeeper.stats.mid_p import midp_interval
from gatekeeper.types import BoolArray, FloatArray, IntArray

__all__ = ["by_propensity", "rate_of_all"]

WITHIN = 2.0  # factor by which propensities may differ in one part
CAUTION = 4.0  # labels of prior weight for a prediction that explains nothing


class Part(NamedTuple):
    """Outputs whose rate of errors is estimated by itself."""

    size: int
    rate: float  # in [low, high]; any where labels is 0
    labels: float  # their effective number; 0 without a verdict, inf where the rate is known


def rate_of_all(
    p: FloatArray, drawn: BoolArray, label: FloatArray, log_odds: FloatArray
) -> Interval:
    """The error rate of all outputs.

    Parameters
    ----------
    p
        Propensities, in (0, 1], shape (N,).
    drawn
        Which outputs have a label, shape (N,); at least one.
    label
        1 wrong, 0 right, shape (N,); NaN unknown. One that was not drawn only limits what is
        possible.
    log_odds
        Predicted log odds of an error, shape (N,); equal ones give the weighted estimate.

    Returns
    -------
    Interval
        The rate in [0, 1], with its 95 % interval and the number of labels.
    """
    value = below = above = 0.0
    for part in _parts_of(p, drawn, label, log_odds):
        found = _interval(part)
        share = part.size / p.size
        value += share * part.rate
        below = hypot(below, share * (part.rate - found.low))
        above = hypot(above, share * (found.high - part.rate))
    wrong, right = (int((label == y).sum()) for y in (1.0, 0.0))
    low, high = wrong / p.size, (p.size - right) / p.size  # all that is possible
    value = min(max(value, low), high)
    ends = max(value - below, low), min(value + above, high)
    return Interval(value, *ends, int(drawn.sum()))


def _parts_of(
    p: FloatArray, drawn: BoolArray, label: FloatArray, log_odds: FloatArray
) -> list[Part]:
    """The parts of equal propensity, at least one of them drawn.

    A part without a verdict has the rate of all.
    """
    which = by_propensity(p)
    masks = [which == k for k in np.unique(which).tolist()]
    weight = np.zeros(p.size)
    for mask in masks:
        n, of_n = int(mask.sum()), int((mask & drawn).sum())
        if not of_n:
            continue
        # Outputs certain to be verified, but without a verdict, are missing at random.
        weight[mask] = n / of_n if p[mask][0] == 1.0 else 1.0 / p[mask]
    crude = float((weight * np.where(drawn, label, 0.0)).sum() / weight[drawn].sum())
    found = []
    for mask in masks:
        mine, n = mask & drawn, int(mask.sum())
        wrong = int(label[mine].sum())
        right = int(mine.sum()) - wrong
        low, high = wrong / n, (n - right) / n
        rate, labels = crude, 0.0
        if mine.any():
            rate, labels = _part(weight[mine], label[mine], log_odds[mine], log_odds[mask])
        found.append(Part(n, min(max(rate, low), high), labels))
    return found


def by_propensity(p: FloatArray) -> IntArray:
    """The number of each output's part, shape (N,): outputs certain to be verified are one part,
    the others are divided by propensity `p`, shape (N,)."""
    edges: list[float] = []
    values = np.sort(p[p < 1.0])
    i = 0
    while i < values.size:
        i = int(np.searchsorted(values, WITHIN * values[i], side="right"))
        edges += values[i : i + 1].tolist()
    return np.searchsorted([*edges, 1.0], p, side="right")


def _part(
    weight: FloatArray, label: FloatArray, log_odds: FloatArray, of_all: FloatArray
) -> tuple[float, float]:
    """Rate of one part from its drawn outputs (n,), and their effective number of labels;
    `of_all` (N,) are predictions."""
    total = float(weight.sum())
    # Where all agree exactly that: a rate an ulp below 1 has no finite log odds.
    rate = float(label[0]) if np.ptp(label) == 0.0 else float(weight @ label) / total
    # The variance of Σ v/p (y - m) is Σ (1-p)/p (y - m)²: of the drawn, each 1/p times.
    spread = weight * (weight - 1.0)
    if not spread.any():
        return rate, inf
    labels = total**2 / float(spread.sum())
    if 0.0 < label.sum() < label.size:
        predicted: FloatArray | float = rate  # without predictions
        if np.ptp(of_all) > 0.0:
            predicted, rate = _shifted(weight, label, log_odds, of_all)
        left = float(spread @ (label - predicted) ** 2)
        left /= float(spread.sum()) * rate * (1.0 - rate)  # of the variance without prediction
        n = total**2 / float(weight @ weight)
        labels *= (n + CAUTION) / (n * left + CAUTION)
    return rate, labels


def _shifted(
    weight: FloatArray, label: FloatArray, log_odds: FloatArray, of_all: FloatArray
) -> tuple[FloatArray, float]:
    """Predictions for the drawn outputs, shifted so that they agree with the labels, and the mean
    of those for all. Parameters as of `_part`."""
    from scipy.optimize import brentq
    from scipy.special import expit

    def misfit(shift: float) -> float:
        return float(weight @ (label - expit(log_odds + shift)))

    shift = brentq(misfit, -50.0, 50.0)
    return expit(log_odds + shift), float(expit(of_all + shift).mean())


def _interval(part: Part) -> Interval:
    if part.labels == 0.0:
        return Interval(part.rate, 0.0, 1.0)
    if part.labels == inf:
        return Interval(part.rate, part.rate, part.rate)
    return midp_interval(part.rate, part.labels)
