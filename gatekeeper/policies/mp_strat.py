"""MP-Strat: partial stratification (paper, Section "Global Policies", MP-Strat)."""

from __future__ import annotations

from typing import Any, ClassVar

from gatekeeper.arguments import check_count
from gatekeeper.policies.descriptor import Learns, Need
from gatekeeper.policies.mirror_prox import MirrorProxPolicy, exponentiated_gradient, surrogate
from gatekeeper.policies.missing_signal import OnMissing
from gatekeeper.policies.score import T0, weighted_mean
from gatekeeper.stats.strata import MOST_STRATA, CostStrata

__all__ = ["GAMMA", "MPStrat"]

GAMMA = 0.9  # of the teacher's moving average


class MPStrat(MirrorProxPolicy):
    """MP-Adapt within each of K strata of ĉ, smoothed by a teacher.

    Every stratum has a price λ_k ≥ 0.1, a student θ^S_k that takes the gradient, at its own
    utility, and a teacher θ^T_k that decides: θ^T_k ← 0.9 θ^T_k + 0.1 θ^S_k after each update.

    Parameters
    ----------
    beta
        Share of the full cost to spend, in (0, 1).
    strata
        K, how many cost strata.
    warmup
        How many candidates come first, all verified.
    on_missing
        For a candidate without signals: "uniform" (probability β), "verify" or "skip".
    seed
        Seed of the draws for those, at least 0.
    """

    name = "mp-strat"
    label = "MP-Strat"
    description = "MP-Adapt in each cost stratum"
    learns: ClassVar[Learns] = "labels"
    needs: ClassVar[tuple[Need, ...]] = ("warmup",)
    options: ClassVar[tuple[str, ...]] = ("strata", "on_missing")
    floor = 0.1

    def __init__(
        self,
        beta: float,
        *,
        strata: int = 4,
        warmup: int = T0,
        on_missing: OnMissing = "uniform",
        seed: int = 0,
    ) -> None:
        super().__init__(beta, warmup=warmup, on_missing=on_missing, seed=seed)
        self.strata = check_count("strata", strata, most=MOST_STRATA)
        self._cost_strata = CostStrata(strata)
        self._student: list[list[float]] = []
        self._teacher: list[list[float]] = []

    def _start(self, w0: list[float], price: float) -> None:
        self._cost_strata.fit(self._warmup.costs)
        self._price = [max(self.floor, price)] * self.strata
        self._student = [w0] * self.strata
        self._teacher = [w0] * self.strata

    def _stratum(self, cost_estimate: float) -> int:
        return self._cost_strata.of(cost_estimate)

    def _shown(self, stratum: int) -> int:
        return stratum

    def _decider(self, stratum: int) -> list[float]:
        return self._teacher[stratum]

    def _learn(
        self, stratum: int, x: list[float], y: int, u: float, charge: float, rate: float
    ) -> None:
        student = self._student[stratum]
        u = weighted_mean(x, student) - charge
        student = exponentiated_gradient(student, surrogate(y, u), x, rate)
        self._student[stratum] = student
        self._teacher[stratum] = [
            GAMMA * t + (1.0 - GAMMA) * s
            for t, s in zip(self._teacher[stratum], student, strict=True)
        ]

    def state(self) -> dict[str, Any]:
        return super().state() | {
            "edges": self._cost_strata.state(),
            "student": [list(theta) for theta in self._student],
            "teacher": [list(theta) for theta in self._teacher],
        }

    def restore(self, state: dict[str, Any]) -> None:
        super().restore(state)
        self._cost_strata.restore(state["edges"])
        self._student = [list(theta) for theta in state["student"]]
        self._teacher = [list(theta) for theta in state["teacher"]]
