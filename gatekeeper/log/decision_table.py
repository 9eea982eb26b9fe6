"""The decisions of a log as columns."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import nan

import numpy as np
from numpy.typing import NDArray

from gatekeeper.log.stored import StoredDecision
from gatekeeper.log.texts import Texts
from gatekeeper.types import BoolArray, FloatArray, IntArray, Reason

__all__ = ["Codes", "DecisionColumns", "DecisionTable"]

ROWS = 256  # decisions that become columns together
_REASON = {reason: i for i, reason in enumerate(Reason)}

Codes = NDArray[np.int8]


@dataclass(frozen=True, eq=False)
class DecisionTable:
    """Decisions, in their order. Arrays have shape (N,).

    Attributes
    ----------
    ids
        Of the outputs.
    h
        h1, h2, h3, shape (N, 3); NaN: missing.
    cost_estimate
        ĉ, above 0.
    propensity
        In [0, 1].
    stratum
        At least 0; -1: none.
    features
        Arrays by name, in the order of the names; NaN: absent.
    reason
        Index in `tuple(Reason)`.
    selected
        To be verified.
    scored, missing
        With a score of the policy; without any signal.
    """

    ids: Sequence[str]
    h: FloatArray
    cost_estimate: FloatArray
    propensity: FloatArray
    stratum: IntArray
    features: Mapping[str, FloatArray]
    reason: Codes
    selected: BoolArray
    scored: BoolArray
    missing: BoolArray

    def of_reason(self, reason: Reason) -> BoolArray:
        """Decided on for this reason."""
        return np.asarray(self.reason == _REASON[reason])


class DecisionColumns:
    """A `DecisionTable` to which one can append.

    Many decisions become columns together, which takes less time than one by one, and less than
    thousands that no longer are in the processor's cache (benchmarks/big_log.py).
    """

    def __init__(self) -> None:
        self._rows: list[StoredDecision] = []  # that are not in columns yet
        self._ids = Texts()
        self._features: dict[str, array[float]] = {}
        self._h, self._costs, self._propensities = array("d"), array("d"), array("d")
        self._strata, self._reasons = array("q"), array("b")
        self._selected, self._scored, self._missing = array("b"), array("b"), array("b")

    def append(self, id_: str, decision: StoredDecision) -> None:
        """Add a decision."""
        self._ids.append(id_)
        self._rows.append(decision)
        if len(self._rows) == ROWS:
            self._into_columns()

    def table(self) -> DecisionTable:
        """The decisions so far, in arrays that share their memory with this object."""
        self._into_columns()
        n = len(self._ids)
        return DecisionTable(
            self._ids,
            h=np.asarray(self._h).reshape(n, 3),
            cost_estimate=np.asarray(self._costs),
            propensity=np.asarray(self._propensities),
            stratum=np.asarray(self._strata, dtype=np.intp),
            features={name: _filled(column, n) for name, column in sorted(self._features.items())},
            reason=np.asarray(self._reasons),
            selected=np.asarray(self._selected).view(np.bool_),
            scored=np.asarray(self._scored).view(np.bool_),
            missing=np.asarray(self._missing).view(np.bool_),
        )

    def _into_columns(self) -> None:
        rows, self._rows = self._rows, []
        signals = [h for row in rows for h in (row.h1, row.h2, row.h3)]
        h = np.array(signals, dtype=np.float64)  # None becomes NaN, "inf" and "-inf" their numbers
        self._h.frombytes(h.tobytes())
        self._missing.frombytes(np.isnan(h).reshape(-1, 3).all(axis=1).tobytes())
        for place, row in enumerate(rows, len(self._costs)):
            for name, value in row.features.items():
                column = self._features.setdefault(name, array("d"))
                column.extend((nan,) * (place - len(column)))
                column.append(value)
        self._costs += array("d", [row.cost_estimate for row in rows])
        self._propensities += array("d", [row.propensity for row in rows])
        self._strata += array("q", [-1 if row.stratum is None else row.stratum for row in rows])
        self._reasons += array("b", [_REASON[row.reason] for row in rows])
        self._selected += array("b", [bool(row.verify) for row in rows])
        self._scored += array("b", [row.score is not None for row in rows])


def _filled(column: array[float], n: int) -> FloatArray:
    filled = np.full(n, nan)
    filled[: len(column)] = column
    return filled
