"""Cheap checks of an output's text, for tasks of kinds "code" and "math"."""

from __future__ import annotations

from typing import Any

from gatekeeper import costs
from gatekeeper.io.syntax import parse_python
from gatekeeper.maths.extract import extract
from gatekeeper.sandbox.extract import extract_code
from gatekeeper.types import Generation

__all__ = ["has_answer", "output_length", "parses"]


def output_length(generation: Generation, task: Any = None) -> float:
    """The length of the output.

    Returns
    -------
    float
        Tokens, or an estimate from the characters; at least 1.
    """
    return costs.output_length(generation, task)


def parses(generation: Generation, task: Any = None) -> float:
    """Whether the program in the output is Python by its syntax.

    Returns
    -------
    float
        1 if it is, else 0.
    """
    try:
        return float(bool(parse_python(extract_code(generation.text)).body))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return 0.0


def has_answer(generation: Generation, task: Any = None) -> float:
    """Whether the output has a final answer to a question of maths.

    Returns
    -------
    float
        1 if it has, else 0.
    """
    return float(extract(generation.text) is not None)
