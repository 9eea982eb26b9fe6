"""A value as the normal score of its rank: monotone changes of its scale have no effect."""

from __future__ import annotations

from bisect import bisect_right
from statistics import NormalDist

import numpy as np

from gatekeeper.types import FloatArray

__all__ = ["RankScale"]

SCORES = np.linspace(-2.8, 2.8, 25)  # equally dense in the tails, which matter for small budgets
LEVELS = np.array([NormalDist().cdf(score) for score in SCORES.tolist()])


class RankScale:
    """A value as the normal score of its rank among those seen: linear between quantiles, constant
    beyond them. NaN stays NaN; a value that never varied has the score 0."""

    __slots__ = ("scores", "values")

    def __init__(self, values: list[float], scores: list[float]) -> None:
        self.values, self.scores = values, scores

    @classmethod
    def of(cls, column: FloatArray) -> RankScale:
        """The scale of the values (n,) seen so far, NaN left out."""
        finite = column[np.isfinite(column)]
        if not finite.size:
            return cls([0.0], [0.0])
        values, at = np.unique(np.quantile(finite, LEVELS), return_inverse=True)
        scores = np.bincount(at, weights=SCORES) / np.bincount(at)  # equal values share a score
        return cls(values.tolist(), scores.tolist())

    def __call__(self, v: float) -> float:
        values, scores = self.values, self.scores
        i = bisect_right(values, v)
        if 0 < i < len(values):
            a, b = values[i - 1], scores[i - 1]
            return b + (v - a) * (scores[i] - b) / (values[i] - a)
        return v if v != v else scores[0] if i == 0 else scores[-1]

    def of_rows(self, column: FloatArray) -> FloatArray:
        """The scores of many values at once, (n,)."""
        z = np.interp(column, self.values, self.scores)
        return np.where(np.isnan(column), np.nan, z)
