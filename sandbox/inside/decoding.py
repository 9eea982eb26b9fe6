"""Plain data from the bytes that `codec.py` writes, which may come from a hostile process."""

from __future__ import annotations

import collections
import itertools
import struct
import sys
from collections.abc import Callable, Iterator
from typing import Any

from gatekeeper.sandbox.inside import library_values
from gatekeeper.sandbox.inside.codec import PLACED, Opaque
from gatekeeper.sandbox.inside.loans import Loans
from gatekeeper.sandbox.inside.places import Places, is_placed
from gatekeeper.sandbox.inside.wire import (
    DESCRIPTION,
    MAX_COMPARED,
    MAX_DEPTH,
    MAX_HASHED,
    MAX_ITEMS,
    MalformedError,
)

__all__ = ["decode"]


def decode(
    data: bytes,
    *,
    other: Callable[[int, Any], Any] | None = None,
    asked: Callable[[int, int], Any] | None = None,
    loans: Loans | None = None,
    places: Places | None = None,
    heard: Callable[[Any], None] | None = None,
    limited: bool = True,
) -> Any:
    """The value that `encode` has written.

    Parameters
    ----------
    data
        The bytes. They may come from a hostile process.
    other
        Makes an object from an id and a description; None: objects are malformed.
    asked
        Finds an item of a question, from the numbers of `again`; None: there is none.
    loans
        The values that both sides have; None: there are none.
    places
        Is given each list, dict, set and array, by the place of its tag.
    heard
        Is called with each text, and each value of the standard library or of a package.
    limited
        Whether it may have only so many items, and entries of sets and dicts.

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
        return _Reader(data, other, asked, loans, places, heard, limited).value()
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
        asked: Callable[[int, int], Any] | None,
        loans: Loans | None,
        places: Places | None,
        heard: Callable[[Any], None] | None,
        limited: bool,
    ) -> None:
        self._data, self._at, self.other, self._asked = data, 0, other, asked
        self._heard = heard
        self._places = Places() if places is None else places
        self._loans = loans
        self._lent: dict[int, Any] = {}  # the loans that are being read, by place
        self._hashed, self._items_left = MAX_HASHED, MAX_ITEMS
        if not limited:
            self._hashed = self._items_left = sys.maxsize
        # If entries are not limited, only the sender's own time is at risk.
        self._compared = MAX_COMPARED if limited else None

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
        # This bounds the recursion, and hashing.
        if depth > MAX_DEPTH + DESCRIPTION:
            raise MalformedError("the value is too deep")
        at = self._at
        tag = self._data[at : at + 1]
        read = _READERS.get(tag)
        if read is not None:
            self._at = at + 1
            return read(self, depth)
        if tag != b"m" or self._loans is None:
            raise MalformedError(f"tag={tag!r}" if tag else "the value is cut off")
        # Here, as one more function for each level would exceed Python's recursion limit.
        self._at = at + 1
        number, changed = self._plain_number(), self.take(1) == b"\1"
        at = self._at
        tag = self._data[at : at + 1]
        if tag not in PLACED and tag != b"a":
            raise MalformedError("a loan that does not change")
        if (mine := self._loans.find(number)) is not None:
            self._lent[at] = mine
        self._at = at + 1
        found = _READERS[tag](self, depth)
        found = self._places[at] = self._loans.take(number, found, changed=changed)
        return found

    def items(self, depth: int) -> Iterator[Any]:
        return map(self.item, itertools.repeat(depth + 1, self._number()))

    def read_text(self, depth: int) -> str:
        text = self.sized().decode("utf-8", "surrogatepass")
        if self._heard is not None:
            self._heard(text)
        return text

    def read_list(self, depth: int) -> list[Any]:
        made: list[Any] = []
        self._places[self._at - 1] = made  # before its items, of which one may be this list
        made += self.items(depth)
        return made

    def read_set(self, depth: int) -> set[Any]:
        at = self._at - 1
        made = self._places[at] = set(self.entries(depth))
        return made

    def read_dict(self, depth: int) -> dict[Any, Any]:
        made: dict[Any, Any] = {}
        self._places[self._at - 1] = made
        entries = self.entries(depth, each=2)
        made.update(zip(entries[::2], entries[1::2], strict=True))
        return made

    def read_again(self, depth: int) -> Any:
        if self.other is None:  # a small one could take the host endless time
            raise MalformedError("a list, set or dict that is at two places")
        place = self._plain_number()
        return self._lent[place] if place in self._lent else self._places[place]

    def read_asked(self, depth: int) -> Any:
        if self._asked is None:
            raise MalformedError("an item of a question")
        return self._asked(self._plain_number(), self._plain_number())

    def read_known(self, depth: int) -> Any:
        at = self._at - 1
        name = self.sized().decode("ascii")
        if name in library_values.JUDGED and self.other is None:
            raise MalformedError("a named tuple, whose class would be made here, or a frame")
        build = library_values.BUILDERS[name]
        parts = self.item(depth + 1)
        if type(parts) is not tuple:
            raise MalformedError("parts that are no tuple")
        made = build(*parts)
        if self._heard is not None:
            self._heard(made)
        if is_placed(made):
            self._places[at] = made
        return made

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

    def _plain_number(self) -> int:
        return int.from_bytes(self.take(4), "little")

    def _number(self, each: int = 1) -> int:
        """The number of the items, or entries of `each` items, that come next."""
        n = int.from_bytes(self.take(4), "little")
        self._items_left -= n * each
        if n * each > len(self._data) or self._items_left < 0:
            raise MalformedError("too many items")
        return n


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
    b"s": _Reader.read_text,
    b"b": lambda reader, depth: reader.sized(),
    b"l": _Reader.read_list,
    b"t": lambda reader, depth: tuple(reader.items(depth)),
    b"S": _Reader.read_set,
    b"Z": lambda reader, depth: frozenset(reader.entries(depth)),
    b"d": _Reader.read_dict,
    b"r": _Reader.read_again,
    b"a": _Reader.read_asked,
    b"k": _Reader.read_known,
    b"o": _read_opaque,
    b"h": _read_handle,
}
