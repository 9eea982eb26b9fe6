"""Anthropic's Messages API: a Message, or the events of one stream in a list.

As JSON, or as objects of the package `anthropic`, which is not imported. The API has no
log-probabilities: the output has its text and counts, and signals are missing. So features decide,
or a draw at the budget's rate. The text is that of the text blocks; thinking and tool calls are
none of it.

References
----------
The package anthropic 2.12: types.Message, types.RawMessageStreamEvent.
"""

from __future__ import annotations

from typing import Any

from gatekeeper.adapters.fields import count_of, field, has, list_of, text_of
from gatekeeper.adapters.positions import Scope
from gatekeeper.io.providers import attribute
from gatekeeper.types import Generation

__all__ = ["ends", "read", "recognises"]

# Of the prompt: "total input tokens in a request is the summation" of these.
INPUT = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")


def recognises(response: Any) -> bool:
    """Whether the response is a Message, or a list with a stream's first event."""
    if isinstance(response, list):
        return any(attribute(event, "type") == "message_start" for event in response)
    return attribute(response, "type") == "message" and has(response, "stop_reason")


def ends(event: Any) -> dict[int, bool]:
    """By index, the one output: whether this event is its last one."""
    return {0: bool(field(event, "type") == "message_stop")}


def read(response: Any, *, scope: Scope, skip_forced: bool) -> list[Generation]:
    """The one output.

    Parameters and errors are those of `gatekeeper.io.providers.Reader.read`.
    """
    message = _assembled(response) if isinstance(response, list) else response
    blocks = list_of(message, "content")
    texts = [text_of(b, "text") or "" for b in blocks if field(b, "type") == "text"]
    usage = field(message, "usage")
    counts = [count_of(usage, name) for name in INPUT]
    generation = Generation(
        id=text_of(message, "id") or "",
        text="".join(texts),
        prompt_tokens=None if counts[0] is None else sum(count or 0 for count in counts),
        output_tokens=count_of(usage, "output_tokens"),
        model=text_of(message, "model"),
        finish_reason=text_of(message, "stop_reason"),
    )
    return [generation]


def _assembled(events: list[Any]) -> dict[str, Any]:
    """The message that the events of a stream make."""
    first = next(event for event in events if field(event, "type") == "message_start")
    begun = field(first, "message")
    usage = field(begun, "usage")
    counts = {name: field(usage, name) for name in (*INPUT, "output_tokens")}
    text, stop_reason = "", None
    for event in events:
        kind, delta = field(event, "type"), field(event, "delta")
        if kind == "content_block_start":
            block = field(event, "content_block")
            text += (text_of(block, "text") or "") if field(block, "type") == "text" else ""
        elif kind == "content_block_delta" and field(delta, "type") == "text_delta":
            text += text_of(delta, "text") or ""
        elif kind == "message_delta":
            stop_reason = text_of(delta, "stop_reason")
            new = field(event, "usage")
            found = {name: field(new, name) for name in counts}
            counts |= {name: count for name, count in found.items() if count is not None}
    return {
        "id": field(begun, "id"),
        "model": field(begun, "model"),
        "content": [{"type": "text", "text": text}],
        "stop_reason": stop_reason,
        "usage": counts,
    }
