"""What a diagnosis consists of."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from gatekeeper.stats.interval import Interval

__all__ = [
    "Condition",
    "Diagnosis",
    "Odds",
    "Partition",
    "PartitionResult",
    "StratumFigures",
    "Thresholds",
]


class Thresholds(StrEnum):
    """Whether the cost strata need thresholds of their own."""

    ONE = "one for all"  # as in Threshold: no evidence that strata differ, or CST is no better
    OWN = "one per stratum"  # as in CST
    UNKNOWN = "cannot tell"


class Partition(StrEnum):
    """How outputs are partitioned; each part has its own threshold."""

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
class Odds:
    """CST against Threshold in the next run, at the budget of the diagnosis."""

    gain: Interval  # recall of CST minus that of Threshold, in [-1, 1]
    cst: float  # probability that CST's recall is higher by more than a point
    threshold: float  # probability that Threshold's is


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What the records show. NaN where there are too few to compute something.

    `dispersion` is H = Var_k(ρ_k), the population variance over strata; `dispersion_corrected`
    what is left of it without the sampling noise of the ρ_k, at least 0. `partitions`, `sweep`
    and `gate` are None where not every label and cost is known; `absent` states why.
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
    odds: Odds | None  # None where the records do not represent all outputs
    chosen: bool  # a policy chose the labelled outputs: the figures describe only these
    notes: list[str]
    thresholds: Thresholds
    conclusion: str  # the reason, in words
