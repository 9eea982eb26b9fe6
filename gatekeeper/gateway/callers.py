"""Connections of callers: the server beneath the gateway's application.

A request that is not HTTP is refused without a quotation of it: aiohttp's own answer, and its line
in the program's log, have the bytes that it could not read, which may be an Authorization.

Requests that are forwarded do not go through aiohttp's router, whose time is a tenth of what the
gateway adds to a stream's first frame (benchmarks/gateway.py).
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from aiohttp import web
from aiohttp.http import SERVER_SOFTWARE, StreamWriter

from gatekeeper.gateway.refusal import RefusalError

__all__ = ["KEEP", "MAX_HEADER", "OWN_PATH", "CallersRunner", "Handler", "drop", "taken"]

MAX_HEADER = 1 << 16  # bytes of a header or of a path, as most servers allow
# Seconds in which the head of a request has to come, also of the next one. Clients keep an idle
# connection for less (Go's for 90): a request on its way would be lost when it is closed.
KEEP = 120.0
OWN_PATH = "/gatekeeper"  # where the gateway's own paths begin
LOG = logging.getLogger("gatekeeper")

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
_AnyHandler = Callable[[Any], Awaitable[web.StreamResponse]]


class CallersRunner(web.AppRunner):
    """The runner of an application.

    Parameters
    ----------
    app : web.Application
    forward : Handler
        For all paths that are not the application's own. The application also has it as its last
        route, for what needs aiohttp's router: middlewares of an instrumented server, `Expect`.
    **options
        As of `web.AppRunner`.
    """

    def __init__(self, app: web.Application, *, forward: Handler, **options: Any) -> None:
        super().__init__(app, **options)
        self._forward = forward

    async def _make_server(self) -> web.Server:
        server = await super()._make_server()
        server.__class__ = _Server  # aiohttp has no argument for these classes
        make_request: Any = server.request_factory
        server.request_factory = partial(make_request, _cls=_Request)
        if not self.app.middlewares:
            server.request_handler = _directly(self._forward, server.request_handler)
        return server


def _directly(forward: _AnyHandler, route: _AnyHandler) -> _AnyHandler:
    """Forward a request, unless it needs the router."""

    async def handle(request: Any) -> web.StreamResponse:
        path = request.path
        is_own = path.startswith(OWN_PATH) or not path.startswith("/")
        if not (is_own or "Expect" in request.headers):
            return await forward(request)
        try:
            return await route(request)
        except web.HTTPException as error:  # of the router
            why = (error.text or error.reason).removeprefix(f"{error.status}: ")
            message = f"{request.method} {path!r:.80}: {why}"
            return RefusalError(error.status, "not_routed", message).response()

    return handle


class _Request(web.Request):
    async def _prepare_hook(self, response: web.StreamResponse) -> None:
        """Remove the headers that aiohttp adds where the upstream sent none."""
        await super()._prepare_hook(response)
        headers, sent = response.headers, getattr(response, "of_upstream", None)
        if sent is None:  # an answer of the gateway's own
            if headers.get("Server") == SERVER_SOFTWARE:
                del headers["Server"]
            return
        for name in ("Server", "Content-Type"):
            if name not in sent:
                headers.popall(name, None)


class _Server(web.Server):
    def __call__(self) -> web.RequestHandler:
        return _Connection(self, loop=self._loop, **self._kwargs)


class _Connection(web.RequestHandler):
    __slots__ = ()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """The answer to a request that aiohttp cannot read (400), or that was not answered."""
        if status != 400:
            super().handle_error(request, status, exc, message)  # logs it
            error = RefusalError(500, "internal_error", "an error of the gateway; its log has it")
            return _last(error.response())
        why = (
            "the head of the request is not HTTP/1.1, or has a line above "
            f"{MAX_HEADER >> 10} KiB or too many headers (aiohttp reads 128)"
        )
        LOG.warning("gatekeeper: %s: %s (%s)", request.remote, why, type(exc).__name__)
        return _last(RefusalError(400, "invalid_http", why).response())


def _last(response: web.Response) -> web.Response:
    """The last answer of a connection."""
    response.force_close()
    return response


def taken(request: web.Request) -> int | None:
    """Bytes of the answer that have left this process, 0 while the request has not arrived, and
    None while no bytes are waiting to leave.
    """
    if not request.content.is_eof():
        return 0
    transport, writer = request.transport, request.writer
    if transport is None or not isinstance(writer, StreamWriter):
        return None
    waiting = transport.get_write_buffer_size()
    return writer.output_size - waiting if waiting else None


def drop(request: web.Request) -> None:
    """End the caller's connection, without what is waiting."""
    if request.transport is not None:
        request.transport.abort()
