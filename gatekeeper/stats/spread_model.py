"""How much the value of an output varies about its prediction, learned from known values.

Draws in proportion to that standard deviation estimate a mean with the least variance (Neyman
1934); where it is unknown, equal draws do. So it is a regression of squared residuals, whose slopes
are as large as the data support (`stats.value_model`), and half of it is a constant: the optimum is
flat, and far from it a wrong prediction costs more than a right one gains.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from operator import mul
from typing import Any

import numpy as np

from gatekeeper.stats.raw_table import Raw, RawTable
from gatekeeper.stats.value_model import Design, predict
from gatekeeper.types import FloatArray

__all__ = ["SpreadModel"]

SCALED = 300  # outputs, at most, that set the scale
CONSTANT = 0.5  # share of a standard deviation that is the same for all
LEAST, MOST = 0.05, 4.0  # bounds of a variance, relative to the mean one


class SpreadModel:
    """The standard deviation of an output's value, relative to that of the others."""

    def __init__(self, design: Design, intercept: float, slope: FloatArray, mean: float) -> None:
        """`intercept` and `slope` predict the variance relative to the mean one; `mean` is that of
        the standard deviations."""
        self._design, self._intercept, self._slope, self._mean = design, intercept, slope, mean
        self._slopes: list[float] = slope.tolist()

    @classmethod
    def fit(
        cls, recent: RawTable, known: RawTable, values: FloatArray | Sequence[float]
    ) -> SpreadModel:
        """Fit to known values, at least two.

        Parameters
        ----------
        recent
            Outputs that set the scale of signals, at least one.
        known, values
            Outputs whose value is known, and the value.
        """
        some = recent.take(slice(None, None, -(-len(recent.rows) // SCALED)))
        design = Design.of(some)
        columns, y = design.of_rows(known), np.array(values)
        every = np.arange(y.size)
        off = (y - predict(columns, every, y).left_out) ** 2
        level = float(off.mean())
        if not level:
            return cls(design, 1.0, np.zeros(design.variance.size), 1.0)
        found = predict(columns, every, off / level)
        variance = found.intercept + design.of_rows(some).z @ found.slope
        deviation = float(np.sqrt(variance.clip(LEAST, MOST)).mean())
        mean = CONSTANT + (1.0 - CONSTANT) * deviation
        return cls(design, found.intercept, found.slope, mean)

    def __call__(self, raw: Raw) -> float:
        """The standard deviation relative to the mean over recent outputs, above 0.

        1 where nothing is learned.
        """
        z = self._design(raw)
        variance = self._intercept + sum(map(mul, self._slopes, z))
        deviation = sqrt(min(max(variance, LEAST), MOST))
        return (CONSTANT + (1.0 - CONSTANT) * deviation) / self._mean

    def of_rows(self, table: RawTable) -> FloatArray:
        """The relative standard deviations of many outputs at once, (n,)."""
        variance = self._intercept + self._design.of_rows(table).z @ self._slope
        deviation: FloatArray = np.sqrt(variance.clip(LEAST, MOST))
        return (CONSTANT + (1.0 - CONSTANT) * deviation) / self._mean

    def state(self) -> dict[str, Any]:
        """A snapshot of values that `json` takes."""
        line = [self._intercept, self._slopes, self._mean]
        return {"design": self._design.state(), "line": line}

    @classmethod
    def restored(cls, state: dict[str, Any]) -> SpreadModel:
        intercept, slope, mean = state["line"]
        return cls(Design.restored(state["design"]), intercept, np.array(slope), mean)
