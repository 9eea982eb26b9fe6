"""Numbers as text; a dash for NaN."""

from __future__ import annotations

from math import isnan

import numpy as np

from gatekeeper.stats.interval import Interval
from gatekeeper.types import FloatArray

__all__ = [
    "budget",
    "cost",
    "count",
    "decimals",
    "difference",
    "p_value",
    "percent",
    "percent_and_margin",
    "share",
    "spread",
]


def share(part: float, whole: float) -> str:
    return f"{part / whole:.1%}" if whole else "–"


def percent(value: float) -> str:
    return "–" if isnan(value) else f"{value:.1%}"


def percent_and_margin(value: Interval) -> str:
    shown = percent(value.value)
    return f"{shown} ± {100 * value.margin:.1f}" if value.margin >= 0.0005 else shown


def decimals(value: float, digits: int = 3) -> str:
    return "–" if isnan(value) else f"{value:.{digits}f}".replace("-", "−")


def difference(gain: Interval) -> str:
    """Percentage points with their interval; empty for a comparison with itself."""
    if isnan(gain.value) or gain.value == gain.margin == 0.0:
        return "–" if isnan(gain.value) else ""
    return f"{100 * gain.value:+.1f} ± {100 * gain.margin:.1f}".replace("-", "−")


def p_value(value: float) -> str:
    return "–" if isnan(value) else "< 0.001" if value < 0.001 else f"{value:.3f}"


def count(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:.1f}" if isinstance(value, float) else str(value)


def spread(values: FloatArray) -> str:
    if not values.size:
        return "–"
    return " – ".join(map(cost, np.quantile(values, (0.0, 0.5, 1.0)).tolist()))


def cost(value: float) -> str:
    return f"{value:,.0f}" if 100.0 <= value < 1e9 else f"{value:.3g}"


def budget(beta: float) -> str:
    return f"{100 * beta:.3g}%"
