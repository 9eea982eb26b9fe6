"""Replay of the policies that learn, with plain numbers in place of the objects that run live.

What MP-Adapt, MP-Strat and CST+Memory decide depends on what was verified before, so it takes one
step after the other. The loops here make the steps of `gatekeeper.analysis.replay` without a
candidate, a decision or an outcome for each, and read from `LearnerStream` what is the same at
every budget. benchmarks/replay.py measures what they gain; tests/analysis/test_vectorised.py holds
them against the classes, to the last bit.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import exp, nan
from typing import Any, NamedTuple

import numpy as np

from gatekeeper.policies import CSTMemory, MPAdapt, MPStrat
from gatekeeper.policies.mirror_prox import exponentiated_gradient, surrogate
from gatekeeper.policies.mp_strat import GAMMA
from gatekeeper.policies.score import WarmupScore, weighted_mean
from gatekeeper.stats.quantile import RunningQuantile
from gatekeeper.stats.strata import strata_of
from gatekeeper.types import FloatArray, IntArray

__all__ = ["LOOPS", "MOST", "LearnerStream", "ReplaySettings", "Steps", "by_distance"]

MOST = 6000  # candidates for CST+Memory: their neighbours take 36 MB if all are of one stratum
BLOCK = 256  # candidates whose neighbours are sorted at once


class ReplaySettings(NamedTuple):
    """How a stream is replayed once."""

    beta: float  # share of the full cost to spend, in (0, 1)
    seed: int  # of the draws for candidates without signals
    budget: float  # what the evaluated candidates may cost
    full: bool  # every label is shown, not only those of verified candidates


class Steps(NamedTuple):
    """What was decided on the evaluated candidates; lists of n values."""

    wanted: list[bool]  # proposed by the policy
    verified: list[bool]  # and admitted by the budget
    score: list[float]  # NaN where there was none; likewise the threshold
    threshold: list[float]
    stratum: list[int]  # -1 where there was none


@dataclass(frozen=True, eq=False)
class LearnerStream:
    """A stream as the loops read it: what does not depend on budget, policy and feedback.

    Parameters
    ----------
    fitted
        The score, fitted to the warm-up.
    h
        Signals (N, 3), NaN where one is missing.
    cost_estimate, cost
        ĉ and c (N,), above 0.
    observed
        Labels (N,) that policies are shown, NaN where there is none.
    warmup, first
        The number of candidates of the warm-up, and of those before the evaluation begins.
    """

    fitted: WarmupScore
    h: FloatArray
    cost_estimate: FloatArray
    cost: FloatArray
    observed: FloatArray
    warmup: int
    first: int
    _strata: dict[int, IntArray] = field(default_factory=dict)
    _neighbours: dict[int, list[array[int]]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.h)

    @cached_property
    def score(self) -> FloatArray:
        """s (N,), NaN without a signal."""
        return self.fitted.score_array(self.h)

    @cached_property
    def x(self) -> FloatArray:
        """Scaled signals (N, 3)."""
        return self.fitted.scaled_array(self.h)

    def strata(self, k: int) -> IntArray:
        """k(t) of every candidate, by the warm-up's quantiles of ĉ: (N,)."""
        if k not in self._strata:
            self._strata[k] = strata_of(self.cost_estimate, k, warmup=self.warmup)
        return self._strata[k]

    @cached_property
    def mean_estimate(self) -> float:
        """Mean ĉ of the warm-up."""
        return float(np.mean(self.cost_estimate[: self.warmup]))

    @cached_property
    def ratios(self) -> list[float]:
        """s / ĉ' of the warm-up's candidates that have a score."""
        s = self.score[: self.warmup]
        ratios: FloatArray = s / (self.cost_estimate[: self.warmup] / self.mean_estimate)
        found: list[float] = ratios[~np.isnan(s)].tolist()
        return found

    @cached_property
    def priced(self) -> list[tuple[float, ...]]:
        """For each candidate after the warm-up: x1, x2, x3, ĉ', c, its charge, its label, and η_t.

        The charge, if it is verified, is c', or ĉ' where that is unknown.
        """
        after = slice(self.warmup, None)
        estimate = self.cost_estimate[after] / self.mean_estimate
        known = ~np.isnan(self.observed)
        costs = self.cost[: self.warmup][known[: self.warmup]]
        charged = estimate
        if costs.size:
            charged = np.where(known[after], self.cost[after] / np.mean(costs), estimate)
        columns = (
            *self.x[after].T,
            estimate,
            self.cost[after],
            charged,
            self.observed[after],
            0.5 / (1.0 + 0.002 * np.arange(len(estimate))),
        )
        return list(zip(*(column.tolist() for column in columns), strict=True))

    def neighbours(self, k: int) -> list[array[int]]:
        """For each candidate: the earlier ones of its stratum that have a score, nearest first.

        By Euclidean distance in x, where a signal that either lacks counts as equal, and by order
        of arrival where distances are equal. `k` is the number of strata.
        """
        if k in self._neighbours:
            return self._neighbours[k]
        found = [array("H")] * len(self)
        strata, has = self.strata(k), ~np.isnan(self.score)
        for j in np.unique(strata):
            mine = np.flatnonzero(has & (strata == j))
            numbers = mine.astype(np.uint16)
            for start in range(0, mine.size, BLOCK):
                end = min(start + BLOCK, mine.size)
                order = by_distance(self.x[mine[start:end]], self.x[mine[:end]])
                for row, at in enumerate(range(start, end)):
                    found[mine[at]] = array("H", numbers[order[row, :at]].tobytes())
        self._neighbours[k] = found
        return found

    def draws(self, run: ReplaySettings) -> Iterator[bool]:
        """The draws for the candidates without signals, after the warm-up."""
        missing = int(np.isnan(self.score[self.warmup :]).sum())
        drawn: list[bool] = (np.random.default_rng(run.seed).random(missing) < run.beta).tolist()
        return iter(drawn)


def _mp_adapt(stream: LearnerStream, run: ReplaySettings) -> Steps:
    return _mirror_prox(stream, run, MPAdapt.floor, None)


def _mp_strat(stream: LearnerStream, run: ReplaySettings, *, strata: int = 4) -> Steps:
    return _mirror_prox(stream, run, MPStrat.floor, stream.strata(strata))


def _mirror_prox(
    stream: LearnerStream, run: ReplaySettings, floor: float, strata: IntArray | None
) -> Steps:
    """The steps of mirror prox; with strata a teacher decides and a student learns."""
    beta, full = run.beta, run.full
    warmup, first, budget, mean_estimate = (
        stream.warmup,
        stream.first,
        run.budget,
        stream.mean_estimate,
    )
    price = floor
    if stream.ratios:
        price = max(floor, RunningQuantile(1.0 - beta, stream.ratios).value())
    parts = 1 if strata is None else int(strata.max()) + 1
    part = [0] * len(stream.priced) if strata is None else strata[warmup:].tolist()
    prices = [price] * parts
    student = [stream.fitted.weights] * parts
    teacher = student if strata is None else list(student)
    rate_of_price = 0.25 * beta
    draws = stream.draws(run)
    steps = Steps([], [], [], [], [])
    spent = 0.0
    for t, ((x1, x2, x3, estimate, cost, charged, y, rate), k) in enumerate(
        zip(stream.priced, part, strict=True), warmup
    ):
        price = prices[k]
        s = _mean(x1, x2, x3, teacher[k])
        charge = price * estimate
        u = s - charge
        has = s == s
        wanted = u > 0.0 if has else next(draws)
        verify = wanted and (t < first or spent + cost <= budget)
        if t >= first:
            if verify:
                spent += cost
            steps.wanted.append(wanted)
            steps.verified.append(verify)
            steps.score.append(s)
            steps.threshold.append(price / mean_estimate if has else nan)
            steps.stratum.append(-1 if strata is None or not has else k)
        prices[k] = max(floor, price + rate_of_price * ((charged if verify else 0.0) - beta))
        if has and (verify or full) and y == y:
            theta = student[k]
            if strata is not None:
                u = _mean(x1, x2, x3, theta) - charge
            student[k] = theta = _moved(theta, surrogate(y, u), x1, x2, x3, rate)
            if strata is not None:
                a, b, c = teacher[k]
                d, e, f = theta
                teacher[k] = [
                    GAMMA * a + (1.0 - GAMMA) * d,
                    GAMMA * b + (1.0 - GAMMA) * e,
                    GAMMA * c + (1.0 - GAMMA) * f,
                ]
    return steps


def _cst_memory(
    stream: LearnerStream,
    run: ReplaySettings,
    *,
    weight: float = 0.2,
    neighbours: int = 5,
    strata: int = 4,
) -> Steps:
    """The steps of `cst-memory`, which learns from verified candidates only."""
    warmup, first, budget = stream.warmup, stream.first, run.budget
    part, nearest = stream.strata(strata), stream.neighbours(strata)
    parts = int(part.max()) + 1
    everywhere = RunningQuantile(1.0 - run.beta)
    histories = [RunningQuantile(1.0 - run.beta) for _ in range(parts)]
    sparse = True  # a stratum has fewer than two values, and needs those of all
    known = [-1] * len(stream)  # labels of the candidates in the memory
    members, wrong = [0] * parts, [0] * parts
    draws = stream.draws(run)
    steps = Steps([], [], [], [], [])
    spent = 0.0
    columns = (stream.score, stream.cost_estimate, stream.cost, stream.observed, part)
    for t, (s, estimate, cost, y, k) in enumerate(
        zip(*(column.tolist() for column in columns), strict=True)
    ):
        has = s == s
        tau = nan
        wanted = True
        if has:
            n = members[k]
            if n >= neighbours:
                h4 = _error_rate(nearest[t], known, neighbours)
            else:
                h4 = wrong[k] / n if n else 0.5
            s = (1.0 - weight) * s + weight * h4
            z = s / estimate
            history = histories[k]
            if t >= warmup:
                tau = history.value() if len(history) >= 2 else everywhere.value()
                wanted = z > tau
            history.add(z)
            if sparse:
                everywhere.add(z)
                sparse = min(map(len, histories)) < 2
        elif t >= warmup:
            wanted = next(draws)
        verify = wanted and (t < first or spent + cost <= budget)
        if t >= first:
            if verify:
                spent += cost
            steps.wanted.append(wanted)
            steps.verified.append(verify)
            steps.score.append(s)
            steps.threshold.append(tau)
            steps.stratum.append(k if has else -1)
        if verify and has and y == y:
            known[t] = label = int(y)
            members[k] += 1
            wrong[k] += label
    return steps


LOOPS: Mapping[Callable[..., Any], Callable[..., Steps]] = {
    MPAdapt: _mp_adapt,
    MPStrat: _mp_strat,
    CSTMemory: _cst_memory,
}


def _error_rate(nearest: array[int], known: list[int], count: int) -> float:
    """The error rate of the first `count` candidates with a known label; there are as many."""
    left, wrong = count, 0
    for j in nearest:
        label = known[j]
        if label >= 0:
            wrong += label
            left -= 1
            if not left:
                break
    return wrong / count


def by_distance(x: FloatArray, earlier: FloatArray) -> IntArray:
    """For each row of x (m, 3): the numbers of the rows of `earlier` (n, 3), nearest first: (m, n).

    The last m rows of `earlier` are those of x; a row itself and what comes after it stand last.
    """
    n = len(earlier)
    squares = np.zeros((len(x), n))
    gaps = np.isnan(earlier).any()
    for column, others in zip(x.T, earlier.T, strict=True):
        d = column[:, None] - others
        d *= d
        if gaps:
            d[np.isnan(d)] = 0.0
        squares += d
    distance = np.sqrt(squares, out=squares)
    distance[:, n - len(x) :][np.triu_indices(len(x))] = np.inf
    # The bits of a float of at least 0 ascend with it. The lowest of them make room for the
    # number, so that sorting integers ranks equal distances in order of arrival.
    low = (1 << n.bit_length()) - 1
    keys = (distance.view(np.int64) & ~low) | np.arange(n)
    keys.sort(axis=1)
    order = keys & low
    row, at = np.nonzero((keys[:, 1:] ^ keys[:, :-1]) <= low)  # equal, or but for the lowest bits
    differ = distance[row, order[row, at]] != distance[row, order[row, at + 1]]
    again = np.unique(row[differ])
    order[again] = np.argsort(distance[again], axis=1, kind="stable")
    return order


def _mean(x1: float, x2: float, x3: float, theta: list[float]) -> float:
    """`weighted_mean`, quicker where no signal is missing."""
    x = x1 + x2 + x3
    if x != x:
        return weighted_mean((x1, x2, x3), theta)
    a, b, c = theta
    s = (a * x1 + b * x2 + c * x3) / (a + b + c)
    return s if s < 1.0 else 1.0


def _moved(
    theta: list[float], factor: float, x1: float, x2: float, x3: float, rate: float
) -> list[float]:
    """`exponentiated_gradient`, quicker where no signal is missing."""
    x = x1 + x2 + x3
    if x != x:
        return exponentiated_gradient(theta, factor, [x1, x2, x3], rate)
    a, b, c = theta
    a *= exp(rate * (factor * x1))
    b *= exp(rate * (factor * x2))
    c *= exp(rate * (factor * x3))
    total = sum((a, b, c))  # as there: from Python 3.12 on its last bit may differ from a + b + c
    return [a / total, b / total, c / total] if total else theta
