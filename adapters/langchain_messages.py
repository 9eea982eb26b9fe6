"""LangChain's AIMessage, and the Generation and LLMResult that its callbacks get.

    model = ChatOpenAI(..., logprobs=True, top_logprobs=5)
    gate.maybe_verify(model.invoke(question), task)

`response_metadata["logprobs"]` of a message, `generation_info["logprobs"]` of a Generation: the
entries of OpenAI's chat completions, or the arrays of its text completions. Chunks of a stream are
read as their sum. LangChain itself is not imported.

References
----------
The packages langchain-core 1.7 and langchain-openai 1.7: messages.ai, outputs, chat_models.base.
"""

from __future__ import annotations

from typing import Any

from gatekeeper.adapters.fields import field, fields, list_of, text_of
from gatekeeper.adapters.openai.chat import chat_generations
from gatekeeper.adapters.openai.completions import completion_generations
from gatekeeper.adapters.positions import Scope
from gatekeeper.io.providers import attribute
from gatekeeper.types import Generation

__all__ = ["read", "recognises"]


def recognises(response: Any) -> bool:
    """Whether the response is a message of a model, a Generation or an LLMResult."""
    if attribute(response, "type") in ("ai", "AIMessageChunk"):
        return attribute(response, "response_metadata") is not None
    return _is_generation(response) or isinstance(attribute(response, "generations"), list)


def read(response: Any, *, scope: Scope, skip_forced: bool) -> list[Generation]:
    """One Generation per output, of all prompts of an LLMResult.

    Parameters and errors are those of `gatekeeper.io.providers.Reader.read`.
    """
    how: dict[str, Any] = {"scope": scope, "skip_forced": skip_forced}
    if field(response, "generations") is not None:
        prompts = list_of(response, "generations")
        choices = [each for prompt in prompts for each in list_of({"choices": prompt}, "choices")]
        return [generation for choice in choices for generation in read(choice, **how)]
    if not _is_generation(response):
        return [_of_message(response, fields(field(response, "response_metadata")), **how)]
    info, message = fields(field(response, "generation_info")), field(response, "message")
    if message is not None:
        return [
            _of_message(message, {**fields(field(message, "response_metadata")), **info}, **how)
        ]
    choice = {
        "index": 0,
        "text": text_of(response, "text") or "",
        "logprobs": info.get("logprobs"),
        "finish_reason": info.get("finish_reason"),
    }
    return completion_generations({"choices": [choice]}, skip_forced=skip_forced)


def _is_generation(response: Any) -> bool:
    kind = attribute(response, "type")
    return isinstance(kind, str) and kind.removesuffix("Chunk") in ("Generation", "ChatGeneration")


def _of_message(message: Any, about: Any, *, scope: Scope, skip_forced: bool) -> Generation:
    content = field(message, "content")
    blocks = content if isinstance(content, list) else [{"type": "text", "text": content or ""}]
    texts = [b if isinstance(b, str) else text_of(b, "text") or "" for b in blocks if _is_text(b)]
    thoughts = [text_of(b, "reasoning") or "" for b in blocks if field(b, "type") == "reasoning"]
    own = text_of(field(message, "additional_kwargs"), "reasoning_content")
    logprobs = about.get("logprobs")
    usage = field(message, "usage_metadata")
    choice = {
        "message": {"content": "".join(texts), "reasoning": "".join(thoughts) or own},
        "logprobs": {"content": logprobs} if isinstance(logprobs, list) else logprobs,
        "finish_reason": about.get("finish_reason"),
    }
    (generation,) = chat_generations(
        {
            "id": about.get("id") or text_of(message, "id"),
            "model": about.get("model_name") or about.get("model"),
            "choices": [choice],
            "usage": {
                "prompt_tokens": field(usage, "input_tokens"),
                "completion_tokens": field(usage, "output_tokens"),
                "completion_tokens_details": {
                    "reasoning_tokens": field(field(usage, "output_token_details"), "reasoning")
                },
            },
        },
        scope=scope,
        skip_forced=skip_forced,
    )
    return generation


def _is_text(block: Any) -> bool:
    return isinstance(block, str) or field(block, "type") == "text"
