"""From what a provider returned to `Generation`s."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from typing import Any

from gatekeeper.errors import BadInputError
from gatekeeper.types import Generation

__all__ = ["as_generation", "as_generations"]


def as_generation(response: object, *, id: str | None = None) -> Generation:
    """`response` as one Generation; what is read says `as_generations`.

    `id` names the output where the response does not, or not uniquely. Raises BadInputError for
    anything else, and where the response has no output or several.
    """
    found = [response] if isinstance(response, Generation) else _read(response)
    if len(found) != 1:
        raise BadInputError(
            f"response {_field(response, 'id') or id!r} has {len(found)} choices: exactly one "
            "output is decided on at a time"
        )
    return _named(found[0] if id is None else replace(found[0], id=id))


def as_generations(response: object, *, id: str | None = None, **options: Any) -> list[Generation]:
    """Every output of `response`, in order.

    A Generation; a response of OpenAI's chat completions, text completions or Responses API; the
    chunks or events of one streamed response, in a list; a RequestOutput of vLLM or a list of
    them; any of these as JSON; or arrays, {"logprob": […], "top1": […], "top2": […]}, with "text"
    where there is one. Several choices of one response are named `id/0`, `id/1`, …
    `options` are those of the reader: `skip_forced`, and `scope` for OpenAI's shapes.
    Raises BadInputError for anything else.
    """
    found = [response] if isinstance(response, Generation) else _read(response, **options)
    if id is not None:
        several = len(found) > 1
        found = [replace(g, id=f"{id}/{i}" if several else id) for i, g in enumerate(found)]
    return [_named(g) for g in found]


def _read(response: Any, **options: Any) -> list[Generation]:
    """The reader is chosen by the fields that only one shape has; of a list, its first item's."""
    first = response[0] if isinstance(response, list) and response else response
    found: list[Generation]
    if _field(first, "outputs") is not None:
        options.pop("scope", None)  # vLLM's own outputs are not split into reasoning and answer
        found = _adapter("vllm").generations_of(response, **options)
    elif isinstance(response, list) and any(
        _field(first, name) is not None for name in ("choices", "type")
    ):
        reader = _adapter("openai").StreamReader(strict=True, **options)
        for chunk in response:
            reader.add(chunk)
        found = reader.generations()
    elif _field(response, "choices") is not None or _field(response, "output") is not None:
        found = _adapter("openai").generations_of(response, **options)
    elif isinstance(response, dict) and {"logprob", "top1", "top2"} <= response.keys():
        arrays = (response[name] for name in ("logprob", "top1", "top2"))
        found = [Generation(response.get("id") or "", response.get("text") or "", *arrays)]
    else:
        raise BadInputError(
            f"response of type {type(response).__name__!r} is not understood: pass a "
            "gatekeeper.Generation, a response of OpenAI's shape, an output of vLLM, or arrays"
        )
    return found


def _adapter(name: str) -> Any:
    """Loaded on first use only: importing gatekeeper imports no adapter."""
    return import_module(f"gatekeeper.adapters.{name}")


def _named(generation: Generation) -> Generation:
    try:
        named = bool(generation.id) and bool(generation.id.encode())
    except (AttributeError, UnicodeEncodeError):
        named = False
    if not named:
        raise BadInputError(
            f"id={generation.id!r}: every output needs an id of its own, a non-empty string"
        )
    return generation


def _field(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, dict) else getattr(value, name, None)
