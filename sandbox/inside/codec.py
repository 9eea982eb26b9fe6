"""Plain data as bytes and back, between processes that do not trust one another. Never pickle.

Values are written in prefix order; n is 4 bytes, little endian, a count of bytes or items:

    N None   T True   F False   . Ellipsis   i n int (two's complement)   f float (8 bytes)
    c complex (16 bytes)   s n str (UTF-8, surrogates let through)   b n bytes
    l n list   t n tuple   S n set   Z n frozenset   d n dict (n key, value pairs)
    k n name, then a tuple: a value of the standard library, from its parts (`library_values.py`)
    o n anything else: 1 byte of truth value, name of its type
    h id (8 bytes), then its description: an object that stays where it is (`remote.py`)
    r n: the list, set or dict whose tag is byte n, once more (never to the host)
"""

from __future__ import annotations

import collections
import itertools
import struct
from collections.abc import Callable, Iterator
from typing import Any

from gatekeeper.sandbox.inside import library_values
from gatekeeper.sandbox.inside.wire import (
    MAX_BYTES,
    MAX_COMPARED,
    MAX_DEPTH,
    MAX_HASHED,
    MAX_ITEMS,
    MAX_NAME,
    MalformedError,
    Parts,
    TooLargeError,
    head,
)

__all__ = ["Opaque", "decode", "encode", "opaque"]


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
    shared: bool = False,
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
    shared
        Whether a list, set or dict that is at two places is one for the reader, too.

    Raises
    ------
    TooLargeError
        If it has more than `limit` bytes or `max_items` items.
    """
    out = bytearray()
    hashed = items = 0
    seen: dict[int, tuple[int, Any]] = {}  # by id: where it is written, and it (an id ends with it)
    stack: list[tuple[Any, int]] = [(value, 0)]
    while stack:
        item, depth = stack.pop()
        kind = type(item)
        if seen and id(item) in seen:
            out += head(b"r", seen[id(item)][0])
            continue
        write = _WRITERS.get(kind)
        if write is not None:
            tag, parts = write(item) if kind not in _SIZED or len(item) <= limit else _too_large()
        elif kind.__module__ == "numpy" and (array := library_values.array(item)) is not None:
            tag, parts = array
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
        if shared and kind in _SHARED:
            seen[id(item)] = len(out), item
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


def _whole(value: object, other: Callable[[Any], Parts]) -> bytes:
    tag, parts = other(value)
    return tag + b"".join(map(encode, parts))


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
_SHARED = {list, set, dict}
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


def decode(
    data: bytes,
    *,
    other: Callable[[int, Any], Any] | None = None,
    max_hashed: int = MAX_HASHED,
    max_items: int = MAX_ITEMS,
) -> Any:
    """The value that `encode` has written.

    Parameters
    ----------
    data
        The bytes. They may come from a hostile process.
    other
        Makes an object from an id and a description; None: objects are malformed.
    max_hashed, max_items
        Most entries of sets and dicts, and most items.

    Returns
    -------
    Any
        The value; `Opaque` for items that are not plain data.

    Raises
    ------
    MalformedError
        `encode` does not write such bytes, or they exceed a limit.
    """
    try:
        return _Reader(data, other, max_hashed, max_items).value()
    except MalformedError:
        raise
    except (
        ValueError,
        TypeError,
        LookupError,
        ArithmeticError,
        AttributeError,
        RecursionError,
        MemoryError,
        struct.error,
    ) as error:
        raise MalformedError(f"{type(error).__name__}: {error}") from error


class _Reader:
    def __init__(
        self,
        data: bytes,
        other: Callable[[int, Any], Any] | None,
        max_hashed: int,
        max_items: int,
    ) -> None:
        self._data, self._at, self.other = data, 0, other
        self._shared: dict[int, Any] = {}  # lists, sets and dicts, by the places of their tags
        self._hashed, self._items_left = max_hashed, max_items
        # If entries are not limited, only the sender's own time is at risk.
        self._compared = MAX_COMPARED if max_hashed <= MAX_HASHED else None

    def value(self) -> Any:
        found = self.item(0)
        if self._at != len(self._data):
            raise MalformedError("bytes after the value")
        return found

    def take(self, n: int) -> bytes:
        start = self._at
        self._at = end = start + n
        if end > len(self._data):
            raise MalformedError("the value is cut off")
        return self._data[start:end]

    def sized(self) -> bytes:
        start = self._at + 4
        self._at = end = start + int.from_bytes(self._data[start - 4 : start], "little")
        if end > len(self._data):
            raise MalformedError("the value is cut off")
        return self._data[start:end]

    def item(self, depth: int) -> Any:
        # This bounds the recursion, and hashing; the 4 are for the description of a handle.
        if depth > MAX_DEPTH + 4:
            raise MalformedError("the value is too deep")
        at = self._at
        tag = self._data[at : at + 1]
        read = _READERS.get(tag)
        if read is None:
            raise MalformedError(f"tag={tag!r}" if tag else "the value is cut off")
        self._at = at + 1
        return read(self, depth)

    def items(self, depth: int) -> Iterator[Any]:
        return map(self.item, itertools.repeat(depth + 1, self._number()))

    def read_list(self, depth: int) -> list[Any]:
        made: list[Any] = []
        self._shared[self._at - 1] = made  # before its items, of which one may be this list
        made += self.items(depth)
        return made

    def read_set(self, depth: int) -> set[Any]:
        at = self._at - 1
        made = self._shared[at] = set(self.entries(depth))
        return made

    def read_dict(self, depth: int) -> dict[Any, Any]:
        made: dict[Any, Any] = {}
        self._shared[self._at - 1] = made
        entries = self.entries(depth, each=2)
        made.update(zip(entries[::2], entries[1::2], strict=True))
        return made

    def read_again(self, depth: int) -> Any:
        if self.other is None:  # a small one could take the host endless time
            raise MalformedError("a list, set or dict that is at two places")
        return self._shared[int.from_bytes(self.take(4), "little")]

    def entries(self, depth: int, each: int = 1) -> list[Any]:
        """The entries of a set; with `each` 2, the keys and values of a dict."""
        start, before = self._at, self._compared
        n = self._number(each)
        self._hashed -= n
        if self._hashed < 0:
            raise MalformedError("too many entries in sets and dicts")
        items = list(map(self.item, itertools.repeat(depth + 1, n * each)))
        if n > 1 and before is not None and self._compared is not None:
            sharing = max(collections.Counter(map(hash, items[::each])).values()) - 1
            self._compared -= sharing * (self._at - start + before - self._compared)
            if self._compared < 0:
                raise MalformedError("too many keys of the same hash")
        return items

    def _number(self, each: int = 1) -> int:
        """The number of the items, or entries of `each` items, that come next."""
        n = int.from_bytes(self.take(4), "little")
        self._items_left -= n * each
        if n * each > len(self._data) or self._items_left < 0:
            raise MalformedError("too many items")
        return n


def _read_known(reader: _Reader, depth: int) -> Any:
    name = reader.sized().decode("ascii")
    if name == library_values.NAMED_TUPLE and reader.other is None:
        raise MalformedError("a named tuple, whose class would be made here")
    build = library_values.BUILDERS[name]
    parts = reader.item(depth + 1)
    if type(parts) is not tuple:
        raise MalformedError("parts that are no tuple")
    return build(*parts)


def _read_opaque(reader: _Reader, depth: int) -> Opaque:
    size = int.from_bytes(reader.take(4), "little")
    truth = reader.take(1) == b"\1"
    return Opaque(reader.take(size).decode("utf-8", "replace"), truth)


def _read_handle(reader: _Reader, depth: int) -> Any:
    if reader.other is None:
        raise MalformedError("an object that stays where it is")
    number = int.from_bytes(reader.take(8), "little", signed=True)
    return reader.other(number, reader.item(depth + 1))


_READERS: dict[bytes, Callable[[_Reader, int], Any]] = {
    b"N": lambda reader, depth: None,
    b"T": lambda reader, depth: True,
    b"F": lambda reader, depth: False,
    b".": lambda reader, depth: Ellipsis,
    b"i": lambda reader, depth: int.from_bytes(reader.sized(), "little", signed=True),
    b"f": lambda reader, depth: struct.unpack("<d", reader.take(8))[0],
    b"c": lambda reader, depth: complex(*struct.unpack("<dd", reader.take(16))),
    b"s": lambda reader, depth: reader.sized().decode("utf-8", "surrogatepass"),
    b"b": lambda reader, depth: reader.sized(),
    b"l": _Reader.read_list,
    b"t": lambda reader, depth: tuple(reader.items(depth)),
    b"S": _Reader.read_set,
    b"Z": lambda reader, depth: frozenset(reader.entries(depth)),
    b"d": _Reader.read_dict,
    b"r": _Reader.read_again,
    b"k": _read_known,
    b"o": _read_opaque,
    b"h": _read_handle,
}
