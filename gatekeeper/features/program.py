"""Cheap checks of an output's program, for tasks of kind "code". None of it is executed."""

from __future__ import annotations

import ast
import builtins
import sys
from typing import Any

from gatekeeper.errors import BadInputError
from gatekeeper.io.syntax import free_names, parse_python
from gatekeeper.sandbox.reading import imported
from gatekeeper.sandbox.suite import Suite, read_suite
from gatekeeper.types import Generation

__all__ = ["foreign_imports", "parses", "undefined_names"]


_NOT_PYTHON = (SyntaxError, ValueError, RecursionError, MemoryError)


def parses(generation: Generation, task: Any = None) -> float:
    """Whether the program is Python by its syntax.

    Returns
    -------
    float
        1 if it is, else 0.
    """
    try:
        return float(bool(parse_python(_suite(task).candidate(generation.text)).body))
    except _NOT_PYTHON:
        return 0.0


def undefined_names(generation: Generation, task: Any = None) -> float | None:
    """How many names the program or its tests use that nothing defines.

    Such as `math` without its import, a helper that was left out, or the tested function if the
    program gives it another name. What the task's prompt and setup code provide is defined.

    Returns
    -------
    float or None
        The number of names. None if the program is not Python, or imports `*`.
    """
    suite = _suite(task)
    program = suite.candidate(generation.text)
    tested = [*suite.reading.theirs, *(test.call for test in suite.literal)]
    try:
        nodes = ast.walk(parse_python(program))
        if any(isinstance(node, ast.alias) and node.name == "*" for node in nodes):
            return None
        names = free_names([suite.imports, program, *tested])
    except _NOT_PYTHON:
        return None
    return float(sum(not hasattr(builtins, name) for name in names))


def foreign_imports(generation: Generation, task: Any = None) -> float | None:
    """How many modules the program imports that are not of the standard library.

    A model may invent a package, and a sandbox may lack one. Imports in a `try` are not counted.

    Returns
    -------
    float or None
        The number of top-level modules. None if the program is not Python.
    """
    try:
        modules = set(imported(parse_python(_suite(task).candidate(generation.text))))
    except _NOT_PYTHON:
        return None
    return float(len(modules - sys.stdlib_module_names))


def _suite(task: Any) -> Suite:
    """The tests of the task; an empty suite if it has none that can be read."""
    try:
        return read_suite("", task)
    except BadInputError:
        return Suite()
