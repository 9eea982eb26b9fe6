"""The texts that came from the candidate, to be found in code that a library writes of them.

A library may keep such a text in an object, as `sympy.Symbol` does, and write it into code later.
What can do anything as code has one of a few characters; a text is found by a few characters around
such a one, as the tests may have stripped, split or formatted it.
"""

from __future__ import annotations

import re

__all__ = ["Heard"]

_DOES = re.compile(r"[(\[{=:;\n]")  # calls, subscripts, assignments, statements
_LENGTH = 8  # of a part by which a text is found: shorter ones do little, and are in much code
_MOST = 1 << 20  # characters that are kept


class Heard:
    """The texts of a candidate that could be code."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._room = _MOST

    def add(self, text: str) -> None:
        if len(text) >= _LENGTH and self._room >= 0 and _DOES.search(text):
            self._room -= len(text)
            self._texts.append(text)

    def are_in(self, source: str) -> bool:
        """Whether a program may have a part of one of the texts; always, if there are too many."""
        if self._room < 0:
            return True
        last = len(source) - _LENGTH
        parts = {
            source[start : start + _LENGTH]
            for found in (_DOES.finditer(source) if self._texts else ())
            for start in range(max(found.start() - _LENGTH + 1, 0), min(found.start(), last) + 1)
        }
        return any(part in text for part in parts for text in self._texts)
