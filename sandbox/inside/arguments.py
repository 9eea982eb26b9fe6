"""The arguments of a call: by the names of a function's parameters, as they were, and compared."""

from __future__ import annotations

import collections
import inspect
from collections.abc import Mapping, Sequence
from typing import Any

from gatekeeper.sandbox.inside.kinds import is_stand_in
from gatekeeper.sandbox.inside.places import is_placed

__all__ = ["bound", "copied", "same"]


def bound(function: Any, given: Sequence[Any], named: Mapping[str, Any]) -> Any:
    """The arguments of a call by their names; None if the function does not take them."""
    try:
        found = inspect.signature(function).bind(*given, **named)
    except (TypeError, ValueError):
        return None
    found.apply_defaults()
    return found.arguments


def copied(item: Any) -> Any:
    """What an item is now: its kind and a copy of its contents, where these may change."""
    kind = type(item)
    if issubclass(kind, tuple):
        return tuple(map(copied, tuple.__iter__(item)))
    if not is_placed(item):
        return item
    if issubclass(kind, dict):
        return kind, {name: copied(value) for name, value in item.items()}
    if kind in (list, collections.deque):
        return kind, tuple(map(copied, item))
    if kind in (set, bytearray):
        return kind, item.copy()
    return kind, (item.shape, item.dtype, item.tobytes())


def same(one: Any, other: Any) -> bool:
    """Whether two arguments are one, or equal data."""
    if one is other:
        return True
    if type(one) is not type(other) or is_stand_in(one):
        return False
    if type(one) is dict:
        return len(one) == len(other) and all(n in other and same(one[n], other[n]) for n in one)
    if type(one) is tuple:
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other) or (one != one and other != other)  # nan
