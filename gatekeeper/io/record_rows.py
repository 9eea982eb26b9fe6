"""One record as a row: checks of its fields, from a line of JSON or from a `Record`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from math import inf, isfinite, nan
from numbers import Integral, Real
from sys import intern
from typing import Any, NamedTuple

from gatekeeper.errors import BadInputError
from gatekeeper.io.jsonl import UniqueIds
from gatekeeper.types import Record
from gatekeeper.types.record import check_record
from gatekeeper.types.values import COST, LEAST_COST, MOST_COST, as_features

__all__ = ["Row", "RowCheck", "rows_of"]

LARGEST = 1e100  # of a signal: sums and squares of many stay finite
NUMBERS = frozenset({float, int})
ALWAYS = frozenset({"id", "h1", "h2", "h3", "cost_estimate", "cost", "error"})
MOST_FEATURES = 256  # names of features in a file: each is a column of its table


class Row(NamedTuple):
    """A checked record. Missing numbers are NaN; `optional` has only the fields present."""

    id: str
    h1: float
    h2: float
    h3: float
    cost_estimate: float
    cost: float
    error: float
    optional: Mapping[str, Any]
    meta: Mapping[str, Any]
    features: Mapping[str, float]  # finite


def rows_of(records: Iterable[Record]) -> Iterator[Row]:
    """Records as rows, checked by the same rules as lines.

    Raises
    ------
    BadInputError
        For a value that a file could not hold either, naming the id.
    """
    if not isinstance(records, Iterable) or isinstance(records, Mapping | str | bytes):
        raise BadInputError(f"records={records!r:.80}: give a list of gatekeeper.Record")
    check = RowCheck()
    for record in map(check_record, records):
        h = record.signals
        data = {
            "id": record.id,
            "h1": h.h1,
            "h2": h.h2,
            "h3": h.h3,
            "cost_estimate": record.cost_estimate,
            "cost": record.cost,
            "error": record.error,
            "features": record.features,
            **{name: getattr(record, name) for name in OPTIONAL},
        }
        try:
            clash = sorted(data.keys() & record.meta.keys())
            if clash:
                raise BadInputError(
                    f"meta has the key {clash[0]!r}, a field of every record: rename it"
                )
            yield check(data | dict(record.meta))
        except BadInputError as e:
            raise BadInputError(f"id={record.id!r:.80}: {e}") from None


class RowCheck:
    """Checks the fields of a record and returns a row. Its id must differ from all earlier ones.

    Nearly all values pass the inline test (the fast path of `read_records`); the functions below
    convert the others or raise the error.
    """

    def __init__(self) -> None:
        self._ids = UniqueIds("record")
        self._names: set[str] = set()  # of features

    def __call__(self, data: Mapping[str, Any]) -> Row:
        get: Callable[[str], Any] = data.get
        id_ = get("id")
        if not (type(id_) is str and id_):
            id_ = _text("id", id_)
        h1 = get("h1")
        if not (type(h1) is float and -LARGEST <= h1 <= LARGEST):
            h1 = _signal("h1", h1)
        h2 = get("h2")
        if not (type(h2) is float and -LARGEST <= h2 <= LARGEST):
            h2 = _signal("h2", h2)
        h3 = get("h3")
        if not (type(h3) is float and -LARGEST <= h3 <= LARGEST):
            h3 = _signal("h3", h3)
        estimate = get("cost_estimate")
        if not (type(estimate) in NUMBERS and LEAST_COST <= estimate <= MOST_COST):
            estimate = _cost("cost_estimate", estimate)
        error = get("error")
        if not (type(error) is int and 0 <= error <= 1):
            error = _binary("error", _there("error", data))
        cost = get("cost")
        if not (type(cost) in NUMBERS and LEAST_COST <= cost <= MOST_COST):
            cost = _there("cost", data)
            unverified = error != error or get("verified") in (False, 0)
            cost = nan if unverified and _is_null(cost) else _cost("cost", cost)
        optional: dict[str, Any] = {}
        meta: dict[str, Any] = {}
        features: Mapping[str, float] = {}
        if not ALWAYS.issuperset(data):
            for name, value in data.items():
                if name in OPTIONAL:
                    if not _is_null(value):
                        optional[name] = OPTIONAL[name](name, value)
                elif name == "features":
                    features = {} if value is None else self._features(value)
                elif name not in ALWAYS:
                    meta[name] = value
        self._ids.add(id_)
        return Row(id_, h1, h2, h3, estimate, cost, error, optional, meta, features)

    def _features(self, value: object) -> Mapping[str, float]:
        try:
            found = {intern(name): number for name, number in as_features(value).items()}
        except BadInputError as e:
            raise BadInputError(f"field {e}") from None
        if not self._names.issuperset(found):
            if len(self._names | found.keys()) > MOST_FEATURES:
                raise BadInputError(
                    f"field 'features' has more than {MOST_FEATURES} names in all records "
                    f"together, the last is {max(found.keys() - self._names)!r:.80}: a feature is "
                    "a quantity that many records have"
                )
            self._names.update(found)
        return found


def _is_null(value: object) -> bool:
    return value is None or (isinstance(value, Real) and value != value)


def _there(name: str, data: Mapping[str, Any]) -> Any:
    if name not in data:
        raise BadInputError(f"field {name!r} is missing: write null if it is unknown")
    return data[name]


def _number(name: str, value: object, *, needed: str) -> float:
    if isinstance(value, bool) or not isinstance(value, Real):
        if value is None:
            raise BadInputError(f"field {name!r} is missing or null: {needed} is needed")
        raise BadInputError(f"field {name!r} is {value!r:.80}: {needed} is needed")
    try:
        return float(value)
    except OverflowError:
        raise BadInputError(f"field {name!r} is {value!r:.80}: too large for a float") from None


def _signal(name: str, value: object) -> float:
    if _is_null(value):
        return nan
    if isinstance(value, str) and value == "-inf":
        return -inf
    number = _number(name, value, needed="a number, null or '-inf'")
    if abs(number) > LARGEST and number != -inf:
        raise BadInputError(
            f"field {name!r} is {value!r:.80}: a number up to ±{LARGEST:g}, or '-inf', is needed"
        )
    return number


def _cost(name: str, value: object) -> float:
    number = _number(name, value, needed=COST)
    if not LEAST_COST <= number <= MOST_COST:
        raise BadInputError(f"field {name!r} is {value!r:.80}: {COST}, is needed")
    return number


def _binary(name: str, value: object, *, needed: str = "0, 1 or null") -> float:
    if _is_null(value):
        return nan
    number = _number(name, value, needed=needed)
    if number not in (0.0, 1.0):
        raise BadInputError(f"field {name!r} is {value!r}: {needed} is needed")
    return number


def _flag(name: str, value: object) -> float:
    if isinstance(value, bool):
        return float(value)
    return _binary(name, value, needed="true, false or null")


def _share(name: str, value: object) -> float:
    number = _number(name, value, needed="a number in [0, 1]")
    if not 0.0 <= number <= 1.0:
        raise BadInputError(f"field {name!r} is {value!r}: a number in [0, 1] is needed")
    return number


def _value(name: str, value: object) -> float:
    number = _number(name, value, needed="a finite number")
    if not isfinite(number):
        raise BadInputError(f"field {name!r} is {value!r}: a finite number is needed")
    return number


def _stratum(name: str, value: object) -> float:
    needed = "a whole number from 0 to 2^53 - 1"
    number = _number(name, value, needed=needed)
    if not (0 <= number < 2**53 and number.is_integer()):
        raise BadInputError(f"field {name!r} is {value!r}: {needed} is needed")
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
    # Many records share few groups: keep one string per group.
    return intern(value if type(value) is str and value else _text(name, value))


OPTIONAL: Mapping[str, Callable[[str, Any], Any]] = {
    "stratum": _stratum,
    "group": _group,
    "benefit": _binary,
    "propensity": _share,
    "verified": _flag,
    "value": _value,
}
