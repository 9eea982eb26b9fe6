"""A histogram of durations with fixed bounds, as Prometheus has it."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate
from math import inf

__all__ = ["Histogram"]


class Histogram:
    """Counts of durations between fixed bounds.

    Parameters
    ----------
    bounds : sequence of float
        Seconds, ascending.

    Attributes
    ----------
    counts : list of int
        How many durations lie between one bound and the next; the last: above all bounds.
    total : float
        Sum of all durations, seconds.
    """

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = tuple(bounds)
        self.counts = [0] * (len(self.bounds) + 1)
        self.total = 0.0

    def add(self, seconds: float) -> None:
        """Count a duration."""
        self.counts[bisect_left(self.bounds, seconds)] += 1
        self.total += seconds

    def cumulative(self) -> tuple[tuple[float, int], ...]:
        """Each bound, infinity last, with the number of durations that are at most as long."""
        return tuple(zip((*self.bounds, inf), accumulate(self.counts), strict=True))
