"""Split-conformal thresholds (paper, "Per-Stratum Split-Conformal Baseline")."""

from __future__ import annotations

from math import ceil, inf
from typing import Any, ClassVar

from gatekeeper.arguments import check_beta, check_count, check_flag
from gatekeeper.policies.descriptor import Learns, Need
from gatekeeper.policies.missing_signal import MissingSignalRule, OnMissing
from gatekeeper.policies.score import T0, WarmupScore
from gatekeeper.stats.strata import MOST_STRATA, CostStrata
from gatekeeper.types import Candidate, Decision, Outcome, Reason

__all__ = ["SplitConformal", "conformal_threshold"]


class SplitConformal:
    """Thresholds calibrated once, then fixed.

    Of the `calibration` candidates after the warm-up only z = s/ĉ is used; none of them is
    verified. Then τ_k is the ⌈(n_k + 1)(1 - β)⌉-th smallest of stratum k, +∞ where n_k is too
    small for that.

    The score is fitted once: labels of the warm-up that arrive later change nothing.

    Parameters
    ----------
    beta
        Share of the full cost to spend, in (0, 1).
    calibration
        Number of candidates after the warm-up that set the thresholds.
    stratified
        False: one threshold for all.
    strata
        K, how many cost strata.
    warmup
        How many candidates come first, all verified.
    on_missing
        For a candidate without signals: "uniform" (probability β), "verify" or "skip".
    seed
        Seed of the draws for those, at least 0.
    """

    name = "split-conformal"
    label = "Split conformal"
    description = "one threshold per stratum, fixed after the first half"
    learns: ClassVar[Learns] = "warm-up"
    needs: ClassVar[tuple[Need, ...]] = ("warmup", "calibration")
    options: ClassVar[tuple[str, ...]] = ("stratified", "strata", "on_missing")

    def __init__(
        self,
        beta: float,
        *,
        calibration: int = 500,
        stratified: bool = True,
        strata: int = 4,
        warmup: int = T0,
        on_missing: OnMissing = "uniform",
        seed: int = 0,
    ) -> None:
        self.beta = check_beta(beta)
        self.calibration = check_count("calibration", calibration, least=0)
        self.stratified = check_flag("stratified", stratified)
        self.strata = check_count("strata", strata, most=MOST_STRATA)
        self.warmup = check_count("warmup", warmup)
        self.on_missing = on_missing
        self.seed = seed
        self._missing = MissingSignalRule(on_missing, beta, seed)
        self._warmup = WarmupScore(warmup)
        self._left = calibration
        self._labels = 0
        parts = strata if stratified else 1
        self._cost_strata = CostStrata(parts)
        self._z: list[list[float]] = [[] for _ in range(parts)]
        self._tau: list[float] = []

    @property
    def phase(self) -> str:
        if self._warmup.active:
            return "warmup"
        return "calibration" if self._left else "steady"

    def decide(self, candidate: Candidate) -> Decision:
        if self._warmup.active:
            self._warmup.add(candidate)
            return Decision(True, Reason.WARMUP, version=self._labels)
        if not self._cost_strata.fitted:
            self._warmup.fit()
            self._cost_strata.fit(self._warmup.costs)
            self._warmup.close()
        s = self._warmup.score(candidate.signals)
        k = self._cost_strata.of(candidate.cost_estimate)
        shown = k if self.stratified else None
        if self._left:
            self._left -= 1
            if s == s:
                self._z[k].append(s / candidate.cost_estimate)
            return Decision(
                False,
                Reason.CALIBRATION,
                score=s,
                stratum=shown,
                propensity=0.0,
                version=self._labels,
            )
        if not self._tau:
            self._tau = [conformal_threshold(z, self.beta) for z in self._z]
            self._z = []
        if s != s:
            return self._missing.decide(self._labels)
        tau = self._tau[k]
        verify = s / candidate.cost_estimate > tau
        return Decision(verify, Reason.POLICY, s, tau, shown, 1.0 if verify else 0.0, self._labels)

    def update(self, candidate: Candidate, decision: Decision, outcome: Outcome) -> None:
        if outcome.error is not None:
            self._labels += 1
            self._warmup.learn(candidate.id, outcome.error)

    def state(self) -> dict[str, Any]:
        return {
            "labels": self._labels,
            "warmup": self._warmup.state(),
            "missing": self._missing.state(),
            "left": self._left,
            "edges": self._cost_strata.state(),
            "z": [list(z) for z in self._z],
            "tau": [None if tau == inf else tau for tau in self._tau],
        }

    def restore(self, state: dict[str, Any]) -> None:
        self._labels, self._left = state["labels"], state["left"]
        self._warmup.restore(state["warmup"])
        self._missing.restore(state["missing"])
        self._cost_strata.restore(state["edges"])
        self._z = [list(z) for z in state["z"]]
        self._tau = [inf if tau is None else tau for tau in state["tau"]]


def conformal_threshold(z: list[float], beta: float) -> float:
    """The ⌈(n + 1)(1 - β)⌉-th smallest of n values; +∞ where there are not that many."""
    rank = ceil((len(z) + 1) * (1.0 - beta))
    return sorted(z)[rank - 1] if rank <= len(z) else inf
