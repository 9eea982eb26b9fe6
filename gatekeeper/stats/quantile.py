"""The quantile of all values so far: after each new one, or for a whole column at once."""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heapify, heappush, heappushpop
from math import floor, isnan

import numpy as np

from gatekeeper.errors import BadInputError
from gatekeeper.types import FloatArray

__all__ = ["RunningQuantile", "expanding_quantile"]


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
        if value != value:
            raise BadInputError("value=nan, which has no rank: leave it out")
        low, high = self._low, self._high
        cut = int((len(low) + len(high)) * self.q) + 1  # of the values with this one
        full = len(low) == cut
        if low and value < -low[0]:
            if full:
                heappush(high, -heappushpop(low, -value))
            else:
                heappush(low, -value)
        elif full:
            heappush(high, value)
        else:
            heappush(low, -heappushpop(high, value))

    def value(self) -> float:
        """The quantile; NaN while there are no values."""
        low, high = self._low, self._high
        if not low:
            return float("nan")
        a = -low[0]
        if not high:
            return a
        position = (len(low) + len(high) - 1) * self.q
        t = position - int(position)
        b = high[0]
        # numpy interpolates from the nearer end, which decides the last bit
        return a + (b - a) * t if t < 0.5 else b - (b - a) * (1.0 - t)

    def values(self) -> list[float]:
        """All values, ascending: `RunningQuantile(q, values)` equals this object."""
        return sorted([-v for v in self._low] + self._high)


def expanding_quantile(values: FloatArray, q: float) -> FloatArray:
    """Quantile of values[: t + 1] for every t, as `numpy.quantile` to the last bit: (n,).

    The same results as `RunningQuantile` after each value, in O(n log n). This is the fast path of
    replays: benchmarks/replay.py measures it, tests/stats/test_quantile.py compares it with numpy.
    It works backwards: a linked list holds all values in ascending order, each step removes the
    newest, and the order statistic sought is at most one place from the previous one.
    """
    n = values.size
    if not n:
        return np.empty(0)
    order = np.argsort(values, kind="stable")
    place = np.empty(n, dtype=np.intp)
    place[order] = np.arange(n)
    position = np.arange(n) * q
    index = np.floor(position).astype(np.intp)
    following, preceding = list(range(1, n + 1)), list(range(-1, n - 1))
    below, above = [0] * n, [0] * n  # places of the two order statistics
    p = int(index[-1])
    wanted = [*index.tolist(), 0]
    for t, newest in zip(range(n - 1, -1, -1), reversed(place.tolist()), strict=True):
        below[t], above[t] = p, following[p]
        left, right = preceding[newest], following[newest]
        if left >= 0:
            following[left] = right
        if right < n:
            preceding[right] = left
        same = wanted[t - 1] == wanted[t]  # else one place lower
        if newest == p:
            p = right if same else left
        elif newest < p:
            p = following[p] if same else p
        elif not same:
            p = preceding[p]
    ascending = values[order]
    a = ascending[below]
    last = np.array(above) == n
    b = np.where(last, a, ascending[np.where(last, 0, above)])
    t = position - index
    # numpy interpolates from the nearer end, which decides the last bit
    result: FloatArray = np.where(t < 0.5, a + (b - a) * t, b - (b - a) * (1.0 - t))
    return result
