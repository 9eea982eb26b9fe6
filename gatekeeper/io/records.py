"""Records as columns: read from JSON Lines or from a gate's log, and written as JSON Lines.

A line is one JSON object (docs/reference/records.md has all rules):

id              non-empty string, unique in the file; an integer is read as its decimal string
h1, h2, h3      signals, larger = more uncertain; missing or null: no signal. -inf (most certain) is
                written "-inf"; +inf is an error
cost_estimate   ĉ, a number above 0
cost            c, a number above 0; null if the output was not verified
error           y: 1 wrong, 0 correct, null unknown
stratum         optional, an integer of at least 0
group           optional, non-empty string; an integer is read as its decimal string
benefit         optional, 0 or 1
propensity      optional, in [0, 1]
verified        optional, true or false

Other fields are kept in `Record.meta` and written back as fields. NaN, which Python writes though
it is not JSON, is read as null. `n_tokens` and `n_margins` of `Signals` are not kept.
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
SQLITE = b"SQLite format 3\0"  # the first bytes of every SQLite file


@dataclass(frozen=True, slots=True, eq=False)
class RecordTable:
    """Records as columns: lists of length N and arrays of shape (N,), but for `h`.

    An optional column is None if no record has it. Iterating yields `Record`s.
    """

    ids: list[str]
    h: FloatArray  # (N, 3): h1, h2, h3; NaN where missing
    cost_estimate: FloatArray  # ĉ > 0
    cost: FloatArray  # c > 0; NaN where not verified
    error: FloatArray  # y: 1.0 wrong, 0.0 correct; NaN unknown
    stratum: NDArray[np.intp] | None = None  # -1 missing
    group: list[str | None] | None = None
    benefit: FloatArray | None = None  # 0.0 or 1.0; NaN missing
    propensity: FloatArray | None = None  # in [0, 1]; NaN missing
    verified: FloatArray | None = None  # 0.0 or 1.0; NaN missing
    meta: list[Mapping[str, Any]] | None = None  # other fields of the record

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
        return _table_of(rows_of(records))

    def take(self, index: NDArray[np.intp] | NDArray[np.bool_]) -> RecordTable:
        """Select records.

        Parameters
        ----------
        index
            Positions, in the order of the result; or a mask of shape (N,).
        """
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
            strict=False,  # `repeat` is endless
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
    """Read records from JSON Lines or from a gate's log, by the first bytes of the file.

    Parameters
    ----------
    path
        JSON Lines (gzip by suffix), or a log, which is an SQLite file.
    skip_bad, on_bad
        As in `read_records`; a log has no bad lines.

    Returns
    -------
    RecordTable
        With at least one record.

    Raises
    ------
    BadInputError, LogError
        As `read_records` and `records_of_log`.
    """
    if is_log(path):
        return records_of_log(path)
    return read_records(path, skip_bad=skip_bad, on_bad=on_bad)


def is_log(path: str | Path) -> bool:
    """Whether a file is a log, by its first bytes: those of an SQLite file.

    Raises
    ------
    BadInputError
        If the file cannot be read.
    """
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
    """Read records from JSON Lines. The docstring of this module describes the format.

    Parameters
    ----------
    path
        The file; decompressed if its suffix is `.gz`.
    skip_bad
        Skip bad lines. A bad line leaves nothing behind, not even its id.
    on_bad
        Called with the error of each line skipped.

    Returns
    -------
    RecordTable
        In file order, with at least one record.

    Raises
    ------
    BadInputError
        For a bad line, unless `skip_bad`, naming file, line and field; if no record is left; if
        the file cannot be read.
    """
    table = _table_of(read_jsonl(path, RowCheck(), skip_bad=skip_bad, on_bad=on_bad))
    if not len(table):
        raise BadInputError(f"{path} holds no {'good ' if skip_bad else ''}record")
    return table


def records_of_log(path: str | Path) -> RecordTable:
    """Read records from a gate's log: one per output, in the order of the decisions.

    `error` comes from the gate's verifier or from an external verdict; `verified` is true for the
    former. `cost` is the gate's charge, or what it would have been for an external verdict, in the
    unit of the budget; NaN without either. `stratum` and `propensity` are those of the decision.

    Parameters
    ----------
    path
        SQLite file, opened read-only, also while a gate writes it.

    Returns
    -------
    RecordTable
        With at least one record.

    Raises
    ------
    LogError
        If the file is not a gate's log, or cannot be read.
    BadInputError
        If the gate has not decided on any output yet.
    """
    return records_of_run(read_run(path), path)


def records_of_run(run: Run, path: str | Path) -> RecordTable:
    """As `records_of_log`, from a log that has been read already.

    Parameters
    ----------
    run
        From `gatekeeper.log.run.read_run`.
    path
        Of the log, for the error message.

    Raises
    ------
    BadInputError
        If the gate has not decided on any output yet.
    """
    if not run.results:
        raise BadInputError(f"{path} holds no record: its gate has not decided on any output yet")
    return _table_of(rows_of_run(run))


def write_records(path: str | Path, records: Iterable[Record]) -> None:
    """Write records as JSON Lines; reading the file gives the same records.

    The file appears, or is replaced, when it is complete. Equal records give equal files.

    Parameters
    ----------
    path
        The file; compressed if its suffix is `.gz`.
    records
        A `RecordTable` or any iterable of records, with unique ids.

    Raises
    ------
    BadInputError
        For a value that could not be read back, naming the id; if the file cannot be written.
    """
    write_rows(path, rows_of(records))


def _table_of(rows: Iterable[Row]) -> RecordTable:
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
    return np.array(column, dtype=np.float64)  # a copy, without the spare room of `array`
