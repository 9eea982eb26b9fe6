"""A server that answers as OpenAI's three APIs do, plainly and as a stream, on loopback.

It returns the log-probabilities that it is asked for and no others. Its answer follows from the
prompt alone; words in the prompt make it misbehave.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from loopback import LoopbackServer, path_of

HEADERS = {"content-type": "application/json", "retry-after-ms": "1"}


def text_of(prompt: str) -> str:
    return json.dumps({"answer": f"{prompt} {len(prompt) * 7919}"})


def tokens_of(prompt: str) -> list[tuple[str, list[float]]]:
    """Tokens of the answer, each with the descending log-probabilities of 20 alternatives.

    The chosen token is the first or the third of them.
    """
    rng = random.Random(prompt)
    text = text_of(prompt)
    pieces = [text[i : i + 5] for i in range(0, len(text), 5)]
    return [(p, sorted((-rng.expovariate(0.2) for _ in range(20)), reverse=True)) for p in pieces]


def chosen(prompt: str, i: int) -> int:
    return 2 if (len(prompt) + i) % 3 == 0 else 0


def expected_signals(prompt: str) -> tuple[float, float, float]:
    """h1, h2, h3 by the definitions, one token after the other."""
    import math

    tokens = [values for _, values in tokens_of(prompt)]
    margins = [v[0] - v[1] for v in tokens]
    h1 = sum(-v[chosen(prompt, i)] for i, v in enumerate(tokens)) / len(tokens)
    return h1, -min(margins), sum(math.exp(-m) for m in margins) / len(margins)


def chat_logprobs(prompt: str, k: int) -> list[dict[str, Any]]:
    entries = []
    for i, (token, values) in enumerate(tokens_of(prompt)):
        at = chosen(prompt, i)
        names = [token if j == at else f"{token}~{j}" for j in range(20)]
        if "logits" in prompt:
            values = [v + 30.0 for v in values]
        ranked = [
            {"token": names[j], "logprob": values[j], "bytes": list(names[j].encode())}
            for j in range(20)
        ]
        top = ranked[: 1 if "k1" in prompt else k]
        entries.append({**ranked[at], "top_logprobs": top})
    return entries


def prompt_of(body: Mapping[str, Any]) -> str:
    if "messages" in body:
        return str(body["messages"][-1]["content"])
    return str(body.get("prompt") or body.get("input"))


def id_of(prompt: str, kind: str) -> str:
    return "" if "noid" in prompt else "same" if "sameid" in prompt else f"{kind}-{prompt}"


def head(prompt: str, kind: str, object_: str) -> dict[str, Any]:
    return {"id": id_of(prompt, kind), "object": object_, "created": 1, "model": "m"}


USAGE = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}


def chat(body: Mapping[str, Any]) -> dict[str, Any]:
    prompt = prompt_of(body)
    choices = []
    for i in range(body.get("n") or 1):
        name = f"{prompt} {i}" if body.get("n") else prompt
        logprobs = None
        if body.get("logprobs") and "null" not in prompt:
            entries = chat_logprobs(name, body.get("top_logprobs", 0))
            logprobs = {"content": entries, "refusal": None}
        message: dict[str, Any] = {"role": "assistant", "content": text_of(name), "refusal": None}
        if "refuse" in prompt:
            message |= {"content": None, "refusal": text_of(name)}
            logprobs = logprobs and {"content": None, "refusal": logprobs["content"]}
        if "calltool" in prompt:
            call = {"name": "f", "arguments": text_of(name)}
            message |= {"content": None, "tool_calls": [TOOL_CALL | {"function": call}]}
        reason = "length" if "length" in prompt else "stop"
        choices.append(
            {"index": i, "finish_reason": reason, "message": message, "logprobs": logprobs}
        )
    if "empty" in prompt:
        choices = []
    return head(prompt, "chatcmpl", "chat.completion") | {"choices": choices, "usage": USAGE}


TOOL_CALL = {"id": "call_1", "type": "function"}


def chat_chunks(body: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Like OpenAI's: a role chunk, one chunk per token, a last one; choices interleaved."""
    whole = chat(body)
    base = {**whole, "object": "chat.completion.chunk", "choices": []}
    del base["usage"]

    def chunk(i: int, delta: dict[str, Any], logprobs: Any = None, reason: Any = None) -> Any:
        choice = {"index": i, "delta": delta, "logprobs": logprobs, "finish_reason": reason}
        return base | {"choices": [choice]}

    yield base  # Azure's filter results come so
    for choice in whole["choices"]:
        content = choice["message"]["content"] and ""
        yield chunk(choice["index"], {"role": "assistant", "content": content})
    for position in range(
        max((len(text_of(f"{prompt_of(body)} 0")), 0)) if whole["choices"] else 0
    ):
        for choice in whole["choices"]:
            message, logprobs = choice["message"], choice["logprobs"] or {}
            entries = logprobs.get("content") or logprobs.get("refusal")
            name = "refusal" if message["refusal"] else "content"
            pieces = split(message[name] or "")
            if position >= len(pieces):
                continue
            own = [entries[position]] if entries else None
            yield chunk(choice["index"], {name: pieces[position]}, own and {"content": own})
    if "cut" in prompt_of(body):
        return
    for choice in whole["choices"]:
        for call in choice["message"].get("tool_calls", ()):
            yield chunk(choice["index"], {"tool_calls": [{"index": 0, **call}]})
        yield chunk(choice["index"], {}, None, choice["finish_reason"])
    if (body.get("stream_options") or {}).get("include_usage"):
        yield base | {"usage": USAGE}


def split(text: str) -> list[str]:
    return [text[i : i + 5] for i in range(0, len(text), 5)]


def completion(body: Mapping[str, Any]) -> dict[str, Any]:
    prompt = prompt_of(body)
    logprobs = None
    if body.get("logprobs"):
        entries = chat_logprobs(prompt, body["logprobs"])
        logprobs = {
            "tokens": [e["token"] for e in entries],
            "token_logprobs": [e["logprob"] for e in entries],
            "top_logprobs": [
                {a["token"]: a["logprob"] for a in [*e["top_logprobs"], e]} for e in entries
            ],
            "text_offset": [5 * i for i in range(len(entries))],
        }
    choice = {"index": 0, "finish_reason": "stop", "text": text_of(prompt), "logprobs": logprobs}
    return head(prompt, "cmpl", "text_completion") | {"choices": [choice], "usage": USAGE}


def completion_chunks(body: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    whole = completion(body)
    (choice,) = whole["choices"]
    del whole["usage"]
    for i, piece in enumerate(split(choice["text"])):
        logprobs = choice["logprobs"]
        own = logprobs and {name: [values[i]] for name, values in logprobs.items()}
        part = {"index": 0, "text": piece, "logprobs": own, "finish_reason": None}
        yield whole | {"choices": [part]}
    yield whole | {"choices": [choice | {"text": "", "logprobs": None}]}


def response(body: Mapping[str, Any]) -> dict[str, Any]:
    prompt = prompt_of(body)
    logprobs: Any = []
    if "message.output_text.logprobs" in (body.get("include") or ()):
        logprobs = chat_logprobs(prompt, body.get("top_logprobs", 0))
    part = {"type": "output_text", "text": text_of(prompt), "annotations": [], "logprobs": logprobs}
    message = {"type": "message", "id": "msg_1", "status": "completed", "role": "assistant"}
    return {
        "id": id_of(prompt, "resp"),
        "object": "response",
        "created_at": 1,
        "status": "completed",
        "model": "m",
        "output": [] if "empty" in prompt else [message | {"content": [part]}],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": {
            "input_tokens": 11,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": 7,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": 18,
        },
    }


def response_events(body: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    whole = response(body)
    (message,) = whole["output"]
    (part,) = message["content"]
    started = {**whole, "status": "in_progress", "output": []}
    where = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
    bare = part | {"text": "", "logprobs": []}
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": started},
        {"type": "response.output_item.added", "item": message | {"content": []}} | where,
        {"type": "response.content_part.added", "part": bare} | where,
    ]
    for i, piece in enumerate(split(part["text"])):
        own = part["logprobs"][i : i + 1]
        events.append(
            {"type": "response.output_text.delta", "delta": piece, "logprobs": own} | where
        )
    events += [
        {"type": "response.output_text.done", "text": part["text"], "logprobs": []} | where,
        {"type": "response.content_part.done", "part": part} | where,
        {"type": "response.output_item.done", "item": message} | where,
        {"type": "response.completed", "response": whole},
    ]
    for number, event in enumerate(events):
        yield event | {"sequence_number": number}


ENDPOINTS = {
    "/chat/completions": (chat, chat_chunks),
    "/completions": (completion, completion_chunks),
    "/responses": (response, response_events),
}


class Server(LoopbackServer):
    """Answers as OpenAI's API does."""

    def __init__(self) -> None:
        super().__init__()
        self.requests: list[tuple[str, dict[str, Any]]] = []
        self._seen: Counter[str] = Counter()

    @property
    def sent(self) -> dict[str, Any]:
        """The body of the last request."""
        return self.requests[-1][1]

    async def answer(self, head: bytes, body: bytes, writer: asyncio.StreamWriter) -> None:
        path = path_of(head).lower().partition("?")[0]
        path = "/" + path.partition("/v1/")[2] if "/v1/" in path else path
        asked = json.loads(body or b"{}")
        self.requests.append((path, asked))
        await self._answer(path, asked, writer)

    async def _answer(self, path: str, body: Any, writer: asyncio.StreamWriter) -> None:
        path = "/chat/completions" if path.endswith("/chat/completions") else path  # Azure's
        prompt = prompt_of(body)
        self._seen[prompt] += 1
        if path not in ENDPOINTS:
            self._send(writer, 200, {"object": "list", "data": []})
        elif "flaky" in prompt and self._seen[prompt] == 1:
            self._send(writer, 500, {"error": {"message": "busy"}})
        elif "unrelated" in prompt:
            self._send(writer, 400, {"error": {"message": "messages: too long"}})
        elif "reasoner" in body["model"] and (
            body.get("logprobs") or body.get("top_logprobs") or body.get("include")
        ):
            status = int(body["model"].removeprefix("reasoner-"))
            error = {"message": "You are not allowed to request logprobs from this model"}
            self._send(writer, status, {"error": error})
        elif "nojson" in prompt:
            self._send(writer, 200, None)
        elif body.get("stream"):
            await self._stream(writer, path, body)
        else:
            self._send(writer, 200, ENDPOINTS[path][0](body))
        await writer.drain()

    def _send(self, writer: asyncio.StreamWriter, status: int, payload: object) -> None:
        data = b"hello" if payload is None else json.dumps(payload).encode()
        headers = HEADERS | ({"content-type": "text/plain"} if payload is None else {})
        headers |= {"content-length": str(len(data))}
        self._begin(writer, status, headers)
        writer.write(data)

    def _begin(self, writer: asyncio.StreamWriter, status: int, headers: dict[str, str]) -> None:
        lines = [f"HTTP/1.1 {status} x", *(f"{k}: {v}" for k, v in headers.items()), "", ""]
        writer.write("\r\n".join(lines).encode())

    async def _stream(self, writer: asyncio.StreamWriter, path: str, body: Any) -> None:
        self._begin(
            writer, 200, {"content-type": "text/event-stream", "transfer-encoding": "chunked"}
        )
        prompt = prompt_of(body)
        for i, payload in enumerate(ENDPOINTS[path][1](body)):
            event = f"event: {payload['type']}\n" if path == "/responses" else ""
            self._chunk(writer, f"{event}data: {json.dumps(payload)}\n\n")
            if i == 3 and "drop" in prompt:
                writer.transport.abort()
                raise ConnectionError
        if path != "/responses" and "cut" not in prompt:
            self._chunk(writer, "data: [DONE]\n\n")
        self._chunk(writer, "")

    def _chunk(self, writer: asyncio.StreamWriter, text: str) -> None:
        data = text.encode()
        writer.write(b"%x\r\n%s\r\n" % (len(data), data))
