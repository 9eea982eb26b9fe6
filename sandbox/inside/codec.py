"""Plain data as bytes, between processes that do not trust one another (`decoding.py`: and back).

Never pickle.
Values are written in prefix order; n is 4 bytes, little endian, a count of bytes or items:

    N None   T True   F False   . Ellipsis   i n int (two's complement)   f float (8 bytes)
    c complex (16 bytes)   s n str (UTF-8, surrogates let through)   b n bytes
    l n list   t n tuple   S n set   Z n frozenset   d n dict (n key, value pairs)
    k n name, then a tuple: a value of the standard library, from its parts (`library_values.py`)
    o n anything else: 1 byte of truth value, name of its type
    h id (8 bytes), then its description: an object that stays where it is (`remote.py`)
    r n: the list, dict, set or array whose tag is byte n, once more (never to the host)
    a n n: that of the question of this number whose tag is byte n there (likewise)
    m n, 1 byte, then a list, dict, set or array, or `a`: the loan of this number (`loans.py`),
        whose contents have changed if the byte is 1 (likewise)
"""

from __future__ import annotations

import itertools
import struct
from collections.abc import Callable
from typing import Any, NamedTuple

from gatekeeper.sandbox.inside import library_values
from gatekeeper.sandbox.inside.places import Places, held, is_placed, is_view
from gatekeeper.sandbox.inside.wire import (
    MAX_BYTES,
    MAX_DEPTH,
    MAX_HASHED,
    MAX_ITEMS,
    MAX_NAME,
    Parts,
    TooLargeError,
    head,
)

__all__ = ["PLACED", "Opaque", "again", "encode", "opaque"]


class Opaque:
    """A value that is not plain data: equal to nothing but itself."""

    __slots__ = ("_name", "_truth")

    def __init__(self, name: str, truth: bool) -> None:
        self._name, self._truth = name, truth

    def __bool__(self) -> bool:
        return self._truth

    def __repr__(self) -> str:
        return f"<{self._name} object>"


def opaque(item: object) -> Parts:
    """The placeholder for an item that is not plain data and is not sent."""
    name = f"{type(item).__name__}".encode("utf-8", "replace")[:MAX_NAME]
    return head(b"o", len(name)) + (b"\1" if item else b"\0") + name, ()


def encode(
    value: object,
    limit: int = MAX_BYTES,
    *,
    other: Callable[[Any], Parts] = opaque,
    instance: Callable[[Any], Parts | None] = lambda item: None,
    max_hashed: int = MAX_HASHED,
    max_items: int = MAX_ITEMS,
    places: Places | None = None,
) -> bytes:
    """Plain data as bytes; instances of subclasses as their nearest base that is plain.

    It has its own stack, so no depth exhausts Python's; cycles end at `MAX_DEPTH`.

    Parameters
    ----------
    value
        The value to write.
    limit
        Most bytes.
    other
        Writes an item that is not plain data; and the whole value, if it is too deep or its sets
        and dicts have more than `max_hashed` entries.
    instance
        May write an instance of a subclass in another way; None: as its nearest plain base.
    max_hashed, max_items
        Most entries of sets and dicts, and most items.
    places
        Is given each list, dict, set and array, by the place of its tag. Then one that is at two
        places is one for the reader, too.

    Raises
    ------
    TooLargeError
        If it has more than `limit` bytes or `max_items` items.
    """
    out = bytearray()
    hashed = items = 0
    seen: dict[int, tuple[int, Any]] = {}  # by id: where it is written, and it (an id ends with it)
    known = places.known if places is not None else {}
    stack: list[tuple[Any, int]] = [(value, 0)]
    while stack:
        item, depth = stack.pop()
        kind = type(item)
        if kind is _Written:
            seen[id(item.item)] = item.at, item.item
            continue
        if seen and id(item) in seen:
            out += head(b"r", seen[id(item)][0])
            continue
        if known and id(item) in known:
            if (number := places.loans.get(id(item))) is not None:  # type: ignore[union-attr]
                out += head(b"m", number) + b"\0"
            out += known[id(item)]
            continue
        write = _WRITERS.get(kind)
        if write is not None:
            tag, parts = write(item) if kind not in _SIZED or len(item) <= limit else _too_large()
        elif found := library_values.of_library(item, judged=other is not opaque):
            tag, parts = found
        elif written := instance(item):
            tag, parts = written
        else:
            write = next((_WRITERS[b] for b in kind.__mro__ if b in _WRITERS), other)
            named = issubclass(kind, tuple) and isinstance(getattr(kind, "_fields", None), tuple)
            if named and other is not opaque:  # only a judge looks at its fields
                write = library_values.named_tuple
            tag, parts = write(item)
        if parts and depth >= MAX_DEPTH and other is not opaque:
            out += _whole(item, other)  # this item and all below it stay here
            continue
        if places is not None and tag[:1] in PLACED:
            if is_view(item):
                places.shown.update(map(id, held(item) or ()))
            elif is_placed(item):
                if places.loans and (number := places.loans.get(id(item))) is not None:
                    out += head(b"m", number) + (b"\1" if number in places.changed else b"\0")
                places[len(out)] = item
                if kind in _PLAIN:
                    seen[id(item)] = len(out), item
                else:  # the reader makes it when it has all of its parts
                    stack.append((_Written(len(out), item), depth))
        out += tag
        if parts:
            hashed += _ENTRIES.get(tag[:1], 0) * len(parts) // 2
            if hashed > max_hashed or (depth >= MAX_DEPTH and other is opaque):
                return _whole(value, other)
            stack += zip(reversed(parts), itertools.repeat(depth + 1))
        items += len(parts)
        # Each item on the stack takes a byte or more.
        if len(out) + len(stack) > limit or items > max_items:
            raise TooLargeError
    return bytes(out)


class _Written(NamedTuple):
    """On the stack of `encode`, behind the parts of an item."""

    at: int
    item: Any


def again(number: int, place: int) -> bytes:
    """How an item of a question is written in its answer."""
    return b"a" + number.to_bytes(4, "little") + place.to_bytes(4, "little")


def _whole(value: object, other: Callable[[Any], Parts]) -> bytes:
    tag, parts = other(value)
    return tag + b"".join(encode(part, other=other) for part in parts)


def _too_large() -> Parts:
    raise TooLargeError


def _int(item: Any) -> Parts:
    size = (int.bit_length(item) + 8) // 8
    if size > MAX_BYTES:
        raise TooLargeError
    return head(b"i", size) + int.to_bytes(item, size, "little", signed=True), ()


def _str(item: Any) -> Parts:
    text = str.encode(item, "utf-8", "surrogatepass")
    return head(b"s", len(text)) + text, ()


def _bytes(item: Any) -> Parts:
    data = bytes(memoryview(item))
    return head(b"b", len(data)) + data, ()


def _dict(item: Any) -> Parts:
    pairs = list(dict.items(item))
    return head(b"d", len(pairs)), list(itertools.chain.from_iterable(pairs))


def _listing(tag: bytes, base: type) -> Callable[[Any], Parts]:
    def write(item: Any) -> Parts:
        items = list(base.__iter__(item))  # type: ignore[attr-defined]
        return head(tag, len(items)), items

    return write


_ENTRIES = {b"d": 1, b"S": 2, b"Z": 2}  # half entries per part: a key, a value, or an element
_PLAIN = {list, set, dict}
PLACED = {b"l", b"S", b"d", b"k"}  # tags of what may have a place
_SIZED = {str, bytes, bytearray, list, tuple, dict, set, frozenset}  # refused before a copy
_CONSTANTS = {None: b"N", True: b"T", False: b"F", Ellipsis: b"."}
_WRITERS: dict[type, Callable[[Any], Parts]] = {
    **{type(c): (lambda item: (_CONSTANTS[item], ())) for c in _CONSTANTS},
    int: _int,
    float: lambda item: (b"f" + struct.pack("<d", item), ()),
    complex: lambda item: (b"c" + struct.pack("<dd", item.real, item.imag), ()),
    str: _str,
    bytes: _bytes,
    dict: _dict,
    list: _listing(b"l", list),
    tuple: _listing(b"t", tuple),
    set: _listing(b"S", set),
    frozenset: _listing(b"Z", frozenset),
    **library_values.WRITERS,
}
