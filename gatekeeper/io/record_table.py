"""Records as columns."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from math import nan
from typing import Any, TypeVar

import numpy as np

from gatekeeper.io.record_rows import Row, rows_of
from gatekeeper.log.texts import Texts
from gatekeeper.types import BoolArray, FloatArray, IntArray, Label, Record, Signals

__all__ = ["RecordTable", "feature_rows", "table_of"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True, eq=False)
class RecordTable:
    """Records as columns: sequences of length N and arrays of shape (N,), except `h`.

    An optional column is None if no record has it. Iterating yields `Record`s, which have no
    `selected`.
    """

    ids: Sequence[str]
    h: FloatArray  # (N, 3): h1, h2, h3; NaN where missing
    cost_estimate: FloatArray  # ĉ > 0
    cost: FloatArray  # c > 0; NaN where not verified
    error: FloatArray  # y: 1.0 wrong, 0.0 correct; NaN unknown
    stratum: IntArray | None = None  # -1 missing
    group: list[str | None] | None = None
    benefit: FloatArray | None = None  # 0.0 or 1.0; NaN missing
    propensity: FloatArray | None = None  # in [0, 1]; NaN missing
    verified: FloatArray | None = None  # 0.0 or 1.0; NaN missing
    meta: list[Mapping[str, Any]] | None = None  # other fields of the record
    features: Mapping[str, FloatArray] | None = None  # by name; NaN missing
    value: FloatArray | None = None  # of a metric; NaN missing
    selected: BoolArray | None = None  # of a log: to be verified, with a verdict or without

    @classmethod
    def of(cls, records: Iterable[Record]) -> RecordTable:
        """Make a table.

        Parameters
        ----------
        records
            With unique ids.

        Raises
        ------
        BadInputError
            For a value that a file could not hold either, naming the id.
        """
        return table_of(rows_of(records))

    def take(self, index: IntArray | BoolArray) -> RecordTable:
        """Select records.

        Parameters
        ----------
        index
            Positions, in the order of the result; or a mask of shape (N,).
        """
        at = np.flatnonzero(index) if index.dtype == np.bool_ else index.astype(np.intp)
        return RecordTable(
            self.ids.pick(at) if isinstance(self.ids, Texts) else _pick(self.ids, at),
            self.h[at],
            self.cost_estimate[at],
            self.cost[at],
            self.error[at],
            None if self.stratum is None else self.stratum[at],
            None if self.group is None else _pick(self.group, at),
            None if self.benefit is None else self.benefit[at],
            None if self.propensity is None else self.propensity[at],
            None if self.verified is None else self.verified[at],
            None if self.meta is None else _pick(self.meta, at),
            None if self.features is None else {k: v[at] for k, v in self.features.items()},
            None if self.value is None else self.value[at],
            None if self.selected is None else self.selected[at],
        )

    @property
    def drawn(self) -> BoolArray:
        """Which labels are the gate's own, (N,): an external verdict is no random sample."""
        known = ~np.isnan(self.error)
        return known if self.verified is None else known & (self.verified != 0.0)

    def __len__(self) -> int:
        return len(self.ids)

    def __iter__(self) -> Iterator[Record]:
        absent = repeat(nan)
        rows = zip(
            self.ids,
            self.h.tolist(),
            self.cost_estimate.tolist(),
            self.cost.tolist(),
            self.error.tolist(),
            repeat(-1) if self.stratum is None else self.stratum.tolist(),
            repeat(None) if self.group is None else self.group,
            absent if self.benefit is None else self.benefit.tolist(),
            absent if self.propensity is None else self.propensity.tolist(),
            absent if self.verified is None else self.verified.tolist(),
            repeat({}) if self.meta is None else self.meta,
            feature_rows(self.features),
            absent if self.value is None else self.value.tolist(),
            strict=False,  # `repeat` is endless
        )
        for id_, h, estimate, cost, error, stratum, group, benefit, share, *more in rows:
            verified, meta, features, value = more
            yield Record(
                id_,
                Signals(*h),
                estimate,
                cost,
                _label(error),
                None if stratum < 0 else stratum,
                group,
                _label(benefit),
                None if share != share else share,
                None if verified != verified else bool(verified),
                meta,
                features,
                None if value != value else value,
            )


def feature_rows(features: Mapping[str, FloatArray] | None) -> Iterator[dict[str, float]]:
    """The features that each record has, in order; without any feature: {} without end."""
    if not features:
        yield from repeat({})
    else:
        for values in zip(*(column.tolist() for column in features.values()), strict=True):
            yield {k: v for k, v in zip(features, values, strict=True) if v == v}


def table_of(rows: Iterable[Row]) -> RecordTable:
    """The table of rows that were read."""
    columns = _Columns()
    for row in rows:
        columns.append(row)
    return columns.table()


class _Columns:
    """Columns of a table that grows row by row."""

    def __init__(self) -> None:
        self.ids: list[str] = []
        self._numbers = [array("d") for _ in range(6)]  # h1, h2, h3, ĉ, c, y
        self._add = [column.append for column in self._numbers]
        self._optional: dict[str, array[float]] = {}
        self._group: list[str | None] = []
        self._meta: list[Mapping[str, Any]] = []
        self._features: dict[str, array[float]] = {}

    def append(self, row: Row) -> None:
        id_, h1, h2, h3, estimate, cost, error, optional, meta, features = row
        add_h1, add_h2, add_h3, add_estimate, add_cost, add_error = self._add
        add_h1(h1)
        add_h2(h2)
        add_h3(h3)
        add_estimate(estimate)
        add_cost(cost)
        add_error(error)
        if optional or meta:
            n = len(self.ids)
            for name, value in optional.items():
                if name == "group":
                    if len(self._group) < n:
                        self._group.extend(repeat(None, n - len(self._group)))
                    self._group.append(value)
                else:
                    self._extended(self._optional, name).append(value)
            if meta:
                self._meta.extend(repeat({}, n - len(self._meta)))
                self._meta.append(meta)
        for name, value in features.items():
            self._extended(self._features, name).append(value)
        self.ids.append(id_)

    def _extended(self, columns: dict[str, array[float]], name: str) -> array[float]:
        """The column of that name, made as long as the ids."""
        column = columns.get(name)
        if column is None:
            column = columns[name] = array("d")
        if missing := len(self.ids) - len(column):
            column.extend(repeat(nan, missing))
        return column

    def table(self) -> RecordTable:
        n = len(self.ids)
        h1, h2, h3, cost_estimate, cost, error = map(_as_array, self._numbers)
        optional: dict[str, Any] = {}
        for name in self._optional:
            optional[name] = _as_array(self._extended(self._optional, name))
        if "stratum" in optional:
            optional["stratum"] = np.nan_to_num(optional["stratum"], nan=-1.0).astype(np.intp)
        if self._group:
            optional["group"] = self._group + [None] * (n - len(self._group))
        if self._meta:
            optional["meta"] = self._meta + [{}] * (n - len(self._meta))
        if self._features:
            optional["features"] = {
                name: _as_array(self._extended(self._features, name))
                for name in sorted(self._features)
            }
        h = np.column_stack((h1, h2, h3))
        return RecordTable(self.ids, h, cost_estimate, cost, error, **optional)


def _label(value: float) -> Label | None:
    if value != value:
        return None
    return 1 if value else 0


def _pick(column: Sequence[T], index: IntArray) -> list[T]:
    return [column[i] for i in index.tolist()]


def _as_array(column: array[float]) -> FloatArray:
    return np.array(column, dtype=np.float64)  # a copy, without the spare room of `array`
