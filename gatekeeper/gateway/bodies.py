"""Bodies of requests that are read as a whole, and the memory for those that are on their way."""

from __future__ import annotations

import asyncio

from aiohttp import web

from gatekeeper.gateway.refusal import RefusalError
from gatekeeper.limits import MAX_LINE

__all__ = ["MAX_BODY", "Bodies", "arrived"]

MAX_BODY = MAX_LINE  # bytes of a body that is read; those that pass as they come have no limit
ROOM = 8 * MAX_BODY  # bytes of all bodies that have begun to arrive


class Bodies:
    """The bodies that callers are sending to one process.

    If they have more than `ROOM` together, those that began first are refused: a body has as much
    time as the others need to send so many bytes, which is long for all but stalled ones. So these
    keep no room from a caller that comes later. A body that has arrived is not counted.
    """

    def __init__(self) -> None:
        # By what ends the wait for the rest of a body; the first is the one that began first.
        self._sizes: dict[asyncio.Timeout, int] = {}
        self._size = 0

    async def read(self, request: web.Request) -> bytes:
        """The whole body.

        Raises
        ------
        RefusalError
            For more than `MAX_BODY` (413), and without room for the rest of it (503).
        """
        if (body := arrived(request)) is not None and len(body) <= MAX_BODY:
            return body
        if len(body or b"") > MAX_BODY or (request.content_length or 0) > MAX_BODY:
            raise _too_large()
        pieces = bytearray()
        limit = asyncio.timeout(None)
        try:
            async with limit:
                self._sizes[limit] = 0
                while piece := await request.content.readany():
                    pieces += piece
                    if len(pieces) > MAX_BODY:
                        raise _too_large()
                    self._grow(limit, len(piece))
        except TimeoutError:
            if not limit.expired():
                raise
            raise RefusalError(
                503,
                "too_many_bodies",
                f"other callers are sending more than {ROOM >> 20} MiB, and this request has taken "
                "longest to arrive: send it again",
                retry_after=1,
            ) from None
        finally:
            self._remove(limit)
        return bytes(pieces)

    def _grow(self, limit: asyncio.Timeout, size: int) -> None:
        if limit not in self._sizes:  # refused, and at its next wait it gets to know
            return
        self._sizes[limit] += size
        self._size += size
        while self._size > ROOM:
            first = next(iter(self._sizes))
            self._remove(first)
            first.reschedule(0.0)  # long ago

    def _remove(self, limit: asyncio.Timeout) -> None:
        self._size -= self._sizes.pop(limit, 0)


def arrived(request: web.Request) -> bytes | None:
    """The body, if all of it is here: small ones mostly are, and need no wait."""
    return request.content.read_nowait() if request.content.is_eof() else None


def _too_large() -> RefusalError:
    return RefusalError(
        413, "body_too_large", f"a request for outputs may have {MAX_BODY >> 20} MiB"
    )
