"""Values of the standard library as parts that are plain data, and back; numpy's arrays, too.

`codec.py` writes such a value as its name here, then a tuple of its parts.
"""

from __future__ import annotations

import collections
import functools
import importlib
import pathlib
import re
import sys
from collections.abc import Callable

# Not from their modules when they are used: the tests may have replaced them there.
from datetime import date, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal
from fractions import Fraction
from typing import Any

from gatekeeper.sandbox.inside import pandas_values
from gatekeeper.sandbox.inside.places import viewed
from gatekeeper.sandbox.inside.wire import (
    MAX_BYTES,
    MAX_FIELDS,
    MAX_HASHED,
    MAX_PATH,
    MAX_RATIO_BITS,
    ZONE,
    MalformedError,
    Parts,
    TooLargeError,
    head,
)

__all__ = ["BUILDERS", "JUDGED", "NAMED_TUPLE", "WRITERS", "named_tuple", "of_library"]


def _ratio(item: Any) -> tuple[int, int]:
    top, bottom = Fraction.as_integer_ratio(item)
    if max(abs(top), bottom).bit_length() >= MAX_RATIO_BITS:
        raise TooLargeError
    return top, bottom


def _moment(item: Any) -> tuple[Any, ...]:
    parts = (item.year, item.month, item.day, item.hour, item.minute, item.second)
    return (*parts, item.microsecond, _zone(item), item.fold)


def _from_moment(*parts: Any) -> datetime:
    return datetime(*parts[:-1], fold=parts[-1])


def _zone(item: Any) -> tzinfo | None:
    """The time zone of an item; only its offset, where it has a class of its own."""
    zone: tzinfo | None = item.tzinfo
    if zone is None or type(zone) is timezone or _key(zone) is not None:
        return zone
    offset = item.utcoffset()
    return None if offset is None else timezone(offset)


def _key(zone: Any) -> str | None:
    """The name of a time zone of `zoneinfo`; None for any other object."""
    known = getattr(sys.modules.get("zoneinfo"), "ZoneInfo", None)
    key: str | None = zone.key if type(zone) is known else None
    return key


@functools.lru_cache(maxsize=1000)
def _from_key(key: str) -> tzinfo:
    if type(key) is not str or not re.fullmatch(ZONE, key):
        raise MalformedError("no name of a time zone")
    zone: tzinfo = importlib.import_module("zoneinfo").ZoneInfo(key)
    return zone


def zone(item: Any) -> Parts | None:
    """A time zone that has a name; None for other objects of its module."""
    key = _key(item)
    return None if key is None else (head(b"k", len(_ZONE)) + _ZONE.encode(), ((key,),))


def _from_ratio(top: int, bottom: int) -> Fraction:
    if not type(top) is type(bottom) is int:
        raise MalformedError("a ratio of other than integers")
    if max(abs(top), bottom).bit_length() >= MAX_RATIO_BITS:
        raise MalformedError("a ratio too long to reduce")
    return Fraction(top, bottom)


def _from_path(text: str) -> pathlib.Path:
    if type(text) is not str or len(text) > MAX_PATH:
        raise MalformedError("too long a path")
    return _PATH(text)


def _from_text(text: str) -> Decimal:
    if type(text) is not str or len(text) > MAX_HASHED:
        raise MalformedError("a Decimal of too many digits")
    return Decimal(text)


_DICTS = (dict, collections.Counter, collections.OrderedDict, collections.defaultdict)
_NUMBERS = re.compile(r"[<>|][biufcSUmM]\d{1,9}(\[\w{1,3}\])?")  # dtypes that hold no objects
_OBJECTS = "|O"
_TYPES = re.compile(rf"{_NUMBERS.pattern}|{re.escape(_OBJECTS)}")


def array(item: Any) -> Parts | None:
    """A numpy array or scalar: its type, shape and bytes; None for other objects of numpy.

    Of an array of objects: `O`, shape and items. A type alone is an array without a shape or bytes.
    """
    numpy = sys.modules["numpy"]
    tag = head(b"k", len(_ARRAY)) + _ARRAY.encode()
    if isinstance(item, numpy.dtype):
        return (tag, ((item.str, None, None),)) if _TYPES.fullmatch(item.str) else None
    if type(item) is not numpy.ndarray and not isinstance(item, numpy.generic):
        return None
    kind = item.dtype.str
    if kind == _OBJECTS and type(item) is numpy.ndarray:
        return tag, ((kind, item.shape, tuple(item.flat)),)
    if not _NUMBERS.fullmatch(kind) or item.nbytes > MAX_BYTES:
        return None
    shape = item.shape if type(item) is numpy.ndarray else None
    return tag, ((kind, shape, item.tobytes()),)


def _from_array(
    kind: str, shape: tuple[int, ...] | None, data: bytes | tuple[Any, ...] | None
) -> Any:
    if type(kind) is not str or not _TYPES.fullmatch(kind):
        raise MalformedError("an array of other than numbers, texts and objects")
    try:
        numpy = importlib.import_module("numpy")
    except ImportError:
        raise MalformedError("an array where there is no numpy") from None
    if shape is None and data is None:
        return numpy.dtype(kind)
    if type(data) is not (tuple if kind == _OBJECTS else bytes):
        raise MalformedError("an array of other contents than its type")
    if type(data) is tuple:
        objects = numpy.empty(len(data), dtype=object)
        for place, item in enumerate(data):  # numpy would look into items
            objects[place] = item
        return objects.reshape(shape)
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
    "Fraction": (Fraction, _ratio, _from_ratio),
    "Decimal": (Decimal, lambda v: (Decimal.__str__(v),), _from_text),
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
    "datetime": (datetime, _moment, _from_moment),
    "date": (date, lambda v: (v.year, v.month, v.day), date),
    "time": (
        time,
        lambda v: (v.hour, v.minute, v.second, v.microsecond, _zone(v)),
        time,
    ),
    "timezone": (
        timezone,
        lambda v: v.__getinitargs__(),
        timezone,
    ),
    "timedelta": (
        timedelta,
        lambda v: (v.days, v.seconds, v.microseconds),
        timedelta,
    ),
}
NAMED_TUPLE = "namedtuple"
_PATH = type(pathlib.Path())
_ARRAY, _ZONE = "array", "zone"
JUDGED = {NAMED_TUPLE, *pandas_values.BUILDERS}  # what the host does not make
BUILDERS = {name: build for name, (_, _, build) in _KNOWN.items()} | {
    NAMED_TUPLE: _from_names,
    _ARRAY: _from_array,
    _ZONE: _from_key,
    **pandas_values.BUILDERS,
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

_LIBRARIES = {"numpy": array, "zoneinfo": zone}


def of_library(item: Any, *, judged: bool) -> Parts | None:
    """A value of a library that need not be there, as `WRITERS` write others; None if it is none.

    `judged`: by tests, not by the host, which has no use for frames.
    """
    root = str(type(item).__module__).partition(".")[0]
    if root == "pandas":
        return pandas_values.write(item) if judged else None
    return _LIBRARIES[root](item) if root in _LIBRARIES else None
