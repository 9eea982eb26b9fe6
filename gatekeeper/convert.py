"""From what a provider returned to a `Generation`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib import import_module
from typing import Any

from gatekeeper.errors import BadInputError
from gatekeeper.types import Generation

__all__ = ["as_generation"]

# Root package of a response's class -> the module whose `generation_of` reads it, loaded on
# first use only: importing gatekeeper imports no provider.
_READERS = {"openai": "gatekeeper.adapters.openai"}


def as_generation(response: object, *, id: str | None = None) -> Generation:
    """`response` as a Generation: one already, an OpenAI chat completion, or its JSON as a dict.

    `id` names the output where the response does not, or not uniquely. Raises BadInputError for
    anything else.
    """
    if isinstance(response, Generation):
        generation = response
    else:
        if isinstance(response, Mapping) and "choices" in response:
            root = "openai"
        else:
            root = type(response).__module__.partition(".")[0]
        if root not in _READERS:
            raise BadInputError(
                f"response of type {type(response).__name__!r} is not understood: pass a "
                "gatekeeper.Generation or an OpenAI chat completion"
            )
        read: Callable[[Any], Generation] = import_module(_READERS[root]).generation_of
        generation = read(response)
    if id is not None:
        generation = replace(generation, id=id)
    try:
        named = bool(generation.id) and bool(generation.id.encode())
    except (AttributeError, UnicodeEncodeError):
        named = False
    if not named:
        raise BadInputError(
            f"id={generation.id!r}: every output needs an id of its own, a non-empty string"
        )
    return generation
