"""Is the signal comparable across cost strata? What that says about the policy to use.

Paper, "Diagnosing comparability failure", "Per-Stratum Split-Conformal Baseline" (partitions),
"Sensitivity to Number of Strata (K)". The score s is fitted to the first T0 records, as the
policies do; all figures are over the records after them that have a signal.

Where every label is known, policies are replayed: CST and partitions that should not help. Where
labels are known of some outputs only, as in a gate's log, those that were drawn at random stand
for all, each counting 1 / propensity. Labels that a policy chose describe its choice only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from math import ceil, isnan, nan, sqrt
from typing import NamedTuple

import numpy as np

from gatekeeper.analysis.vectorised import Flags, Indices, Stream, fixed_score, strata_of
from gatekeeper.arguments import check_beta, check_count
from gatekeeper.errors import BadInputError
from gatekeeper.io.records import RecordTable
from gatekeeper.policies import HGA, T0, Oracle
from gatekeeper.policies.hga import EPSILON_H, EPSILON_P
from gatekeeper.stats.heterogeneity import correlation, dispersion
from gatekeeper.stats.interval import NORMAL, Interval
from gatekeeper.types import FloatArray

__all__ = [
    "Advice",
    "Condition",
    "Diagnosis",
    "Partition",
    "PartitionResult",
    "StratumFigures",
    "diagnose",
    "orders_for",
]

LEVEL = 0.025  # of each of the two tests that strata differ: 0.05 together (Bonferroni)
POWER = 0.8
DISPERSION = 0.01  # Var_k(ρ_k), ρ_k 0.1 apart (standard deviation): what the tests must not miss
MARGIN = 0.02  # hit rates closer than this are as good as each other
HIDDEN = 0.1  # a gain in hit rate over a random draw that is not to be ruled out in passing
COMPLETE = 0.99  # share of known labels that is as good as all: verifiers fail now and then
SWEEP = (1, 2, 3, 4, 6, 8)
ORDERS = 10
MANY = 300_000  # records: one order differs little from the next, and takes seconds
ORDERS_OF_MANY = 3


class Advice(StrEnum):
    """Which policy the records speak for."""

    THRESHOLD = "threshold"
    CST = "cst"
    UNKNOWN = "cannot tell"


class Partition(StrEnum):
    """By what the outputs are partitioned, each part having a threshold of its own."""

    NONE = "none"  # one threshold for all: Threshold
    RANDOM = "random"  # a control, which should not help
    SIGNAL = "signal"  # bins of the score; a control too
    COST = "cost"  # strata of ĉ: CST
    LABEL = "oracle"  # the true label: the best possible choice


@dataclass(frozen=True, slots=True)
class StratumFigures:
    """One cost stratum, or all. `weight` is the effective number of labels, (Σw)² / Σw²."""

    n: int
    labelled: int
    weight: float
    error_rate: float  # p_k in [0, 1]; NaN without labels
    mean_cost: float  # of ĉ
    rho: float  # point-biserial corr(s, y); NaN with fewer than two labels of either kind
    p_value: float  # of ρ_k = 0, two-sided t-test
    variance: float  # of the estimate of ρ_k


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition of HGA's gate: it holds where value >= least."""

    name: str
    value: float
    least: float
    holds: bool


@dataclass(frozen=True, slots=True)
class PartitionResult:
    """What a rule would have verified, averaged over the orders; rates in [0, 1].

    The intervals of differences of hit rates count both the order of the stream and the chance by
    which outputs happened to be wrong.
    """

    name: str
    hit_rate: float
    recall: float
    utilisation: float
    above_threshold: Interval  # hit rate minus that of the global threshold
    above_random: Interval  # hit rate minus the error rate, which is what a random draw hits


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What the records say. NaN where there is too little to compute something.

    `dispersion` is H = Var_k(ρ_k), the population variance over strata; `dispersion_corrected`
    what is left of it without the sampling noise of the ρ_k, at least 0. `partitions`, `sweep`
    and `gate` are None where not every label and cost is known; `absent` says why.
    """

    records: int
    warmup: int
    without_signal: int  # after the warm-up, left out
    beta: float
    orders: int
    strata: list[StratumFigures]
    overall: StratumFigures
    dispersion: float
    dispersion_corrected: float
    dispersion_p: float
    base_rate_spread: float
    base_rate_p: float
    gate: list[Condition] | None
    partitions: list[PartitionResult] | None
    sweep: list[PartitionResult] | None
    absent: str | None
    chosen: bool  # labels were chosen by a policy: the figures describe its choice only
    notes: list[str]
    advice: Advice
    conclusion: str


def diagnose(
    table: RecordTable,
    *,
    beta: float = 0.2,
    strata: int = 4,
    warmup: int = T0,
    orders: int | None = None,
    on_progress: Callable[[int], None] = lambda done: None,
) -> Diagnosis:
    """Compare the cost strata of the records, and what stratifying would have brought.

    beta     the budget at which policies are replayed, a share of the full cost in (0, 1)
    strata   K, how many cost strata: quantiles of ĉ over the warm-up
    orders   in how many orders of the records partitions are replayed: seeds 0 … orders - 1;
             default: `orders_for`. The figures of the strata and the gate of HGA are those of
             the order given

    A candidate without a signal is drawn with probability β in a replay, as the policies do.
    """
    check_beta(beta)
    check_count("strata", strata, least=2)
    orders = orders_for(len(table)) if orders is None else check_count("orders", orders)
    check_count("warmup", warmup)
    if not len(table):
        raise BadInputError("there are no records to diagnose")
    notes: list[str] = []
    known = ~np.isnan(table.error) & ~np.isnan(table.cost)
    if COMPLETE * len(table) <= known.sum() < len(table):
        notes.append(f"{(~known).sum()} records without a label or a cost are left out")
        table = table.take(known)
    s = fixed_score(table.h, table.cost_estimate, table.error, warmup=warmup)
    k = np.where(np.isnan(s), -1, strata_of(table.cost_estimate, strata, warmup=warmup))
    w, chosen, note = _weights(table, warmup)
    after = np.arange(len(table)) >= warmup
    figures = [_figures(table, after & (k == j), s, w) for j in range(strata)]
    dispersion, corrected, dispersion_p = _dispersion(figures)
    spread, base_p = _base_rates(figures)
    found = Diagnosis(
        records=len(table),
        warmup=min(warmup, len(table)),
        without_signal=int((after & (k < 0)).sum()),
        beta=beta,
        orders=orders,
        strata=figures,
        overall=_figures(table, after & (k >= 0), s, w),
        dispersion=dispersion,
        dispersion_corrected=corrected,
        dispersion_p=dispersion_p,
        base_rate_spread=spread,
        base_rate_p=base_p,
        gate=None,
        partitions=None,
        sweep=None,
        absent=_why_no_replay(table, warmup),
        chosen=chosen,
        notes=notes + note,
        advice=Advice.UNKNOWN,
        conclusion="",
    )
    if found.absent is None:
        partitions, sweep = _replays(table, beta, strata, warmup, orders, on_progress)
        gate = _gate(table, beta, strata, warmup)
        found = replace(found, partitions=partitions, sweep=sweep, gate=gate)
    advice, conclusion = _conclude(found)
    return replace(found, advice=advice, conclusion=conclusion)


def orders_for(n: int) -> int:
    """In how many orders n records are replayed, unless told."""
    return ORDERS if n <= MANY else ORDERS_OF_MANY


# -- the strata ------------------------------------------------------------------------------------


def _weights(table: RecordTable, warmup: int) -> tuple[FloatArray, bool, list[str]]:
    """What each label counts (N,), whether a policy chose them, and what to say about that."""
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
    without = f"{never} outputs had no chance of being verified (propensity 0)"
    random = share < 1.0
    if w[warmup:][random[warmup:]].any():
        return np.where(random, w, 0.0), False, [f"{without}: only labels drawn at random count"]
    return w, True, [f"{without}: the figures are those of what a policy chose"]


def _figures(table: RecordTable, mine: Flags, s: FloatArray, w: FloatArray) -> StratumFigures:
    from scipy.stats import t as student

    known = mine & (w > 0)
    s, y, w = s[known], table.error[known], w[known]
    n = float(w.sum() ** 2 / (w**2).sum()) if w.size else 0.0
    rho = variance = p_value = nan
    wrong = int(y.sum())
    if min(wrong, y.size - wrong) >= 2:
        rho, variance = correlation(s, y, w, n)
        free = max(n - 2, 1.0)
        p_value = float(2 * student.sf(abs(rho) * sqrt(free / (1 - rho**2)), free))
    return StratumFigures(
        n=int(mine.sum()),
        labelled=y.size,
        weight=n,
        error_rate=float(np.average(y, weights=w)) if y.size else nan,
        mean_cost=float(table.cost_estimate[mine].mean()) if mine.any() else nan,
        rho=rho,
        p_value=p_value,
        variance=variance,
    )


def _dispersion(figures: list[StratumFigures]) -> tuple[float, float, float]:
    """`gatekeeper.stats.heterogeneity` over the strata that have a ρ_k."""
    used = [f for f in figures if not isnan(f.rho)]
    return dispersion([f.rho for f in used], [f.variance for f in used])


def _base_rates(figures: list[StratumFigures]) -> tuple[float, float]:
    """max_k p_k - min_k p_k, and p of "all p_k are equal" (Pearson's χ²)."""
    from scipy.stats import chi2

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
    return spread, float(chi2.sf(q, len(used) - 1))


# -- replays ---------------------------------------------------------------------------------------


def _why_no_replay(table: RecordTable, warmup: int) -> str | None:
    if len(table) <= warmup:
        return f"no record is left after the warm-up of {warmup}"
    for name, values in (("label", table.error), ("cost", table.cost)):
        unknown = int(np.isnan(values).sum())
        if unknown:
            return f"{unknown} of {len(table)} records have no {name}: replays need every one"
    return None


def _gate(table: RecordTable, beta: float, strata: int, warmup: int) -> list[Condition]:
    """HGA's three conditions on the first half of the records, in the order given."""
    stream = Stream(
        table.h,
        table.cost_estimate,
        table.cost,
        table.error,
        evaluate="second-half",
        warmup=warmup,
    )
    seen = stream.decide(HGA, beta, strata=strata).evidence
    assert seen is not None  # HGA always says what it saw
    values = [
        ("hit rate of CST (at least Threshold's)", seen.hit_cst, seen.hit_threshold),
        ("Var_k(ρ_k)", seen.dispersion, EPSILON_H),
        ("max p_k - min p_k", seen.base_rate_spread, EPSILON_P),
    ]
    return [Condition(name, value, least, value >= least) for name, value, least in values]


def _replays(
    table: RecordTable,
    beta: float,
    strata: int,
    warmup: int,
    orders: int,
    on_progress: Callable[[int], None],
) -> tuple[list[PartitionResult], list[PartitionResult]]:
    """Partitions and the K sweep, on clean labels and signals.

    "none" is Threshold and "cost" is CST; "random" and "signal" (bins of the score) should not
    help. "oracle" knows the labels and verifies errors first: quantiles within true labels would
    verify the same share of both and hit no more than a random draw; the paper's 1.000 is what
    knowing the stratum of every error is worth.
    """
    partitions: dict[str, list[_Replayed]] = {}
    sweep: dict[str, list[_Replayed]] = {}
    n = len(table)
    for seed in range(orders):
        order = np.random.default_rng(seed).permutation(n)
        columns = (table.h, table.cost_estimate, table.cost, table.error)
        stream = Stream(*(column[order] for column in columns), warmup=warmup)
        by_cost = {
            k: stream.by_partition(stream.strata(k), beta).verified for k in {*SWEEP, strata}
        }
        random = np.random.default_rng((seed, 1)).integers(strata, size=n)
        base = by_cost[1]
        for name, verified in (
            (Partition.NONE, base),
            (Partition.RANDOM, stream.by_partition(random, beta).verified),
            (Partition.SIGNAL, stream.by_partition(_bins(stream, strata), beta).verified),
            (Partition.COST, by_cost[strata]),
            (Partition.LABEL, stream.decide(Oracle, beta).verified),
        ):
            partitions.setdefault(name, []).append(_compare(stream, beta, verified, base))
        for k in SWEEP:
            compared = _compare(stream, beta, by_cost[k], base)
            sweep.setdefault(f"K = {k}", []).append(compared)
        on_progress(1)
    return _averages(partitions), _averages(sweep)


def _bins(stream: Stream, k: int) -> Indices:
    """Bins of the score, by its quantiles over the warm-up; without a score: the last."""
    first = stream.score[: stream.warmup]
    if np.isnan(first).all():
        return np.zeros(len(stream), dtype=np.intp)
    return np.searchsorted(np.nanquantile(first, np.arange(1, k) / k), stream.score)


class _Replayed(NamedTuple):
    """One rule in one order: what a `PartitionResult` averages; variances in place of margins."""

    hit_rate: float
    recall: float
    utilisation: float
    above_threshold: float
    threshold_variance: float
    above_random: float
    random_variance: float


def _compare(stream: Stream, beta: float, verified: Flags, base: Flags) -> _Replayed:
    y, cost = stream.error[stream.first :], stream.cost[stream.first :]
    hit = _mean(y[verified])
    return _Replayed(
        hit,
        float(y[verified].sum() / y.sum()) if y.any() else nan,
        float(cost[verified].sum() / stream.budget(beta)),
        hit - _mean(y[base]),
        _variance(y, verified, base),
        hit - float(y.mean()),
        _variance(y, verified, np.ones(y.size, dtype=bool)),
    )


def _variance(y: FloatArray, a: Flags, b: Flags) -> float:
    """Of the difference of two hit rates where the error rate is the same throughout a ∪ b.

    What both verify cancels, as far as they verify equally much.
    """
    if not (a.any() and b.any()):
        return nan
    p = float(y[a | b].mean())
    return p * (1 - p) * float(((a / a.sum() - b / b.sum()) ** 2).sum())


def _averages(replayed: dict[str, list[_Replayed]]) -> list[PartitionResult]:
    choices = []
    for name, rows in replayed.items():
        values = np.array(rows)
        defined = values[~np.isnan(values).any(axis=1)]
        if not len(defined):
            unknown = Interval(nan, nan, nan)
            choices.append(PartitionResult(name, nan, nan, nan, unknown, unknown))
            continue
        hit, recall, used, delta, var, above, var_above = defined.mean(axis=0).tolist()
        by_order = defined.var(axis=0, ddof=1) / len(defined) if len(defined) > 1 else [0.0] * 7
        choices.append(
            PartitionResult(
                name,
                hit_rate=hit,
                recall=recall,
                utilisation=used,
                above_threshold=Interval.around(delta, NORMAL * sqrt(var + by_order[3])),
                above_random=Interval.around(above, NORMAL * sqrt(var_above + by_order[5])),
            )
        )
    return choices


def _mean(values: FloatArray) -> float:
    return float(values.mean()) if values.size else nan


# -- the conclusion --------------------------------------------------------------------------------


def _labels_needed(strata: int) -> int:
    """Labels with which the test of equal ρ_k finds `DISPERSION` with probability `POWER`."""
    from scipy.optimize import brentq
    from scipy.stats import chi2, ncx2

    free = strata - 1
    critical = chi2.isf(LEVEL, free)
    # Σ (ρ_k - ρ̄)² / v_k with v_k = K / n: the noncentrality is n Var_k(ρ_k)
    noncentrality: float = brentq(lambda x: ncx2.sf(critical, free, x) - POWER, 1e-6, 1e4)
    return ceil(noncentrality / DISPERSION)


def _conclude(d: Diagnosis) -> tuple[Advice, str]:
    labels = d.overall.weight
    needed = _labels_needed(len(d.strata))
    rates = [f.error_rate for f in d.strata if f.labelled]
    rho = [f.rho for f in d.strata if not isnan(f.rho)]
    if isnan(d.overall.rho):
        few = f"of the {d.overall.labelled} labels after the warm-up fewer than two are of one kind"
        also = f" About {_about(needed - labels)} more are needed." if labels < needed else ""
        return Advice.UNKNOWN, f"Cannot tell: {few}.{also}"
    if d.chosen:
        return Advice.UNKNOWN, (
            "Cannot tell: labels that a policy chose do not show how strata compare. Have a random "
            "sample verified (policy random or hga), or everything."
        )
    if sum(f.n > 0 for f in d.strata) == 1:
        only = "All outputs fall into one cost stratum, so that there is nothing to tell apart"
        return Advice.THRESHOLD, f"{only}: use threshold."
    evidence = []
    if d.dispersion_p < LEVEL:
        evidence.append(
            f"the score's correlation with errors lies between {min(rho):.2f} and {max(rho):.2f} "
            f"({_p(d.dispersion_p)})"
        )
    if d.base_rate_p < LEVEL:
        evidence.append(
            f"the error rate lies between {min(rates):.0%} and {max(rates):.0%} "
            f"({_p(d.base_rate_p)})"
        )
    differ = f"Strata differ: {', and '.join(evidence)}. " if evidence else ""
    if d.partitions is None:
        if evidence:
            return Advice.UNKNOWN, (
                f"{differ}Whether cst does better than threshold for it cannot be told without a "
                "replay; hga decides that while it runs."
            )
        return _no_evidence(labels, needed)
    threshold, _, _, cst, _ = d.partitions
    signal = _signal(threshold, cst)
    if isnan(cst.above_threshold.value):
        return Advice.UNKNOWN, f"{differ}The budget is too small to verify anything: raise beta."
    gain, margin = cst.above_threshold.value, cst.above_threshold.margin
    by = f"by {abs(gain):.3f} ± {margin:.3f} in hit rate"
    if (cst.recall - threshold.recall) * gain < 0:  # a rule that spends less may hit more
        by += f" (recall is {cst.recall:.3f}, Threshold's {threshold.recall:.3f})"
    if cst.above_threshold.low > 0.0:
        differ = differ or (
            "Neither correlations nor error rates differ measurably between strata, but score ÷ "
            "cost is not comparable across them. "
        )
        return Advice.CST, f"{differ}CST does better than Threshold {by}: use cst.{signal}"
    if cst.above_threshold.high < 0.0:
        differ = differ or "No evidence that strata differ. "
        worse = f"CST does worse than Threshold {by}: use threshold.{signal}"
        return Advice.THRESHOLD, differ + worse
    if not evidence:
        advice, text = _no_evidence(labels, needed)
        return advice, text + signal
    if abs(gain) + margin <= MARGIN:
        same = f"CST and Threshold do equally well all the same ({gain:+.3f} ± {margin:.3f} "
        return Advice.THRESHOLD, f"{differ}{same}in hit rate): use threshold.{signal}"
    more = labels * ((margin / max(abs(gain), MARGIN)) ** 2 - 1)
    return Advice.UNKNOWN, (
        f"{differ}Too few labels to tell whether CST does better for it ({gain:+.3f} ± "
        f"{margin:.3f} in hit rate): about {_about(more)} more are needed.{signal}"
    )


def _no_evidence(labels: float, needed: int) -> tuple[Advice, str]:
    if labels >= needed:
        return Advice.THRESHOLD, "No evidence that strata differ: use threshold."
    return Advice.UNKNOWN, (
        f"No evidence that strata differ, but {labels:,.0f} labels are too few to tell: about "
        f"{_about(needed - labels)} more are needed."
    )


def _signal(threshold: PartitionResult, cst: PartitionResult) -> str:
    """What it says when neither beats random: no threshold on this score helps at this budget."""
    both = (threshold, cst)
    if any(c.above_random.low > 0.0 for c in both):
        return ""
    if any(c.above_random.high > HIDDEN for c in both):
        return " So few labels do not tell whether either policy hits more than a random draw."
    return " The signal is no better than random here: neither policy hits more than a random draw."


def _about(n: float) -> str:
    """Two significant digits, rounded up."""
    step = 10 ** max(len(str(ceil(n))) - 2, 0)
    return f"{ceil(n / step) * step:,}"


def _p(value: float) -> str:
    return "p < 0.001" if value < 0.001 else f"p = {value:.3f}"
