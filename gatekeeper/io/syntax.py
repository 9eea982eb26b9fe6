"""Parsing of Python code, safe with several threads."""

from __future__ import annotations

import ast
import threading

__all__ = ["parse_python"]

_TRIES = 100
_parsing = threading.RLock()  # re-entrant: a finalizer may parse, too


def parse_python(source: str) -> ast.Module:
    """`ast.parse`, which may fail on CPython 3.11 while another thread parses.

    There, the interpreter has one depth counter for all threads. If another thread parses while
    this one builds its tree, the count is wrong and SystemError is raised (CPython issue 106905).
    Calls of this function wait for each other; if other code parses meanwhile, it tries again.

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
