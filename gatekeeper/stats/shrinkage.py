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

from gatekeeper.types import FloatArray

__all__ = ["FLIPPED", "Fit", "Group", "as_seen", "chances", "shrunk_fit"]

Family = Literal["logistic", "normal"]
ChanceT = TypeVar("ChanceT", float, FloatArray)
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
) -> Fit:
    """Coefficients for design x (n, d) and responses y (n,).

    "logistic" takes y in {0, 1} and gives log odds of the true label, a share `flipped` of those
    seen being the other one. (The share is not identifiable: it looks like a flatter slope.)
    Without rows the prior comes back. `start` (d,) are coefficients to begin with; default: the
    prior means.
    Deterministic; at most 20 rounds of O(n d²).
    """
    columns = np.array([j for group in groups for j in group.columns])
    member = np.repeat(np.arange(len(groups)), [len(group.columns) for group in groups])
    mean = np.array([group.mean for group in groups])[member]
    guess = np.array([group.variance for group in groups])
    fixed = np.array([np.isinf(group.weight) for group in groups])
    weight = np.array([0.0 if np.isinf(group.weight) else group.weight for group in groups])
    size = np.bincount(member)
    width, x = x.shape[1], x[:, columns]
    variance, w = guess.copy(), mean.copy() if start is None else start[columns]
    noise = max(float(y.var()), LEAST_NOISE) if y.size else 1.0
    gram, xy = x.T @ x, x.T @ y
    at = _Place(w, *chances(x, w, flipped))
    for _ in range(ROUNDS):
        if family == "logistic":
            _, p, seen = at
            slope = (1.0 - 2.0 * flipped) * p * (1.0 - p)  # of what is seen, by log odds
            per = slope / (seen * (1.0 - seen))
            weighted = x * np.sqrt(slope * per)[:, None]
            precision = weighted.T @ weighted  # Fisher's; symmetric, so half the products
            right = x.T @ (per * (y - seen)) + precision @ w
        else:
            precision, right = gram / noise, xy / noise
        prior = 1.0 / variance[member]
        covariance = np.linalg.inv(precision + np.diag(prior))
        before, w = w, covariance @ (right + prior * mean)
        if family == "logistic":
            at = _uphill(x, y, at, w, mean, prior, flipped)
            w = at.w
        spread = np.bincount(member, weights=(w - mean) ** 2 + np.diag(covariance))
        variance = np.where(fixed, guess, (spread + weight * guess) / (size + weight))
        if family == "normal" and y.size:
            rest = y - x @ w
            free = max(y.size - float(np.sum(covariance * gram)) / noise, 1.0)
            noise = max(float(rest @ rest) / free, LEAST_NOISE)
        if np.abs(w - before).max() < CLOSE:
            break
    fit = Fit(np.zeros(width), np.zeros((width, width)), variance)
    fit.coefficients[columns] = w
    fit.covariance[np.ix_(columns, columns)] = covariance
    return fit


def as_seen(p: ChanceT, flipped: float = FLIPPED) -> ChanceT:
    """Probability that the label is an error, from P(error): some labels are wrong."""
    return flipped + (1.0 - 2.0 * flipped) * p


def chances(
    x: FloatArray, w: FloatArray, flipped: float = FLIPPED
) -> tuple[FloatArray, FloatArray]:
    """P(error) and the chance that an error is seen, (n,) each."""
    p = 1.0 / (1.0 + np.exp(-np.clip(x @ w, -30.0, 30.0)))
    return p, as_seen(p, flipped)


class _Place(NamedTuple):
    """Coefficients, and what they give each row."""

    w: FloatArray
    p: FloatArray  # as of `chances`
    seen: FloatArray


def _uphill(
    x: FloatArray,
    y: FloatArray,
    at: _Place,
    to: FloatArray,
    mean: FloatArray,
    prior: FloatArray,
    flipped: float,
) -> _Place:
    """`to`, or as far towards it as the posterior density does not fall.

    Labels that may be flipped carry little information once all of them agree; scoring steps then
    overshoot.
    """

    def log_density(place: _Place) -> float:
        likelihood = np.log(np.where(y == 1.0, place.seen, 1.0 - place.seen)).sum()
        return float(likelihood - 0.5 * (prior * (place.w - mean) ** 2).sum())

    least = log_density(at) - SLACK
    for _ in range(HALVINGS):
        there = _Place(to, *chances(x, to, flipped))
        if log_density(there) >= least:
            return there
        to = 0.5 * (at.w + to)
    return at
