"""What a drift test sees of an output before verification: its signals and sizes, as ranks."""

from __future__ import annotations

from bisect import bisect_left
from statistics import NormalDist
from typing import Any

import numpy as np

from gatekeeper.drift.ranks import RunningRank
from gatekeeper.stats.error_model import Raw

__all__ = ["STATISTICS", "ScoreRanks"]

STATISTICS = ("h1", "h2", "h3", "uncertainty", "the cost estimate", "the length")
START = 50  # outputs that fix the scale of the signals' mean; nothing is tested before
MISSING = -1e300  # a value that an output lacks: a category of its own, at the lower end
_INVERSE = NormalDist().inv_cdf
CLOSEST = 1e-6  # of a rank to 0 and to 1


class ScoreRanks:
    """Six statistics of each output as normal scores of their ranks among earlier outputs.

    h1, h2, h3, the mean of them on the scale of the first 50 outputs, ĉ and the number of
    positions. While outputs are exchangeable each is a sequence of independent N(0, 1) variables.

    Parameters
    ----------
    seed
        Of the draws that break ties.
    """

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng((seed, 4))  # other draws than a policy's, gate's, guard's
        self._scale: list[list[float]] = [[], [], []]  # signals of the first outputs, ascending
        self._seen = 0
        self._ranks = [RunningRank() for _ in STATISTICS]

    def __call__(self, raw: Raw) -> list[float] | None:
        """Normal scores in the order of `STATISTICS`; None for the first 50 outputs."""
        h = raw[:3]
        self._seen += 1
        if self._seen <= START:
            for values, v in zip(self._scale, h, strict=True):
                if v == v:
                    values.insert(bisect_left(values, v), v)
            return None
        at = [
            bisect_left(values, v) / len(values)
            for values, v in zip(self._scale, h, strict=True)
            if v == v and values
        ]
        uncertainty = sum(at) / len(at) if at else MISSING
        row = [v if v == v else MISSING for v in (*h, uncertainty, raw.size, raw.positions)]
        draws = self._rng.random(2 * len(row)).tolist()
        scores = []
        for rank, v, tie, within in zip(self._ranks, row, draws[::2], draws[1::2], strict=True):
            p = rank(v, tie, within)
            scores.append(_INVERSE(min(max(p, CLOSEST), 1.0 - CLOSEST)))
        return scores

    def state(self) -> dict[str, Any]:
        """A snapshot of values that `json` takes."""
        return {
            "seen": self._seen,
            "scale": [list(values) for values in self._scale],
            "ranks": [rank.state() for rank in self._ranks],
            "rng": dict(self._rng.bit_generator.state),
        }

    def restore(self, state: dict[str, Any]) -> None:
        self._seen = state["seen"]
        self._scale = [list(values) for values in state["scale"]]
        self._ranks = [RunningRank.restored(rank) for rank in state["ranks"]]
        self._rng.bit_generator.state = state["rng"]
