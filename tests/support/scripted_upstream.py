"""An HTTP server that records what arrives on the wire and answers with scripted bytes."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

PATIENCE = 120.0  # seconds: only against hanging for ever

CUT = "cut"  # in a script: the connection is reset
Script = Sequence[bytes | float | str]  # bytes to send, seconds to wait, CUT


class Request(NamedTuple):
    head: bytes
    body: bytes

    @property
    def path(self) -> str:
        return self.head.split(b" ", 2)[1].decode()

    def header(self, name: str) -> str | None:
        for line in self.head.split(b"\r\n")[1:]:
            key, _, value = line.partition(b":")
            if key.decode().lower() == name:
                return value.strip().decode()
        return None


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


def completion(text: str = "7", *, tokens: int = 1, logprobs: bool = True) -> dict[str, Any]:
    """A chat completion."""
    other = {"token": "?", "bytes": [63], "logprob": -1.5}
    entry = {"token": text, "bytes": list(text.encode()), "logprob": -0.25}
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


class ScriptedUpstream:
    """Listens on loopback, in a thread of its own, while it is entered; port 0 picks a free one."""

    def __init__(self, script: Callable[[Request], Script], *, port: int = 0) -> None:
        self.requests: list[Request] = []
        self.port = port
        self.script = script
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)

    def __enter__(self) -> ScriptedUpstream:
        self._thread.start()
        assert self._ready.wait(PATIENCE)
        return self

    def __exit__(self, *exception: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(PATIENCE)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def wire(self) -> bytes:
        """All that has arrived."""
        return b"".join(request.head + request.body for request in self.requests)

    @property
    def sent(self) -> Any:
        """The body of the last request."""
        return json.loads(self.requests[-1].body)

    async def _serve(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        server = await asyncio.start_server(self._handle, "127.0.0.1", self.port, backlog=2000)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._stop.wait()
        server.close()
        handlers = asyncio.all_tasks() - {asyncio.current_task()}
        for handler in handlers:
            handler.cancel()
        await asyncio.gather(*handlers, return_exceptions=True)
        await asyncio.sleep(0.01)  # for the transports to close

    async def _handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                size = Request(head, b"").header("content-length")
                body = await reader.readexactly(int(size or 0))
                self.requests.append(Request(head, body))
                for step in self.script(self.requests[-1]):
                    if isinstance(step, bytes):
                        writer.write(step)
                        await writer.drain()
                    elif step == CUT:
                        await asyncio.sleep(0.05)  # for what was sent to arrive before the reset
                        writer.transport.abort()
                        return
                    else:
                        await asyncio.sleep(float(step))
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            writer.close()
