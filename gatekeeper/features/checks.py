"""Cheap checks of an output's text: its length, and whether it has an answer."""

from __future__ import annotations

from typing import Any

from gatekeeper import costs
from gatekeeper.maths.extract import extract
from gatekeeper.types import Generation

__all__ = ["has_answer", "output_length"]


def output_length(generation: Generation, task: Any = None) -> float:
    """The length of the output.

    Returns
    -------
    float
        Tokens, or an estimate from the characters; at least 1.
    """
    return costs.output_length(generation, task)


def has_answer(generation: Generation, task: Any = None) -> float:
    """Whether the output has a final answer to a question of maths.

    Returns
    -------
    float
        1 if it has, else 0.
    """
    return float(extract(generation.text) is not None)
