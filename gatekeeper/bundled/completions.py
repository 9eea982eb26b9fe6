"""Text completions of the bundled server."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gatekeeper.adapters.bundled import BundledModel
from gatekeeper.bundled.chat import head_of, usage_wanted
from gatekeeper.bundled.connections import DONE, Json, RefusalError, Stream
from gatekeeper.bundled.fields import end_of, flag, number
from gatekeeper.bundled.outputs import (
    MOST_ALTERNATIVES,
    Asked,
    Piece,
    Usage,
    asked_of,
    outputs,
    pieces,
)
from gatekeeper.bundled.token_entries import arrays

__all__ = ["completions"]


def completions(model: BundledModel, request: Json) -> Json | Stream:
    """Answer a request to /v1/completions. Raises RefusalError."""
    if request.get("echo"):
        raise RefusalError("echo=true: this server does not give the prompt back")
    wants = request.get("logprobs") not in (None, False)
    k = number(request, "logprobs", 0, most=MOST_ALTERNATIVES)
    prompts = _raw_prompts(model, request.get("prompt"))
    asked = asked_of(request, prompts, k=k, limit="max_tokens")
    if flag(request, "stream"):
        with_usage = usage_wanted(request)
        return _chunks(model, request["model"], asked, wants=wants, with_usage=with_usage)
    usage, choices = Usage(), []
    for piece in outputs(model, asked):
        usage.add(piece)
        choices.append(_choice(model, piece, wants))
    return {
        **head_of("text_completion", request["model"]),
        "choices": choices,
        "usage": usage.json(),
    }


def _choice(model: BundledModel, piece: Piece, wants: bool) -> Json:
    return {
        "index": piece.choice,
        "text": piece.text,
        "logprobs": arrays(model, piece) if wants else None,
        "finish_reason": piece.finish_reason,
    }


def _chunks(
    model: BundledModel, name: str, asked: Asked, *, wants: bool, with_usage: bool
) -> Stream:
    head, usage = head_of("text_completion", name), Usage()
    last = {"usage": None} if with_usage else {}
    for piece in pieces(model, asked):
        usage.add(piece)
        yield {**head, "choices": [_choice(model, piece, wants)], **last}
    if with_usage:
        yield {**head, "choices": [], "usage": usage.json()}
    yield DONE


def _raw_prompts(model: BundledModel, prompt: Any) -> list[Sequence[int]]:
    """Text or token ids, one prompt or a list of them; text gets no template."""
    prompts = prompt if isinstance(prompt, list) and prompt else [prompt]
    if all(type(each) is int for each in prompts):
        prompts = [prompts]
    size = model.tokenizer.get_vocab_size()
    tokens: list[Sequence[int]] = []
    for each in prompts:
        text = isinstance(each, str)
        found = model.tokenizer.encode(end_of(each, "prompt")).ids if text else each
        if not isinstance(found, list) or not all(type(t) is int and 0 <= t < size for t in found):
            raise RefusalError(f"prompt={prompt!r:.80}: text, token ids, or a list of either")
        if not found:
            raise RefusalError("prompt: at least one token is needed")
        tokens.append(found)
    return tokens
