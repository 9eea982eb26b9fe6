"""Checks of arguments that many functions share."""

from __future__ import annotations

import os
from collections.abc import Iterable
from math import inf, isfinite
from operator import index
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from gatekeeper.errors import BadInputError
from gatekeeper.wording import choose

__all__ = [
    "as_path",
    "check_base_url",
    "check_beta",
    "check_choice",
    "check_count",
    "check_finite",
    "check_flag",
    "check_positive",
    "check_printable",
    "check_seconds",
    "is_key",
    "is_number",
]

MOST_SECONDS = 1e9  # for which a lock can wait


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


def check_choice(name: str, value: object, choices: Iterable[str]) -> None:
    """Check a word.

    Raises
    ------
    BadInputError
        It is none of the choices; the message has them, and the most similar one.
    """
    known = list(choices)
    if not (isinstance(value, str) and value in known):
        raise BadInputError(f"{name}={value!r:.80}: {choose(value, known)}")


def check_count(name: str, value: Any, *, least: int = 1, most: int | None = None) -> int:
    """Return a count as an int; NumPy's whole numbers are counts, too.

    Raises
    ------
    BadInputError
        It is not a whole number from `least` to `most`.
    """
    try:
        count = least - 1 if isinstance(value, bool) else index(value)
    except TypeError:
        count = least - 1
    if count < least or (most is not None and count > most):
        wanted = f"of at least {least}" if most is None else f"from {least} to {most}"
        raise BadInputError(f"{name}={value!r:.80}: must be a whole number {wanted}")
    return count


def check_finite(name: str, value: Any, *, least: float = -inf) -> float:
    """Return a number as a float.

    Raises
    ------
    BadInputError
        It is not a finite number of at least `least`; nothing is above or below NaN.
    """
    if not (is_number(value) and isfinite(value) and value >= least):
        wanted = "" if least == -inf else f" of at least {least:g}"
        raise BadInputError(f"{name}={value!r:.80}: give a finite number{wanted}")
    return float(value)


def check_flag(name: str, value: object) -> bool:
    """Return a truth value.

    Raises
    ------
    BadInputError
        It is neither True nor False: any other word, "no" too, would count as true.
    """
    if not isinstance(value, bool | np.bool_):
        raise BadInputError(f"{name}={value!r:.80}: give True or False")
    return bool(value)


def check_positive(name: str, value: Any, *, most: float) -> float:
    """Return a number as a float.

    Raises
    ------
    BadInputError
        It is not a number above 0 and up to `most`.
    """
    if not (is_number(value) and 0.0 < value <= most):
        raise BadInputError(f"{name}={value!r:.80}: give a number above 0, at most {most:g}")
    return float(value)


def check_seconds(name: str, value: Any) -> float:
    """Return a duration as a float.

    Raises
    ------
    BadInputError
        It is not a number of seconds, from 0 to `MOST_SECONDS`.
    """
    if not (is_number(value) and 0.0 <= value <= MOST_SECONDS):
        raise BadInputError(
            f"{name}={value!r:.80}: give a number of seconds from 0 to {MOST_SECONDS:g}"
        )
    return float(value)


def check_printable(name: str, value: object) -> str:
    """Return a text, such as a name that other programs show.

    Raises
    ------
    BadInputError
        It is no text, has nothing to show, or has a character that cannot be shown.
    """
    if not (isinstance(value, str) and value.strip() and value.isprintable()):
        raise BadInputError(f"{name}={value!r:.80}: give a text of printable characters")
    return value


def check_base_url(name: str, value: Any) -> str:
    """Return the base URL of an API, which messages may show: it has no user and no query.

    Raises
    ------
    BadInputError
        It cannot be one. The message does not show it, as any part may be a password or a key.
    """
    if why := _why_no_base_url(value):
        raise BadInputError(
            f"{name} (not shown, as it may have a password or a key) {why}: give the base URL of "
            "an API, such as http://127.0.0.1:8000/v1"
        )
    return str(value)


def _why_no_base_url(value: object) -> str:
    """Empty if it can be the base URL of an API."""
    if not isinstance(value, str):
        return "is not a text"
    if not value.isprintable() or " " in value:
        return "has a space or a character that cannot be shown"
    try:
        url = urlsplit(value)
        port = url.port
    except ValueError:
        return "has a host or a port that cannot be read"
    if url.scheme not in ("http", "https"):
        return "does not begin with http:// or https://"
    if "@" in url.netloc:
        return "has a user or a password, and keys have their own setting"
    if not url.hostname or port == 0:
        return "has no host or the port 0"
    return "has a query or a fragment" if url.query or url.fragment else ""


def is_key(value: object) -> bool:
    """Whether a header can carry it as a key."""
    return isinstance(value, str) and value.isascii() and value.isprintable() and " " not in value


def is_number(value: object) -> bool:
    """Whether it is an int or a float, NumPy's too, and not a bool."""
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
