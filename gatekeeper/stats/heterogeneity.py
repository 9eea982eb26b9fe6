"""Do correlations differ by more than chance? Cochran's Q on Fisher's z.

The test of the heterogeneity gate and of the diagnosis (paper, "Diagnosing comparability
failure"): Var_k(ρ_k) of a few dozen labels per stratum is mostly noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import nan, sqrt

import numpy as np

from gatekeeper.types import FloatArray

__all__ = ["correlation", "dispersion"]

PERFECT = 1.0 - 1e-9  # a correlation of 1 has no Fisher z


def correlation(s: FloatArray, y: FloatArray, w: FloatArray, n: float) -> tuple[float, float]:
    """Weighted Pearson correlation of scores and labels, with its variance.

    Parameters
    ----------
    s, y, w
        Scores, labels in {0, 1} and weights > 0, (m,) each.
    n
        Effective number of observations, > 0.

    Returns
    -------
    rho
        In (-1, 1); 0 for a constant score.
    variance
        The larger of the normal theory's, (1 - ρ²)² / (n - 3), and that of the influence function
        z_s z_y - ρ (z_s² + z_y²) / 2. The first is too small for skewed scores, the second for few
        labels.
    """
    free = max(n - 3, 1.0)
    if np.ptp(s) == 0.0:
        return 0.0, 1 / free
    w = w / w.sum()
    ds, dy = s - w @ s, y - w @ y
    zs, zy = ds / sqrt(w @ ds**2), dy / sqrt(w @ dy**2)
    rho = float(np.clip(w @ (zs * zy), -PERFECT, PERFECT))
    influence = zs * zy - rho / 2 * (zs**2 + zy**2)
    return rho, max((1 - rho**2) ** 2 / free, float(w**2 @ influence**2) * n / free)


def dispersion(rho: Sequence[float], variance: Sequence[float]) -> tuple[float, float, float]:
    """H = Var_k(ρ_k); H without sampling noise; p of "all ρ_k are equal". NaN where undefined.

    K estimates that differ by noise alone disperse by (K - 1) / K of their mean variance, which is
    subtracted. The test is Cochran's Q on Fisher's z against χ² with K - 1 degrees of freedom.
    Permuting strata would test more than equal ρ_k: equal error rates and score distributions
    too.
    """
    from scipy.special import chdtrc  # `scipy.stats` is slow to import

    r, v = np.array(rho, dtype=np.float64), np.array(variance, dtype=np.float64)
    k = r.size
    if not k:
        return nan, nan, nan
    h = float(r.var())
    corrected = max(h - float(v.mean()) * (k - 1) / k, 0.0)
    z, precision = np.arctanh(r), (1 - r**2) ** 2 / v
    q = (precision * (z - (precision @ z) / precision.sum()) ** 2).sum()
    return h, corrected, float(chdtrc(k - 1, q)) if k > 1 else nan
