"""The gateway as an application of aiohttp: routes, the check of the key, the end."""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from hmac import compare_digest
from ipaddress import ip_address
from time import perf_counter
from typing import Any
from urllib.parse import unquote, urlsplit

from aiohttp import hdrs, web

from gatekeeper.adapters.openai.logprobs import endpoint_of
from gatekeeper.errors import BadInputError, LogError
from gatekeeper.gateway import results
from gatekeeper.gateway.answer_edit import object_of
from gatekeeper.gateway.bodies import Bodies, arrived
from gatekeeper.gateway.callers import OWN_PATH, Handler, drop, taken
from gatekeeper.gateway.calls import TASK_HEADER, check_unread, read_call
from gatekeeper.gateway.metrics import CONTENT_TYPE, Metrics
from gatekeeper.gateway.refusal import RefusalError
from gatekeeper.gateway.route import Route
from gatekeeper.gateway.routes import Routes
from gatekeeper.gateway.tasks import Tasks
from gatekeeper.gateway.trace_context import callers_span
from gatekeeper.gateway.upstream import CutError, PassedResponse, pieces_of

__all__ = ["Gateway"]

STALLED = 10.0  # seconds in which a caller takes nothing, or its request does not arrive: the end
LOG = logging.getLogger("gatekeeper")
KEY_HEADER = "x-gatekeeper-key"
DOTS = re.compile(r"[/\\]\.\.?(?:[/\\]|$)")  # as a part of a path; some servers read \ as /
OWN_NAME = OWN_PATH.strip("/")  # as a part of a path


class Gateway:
    """A gate, or one for each route, between callers and an OpenAI-compatible API.

    Parameters
    ----------
    route : Route
        The gateway's own: for all calls that no other route takes, and those that are not gated.
        Its settings `own_key`, `grace` and `traced` are the gateway's.
    tasks : Tasks
    others : sequence of Route
        For some models each; the first that fits counts.
    worker : int or None
        The number of this process, if there are several behind one port.

    Attributes
    ----------
    forward : Handler
        Answers all requests for paths that are not the gateway's own.
    """

    def __init__(
        self,
        route: Route,
        tasks: Tasks,
        others: Sequence[Route] = (),
        *,
        worker: int | None = None,
    ) -> None:
        self._given, self._tasks, self._settings = [route, *others], tasks, route.settings
        self._metrics, self._worker = Metrics(self._given, worker=worker), worker
        self._pages = [each.page for each in self._given if each.page is not None]
        self._under_way: dict[int, web.Request] = {}  # by `id`; requests have no hash
        self._idle = asyncio.Event()
        self._idle.set()
        self._draining = False
        self._bodies = Bodies()
        self._check: Callable[[web.Request], None] | None = None
        if self._settings.own_key is not None:
            self._check = partial(_check_key, key=self._settings.own_key)
        elif any(each.settings.upstream_key is not None for each in self._given):
            self._check = _check_site
        self.forward = self._around(self._pass, asks_key=True)

    def application(self) -> web.Application:
        """The application; made once."""
        app = web.Application()
        # A middleware would be around every handler, too, but later: benchmarks/gateway.py.
        ask = partial(self._around, asks_key=True)
        do_not_ask = partial(self._around, asks_key=False)
        app.add_routes(
            [
                web.get("/gatekeeper/healthz", do_not_ask(self._healthz)),
                web.get("/gatekeeper/metrics", ask(self._show_metrics)),
                web.get("/gatekeeper/results/{id:.+}", ask(self._show_result)),
                web.put("/gatekeeper/tasks/{id:.+}", ask(self._put_task)),
            ]
        )
        # A browser sends no such header: the pages require their token.
        app.add_routes(
            web.RouteDef(route.method, route.path, do_not_ask(route.handler), route.kwargs)
            for page in self._pages
            for route in page.routes()
        )
        # Nothing below its own paths is forwarded: it may have a task, or a page's cookie.
        app.add_routes([web.route("*", f"{OWN_PATH}/{{path:.*}}", do_not_ask(self._unknown))])
        app.add_routes([web.route("*", "/{path:.*}", self.forward)])
        app.cleanup_ctx.append(self._connected)
        app.on_shutdown.extend(page.end for page in self._pages)
        return app

    async def drain(self) -> None:
        """Wait for answers in progress, then for verifications, as long as the settings allow."""
        self._draining = True
        for page in self._pages:
            await page.end()
        await self._delivered()
        await self._routes.drain(self._settings.grace)

    async def _delivered(self) -> None:
        """Wait for answers in progress, but not for callers that take nothing of theirs, nor for
        those that are still sending their requests.
        """
        before: dict[int, int | None] = {}
        while self._under_way:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._idle.wait(), STALLED)
            known = {key: taken(request) for key, request in self._under_way.items()}
            for key in known.keys() & before.keys():
                if known[key] is not None and known[key] == before[key]:
                    drop(self._under_way[key])
            before = known

    async def _connected(self, app: web.Application) -> AsyncIterator[None]:
        self._routes = Routes(self._given, self._metrics)
        try:
            await self._routes.resume(self._tasks)
            yield
        finally:
            await self._routes.drain(0.0)
            await self._routes.close()

    # -- around every request ---------------------------------------------------------------------

    def _around(self, handler: Handler, *, asks_key: bool) -> Handler:
        check = self._check if asks_key else None

        async def handle(request: web.Request) -> web.StreamResponse:
            self._under_way[id(request)] = request
            self._idle.clear()
            try:
                response = await self._answer(request, handler, check)
                if self._draining and not response.prepared:
                    response.force_close()
                with suppress(ConnectionError):  # the caller has left, which aiohttp finds, too
                    await response.prepare(request)
                    await response.write_eof()  # here, because it is under way until it is sent
                return response
            finally:
                del self._under_way[id(request)]
                if not self._under_way:
                    self._idle.set()

        return handle

    async def _answer(
        self,
        request: web.Request,
        handler: Handler,
        check: Callable[[web.Request], None] | None,
    ) -> web.StreamResponse:
        try:
            if check is not None:
                check(request)
            return await handler(request)
        except RefusalError as error:
            self._metrics.answered(endpoint_of(request.path) or "other", error.status)
            return error.response()
        except CutError:
            # The caller's connection ends early, as the upstream's did.
            if request.transport is not None:
                request.transport.close()
            raise asyncio.CancelledError from None

    # -- requests that pass -----------------------------------------------------------------------

    async def _pass(self, request: web.Request) -> web.StreamResponse:
        begun = perf_counter()
        _check_segments(request.path)
        endpoint = endpoint_of(request.path) if request.method == "POST" else None
        if endpoint is None:
            if (stored := self._routes.stored.of(request.path)) is not None:
                body = await self._bodies.read(request)
                return await self._routes.stored.answer(request, body, stored)
            return await self._forward(request)
        body = await self._bodies.read(request)
        value = object_of(body)
        if value is None:  # the upstream reports the error
            check_unread(body, request.headers)
            return await self._forward(request, body)
        route = self._routes.of(value.get("model"))
        if (name := request.headers.get(TASK_HEADER)) is not None:
            with _of_store():
                await self._tasks.fetch(name)
        call = read_call(
            endpoint, body, value, request.headers, tasks=self._tasks, usual=route.settings
        )
        if not self._settings.traced:
            return await route.calls.answer(request, call, begun)
        with callers_span(request.headers):
            return await route.calls.answer(request, call, begun)

    async def _forward(self, request: web.Request, read: bytes | None = None) -> web.StreamResponse:
        """Forward a request and its answer, byte for byte."""
        _check_path(request)
        _check_upgrade(request)
        body: Any = read
        if read is None and request.can_read_body:
            body = request.content
            if hdrs.CONTENT_LENGTH in request.headers and (whole := arrived(request)) is not None:
                body = whole  # a stream would be sent by a task of its own
        upstream = self._routes.own.upstream
        async with await upstream.answer(request, body, plain=False) as answer:
            response = PassedResponse(answer)
            await response.prepare(request)
            self._metrics.answered("other", answer.status)
            async for piece in pieces_of(answer):
                await response.write(piece)
            await response.write_eof()
            return response

    # -- the gateway's own paths ------------------------------------------------------------------

    async def _healthz(self, request: web.Request) -> web.Response:
        first, *others = ((route.name, route.gate.status()) for route in self._given)
        found: dict[str, Any] = {"status": "draining" if self._draining else "ok"}
        found |= {"health": first[1].health, "phase": first[1].phase}
        if others:
            found["routes"] = {n: {"health": s.health, "phase": s.phase} for n, s in others}
        return web.json_response(found, status=503 if self._draining else 200)

    async def _unknown(self, request: web.Request) -> web.Response:
        raise RefusalError(
            404,
            "unknown_path",
            f"{request.method} {request.path!r:.80} is no path of the gateway; its own are GET "
            f"{OWN_PATH}/healthz, /metrics and /results/ID, and PUT {OWN_PATH}/tasks/ID",
        )

    async def _show_metrics(self, request: web.Request) -> web.Response:
        response = web.Response(body=self._metrics.text(), headers={"content-type": CONTENT_TYPE})
        if self._worker is not None:
            response.force_close()  # connections stay with one process; scrapes should reach all
        return response

    async def _show_result(self, request: web.Request) -> web.Response:
        id_ = request.match_info["id"]
        known = (results.find(route.gate, id_) for route in self._given)
        found = next(filter(None, known), None)
        if found is None:
            raise RefusalError(
                404, "unknown_output", f"output {id_!r:.80} is unknown: it was never decided on"
            )
        return web.json_response(found)

    async def _put_task(self, request: web.Request) -> web.Response:
        try:
            task = json.loads(await self._bodies.read(request))
        except (ValueError, RecursionError) as error:
            raise RefusalError(400, "invalid_task", f"the task is not JSON: {error}") from None
        try:
            with _of_store():
                is_new = await self._tasks.put(request.match_info["id"], task)
        except BadInputError as error:
            raise RefusalError(400, "invalid_task", str(error)) from None
        return web.Response(status=201 if is_new else 204)


def _check_key(request: web.Request, key: str) -> None:
    given = request.headers.get(KEY_HEADER, "")
    if not compare_digest(given.encode("utf-8", "surrogateescape"), key.encode()):
        raise RefusalError(
            401, "invalid_gatekeeper_key", f"send the gateway's key in the header {KEY_HEADER}"
        )


def _check_site(request: web.Request) -> None:
    """Check, where callers need no key, that no web page of another site spends the upstream's.

    A browser sends some requests without asking the server, and APIs allow pages of all sites.

    Raises
    ------
    RefusalError
        For an origin that is neither on this machine nor an address in a private network.
    """
    origin = request.headers.get(hdrs.ORIGIN)
    if origin is not None and not _is_local(origin):  # browsers alone send it
        raise RefusalError(
            403,
            "other_site",
            f"a web page of {origin!r:.80} may not use the upstream's key: open it on this "
            "machine, or let callers send their own key (no --upstream-key-env)",
        )


def _is_local(origin: str) -> bool:
    try:
        url = urlsplit(origin)
        name = (url.hostname or "").removesuffix(".")
        if url.scheme not in ("http", "https"):
            return bool(url.scheme)  # an app or an extension; a page may be of "null"
        if name == "localhost" or name.endswith(".localhost"):
            return True
        return ip_address(name).is_private
    except ValueError:
        return False


def _check_segments(path: str) -> None:
    """Check that a path, decoded, is below the upstream's base URL, however the upstream reads it.

    Raises
    ------
    RefusalError
        For a segment `.` or `..`, which clients resolve before they send a path: an upstream that
        resolves it may leave the base URL, with the gateway's key, and may find a request for
        outputs where the gateway has found none.
    """
    if DOTS.search(path):
        raise RefusalError(
            400, "dot_segments", f"{path!r:.80} has a segment '.' or '..': send the path without it"
        )


def _check_path(request: web.Request) -> None:
    """Check that the body of a request that is forwarded was not meant for the gateway itself.

    Raises
    ------
    RefusalError
        For a path like the gateway's own, such as /v1/gatekeeper/tasks/ID.
    """
    if request.can_read_body and OWN_NAME in unquote(request.path).lower().split("/"):
        raise RefusalError(
            404,
            "unknown_path",
            f"{request.path!r:.80} is no path of the gateway, and is not forwarded with a body, "
            f"which may be a task: put tasks to {OWN_PATH}/tasks/ID",
        )


def _check_upgrade(request: web.Request) -> None:
    """Raise RefusalError for a WebSocket: as a plain request, the upstream would not know it."""
    if request.headers.get("Upgrade", "").lower() == "websocket":
        raise RefusalError(
            501,
            "websocket_not_forwarded",
            f"{request.path!r:.80} is asked for as a WebSocket, and the gateway forwards none: "
            "connect to the upstream itself; what is said there is not decided on",
        )


@contextmanager
def _of_store() -> Iterator[None]:
    """An unreachable store of tasks is an error of the server, not of the caller."""
    try:
        yield
    except LogError as error:
        LOG.error("the tasks that callers put: %s", error)
        raise RefusalError(
            503,
            "tasks_unavailable",
            "the database with the tasks that callers put cannot be asked now: try again, or send "
            "the task in the body's 'gatekeeper'",
        ) from None
