"""The quantile of everything seen so far, in O(log n) per new value."""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heapify, heappop, heappush
from math import floor, isnan

from gatekeeper.errors import BadInputError

__all__ = ["RunningQuantile"]


class RunningQuantile:
    """Equals `numpy.quantile(values, q)` (linear interpolation) to the last bit.

    Two heaps split the values at the order statistic just below the quantile: `_low` holds the
    floor((n-1)q) + 1 smallest (negated, so that its root is the largest), `_high` the others.
    """

    __slots__ = ("_high", "_low", "q")

    def __init__(self, q: float, values: Iterable[float] = ()) -> None:
        """`q` in [0, 1]. Building from n values costs O(n log n)."""
        if not 0.0 <= q <= 1.0:
            raise BadInputError(f"q={q!r}: a quantile lies in [0, 1]")
        self.q = q
        ordered = sorted(values)
        if any(map(isnan, ordered)):
            raise BadInputError("a value is nan, which has no rank: leave it out")
        cut = floor((len(ordered) - 1) * q) + 1 if ordered else 0
        self._low = [-v for v in ordered[:cut]]
        self._high = ordered[cut:]
        heapify(self._low)

    def __len__(self) -> int:
        return len(self._low) + len(self._high)

    def add(self, value: float) -> None:
        """Raises BadInputError for NaN, which has no rank."""
        if isnan(value):
            raise BadInputError("value=nan, which has no rank: leave it out")
        low, high = self._low, self._high
        if low and value < -low[0]:
            heappush(low, -value)
        else:
            heappush(high, value)
        cut = floor((len(low) + len(high) - 1) * self.q) + 1
        if len(low) < cut:
            heappush(low, -heappop(high))
        elif len(low) > cut:
            heappush(high, -heappop(low))

    def value(self) -> float:
        """The quantile; NaN while there are no values."""
        low, high = self._low, self._high
        if not low:
            return float("nan")
        a = -low[0]
        if not high:
            return a
        position = (len(low) + len(high) - 1) * self.q
        t = position - floor(position)
        b = high[0]
        # numpy interpolates from the nearer end, which decides the last bit
        return a + (b - a) * t if t < 0.5 else b - (b - a) * (1.0 - t)

    def values(self) -> list[float]:
        """All values, ascending: what rebuilds an equal one."""
        return sorted([-v for v in self._low] + self._high)
