"""Checks of the arguments that policies and analyses share."""

from __future__ import annotations

import os
from operator import index
from pathlib import Path
from typing import Any

from gatekeeper.errors import BadInputError

__all__ = ["as_path", "check_beta", "check_count", "is_number"]


def as_path(name: str, value: Any) -> Path:
    """Return a path of the file system.

    Raises
    ------
    BadInputError
        It is no path, such as an int, which `open` takes for a file descriptor; or no file can have
        this name.
    """
    text = os.fspath(value) if isinstance(value, str | os.PathLike) else None
    if not isinstance(text, str):
        raise BadInputError(f"{name}={value!r:.80}: give the path of a file, such as 'run.db'")
    try:
        usable = b"\0" not in os.fsencode(text)
    except UnicodeEncodeError:
        usable = False
    if not usable:
        raise BadInputError(
            f"{name}={text!r}: no file can have this name: give one without NUL and without "
            "halves of surrogate pairs, such as 'run.db'"
        )
    return Path(text)


def check_beta(beta: float) -> float:
    """Return beta, the share of the full verification cost to spend.

    Raises
    ------
    BadInputError
        It is not a number strictly between 0 and 1.
    """
    if not is_number(beta) or not 0.0 < beta < 1.0:
        raise BadInputError(
            f"beta={beta!r}: the share of the cost to spend must lie strictly between 0 and 1, "
            "for example 0.2"
        )
    return float(beta)


def check_count(name: str, value: Any, *, least: int = 1) -> int:
    """Return a count as an int; NumPy's whole numbers are counts, too.

    Raises
    ------
    BadInputError
        It is not a whole number of at least `least`.
    """
    is_whole = hasattr(value, "__index__") and not isinstance(value, bool)
    if not is_whole or (count := index(value)) < least:
        raise BadInputError(f"{name}={value!r}: must be a whole number of at least {least}")
    return count


def is_number(value: object) -> bool:
    """Whether it is an int or a float, and not a bool."""
    return isinstance(value, int | float) and not isinstance(value, bool)
