"""Which further columns a logistic regression should use, so that noise among them costs little.

Each coefficient is 0, or drawn from N(0, τ²): a spike and a slab. Its score statistic beside the
columns that are already used gives the Bayes factor of the slab. The share of slabs is estimated
from all columns of a kind, with a Beta prior that expects one useful feature of any number.
`benchmarks/features.py` measures what 20 features of noise cost.

References
----------
Mitchell and Beauchamp (1988), "Bayesian variable selection in linear regression": spike and slab.
Scott and Berger (2010), "Bayes and empirical-Bayes multiplicity adjustment in the
variable-selection problem": the Beta prior.
"""

from __future__ import annotations

from math import log

import numpy as np

from gatekeeper.stats import products
from gatekeeper.stats.shrinkage import FLIPPED, Fit, probabilities
from gatekeeper.types import FloatArray, IntArray

__all__ = ["inclusion"]

ROUNDS = 10  # of the estimate of the share
LEAST = 1e-9  # information on a coefficient


def inclusion(
    x: FloatArray,
    y: FloatArray,
    fitted: Fit,
    more: FloatArray,
    *,
    slab: FloatArray,
    kinds: IntArray,
    features: int,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Probability that each further column has an effect, and the variance for its coefficient.

    Parameters
    ----------
    x, y, fitted
        Design (n, d), labels (n,), and the logistic fit of one to the other.
    more
        The further columns, (n, m).
    slab
        τ² of each, (m,).
    kinds
        Kind of each column, (m,): columns of one kind share their share of slabs.
    features
        How many features the columns are from.

    Returns
    -------
    probability
        Posterior probability of the slab, (m,), in [0, 1].
    variance
        (m,), above 0. A ridge with it gives the coefficient's mean over spike and slab.
    mean
        That mean, (m,), as if the column were the only further one: where to begin a fit.
    """
    p, seen = probabilities(x, fitted.coefficients)
    slope = (1.0 - 2.0 * FLIPPED) * p * (1.0 - p)
    per = slope / (seen * (1.0 - seen))
    score = more.T @ (per * (y - seen))
    weighted = more * (slope * per)[:, None]
    shared = products.of_columns(x, weighted)
    information = (weighted * more).sum(axis=0) - (shared * (fitted.covariance @ shared)).sum(0)
    information = np.maximum(information, LEAST)
    ratio = information * slab  # of the slab's variance to that of the estimate
    shrunk = ratio / (1.0 + ratio)
    evidence = 0.5 * (score**2 / information * shrunk - np.log1p(ratio))
    probability = np.empty(kinds.size)
    for kind in np.unique(kinds):
        mine = kinds == kind
        share = 1.0 / (1.0 + features)
        for _ in range(ROUNDS):
            odds = evidence[mine] + log(share / (1.0 - share))
            slabs = 1.0 / (1.0 + np.exp(-np.clip(odds, -50.0, 50.0)))
            share = (1.0 + float(slabs.sum())) / (1.0 + features + int(mine.sum()))
        probability[mine] = slabs
    kept = probability * shrunk
    variance = np.maximum(kept / ((1.0 - kept) * information), LEAST)
    return probability, variance, kept * score / information
