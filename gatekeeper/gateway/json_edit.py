"""Edits of a JSON text that keep every other byte as it was written.

Parsing and serialising would change numbers, escapes, white space and repeated names. Here the
values to change are found by their paths; everything else is read once, by the C scanner of the
standard library.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

__all__ = ["EACH", "Edit", "Paths", "edited", "first_items", "with_members"]

Edit = Callable[[str], str | None]
"""The text of a value -> what replaces it; None keeps it."""

Paths = Mapping[str, Any]
"""From the name of a member to the edit of its value, or to the paths inside it. The name `EACH`
stands for every item of an array."""

EACH = "*"

_NO_PATHS: Paths = {}
_decode = json.JSONDecoder().raw_decode
_skip_space = re.compile(r"[ \t\n\r]*").match


def edited(text: str, paths: Paths) -> tuple[Any, str]:
    """The value of a JSON text as it is written, and the text after the edits.

    Raises
    ------
    ValueError
        If the text is not JSON.
    """
    scan = _Scan(text)
    value, end = scan.value(_space(text, 0), paths)
    if _space(text, end) != len(text):
        raise ValueError(f"after character {end} follows {text[end : end + 20]!r}")
    return value, scan.edited()


def with_members(
    body: bytes, value: Mapping[str, Any], *, drop: str, put: Mapping[str, Any]
) -> bytes:
    """A JSON object without a member and with others, which replace those of their names.

    Parameters
    ----------
    body, value
        The object, as text and as a value.
    drop
        A name: every member of this name is removed, also repeated ones.
    put
        Members; they come last.
    """
    if value and drop not in value and value.keys().isdisjoint(put):
        return body[: body.rindex(b"}")] + b", " + msgspec.json.encode(put)[1:]
    kept = [written for name, written in _members(body.decode()) if name not in {drop, *put}]
    kept += [f"{json.dumps(name)}: {json.dumps(new)}" for name, new in put.items()]
    return ("{" + ", ".join(kept) + "}").encode()


def _members(text: str) -> list[tuple[str, str]]:
    """The members of an object: each name, and the member as it is written, `"name": value`."""
    written: list[tuple[str, str]] = []

    def read(name: str, key: int, at: int) -> tuple[Any, int]:
        value, end = _raw(text, at)
        written.append((name, text[key:end]))
        return value, end

    _object(text, _space(text, 0), read)
    return written


class _Scan:
    """One pass over a text, which collects the edits in order."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._edits: list[tuple[int, int, str]] = []

    def value(self, at: int, paths: Paths | Edit) -> tuple[Any, int]:
        text = self._text
        if callable(paths):
            value, end = _raw(text, at)
            new = paths(text[at:end])
            if new is not None:
                self._edits.append((at, end, new))
            return value, end
        first = text[at : at + 1] if paths else ""
        if first == "{":
            return _object(
                text, at, lambda name, key, at: self.value(at, paths.get(name, _NO_PATHS))
            )
        if first == "[" and EACH in paths:
            return _array(text, at, lambda at: self.value(at, paths[EACH]))
        return _raw(text, at)

    def edited(self) -> str:
        if not self._edits:
            return self._text
        pieces, done = [], 0
        for start, end, new in self._edits:
            pieces += [self._text[done:start], new]
            done = end
        return "".join([*pieces, self._text[done:]])


def first_items(text: str, count: int) -> str | None:
    """An `Edit` with one more parameter: only the first items of an array."""
    if text[0] != "[":
        return None
    ends: list[int] = []

    def read(at: int) -> tuple[Any, int]:
        value, end = _raw(text, at)
        ends.append(end)
        return value, end

    _array(text, 0, read)
    if len(ends) <= count:
        return None
    return text[: ends[count - 1]] + "]" if count else "[]"


def _object(
    text: str, at: int, read: Callable[[str, int, int], tuple[Any, int]]
) -> tuple[dict[str, Any], int]:
    """The object at this place; `read` gets a member's name, and where it and its value begin."""
    found: dict[str, Any] = {}
    at = _space(text, at + 1)
    if text[at : at + 1] == "}":
        return found, at + 1
    while True:
        key = _expect(text, at, '"')
        name, at = _raw(text, key)
        at = _space(text, _expect(text, _space(text, at), ":") + 1)
        found[name], at = read(name, key, at)
        at = _space(text, at)
        if text[at : at + 1] == "}":
            return found, at + 1
        at = _space(text, _expect(text, at, ",") + 1)


def _array(text: str, at: int, read: Callable[[int], tuple[Any, int]]) -> tuple[list[Any], int]:
    found: list[Any] = []
    at = _space(text, at + 1)
    if text[at : at + 1] == "]":
        return found, at + 1
    while True:
        value, at = read(at)
        found.append(value)
        at = _space(text, at)
        if text[at : at + 1] == "]":
            return found, at + 1
        at = _space(text, _expect(text, at, ",") + 1)


def _raw(text: str, at: int) -> tuple[Any, int]:
    try:
        return _decode(text, at)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _expect(text: str, at: int, character: str) -> int:
    if text[at : at + 1] != character:
        raise ValueError(f"character {at}: {character!r} is needed")
    return at


def _space(text: str, at: int) -> int:
    found = _skip_space(text, at)
    assert found is not None  # no space is a match, too
    return found.end()
