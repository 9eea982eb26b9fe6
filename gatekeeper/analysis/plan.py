"""How much budget a target needs: what each budget would have found, on records or a run's log.

The policy's choices at budgets from 0 to 1 on the outputs of the file are those of a run so long
that its quantiles have settled; policies other than Threshold and CST are replayed in the order of
the file. Labels that the file lacks are drawn as `gatekeeper.analysis.off_policy` describes. The
estimates are for the next run: for outputs distributed as these, with the score that this warm-up
has fitted. So each draw also has random weights of the outputs (Bayesian bootstrap). With every
verdict in the file only the weights are drawn.

Each draw is a whole curve, which gives the budget of a target: its mean over draws is the estimate,
its quantiles are the interval. The budget for a residual risk is the smallest one at which
the upper end of a simultaneous 95 % band of all budgets keeps to the target, so that it
holds however many budgets are compared.

A Beta(x, n - x) posterior, as the bootstrap has it, is certain where x is 0 or n. Intervals are
those of Jeffreys' prior instead, which adds half a success and half a failure; values are not.
`benchmarks/off_policy.py` measures the coverage.

References
----------
Rubin (1981), "The Bayesian bootstrap". Montiel Olea and Plagborg-Møller (2019), "Simultaneous
confidence bands": the band.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from gatekeeper.analysis.off_policy import STRATA, Evidence
from gatekeeper.analysis.policy_run import Contender
from gatekeeper.errors import BadInputError
from gatekeeper.policies import CST, Threshold, describe_policy
from gatekeeper.stats.interval import LEVEL, Interval
from gatekeeper.types import FloatArray

__all__ = [
    "BUDGETS",
    "Curve",
    "Draws",
    "Needed",
    "Point",
    "curve_of",
    "settled_share",
]

BUDGETS = tuple(i / 50 for i in range(1, 50))  # shares of the full cost: 2 % … 98 %
CHOICES = 3  # parts of the outputs by the budget from which on they are verified
JEFFREYS = 0.5  # successes, and failures, that are added


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


@dataclass(frozen=True, slots=True, eq=False)
class Draws:
    """One rate at ascending budgets (m,), as draws (D, m): of its value, and of its interval."""

    value: FloatArray
    interval: FloatArray

    def at(self, j: int, n: int) -> Interval:
        """The rate at the j-th budget, from n labels."""
        value = float(self.value[:, j].mean())
        found = Interval.of_draws(self.interval[:, j])
        return Interval(value, min(found.low, value), max(found.high, value), n)


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """A policy at budgets from 0 to 1, ascending."""

    policy: Contender
    points: tuple[Point, ...]
    recall: Draws  # at all points
    residual_risk: Draws  # at all points but the last, which leaves nothing out

    def for_recall(self, target: float) -> Needed:
        """The budget whose recall is the target, with a 95 % interval."""
        _check_target("recall", target)
        value = float(self._reach(self.recall.value, target).mean())
        found = Interval.of_draws(self._reach(self.recall.interval, target))
        return Needed(target, Interval(value, min(found.low, value), max(found.high, value)))

    def for_residual_risk(self, target: float) -> float | None:
        """The smallest budget with at most this risk at 95 % confidence.

        Returns
        -------
        float or None
            None if no budget below 1 has it: verify everything, or get more labels.
        """
        _check_target("residual_risk", target)
        kept = np.flatnonzero(self.highest_risks() <= target)
        return self.points[kept[0]].budget if kept.size else None

    def highest_risks(self) -> FloatArray:
        """The upper ends of a simultaneous 95 % band of the residual risk, at all points but the
        last: the true curve is above it somewhere in 5 % of all cases (sup-t band)."""
        draws = self.residual_risk.interval
        centre, spread = draws.mean(axis=0), draws.std(axis=0)
        above = (draws - centre) / np.maximum(spread, np.finfo(float).tiny)
        return np.asarray(centre + np.quantile(np.nanmax(above, axis=1), LEVEL) * spread)

    def at(self, budget: float) -> Point:
        """The point nearest to a budget."""
        return min(self.points, key=lambda p: abs(p.budget - budget))

    def _reach(self, recalls: FloatArray, target: float) -> FloatArray:
        """The budget at which each draw (D, m), ascending from 0 to 1, reaches the target: (D,).

        Draws are straight lines between points.
        """
        budgets = np.array([p.budget for p in self.points])
        after = np.maximum((recalls < target).sum(axis=1), 1)
        rows = np.arange(len(recalls))
        low, high = recalls[rows, after - 1], recalls[rows, after]
        part = np.clip((target - low) / np.maximum(high - low, np.finfo(float).tiny), 0.0, 1.0)
        reached: FloatArray = budgets[after - 1] + part * (budgets[after] - budgets[after - 1])
        return reached


def curve_of(
    evidence: Evidence,
    policy: Contender | str,
    budgets: Sequence[float] = BUDGETS,
    *,
    on_progress: Callable[[int], None] = lambda points: None,
) -> Curve:
    """The curve of a policy on these outputs.

    Parameters
    ----------
    evidence
        Evidence of the run or the records.
    policy
        Its name, or with options.
    budgets
        Ascending, in (0, 1); the curve also has 0 and 1.
    on_progress
        Called with 1 after each budget.

    Returns
    -------
    Curve

    Raises
    ------
    BadInputError
        For an unknown policy.
    """
    policy = Contender.of(policy)
    n = evidence.p.size
    columns = [np.zeros(n)]
    for share in _shares(evidence, policy, budgets):
        columns.append(share)
        on_progress(1)
    shares = np.column_stack([*columns, np.ones(n)])
    ease = shares.sum(axis=1) / shares.shape[1]
    labels = evidence.labels(np.minimum((ease * CHOICES).astype(np.intp), CHOICES - 1))
    found, chosen = evidence.totals(labels, shares, resample=True)
    verdicts = evidence.drawn & evidence.counted
    recall, risk = _rates(found, chosen)
    if describe_policy(policy.name).learns == "nothing":  # it finds what it verifies
        recall = Draws(*(np.broadcast_to(shares[0], found.shape) for _ in range(2)))
        risk = Draws(*(np.broadcast_to(r[:, :1], r.shape) for r in (risk.value, risk.interval)))
    points = []
    for j, budget in enumerate([0.0, *budgets, 1.0]):
        left = verdicts & (shares[:, j] < 1.0)
        points.append(
            Point(
                budget,
                float(shares[evidence.counted, j].mean()),
                recall.at(j, int(verdicts.sum())),
                risk.at(j, int(left.sum())),
            )
        )
    return Curve(policy, tuple(points), recall, Draws(risk.value[:, :-1], risk.interval[:, :-1]))


def _rates(found: FloatArray, chosen: FloatArray) -> tuple[Draws, Draws]:
    """Recall and residual risk at budgets from 0 to 1, from errors found and outputs verified in
    each draw (D, m)."""
    errors, outputs = found[:, -1:], chosen[:, -1:]
    missed, left = errors - found, outputs - chosen
    half = np.random.default_rng(1).gamma(JEFFREYS, size=(3, len(found), 1))
    more = half[0] + half[1]
    with np.errstate(invalid="ignore", divide="ignore"):
        recall = found / errors, (found + half[0]) / (errors + more)
        risk = missed / left, (missed + half[1]) / (left + half[1] + half[2])
    for draws in recall:
        draws[:, 0], draws[:, -1] = 0.0, 1.0
        np.maximum.accumulate(draws, axis=1, out=draws)  # more budget finds more
    for draws in risk:
        draws[left == 0.0] = np.nan
    return Draws(*recall), Draws(*risk)


def _shares(
    evidence: Evidence, policy: Contender, budgets: Sequence[float]
) -> Iterator[FloatArray]:
    """The probability with which the policy verifies each output (n,), at each budget."""
    make = describe_policy(policy.name).make
    settles = policy.options.keys() <= {"strata"}
    for budget in budgets:
        if make is Threshold and settles:
            yield settled_share(evidence, budget, 1)
        elif make is CST and settles:
            yield settled_share(evidence, budget, policy.options.get("strata", STRATA))
        else:
            yield evidence.shares(policy, budget)


def settled_share(evidence: Evidence, budget: float, strata: int = STRATA) -> FloatArray:
    """The probability with which CST verifies each output in a run so long that it has settled.

    Parameters
    ----------
    evidence
        Evidence of the run or the records.
    budget
        Share of the full cost, in (0, 1).
    strata
        Number of strata; 1: Threshold.

    Returns
    -------
    array
        Shape (n,), in [0, 1]. Outputs without a score are drawn with probability `budget`.
    """
    z, cost = evidence.stream.z, evidence.cost
    parts = np.where(np.isnan(z), -1, evidence.stream.strata(strata))
    share = np.full(z.size, budget)
    for k in np.unique(parts[parts >= 0]).tolist():
        mine = parts == k
        share[mine] = z[mine] > np.quantile(z[mine], 1.0 - budget)
    share = share[evidence.warmup :]
    spent = float(share @ cost) / (budget * float(cost.sum()))
    return share / max(spent, 1.0)  # the budget ends before the stream


def _check_target(name: str, target: float) -> None:
    """Raises BadInputError outside (0, 1)."""
    if not 0.0 < target < 1.0:
        raise BadInputError(f"{name}={target!r}: must lie strictly between 0 and 1, such as 0.9")
