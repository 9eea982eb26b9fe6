"""An HTTP server that records what arrives on the wire and answers with scripted bytes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from loopback import LoopbackServer, header_of, path_of

CUT = "cut"  # in a script: the connection is reset
Script = Iterable[bytes | float | str]  # bytes to send, seconds to wait, CUT


class Request(NamedTuple):
    head: bytes
    body: bytes

    @property
    def path(self) -> str:
        return path_of(self.head)

    def header(self, name: str) -> str | None:
        return header_of(self.head, name)


def reply(
    body: bytes, *, status: str = "200 OK", headers: Sequence[str] = (), kind: str = ""
) -> bytes:
    """A whole answer."""
    lines = [
        f"HTTP/1.1 {status}",
        f"content-type: {kind or 'application/json'}",
        f"content-length: {len(body)}",
        *headers,
    ]
    return "\r\n".join([*lines, "", ""]).encode() + body


def event_stream(*pieces: bytes | float | str, ends: bool = True) -> list[bytes | float | str]:
    """A stream in chunks, with waits between them."""
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\n"
    script: list[bytes | float | str] = [head + b"transfer-encoding: chunked\r\n\r\n"]
    for piece in pieces:
        is_data = isinstance(piece, bytes)
        script.append(b"%x\r\n%s\r\n" % (len(piece), piece) if is_data else piece)  # type: ignore
    return [*script, b"0\r\n\r\n"] if ends else script


def completion(
    text: str = "7", *, tokens: int = 1, logprobs: bool = True, logprob: float = -0.25
) -> dict[str, Any]:
    """A chat completion."""
    other = {"token": "?", "bytes": [63], "logprob": -1.5}
    entry = {"token": text, "bytes": list(text.encode()), "logprob": logprob}
    entry = entry | {"top_logprobs": [entry, other]}
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": text, "refusal": None},
        "logprobs": {"content": [entry] * tokens, "refusal": None} if logprobs else None,
        "finish_reason": "stop",
    }
    head = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "m"}
    usage = {"prompt_tokens": 3, "completion_tokens": tokens, "total_tokens": 3 + tokens}
    return head | {"choices": [choice], "usage": usage}


class ScriptedUpstream(LoopbackServer):
    """Answers each request with the bytes of a script."""

    def __init__(self, script: Callable[[Request], Script], *, port: int = 0) -> None:
        super().__init__(port)
        self.requests: list[Request] = []
        self.script = script

    @property
    def wire(self) -> bytes:
        """All bytes that have arrived."""
        return b"".join(request.head + request.body for request in self.requests)

    @property
    def sent(self) -> Any:
        """The body of the last request."""
        return json.loads(self.requests[-1].body)

    async def answer(self, head: bytes, body: bytes, writer: asyncio.StreamWriter) -> None:
        request = Request(head, body)
        self.requests.append(request)
        for step in self.script(request):
            if isinstance(step, bytes):
                writer.write(step)
                await writer.drain()
            elif step == CUT:
                await asyncio.sleep(0.05)  # for what was sent to arrive before the reset
                writer.transport.abort()
                raise ConnectionError
            else:
                await asyncio.sleep(float(step))
