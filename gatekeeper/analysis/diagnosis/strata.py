"""The figures of each cost stratum, and the tests whether strata differ.

Paper, "Diagnosing comparability failure". Where labels are known of some outputs only, as in a
gate's log, those that were drawn at random stand for all, each counting 1 / propensity.
"""

from __future__ import annotations

from math import isnan, nan, sqrt

import numpy as np

from gatekeeper.analysis.diagnosis.data import StratumFigures
from gatekeeper.io.records import RecordTable
from gatekeeper.stats.heterogeneity import correlation, dispersion
from gatekeeper.types import BoolArray, FloatArray
from gatekeeper.wording import counted

__all__ = ["base_rates", "dispersion_of", "label_weights", "stratum_figures"]


def label_weights(table: RecordTable, warmup: int) -> tuple[FloatArray, bool, list[str]]:
    """The weight of each label (N,), whether a policy chose them, and notes on that."""
    w = np.where(np.isnan(table.error), 0.0, 1.0)
    if w[warmup:].all():
        return w, False, []
    share = table.propensity
    if share is None or np.isnan(share[w > 0]).any():
        return w, False, ["propensities are not known: labels are taken for a random sample"]
    w = np.divide(w, share, out=np.zeros(len(table)), where=share > 0)
    never = int((share[warmup:] == 0.0).sum())
    if not never:
        return w, False, ["each label counts 1 / propensity"]
    without = f"{counted(never, 'output')} had no chance of being verified (propensity 0)"
    random = share < 1.0
    if w[warmup:][random[warmup:]].any():
        return np.where(random, w, 0.0), False, [f"{without}: only labels drawn at random count"]
    return w, True, [f"{without}: the figures are those of what a policy chose"]


def stratum_figures(
    table: RecordTable, mine: BoolArray, s: FloatArray, w: FloatArray
) -> StratumFigures:
    """The figures of the records `mine`, from scores and weights of all, (N,) each."""
    from scipy.special import stdtr

    known = mine & (w > 0)
    s, y, w = s[known], table.error[known], w[known]
    n = float(w.sum() ** 2 / (w**2).sum()) if w.size else 0.0
    rho = variance = p_value = nan
    of, wrong = int(mine.sum()), int(y.sum())
    right = y.size - wrong
    if min(wrong, right) >= 2:
        rho, variance = correlation(s, y, w, n)
        free = max(n - 2, 1.0)
        p_value = float(2 * stdtr(free, -abs(rho) * sqrt(free / (1 - rho**2))))
    rate = nan
    if y.size:  # labels that were chosen may weigh less than what they show for certain
        rate = min(max(float(np.average(y, weights=w)), wrong / of), (of - right) / of)
    return StratumFigures(
        n=of,
        labelled=y.size,
        weight=n,
        error_rate=rate,
        mean_cost=float(table.cost_estimate[mine].mean()) if mine.any() else nan,
        rho=rho,
        p_value=p_value,
        variance=variance,
    )


def dispersion_of(figures: list[StratumFigures]) -> tuple[float, float, float]:
    """`gatekeeper.stats.heterogeneity` over the strata that have a ρ_k."""
    used = [f for f in figures if not isnan(f.rho)]
    return dispersion([f.rho for f in used], [f.variance for f in used])


def base_rates(figures: list[StratumFigures]) -> tuple[float, float]:
    """max_k p_k - min_k p_k, and p of "all p_k are equal" (Pearson's χ²)."""
    from scipy.special import chdtrc

    used = [f for f in figures if f.labelled]
    if not used:
        return nan, nan
    p = np.array([f.error_rate for f in used])
    weight = np.array([f.weight for f in used])
    common = (weight @ p) / weight.sum()
    spread = float(np.ptp(p))
    if len(used) < 2 or not 0.0 < common < 1.0:
        return spread, nan
    q = (weight * (p - common) ** 2).sum() / (common * (1 - common))
    return spread, float(chdtrc(len(used) - 1, q))
