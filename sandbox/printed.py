"""Compares a candidate's output with the expected output."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation

__all__ = ["same_output"]


def same_output(printed: str, expected: str) -> bool:
    """Whether the lines are equal, apart from outer blanks; numbers by value ("1.0" is "1")."""
    lines, wanted = (
        [line.strip() for line in text.strip().splitlines()] for text in (printed, expected)
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
    try:
        numbers = [Decimal(word) for word in line.split()]
    except InvalidOperation:
        return None
    return numbers if all(number.is_finite() for number in numbers) else None
