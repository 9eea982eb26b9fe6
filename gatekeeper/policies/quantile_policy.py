"""Base of Threshold and CST: verify candidates above a quantile of earlier values."""

from __future__ import annotations

from typing import Any, ClassVar

from gatekeeper.arguments import check_beta, check_count
from gatekeeper.policies.missing_signal import MissingSignalRule, OnMissing
from gatekeeper.policies.score import T0, WarmupScore
from gatekeeper.stats.quantile import RunningQuantile
from gatekeeper.types import Candidate, Decision, Outcome, Reason

__all__ = ["QuantilePolicy"]


class QuantilePolicy:
    """Verify iff z_t = s_t / ĉ_t exceeds the (1 - β) quantile of earlier z, verified or not.

    Subclasses define which earlier z: `_stratum`, `_threshold` and `_remember`.
    """

    name: ClassVar[str]

    def __init__(
        self, beta: float, *, warmup: int = T0, on_missing: OnMissing = "uniform", seed: int = 0
    ) -> None:
        self.beta = check_beta(beta)
        self.warmup = check_count("warmup", warmup)
        self.on_missing = on_missing
        self.seed = seed
        self._missing = MissingSignalRule(on_missing, beta, seed)
        self._warmup = WarmupScore(warmup)
        self._history = self._empty()
        self._labels = 0

    @property
    def phase(self) -> str:
        return "warmup" if self._warmup.active else "steady"

    def decide(self, candidate: Candidate) -> Decision:
        if self._warmup.active:
            self._warmup.add(candidate)
            return Decision(True, Reason.WARMUP, version=self._labels)
        if self._warmup.stale:
            self._refit()
        s = self._warmup.score(candidate.signals)
        self._warmup.add(candidate)
        if s != s:
            return self._missing.decide(self._labels)
        k = self._stratum(candidate.cost_estimate)
        s = self._adjusted(s, k, candidate)
        z = s / candidate.cost_estimate
        tau = self._threshold(k)
        self._remember(z, k)
        verify = z > tau
        return Decision(verify, Reason.POLICY, s, tau, k, 1.0 if verify else 0.0, self._labels)

    def update(self, candidate: Candidate, decision: Decision, outcome: Outcome) -> None:
        if outcome.error is not None:
            self._labels += 1
            self._warmup.learn(candidate.id, outcome.error)

    def _refit(self) -> None:
        """Fit the score to the labels known now, and rank the history by it."""
        self._warmup.fit()
        self._prepare()
        self._history = self._empty()
        for s, cost in self._warmup.scores():
            if s == s:
                self._remember(s / cost, self._stratum(cost))

    def _empty(self) -> RunningQuantile:
        return RunningQuantile(1.0 - self.beta)

    def _prepare(self) -> None:
        """Called with every fit, before the history is ranked again."""

    def _stratum(self, cost_estimate: float) -> int | None:
        return None

    def _adjusted(self, score: float, stratum: int | None, candidate: Candidate) -> float:
        return score

    def _threshold(self, stratum: int | None) -> float:
        return self._history.value()

    def _remember(self, z: float, stratum: int | None) -> None:
        self._history.add(z)

    def state(self) -> dict[str, Any]:
        return {
            "labels": self._labels,
            "warmup": self._warmup.state(),
            "missing": self._missing.state(),
            "history": self._history.values(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        self._labels = state["labels"]
        self._warmup.restore(state["warmup"])
        self._missing.restore(state["missing"])
        self._history = RunningQuantile(1.0 - self.beta, state["history"])
