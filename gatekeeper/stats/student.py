"""Student's t interval of a mean."""

from __future__ import annotations

from math import nan

import numpy as np

from gatekeeper.stats.interval import UPPER, Interval
from gatekeeper.types import FloatArray

__all__ = ["student_interval"]


def student_interval(values: FloatArray) -> Interval:
    """Mean of independent values (n,), such as one per seed, with its interval.

    A single value has no interval (NaN ends); a NaN among the values makes all of it NaN.
    """
    from scipy.special import stdtrit  # `scipy.stats` is slow to import

    n = values.size
    mean = float(values.mean())
    if n < 2:
        return Interval(mean, nan, nan, n)
    margin = float(stdtrit(n - 1, UPPER) * values.std(ddof=1) / np.sqrt(n))
    return Interval.around(mean, margin, n)
