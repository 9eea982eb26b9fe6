"""Cost strata: the partition within which CST compares (paper, Section "Structural Partitioning
Without Learning")."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

import numpy as np

from gatekeeper.errors import BadInputError
from gatekeeper.types import FloatArray, IntArray

__all__ = ["CostStrata"]


class CostStrata:
    """K strata of the ex-ante cost ĉ with fixed edges.

    The edges are the 1/K … (K-1)/K quantiles of the given costs; stratum k(ĉ) = #{j : edge_j < ĉ},
    in 0 … K-1. Equal costs all fall into stratum 0.
    """

    __slots__ = ("edges",)

    def __init__(self, costs: Sequence[float], k: int) -> None:
        if k < 1:
            raise BadInputError(f"k={k!r}: there must be at least one stratum")
        self.edges: list[float] = np.quantile(costs, np.arange(1, k) / k).tolist()

    @classmethod
    def from_edges(cls, edges: Sequence[float]) -> CostStrata:
        """Strata with these K-1 ascending edges."""
        strata = cls.__new__(cls)
        strata.edges = list(edges)
        return strata

    def __call__(self, cost_estimate: float) -> int:
        return bisect_left(self.edges, cost_estimate)

    def of(self, cost_estimates: FloatArray) -> IntArray:
        """The stratum of each cost, (N,)."""
        return np.searchsorted(np.array(self.edges), cost_estimates, side="left")
