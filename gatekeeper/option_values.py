"""Numbers of options, for argparse's `type`: those of the commands and of the plug-ins."""

from __future__ import annotations

import argparse
from collections.abc import Callable

__all__ = ["number", "whole"]


def whole(least: int = 1, most: int | None = None) -> Callable[[str], int]:
    """A parser of whole numbers of at least `least`, and of at most `most`."""
    wanted = f"of at least {least}" if most is None else f"from {least} to {most}"

    def parse(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            value = least - 1
        if value < least or (most is not None and value > most):
            raise argparse.ArgumentTypeError(f"{text!r}: give a whole number {wanted}")
        return value

    return parse


def number(interval: str) -> Callable[[str], float]:
    """A parser of the numbers in an interval such as "(0, 1]"."""
    low, high = (float(end) for end in interval[1:-1].split(","))

    def parse(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = float("nan")
        is_above = value > low or (interval[0] == "[" and value == low)
        is_below = value < high or (interval[-1] == "]" and value == high)
        if not (is_above and is_below):
            example = "such as 0.2" if high == 1 else "such as 1"
            raise argparse.ArgumentTypeError(f"{text!r}: give a number in {interval}, {example}")
        return value

    return parse
