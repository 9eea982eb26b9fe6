"""Responses of OpenAI's APIs as JSON, and the values that a reader should find in them."""

from __future__ import annotations

from typing import Any

import numpy as np

from gatekeeper import Generation

Position = dict[str, Any]


def alternative(token: str, logprob: float, *, raw: bool = True) -> dict[str, Any]:
    return {"token": token, "logprob": logprob, "bytes": list(token.encode()) if raw else None}


def position(token: str, logprob: float, *others: tuple[str, float], raw: bool = True) -> Position:
    top = [alternative(t, p, raw=raw) for t, p in others]
    return alternative(token, logprob, raw=raw) | {"top_logprobs": top}


def completion(
    content: list[Position] | None, *, text: str | None = "four", **changes: Any
) -> dict[str, Any]:
    logprobs = None if content is None else {"content": content, "refusal": None}
    message = {"role": "assistant", "content": text, "refusal": None}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": "tiny-1",
        "choices": [
            {"index": 0, "finish_reason": "stop", "message": message, "logprobs": logprobs}
        ],
        "usage": {"prompt_tokens": 12, "completion_tokens": 3, "total_tokens": 15},
    } | changes


def assert_arrays(found: Generation, *rows: tuple[float, float, float]) -> None:
    expected = np.array(rows, dtype=np.float64).reshape(-1, 3).T
    for got, want in zip((found.logprob, found.top1, found.top2), expected, strict=True):
        assert got.dtype == np.float64
        np.testing.assert_array_equal(got, want)


CHUNK = {
    "id": "chatcmpl-1",
    "object": "chat.completion.chunk",
    "created": 1,
    "model": "tiny-1",
    "choices": [{"index": 0, "finish_reason": None, "delta": {"content": "fo"}, "logprobs": None}],
}


THOUGHT = ["<think>", "7+", "8", "=é", "</think>", "\n", "15", "<|end|>"]


def thought(tokens: list[str], reasoning: str, content: str | None, **more: Any) -> dict[str, Any]:
    entries = [
        position(t, -0.1 * (i + 1), (t, -0.1 * (i + 1)), ("x", -9.0)) for i, t in enumerate(tokens)
    ]
    data = completion(entries, text=content)
    data["choices"][0]["message"][more.pop("name", "reasoning")] = reasoning
    data["usage"]["completion_tokens"] = len(tokens)
    return data | more


def legacy(
    *positions: tuple[str, float | None, dict[str, float] | None], **usage: int
) -> dict[str, Any]:
    tokens, chosen, top = (list(column) for column in zip(*positions, strict=True))
    logprobs = {"tokens": tokens, "token_logprobs": chosen, "top_logprobs": top, "text_offset": []}
    counts = {"prompt_tokens": 2, "completion_tokens": len(tokens), "total_tokens": 0} | usage
    choice = {"index": 0, "finish_reason": "length", "text": "four", "logprobs": logprobs}
    return {
        "id": "cmpl-1",
        "object": "text_completion",
        "created": 1,
        "model": "tiny-1",
        "choices": [choice],
        "usage": counts,
    }


def responded(entries: list[Position] | None, *, text: str = "four", **more: Any) -> dict[str, Any]:
    part = {"type": "output_text", "text": text, "annotations": [], "logprobs": entries}
    message = {
        "type": "message",
        "id": "m",
        "role": "assistant",
        "status": "completed",
        "content": [part],
    }
    usage = {
        "input_tokens": 12,
        "output_tokens": len(entries or []),
        "total_tokens": 0,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens_details": {"reasoning_tokens": 0},
    }
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "model": "tiny-1",
        "status": "completed",
        "output": [message],
        "parallel_tool_calls": False,
        "tool_choice": "none",
        "tools": [],
        "usage": usage,
    } | more


def chunk(*parts: dict[str, Any], **more: Any) -> dict[str, Any]:
    return CHUNK | {"choices": list(parts)} | more
