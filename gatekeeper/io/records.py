"""Records as columns: read from JSON Lines or from a gate's log, and written as JSON Lines.

A line is one JSON object:

id              string; a whole number is taken as its decimal string. Each stands once in a file
h1, h2, h3      signals, larger = more uncertain; absent or null where there is none. -inf (the most
                confident) is written "-inf"; a signal of +inf is a computation gone wrong
cost_estimate   ĉ, a number above 0
cost            c, a number above 0; null where nobody verified the output
error           y: 1 wrong, 0 right, null where nobody could tell
stratum         optional, a whole number of at least 0
group           optional, a string; a whole number is taken as its decimal string
benefit         optional, 0 or 1
propensity      optional, in [0, 1]
verified        optional, true or false

Every other field is kept in `Record.meta` and written back where it was. NaN, which Python writes
though JSON has none, is read as null. `n_tokens` and `n_margins` of `Signals` are not kept.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import repeat
from math import nan
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from gatekeeper.errors import BadInputError
from gatekeeper.io.jsonl import read_jsonl
from gatekeeper.io.log_records import rows_of_run
from gatekeeper.io.record_lines import write_rows
from gatekeeper.io.record_rows import Row, RowCheck, rows_of
from gatekeeper.log.run import Run, read_run
from gatekeeper.types import FloatArray, Label, Record, Signals

__all__ = [
    "RecordTable",
    "is_log",
    "load_records",
    "read_records",
    "records_of_log",
    "records_of_run",
    "write_records",
]

T = TypeVar("T")
SQLITE = b"SQLite format 3\0"  # what every SQLite file begins with


@dataclass(frozen=True, slots=True, eq=False)
class RecordTable:
    """Records as columns; arrays of shape (N,) unless said otherwise.

    An optional column is None where no record has it. Iterating gives `Record`s.
    """

    ids: list[str]
    h: FloatArray  # (N, 3): h1, h2, h3; NaN where missing
    cost_estimate: FloatArray  # ĉ > 0
    cost: FloatArray  # c > 0; NaN where nobody verified
    error: FloatArray  # 0.0 or 1.0; NaN unknown
    stratum: NDArray[np.intp] | None = None  # -1 absent
    group: list[str | None] | None = None
    benefit: FloatArray | None = None  # 0.0 or 1.0; NaN absent
    propensity: FloatArray | None = None  # in [0, 1]; NaN absent
    verified: FloatArray | None = None  # 0.0 or 1.0; NaN absent
    meta: list[Mapping[str, Any]] | None = None  # fields that gatekeeper does not know

    @classmethod
    def of(cls, records: Iterable[Record]) -> RecordTable:
        """The table of these records. Raises BadInputError for what a file could not hold either,
        naming the id."""
        return _table_of(rows_of(records))

    def take(self, index: NDArray[np.intp] | NDArray[np.bool_]) -> RecordTable:
        """The records at these positions, in this order; or those where a mask (N,) is true."""
        at = np.flatnonzero(index) if index.dtype == np.bool_ else index.astype(np.intp)
        return RecordTable(
            _pick(self.ids, at),
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
        )

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
            strict=False,  # what is repeated has no end
        )
        for id_, h, estimate, cost, error, stratum, group, benefit, share, verified, meta in rows:
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
            )


def load_records(
    path: str | Path,
    *,
    skip_bad: bool = False,
    on_bad: Callable[[BadInputError], None] = lambda error: None,
) -> RecordTable:
    """Records from a gate's log, which a file is that begins as SQLite files do, or from JSONL."""
    if is_log(path):
        return records_of_log(path)
    return read_records(path, skip_bad=skip_bad, on_bad=on_bad)


def is_log(path: str | Path) -> bool:
    """Whether a file begins as SQLite files do. Raises BadInputError where it cannot be read."""
    try:
        with open(path, "rb") as file:
            return file.read(len(SQLITE)) == SQLITE
    except OSError as e:
        raise BadInputError(f"{path} cannot be read: {e.strerror}") from e


def read_records(
    path: str | Path,
    *,
    skip_bad: bool = False,
    on_bad: Callable[[BadInputError], None] = lambda error: None,
) -> RecordTable:
    """Records from JSON Lines, gzip by suffix, as this module's docstring describes them.

    A bad line raises BadInputError naming file, line and field; with `skip_bad` it goes to
    `on_bad` instead. A file without a good line raises BadInputError too.
    """
    table = _table_of(read_jsonl(path, RowCheck(), skip_bad=skip_bad, on_bad=on_bad))
    if not len(table):
        raise BadInputError(f"{path} holds no {'good ' if skip_bad else ''}record")
    return table


def records_of_log(path: str | Path) -> RecordTable:
    """Records from a gate's SQLite log: one per output decided on, in the order of deciding.

    `cost` is what the gate was charged, or what an audit would have been, in the budget's unit;
    NaN where there is neither. `error` comes from the gate's verifier or from an audit;
    `verified` says whether from the gate's. The log is opened read-only, also while a gate writes
    it. Raises LogError for a file that is no log.
    """
    return records_of_run(read_run(path), path)


def records_of_run(run: Run, path: str | Path) -> RecordTable:
    """The same from a log that has been read. `path` is for messages."""
    if not run.results:
        raise BadInputError(f"{path} holds no record: its gate has decided on nothing yet")
    return _table_of(rows_of_run(run))


def write_records(path: str | Path, records: Iterable[Record]) -> None:
    """Write JSON Lines, gzip by suffix; the file appears when it is complete.

    Reading it gives the same records. Raises BadInputError for what could not be read back,
    naming the id, and where the file cannot be written.
    """
    write_rows(path, rows_of(records))


def _table_of(rows: Iterable[Row]) -> RecordTable:
    columns = _Columns()
    for row in rows:
        columns.append(row)
    return columns.table()


class _Columns:
    """A table that grows by rows."""

    def __init__(self) -> None:
        self.ids: list[str] = []
        self._numbers = [array("d") for _ in range(6)]  # h1, h2, h3, ĉ, c, y
        self._add = [column.append for column in self._numbers]
        self._optional: dict[str, array[float]] = {}
        self._group: list[str | None] = []
        self._meta: list[Mapping[str, Any]] = []

    def append(self, row: Row) -> None:
        id_, h1, h2, h3, estimate, cost, error, optional, meta = row
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
                    column = self._optional.setdefault(name, array("d"))
                    column.extend(repeat(nan, n - len(column)))
                    column.append(value)
            if meta:
                self._meta.extend(repeat({}, n - len(self._meta)))
                self._meta.append(meta)
        self.ids.append(id_)

    def table(self) -> RecordTable:
        n = len(self.ids)
        h1, h2, h3, cost_estimate, cost, error = map(_as_array, self._numbers)
        optional: dict[str, Any] = {}
        for name, column in self._optional.items():
            column.extend(repeat(nan, n - len(column)))
            optional[name] = _as_array(column)
        if "stratum" in optional:
            optional["stratum"] = np.nan_to_num(optional["stratum"], nan=-1.0).astype(np.intp)
        if self._group:
            optional["group"] = self._group + [None] * (n - len(self._group))
        if self._meta:
            optional["meta"] = self._meta + [{}] * (n - len(self._meta))
        h = np.column_stack((h1, h2, h3))
        return RecordTable(self.ids, h, cost_estimate, cost, error, **optional)


def _label(value: float) -> Label | None:
    if value != value:
        return None
    return 1 if value else 0


def _pick(column: list[T], index: NDArray[np.intp]) -> list[T]:
    return [column[i] for i in index.tolist()]


def _as_array(column: array[float]) -> FloatArray:
    return np.array(column, dtype=np.float64)  # copied: what the array over-allocated goes
