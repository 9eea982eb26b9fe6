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

import gzip
import json
import os
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import repeat
from math import inf, isfinite, nan
from numbers import Integral, Real
from pathlib import Path
from sys import float_info, intern
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from gatekeeper.errors import BadInputError
from gatekeeper.io.jsonl import read_jsonl
from gatekeeper.log import SQLiteLog, encoding
from gatekeeper.types import FloatArray, Label, Record, Signals

__all__ = [
    "RecordTable",
    "is_log",
    "load_records",
    "read_records",
    "records_of_log",
    "write_records",
]

T = TypeVar("T")
SQLITE = b"SQLite format 3\0"  # what every SQLite file begins with
LARGEST = float_info.max
NUMBERS = frozenset({float, int})
ALWAYS = frozenset({"id", "h1", "h2", "h3", "cost_estimate", "cost", "error"})


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
        columns = _Columns()
        for row in _rows_of(records):
            columns.append(row)
        return columns.table()

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
    columns = _Columns()
    for row in read_jsonl(path, _Check(), skip_bad=skip_bad, on_bad=on_bad):
        columns.append(row)
    if not columns.ids:
        raise BadInputError(f"{path} holds no {'good ' if skip_bad else ''}record")
    return columns.table()


def records_of_log(path: str | Path) -> RecordTable:
    """Records from a gate's SQLite log: one per output decided on, in the order of deciding.

    `cost` is what the gate was charged, or what an audit would have been, in the budget's unit;
    NaN where there is neither. `error` comes from the gate's verifier or from an audit;
    `verified` says whether from the gate's. The log is opened read-only, also while a gate writes
    it. Raises LogError for a file that is no log.
    """
    rows: dict[str, _Row] = {}
    with SQLiteLog(path, read_only=True) as log:
        unit = log.settings().get("budget", {}).get("unit")
        for kind, id_, data in log.events():
            if kind == "decided":
                h, decision = encoding.candidate_of(id_, data).signals, encoding.decision_of(data)
                more: dict[str, Any] = {"propensity": decision.propensity, "verified": 0.0}
                if decision.stratum is not None:
                    more["stratum"] = decision.stratum
                estimate = data["cost_estimate"]
                rows[id_] = _Row(id_, h.h1, h.h2, h.h3, estimate, nan, nan, more, {})
            elif kind in ("outcome", "audited"):
                outcome = encoding.outcome_of(data)
                cost = outcome.cost
                if kind == "audited" and unit != "usd":
                    cost = 1.0 if unit == "verifications" else cost or outcome.seconds
                row = rows[id_]
                rows[id_] = row._replace(
                    # A charge of nothing says nothing of what a verification costs.
                    cost=cost if cost is not None and 0 < cost < inf else nan,
                    error=nan if outcome.error is None else float(outcome.error),
                    optional={**row.optional, "verified": float(kind == "outcome")},
                )
    if not rows:
        raise BadInputError(f"{path} holds no record: its gate has decided on nothing yet")
    columns = _Columns()
    for row in rows.values():
        columns.append(row)
    return columns.table()


def write_records(path: str | Path, records: Iterable[Record]) -> None:
    """Write JSON Lines, gzip by suffix; the file appears when it is complete.

    Reading it gives the same records. Raises BadInputError for what could not be read back,
    naming the id, and where the file cannot be written.
    """
    path = Path(path).resolve()
    partial = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        with open(partial, "xb") as file:
            if path.suffix == ".gz":  # without a time: equal records give equal files
                with gzip.GzipFile("", "wb", fileobj=file, mtime=0) as packed:
                    _write(packed, records)
            else:
                _write(file, records)
        partial.replace(path)
    except OSError as e:
        raise BadInputError(f"{path} cannot be written: {e.strerror or e}") from e
    finally:
        partial.unlink(missing_ok=True)


class _Row(NamedTuple):
    """One record, checked. Absent numbers are NaN; `optional` has only the fields present."""

    id: str
    h1: float
    h2: float
    h3: float
    cost_estimate: float
    cost: float
    error: float
    optional: Mapping[str, Any]
    meta: Mapping[str, Any]


class _Binary(Protocol):
    def write(self, data: bytes, /) -> int: ...


class _Columns:
    """A table that grows by rows."""

    def __init__(self) -> None:
        self.ids: list[str] = []
        self._numbers = [array("d") for _ in range(6)]  # h1, h2, h3, ĉ, c, y
        self._add = [column.append for column in self._numbers]
        self._optional: dict[str, array[float]] = {}
        self._group: list[str | None] = []
        self._meta: list[Mapping[str, Any]] = []

    def append(self, row: _Row) -> None:
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


class _Check:
    """The fields of one record as a row, whose id must be new.

    Nearly every value passes the first test of its line; the functions below say what is wrong
    with the others, or convert them.
    """

    def __init__(self) -> None:
        self._ids: set[str] = set()

    def __call__(self, data: Mapping[str, Any]) -> _Row:
        get: Callable[[str], Any] = data.get
        id_ = get("id")
        if not (type(id_) is str and id_):
            id_ = _text("id", id_)
        h1 = get("h1")
        if not (type(h1) is float and -inf <= h1 <= LARGEST):
            h1 = _signal("h1", h1)
        h2 = get("h2")
        if not (type(h2) is float and -inf <= h2 <= LARGEST):
            h2 = _signal("h2", h2)
        h3 = get("h3")
        if not (type(h3) is float and -inf <= h3 <= LARGEST):
            h3 = _signal("h3", h3)
        estimate = get("cost_estimate")
        if not (type(estimate) in NUMBERS and 0 < estimate <= LARGEST):
            estimate = _cost("cost_estimate", estimate)
        error = get("error")
        if not (type(error) is int and 0 <= error <= 1):
            error = _binary("error", _there("error", data))
        cost = get("cost")
        if not (type(cost) in NUMBERS and 0 < cost <= LARGEST):
            cost = _there("cost", data)
            unverified = error != error or get("verified") in (False, 0)
            cost = nan if unverified and _is_null(cost) else _cost("cost", cost)
        optional: dict[str, Any] = {}
        meta: dict[str, Any] = {}
        if not ALWAYS.issuperset(data):
            for name, value in data.items():
                if name in OPTIONAL:
                    if not _is_null(value):
                        optional[name] = OPTIONAL[name](name, value)
                elif name not in ALWAYS:
                    meta[name] = value
        if id_ in self._ids:
            raise BadInputError(f"field 'id' is {id_!r:.80}, which an earlier record has")
        self._ids.add(id_)
        return _Row(id_, h1, h2, h3, estimate, cost, error, optional, meta)


def _is_null(value: object) -> bool:
    return value is None or value != value


def _there(name: str, data: Mapping[str, Any]) -> Any:
    if name not in data:
        raise BadInputError(f"field {name!r} is missing: null says that it is unknown")
    return data[name]


def _number(name: str, value: object, *, needed: str) -> float:
    if isinstance(value, bool) or not isinstance(value, Real):
        if value is None:
            raise BadInputError(f"field {name!r} is missing or null: {needed} is needed")
        raise BadInputError(f"field {name!r} is {value!r:.80}: {needed} is needed")
    try:
        return float(value)
    except OverflowError:
        raise BadInputError(f"field {name!r} is {value!r:.80}: too large") from None


def _signal(name: str, value: object) -> float:
    if _is_null(value):
        return nan
    if value == "-inf":
        return -inf
    number = _number(name, value, needed="a number, null or '-inf'")
    if number == inf:
        raise BadInputError(f"field {name!r} is {value!r}: a finite number or '-inf' is needed")
    return number


def _cost(name: str, value: object) -> float:
    number = _number(name, value, needed="a number above 0")
    if not 0.0 < number < inf:
        raise BadInputError(f"field {name!r} is {value!r}: a finite number above 0 is needed")
    return number


def _binary(name: str, value: object) -> float:
    if _is_null(value):
        return nan
    number = _number(name, value, needed="0, 1 or null")
    if number not in (0.0, 1.0):
        raise BadInputError(f"field {name!r} is {value!r}: 0, 1 or null is needed")
    return number


def _flag(name: str, value: object) -> float:
    return float(value) if isinstance(value, bool) else _binary(name, value)


def _share(name: str, value: object) -> float:
    number = _number(name, value, needed="a number in [0, 1]")
    if not 0.0 <= number <= 1.0:
        raise BadInputError(f"field {name!r} is {value!r}: a number in [0, 1] is needed")
    return number


def _stratum(name: str, value: object) -> float:
    number = _number(name, value, needed="a whole number of at least 0")
    if not (0 <= number < 2**53 and number.is_integer()):
        raise BadInputError(f"field {name!r} is {value!r}: a whole number of at least 0 is needed")
    return number


def _text(name: str, value: object) -> str:
    if isinstance(value, Integral) and not isinstance(value, bool):
        return str(value)
    if value is None:
        raise BadInputError(f"field {name!r} is missing or null: a string is needed")
    if not (isinstance(value, str) and value):
        raise BadInputError(f"field {name!r} is {value!r:.80}: a non-empty string is needed")
    return str(value)


def _group(name: str, value: object) -> str:
    # Few groups, many records: one string for each.
    return intern(value if type(value) is str and value else _text(name, value))


OPTIONAL: Mapping[str, Callable[[str, Any], Any]] = {
    "stratum": _stratum,
    "group": _group,
    "benefit": _binary,
    "propensity": _share,
    "verified": _flag,
}


def _rows_of(records: Iterable[Record]) -> Iterator[_Row]:
    """Records as rows, held to the same rules as lines."""
    check = _Check()
    for record in records:
        h = record.signals
        data = {
            "id": record.id,
            "h1": h.h1,
            "h2": h.h2,
            "h3": h.h3,
            "cost_estimate": record.cost_estimate,
            "cost": record.cost,
            "error": record.error,
            **{name: getattr(record, name) for name in OPTIONAL},
        }
        try:
            clash = sorted(data.keys() & record.meta.keys())
            if clash:
                raise BadInputError(f"meta has {clash[0]!r}, a name that every record uses itself")
            yield check(data | dict(record.meta))
        except BadInputError as e:
            raise BadInputError(f"id={record.id!r:.80}: {e}") from None


def _write(file: _Binary, records: Iterable[Record]) -> None:
    for row in _rows_of(records):
        data: dict[str, Any] = {"id": row.id}
        for name, h in (("h1", row.h1), ("h2", row.h2), ("h3", row.h3)):
            if h == h:
                data[name] = h if h > -inf else "-inf"
        data["cost_estimate"] = row.cost_estimate
        data["cost"] = None if row.cost != row.cost else row.cost
        data["error"] = None if row.error != row.error else int(row.error)
        for name, value in row.optional.items():
            data[name] = WRITTEN[name](value)
        try:
            line = json.dumps(data | _without_nan(dict(row.meta)), allow_nan=False)
        except (TypeError, ValueError, RecursionError) as e:
            raise BadInputError(
                f"id={row.id!r:.80}: meta={row.meta!r:.80}: only JSON values can be kept: {e}"
            ) from None
        file.write(line.encode() + b"\n")


WRITTEN: Mapping[str, Callable[[Any], Any]] = {
    "stratum": int,
    "group": str,
    "benefit": int,
    "propensity": float,
    "verified": bool,
}


def _without_nan(value: Any) -> Any:
    """NaN as null, which is how it is read, and infinities as strings."""
    if isinstance(value, float) and not isfinite(value):
        return None if value != value else str(value)
    if isinstance(value, Mapping):
        return {key: _without_nan(v) for key, v in value.items()}
    return [_without_nan(v) for v in value] if isinstance(value, list | tuple) else value


def _label(value: float) -> Label | None:
    if value != value:
        return None
    return 1 if value else 0


def _pick(column: list[T], index: NDArray[np.intp]) -> list[T]:
    return [column[i] for i in index.tolist()]


def _as_array(column: array[float]) -> FloatArray:
    return np.array(column, dtype=np.float64)  # copied: what the array over-allocated goes
