"""The page as routes of aiohttp: pages, updates as server-sent events, verdicts."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from aiohttp import web

from gatekeeper.errors import BadInputError, GatekeeperError, LogError
from gatekeeper.page.access import HEADERS, Access, RefusedError
from gatekeeper.page.document import ASSETS, asset
from gatekeeper.page.watcher import Rendered, Watcher
from gatekeeper.types import Outcome, Verdict

__all__ = ["PATH", "LivePage"]

PATH = "/gatekeeper/"
FIRST = 0.1  # seconds of reading before a page is sent
TICK = 0.25  # seconds between checks of the log, while the page is open
ALIVE = 15.0  # seconds after which a silent stream sends a comment
RETRY = 500  # milliseconds after which a browser connects again
FORM = 1024  # bytes of a verdict at most
VERDICTS = (Verdict.PASSED, Verdict.FAILED)
BY_HAND = "by a person, on the live page"

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class LivePage:
    """The live page of one log, which is read only while the page is open.

    Parameters
    ----------
    watcher : Watcher
        Follows the log; closed with the page.
    access : Access
        Who may read, and write.
    report : callable or None
        Takes a verdict: `VerificationGate.report_outcome`, or a function that raises a
        GatekeeperError if it is refused. None: the page has no buttons.
    path : str
        Path of the page: `PATH`, or a path below it, which ends in a slash.
    """

    def __init__(
        self,
        watcher: Watcher,
        access: Access,
        *,
        report: Callable[[str, Outcome], object] | None,
        path: str = PATH,
    ) -> None:
        self._watcher, self._access, self._report = watcher, access, report
        self.path = path
        self._listeners = 0
        self._ticking: asyncio.Task[None] | None = None
        self._news = asyncio.Condition()
        self._ended = False

    @property
    def token(self) -> str | None:
        """The token of the printed link; None if the link needs none."""
        return None if self._report is None and not self._access.private else self._access.token

    def routes(self) -> Sequence[web.RouteDef]:
        """All of its routes."""
        return [
            web.get(self.path.rstrip("/"), self._guarded(self._to_page)),
            web.get(self.path, self._guarded(self._page)),
            web.get(f"{self.path}updates", self._guarded(self._updates)),
            web.get(f"{self.path}outputs/{{key:[0-9]{{1,18}}}}", self._guarded(self._output)),
            web.post(f"{self.path}verdicts", self._guarded(self._verdict)),
            *(web.get(f"{self.path}{name}", self._guarded(self._asset)) for name in ASSETS),
        ]

    async def end(self, app: web.Application | None = None) -> None:
        """End all streams of updates, so that a server can end, and close the log."""
        self._ended = True
        async with self._news:
            self._news.notify_all()
        if self._ticking is not None:
            await asyncio.wait({self._ticking})
        await asyncio.to_thread(self._watcher.close)

    # -- around every request ---------------------------------------------------------------------

    def _guarded(self, handler: Handler) -> Handler:
        async def guarded(request: web.Request) -> web.StreamResponse:
            try:
                self._access.check_host(request)
                return await handler(request)
            except RefusedError as error:
                return _answer(f"gatekeeper: {error}", status=error.status)
            except LogError as error:
                return _answer(f"gatekeeper: {error}", status=503)

        return guarded

    def _writes(self, request: web.Request) -> bool:
        return self._report is not None and self._access.may_write(request)

    # -- pages ------------------------------------------------------------------------------------

    async def _to_page(self, request: web.Request) -> web.StreamResponse:
        return _answer("", status=308, location=self.path)

    async def _page(self, request: web.Request) -> web.StreamResponse:
        token = request.query.get("token")
        if token is not None:
            if not self._access.is_token(token):
                raise RefusedError(
                    403, "this token is not valid: the page has a new one at each start"
                )
            response = _answer("", status=303, location=self.path)
            self._access.admit(request, response, PATH)
            return response
        self._access.check_read(request)
        rendered = self._watcher.latest if self._listeners else self._watcher.fresh
        if rendered is None:
            rendered = await asyncio.to_thread(self._watcher.advance, FIRST)
        text = rendered.page(writable=self._writes(request))
        return _answer(text, kind="text/html")

    async def _asset(self, request: web.Request) -> web.StreamResponse:
        name = request.path.removeprefix(self.path)
        return _answer(asset(name), kind=ASSETS[name])

    async def _output(self, request: web.Request) -> web.StreamResponse:
        self._access.check_read(request)
        key = int(request.match_info["key"])
        text = await asyncio.to_thread(self._watcher.output, key)
        if text is None:
            raise RefusedError(404, "this output is not on the page any more: use gatekeeper show")
        return _answer(text, kind="text/html")

    # -- updates ----------------------------------------------------------------------------------

    async def _updates(self, request: web.Request) -> web.StreamResponse:
        """Send each section when it has changed, and all of them first, so that none is missed."""
        self._access.check_read(request)
        writable, sent = self._writes(request), dict[str, str]()
        response = web.StreamResponse(headers={**HEADERS, "content-type": "text/event-stream"})
        await response.prepare(request)
        await response.write(f"retry: {RETRY}\n\n".encode())
        self._listeners += 1
        try:
            while not self._ended:
                if self._ticking is None:  # also after an unexpected error
                    self._ticking = asyncio.create_task(self._tick())
                rendered = self._watcher.latest
                parts = {} if rendered is None else rendered.parts(writable=writable)
                changed = {name: part for name, part in parts.items() if sent.get(name) != part}
                data = f"data: {json.dumps(changed)}\n\n" if changed else ": alive\n\n"
                await response.write(data.encode())
                sent = parts
                await self._next(rendered)
        except ConnectionError:
            pass  # the reader is gone
        finally:
            self._listeners -= 1
        return response

    async def _next(self, seen: Rendered | None) -> None:
        """Wait until something else was rendered, or for as long as a stream may be silent."""
        try:
            async with asyncio.timeout(ALIVE), self._news:
                await self._news.wait_for(lambda: self._ended or self._watcher.latest is not seen)
        except TimeoutError:
            pass

    async def _tick(self) -> None:
        """Follow the log as long as there are listeners."""
        shown: Rendered | None = None
        try:
            while self._listeners and not self._ended:
                rendered = await asyncio.to_thread(self._watcher.advance)
                if rendered is not shown:
                    shown = rendered
                    async with self._news:
                        self._news.notify_all()
                await asyncio.sleep(0.0 if self._watcher.is_behind else TICK)
        finally:
            self._ticking = None

    # -- verdicts ---------------------------------------------------------------------------------

    async def _verdict(self, request: web.Request) -> web.StreamResponse:
        self._access.check_read(request)
        self._access.check_write(request)
        if self._report is None:
            raise RefusedError(403, "this page takes no verdicts")
        if (request.content_length or FORM + 1) > FORM:
            raise RefusedError(413, f"a verdict has at most {FORM} bytes")
        try:
            form: Any = await request.post()
        except (LookupError, ValueError) as error:  # of its encoding, or of its parts
            raise RefusedError(400, f"the form cannot be read: {error}") from None
        key, verdict = str(form.get("output", "")), str(form.get("verdict", ""))
        if verdict not in VERDICTS or not (key.isascii() and key.isdigit()) or len(key) > 18:
            raise RefusedError(400, "give output and verdict, which is passed or failed")
        id_ = await asyncio.to_thread(self._watcher.waits, int(key))
        if id_ is None:
            raise RefusedError(409, "this output no longer waits for a verdict")
        try:
            self._report(id_, Outcome(Verdict(verdict), detail=BY_HAND))
        except BadInputError as error:
            raise RefusedError(409, str(error)) from None
        except GatekeeperError as error:
            raise RefusedError(503, str(error)) from None
        await asyncio.to_thread(self._watcher.advance, at_once=True)  # for the page that follows
        return _answer("", status=303, location=self.path)


def _answer(
    text: str, *, status: int = 200, kind: str = "text/plain", location: str | None = None
) -> web.Response:
    headers = HEADERS if location is None else {**HEADERS, "location": location}
    body = text.encode("utf-8", "replace")
    return web.Response(
        body=body, status=status, headers=headers, content_type=kind, charset="utf-8"
    )
