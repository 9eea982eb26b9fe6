"""Parsing of Python that may go on in several threads at once."""

from __future__ import annotations

import ast
import threading

__all__ = ["parse_python"]

_TRIES = 100
_parsing = threading.RLock()  # a finalizer may parse, too


def parse_python(source: str) -> ast.Module:
    """`ast.parse`, which CPython 3.11 may break off when another thread parses, too.

    There, the interpreter has one counter of depth for all threads: if another one parses while
    this one's tree is made, the count is wrong and SystemError is raised (CPython issue 106905).
    Calls of this function wait for each other; where other code parses, it is tried again.

    Raises
    ------
    SyntaxError, ValueError, RecursionError, MemoryError
        As `ast.parse`.
    """
    with _parsing:
        for _ in range(_TRIES):
            try:
                return ast.parse(source)
            except SystemError:
                continue
        return ast.parse(source)
