"""Checks of arguments that are objects of these types."""

from __future__ import annotations

from gatekeeper.errors import BadInputError
from gatekeeper.types.generation import Generation

__all__ = ["check_generation"]


def check_generation(value: object) -> Generation:
    """Return an output.

    Raises
    ------
    BadInputError
        It is no Generation, such as a text alone.
    """
    if not isinstance(value, Generation):
        raise BadInputError(f"generation={value!r:.80}: give a Generation")
    return value
