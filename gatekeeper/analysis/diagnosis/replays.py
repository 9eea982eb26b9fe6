"""Replays of CST, of other partitions, and of other numbers of strata.

Paper, "Per-Stratum Split-Conformal Baseline" (partitions), "Sensitivity to Number of Strata (K)".
Replays need every label and cost.
"""

from __future__ import annotations

from collections.abc import Callable
from math import nan, sqrt
from typing import NamedTuple

import numpy as np

from gatekeeper.analysis.diagnosis.data import Condition, Partition, PartitionResult
from gatekeeper.analysis.vectorised import Stream
from gatekeeper.io.records import RecordTable
from gatekeeper.policies import HGA, Oracle
from gatekeeper.policies.hga import EPSILON_H, EPSILON_P
from gatekeeper.stats.interval import NORMAL, Interval
from gatekeeper.types import BoolArray, FloatArray, IntArray
from gatekeeper.wording import counted, plural

__all__ = ["SWEEP", "gate_conditions", "replay_partitions", "why_no_replay"]

SWEEP = (1, 2, 3, 4, 6, 8)


def why_no_replay(table: RecordTable, warmup: int) -> str | None:
    """The reason why records cannot be replayed, in words; None if they can."""
    if len(table) <= warmup:
        return f"no record is left after the warm-up of {warmup}"
    for name, values in (("label", table.error), ("cost", table.cost)):
        unknown = int(np.isnan(values).sum())
        if unknown:
            known = f"{unknown} of {counted(len(table), 'record')}"
            return f"{known} {plural(unknown, 'has', 'have')} no {name}: replays need every one"
    return None


def gate_conditions(table: RecordTable, beta: float, strata: int, warmup: int) -> list[Condition]:
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
    assert seen is not None  # HGA always reports its evidence
    values = [
        ("hit rate of CST (at least Threshold's)", seen.hit_cst, seen.hit_threshold),
        ("Var_k(ρ_k)", seen.dispersion, EPSILON_H),
        ("max p_k - min p_k", seen.base_rate_spread, EPSILON_P),
    ]
    return [Condition(name, value, least, value >= least) for name, value, least in values]


def replay_partitions(
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
            partitions.setdefault(name, []).append(_measure(stream, beta, verified, base))
        for k in SWEEP:
            compared = _measure(stream, beta, by_cost[k], base)
            sweep.setdefault(f"K = {k}", []).append(compared)
        on_progress(1)
    return _averages(partitions), _averages(sweep)


def _bins(stream: Stream, k: int) -> IntArray:
    """Bins of the score, by its quantiles over the warm-up; without a score: the last."""
    first = stream.score[: stream.warmup]
    if np.isnan(first).all():
        return np.zeros(len(stream), dtype=np.intp)
    return np.searchsorted(np.nanquantile(first, np.arange(1, k) / k), stream.score)


class _Replayed(NamedTuple):
    """One rule in one order: what a `PartitionResult` averages.

    `…_by_labels` is a difference's variance due to the chance by which outputs are wrong.
    """

    hit_rate: float
    recall: float
    utilisation: float
    above_threshold: float
    above_threshold_by_labels: float
    above_random: float
    above_random_by_labels: float


def _measure(stream: Stream, beta: float, verified: BoolArray, base: BoolArray) -> _Replayed:
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


def _variance(y: FloatArray, a: BoolArray, b: BoolArray) -> float:
    """Variance of the difference of two hit rates, if the error rate is the same in all of a ∪ b.

    Outputs that both verify cancel, as far as both verify equally many.
    """
    if not (a.any() and b.any()):
        return nan
    p = float(y[a | b].mean())
    return p * (1 - p) * float(((a / a.sum() - b / b.sum()) ** 2).sum())


def _averages(replayed: dict[str, list[_Replayed]]) -> list[PartitionResult]:
    return [_average(name, rows) for name, rows in replayed.items()]


def _average(name: str, rows: list[_Replayed]) -> PartitionResult:
    """The mean of the orders in which every figure is defined; NaN if there are none."""
    values = np.array(rows)
    defined = values[~np.isnan(values).any(axis=1)]
    if not len(defined):
        unknown = Interval(nan, nan, nan)
        return PartitionResult(name, nan, nan, nan, unknown, unknown)
    mean = _Replayed(*defined.mean(axis=0).tolist())
    by_order = _Replayed(*[0.0] * len(mean))  # variances of the means
    if len(defined) > 1:
        by_order = _Replayed(*(defined.var(axis=0, ddof=1) / len(defined)).tolist())
    return PartitionResult(
        name,
        hit_rate=mean.hit_rate,
        recall=mean.recall,
        utilisation=mean.utilisation,
        above_threshold=Interval.around(
            mean.above_threshold,
            NORMAL * sqrt(mean.above_threshold_by_labels + by_order.above_threshold),
        ),
        above_random=Interval.around(
            mean.above_random,
            NORMAL * sqrt(mean.above_random_by_labels + by_order.above_random),
        ),
    )


def _mean(values: FloatArray) -> float:
    return float(values.mean()) if values.size else nan
