"""Reads what the sandboxed process sent: untrusted bytes into plain data. Format: `child.py`."""

from __future__ import annotations

import struct
from fractions import Fraction
from typing import Any

from gatekeeper.sandbox.child import MAX_DEPTH, MAX_HASHED, MAX_RATIO_BITS

__all__ = ["MalformedError", "Opaque", "decode", "frames", "show"]

_CONSTANTS = {b"N": None, b"T": True, b"F": False, b".": Ellipsis}


class MalformedError(ValueError):
    """The bytes are not what `child.py` writes: the candidate wrote to the pipe itself."""


class Opaque:
    """A value that is not plain data: equal to nothing but itself."""

    __slots__ = ("_name", "_truth")

    def __init__(self, name: str, truth: bool) -> None:
        self._name, self._truth = name, truth

    def __bool__(self) -> bool:
        return self._truth

    def __repr__(self) -> str:
        return f"<{self._name} object>"


def frames(stream: bytes) -> list[tuple[bytes, bytes]]:
    """(kind, payload) of each complete frame; an incomplete one at the end is left out."""
    found, at = [], 0
    while at + 5 <= len(stream):
        end = at + 5 + int.from_bytes(stream[at + 1 : at + 5], "little")
        if end > len(stream):
            break
        found.append((stream[at : at + 1], stream[at + 5 : end]))
        at = end
    return found


def decode(data: bytes) -> Any:
    """The value; Opaque where it could equal no literal. Raises MalformedError."""
    try:
        return _Reader(data).value()
    except (struct.error, UnicodeDecodeError, TypeError, IndexError) as error:
        raise MalformedError(str(error)) from error


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data, self._at, self._hashed = data, 0, 0

    def value(self) -> Any:
        found = self._item(0)
        if self._at != len(self._data):
            raise MalformedError("bytes after the value")
        return found

    def _take(self, n: int) -> bytes:
        self._at += n
        if self._at > len(self._data):
            raise MalformedError("the value is cut off")
        return self._data[self._at - n : self._at]

    def _count(self) -> int:
        return int.from_bytes(self._take(4), "little")

    def _item(self, depth: int) -> Any:
        if depth > MAX_DEPTH:  # also what keeps this recursion, and hashing, within bounds
            raise MalformedError("the value is too deep")
        match self._take(1):
            case (b"N" | b"T" | b"F" | b".") as tag:
                return _CONSTANTS[tag]
            case b"i":
                return int.from_bytes(self._take(self._count()), "little", signed=True)
            case b"f":
                return struct.unpack("<d", self._take(8))[0]
            case b"c":
                return complex(*struct.unpack("<dd", self._take(16)))
            case b"s":
                return self._take(self._count()).decode("utf-8", "surrogatepass")
            case b"b":
                return self._take(self._count())
            case b"l":
                return self._items(depth)
            case b"t":
                return tuple(self._items(depth))
            case b"S":
                return set(self._items(depth, hashed=True))
            case b"Z":
                return frozenset(self._items(depth, hashed=True))
            case b"d":
                entries = self._items(depth, hashed=True, each=2)
                return dict(zip(entries[::2], entries[1::2], strict=True))
            case b"q":
                return self._ratio(self._item(depth + 1), self._item(depth + 1))
            case b"o":
                n = self._count()
                truth = self._take(1) == b"\1"
                return Opaque(self._take(n).decode("utf-8", "replace"), truth)
            case tag:
                raise MalformedError(f"tag={tag!r}")

    def _items(self, depth: int, *, hashed: bool = False, each: int = 1) -> list[Any]:
        n = self._count()
        if hashed:
            self._hashed += n
            if self._hashed > MAX_HASHED:  # keys chosen to collide cost time squared
                raise MalformedError(f"more than {MAX_HASHED} entries in sets and dicts")
        return [self._item(depth + 1) for _ in range(n * each)]

    @staticmethod
    def _ratio(top: object, bottom: object) -> Fraction:
        if not (type(top) is type(bottom) is int and bottom > 0):
            raise MalformedError("not a ratio")
        if max(abs(top), bottom).bit_length() >= MAX_RATIO_BITS:
            raise MalformedError("a ratio too long to reduce")
        return Fraction(top, bottom)


def show(value: object, limit: int = 200) -> str:
    """`repr` that cannot fail, of at most `limit` characters."""
    try:
        text = repr(value)
    except (ValueError, RecursionError, MemoryError):  # an int of more than 4,300 digits
        text = f"<{type(value).__name__} too long to show>"
    return text if len(text) <= limit else text[: limit - 1] + "…"
