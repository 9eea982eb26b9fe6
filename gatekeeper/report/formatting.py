"""Numbers as text; a dash for NaN."""

from __future__ import annotations

from math import isnan

import numpy as np

from gatekeeper.stats.interval import Interval
from gatekeeper.types import FloatArray
from gatekeeper.wording import cost_text, minus, signed

__all__ = [
    "budget",
    "count",
    "count_interval",
    "decimals",
    "difference",
    "p_value",
    "percent",
    "percent_and_margin",
    "points_interval",
    "rate_interval",
    "share",
    "spread",
]

TINY = 1e-9  # an interval below this width is a known value


def share(part: float, whole: float) -> str:
    """A part as a percentage of the whole."""
    return f"{part / whole:.1%}" if whole else "–"


def percent(value: float) -> str:
    """A rate in [0, 1] as a percentage."""
    return "–" if isnan(value) else f"{value:.1%}"


def percent_and_margin(value: Interval) -> str:
    """A rate as a percentage, with the margin of its interval unless that is negligible."""
    shown = percent(value.value)
    return f"{shown} ± {100 * value.margin:.1f}" if value.margin >= 0.0005 else shown


def rate_interval(value: Interval | None) -> str:
    """A rate as text: the interval, which may be asymmetric, then the estimate.

    Rates below 10 % have a decimal; a known rate has no interval.
    """
    if value is None or isnan(value.value):
        return "–"
    if value.high - value.low < TINY:
        return percent(value.value)
    digits = 1 if value.high < 0.1 else 0
    low, high, at = (f"{100 * v:.{digits}f}" for v in (value.low, value.high, value.value))
    return f"{low}–{high}% ({at}%)"


def count_interval(value: Interval) -> str:
    """A difference of counts as text: the interval, then the estimate."""
    if value.high - value.low < TINY:
        return signed(value.value)
    return f"{signed(value.low)} to {signed(value.high)} ({signed(value.value)})"


def points_interval(value: Interval) -> str:
    """A difference of rates as text, in percentage points."""
    return count_interval(Interval(100 * value.value, 100 * value.low, 100 * value.high))


def decimals(value: float, digits: int = 3) -> str:
    """A number with a fixed number of decimals."""
    return "–" if isnan(value) else minus(f"{value:.{digits}f}")


def difference(gain: Interval) -> str:
    """Percentage points with their interval; empty for a comparison with itself."""
    if isnan(gain.value) or gain.value == gain.margin == 0.0:
        return "–" if isnan(gain.value) else ""
    return f"{signed(100 * gain.value, 1)} ± {100 * gain.margin:.1f}"


def p_value(value: float) -> str:
    """A p-value with three decimals."""
    return "–" if isnan(value) else "< 0.001" if value < 0.001 else f"{value:.3f}"


def count(value: float | None) -> str:
    """A count, or an expected one with a decimal; empty for None."""
    if value is None:
        return ""
    return f"{value:.1f}" if isinstance(value, float) else str(value)


def spread(values: FloatArray) -> str:
    """The least, the median and the largest of some costs."""
    if not values.size:
        return "–"
    return " – ".join(map(cost_text, np.quantile(values, (0.0, 0.5, 1.0)).tolist()))


def budget(beta: float) -> str:
    """A budget β as a percentage."""
    return f"{100 * beta:.3g}%"
