"""Objects of the Responses API."""

from __future__ import annotations

from typing import Any

from gatekeeper.adapters.fields import count_of, field, has, list_of, text_of
from gatekeeper.adapters.openai.entries import Entries, entries_of
from gatekeeper.adapters.openai.scope import in_scope
from gatekeeper.adapters.positions import Scope, make_generation
from gatekeeper.types import Generation

__all__ = ["response_generation"]


def response_generation(response: Any, *, scope: Scope, skip_forced: bool) -> Generation:
    """The one output of a Response: the texts of its messages and their token entries, joined."""
    texts: dict[str, str] = {"output_text": "", "refusal": "", "reasoning_text": ""}
    entries = Entries()
    for item in list_of(response, "output"):
        for part in list_of(item, "content"):
            kind = text_of(part, "type") or ""
            if kind in texts:
                texts[kind] += text_of(part, "refusal" if kind == "refusal" else "text") or ""
                entries.extend(entries_of(part, "logprobs"))
    text = texts["output_text"] or texts["refusal"]
    usage = field(response, "usage")
    positions, output_tokens = in_scope(
        entries,
        sampled_first=has(response, "kv_transfer_params"),  # vLLM
        scope=scope,
        reasoning=texts["reasoning_text"],
        content=text,
        total=count_of(usage, "output_tokens"),
        thinking=count_of(field(usage, "output_tokens_details"), "reasoning_tokens"),
    )
    return make_generation(
        positions,
        id=text_of(response, "id") or "",
        text=text,
        prompt_tokens=count_of(usage, "input_tokens"),
        output_tokens=output_tokens,
        model=text_of(response, "model"),
        finish_reason=_finish_reason(response),
        skip_forced=skip_forced,
    )


def _finish_reason(response: Any) -> str | None:
    """The finish reason as chat completions name it; None for an interrupted stream."""
    status = text_of(response, "status")
    if status == "completed":
        return "stop"
    if status == "incomplete":
        reason = text_of(field(response, "incomplete_details"), "reason")
        return "length" if reason == "max_output_tokens" else reason
    return None if status in ("in_progress", "queued") else status
