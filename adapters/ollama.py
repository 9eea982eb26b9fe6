"""Ollama's own API: `/api/generate` and `/api/chat`, as JSON or as objects of the package `ollama`.

    ollama.chat(model=…, messages=…, logprobs=True, top_logprobs=5)

Servers from 0.12.11 on have log-probabilities: `logprobs`, a list of {token, logprob, bytes,
top_logprobs}. The chunks of a stream are read as one response, in a list. The server sends no id:
give one. Its OpenAI-compatible API is read by `openai`.

References
----------
Ollama, api/types.go: GenerateResponse, ChatResponse, Logprob.
"""

from __future__ import annotations

from typing import Any

from gatekeeper.adapters.fields import count_of, field, list_of, text_of
from gatekeeper.adapters.openai.entries import Entries
from gatekeeper.adapters.openai.scope import in_scope
from gatekeeper.adapters.positions import Scope, make_generation
from gatekeeper.io.providers import attribute
from gatekeeper.types import Generation

__all__ = ["ends", "read", "recognises"]


def recognises(response: Any) -> bool:
    """Whether the response, or one of a list, has `done` and a text or a message."""
    chunks = response if isinstance(response, list) else [response]
    return any(
        isinstance(attribute(chunk, "done"), bool)
        and any(attribute(chunk, name) is not None for name in ("response", "message"))
        for chunk in chunks
    )


def ends(chunk: Any) -> dict[int, bool]:
    """By index, the one output: whether this chunk is its last one."""
    return {0: field(chunk, "done") is True}


def read(response: Any, *, scope: Scope, skip_forced: bool) -> list[Generation]:
    """The one output.

    Parameters and errors are those of `gatekeeper.io.providers.Reader.read`.
    """
    chunks = response if isinstance(response, list) else [response]
    entries, texts = Entries(), {"content": "", "thinking": ""}
    for chunk in chunks:
        entries.add(list_of(chunk, "logprobs"))
        message = field(chunk, "message")
        holder = chunk if message is None else message
        texts["content"] += text_of(holder, "response" if message is None else "content") or ""
        texts["thinking"] += text_of(holder, "thinking") or ""
    last = chunks[-1]
    positions, output_tokens = in_scope(
        entries,
        sampled_first=False,
        scope=scope,
        reasoning=texts["thinking"],
        content=texts["content"],
        total=count_of(last, "eval_count"),
        thinking=None,
    )
    generation = make_generation(
        positions,
        id="",
        text=texts["content"],
        prompt_tokens=count_of(last, "prompt_eval_count"),
        output_tokens=output_tokens,
        model=text_of(last, "model"),
        finish_reason=text_of(last, "done_reason") or None,
        skip_forced=skip_forced,
    )
    return [generation]
