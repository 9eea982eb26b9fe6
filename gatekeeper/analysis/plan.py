"""How much budget a target needs: what each budget would have found, on records or a run's log.

A policy is replayed at budgets from 0 to 1 on the outputs of the file, in their order; from a
partly verified log as `gatekeeper.analysis.off_policy` describes. The estimates are for the next
run: for outputs distributed as these, with the score that this warm-up has fitted. So to the
uncertainty of a partly verified file they add the sampling variation of the outputs themselves;
both sides of every interval add up by their squares. A file with every verdict has the second part
only.

The budget for a recall has the interval of all budgets whose recall may, at 95 %, be the target.
The budget for a residual risk is the smallest one at which even the upper end of the 95 % interval
of the error rate among the outputs left out keeps to the target.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import hypot

import numpy as np

from gatekeeper.analysis.off_policy import Evidence
from gatekeeper.errors import BadInputError
from gatekeeper.stats.interval import Interval
from gatekeeper.stats.mid_p import midp_interval
from gatekeeper.types import FloatArray

__all__ = ["BUDGETS", "Curve", "Needed", "Point", "check_target", "curve_of"]

BUDGETS = tuple(i / 50 for i in range(1, 50))  # shares of the full cost: 2 % … 98 %


@dataclass(frozen=True, slots=True)
class Point:
    """What a budget finds in the next run. NaN where a rate is undefined."""

    budget: float  # share of what verifying everything after the warm-up costs
    verified: float  # share of the outputs
    recall: Interval
    residual_risk: Interval  # error rate of the outputs left out


@dataclass(frozen=True, slots=True)
class Needed:
    """The budget, in [0, 1], that a target needs; 1 is to verify everything."""

    target: float
    budget: Interval


@dataclass(frozen=True, slots=True)
class Curve:
    """A policy at budgets from 0 to 1, ascending."""

    policy: str
    points: tuple[Point, ...]

    def for_recall(self, target: float) -> Needed:
        """The budget whose recall is the target, with a 95 % interval."""
        check_target("recall", target)
        recalls = [p.recall for p in self.points]
        return Needed(
            target,
            Interval(
                self._reached([r.value for r in recalls], target),
                self._reached([r.high for r in recalls], target),
                self._reached([r.low for r in recalls], target),
            ),
        )

    def for_residual_risk(self, target: float) -> float | None:
        """The smallest budget with at most this risk at 95 % confidence; None: all must be
        verified, or more labels be had."""
        check_target("residual_risk", target)
        kept = (p.budget for p in self.points if p.residual_risk.high <= target)
        return next(kept, None)

    def at(self, budget: float) -> Point:
        """The point nearest to a budget."""
        return min(self.points, key=lambda p: abs(p.budget - budget))

    def _reached(self, values: Sequence[float], target: float) -> float:
        """Where values that ascend from 0 to 1 reach the target: straight lines between points,
        and 1 beyond the last one that was replayed."""
        i = bisect_left(values, target)
        if i == len(values) - 1:
            return 1.0
        budgets = [p.budget for p in self.points[i - 1 : i + 1]]
        return float(np.interp(target, values[i - 1 : i + 1], budgets))


def curve_of(
    evidence: Evidence,
    policy: str,
    budgets: Sequence[float] = BUDGETS,
    *,
    on_progress: Callable[[int], None] = lambda points: None,
) -> Curve:
    """The policy's curve on these outputs, at budgets that ascend between 0 and 1, and at both.

    Raises BadInputError for an unknown policy.
    """
    points = [_point(evidence, np.zeros(evidence.p.size), 0.0)]
    for budget in budgets:
        points.append(_point(evidence, evidence.shares(policy, budget), budget))
        on_progress(1)
    points.append(_point(evidence, np.ones(evidence.p.size), 1.0))
    return Curve(policy, tuple(_ascending(points)))


def _point(evidence: Evidence, share: FloatArray, budget: float) -> Point:
    recall, errors = evidence.recall(share)
    left = (share < 1.0) & evidence.counted
    return Point(
        budget,
        float(share[evidence.counted].mean()),
        _of_next_run(recall, errors) if np.ptp(share) else recall,  # of a share of all: the share
        _of_next_run(evidence.rate(left), float(left.sum())),
    )


def _ascending(points: Sequence[Point]) -> Iterator[Point]:
    """With recalls, and both ends of their intervals, put into ascending order.

    More budget finds more; estimates of what ascends, and intervals too, only get better by it
    (rearrangement: Chernozhukov, Fernández-Val & Galichon 2009).
    """
    recalls = [p.recall for p in points]
    value, low, high = (
        sorted(v) for v in zip(*((r.value, r.low, r.high) for r in recalls), strict=True)
    )
    for i, point in enumerate(points):
        yield replace(point, recall=Interval(value[i], low[i], high[i], recalls[i].n))


def _of_next_run(rate: Interval, n: float) -> Interval:
    """The rate among outputs to come, from that of n that came; NaN stays NaN."""
    if not rate.value >= 0.0:
        return rate
    luck = midp_interval(rate.value, n)
    return Interval(
        rate.value,
        max(rate.value - hypot(rate.value - rate.low, rate.value - luck.low), 0.0),
        min(rate.value + hypot(rate.high - rate.value, luck.high - rate.value), 1.0),
        rate.n,
    )


def check_target(name: str, target: float) -> None:
    """Raises BadInputError outside (0, 1)."""
    if not 0.0 < target < 1.0:
        raise BadInputError(f"{name}={target!r}: must lie strictly between 0 and 1, such as 0.9")
