"""The lists, dicts, sets and arrays of a question, each known by its place in the message.

An answer refers to them by these places, so that what is one object for the candidate is one for
the tests: `clone(rows)[0] is rows[0]`. So are changes sent: the new contents of each one.
"""

from __future__ import annotations

import collections
import itertools
import sys
from collections.abc import Mapping
from typing import Any

from gatekeeper.sandbox.inside.operations import MUTABLE

__all__ = ["Places", "contents", "differ", "is_placed", "outside", "refill", "uses"]

_KINDS = frozenset(MUTABLE)
_LISTED = frozenset({list, set, collections.deque})


class Places(dict[int, Any]):
    """The items of a message by their places, as `encode` and `decode` find them.

    Parameters
    ----------
    known
        How items are written that the reader has already, by their ids (`codec.again`).
    """

    def __init__(self, known: Mapping[int, bytes] | None = None) -> None:
        super().__init__()
        self.known = known or {}


def is_placed(item: object) -> bool:
    """Whether an item is mutable data, which has a place."""
    kind = type(item)
    return kind in _KINDS or (kind.__module__ == "numpy" and kind.__name__ == "ndarray")


def contents(item: Any) -> Any:
    """The present contents of such an item, from which `refill` makes it again."""
    kind = type(item)
    if kind in _LISTED:
        return tuple(item)
    if issubclass(kind, dict):
        return tuple(itertools.chain.from_iterable(item.items()))
    return bytes(item) if kind is bytearray else item.copy()


def differ(before: Any, now: Any) -> bool:
    """Whether two contents of one item differ: other objects, in it, not changed ones."""
    if type(before) is tuple:
        return len(before) != len(now) or any(a is not b for a, b in zip(before, now, strict=True))
    return bool(before != now) if type(before) is bytes else before.tobytes() != now.tobytes()


def refill(item: Any, found: Any) -> None:
    """Give an item these contents, which may come from a hostile process."""
    kind = type(item)
    if kind in (list, bytearray):
        item[:] = found
    elif issubclass(kind, dict):
        item.clear()
        for key, value in zip(found[::2], found[1::2], strict=True):
            item[key] = value
    elif kind in _LISTED:
        item.clear()
        (item.update if kind is set else item.extend)(found)
    else:
        item[...] = found


def uses(places: Mapping[int, Any]) -> dict[int, int]:
    """How many references there are to each item."""
    return {place: sys.getrefcount(item) for place, item in places.items()}


def outside(places: Mapping[int, Any], other: Any) -> dict[int, Any]:
    """The items that are no part of `other`."""
    inside, todo = set(), [other]
    while todo:
        item = todo.pop()
        if id(item) not in inside and (type(item) is tuple or type(item) in _KINDS):
            inside.add(id(item))
            todo += contents(item) if type(item) not in (tuple, bytearray) else item
    return {place: item for place, item in places.items() if id(item) not in inside}
