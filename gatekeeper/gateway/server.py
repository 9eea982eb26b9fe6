"""Serve a gateway until SIGTERM."""

from __future__ import annotations

import asyncio
import gc
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from aiohttp import web

from gatekeeper.errors import BadInputError
from gatekeeper.gateway.application import Gateway

__all__ = ["runner_of", "serve"]

BACKLOG = 2048  # connections that may wait to be accepted


async def serve(
    gateway: Gateway, *, host: str, port: int, on_ready: Callable[[str], None] = lambda url: None
) -> None:
    """Listen until SIGTERM; then deliver the answers under way, and end verifications.

    A second SIGTERM ends at once. Called in the main thread.

    Parameters
    ----------
    gateway : Gateway
    host : str
        An address of this machine, or a name of it.
    port : int
        0 picks a free one.
    on_ready : callable
        Called with the URL when the gateway listens.

    Raises
    ------
    BadInputError
        If it cannot listen there.
    """
    runner = runner_of(gateway)
    with _terminations() as terminated:
        await runner.setup()
        try:
            site = web.TCPSite(runner, host, port, backlog=BACKLOG)
            try:
                await site.start()
            except OSError as error:
                raise BadInputError(f"cannot listen on {host!r}, port {port}: {error}") from None
            on_ready(_url(runner))
            # The garbage collector would visit all earlier objects again and again, which takes
            # half of the time of parsing an answer: benchmarks/gateway.py.
            gc.freeze()
            await terminated.get()
            await site.stop()
            drained = asyncio.create_task(gateway.drain())
            again = asyncio.create_task(terminated.get())
            await asyncio.wait({drained, again}, return_when=asyncio.FIRST_COMPLETED)
            for task in (drained, again):
                task.cancel()
        finally:
            gc.unfreeze()
            await runner.cleanup()


def runner_of(gateway: Gateway) -> web.AppRunner:
    """The runner of a gateway's application, to be set up once."""
    return web.AppRunner(
        gateway.application(),
        access_log=None,
        auto_decompress=False,  # a compressed request passes as it is
        handler_cancellation=True,  # a caller that is gone ends its call upstream
        shutdown_timeout=1.0,
    )


def _url(runner: web.AppRunner) -> str:
    host, port, *_ = runner.addresses[0]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


@contextmanager
def _terminations() -> Iterator[asyncio.Queue[None]]:
    """SIGTERMs as items of a queue.

    Not by the loop's `add_signal_handler`, which takes the wake-up descriptor that Ctrl-C needs:
    see `programs.interrupt`.
    """
    loop, queue = asyncio.get_running_loop(), asyncio.Queue[None]()

    def handle(*_: object) -> None:
        loop.call_soon_threadsafe(queue.put_nowait, None)

    before = signal.signal(signal.SIGTERM, handle)
    try:
        yield queue
    finally:
        signal.signal(signal.SIGTERM, before)
