"""The upstream of benchmarks/gateway.py: one answer and one stream, the same for every call."""

from __future__ import annotations

import asyncio
import json
import socket
from typing import Any

import numpy as np

__all__ = ["ALTERNATIVES", "TOKENS", "run_upstream", "whole"]

TOKENS, ALTERNATIVES = 128, 5
STREAMED = 16  # tokens of a stream: its first frame is what is measured
PACE = 0.001  # seconds between the frames of a stream


def entries() -> list[dict[str, Any]]:
    rng = np.random.default_rng(0)
    found = []
    for i, row in enumerate(
        np.sort(-rng.exponential(4.0, (TOKENS, ALTERNATIVES)))[:, ::-1].round(6)
    ):
        names = [f" w{i % 97}{'abcde'[j]}" for j in range(ALTERNATIVES)]
        top = [
            {"token": name, "logprob": value, "bytes": list(name.encode())}
            for name, value in zip(names, row.tolist(), strict=True)
        ]
        found.append({**top[0], "top_logprobs": top})
    return found


def head(kind: str) -> dict[str, Any]:
    return {"id": "chatcmpl-1", "object": kind, "created": 1, "model": "m"}


def compact(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def whole() -> bytes:
    content = entries()
    text = "".join(entry["token"] for entry in content)
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": text, "refusal": None},
        "logprobs": {"content": content, "refusal": None},
        "finish_reason": "stop",
    }
    usage = {"prompt_tokens": 20, "completion_tokens": TOKENS, "total_tokens": TOKENS + 20}
    return compact(head("chat.completion") | {"choices": [choice], "usage": usage})


def frames() -> list[bytes]:
    found = []
    for entry in [*entries()[:STREAMED], None]:
        choice = {
            "index": 0,
            "delta": {"content": entry["token"]} if entry else {},
            "logprobs": {"content": [entry]} if entry else None,
            "finish_reason": None if entry else "stop",
        }
        chunk = head("chat.completion.chunk") | {"choices": [choice]}
        found.append(b"data: %s\n\n" % compact(chunk))
    return [*found, b"data: [DONE]\n\n"]


def run_upstream(listener: socket.socket) -> None:
    plain, parts = whole(), frames()
    answer = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s"
    answer %= len(plain), plain
    begin = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
    begin += b"transfer-encoding: chunked\r\n\r\n"

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # asyncio sets TCP_NODELAY only on sockets that it has made itself
        accepted = writer.get_extra_info("socket")
        accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            while True:
                top = (await reader.readuntil(b"\r\n\r\n")).lower()
                size = int(top.partition(b"content-length:")[2].split(b"\r\n")[0] or 0)
                if b'"stream": true' not in await reader.readexactly(size):
                    writer.write(answer)
                    continue
                writer.write(begin)
                for part in parts:
                    writer.write(b"%x\r\n%s\r\n" % (len(part), part))
                    await asyncio.sleep(PACE)
                writer.write(b"0\r\n\r\n")
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    async def main() -> None:
        server = await asyncio.start_server(handle, sock=listener)
        await server.serve_forever()

    asyncio.run(main())
