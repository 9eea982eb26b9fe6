"""Threshold: the static global reference (paper, Section "Global Policies")."""

from __future__ import annotations

from typing import ClassVar

from gatekeeper.policies.descriptor import Learns, Need
from gatekeeper.policies.quantile_policy import QuantilePolicy

__all__ = ["Threshold"]


class Threshold(QuantilePolicy):
    """τ_t = Quantile_{1-β} of all earlier z = s/ĉ, the warm-up's included; verify iff z_t > τ_t.

    A history without any scored candidate gives τ = NaN, which no z exceeds.

    Parameters
    ----------
    beta
        Share of the full cost to spend, in (0, 1).
    warmup
        How many candidates come first, all verified.
    on_missing
        For a candidate without signals: "uniform" (probability β), "verify" or "skip".
    seed
        Seed of the draws for those, at least 0.
    """

    name = "threshold"
    label = "Threshold"
    description = "one threshold for all"
    learns: ClassVar[Learns] = "warm-up"
    needs: ClassVar[tuple[Need, ...]] = ("warmup",)
    options: ClassVar[tuple[str, ...]] = ("on_missing",)
