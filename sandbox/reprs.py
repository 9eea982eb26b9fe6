"""Short texts of arbitrary values, for messages."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

__all__ = ["last_line", "short_repr"]


def short_repr(value: object, limit: int = 200) -> str:
    """The `repr` of a value in at most `limit` characters; never raises."""
    try:
        text = repr(_start(value, limit, [limit]))
    except (ValueError, RecursionError, MemoryError):  # an int of more than 4,300 digits
        text = f"<{type(value).__name__} too long to show>"
    return text if len(text) <= limit else text[: limit - 1] + "…"


# Types that may have hundreds of thousands of items -> how to make one of the first items.
_LONG: dict[type, Callable[[Any, list[Any]], Any]] = {
    list: lambda value, items: items,
    tuple: lambda value, items: tuple(items),
    deque: lambda value, items: deque(items, value.maxlen),
    type({}.values()): lambda value, items: dict(enumerate(items)).values(),
}


def _start(value: Any, limit: int, room: list[int]) -> Any:
    """The start of a value: each of its items takes at least one character of the `room`."""
    kind = type(value)
    if kind in (str, bytes):
        return value[: limit + 1]
    if kind not in _LONG:
        return value
    items: list[Any] = []
    for item in value:
        if room[0] < 0:
            break
        room[0] -= 1
        items.append(_start(item, limit, room))
    return _LONG[kind](value, items)


def last_line(text: str | bytes) -> str:
    """The last line of an output, in which a program or the engine gives the reason."""
    if isinstance(text, bytes):
        text = text.decode(errors="replace")
    if "no space left" in text.lower():
        return "the disk is full (no space left on device)"
    lines = text.strip().splitlines()
    return lines[-1].strip() if lines else "no reason given"
