"""A smooth density from a sample, for the theory's estimates and the figures."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["density"]

_BINS = 4096  # above this many values, a fine histogram stands for them: O(bins) per point


def density(values: ArrayLike, at: ArrayLike) -> NDArray[np.float64]:
    """Gaussian kernel density of `values` (n,) at the points `at` (m,), in 1 / unit of values.

    Scott's bandwidth, standard deviation × n^(-1/5). It smooths: peaks come out somewhat too low
    and gaps too high. Where the values do not vary there is no density, and the result is NaN.
    """
    from scipy.stats import gaussian_kde

    x: NDArray[np.float64] = np.asarray(values, dtype=np.float64)
    points: NDArray[np.float64] = np.asarray(at, dtype=np.float64)
    low, span = (x.min(), np.ptp(x)) if x.size else (0.0, 0.0)
    if not span > 1e-12 * np.abs(x).max(initial=0.0):
        return np.full(points.shape, np.nan)
    x = (x - low) / span  # independent of the unit
    weights: NDArray[Any] | None = None
    scott = x.size ** (-1 / 5)
    if x.size > _BINS:
        weights, edges = np.histogram(x, bins=_BINS)
        x = (edges[:-1] + edges[1:]) / 2
    kernel = gaussian_kde(x, bw_method=scott, weights=weights)
    return np.asarray(kernel((points - low) / span) / span, dtype=np.float64)
