"""The gateway as an application of aiohttp: routes, the check of the key, the end."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from hmac import compare_digest
from time import perf_counter
from typing import Any

from aiohttp import web
from aiohttp.http import SERVER_SOFTWARE

from gatekeeper.errors import BadInputError
from gatekeeper.gate import VerificationGate
from gatekeeper.gateway import results
from gatekeeper.gateway.calls import read_call
from gatekeeper.gateway.gated import GatedCalls
from gatekeeper.gateway.logprobs import endpoint_of
from gatekeeper.gateway.metrics import CONTENT_TYPE, Metrics
from gatekeeper.gateway.outputs import Outputs
from gatekeeper.gateway.refusal import RefusalError
from gatekeeper.gateway.settings import GatewaySettings
from gatekeeper.gateway.tasks import Tasks
from gatekeeper.gateway.upstream import CutError, Upstream, pieces_of
from gatekeeper.limits import MAX_LINE
from gatekeeper.page.application import LivePage

__all__ = ["MAX_BODY", "Gateway"]

MAX_BODY = MAX_LINE  # bytes of a request for outputs, which is read; others pass in any size
KEY_HEADER = "x-gatekeeper-key"


class Gateway:
    """A gate between callers and an API of OpenAI's kind.

    Parameters
    ----------
    gate : VerificationGate
        With `on_unavailable="pass"`. It stays the caller's to close.
    tasks : Tasks
    settings : GatewaySettings
    metrics : Metrics
    page : LivePage or None
        Of the gate's log.
    """

    def __init__(
        self,
        gate: VerificationGate,
        tasks: Tasks,
        settings: GatewaySettings,
        metrics: Metrics,
        page: LivePage | None = None,
    ) -> None:
        self._gate, self._tasks, self._settings = gate, tasks, settings
        self._metrics, self._outputs = metrics, Outputs(gate, metrics)
        self._page = page
        self._under_way = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self._draining = False

    def application(self) -> web.Application:
        """The application; made once."""
        app = web.Application(client_max_size=MAX_BODY, middlewares=[self._around])
        app.add_routes(
            [
                web.get("/gatekeeper/healthz", self._healthz),
                web.get("/gatekeeper/metrics", self._show_metrics),
                web.get("/gatekeeper/results/{id:.+}", self._show_result),
                web.put("/gatekeeper/tasks/{id:.+}", self._put_task),
                *(() if self._page is None else self._page.routes()),
                web.route("*", "/{path:.*}", self._pass),
            ]
        )
        app.cleanup_ctx.append(self._connected)
        app.on_response_prepare.append(_remove_server_header)
        if self._page is not None:
            app.on_shutdown.append(self._page.end)
        return app

    async def drain(self) -> None:
        """Wait for the answers under way, then for verifications, as long as settings say."""
        self._draining = True
        if self._page is not None:
            await self._page.end()
        await self._idle.wait()
        await self._outputs.drain(self._settings.grace)

    async def _connected(self, app: web.Application) -> AsyncIterator[None]:
        self._upstream = Upstream(self._settings)
        self._calls = GatedCalls(self._upstream, self._outputs, self._metrics)
        await self._outputs.resume(self._tasks)
        yield
        await self._outputs.drain(0.0)
        await self._upstream.close()

    # -- around every request ---------------------------------------------------------------------

    @web.middleware
    async def _around(self, request: web.Request, handler: Any) -> web.StreamResponse:
        self._under_way += 1
        self._idle.clear()
        try:
            self._check_key(request)
            response: web.StreamResponse = await handler(request)
        except RefusalError as error:
            self._metrics.answered(endpoint_of(request.path) or "other", error.status)
            response = error.response()
        except web.HTTPRequestEntityTooLarge:
            response = RefusalError(
                413, "body_too_large", f"a request for outputs may have {MAX_BODY >> 20} MiB"
            ).response()
        except CutError:
            # As the upstream's connection did, the caller's ends before the answer does.
            if request.transport is not None:
                request.transport.close()
            raise asyncio.CancelledError from None
        finally:
            self._under_way -= 1
            if not self._under_way:
                self._idle.set()
        if self._draining and not response.prepared:
            response.force_close()
        return response

    def _check_key(self, request: web.Request) -> None:
        key = self._settings.own_key
        if key is None or request.path == "/gatekeeper/healthz":
            return
        if self._page is not None and self._page.is_own(request.path):
            return  # a browser sends no such header: the page asks for its token
        given = request.headers.get(KEY_HEADER, "")
        if not compare_digest(given.encode("utf-8", "surrogateescape"), key.encode()):
            raise RefusalError(
                401, "invalid_gatekeeper_key", f"send the gateway's key in the header {KEY_HEADER}"
            )

    # -- requests that pass -----------------------------------------------------------------------

    async def _pass(self, request: web.Request) -> web.StreamResponse:
        begun = perf_counter()
        endpoint = endpoint_of(request.path) if request.method == "POST" else None
        if endpoint is None:
            return await self._forward(request)
        body = await request.read()
        call = read_call(endpoint, body, request.headers, tasks=self._tasks, usual=self._settings)
        if call is None:
            return await self._forward(request, body)
        return await self._calls.answer(request, call, begun)

    async def _forward(self, request: web.Request, read: bytes | None = None) -> web.StreamResponse:
        """Pass a request and its answer on, byte for byte."""
        body: Any = read
        if read is None and request.can_read_body:
            body = request.content
        async with self._upstream.answer(request, body, plain=False) as answer:
            headers = self._upstream.headers(answer)
            response = web.StreamResponse(
                status=answer.status, reason=answer.reason, headers=headers
            )
            await response.prepare(request)
            self._metrics.answered("other", answer.status)
            async for piece in pieces_of(answer):
                await response.write(piece)
            await response.write_eof()
            return response

    # -- the gateway's own paths ------------------------------------------------------------------

    async def _healthz(self, request: web.Request) -> web.Response:
        status = self._gate.status()
        state = "draining" if self._draining else "ok"
        found = {"status": state, "health": status.health, "phase": status.phase}
        return web.json_response(found, status=503 if self._draining else 200)

    async def _show_metrics(self, request: web.Request) -> web.Response:
        return web.Response(body=self._metrics.text(), headers={"content-type": CONTENT_TYPE})

    async def _show_result(self, request: web.Request) -> web.Response:
        id_ = request.match_info["id"]
        found = results.find(self._gate, id_)
        if found is None:
            raise RefusalError(
                404, "unknown_output", f"output {id_!r:.80} is unknown: it was never decided on"
            )
        return web.json_response(found)

    async def _put_task(self, request: web.Request) -> web.Response:
        try:
            task = json.loads(await request.read())
        except ValueError as error:
            raise RefusalError(400, "invalid_task", f"the task is not JSON: {error}") from None
        try:
            is_new = self._tasks.put(request.match_info["id"], task)
        except BadInputError as error:
            raise RefusalError(400, "invalid_task", str(error)) from None
        return web.Response(status=201 if is_new else 204)


async def _remove_server_header(request: web.Request, response: web.StreamResponse) -> None:
    """Remove the header `Server` that aiohttp adds where the upstream sent none."""
    if response.headers.get("Server") == SERVER_SOFTWARE:
        del response.headers["Server"]
