"""The data tested for drift before verification: ranks of signals and sizes of outputs."""

from __future__ import annotations

from math import nan
from statistics import NormalDist
from typing import Any

import numpy as np

from gatekeeper.drift.ranks import RunningRanks
from gatekeeper.types import FloatArray

__all__ = ["STATISTICS", "ScoreRanks"]

STATISTICS = ("h1", "h2", "h3", "uncertainty", "the cost estimate", "the length")
START = 64  # outputs that fix the scale of the signals' mean; nothing is tested before
MISSING = -1e300  # a value that an output lacks: a category of its own, at the lower end
# Φ⁻¹ by interpolation, for ranks from 1e-6 to 1 - 1e-6: off by 6e-5 at most, in a tenth of the time
# of exact scores one by one.
_SCORES = np.linspace(-4.75, 4.75, 1001)
_RANKS = np.array([NormalDist().cdf(score) for score in _SCORES.tolist()])
_NONE = np.empty((0, len(STATISTICS)))


class ScoreRanks:
    """Six statistics of each output as normal scores of their ranks among earlier outputs.

    h1, h2, h3, the mean of them on the scale of the first 64 outputs, ĉ and the number of
    positions. While outputs are exchangeable each is a sequence of independent N(0, 1) variables.

    Parameters
    ----------
    seed
        Seed of the draws that break ties.
    """

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng((seed, 4))  # other draws than a policy's, gate's, guard's
        self._first: list[list[float]] = []  # signals of the outputs that fix the scale
        self._scale: list[FloatArray] = []  # the same by signal, ascending, once there are enough
        self._ranks = RunningRanks(len(STATISTICS))

    def __call__(self, outputs: FloatArray) -> FloatArray:
        """Normal scores of n more outputs, (n, 6), in the order of `STATISTICS`.

        There are none, (0, 6), for the first outputs: until a call ends with 64 or more.

        Parameters
        ----------
        outputs
            (n, 5): h1, h2, h3, NaN where missing; ĉ; positions.
        """
        h = outputs[:, :3]
        if not self._scale:
            self._first += h.tolist()
            self._fix_scale()
            return _NONE
        values = np.empty((len(STATISTICS), len(outputs)))
        values[:3], values[4:] = h.T, outputs[:, 3:].T
        missing = np.isnan(values[:3])
        at = [scale.searchsorted(v) for scale, v in zip(self._scale, h.T, strict=True)]
        known = ~(missing | self._unscaled)
        number = known.sum(axis=0)
        total = (known * at / self._size).sum(axis=0)
        values[3] = np.where(number, total / np.maximum(number, 1), MISSING)
        values[:3][missing] = MISSING
        p = self._ranks(values, *self._rng.random((2, *values.shape)))
        return np.interp(p.T, _RANKS, _SCORES)

    def _fix_scale(self) -> None:
        if len(self._first) >= START:
            columns = np.array(self._first).T
            self._scale = [np.sort(column[column == column]) for column in columns]
            size = np.array([[scale.size] for scale in self._scale])
            self._unscaled, self._size = size == 0, np.maximum(size, 1)

    def state(self) -> dict[str, Any]:
        """A snapshot of values that `json` takes; None where a signal is missing."""
        first = [[v if v == v else None for v in row] for row in self._first]
        rng = dict(self._rng.bit_generator.state)
        return {"first": first, "ranks": self._ranks.state(), "rng": rng}

    def restore(self, state: dict[str, Any]) -> None:
        self._first = [[nan if v is None else v for v in row] for row in state["first"]]
        self._scale = []
        self._fix_scale()
        self._ranks.restore(state["ranks"])
        self._rng.bit_generator.state = state["rng"]
