"""A value as the normal score of its rank: its unit has no effect. Other monotone changes of its
scale have little, as values between two quantiles are placed in proportion."""

from __future__ import annotations

from bisect import bisect_right
from statistics import NormalDist

import numpy as np

from gatekeeper.types import FloatArray

__all__ = ["PART", "RankScale"]

SCORES = np.linspace(-2.8, 2.8, 25)  # equally dense in the tails, which matter for small budgets
LEVELS = np.array([NormalDist().cdf(score) for score in SCORES.tolist()])
PART = 0.0625  # of a value: differences of such parts, and their products with scores, are finite
LEAST = 1e-290  # of such a part: closer to 0 is 0, so that the score's rise per unit is finite


class RankScale:
    """A value as the normal score of its rank among those seen: linear between quantiles, constant
    beyond them. NaN stays NaN; a value that never varied has the score 0.

    Attributes
    ----------
    values, scores
        The quantiles, ascending, and the score of each.
    parts
        `values` times `PART`.
    """

    __slots__ = ("parts", "scores", "values")

    def __init__(self, values: list[float], scores: list[float]) -> None:
        self.values, self.scores = values, scores
        self.parts = [v * PART for v in values]

    @classmethod
    def of(cls, column: FloatArray) -> RankScale:
        """The scale of the values (n,) seen so far, NaN left out."""
        finite = column[np.isfinite(column)]
        if not finite.size:
            return cls([0.0], [0.0])
        parts = np.quantile(finite * PART, LEVELS)
        parts[np.abs(parts) < LEAST] = 0.0
        values, at = np.unique(parts / PART, return_inverse=True)
        scores = np.bincount(at, weights=SCORES) / np.bincount(at)  # equal values share a score
        return cls(values.tolist(), scores.tolist())

    def __call__(self, v: float) -> float:
        parts, scores = self.parts, self.scores
        part = v * PART
        i = bisect_right(parts, part)
        if 0 < i < len(parts):
            a, b = parts[i - 1], scores[i - 1]
            return b + (part - a) * (scores[i] - b) / (parts[i] - a)
        return v if v != v else scores[0] if i == 0 else scores[-1]

    def of_rows(self, column: FloatArray) -> FloatArray:
        """The scores of many values at once, (n,)."""
        z = np.interp(column * PART, self.parts, self.scores)
        return np.where(np.isnan(column), np.nan, z)
