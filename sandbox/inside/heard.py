"""The texts that came from the candidate, to be found in code that a library writes of them.

A library may keep such a text in an object, as `sympy.Symbol` does, and write it into code later.
What can do anything as code has one of a few characters; a text is found by a few characters around
such a one, as the tests may have stripped, split or formatted it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

__all__ = ["Heard"]

_DOES = re.compile(r"[(\[{=:;\n]")  # calls, subscripts, assignments, statements
_LENGTH = 8  # of a part by which a text is found: shorter ones do little, and are in much code
_MOST = 1 << 18  # characters that are kept: 0.2 s and 40 MB at most


class Heard:
    """The texts of a candidate that could be code."""

    def __init__(self) -> None:
        self._texts: list[str] = []  # of which `_parts` has no part yet: most runs ask for none
        self._parts: set[str] = set()
        self._room = _MOST

    def add(self, text: str) -> None:
        if len(text) >= _LENGTH and self._room >= 0 and _DOES.search(text):
            self._room -= len(text)
            self._texts.append(text)

    def are_in(self, source: str) -> bool:
        """Whether a program may have a part of one of the texts; always, if there are too many."""
        if self._room < 0:
            return True
        while self._texts:
            self._parts.update(_parts(self._texts.pop()))
        return bool(self._parts) and not self._parts.isdisjoint(_parts(source))


def _parts(text: str) -> Iterator[str]:
    """Each part of `_LENGTH` characters with one that does something."""
    start, last = 0, len(text) - _LENGTH
    for found in _DOES.finditer(text):
        at = found.start()
        for first in range(max(start, at - _LENGTH + 1), min(at, last) + 1):
            yield text[first : first + _LENGTH]
        start = at + 1
