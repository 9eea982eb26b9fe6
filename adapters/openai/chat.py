"""Chat completions."""

from __future__ import annotations

from typing import Any

from gatekeeper.adapters.fields import count_of, field, fields, list_of, text_of
from gatekeeper.adapters.openai.content import answer_and_reasoning
from gatekeeper.adapters.openai.entries import entries_of
from gatekeeper.adapters.openai.scope import in_scope
from gatekeeper.adapters.positions import Scope, make_generation
from gatekeeper.types import Generation

__all__ = ["VLLM_FIELDS", "chat_generations", "choice_id"]

VLLM_FIELDS = {"stop_reason", "token_ids"}  # only choices from vLLM have them, sometimes null


def chat_generations(response: Any, *, scope: Scope, skip_forced: bool) -> list[Generation]:
    """One Generation per choice of a chat completion."""
    response = fields(response)
    choices = list_of(response, "choices")
    return [
        _generation(response, choice, len(choices), scope=scope, skip_forced=skip_forced)
        for choice in choices
    ]


def _generation(
    response: Any, choice: Any, n: int, *, scope: Scope, skip_forced: bool
) -> Generation:
    choice = fields(choice)
    message, logprobs = fields(choice.get("message")), fields(choice.get("logprobs"))
    answer, thoughts = answer_and_reasoning(message.get("content"))
    text = answer or text_of(message, "refusal") or ""
    entries = entries_of(logprobs, "content") or entries_of(logprobs, "refusal")
    usage = fields(response.get("usage"))
    positions, output_tokens = in_scope(
        entries,
        sampled_first=not VLLM_FIELDS.isdisjoint(choice),
        scope=scope,
        reasoning=thoughts
        or text_of(message, "reasoning")
        or text_of(message, "reasoning_content"),
        content=text,
        # With n > 1 the usage is the sum over the choices.
        total=count_of(usage, "completion_tokens") if n == 1 else None,
        thinking=count_of(field(usage, "completion_tokens_details"), "reasoning_tokens"),
    )
    return make_generation(
        positions,
        id=choice_id(response, choice, n),
        text=text,
        prompt_tokens=count_of(usage, "prompt_tokens"),
        output_tokens=output_tokens,
        model=text_of(response, "model"),
        finish_reason=text_of(choice, "finish_reason"),
        skip_forced=skip_forced,
    )


def choice_id(response: Any, choice: Any, n: int) -> str:
    """The response's id; of one choice among several, the id and its index."""
    id_ = text_of(response, "id") or ""
    return f"{id_}/{count_of(choice, 'index') or 0}" if n > 1 else id_
