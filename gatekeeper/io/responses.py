"""Converts responses of providers to `Generation`s."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gatekeeper.arguments import check_flag
from gatekeeper.errors import BadInputError
from gatekeeper.io.providers import attribute, readers, response_names
from gatekeeper.limits import MAX_ID, is_id
from gatekeeper.types import Generation

if TYPE_CHECKING:
    from gatekeeper.adapters.positions import Scope

__all__ = ["as_generation", "as_generations"]


def as_generation(
    response: object, *, id: str | None = None, without_id: str | None = None
) -> Generation:
    """The only output of a response.

    Parameters
    ----------
    response : object
        As for `as_generations`.
    id : str or None
        In place of the response's id.
    without_id : str or None
        Names the output where neither `id` nor the response does.

    Raises
    ------
    BadInputError
        If the response is of no known shape, or has no output or several.
    """
    if isinstance(response, Generation):
        generation = response
    else:
        found = _read(response)
        if len(found) != 1:
            raise BadInputError(
                f"response {attribute(response, 'id') or id!r} has {len(found)} choices: exactly "
                "one is needed, since each decision is about one output; as_generations returns all"
            )
        generation = found[0]
    if id is None and not generation.id:
        id = without_id
    return _named(generation if id in (None, generation.id) else replace(generation, id=id))


def as_generations(
    response: object, *, id: str | None = None, scope: Scope = "content", skip_forced: bool = False
) -> list[Generation]:
    """Every output of a response, in order.

    Parameters
    ----------
    response : object
        A Generation; a response of OpenAI's chat completions, text completions or Responses API,
        of Anthropic, Gemini, Ollama or llama-server; the chunks or events of one streamed response,
        in a list; a RequestOutput of vLLM or a list of them; any of these as JSON; or arrays,
        {"logprob": […], "top1": […], "top2": […]}, with "text" where there is one.
        `gatekeeper.io.providers` has the table.
    id : str or None
        In place of the response's id. Several choices of one response are `id/0`, `id/1`, …
    scope : {"content", "reasoning", "all"}
        Which tokens count where the response has reasoning beside the answer.
    skip_forced : bool
        Leave out the tokens that a grammar forced.

    Raises
    ------
    BadInputError
        If the response is of no known shape, and for another scope.
    """
    from gatekeeper.adapters.positions import check_scope

    check_scope(scope)
    check_flag("skip_forced", skip_forced)
    if isinstance(response, Generation):
        found = [response]
    else:
        found = _read(response, scope=scope, skip_forced=skip_forced)
    if id is not None:
        several = len(found) > 1
        found = [replace(g, id=f"{id}/{i}" if several else id) for i, g in enumerate(found)]
    return [_named(g) for g in found]


def _read(
    response: object, *, scope: Scope = "content", skip_forced: bool = False
) -> list[Generation]:
    for reader in readers():
        if reader.recognises(response):
            return reader.read(response, scope=scope, skip_forced=skip_forced)
    raise BadInputError(
        f"response of type {type(response).__name__!r} has no known shape: pass a "
        "gatekeeper.Generation (of a plain text: Generation('q1', text)), or "
        f"{'; or '.join(response_names())}"
    )


def _named(generation: Generation) -> Generation:
    if not is_id(generation.id):
        raise BadInputError(
            f"id={generation.id!r:.80}: every output needs an id of its own, a string of 1 to "
            f"{MAX_ID} bytes in UTF-8"
        )
    return generation
