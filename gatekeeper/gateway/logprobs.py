"""The log-probabilities that are requested on the caller's behalf, and removed from the answer.

`adapters.openai.logprobs` has the parameters that request them. Removed log-probabilities are
replaced by what the APIs return without a request for them: null in chat and text completions, an
empty list in the Responses API. A caller who asked for fewer alternatives gets that many.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache, partial
from typing import Any, NamedTuple, TypeGuard

from gatekeeper.adapters.openai.logprobs import ALTERNATIVES, ENDPOINTS, PARAMETERS
from gatekeeper.gateway.answer_edit import NO_EDITS, Edits
from gatekeeper.gateway.entries import likely_span, read_logprobs
from gatekeeper.gateway.json_edit import EACH, Edit, Paths, first_items

__all__ = ["NOTHING", "Requested", "requested"]

NEEDED = "message.output_text.logprobs"


class Requested(NamedTuple):
    """The additional request for log-probabilities, and the edits that remove them again.

    Edits that change nothing mark the positions of log-probabilities, which are read separately.
    """

    parameters: Mapping[str, Any]
    answer: Edits
    event: Edits  # of a stream
    item: Edits = NO_EDITS  # of a Response's output


NOTHING = Requested({}, NO_EDITS, NO_EDITS)


def requested(endpoint: str, body: Mapping[str, Any]) -> Requested:
    """What to request for a body.

    A value that the API does not allow, such as `top_logprobs` without `logprobs`, is left to the
    server to refuse; `logprobs=False` is respected.

    Parameters
    ----------
    endpoint : str
        One of `ENDPOINTS`.
    body : mapping
        The caller's request.
    """
    if body.keys().isdisjoint(_DECIDING):
        return _USUAL[endpoint]
    return _requested(endpoint, body)


def _requested(endpoint: str, body: Mapping[str, Any]) -> Requested:
    edits = _EDITS[endpoint](body)
    if edits is None:
        return _NO_MORE[endpoint]
    parameters = PARAMETERS[endpoint](body)
    return Requested({n: v for n, v in parameters.items() if body.get(n) != v}, *edits)


def _chat(body: Mapping[str, Any]) -> tuple[Edits, Edits] | None:
    asked, k = body.get("logprobs"), body.get("top_logprobs")
    if asked is None and k is None:
        return _chat_edits(None)
    if asked is True and (k is None or _is_few(k, least=0)):
        return _chat_edits(k or 0)
    return None


@cache
def _chat_edits(k: int | None) -> tuple[Edits, Edits]:
    """None: remove all log-probabilities; otherwise keep so many alternatives."""
    if k is None:
        paths = _chat_paths(_becomes("null"))
        return Edits(paths, read=read_logprobs, guess=likely_span), Edits(paths)
    entry = {EACH: {"top_logprobs": _first(k)}}
    edits = Edits(_chat_paths({"content": entry, "refusal": entry}))
    return edits, edits


def _chat_paths(logprobs: Edit | Paths) -> Paths:
    return {"choices": {EACH: {"logprobs": logprobs}}}


def _completions(body: Mapping[str, Any]) -> tuple[Edits, Edits] | None:
    # Servers differ in which alternatives their dicts have, so a caller's few cannot be cut out
    # of more. With `echo`, log-probabilities of the prompt would be computed, which is slow.
    if body.get("logprobs") is not None or body.get("echo"):
        return None
    return _chat_edits(None)


def _responses(body: Mapping[str, Any]) -> tuple[Edits, Edits, Edits] | None:
    if body.get("background") and not body.get("stream"):
        return None  # the answer has no output; a later one, which is not read here, would have all
    include, k = body.get("include"), body.get("top_logprobs")
    if not isinstance(include, list | None) or not all(type(x) is str for x in include or ()):
        return None
    if NEEDED not in (include or ()):
        return _responses_edits(k, inside=False) if k is None or _is_few(k, least=0) else None
    return _responses_edits(k, inside=True) if _is_few(k, least=1) else None


@cache
def _responses_edits(k: int | None, *, inside: bool) -> tuple[Edits, Edits, Edits]:
    """`inside`: the caller has asked for log-probabilities, with k alternatives."""
    part = {"logprobs": {EACH: {"top_logprobs": _first(k or 0)}} if inside else _becomes("[]")}
    item = {"content": {EACH: part}}
    # A Response names the parameters of its request.
    response = {"output": {EACH: item}, "top_logprobs": _becomes(json.dumps(k or 0))}
    event = {**part, "part": part, "item": item, "response": response}
    return Edits(response, read=None if inside else read_logprobs), Edits(event), Edits(item)


def _keep(text: str) -> None:
    """An edit that changes nothing."""


_NO_MORE = {
    "/chat/completions": NOTHING._replace(
        answer=Edits(_chat_paths(_keep), read=read_logprobs, guess=likely_span)
    ),
    "/completions": NOTHING,
    "/responses": NOTHING._replace(
        answer=Edits(
            {"output": {EACH: {"content": {EACH: {"logprobs": _keep}}}}}, read=read_logprobs
        )
    ),
}
_EDITS = {"/chat/completions": _chat, "/completions": _completions, "/responses": _responses}


def _is_few(k: object, *, least: int) -> TypeGuard[int]:
    return type(k) is int and least <= k < ALTERNATIVES


def _becomes(new: str) -> Edit:
    def edit(text: str) -> str | None:
        return None if text == "null" else new

    return edit


def _first(count: int) -> Edit:
    return partial(first_items, count=count)


_DECIDING = {"logprobs", "top_logprobs", "include", "echo", "background"}
"""The members of a body that decide on what is requested; most bodies have none of them."""
_USUAL = {endpoint: _requested(endpoint, {}) for endpoint in ENDPOINTS}
