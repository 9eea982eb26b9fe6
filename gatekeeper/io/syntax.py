"""Parsing of Python code, safe with several threads; its indentation, and the names it uses."""

from __future__ import annotations

import ast
import os.path
import symtable
import threading
from collections.abc import Iterable

__all__ = ["dedent", "free_names", "parse_python"]

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


def dedent(source: str) -> str:
    """Python code without the indentation that all of its lines share.

    Unlike `textwrap.dedent`, it keeps the blanks of blank lines, which may be within a text.
    """
    lines = source.split("\n")
    full = [line for line in lines if line.strip()]
    margins = [line[: len(line) - len(line.lstrip(" \t"))] for line in full]
    margin = os.path.commonprefix(margins)  # noqa: RUF071 - of texts, not of paths
    return "\n".join(line.removeprefix(margin) for line in lines) if margin else source


def free_names(sources: Iterable[str]) -> set[str]:
    """Global names that programs use and none of them binds, built-in names among them.

    Parameters
    ----------
    sources
        Programs that run in one namespace. An import of `*` binds nothing here.

    Raises
    ------
    SyntaxError, ValueError, RecursionError, MemoryError
        As `symtable.symtable`.
    """
    used: set[str] = set()
    bound: set[str] = {"__name__", "__file__", "__doc__", "__builtins__"}
    for source in sources:
        tables = [symtable.symtable(source, "program.py", "exec")]
        top = tables[0]
        while tables:
            table = tables.pop()
            tables += table.get_children()
            for symbol in table.get_symbols():
                if table is top or symbol.is_global():
                    if symbol.is_assigned() or symbol.is_imported():
                        bound.add(symbol.get_name())
                    elif symbol.is_referenced():
                        used.add(symbol.get_name())
    return used - bound
