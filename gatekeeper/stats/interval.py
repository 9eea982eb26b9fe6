"""A value with its 95 % interval. The level is defined only here."""

from __future__ import annotations

from dataclasses import dataclass
from math import nan

import numpy as np

from gatekeeper.types import FloatArray

__all__ = ["LEVEL", "NORMAL", "TAIL", "UPPER", "Interval"]

LEVEL = 0.95  # of every interval; the next three constants follow from it
TAIL = 0.025  # probability on either side
UPPER = 0.975  # the quantile on the upper side
NORMAL = 1.96  # half-width in standard errors


@dataclass(frozen=True, slots=True)
class Interval:
    """A value with the ends of its 95 % interval, in the unit of the value.

    Parameters
    ----------
    value
        The estimate; NaN where there is none.
    low, high
        The ends; equal for what is known, NaN where the data give no interval.
    n
        How many labels (or seeds) it comes from; 0 where they are not counted.
    """

    value: float
    low: float
    high: float
    n: int = 0

    @classmethod
    def around(cls, value: float, margin: float, n: int = 0) -> Interval:
        """The symmetric interval of this half-width."""
        return cls(value, value - margin, value + margin, n)

    @classmethod
    def of_draws(cls, draws: FloatArray, n: int = 0) -> Interval:
        """The mean of posterior draws (n,) and their quantiles; NaN if all draws are NaN."""
        defined = draws[~np.isnan(draws)]
        if not defined.size:
            return cls(nan, nan, nan, n)
        value = float(defined.mean())
        low, high = np.quantile(defined, (TAIL, UPPER)).tolist()
        return cls(value, min(low, value), max(high, value), n)

    @property
    def margin(self) -> float:
        """Half the width: for a symmetric interval the ± of a table."""
        return (self.high - self.low) / 2.0

    @property
    def complement(self) -> Interval:
        """The interval of 1 - value: of an error rate, the share of right outputs."""
        return Interval(1.0 - self.value, 1.0 - self.high, 1.0 - self.low, self.n)
