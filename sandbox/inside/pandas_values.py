"""Frames, series, indexes and scalars of pandas as parts that are plain data, and back.

Their columns are arrays of numpy, or of pandas itself. In an index is only plain data, as pandas
would ask other objects for their hash.
"""

from __future__ import annotations

import copy
import functools
import importlib
import re
import sys
from collections.abc import Callable, Iterator
from typing import Any

from gatekeeper.sandbox.inside.wire import MAX_BYTES, ZONE, MalformedError, Parts, head

__all__ = ["BUILDERS", "is_frame", "objects", "refill", "same", "size", "write"]

_ZONES = re.compile(rf"{ZONE}|UTC[+-]\d\d:\d\d")
_TYPES = re.compile(r"str|string|boolean|U?Int(8|16|32|64)|Float(32|64)")
_STEPS = re.compile(r"[A-Za-z0-9-]{1,30}")  # frequencies
_NESTED = frozenset({tuple, frozenset})
_SCALARS = frozenset({str, int, float, bool, bytes, type(None)})
_PLAIN = frozenset({"datetime", "decimal", "fractions", "numpy", "pandas"})  # modules of scalars


# From values to parts


def write(item: Any) -> Parts | None:
    """A value of pandas: its name here, then its parts; None for what stays where it is."""
    pandas, kind = sys.modules.get("pandas"), type(item)
    if pandas is None:  # a class may say that it is of any module
        return None
    name, parts = kind.__name__, None
    if name in _WRITERS and getattr(pandas, name, None) is kind:
        parts = _WRITERS[name](item)
    elif name in ("NaTType", "NAType"):
        name, parts = "missing", (name[:-4],)
    elif isinstance(item, pandas.api.extensions.ExtensionArray):
        name, parts = "array", _array(item)
    elif isinstance(item, pandas.api.extensions.ExtensionDtype) and _TYPES.fullmatch(str(item)):
        name, parts = "dtype", (str(item),)
    tag = f"pandas.{name}".encode()
    return None if parts is None else (head(b"k", len(tag)) + tag, (parts,))


def _column(values: Any) -> Any:
    """The values of a series or an index as an array that can be sent; None if there is none."""
    if _of_numpy(values):
        return values.to_numpy() if values.dtype.kind in "biufcmMO" else None
    return None if _array(values.array) is None else values.array


def _of_numpy(values: Any) -> bool:
    return isinstance(values.dtype, sys.modules["numpy"].dtype)


def _array(values: Any) -> tuple[Any, ...] | None:
    """The parts of an array of pandas, after the name of its kind."""
    kind = type(values.dtype).__name__.removesuffix("Dtype")
    if kind == "Categorical":
        parts = kind, values.codes, values.categories, values.ordered
        return parts if _are_sent(values.categories) else None
    if kind == "DatetimeTZ":
        zone = _zone(values)
        return zone and (kind, values.tz_convert("UTC").tz_localize(None).to_numpy(), zone)  # type: ignore[return-value]
    if kind == "Interval":
        return kind, values.left, values.right, values.closed
    if kind == "Period":
        return kind, values.asi8, str(values.dtype)[len("period[") : -1]
    if kind == "Sparse":
        return kind, values.to_dense(), values.fill_value
    if not _TYPES.fullmatch(str(values.dtype)):
        return None
    rows = zip(values.tolist(), values.isna(), strict=True)
    return "", str(values.dtype), tuple(None if lacks else value for value, lacks in rows)


def _zone(item: Any) -> str | None:
    """The name of a time zone; None if pandas would not find it."""
    return name if (name := str(item.tz)) and _ZONES.fullmatch(name) else None


def _is_plain(*items: Any) -> bool:
    """Whether items are scalars, or tuples of some: labels, of which pandas takes the hash."""
    return all(
        _is_plain(*item)
        if type(item) in _NESTED
        else type(item) in _SCALARS or _is_of_library(type(item))
        for item in items
    )


def _is_of_library(kind: type) -> bool:
    return kind.__name__ != "ndarray" and kind.__module__.partition(".")[0] in _PLAIN


def _are_sent(*indexes: Any) -> bool:
    return all(write(index) is not None for index in indexes)


def _is_numeric(frame: Any) -> bool:
    """Whether all columns have one type of numpy's numbers: at once, as there may be many."""
    kinds = {*frame.dtypes} if frame.ndim == 2 else set()
    return len(kinds) == 1 and _is_number(kinds.pop())


def _is_number(kind: Any) -> bool:
    return isinstance(kind, sys.modules["numpy"].dtype) and kind.kind in "biufcmM"


def _frame(item: Any) -> tuple[Any, ...] | None:
    if _is_numeric(item) and _are_sent(item.columns, item.index):
        numbers = item.to_numpy()
        if numbers.nbytes <= MAX_BYTES:
            return item.columns, item.index, numbers, _attrs(item)
    columns = tuple(_column(item.iloc[:, place]) for place in range(item.shape[1]))
    if any(column is None for column in columns) or not _are_sent(item.columns, item.index):
        return None
    return item.columns, item.index, columns, _attrs(item)


def _attrs(item: Any) -> dict[Any, Any]:
    """What is said of a frame as a whole, where that is data: pandas copies it with the frame."""
    return {name: value for name, value in item.attrs.items() if _is_plain(name, *_flat(value))}


def _flat(value: Any) -> Iterator[Any]:
    """The keys and items of data."""
    if type(value) is dict:
        yield from (part for pair in value.items() for one in pair for part in _flat(one))
    elif type(value) is list:
        yield from (part for one in value for part in _flat(one))
    else:
        yield value


def _series(item: Any) -> tuple[Any, ...] | None:
    found = _column(item) if _is_plain(item.name) and _are_sent(item.index) else None
    return None if found is None else (found, item.index, item.name, _attrs(item))


def _index(item: Any) -> tuple[Any, ...] | None:
    labels = item if item.dtype == object else ()
    found = _column(item) if _is_plain(item.name, *labels) else None
    return None if found is None else (found, item.name)


def _levels(item: Any) -> tuple[Any, ...] | None:
    if not (_is_plain(*item.names) and _are_sent(*item.levels)):
        return None
    return tuple(item.levels), tuple(item.codes), tuple(item.names)


def _steps(item: Any) -> tuple[Any, ...] | None:
    """The parts of an index of moments, or of durations."""
    if not _is_plain(item.name):
        return None
    if getattr(item, "tz", None) is None:
        return item.to_numpy(), None, item.freqstr, item.name
    zone = _zone(item)
    moments = item.tz_convert("UTC").tz_localize(None).to_numpy()
    return zone and (moments, zone, item.freqstr, item.name)  # type: ignore[return-value]


def _moment(item: Any) -> tuple[Any, ...] | None:
    if item.tz is None:
        return item.asm8, None
    return (zone := _zone(item)) and (item.asm8, zone)  # type: ignore[return-value]


_WRITERS: dict[str, Callable[[Any], tuple[Any, ...] | None]] = {
    "DataFrame": _frame,
    "Series": _series,
    "RangeIndex": lambda v: (v.start, v.stop, v.step, v.name) if _is_plain(v.name) else None,
    "MultiIndex": _levels,
    **dict.fromkeys(("DatetimeIndex", "TimedeltaIndex"), _steps),
    **dict.fromkeys(("Index", "CategoricalIndex", "IntervalIndex", "PeriodIndex"), _index),
    "Timestamp": _moment,
    "Timedelta": lambda v: (v.asm8,),
    "Interval": lambda v: (v.left, v.right, v.closed),
    "Period": lambda v: (v.ordinal, v.freqstr),
}


# And back


def _checked(item: Any, *kinds: str) -> Any:
    """An item that is of one of these classes, by their modules and names."""
    for path in kinds:
        module, _, name = path.rpartition(".")
        if isinstance(item, getattr(importlib.import_module(module), name)):
            return item
    raise MalformedError(f"{type(item).__name__} in the place of {kinds[0]}")


_INDEX = "pandas.Index"
_EITHER = ("numpy.ndarray", "pandas.api.extensions.ExtensionArray")


def _text(item: Any, pattern: re.Pattern[str]) -> str:
    if type(item) is not str or not pattern.fullmatch(item):
        raise MalformedError(f"{item!r:.80}: no such text")
    return item


def _label(*labels: Any) -> Any:
    """The first of some labels, which are all plain. Raises MalformedError."""
    if not _is_plain(*labels):
        raise MalformedError("labels that are no plain data")
    return labels[0] if labels else None


def _to_frame(pandas: Any, columns: Any, index: Any, arrays: Any, attrs: Any) -> Any:
    index, columns = _checked(index, _INDEX), _checked(columns, _INDEX)
    if type(arrays) is tuple and len(arrays) == len(columns):
        made = {n: _to_series(pandas, array, index, None, {}) for n, array in enumerate(arrays)}
        frame = pandas.DataFrame(made, index=index)
    else:
        numbers = _checked(arrays, "numpy.ndarray").copy()
        frame = pandas.DataFrame(numbers, index=index, dtype=numbers.dtype)
    frame.columns = columns
    return _described(frame, attrs)


def _described(item: Any, attrs: Any) -> Any:
    if type(attrs) is not dict:
        raise MalformedError("attributes that are no dict")
    item.attrs = attrs
    if len(_attrs(item)) != len(attrs):
        raise MalformedError("attributes that are no data")
    item.attrs = copy.deepcopy(attrs)  # of which the other side could change a part
    return item


def _to_series(pandas: Any, array: Any, index: Any, name: Any, attrs: Any) -> Any:
    array = _checked(array, *_EITHER)  # with its type: of texts pandas would make another one
    index = _checked(index, _INDEX)
    made = pandas.Series(array, index=index, dtype=array.dtype, name=_label(name))
    return _described(made, attrs)


def _to_index(pandas: Any, array: Any, name: Any) -> Any:
    array = _checked(array, *_EITHER)
    if array.dtype == object:
        _label(*array)
    return pandas.Index(array, dtype=array.dtype, name=_label(name), tupleize_cols=False)


def _to_levels(pandas: Any, levels: Any, codes: Any, names: Any) -> Any:
    if not type(levels) is type(codes) is type(names) is tuple:
        raise MalformedError("levels that are no tuple")
    found = [_checked(level, _INDEX) for level in levels]
    numbers = [_checked(code, "numpy.ndarray") for code in codes]
    _label(*names)
    return pandas.MultiIndex(found, numbers, names=names)


def _to_steps(name: str, pandas: Any, array: Any, zone: Any, freq: Any, called: Any) -> Any:
    found = getattr(pandas, name)(_checked(array, "numpy.ndarray"), name=_label(called))
    if zone is not None:
        found = found.tz_localize("UTC").tz_convert(_text(zone, _ZONES))
    if freq is not None:
        found.freq = _text(freq, _STEPS)
    return found


def _to_moment(pandas: Any, value: Any, zone: Any) -> Any:
    found = pandas.Timestamp(_checked(value, "numpy.datetime64"))
    return found if zone is None else found.tz_localize("UTC").tz_convert(_text(zone, _ZONES))


def _to_array(pandas: Any, kind: str, *parts: Any) -> Any:
    match kind, parts:
        case "Categorical", (codes, categories, ordered):
            index = _checked(categories, _INDEX)
            return pandas.Categorical.from_codes(codes, index, ordered=ordered is True)
        case "DatetimeTZ", (moments, zone):
            return _to_steps("DatetimeIndex", pandas, moments, zone, None, None).array
        case "Interval", (left, right, closed):
            sides = _checked(left, _INDEX), _checked(right, _INDEX)
            return pandas.arrays.IntervalArray.from_arrays(*sides, closed=closed)
        case "Sparse", (values, fill):
            dense = _checked(values, "numpy.ndarray")
            return pandas.arrays.SparseArray(dense, fill_value=_label(fill))
        case "Period", (ordinals, freq):
            made = getattr(pandas.PeriodIndex, "from_ordinals", None)
            if made is not None:
                return made(_checked(ordinals, "numpy.ndarray"), freq=_text(freq, _STEPS)).array
            return pandas.PeriodIndex(ordinal=ordinals, freq=_text(freq, _STEPS)).array
        case "", (name, tuple() as rows) if {*map(type, rows)} <= _SCALARS:
            return pandas.array(list(rows), dtype=_text(name, _TYPES))
    raise MalformedError(f"no array: {kind!r:.80}")


def _safely(build: Callable[..., Any]) -> Callable[..., Any]:
    def built(*parts: Any) -> Any:
        try:
            return build(importlib.import_module("pandas"), *parts)
        except Exception as error:  # pandas has some of its own
            raise MalformedError(f"{type(error).__name__}: {error}") from error

    return built


_BUILDERS: dict[str, Callable[..., Any]] = {
    "DataFrame": _to_frame,
    "Series": _to_series,
    "RangeIndex": lambda pandas, *v: pandas.RangeIndex(*v[:3], name=_label(v[3])),
    "MultiIndex": _to_levels,
    "DatetimeIndex": functools.partial(_to_steps, "DatetimeIndex"),
    "TimedeltaIndex": functools.partial(_to_steps, "TimedeltaIndex"),
    **dict.fromkeys(("Index", "CategoricalIndex", "IntervalIndex", "PeriodIndex"), _to_index),
    "Timestamp": _to_moment,
    "Timedelta": lambda pandas, v: pandas.Timedelta(_checked(v, "numpy.timedelta64")),
    "Interval": lambda pandas, *v: pandas.Interval(*v),
    "Period": lambda pandas, v, freq: pandas.Period(ordinal=v, freq=_text(freq, _STEPS)),
    "missing": lambda pandas, name: {"NaT": pandas.NaT, "NA": pandas.NA}[name],
    "array": _to_array,
    "dtype": lambda pandas, v: pandas.api.types.pandas_dtype(_text(v, _TYPES)),
}
BUILDERS = {f"pandas.{name}": _safely(build) for name, build in _BUILDERS.items()}
"""How values are made of their parts, by the names that `write` gives them."""


# Frames and series, which change


def is_frame(kind: type) -> bool:
    """Whether objects of a class are frames or series, which both sides may change."""
    name = kind.__name__
    known = name in ("DataFrame", "Series")
    return known and getattr(sys.modules.get("pandas"), name, None) is kind


def size(item: Any) -> int:
    """About how many bytes a frame takes, without the objects in it."""
    used = item.memory_usage(deep=False)
    return int(used if item.ndim == 1 else used.sum())


def _arrays(item: Any) -> Iterator[Any]:
    if _is_numeric(item):
        yield item.to_numpy()
        return
    columns = [item] if item.ndim == 1 else (item.iloc[:, n] for n in range(item.shape[1]))
    for column in columns:
        yield column.to_numpy() if _of_numpy(column) else column.array


def objects(item: Any) -> list[Any]:
    """The objects in the columns of a frame."""
    return [one for array in _arrays(item) if array.dtype == object for one in array]


def same(before: Any, now: Any) -> bool:
    """Whether two frames have the same labels and values: the same objects, in their columns."""
    if len(before.axes) != len(now.axes) or not all(map(_identical, before.axes, now.axes)):
        return False
    if before.ndim == 1 and before.name is not now.name and before.name != now.name:
        return False
    if _attrs(before) != _attrs(now):
        return False
    return all(map(_alike, _arrays(before), _arrays(now)))


def _identical(one: Any, other: Any) -> bool:
    return one is other or bool(one.identical(other))


def _alike(one: Any, other: Any) -> bool:
    if type(one) is not type(other) or one.dtype != other.dtype:
        return False
    return bool(one.tobytes() == other.tobytes() if hasattr(one, "tobytes") else one.equals(other))


def refill(item: Any, other: Any) -> None:
    """Give a frame the labels and values of another."""
    item._update_inplace(other)
    item.attrs = other.attrs
    if item.ndim == 1:
        item.name = other.name
