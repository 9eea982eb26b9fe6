"""Serve a gateway until SIGTERM."""

from __future__ import annotations

import asyncio
import gc
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Connection
from socket import socket

from aiohttp import web

from gatekeeper.gateway.application import Gateway
from gatekeeper.gateway.listening import BACKLOG, url_of

__all__ = ["runner_of", "serve"]


async def serve(
    gateway: Gateway,
    sockets: Sequence[socket],
    *,
    on_ready: Callable[[str], None] = lambda url: None,
    supervisor: Connection | None = None,
) -> None:
    """Serve until SIGTERM; then deliver the answers in progress, and end verifications.

    A second SIGTERM ends at once. Called in the main thread.

    Parameters
    ----------
    gateway : Gateway
    sockets : sequence of socket
        That listen; closed at the end.
    on_ready : callable
        Called with the URL when the gateway serves.
    supervisor : Connection or None
        Channel to the parent process, if there is one: the server ends when the channel does, and
        SIGTERM may come more than once.
    """
    runner = runner_of(gateway)
    with _endings(supervisor) as (in_time, at_once):
        await runner.setup()
        try:
            sites = [web.SockSite(runner, each, backlog=BACKLOG) for each in sockets]
            for site in sites:
                await site.start()
            on_ready(url_of(sockets))
            # The garbage collector would visit all earlier objects again and again, which takes
            # half of the time of parsing an answer: benchmarks/gateway.py.
            gc.freeze()
            await in_time.wait()
            for site in sites:
                await site.stop()
            drained = asyncio.create_task(gateway.drain())
            given_up = asyncio.create_task(at_once.wait())
            await asyncio.wait({drained, given_up}, return_when=asyncio.FIRST_COMPLETED)
            for task in (drained, given_up):
                task.cancel()
        finally:
            gc.unfreeze()
            await runner.cleanup()


def runner_of(gateway: Gateway) -> web.AppRunner:
    """The runner of a gateway's application, to be set up once."""
    return web.AppRunner(
        gateway.application(),
        access_log=None,
        auto_decompress=False,  # a compressed request is forwarded unchanged
        handler_cancellation=True,  # a disconnected caller ends its upstream request
        shutdown_timeout=1.0,
    )


@contextmanager
def _endings(supervisor: Connection | None) -> Iterator[tuple[asyncio.Event, asyncio.Event]]:
    """Two events: the process should end, and it should end at once.

    Not by the loop's `add_signal_handler`, which takes the wake-up descriptor that Ctrl-C needs:
    see `programs.interrupt`.
    """
    loop, in_time, at_once = asyncio.get_running_loop(), asyncio.Event(), asyncio.Event()

    def terminate() -> None:
        if in_time.is_set() and supervisor is None:
            at_once.set()
        in_time.set()

    def lose(channel: Connection) -> None:
        loop.remove_reader(channel)
        at_once.set()
        in_time.set()

    if supervisor is not None:
        loop.add_reader(supervisor, lose, supervisor)
    before = signal.signal(signal.SIGTERM, lambda *_: loop.call_soon_threadsafe(terminate))
    try:
        yield in_time, at_once
    finally:
        signal.signal(signal.SIGTERM, before)
        if supervisor is not None:
            loop.remove_reader(supervisor)
