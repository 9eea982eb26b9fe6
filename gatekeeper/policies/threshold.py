"""Threshold: the static global reference (paper, Section "Global Policies")."""

from __future__ import annotations

from gatekeeper.policies._quantile_policy import QuantilePolicy

__all__ = ["Threshold"]


class Threshold(QuantilePolicy):
    """τ_t = Quantile_{1-β} of all earlier z = s/ĉ, the warm-up's included; verify iff z_t > τ_t.

    A history without any scored candidate gives τ = NaN, which nothing exceeds.
    """

    name = "threshold"
