"""What is within data, at any depth: in lists, tuples, dicts, sets and views of dicts."""

from __future__ import annotations

import collections
from collections.abc import Iterator, Sequence
from typing import Any

from gatekeeper.sandbox.inside.kinds import is_stand_in
from gatekeeper.sandbox.inside.places import held, is_placed, objects

__all__ = ["PLAIN", "inside", "parts"]

PLAIN = frozenset({int, str, float, bool, bytes, bytearray, complex, type(None)})
_LISTS = frozenset({list, tuple, set, frozenset, collections.deque})


def parts(item: Any) -> Iterator[Any]:
    """An item, and what is within it; no plain values."""
    if type(item) in PLAIN:
        return
    todo, seen = [item], set[int]()
    while todo:
        part = todo.pop()
        if id(part) in seen:
            continue
        seen.add(id(part))
        yield part
        found = inside(part) or ()
        if not PLAIN.issuperset(map(type, found)):
            todo += [one for one in found if type(one) not in PLAIN]


def inside(item: Any) -> Sequence[Any] | None:
    """What an item holds, if it is data of this kind; else None."""
    kind = type(item)
    if kind in _LISTS:
        return tuple(item)
    if kind is dict:
        return (*item, *item.values())
    if is_stand_in(item):
        return None
    if is_placed(item):
        return tuple(objects(item))
    found = held(item)
    return None if found is None else tuple(found)
