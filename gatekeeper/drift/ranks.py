"""Conformal p-values: the rank of each value among all before it, in memory that does not grow."""

from __future__ import annotations

from bisect import bisect_left
from typing import Any

__all__ = ["RunningRank"]

PER_BIN, BINS = 16, 64
MOST = PER_BIN * BINS - 1  # values kept one by one; from then on only their number per bin


class RunningRank:
    """The smoothed rank p of each value among all values before it.

    If the values are exchangeable, the p are independent and uniform on (0, 1), whatever the
    values' distribution. That stays exact after the first 1,023 values, when only every sixteenth
    of them is kept: a new value falls between two neighbouring order statistics of m values with
    probability 1 / (m + 1), and the counts of the bins between those kept follow Pólya's urn.

    References
    ----------
    Vovk, Gammerman, Shafer, "Algorithmic Learning in a Random World", 2nd edition, 2022, chapter 8:
    smoothed conformal p-values are independent and uniform.
    """

    def __init__(self) -> None:
        self._values: list[tuple[float, float]] = []  # ascending, each with a draw to break ties
        self._counts: list[int] = []  # of the bins between the values, once there are bins

    def __call__(self, value: float, tie: float, within: float) -> float:
        """The value's rank p in (0, 1); the value then counts for later ones.

        Parameters
        ----------
        value
            Not NaN.
        tie, within
            Draws from the uniform distribution on (0, 1): one orders equal values, the other
            places the value between its neighbours.
        """
        at = bisect_left(self._values, (value, tie))
        if self._counts:
            p = (sum(self._counts[:at]) + within * self._counts[at]) / sum(self._counts)
            self._counts[at] += 1
            return p
        p = (at + within) / (len(self._values) + 1)
        self._values.insert(at, (value, tie))
        if len(self._values) == MOST:
            self._values = self._values[PER_BIN - 1 :: PER_BIN]
            self._counts = [PER_BIN] * BINS
        return p

    def state(self) -> list[Any]:
        """A snapshot of values that `json` takes, infinities aside."""
        return [[list(value) for value in self._values], list(self._counts)]

    @classmethod
    def restored(cls, state: list[Any]) -> RunningRank:
        self = cls()
        values, counts = state
        self._values = [(value, tie) for value, tie in values]
        self._counts = list(counts)
        return self
