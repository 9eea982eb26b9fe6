"""Values of the standard library as parts that are plain data, and back; numpy's arrays, too.

`codec.py` writes such a value as its name here, then a tuple of its parts.
"""

from __future__ import annotations

import collections
import datetime
import decimal
import fractions
import functools
import importlib
import pathlib
import re
import sys
from collections.abc import Callable
from typing import Any

from gatekeeper.sandbox.inside.places import viewed
from gatekeeper.sandbox.inside.wire import (
    MAX_BYTES,
    MAX_FIELDS,
    MAX_HASHED,
    MAX_PATH,
    MAX_RATIO_BITS,
    MalformedError,
    Parts,
    TooLargeError,
    head,
)

__all__ = ["BUILDERS", "NAMED_TUPLE", "WRITERS", "array", "named_tuple"]


def _ratio(item: Any) -> tuple[int, int]:
    top, bottom = fractions.Fraction.as_integer_ratio(item)
    if max(abs(top), bottom).bit_length() >= MAX_RATIO_BITS:
        raise TooLargeError
    return top, bottom


def _moment(item: Any) -> tuple[Any, ...]:
    parts = (item.year, item.month, item.day, item.hour, item.minute, item.second)
    return (*parts, item.microsecond, _zone(item))


def _zone(item: Any) -> datetime.timezone | None:
    """The time zone of an item; only its offset, where it has a class of its own."""
    if item.tzinfo is None or type(item.tzinfo) is datetime.timezone:
        return item.tzinfo
    offset = item.utcoffset()
    return None if offset is None else datetime.timezone(offset)


def _from_ratio(top: int, bottom: int) -> fractions.Fraction:
    if not type(top) is type(bottom) is int:
        raise MalformedError("a ratio of other than integers")
    if max(abs(top), bottom).bit_length() >= MAX_RATIO_BITS:
        raise MalformedError("a ratio too long to reduce")
    return fractions.Fraction(top, bottom)


def _from_path(text: str) -> pathlib.Path:
    if type(text) is not str or len(text) > MAX_PATH:
        raise MalformedError("too long a path")
    return pathlib.Path(text)


def _from_text(text: str) -> decimal.Decimal:
    if type(text) is not str or len(text) > MAX_HASHED:
        raise MalformedError("a Decimal of too many digits")
    return decimal.Decimal(text)


_DICTS = (dict, collections.Counter, collections.OrderedDict, collections.defaultdict)
_NUMBERS = re.compile(r"[<>|][biufcSUmM]\d{1,9}(\[\w{1,3}\])?")  # dtypes that hold no objects


def array(item: Any) -> Parts | None:
    """A numpy array or scalar: its type, shape and bytes; None for other objects of numpy."""
    numpy = sys.modules["numpy"]
    if type(item) is not numpy.ndarray and not isinstance(item, numpy.generic):
        return None
    kind = item.dtype.str
    if not _NUMBERS.fullmatch(kind) or item.nbytes > MAX_BYTES:
        return None
    shape = item.shape if type(item) is numpy.ndarray else None
    tag = head(b"k", len(_ARRAY)) + _ARRAY.encode()
    return tag, ((kind, shape, item.tobytes()),)


def _from_array(kind: str, shape: tuple[int, ...] | None, data: bytes) -> Any:
    if type(kind) is not str or not _NUMBERS.fullmatch(kind) or type(data) is not bytes:
        raise MalformedError("an array of other than numbers and texts")
    try:
        numpy = importlib.import_module("numpy")
    except ImportError:
        raise MalformedError("an array where there is no numpy") from None
    found = numpy.frombuffer(data, dtype=kind)
    # A copy of its own: a part that is kept refers to the array (`loans.py`).
    return found[0] if shape is None else found.reshape(shape).copy()


def _of(part: type, build: Callable[..., Any]) -> Callable[..., Any]:
    """`build` for a first part of the right type: another one, such as a range, may be endless."""

    def checked(first: Any, *others: Any) -> Any:
        if type(first) is not part:
            raise MalformedError(f"made of {type(first).__name__}, not {part.__name__}")
        return build(first, *others)

    return checked


def _view(name: str) -> Callable[[Any], Any]:
    """How to make a view of a dict."""

    def made(shown: Any) -> Any:
        if type(shown) not in _DICTS:
            raise MalformedError(f"a view of {type(shown).__name__}")
        return getattr(shown, name)()

    return made


def _from_names(name: str, fields: tuple[str, ...], values: tuple[Any, ...]) -> Any:
    if len(fields) > MAX_FIELDS:
        raise MalformedError("a named tuple of too many fields")
    return _named_tuple_class(name, fields)._make(values)


@functools.lru_cache(maxsize=100)
def _named_tuple_class(name: str, fields: tuple[str, ...]) -> Any:
    return collections.namedtuple(name, fields)


# Values of the standard library: type, how to get its parts, and how to make it from them.
_KNOWN: dict[str, tuple[type, Callable[[Any], tuple[Any, ...]], Callable[..., Any]]] = {
    "Fraction": (fractions.Fraction, _ratio, _from_ratio),
    "Decimal": (decimal.Decimal, lambda v: (decimal.Decimal.__str__(v),), _from_text),
    "bytearray": (bytearray, lambda v: (bytes(memoryview(v)),), _of(bytes, bytearray)),
    "range": (range, lambda v: (v.start, v.stop, v.step), range),
    "slice": (slice, lambda v: (v.start, v.stop, v.step), slice),
    "Counter": (
        collections.Counter,
        lambda v: (dict(dict.items(v)),),
        _of(dict, collections.Counter),
    ),
    "OrderedDict": (
        collections.OrderedDict,  # whose order is not that of the dict below it
        lambda v: (dict(collections.OrderedDict.items(v)),),
        _of(dict, collections.OrderedDict),
    ),
    "defaultdict": (
        collections.defaultdict,
        lambda v: (dict(dict.items(v)), v.default_factory),
        _of(dict, lambda v, make: collections.defaultdict(make if callable(make) else None, v)),
    ),
    "deque": (
        collections.deque,
        lambda v: (list(collections.deque.__iter__(v)), v.maxlen),
        _of(list, collections.deque),
    ),
    "keys": (type({}.keys()), lambda v: (viewed(v),), _view("keys")),
    "items": (type({}.items()), lambda v: (viewed(v),), _view("items")),
    "values": (type({}.values()), lambda v: (viewed(v),), _view("values")),
    "path": (pathlib.PurePath, lambda v: (str(v),), _from_path),
    "datetime": (datetime.datetime, _moment, datetime.datetime),
    "date": (datetime.date, lambda v: (v.year, v.month, v.day), datetime.date),
    "time": (
        datetime.time,
        lambda v: (v.hour, v.minute, v.second, v.microsecond, _zone(v)),
        datetime.time,
    ),
    "timezone": (
        datetime.timezone,
        lambda v: v.__getinitargs__(),
        datetime.timezone,
    ),
    "timedelta": (
        datetime.timedelta,
        lambda v: (v.days, v.seconds, v.microseconds),
        datetime.timedelta,
    ),
}
NAMED_TUPLE = "namedtuple"
_ARRAY = "array"
BUILDERS = {name: build for name, (_, _, build) in _KNOWN.items()} | {
    NAMED_TUPLE: _from_names,
    _ARRAY: _from_array,
}


def _known(name: str, dissect: Callable[[Any], tuple[Any, ...]]) -> Callable[[Any], Parts]:
    tag = head(b"k", len(name)) + name.encode()
    return lambda item: (tag, (dissect(item),))


def named_tuple(item: Any) -> Parts:
    fields, kind = type(item)._fields, type(item).__name__
    tag = head(b"k", len(NAMED_TUPLE)) + NAMED_TUPLE.encode()
    return tag, ((kind, fields, tuple(tuple.__iter__(item))),)


WRITERS = {kind: _known(name, dissect) for name, (kind, dissect, _) in _KNOWN.items()}
"""How values are written: type -> a function that returns their tag and parts."""
