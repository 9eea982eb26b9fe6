"""Connections of callers: a request that is not HTTP is refused without a quotation of it.

aiohttp's own answer, and its line in the program's log, quote the bytes that it could not read,
which may be an Authorization.
"""

from __future__ import annotations

import logging

from aiohttp import web

from gatekeeper.gateway.refusal import RefusalError

__all__ = ["MAX_HEADER", "CallersRunner"]

MAX_HEADER = 1 << 16  # bytes of a header or of a path, as most servers allow
LOG = logging.getLogger("gatekeeper")


class CallersRunner(web.AppRunner):
    """An `AppRunner` for such connections."""

    async def _make_server(self) -> web.Server:
        server = await super()._make_server()
        server.__class__ = _Server  # aiohttp has no argument for the class of a connection
        return server


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
            return super().handle_error(request, status, exc, message)
        why = f"the head of the request is not HTTP/1.1, or has a line above {MAX_HEADER >> 10} KiB"
        LOG.warning("gatekeeper: %s: %s (%s)", request.remote, why, type(exc).__name__)
        response = RefusalError(400, "invalid_http", why).response()
        response.force_close()
        return response
