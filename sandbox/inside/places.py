"""The lists, dicts, sets, arrays and frames of a question, each known by its place in the message.

An answer refers by these places to those that are no loans (`loans.py`), so that what is one object
for the candidate is one for the tests: `clone(rows)[0] is rows[0]`. So are changes sent: the new
contents of each one.
"""

from __future__ import annotations

import collections
import itertools
import operator
from collections.abc import Collection, Iterable, Mapping
from gc import get_referents
from typing import Any

from gatekeeper.sandbox.inside import pandas_values
from gatekeeper.sandbox.inside.operations import MUTABLE

__all__ = [
    "Places",
    "contents",
    "differ",
    "held",
    "is_placed",
    "is_view",
    "objects",
    "refill",
    "viewed",
]

_KINDS = frozenset(MUTABLE)
_LISTED = frozenset({list, set, collections.deque})
_KEYS = frozenset({str, int, bytes, bool, float})
_DICTS: tuple[Any, ...] = ({}, collections.OrderedDict())
_VIEWS = frozenset(type(v) for d in _DICTS for v in (d.keys(), d.values(), d.items()))


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
    shown
        The ids of the dicts of which the message has a view: the reader cannot change these.
    """

    def __init__(
        self,
        known: Mapping[int, bytes] | None = None,
        loans: Mapping[int, int] | None = None,
        changed: Collection[int] = (),
    ) -> None:
        super().__init__()
        self.known, self.changed = known or {}, changed
        self.loans = {} if loans is None else loans  # more may be lent meanwhile
        self.shown: set[int] = set()

    def refill(self, place: int, other: Any) -> None:
        """Give the item at a place the contents that the reader gave it."""
        if id(self[place]) not in self.shown:
            refill(self[place], other)


def is_placed(item: object) -> bool:
    """Whether an item is mutable data, which has a place."""
    kind = type(item)
    if kind in _KINDS or (kind.__module__ == "numpy" and kind.__name__ == "ndarray"):
        return True
    return pandas_values.is_frame(kind)


def objects(item: Any) -> Iterable[Any]:
    """What such an item holds that may be anything."""
    kind = type(item)
    if kind in _KINDS:
        return contents(item) if kind is not bytearray else ()
    if pandas_values.is_frame(kind):
        return pandas_values.objects(item)
    return tuple(item.flat) if item.dtype == object else ()


def viewed(view: Any) -> Any:
    """The dict of which a view shows the keys, values or items."""
    (found,) = get_referents(view)
    if is_placed(found):
        return found
    # The order of an OrderedDict is not that of the dict below it.
    ordered = issubclass(type(found), collections.OrderedDict)
    base: Any = collections.OrderedDict if ordered else dict
    return base(base.items(found))


def is_view(item: object) -> bool:
    return type(item) in _VIEWS


def held(item: Any) -> Iterable[Any] | None:
    """What a tuple, or a view of a dict, holds; None for anything else."""
    if issubclass(type(item), tuple):
        return tuple.__iter__(item)
    return get_referents(item) if is_view(item) else None


def contents(item: Any) -> Any:
    """The present contents of such an item, to compare them."""
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
    if type(before) is bytes:
        return bool(before != now)
    if pandas_values.is_frame(type(before)):
        return not pandas_values.same(before, now)
    return bool(before.tobytes() != now.tobytes())


def refill(item: Any, other: Any) -> None:
    """Give an item the contents of another of its kind, which may come from a hostile process.

    It asks no key for its hash: that may be a question to the other side. Nor does it disturb an
    iteration that the same change of the item itself would not.
    """
    kind = type(item)
    if type(other) is not kind or not is_placed(item):
        raise ValueError("the contents of something else")
    if kind in (list, bytearray):
        item[:] = other
    elif kind is collections.OrderedDict:
        item.clear()
        item.update(other)
    elif issubclass(kind, dict):
        if not _same_keys(item, other):
            item.clear()
        dict.update(item, other)
    elif kind is collections.deque and len(item) == len(other):
        for n, part in enumerate(other):
            item[n] = part
    elif kind in _LISTED:
        item.clear()
        (item.update if kind is set else item.extend)(other)
    elif pandas_values.is_frame(kind):
        pandas_values.refill(item, other)
    else:
        item[...] = other


def _same_keys(item: dict[Any, Any], other: dict[Any, Any]) -> bool:
    """Whether two dicts have the same texts and numbers as keys, in this order."""
    return len(item) == len(other) and all(
        type(a) is type(b) and type(a) in _KEYS and a == b for a, b in zip(item, other, strict=True)
    )
