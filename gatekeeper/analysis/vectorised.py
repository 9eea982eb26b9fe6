"""Replay over arrays: the decisions of `gatekeeper.analysis.replay`, for all candidates at once.

Some policies decide independently of what was verified before, so that their decisions can be
computed from whole columns: `_RULES` has a fast path for those. Those of the paper that learn have
one in `gatekeeper.analysis.learners`. All other policies, plug-ins included, are stepped through,
one candidate after the other, by the classes that run live. benchmarks/replay.py measures what the
fast paths gain; tests/analysis/test_vectorised.py holds each against the plain
`gatekeeper.analysis.replay`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np

from gatekeeper.analysis.learners import LOOPS, MOST, LearnerStream, ReplaySettings
from gatekeeper.analysis.replay import (
    Evaluate,
    Feedback,
    evaluation_start,
    outcome_of,
    step_through,
)
from gatekeeper.analysis.thresholds import stratified_thresholds, thresholds
from gatekeeper.budget import affordable
from gatekeeper.io.record_table import feature_rows
from gatekeeper.policies import (
    CST,
    HGA,
    T0,
    CSTMemory,
    Oracle,
    Random,
    SplitConformal,
    Threshold,
)
from gatekeeper.policies.hga import CalibrationSample, GateEvidence, weigh
from gatekeeper.policies.score import WarmupScore
from gatekeeper.policies.split_conformal import conformal_threshold
from gatekeeper.protocols import Policy
from gatekeeper.types import (
    BoolArray,
    Candidate,
    FloatArray,
    IntArray,
    Outcome,
    Record,
    Signals,
)

__all__ = [
    "Decisions",
    "Stream",
    "fixed_score",
]

AT_ONCE = 100_000  # costs that are Python's floats at a time: memory


@dataclass(frozen=True, slots=True, eq=False)
class Decisions:
    """Decisions of a policy on the evaluated candidates; arrays of shape (n,)."""

    wanted: BoolArray  # proposed by the policy
    verified: BoolArray  # and admitted by the budget
    score: FloatArray  # NaN where there was none; likewise the threshold
    threshold: FloatArray
    stratum: IntArray  # -1 where there was none
    budget: float
    evidence: GateEvidence | None = None  # HGA's


class Stream:
    """Candidates in the order in which they come, and their combined score s.

    Parameters
    ----------
    h
        Signals (N, 3), NaN where one is missing.
    cost_estimate, cost
        ĉ and c (N,), above 0.
    error
        y (N,) in {0, 1}.
    observed
        Labels (N,) that policies are shown, NaN where there is none. Default: y.
    evaluate
        "all" after the warm-up, or its "second-half".
    warmup
        How many candidates come first.
    features
        Columns (N,) by name, NaN missing; None: without any.

    Raises
    ------
    BadInputError
        The warm-up leaves nothing to evaluate.
    """

    def __init__(
        self,
        h: FloatArray,
        cost_estimate: FloatArray,
        cost: FloatArray,
        error: FloatArray,
        *,
        observed: FloatArray | None = None,
        evaluate: Evaluate = "all",
        warmup: int = T0,
        features: Mapping[str, FloatArray] | None = None,
    ) -> None:
        self.features = features
        self.h, self.cost_estimate, self.cost, self.error = h, cost_estimate, cost, error
        self.observed = error if observed is None else observed
        self.warmup = warmup
        self.first = evaluation_start(len(h), warmup=warmup, evaluate=evaluate)
        parts = range(self.first, len(cost), AT_ONCE)
        costs = chain.from_iterable(cost[start : start + AT_ONCE].tolist() for start in parts)
        self._whole: float = sum(costs)
        fitted = _fitted(h, cost_estimate, self.observed, warmup)
        self.learners = LearnerStream(
            fitted, h, cost_estimate, cost, self.observed, warmup, self.first
        )
        self.score = self.learners.score  # s
        self.z = self.score / cost_estimate
        # Made once, for all policies that are stepped.
        self._objects: list[tuple[Candidate, Outcome]] = []

    def __len__(self) -> int:
        return len(self.h)

    def strata(self, k: int = 4) -> IntArray:
        """k(t) of every candidate, by the warm-up's quantiles of ĉ."""
        return self.learners.strata(k)

    def has_rule(self, policy: Callable[..., Policy], options: Iterable[str] = ()) -> bool:
        """Whether `decide` takes the policy with these options; otherwise `step` through it."""
        if not isinstance(policy, type) or (policy is CSTMemory and len(self) > MOST):
            return False
        rule = _RULES.get(policy) or LOOPS.get(policy)
        return rule is not None and set(options) <= set(rule.__kwdefaults__ or ())

    def decide(
        self,
        policy: Callable[..., Policy],
        beta: float,
        *,
        seed: int = 0,
        feedback: Feedback = "full",
        **options: Any,
    ) -> Decisions:
        """The decisions of a policy of this class.

        `options` are those that its fast path takes (`has_rule`), already checked; of the others
        the defaults hold. Policies that do not learn decide alike whatever the feedback.
        """
        if rule := _RULES.get(policy):
            return rule(self, beta, seed, **options)
        run = ReplaySettings(beta, seed, self.budget(beta), feedback == "full")
        steps = LOOPS[policy](self.learners, run, **options)
        return Decisions(
            np.array(steps.wanted, dtype=bool),
            np.array(steps.verified, dtype=bool),
            np.array(steps.score, dtype=np.float64),
            np.array(steps.threshold, dtype=np.float64),
            np.array(steps.stratum, dtype=np.intp),
            run.budget,
        )

    def step(self, policy: Policy, beta: float, *, feedback: Feedback = "full") -> Decisions:
        """The decisions of any policy, one candidate after the other, as in `analysis.replay`."""
        budget = self.budget(beta)
        if not self._objects:
            outcomes = map(outcome_of, self.observed.tolist(), self.cost.tolist())
            self._objects = list(
                zip(_candidates(self.h, self.cost_estimate, self.features), outcomes, strict=True)
            )
        decisions, verified = step_through(
            policy, self._objects, self.first, budget, feedback=feedback
        )
        return Decisions(
            np.array([d.verify for d in decisions], dtype=bool),
            np.array(verified, dtype=bool),
            np.array([d.score for d in decisions], dtype=np.float64),
            np.array([d.threshold for d in decisions], dtype=np.float64),
            np.array([-1 if d.stratum is None else d.stratum for d in decisions], dtype=np.intp),
            budget,
            getattr(policy, "evidence", None),
        )

    def evaluated_records(self) -> list[Record]:
        """The evaluated candidates with their true labels, for a policy that needs those."""
        first = self.first
        rows = zip(self.h[first:].tolist(), self.cost_estimate[first:].tolist(), strict=True)
        outcomes = zip(self.cost[first:].tolist(), self.error[first:].tolist(), strict=True)
        return [
            Record(str(first + i), Signals(*h), estimate, cost, 1 if error else 0)
            for i, ((h, estimate), (cost, error)) in enumerate(zip(rows, outcomes, strict=True))
        ]

    def budget(self, beta: float) -> float:
        """B = β Σ c over the evaluated candidates, added up in their order."""
        return beta * self._whole

    def by_partition(self, strata: IntArray, beta: float, *, seed: int = 0) -> Decisions:
        """Threshold within each part of any partition (N,): the paper's controls."""
        return self.by_threshold(stratified_thresholds(self.z, strata, 1.0 - beta), beta, seed)

    def by_threshold(
        self,
        tau: FloatArray,
        beta: float,
        seed: int,
        strata: IntArray | None = None,
        *,
        start: int | None = None,
    ) -> Decisions:
        """The decisions of a rule z > τ. Candidates without a score are drawn with probability β.

        Parameters
        ----------
        tau
            τ (N,).
        beta
            Share of the full cost to spend, in (0, 1).
        seed
            Seed of the draws.
        strata
            The stratum of each candidate (N,), for the decisions; None: there are none.
        start
            The candidate with which the draws begin; None: the first after the warm-up.
        """
        first = self.first
        with np.errstate(invalid="ignore"):
            wanted = self.z > tau
        missing = np.isnan(self.score)
        missing[: self.warmup if start is None else start] = False
        drawn = np.random.default_rng(seed).random(int(missing.sum())) < beta
        wanted[missing] = drawn
        tau = np.where(missing, np.nan, tau)
        shown = np.full(len(self), -1) if strata is None else np.where(missing, -1, strata)
        return self.admitted(wanted[first:], beta, self.score[first:], tau[first:], shown[first:])

    def admitted(
        self,
        wanted: BoolArray,
        beta: float,
        score: FloatArray | None = None,
        threshold: FloatArray | None = None,
        stratum: IntArray | None = None,
    ) -> Decisions:
        """The decisions of a rule that wants these of the evaluated candidates; arrays (n,)."""
        n = wanted.size
        budget = self.budget(beta)
        return Decisions(
            wanted,
            affordable(wanted, self.cost[self.first :], budget),
            np.full(n, np.nan) if score is None else score,
            np.full(n, np.nan) if threshold is None else threshold,
            np.full(n, -1) if stratum is None else stratum,
            budget,
        )


def _random(stream: Stream, beta: float, seed: int) -> Decisions:
    n = len(stream) - stream.first
    return stream.admitted(np.random.default_rng(seed).random(n) < beta, beta)


def _threshold(stream: Stream, beta: float, seed: int) -> Decisions:
    return stream.by_threshold(thresholds(stream.z, 1.0 - beta), beta, seed)


def _cst(stream: Stream, beta: float, seed: int, *, strata: int = 4) -> Decisions:
    k = stream.strata(strata)
    tau = stratified_thresholds(stream.z, k, 1.0 - beta)
    return stream.by_threshold(tau, beta, seed, k)


def _split_conformal(
    stream: Stream, beta: float, seed: int, *, stratified: bool = True, strata: int = 4
) -> Decisions:
    """Calibrated on what lies between the warm-up and the evaluation."""
    k = stream.strata(strata if stratified else 1)
    calibration = slice(stream.warmup, stream.first)
    z, part = stream.z[calibration], k[calibration]
    has = ~np.isnan(z)
    levels = [
        conformal_threshold(z[has & (part == j)].tolist(), beta)
        for j in range(strata if stratified else 1)
    ]
    shown = k if stratified else None
    return stream.by_threshold(np.array(levels)[k], beta, seed, shown, start=stream.first)


def _hga(stream: Stream, beta: float, seed: int, *, strata: int = 4) -> Decisions:
    """Both policies on the whole stream; the first half decides which of them is deployed."""
    k = stream.strata(strata)
    taus = thresholds(stream.z, 1.0 - beta), stratified_thresholds(stream.z, k, 1.0 - beta)
    half = np.arange(stream.warmup, stream.first)
    half = half[~np.isnan(stream.score[half])]
    with np.errstate(invalid="ignore"):
        proposals = stream.z[half] > taus[0][half], stream.z[half] > taus[1][half]
    sample = CalibrationSample(
        stream.score[half],
        k[half],
        *proposals,
        stream.observed[half],
        stream.cost[half],
        np.ones(half.size, dtype=bool),
    )
    evidence = weigh(sample, beta=beta, strata=strata)
    chosen = stream.by_threshold(taus[evidence.open], beta, seed, k if evidence.open else None)
    return replace(chosen, evidence=evidence)


def _oracle(stream: Stream, beta: float, seed: int) -> Decisions:
    cost, y = stream.cost[stream.first :], stream.error[stream.first :]
    order = np.argsort(-y, kind="stable")  # what is wrong first
    chosen = np.zeros(y.size, dtype=bool)
    chosen[order] = affordable(np.ones(y.size, dtype=bool), cost[order], stream.budget(beta))
    return stream.admitted(chosen, beta)


_RULES: dict[Callable[..., Policy], Callable[..., Decisions]] = {
    Random: _random,
    Threshold: _threshold,
    CST: _cst,
    SplitConformal: _split_conformal,
    HGA: _hga,
    Oracle: _oracle,
}


def fixed_score(
    h: FloatArray, cost_estimate: FloatArray, labels: FloatArray, *, warmup: int = T0
) -> FloatArray:
    """The combined score s in [0, 1], NaN without a signal: (N,).

    Fitted to the first `warmup` of h (N, 3) and of their labels (N,) in {0, 1}, NaN unknown.
    """
    return _fitted(h, cost_estimate, labels, warmup).score_array(h)


def _fitted(
    h: FloatArray, cost_estimate: FloatArray, labels: FloatArray, warmup: int
) -> WarmupScore:
    fitted = WarmupScore(warmup)
    candidates = _candidates(h[:warmup], cost_estimate[:warmup])
    for candidate, label in zip(candidates, labels.tolist(), strict=False):
        fitted.add(candidate)
        if label == label:
            fitted.learn(candidate.id, int(label))
    fitted.fit()
    return fitted


def _candidates(
    h: FloatArray, cost_estimate: FloatArray, features: Mapping[str, FloatArray] | None = None
) -> list[Candidate]:
    rows = zip(h.tolist(), cost_estimate.tolist(), feature_rows(features), strict=False)
    return [
        Candidate(str(i), Signals(*signals), cost, more)
        for i, (signals, cost, more) in enumerate(rows)
    ]
