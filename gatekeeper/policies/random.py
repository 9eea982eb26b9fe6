"""Uniform random allocation: the baseline of every other policy."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from gatekeeper.arguments import check_beta, check_count
from gatekeeper.policies.descriptor import Learns, Need
from gatekeeper.policies.score import T0
from gatekeeper.types import Candidate, Decision, Outcome, Reason

__all__ = ["Random"]


class Random:
    """Verify iff `rng.random() < beta`, one draw per candidate after the warm-up.

    It needs no warm-up. It has that of the other policies so that all evaluate the same stream
    (docs/reference/policies.md, "The policies").

    Parameters
    ----------
    beta
        Share of the full cost to spend, in (0, 1).
    warmup
        How many candidates come first, all verified; 0 for none.
    seed
        Seed of the draws, at least 0.
    """

    name = "random"
    label = "Random"
    description = "every output with the same probability"
    learns: ClassVar[Learns] = "nothing"
    needs: ClassVar[tuple[Need, ...]] = ("warmup",)

    def __init__(self, beta: float, *, warmup: int = T0, seed: int = 0) -> None:
        self.beta = check_beta(beta)
        self.warmup = check_count("warmup", warmup, least=0)
        self.seed = check_count("seed", seed, least=0)
        self._rng = np.random.default_rng(seed)
        self._seen = 0
        self._labels = 0

    @property
    def phase(self) -> str:
        return "warmup" if self._seen < self.warmup else "steady"

    def decide(self, candidate: Candidate) -> Decision:
        self._seen += 1
        if self._seen <= self.warmup:
            return Decision(True, Reason.WARMUP, version=self._labels)
        return Decision(
            bool(self._rng.random() < self.beta),
            Reason.POLICY,
            propensity=self.beta,
            version=self._labels,
        )

    def update(self, candidate: Candidate, decision: Decision, outcome: Outcome) -> None:
        self._labels += outcome.error is not None

    def state(self) -> dict[str, Any]:
        return {
            "seen": self._seen,
            "labels": self._labels,
            "rng": dict(self._rng.bit_generator.state),
        }

    def restore(self, state: dict[str, Any]) -> None:
        self._seen, self._labels = state["seen"], state["labels"]
        self._rng.bit_generator.state = state["rng"]
