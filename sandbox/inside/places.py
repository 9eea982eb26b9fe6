"""The lists, dicts, sets and arrays of a question, each known by its place in the message.

An answer refers to them by these places, so that what is one object for the candidate is one for
the tests: `clone(rows)[0] is rows[0]`. So are changes sent: the new contents of each one.
"""

from __future__ import annotations

import collections
import itertools
import operator
import sys
from collections.abc import Collection, Mapping
from typing import Any

from gatekeeper.sandbox.inside.operations import MUTABLE

__all__ = ["Places", "contents", "differ", "is_placed", "refill"]

_KINDS = frozenset(MUTABLE)
_LISTED = frozenset({list, set, collections.deque})


class Places(dict[int, Any]):
    """The items of a message by their places, as `encode` and `decode` find them.

    Parameters
    ----------
    known
        How items are written that the reader has already, by their ids (`codec.again`).
    loans
        The numbers of loans (`loans.py`) by the ids of their values.
    changed
        The numbers of those whose contents the reader does not know.

    Attributes
    ----------
    tuples
        Those of the message that have such items in them; of a decoded message.
    """

    def __init__(
        self,
        known: Mapping[int, bytes] | None = None,
        loans: Mapping[int, int] | None = None,
        changed: Collection[int] = (),
    ) -> None:
        super().__init__()
        self.known, self.loans, self.changed = known or {}, loans or {}, changed
        self.tuples: list[tuple[Any, ...]] = []

    def remove(self, ids: Collection[int]) -> None:
        """Leave out the items that have one of these ids."""
        for place in [place for place, item in self.items() if id(item) in ids]:
            del self[place]

    def uses(self) -> dict[int, int]:
        """How many references there are to each item, and to each of the tuples; by id."""
        return {id(item): sys.getrefcount(item) for item in (*self.values(), *self.tuples)}


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
        return len(before) != len(now) or not all(map(operator.is_, before, now))
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
