"""A server for the page alone, until Ctrl-C or SIGTERM."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable

from aiohttp import web
from aiohttp.http import SERVER_SOFTWARE

from gatekeeper.listening import BACKLOG, listening_sockets, url_of
from gatekeeper.page.application import PATH, LivePage

__all__ = ["serve_page"]


async def serve_page(
    page: LivePage, *, host: str, port: int, on_ready: Callable[[str], None]
) -> None:
    """Listen until SIGTERM. Called in the main thread.

    Parameters
    ----------
    page : LivePage
    host : str
        An address of this machine, or a name of it.
    port : int
        0 picks a free one.
    on_ready : callable
        Called with the page's URL when it can be opened.

    Raises
    ------
    BadInputError
        If it cannot listen there.
    """
    app = web.Application()
    app.add_routes([*page.routes(), web.get("/", _to_page)])
    app.on_response_prepare.append(_unsigned)
    app.on_shutdown.append(page.end)
    runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=1.0)
    loop, terminated = asyncio.get_running_loop(), asyncio.Event()
    sockets = listening_sockets(host, port)
    before = signal.signal(signal.SIGTERM, lambda *_: loop.call_soon_threadsafe(terminated.set))
    try:
        await runner.setup()
        for each in sockets:
            await web.SockSite(runner, each, backlog=BACKLOG).start()
        on_ready(f"{url_of(sockets)}{PATH}")
        await terminated.wait()
    finally:
        signal.signal(signal.SIGTERM, before)
        await runner.cleanup()
        for each in sockets:
            each.close()


async def _to_page(request: web.Request) -> web.StreamResponse:
    raise web.HTTPFound(PATH)


async def _unsigned(request: web.Request, response: web.StreamResponse) -> None:
    if response.headers.get("Server") == SERVER_SOFTWARE:
        del response.headers["Server"]
