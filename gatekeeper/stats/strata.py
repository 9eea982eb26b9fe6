"""Cost strata: the partition within which CST compares (paper, Section "Structural Partitioning
Without Learning")."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Self

import numpy as np

from gatekeeper.errors import BadInputError
from gatekeeper.types import FloatArray, IntArray

__all__ = ["MOST_STRATA", "CostStrata", "strata_of"]

MOST_STRATA = 1000  # their edges are quantiles of the costs in the warm-up


class CostStrata:
    """K strata of the ex-ante cost ĉ. Once fitted, their edges are fixed.

    The edges are the 1/K … (K-1)/K quantiles of the given costs; stratum k(ĉ) = #{j : edge_j < ĉ},
    in 0 … K-1. Equal costs all fall into stratum 0, and with K = 1 any costs do.

    Parameters
    ----------
    k
        K, at least 1.

    Raises
    ------
    BadInputError
        For fewer than one stratum.
    """

    __slots__ = ("_edges", "_k")

    def __init__(self, k: int) -> None:
        if k < 1:
            raise BadInputError(f"k={k!r}: there must be at least one stratum")
        self._k = k
        self._edges: list[float] | None = None

    @property
    def fitted(self) -> bool:
        return self._edges is not None

    def fit(self, costs: Sequence[float]) -> Self:
        """Set the edges by these costs, of which there is at least one."""
        self._edges = np.quantile(costs, np.arange(1, self._k) / self._k).tolist()
        return self

    def of(self, cost_estimate: float) -> int:
        """The stratum of a cost."""
        assert self._edges is not None
        return bisect_left(self._edges, cost_estimate)

    def of_all(self, cost_estimates: FloatArray) -> IntArray:
        """The stratum of each cost, (N,)."""
        assert self._edges is not None
        return np.searchsorted(np.array(self._edges), cost_estimates, side="left")

    def state(self) -> list[float] | None:
        """The edges, as `json` takes them; None before they are fitted."""
        return self._edges

    def restore(self, state: list[float] | None) -> None:
        self._edges = None if state is None else list(state)


def strata_of(cost_estimates: FloatArray, k: int, *, warmup: int) -> IntArray:
    """The stratum of each candidate of a stream, by the quantiles of its warm-up: (N,).

    Parameters
    ----------
    cost_estimates
        ĉ (N,), in stream order.
    k
        K, at least 1.
    warmup
        How many candidates come first.
    """
    return CostStrata(k).fit(cost_estimates[:warmup].tolist()).of_all(cost_estimates)
