"""The thresholds of Threshold and of CST for a whole stream at once."""

from __future__ import annotations

import numpy as np

from gatekeeper.stats.quantile import expanding_quantile
from gatekeeper.types import FloatArray, IntArray

__all__ = ["stratified_thresholds", "thresholds"]


def thresholds(z: FloatArray, q: float) -> FloatArray:
    """τ_t: the q quantile of the earlier z, NaN z left out: (N,)."""
    return _with_counts(z, q)[0]


def stratified_thresholds(z: FloatArray, strata: IntArray, q: float) -> FloatArray:
    """τ_{k(t),t}: the q quantile of the earlier z of the same stratum, NaN z left out: (N,).

    Fewer than two of them: of all earlier z.
    """
    tau = np.full(z.size, np.nan)
    sparse: list[IntArray] = []
    for k in np.unique(strata):
        mine = np.flatnonzero(strata == k)
        own, seen = _with_counts(z[mine], q)
        tau[mine] = own
        sparse.append(mine[seen < 2])
    lacking = np.concatenate(sparse)
    if lacking.size:
        # The last of them is as far as the global quantile is needed.
        upto = int(lacking.max()) + 1
        tau[lacking] = thresholds(z[:upto], q)[lacking]
    return tau


def _with_counts(z: FloatArray, q: float) -> tuple[FloatArray, IntArray]:
    """Quantile of the earlier z, and how many there were, at every position; NaN z do not count."""
    has = ~np.isnan(z)
    seen = np.cumsum(has) - has
    quantiles = np.concatenate([[np.nan], expanding_quantile(z[has], q)])
    return quantiles[seen], seen
