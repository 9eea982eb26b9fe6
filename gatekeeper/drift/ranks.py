"""Conformal p-values: the rank of each value among all before it, in memory that does not grow."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gatekeeper.types import BoolArray, FloatArray

__all__ = ["RunningRanks"]

PER_BIN, BINS = 16, 64
MOST = PER_BIN * BINS  # values kept one by one; from then on only their number per bin


@cache
def _earlier(n: int) -> BoolArray:
    """(n, n), whether row i comes before column j."""
    return np.tri(n, k=-1, dtype=np.bool_).T.copy()


class RunningRanks:
    """The smoothed rank p of each value among all values before it, of several sequences at once.

    If the values of a sequence are exchangeable, its p are independent and uniform on (0, 1),
    whatever the values' distribution. That stays exact after the first 1,024 values, when only
    every sixteenth of them is kept: a new value falls between two neighbouring order statistics of
    m values with probability 1 / (m + 1), and the counts of the bins between those kept follow
    Pólya's urn.

    Parameters
    ----------
    k
        Number of sequences.

    References
    ----------
    Vovk, Gammerman, Shafer, "Algorithmic Learning in a Random World", 2nd edition, 2022, chapter 8:
    smoothed conformal p-values are independent and uniform.
    """

    def __init__(self, k: int) -> None:
        # Ascending; a complex number orders as the pair of a value and a draw to break ties.
        self._values = np.empty((k, 0), dtype=np.complex128)
        # (k, bins), of the bins between the values, once there are bins
        self._counts = np.empty((k, 0), dtype=np.int64)

    def __call__(self, values: FloatArray, ties: FloatArray, within: FloatArray) -> FloatArray:
        """The ranks p in (0, 1) of n more values of each sequence, one after the other.

        Parameters
        ----------
        values
            (k, n), without NaN.
        ties, within
            (k, n), draws from the uniform distribution on (0, 1): one orders equal values, the
            other places a value between its neighbours.
        """
        new = np.empty(values.shape, dtype=np.complex128)
        new.real, new.imag = values, ties
        at = np.array([kept.searchsorted(v) for kept, v in zip(self._values, new, strict=True)])
        n = values.shape[1]
        step, earlier = np.arange(n), _earlier(n)
        order = at if self._counts.size else new.argsort(axis=1).argsort(axis=1)
        order = order.astype(np.int16)  # several times as fast to compare
        other, own = order[:, :, None], order[:, None, :]
        below = ((other < own) & earlier).sum(axis=1, dtype=np.int16)
        if not self._counts.size:
            p: FloatArray = (at + below + within) / (self._values.shape[1] + 1 + step)
            self._insert(new)
            return p
        equal = ((other == own) & earlier).sum(axis=1, dtype=np.int16)
        row, upto = np.arange(len(at))[:, None], self._counts.cumsum(axis=1)
        here = self._counts[row, at]
        p = (upto[row, at] - here + below + within * (here + equal)) / (upto[:, -1:] + step)
        np.add.at(self._counts, (row, at), 1)
        return p

    def _insert(self, new: NDArray[np.complex128]) -> None:
        both = np.concatenate([self._values, new], axis=1)
        both.sort(axis=1, kind="stable")  # fast where most are in order
        self._values = both
        if (m := both.shape[1]) >= MOST:
            self._values = both[:, PER_BIN - 1 :: PER_BIN][:, : BINS - 1].copy()
            self._counts = np.full((len(both), BINS), PER_BIN)
            self._counts[:, -1] = m + 1 - PER_BIN * (BINS - 1)

    def state(self) -> list[Any]:
        """A snapshot of values that `json` takes, infinities aside."""
        return [self._values.real.tolist(), self._values.imag.tolist(), self._counts.tolist()]

    def restore(self, state: list[Any]) -> None:
        values, ties, counts = state
        self._values = np.empty(np.shape(values), dtype=np.complex128)
        self._values.real, self._values.imag = values, ties
        self._counts = np.array(counts, dtype=np.int64)
