r"""A position in the tokens of an answer: what comes next, and whether a number stands before.

After the number of 5\text{ kg}, "kg" is a unit; in \text{kg is a unit} it is a word.
"""

from __future__ import annotations

import re

from gatekeeper.maths.vocabulary import SPACING, TEXT

__all__ = ["Cursor", "is_space"]

_SPACE = re.compile(rf"\s+|~|\\(?:{'|'.join(map(re.escape, sorted(SPACING)))})")


def is_space(token: str) -> bool:
    """Whether a token prints nothing but space."""
    return _SPACE.fullmatch(token) is not None


class Cursor:
    """`at` is the next token."""

    def __init__(self, tokens: list[str]) -> None:
        self.tokens = tokens
        self.at = 0

    def skip_space(self) -> None:
        while self.at < len(self.tokens) and self.tokens[self.at].isspace():
            self.at += 1

    def peek(self) -> str:
        self.skip_space()
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def raw_group(self) -> list[str]:
        """The tokens of the group that opens here, without its braces."""
        begin = self.at + 1
        depth = 0
        while self.at < len(self.tokens):
            depth += {"{": 1, "}": -1}.get(self.tokens[self.at], 0)
            self.at += 1
            if depth == 0:
                break
        return self.tokens[begin : self.at - (depth == 0)]

    def has_number(self) -> bool:
        """Whether there is a number before the next token, so that a letter may be its unit."""
        return any(token[0].isdigit() for token in self.tokens[: self.at])

    def follows_number(self, at: int) -> bool:
        r"""Whether a number may end here, perhaps with words: 5\text{kg}, but not \text{is}."""
        while at >= 0:
            token = self.tokens[at]
            begin = self.begin_of_group(at) if token == "}" else at
            if token == "}" and self.tokens[begin - 1][1:] in TEXT:
                at = begin - 2
            elif is_space(token):
                at -= 1
            else:
                return token == "}" or token[-1].isdigit()
        return False

    def begin_of_group(self, at: int) -> int:
        """Where the brace opens that closes here."""
        depth = 0
        while at > 0:
            depth += {"}": 1, "{": -1}.get(self.tokens[at], 0)
            if depth == 0:
                break
            at -= 1
        return at
