"""A server on loopback, in a thread of its own, while it is entered."""

from __future__ import annotations

import asyncio
import threading
from typing import Self

PATIENCE = 300.0  # seconds: only against hanging for ever, on a loaded machine


class LoopbackServer:
    """Kept-alive HTTP/1.1 connections, whose requests a subclass answers.

    Parameters
    ----------
    port
        0 picks a free one.
    """

    def __init__(self, port: int = 0) -> None:
        self.port = port
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(PATIENCE)
        return self

    def __exit__(self, *exception: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(PATIENCE)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    async def answer(self, head: bytes, body: bytes, writer: asyncio.StreamWriter) -> None:
        """Answer one request. ConnectionError ends the connection."""
        raise NotImplementedError

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
                body = await reader.readexactly(int(header_of(head, "content-length") or 0))
                await self.answer(head, body, writer)
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            writer.close()


def path_of(head: bytes) -> str:
    return head.split(b" ", 2)[1].decode()


def header_of(head: bytes, name: str) -> str | None:
    """The value of a header; its name in lower case."""
    for line in head.split(b"\r\n")[1:]:
        key, _, value = line.partition(b":")
        if key.decode().lower() == name:
            return value.strip().decode()
    return None
