"""Answers to the official client through `gatekeeper serve`, compared with those of vLLM itself.

Bodies are compared as bytes, after ids and times are made equal. How many tokens vLLM puts in one
chunk of a stream depends on time, so streams are compared by their text, their log-probabilities
and the other members of their chunks.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import httpx2
from openai import APIStatusError, OpenAI
from scenarios import MODEL_NAME

__all__ = ["KEY", "differences"]

Json = dict[str, Any]
KEY = "none"  # that the server asks for, and that the programs of docs/vllm.md have
CHAT: Json = {
    "model": MODEL_NAME,
    "messages": [{"role": "user", "content": "Tell me a story about a fox."}],
    "max_tokens": 12,
    "temperature": 2.0,
    "seed": 4,
}
TEXT: Json = {
    "model": MODEL_NAME,
    "prompt": "<|task|>Compute 7 + 8.<|answer|>",
    "max_tokens": 12,
    "temperature": 2.0,
    "seed": 4,
}
STREAM = {"stream": True}
USAGE = {**STREAM, "stream_options": {"include_usage": True}}
CASES: dict[str, tuple[str, Json]] = {
    "chat": ("chat", CHAT),
    "chat, n = 2": ("chat", {**CHAT, "n": 2}),
    "chat, logprobs": ("chat", {**CHAT, "logprobs": True, "top_logprobs": 5}),
    "chat, 1 alternative": ("chat", {**CHAT, "logprobs": True, "top_logprobs": 1}),
    "chat, 20 alternatives, n = 2": (
        "chat",
        {**CHAT, "n": 2, "logprobs": True, "top_logprobs": 20},
    ),
    "chat stream": ("chat", {**CHAT, **STREAM}),
    "chat stream, usage, n = 2": ("chat", {**CHAT, **USAGE, "n": 2}),
    "chat stream, logprobs": ("chat", {**CHAT, **USAGE, "logprobs": True, "top_logprobs": 5}),
    "completions": ("text", TEXT),
    "completions, n = 2": ("text", {**TEXT, "n": 2}),
    "completions, logprobs": ("text", {**TEXT, "logprobs": 5}),
    "completions stream": ("text", {**TEXT, **USAGE}),
    "completions stream, logprobs": ("text", {**TEXT, **STREAM, "logprobs": 5}),
    "400: too many alternatives": ("chat", {**CHAT, "logprobs": True, "top_logprobs": 21}),
    "400: alternatives without logprobs": ("chat", {**CHAT, "logprobs": False, "top_logprobs": 3}),
    "400: max_tokens": ("chat", {**CHAT, "max_tokens": -1}),
    "401: another key": ("chat", CHAT),
    "401: another key, stream": ("chat", {**CHAT, **STREAM}),
    "404: model": ("chat", {**CHAT, "model": "nope"}),
    "404: model, text": ("text", {**TEXT, "model": "nope"}),
}


class Recorder(httpx2.HTTPTransport):
    """Keeps the last answer, complete, before the client reads it."""

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        response = super().handle_request(request)
        self.last = (response.status_code, response.read())
        return httpx2.Response(response.status_code, headers=response.headers, content=self.last[1])


def differences(upstream: str, gateway: str) -> Iterator[str]:
    """A line for each of `CASES` in which status or body differ."""
    for name, (route, body) in CASES.items():
        expected = int(name[:3]) if name[:3].isdigit() else 200
        key = "another" if expected == 401 else KEY
        direct, through = (_answer(url, route, body, key) for url in (upstream, gateway))
        if direct[0] != expected:
            yield f"{name}: vLLM answers with status {direct[0]}: {direct[1][:200]!r}"
        elif direct != through:
            yield f"{name}: {_first_difference(direct, through)}"


def _answer(base_url: str, route: str, body: Json, key: str) -> tuple[int, bytes]:
    recorder = Recorder()
    with OpenAI(
        base_url=base_url,
        api_key=key,
        max_retries=0,
        http_client=httpx2.Client(transport=recorder, timeout=300.0),
    ) as client:
        create: Any = (
            client.chat.completions.create if route == "chat" else client.completions.create
        )
        try:
            answer = create(**body)
            if body.get("stream"):
                list(answer)
        except APIStatusError:
            pass  # its body is compared
    status, raw = recorder.last
    raw = re.sub(rb"^: gatekeeper .*\n\n", b"", raw, flags=re.MULTILINE)
    raw = re.sub(rb'"id":"(chatcmpl|cmpl)-[^"]*"', rb'"id":"\1"', raw)
    raw = re.sub(rb'"created":\d+', b'"created":0', raw)
    return status, _merged(raw) if body.get("stream") and status == 200 else raw


def _merged(raw: bytes) -> bytes:
    """The contents of each choice of a stream, and its chunks without them."""
    joined: dict[int, Json] = {}
    chunks = set()
    for event in raw.split(b"\n\n"):
        if not event.startswith(b"data: {"):
            chunks.add(event.decode())
            continue
        chunk = json.loads(event.removeprefix(b"data: "))
        for choice in chunk["choices"]:
            found = joined.setdefault(choice["index"], {"text": "", "entries": []})
            holder = choice.get("delta", choice)
            name = "content" if "delta" in choice else "text"
            found["text"] += holder.get(name) or ""
            found["entries"] += _entries(choice["logprobs"] or {})
            if name in holder:
                holder[name] = ""
            choice["logprobs"] = None
            for end in {"finish_reason", "stop_reason"} & choice.keys():
                found[end] = found.get(end) or choice[end]
                choice[end] = None
        chunks.add(json.dumps(chunk))
    return json.dumps([sorted(joined.items()), sorted(chunks)]).encode()


def _entries(logprobs: Json) -> list[Any]:
    """One for each token, of chat or of completions."""
    if "content" in logprobs:
        return list(logprobs["content"])
    return [list(each) for each in zip(*logprobs.values(), strict=True)]


def _first_difference(one: tuple[int, bytes], other: tuple[int, bytes]) -> str:
    if one[0] != other[0]:
        return f"status {one[0]} and {other[0]}: {other[1][:200]!r}"
    a, b = one[1], other[1]
    at = next(
        (i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b))
    )
    return f"at byte {at}: {a[max(0, at - 40) : at + 60]!r} and {b[max(0, at - 40) : at + 60]!r}"
