"""Compares a candidate's output with the expected output."""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation

__all__ = ["same_output"]

# Not what `Decimal` also takes: "0101", which is a text of digits, "1_000", "٣", "nan".
_NUMBER = re.compile(r"[-+]?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")


def same_output(printed: str, expected: str) -> bool:
    """Whether the lines are equal, apart from outer blanks; numbers by value ("1.0" is "1")."""
    # Not `splitlines`, which takes form feeds and other separators for the ends of lines, too.
    lines, wanted = (
        [line.strip() for line in text.strip().split("\n")] for text in (printed, expected)
    )
    if lines == wanted:
        return True
    if len(lines) != len(wanted):
        return False
    # At most as many words of the candidate become Decimals as the expected line has.
    return all(
        len(a.split(None, len(b.split()))) == len(b.split())
        and _numbers(a) == _numbers(b) is not None
        for a, b in zip(lines, wanted, strict=True)
        if a != b
    )


def _numbers(line: str) -> list[Decimal] | None:
    words = line.split()
    if not all(map(_NUMBER.fullmatch, words)):
        return None
    try:
        return [Decimal(word) for word in words]
    except InvalidOperation:  # an exponent of too many digits
        return None
