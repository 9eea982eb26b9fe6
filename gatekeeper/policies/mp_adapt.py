"""MP-Adapt: global online learning (paper, Section "Global Policies")."""

from __future__ import annotations

from typing import Any, ClassVar

from gatekeeper.arguments import check_flag
from gatekeeper.policies.descriptor import Learns, Need
from gatekeeper.policies.mirror_prox import MirrorProxPolicy, exponentiated_gradient, surrogate
from gatekeeper.policies.missing_signal import OnMissing
from gatekeeper.policies.score import T0, weighted_mean

__all__ = ["MPAdapt"]


class MPAdapt(MirrorProxPolicy):
    """One learned score θ and one price λ for the whole stream.

    θ ← EG(θ, (y - σ(u)) x, η_t) with η_t = 0.5 / (1 + 0.002 n), n the evaluation steps before. A
    late label updates the current θ, with the gradient of its own decision.

    Parameters
    ----------
    beta
        Share of the full cost to spend, in (0, 1).
    extragradient
        Use the true mirror-prox step (Nemirovski 2004), which the paper names but does not use: the
        gradient is that of the point half a step ahead, applied from θ.
    warmup
        How many candidates come first, all verified.
    on_missing
        For a candidate without signals: "uniform" (probability β), "verify" or "skip".
    seed
        Seed of the draws for those, at least 0.
    """

    name = "mp-adapt"
    label = "MP-Adapt"
    description = "learns from every label which signals matter"
    learns: ClassVar[Learns] = "labels"
    needs: ClassVar[tuple[Need, ...]] = ("warmup",)
    options: ClassVar[tuple[str, ...]] = ("extragradient", "on_missing")
    floor = 0.0

    def __init__(
        self,
        beta: float,
        *,
        extragradient: bool = False,
        warmup: int = T0,
        on_missing: OnMissing = "uniform",
        seed: int = 0,
    ) -> None:
        super().__init__(beta, warmup=warmup, on_missing=on_missing, seed=seed)
        self.extragradient = check_flag("extragradient", extragradient)
        self._theta: list[float] = []

    def _start(self, w0: list[float], price: float) -> None:
        self._theta, self._price = w0, [price]

    def _decider(self, stratum: int) -> list[float]:
        return self._theta

    def _learn(
        self, stratum: int, x: list[float], y: int, u: float, charge: float, rate: float
    ) -> None:
        if self.extragradient:
            ahead = exponentiated_gradient(self._theta, surrogate(y, u), x, rate)
            u = weighted_mean(x, ahead) - charge
        self._theta = exponentiated_gradient(self._theta, surrogate(y, u), x, rate)

    def state(self) -> dict[str, Any]:
        return super().state() | {"theta": list(self._theta)}

    def restore(self, state: dict[str, Any]) -> None:
        super().restore(state)
        self._theta = list(state["theta"])
