"""Regression whose coefficients are shrunk as far as the data justify: empirical Bayes.

Coefficients come in groups; those of a group are drawn from N(m, τ²) with a τ of the group's own,
estimated from the data (EM on the Laplace approximation; MacKay 1992, "Bayesian interpolation").
Where τ comes out small the group is pooled: stratum effects vanish where strata do not differ.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeVar

import numpy as np

from gatekeeper.stats import products
from gatekeeper.types import FloatArray

__all__ = ["FLIPPED", "Fit", "Group", "as_seen", "probabilities", "shrunk_fit"]

Family = Literal["logistic", "normal"]
FloatT = TypeVar("FloatT", float, FloatArray)
ROUNDS, CLOSE = 20, 1e-3  # at most; it ends earlier once no coefficient moves by more than this
HALVINGS, SLACK = 8, 1e-9  # of a step that lowers the posterior, by more than rounding
LEAST_NOISE = 1e-6  # least residual variance of a normal fit
FLIPPED = 0.1  # share of labels assumed to be flipped: the paper's noise


@dataclass(frozen=True, slots=True)
class Group:
    """Coefficients that are shrunk together towards `mean`."""

    columns: tuple[int, ...]  # of the design
    mean: float = 0.0
    variance: float = 1.0  # prior guess of τ²
    weight: float = 1.0  # of the guess, in coefficients; infinite: τ² is given


class Fit(NamedTuple):
    """Gaussian approximation of the posterior; 0 for columns in no group."""

    coefficients: FloatArray  # (d,), its mode
    covariance: FloatArray  # (d, d)
    variance: FloatArray  # τ² of each group, (G,)


def shrunk_fit(
    x: FloatArray,
    y: FloatArray,
    groups: Sequence[Group],
    family: Family,
    *,
    flipped: float = FLIPPED,
    start: FloatArray | None = None,
    count: FloatArray | None = None,
) -> Fit:
    """Fit coefficients to a design and responses. Deterministic; at most 20 rounds of O(n d²).

    Parameters
    ----------
    x, y
        Design (n, d) and responses (n,). Without rows the fit is the prior.
    groups
        Coefficients that are shrunk together.
    family
        "normal"; or "logistic": y in {0, 1}, and the log odds of the true label are modelled.
    flipped
        Share of the labels that are false, in [0, 0.5); for "logistic". It is not identifiable: it
        has the effect of a flatter slope.
    start
        First coefficients, (d,); default: the prior means.
    count
        How many labels each row stands for, (n,), for "logistic"; default: one.

    Returns
    -------
    Fit
    """
    columns = np.array([j for group in groups for j in group.columns])
    member = np.repeat(np.arange(len(groups)), [len(group.columns) for group in groups])
    mean = np.array([group.mean for group in groups])[member]
    guess = np.array([group.variance for group in groups])
    fixed = np.array([np.isinf(group.weight) for group in groups])
    weight = np.array([0.0 if np.isinf(group.weight) else group.weight for group in groups])
    size = np.bincount(member)
    width, x = x.shape[1], x.take(columns, axis=1)
    variance, w = guess.copy(), mean.copy() if start is None else start[columns]
    noise = max(float(y.var()), LEAST_NOISE) if y.size else 1.0
    moments = (products.of_columns(x, x), x.T @ y) if family == "normal" else None
    labels = _Labels(x, y, flipped, 1.0 if count is None else count)
    at = labels.at(w)
    for _ in range(ROUNDS):
        if moments is None:
            p, seen = at.p, at.seen
            slope = (1.0 - 2.0 * flipped) * p * (1.0 - p)  # d seen / d log odds
            per = labels.times * slope / (seen * (1.0 - seen))
            weighted = x * np.sqrt(slope * per)[:, None]
            # Fisher's; symmetric, so half the products
            precision = products.of_columns(weighted, weighted)
            right = x.T @ (per * (y - seen)) + precision @ w
        else:
            precision, right = (moment / noise for moment in moments)
        prior = 1.0 / variance[member]
        covariance = np.linalg.inv(precision + np.diag(prior))
        before, w = w, covariance @ (right + prior * mean)
        if moments is None:
            at = _ascend(labels, at, w, mean, prior)
            w = at.w
        elif y.size:
            rest = y - x @ w
            free = max(y.size - float(np.sum(covariance * moments[0])) / noise, 1.0)
            noise = max(float(rest @ rest) / free, LEAST_NOISE)
        spread = np.bincount(member, weights=(w - mean) ** 2 + np.diag(covariance))
        variance = np.where(fixed, guess, (spread + weight * guess) / (size + weight))
        if np.abs(w - before).max() < CLOSE:
            break
    fit = Fit(np.zeros(width), np.zeros((width, width)), variance)
    fit.coefficients[columns] = w
    fit.covariance[np.ix_(columns, columns)] = covariance
    return fit


def as_seen(p: FloatT, flipped: float = FLIPPED) -> FloatT:
    """Probability of an error label, from P(error): a share `flipped` of the labels is false."""
    return flipped + (1.0 - 2.0 * flipped) * p


def probabilities(
    x: FloatArray, w: FloatArray, flipped: float = FLIPPED
) -> tuple[FloatArray, FloatArray]:
    """P(error) and the probability of an error label, (n,) each."""
    p = 1.0 / (1.0 + np.exp(-np.clip(x @ w, -30.0, 30.0)))
    return p, as_seen(p, flipped)


class _Point(NamedTuple):
    """Coefficients, the two probabilities that they give each row, and the labels' likelihood."""

    w: FloatArray
    p: FloatArray  # as `probabilities` returns them
    seen: FloatArray
    likelihood: float  # its logarithm


class _Labels(NamedTuple):
    """What a logistic fit is made to."""

    x: FloatArray
    y: FloatArray
    flipped: float
    times: FloatArray | float  # how many labels each row stands for

    def at(self, w: FloatArray) -> _Point:
        p, seen = probabilities(self.x, w, self.flipped)
        labels = np.where(self.y == 1.0, seen, 1.0 - seen)
        return _Point(w, p, seen, float((self.times * np.log(labels)).sum()))


def _ascend(
    labels: _Labels, at: _Point, to: FloatArray, mean: FloatArray, prior: FloatArray
) -> _Point:
    """`to`, or a point between it and `at`, where the posterior density is no lower than at `at`.

    Labels that may be flipped carry little information once all of them agree; scoring steps then
    overshoot.
    """

    def log_density(point: _Point) -> float:
        return point.likelihood - 0.5 * float((prior * (point.w - mean) ** 2).sum())

    least = log_density(at) - SLACK
    for _ in range(HALVINGS):
        there = labels.at(to)
        if log_density(there) >= least:
            return there
        to = 0.5 * (at.w + to)
    return at
