"""pydantic-ai's ModelResponse: the object, or its JSON, as in `result.all_messages_json()`.

    settings = {"openai_logprobs": True, "openai_top_logprobs": 5}
    gate.maybe_verify((await agent.run(question, model_settings=settings)).response, task)

`provider_details["logprobs"]` has the tokens as the provider named them: OpenAI's entries, or
Gemini's LogprobsResult (`google_logprobs`); of the Responses API each text part has its own.
`pydantic_ai` itself is not imported.

References
----------
The package pydantic-ai-slim 2.62: messages.ModelResponse, models.openai, models.google.
"""

from __future__ import annotations

from typing import Any

from gatekeeper.adapters import gemini
from gatekeeper.adapters.fields import field, list_of, text_of
from gatekeeper.adapters.openai.chat import chat_generations
from gatekeeper.adapters.positions import Scope
from gatekeeper.io.providers import attribute
from gatekeeper.types import Generation

__all__ = ["read", "recognises"]


def recognises(response: Any) -> bool:
    """Whether the response is a ModelResponse."""
    return attribute(response, "kind") == "response" and attribute(response, "parts") is not None


def read(response: Any, *, scope: Scope, skip_forced: bool) -> list[Generation]:
    """The one output of a ModelResponse. A tool call has no text.

    Parameters and errors are those of `gatekeeper.io.providers.Reader.read`.
    """
    details = field(response, "provider_details")
    logprobs, usage = field(details, "logprobs"), field(response, "usage")
    text, thoughts = _content(response, "text"), _content(response, "thinking")
    prompt, generated = field(usage, "input_tokens"), field(usage, "output_tokens")
    id_, model = text_of(response, "provider_response_id"), text_of(response, "model_name")
    reason = text_of(response, "finish_reason")
    if isinstance(logprobs, dict):
        return gemini.read(
            {
                "response_id": id_,
                "model_version": model,
                "candidates": [
                    {
                        "content": {
                            "parts": [{"text": thoughts, "thought": True}, {"text": text}],
                        },
                        "logprobs_result": logprobs,
                        "avg_logprobs": field(details, "avg_logprobs"),
                        "token_count": generated or None,
                        "finish_reason": reason,
                    }
                ],
                "usage_metadata": {"prompt_token_count": prompt},
            },
            scope=scope,
            skip_forced=skip_forced,
        )
    if logprobs is None:
        parts = [field(part, "provider_details") for part in list_of(response, "parts")]
        logprobs = [entry for each in parts for entry in list_of(each, "logprobs")]
    choice = {
        "message": {"content": text, "reasoning": thoughts or None},
        "logprobs": {"content": logprobs},
        "finish_reason": reason,
    }
    # 0 tokens stand for an unknown number.
    counts = {"prompt_tokens": prompt or None, "completion_tokens": generated or None}
    chat = {"id": id_, "model": model, "choices": [choice], "usage": counts}
    return chat_generations(chat, scope=scope, skip_forced=skip_forced)


def _content(response: Any, kind: str) -> str:
    parts = list_of(response, "parts")
    return "".join(text_of(p, "content") or "" for p in parts if field(p, "part_kind") == kind)
