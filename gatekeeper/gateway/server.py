"""Serve a gateway until SIGTERM."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Sequence
from socket import socket

from aiohttp import web

from gatekeeper.gateway.application import Gateway
from gatekeeper.gateway.callers import KEEP, MAX_HEADER, CallersRunner
from gatekeeper.gateway.termination import Termination
from gatekeeper.listening import BACKLOG, url_of

__all__ = ["runner_of", "serve"]


async def serve(
    gateway: Gateway,
    sockets: Sequence[socket],
    *,
    termination: Termination,
    on_ready: Callable[[str], None] = lambda url: None,
) -> None:
    """Serve until SIGTERM; then deliver the answers in progress, and end verifications.

    A second SIGTERM ends at once.

    Parameters
    ----------
    gateway : Gateway
    sockets : sequence of socket
        That listen; closed at the end.
    termination : Termination
        Entered before the gates of the gateway were opened.
    on_ready : callable
        Called with the URL when the gateway serves.
    """
    runner = runner_of(gateway)
    with termination.events() as (in_time, at_once):
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
    return CallersRunner(
        gateway.application(),
        forward=gateway.forward,
        keepalive_timeout=KEEP,
        max_line_size=MAX_HEADER,
        max_field_size=MAX_HEADER,
        access_log=None,
        auto_decompress=False,  # a compressed request is forwarded unchanged
        handler_cancellation=True,  # a disconnected caller ends its upstream request
        shutdown_timeout=1.0,
    )
