"""P(error) and E[cost] of a candidate, fitted to the outcomes of those that were verified.

Signals, features and ex-ante cost enter by rank, so monotone changes of their scale hardly matter.
Strata are quartiles of ĉ: each may have slopes, and each half of one an error rate, of its own,
pooled as far as the labels do not distinguish them (`stats.shrinkage`). Only
features that labels justify are used, for P(error) (`stats.inclusion`).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import exp, inf, log, log1p, pi, sqrt
from operator import mul
from typing import Any, NamedTuple

import numpy as np

from gatekeeper.stats import products
from gatekeeper.stats.feature_terms import SLAB, FeatureTerms
from gatekeeper.stats.inclusion import inclusion
from gatekeeper.stats.rank_scale import PART, RankScale
from gatekeeper.stats.raw_table import Raw, RawTable
from gatekeeper.stats.shrinkage import Fit, Group, shrunk_fit
from gatekeeper.types import Candidate, FloatArray

__all__ = [
    "KNOWN",
    "RECENT",
    "ErrorModel",
    "Known",
    "KnownTable",
    "design_of",
    "has_signal",
    "raw_of",
]

RECENT, KNOWN = 1024, 2048  # candidates, and outcomes, to remember
STRATA, HALVES = 4, 8
SCALED = 512  # candidates of which features get their scale
LEAST_PROBABILITY = 0.1  # of an effect: columns of features below it are left out
MOST_COLUMNS = 48  # of features
FARTHEST = 30.0  # bound of log odds, and of log costs about the typical one

# Columns of the design: the intercept; u, the mean of the signals there are, and how each differs
# from it; r, ĉ by rank; positions; u² and r²; log ĉ. Then, one per stratum: slopes of u and of r;
# one per half: level.
ONE, U, D, R, T, UU, RR, LOG = 0, 1, (2, 3, 4), 5, 6, 7, 8, 9
SLOPE, TILT = (tuple(range(10 + i * STRATA, 10 + (i + 1) * STRATA)) for i in range(2))
LEVEL = tuple(range(TILT[-1] + 1, TILT[-1] + 1 + HALVES))
WIDTH = LEVEL[-1] + 1

# The prior: uncertain outputs are more often wrong; cost grows with ĉ, less than in proportion;
# nothing else matters unless labels show it.
ERROR = (
    Group((ONE,), variance=25.0, weight=inf),
    Group((U,), mean=0.7, variance=0.4, weight=inf),
    Group(D, variance=0.03),
    Group((R,), variance=0.05),
    Group((T,), variance=0.02),
    Group((UU, RR), variance=0.02),
    Group(LEVEL, variance=0.1),
    Group(SLOPE, variance=0.01),
    Group(TILT, variance=0.01),
)
COST = (
    Group((ONE,), variance=25.0, weight=inf),
    Group((LOG,), mean=0.5, variance=0.25, weight=inf),
    Group((U, *D, T), variance=0.02),
    Group(LEVEL, variance=0.02),
)


NO_TERMS = FeatureTerms([])


class Known(NamedTuple):
    """A candidate whose outcome is known."""

    raw: Raw
    error: int
    cost: float  # > 0; NaN unknown


class KnownTable(NamedTuple):
    """Candidates whose outcomes are known, as arrays."""

    raw: RawTable
    error: FloatArray  # (N,), 0 or 1
    cost: FloatArray  # (N,), > 0; NaN unknown

    @classmethod
    def of(cls, known: Iterable[Known]) -> KnownTable:
        known = list(known)
        return cls(
            RawTable.of([k.raw for k in known]),
            np.array([k.error for k in known], dtype=np.float64),
            np.array([k.cost for k in known], dtype=np.float64),
        )


def raw_of(candidate: Candidate) -> Raw:
    """The data of a candidate before verification."""
    h = candidate.signals
    size, positions = log(candidate.cost_estimate), log1p(h.n_tokens)
    return Raw(h.h1, h.h2, h.h3, size, positions, candidate.features)


def has_signal(candidate: Candidate) -> bool:
    """Whether the candidate has a signal or a feature, from which P(error) can be predicted."""
    h = candidate.signals
    return h.h1 == h.h1 or h.h2 == h.h2 or h.h3 == h.h3 or bool(candidate.features)


class ErrorModel:
    """P(error) and E[cost] of a candidate, fitted to known outcomes."""

    def __init__(
        self,
        scales: Sequence[RankScale],
        edges: Sequence[float],
        middle: float,
        weights: FloatArray,
        terms: FeatureTerms = NO_TERMS,
    ) -> None:
        """`edges` and `middle` are of log ĉ. `weights` (2 + m, WIDTH + columns of the terms) are
        coefficients: of the log odds, of log cost, and of errors of the log odds of one standard
        deviation in m independent directions."""
        self._terms = terms
        self._scales, self._edges, self._middle = list(scales), list(edges), middle
        self._weights = weights
        # A row of the design within a half is f @ own, f as in `__call__`.
        self._by_half = []
        for k in range(HALVES):
            of_features = weights.shape[1] - WIDTH
            own = np.zeros((LOG + 1 + of_features, weights.shape[1]))
            own[: LOG + 1, : LOG + 1] = np.eye(LOG + 1)
            own[LOG + 1 :, WIDTH:] = np.eye(of_features)
            own[ONE, LEVEL[k]] = 1.0
            own[ONE, [UU, RR]] = -1.0
            own[ONE, LOG] = -middle
            own[U, SLOPE[k // 2]] = own[R, TILT[k // 2]] = 1.0
            error, cost, *off = (weights @ own.T).tolist()
            self._by_half.append((error[: LOG + 1], cost[: LOG + 1], np.array(off)))
        self._effects = terms.effects(weights[0, WIDTH:])

    @classmethod
    def fit(cls, recent: RawTable, known: KnownTable, *, cautious: bool = False) -> ErrorModel:
        """Fit to outcomes.

        Parameters
        ----------
        recent
            Candidates that set the scale of signals and costs, at least one.
        known
            Candidates with known outcomes.
        cautious
            Whether P(error) is its mean over the posterior instead of its value at the mode, so
            that a poorly known one is nearer to even odds. The mean of σ(a) is about
            σ(a / √(1 + π s² / 8)), where the log odds a have variance s².

        References
        ----------
        MacKay (1992), "The evidence framework applied to classification networks".
        """
        raw, y, cost = known
        scales = [RankScale.of(column) for column in recent.rows.T]
        sizes = recent.rows[:, 3]
        edges = np.quantile(sizes, np.arange(1, HALVES) / HALVES).tolist()
        middle = float(sizes.mean())
        x = design_of(scales, edges, middle, raw.rows)
        paid = cost > 0.0
        cost, of_paid = cost[paid], x[paid]
        level = float(np.log(cost).mean()) if cost.size else 0.0
        log_cost = shrunk_fit(of_paid, np.log(cost) - level, COST, "normal").coefficients
        log_cost[ONE] += level
        if cost.size:  # the mean of exp is not exp of the mean
            log_cost[ONE] += log(float(cost.sum() / np.exp(of_paid @ log_cost).sum()))
        fitted = shrunk_fit(x, y, ERROR, "logistic")
        every = -(-len(recent.rows) // SCALED)
        terms = FeatureTerms.of_table(recent.names, recent.features[::every])
        if terms:
            terms, fitted = _with_features(x, y, fitted, terms, raw)
        error, covariance, _ = fitted
        weights = [error, np.pad(log_cost, (0, error.size - WIDTH))]
        if cautious:
            # Not by eigenvectors, for which OpenBLAS takes threads (`products`).
            free = np.flatnonzero(np.diag(covariance))
            off = np.zeros((free.size, error.size))
            off[:, free] = np.linalg.cholesky(covariance[np.ix_(free, free)]).T
            weights += list(off)
        return cls(scales, edges, middle, np.array(weights), terms)

    def __call__(self, raw: Raw) -> tuple[float, float, int]:
        """P(error) in [0, 1], E[cost] > 0, stratum."""
        h1, h2, h3, size, positions, features = raw
        s1, s2, s3, s4, s5 = self._scales
        z1, z2, z3, r, t = s1(h1), s2(h2), s3(h3), s4(size), s5(positions)
        has1, has2, has3 = z1 == z1, z2 == z2, z3 == z3
        total = (z1 if has1 else 0.0) + (z2 if has2 else 0.0) + (z3 if has3 else 0.0)
        u = total / (has1 + has2 + has3 or 1)
        d1, d2, d3 = z1 - u if has1 else 0.0, z2 - u if has2 else 0.0, z3 - u if has3 else 0.0
        k = bisect_left(self._edges, size)
        error, cost, off = self._by_half[k]
        f = [1.0, u, d1, d2, d3, r, t, u * u, r * r, size]
        odds = sum(map(mul, error, f))
        for name, parts, pieces, line, curve, absent in self._effects:
            v = features.get(name)
            if v is None:
                odds += absent
                continue
            v *= PART
            v0, z, rise = pieces[bisect_right(parts, v)]
            z += rise * (v - v0)
            odds += z * (line + z * curve) - curve
        if off.size:
            f += self._terms(features)
            by = off @ f
            odds /= sqrt(1.0 + pi / 8.0 * float(by @ by))
        return 1.0 / (1.0 + exp(-max(odds, -FARTHEST))), exp(sum(map(mul, cost, f))), k // 2

    def of_rows(self, table: RawTable) -> tuple[FloatArray, FloatArray]:
        """P(error) and E[cost] of many candidates, (n,) each."""
        x = design_of(self._scales, self._edges, self._middle, table.rows)
        x = np.hstack([x, self._terms.of_rows(table.names, table.features)])
        odds, log_cost, *off = products.of_rows(x, self._weights).T
        odds /= np.sqrt(1.0 + pi / 8.0 * sum(o * o for o in off))
        return 1.0 / (1.0 + np.exp(-np.maximum(odds, -FARTHEST))), np.exp(log_cost)

    def state(self) -> list[Any]:
        scales = [[scale.values, scale.scores] for scale in self._scales]
        return [scales, self._edges, self._middle, self._weights.tolist(), self._terms.state()]

    @classmethod
    def restored(cls, state: Sequence[Any]) -> ErrorModel:
        scales, edges, middle, weights, terms = state
        of = [RankScale(values, scores) for values, scores in scales]
        return cls(of, edges, middle, np.array(weights), FeatureTerms.restored(terms))


def design_of(
    scales: Sequence[RankScale], edges: Sequence[float], middle: float, rows: FloatArray
) -> FloatArray:
    """The design (n, WIDTH) of rows of a `RawTable`, without columns of features."""
    z = np.column_stack([scale.of_rows(v) for scale, v in zip(scales, rows.T, strict=True)])
    h, size = z[:, :3], z[:, 3:4]
    has = ~np.isnan(h)
    u = np.where(has, h, 0.0).sum(axis=1, keepdims=True)
    u /= np.maximum(has.sum(axis=1, keepdims=True), 1)
    half = np.searchsorted(edges, rows[:, 3])[:, None]
    level, own = half == np.arange(HALVES), half // 2 == np.arange(STRATA)
    log_estimate = rows[:, 3:4] - middle
    plain = (np.ones_like(u), u, np.where(has, h - u, 0.0), z[:, 3:], u * u - 1, size**2 - 1)
    return np.hstack([*plain, log_estimate, own * u, own * size, level])


def _with_features(
    x: FloatArray,
    y: FloatArray,
    fitted: Fit,
    terms: FeatureTerms,
    raw: RawTable,
) -> tuple[FeatureTerms, Fit]:
    """The terms that labels justify beside the design x (n, WIDTH), and the fit with them."""
    more = terms.of_rows(raw.names, raw.features)
    slab = SLAB[terms.kinds]
    probability, variance, mean = inclusion(
        x, y, fitted, more, slab=slab, kinds=terms.kinds, features=len(terms)
    )
    kept = probability > LEAST_PROBABILITY
    kept[np.argsort(-probability)[MOST_COLUMNS:]] = False
    if not kept.any():
        return NO_TERMS, fitted
    # The other coefficients keep the variances that they have without features, to save rounds.
    groups = [
        replace(group, variance=v, weight=inf)
        for group, v in zip(ERROR, fitted.variance.tolist(), strict=True)
    ]
    groups += [
        Group((WIDTH + i,), variance=v, weight=inf) for i, v in enumerate(variance[kept].tolist())
    ]
    x = np.hstack([x, more[:, kept]])
    start = np.concatenate([fitted.coefficients, mean[kept]])
    return terms.only(kept), shrunk_fit(x, y, groups, "logistic", start=start)
