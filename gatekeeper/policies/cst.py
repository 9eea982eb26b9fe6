"""CST: cost-stratified thresholding (paper, Section "Structural Partitioning Without Learning")."""

from __future__ import annotations

from typing import Any, ClassVar

from gatekeeper.arguments import check_count
from gatekeeper.policies.descriptor import Learns, Need
from gatekeeper.policies.missing_signal import OnMissing
from gatekeeper.policies.quantile_policy import QuantilePolicy
from gatekeeper.policies.score import T0
from gatekeeper.stats.quantile import RunningQuantile
from gatekeeper.stats.strata import MOST_STRATA, CostStrata

__all__ = ["CST"]


class CST(QuantilePolicy):
    """Threshold within each of K strata of the ex-ante cost ĉ.

    The edges are quantiles of ĉ over the warm-up, then fixed. A stratum with fewer than two
    earlier values uses the global τ. With equal costs all decisions are those of Threshold.

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

    name = "cst"
    label = "CST"
    description = "one threshold per cost stratum"
    learns: ClassVar[Learns] = "warm-up"
    needs: ClassVar[tuple[Need, ...]] = ("warmup",)
    options: ClassVar[tuple[str, ...]] = ("strata", "on_missing")

    def __init__(
        self,
        beta: float,
        *,
        strata: int = 4,
        warmup: int = T0,
        on_missing: OnMissing = "uniform",
        seed: int = 0,
    ) -> None:
        self.strata = check_count("strata", strata, most=MOST_STRATA)
        self._cost_strata = CostStrata(strata)
        self._by_stratum: list[RunningQuantile] = []
        super().__init__(beta, warmup=warmup, on_missing=on_missing, seed=seed)

    def _prepare(self) -> None:
        if not self._cost_strata.fitted:
            self._cost_strata.fit(self._warmup.costs)
        self._by_stratum = [self._empty() for _ in range(self.strata)]

    def _stratum(self, cost_estimate: float) -> int:
        return self._cost_strata.of(cost_estimate)

    def _threshold(self, stratum: int | None) -> float:
        assert stratum is not None
        own = self._by_stratum[stratum]
        return own.value() if len(own) >= 2 else self._history.value()

    def _remember(self, z: float, stratum: int | None) -> None:
        assert stratum is not None
        self._history.add(z)
        self._by_stratum[stratum].add(z)

    def state(self) -> dict[str, Any]:
        return super().state() | {
            "edges": self._cost_strata.state(),
            "by_stratum": [history.values() for history in self._by_stratum],
        }

    def restore(self, state: dict[str, Any]) -> None:
        super().restore(state)
        self._cost_strata.restore(state["edges"])
        self._by_stratum = [RunningQuantile(1.0 - self.beta, v) for v in state["by_stratum"]]
