"""Whole responses of OpenAI's shape: which of the three APIs they are from, and their outputs."""

from __future__ import annotations

from typing import Any

from gatekeeper.adapters.fields import field
from gatekeeper.adapters.openai.chat import chat_generations
from gatekeeper.adapters.openai.completions import completion_generations
from gatekeeper.adapters.openai.responses import response_generation
from gatekeeper.adapters.openai.stream import StreamReader, is_chunk
from gatekeeper.adapters.positions import Scope, check_scope
from gatekeeper.errors import BadInputError
from gatekeeper.io.providers import attribute
from gatekeeper.types import Generation

__all__ = ["generation_of", "generations_of", "read", "recognises"]


def recognises(response: Any) -> bool:
    """Whether the response is of one of the three APIs, or the list of one stream's chunks."""
    if isinstance(response, list):
        return any(map(is_chunk, response))
    return attribute(response, "choices") is not None or attribute(response, "output") is not None


def read(response: Any, *, scope: Scope, skip_forced: bool) -> list[Generation]:
    """Every output of a response, or of one streamed response from the list of its chunks.

    Parameters and errors are those of `gatekeeper.io.providers.Reader.read`.
    """
    if not isinstance(response, list):
        return generations_of(response, scope=scope, skip_forced=skip_forced)
    reader = StreamReader(strict=True, scope=scope, skip_forced=skip_forced)
    for chunk in response:
        reader.add(chunk)
    return reader.generations()


def generations_of(
    response: Any, *, scope: Scope = "content", skip_forced: bool = False
) -> list[Generation]:
    """One Generation per choice of a completion, one for a Response.

    Parameters
    ----------
    response : object or dict
        A chat completion, a text completion or a Response. A null log-probability becomes NaN.
    scope : {"content", "reasoning", "all"}
        Which tokens count where the response has reasoning beside the answer.
    skip_forced : bool
        Leave out the tokens that a grammar forced.

    Returns
    -------
    list of Generation
        In the order of the choices. Each of several has the response's id and its index: "id/0".

    Raises
    ------
    BadInputError
        If `response` is not a whole response: a chunk of a stream is read by `StreamReader`; or for
        another scope.
    """
    check_scope(scope)
    choices = field(response, "choices")
    if isinstance(choices, list):
        if all(field(choice, "message") is not None for choice in choices):
            return chat_generations(response, scope=scope, skip_forced=skip_forced)
        if all(isinstance(field(choice, "text"), str) for choice in choices):
            return completion_generations(response, skip_forced=skip_forced)
        raise BadInputError(
            f"response {field(response, 'id')!r} has a choice without message and without text; "
            "if it is a chunk of a stream, read it with StreamReader"
        )
    if isinstance(field(response, "output"), list):
        return [response_generation(response, scope=scope, skip_forced=skip_forced)]
    raise BadInputError(f"response={response!r:.80}: not a response of OpenAI's APIs")


def generation_of(
    response: Any, *, scope: Scope = "content", skip_forced: bool = False
) -> Generation:
    """The only output of a response, with the parameters of `generations_of`.

    Raises
    ------
    BadInputError
        If the response has no output or several.
    """
    found = generations_of(response, scope=scope, skip_forced=skip_forced)
    if len(found) != 1:
        raise BadInputError(
            f"response {field(response, 'id')!r} has {len(found)} choices: exactly one is needed, "
            "since each decision is about one output; generations_of returns all"
        )
    return found[0]
