"""Responses that the upstream has stored, and that callers read later.

They have what the gateway requested: it is removed as from the first answer. Which responses these
are is kept in memory, for those created last.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

import aiohttp
from aiohttp import web

from gatekeeper.gateway.answer_edit import NO_EDITS, Edits, object_of
from gatekeeper.gateway.codings import CodingError, Decoder, codings_of, decoded
from gatekeeper.gateway.events import Frames, read_frame
from gatekeeper.gateway.json_edit import EACH, edited
from gatekeeper.gateway.logprobs import Requested
from gatekeeper.gateway.metrics import Metrics
from gatekeeper.gateway.upstream import (
    PassedResponse,
    Upstream,
    WholeResponse,
    body_of,
    pieces_of,
)

__all__ = ["StoredResponses"]

ROOM = 1 << 15  # ids of responses and of their messages
# A response, also as its cancellation returns it; one item; lists of items.
PATH = re.compile(
    "(?:/responses/([^/]+)(?:/cancel|(/input_items))?|/conversations/[^/]+/items(?:/([^/]+))?)/?$"
)


class _Stored(NamedTuple):
    """Where a response or a message is, and what is removed from it."""

    upstream: Upstream
    edited: Callable[[bytes], bytes]
    event: Edits = NO_EDITS  # of a stream of the response


class StoredResponses:
    """The responses of one gateway, and the messages in them.

    Parameters
    ----------
    own : Upstream
        Has the responses that are not known here.
    metrics : Metrics
    """

    def __init__(self, own: Upstream, metrics: Metrics) -> None:
        self._own, self._metrics = own, metrics
        self._known: OrderedDict[str, _Stored] = OrderedDict()

    def add(self, response: Any, requested: Requested, upstream: Upstream) -> None:
        """Note a response of which something will be removed, or that another upstream has."""
        if not isinstance(response, dict) or response.get("store") is False:
            return
        if not requested.parameters and upstream is self._own:
            return
        self._note(response, _Stored(upstream, requested.answer.text, requested.event))
        items = response.get("output")
        for item in items if isinstance(items, list) else ():
            if isinstance(item, dict) and item.get("type") == "message":
                self._note(item, _Stored(upstream, requested.item.text))

    def _note(self, value: Mapping[str, Any], stored: _Stored) -> None:
        if isinstance(id_ := value.get("id"), str):
            self._known.pop(id_, None)
            self._known[id_] = stored
            if len(self._known) > ROOM:
                self._known.popitem(last=False)

    def of(self, path: str) -> _Stored | None:
        """What is known about the response or the list at a path; None if it passes as it is."""
        found = PATH.search(path) if self._known else None
        if found is None:
            return None
        response, of_list, message = found.groups()
        id_ = response or message
        stored = self._known.get(id_)
        if of_list or id_ is None:
            upstream = self._own if stored is None else stored.upstream
            return _Stored(upstream, self._edited_list)
        return stored

    def _edited_list(self, body: bytes) -> bytes:
        return edited(body.decode(), {"data": {EACH: self._edited_item}})[1].encode()

    def _edited_item(self, text: str) -> str | None:
        value = object_of(text.encode()) or {}
        id_ = value.get("id")
        stored = self._known.get(id_) if isinstance(id_, str) else None
        return None if stored is None else stored.edited(text.encode()).decode()

    async def answer(
        self, request: web.Request, body: bytes, stored: _Stored
    ) -> web.StreamResponse:
        """The upstream's answer to a request for what is stored, after the edits."""
        async with await stored.upstream.answer(request, body or None, plain=True) as answer:
            self._metrics.answered("other", answer.status)
            codings = codings_of(answer.headers)
            if answer.content_type == "text/event-stream":
                return await _stream(request, answer, stored.event)
            data = await body_of(answer)
            try:
                text = stored.edited(decoded(data, codings) if codings else data)
            except (CodingError, ValueError):  # of an error
                return WholeResponse(answer, data)
            return WholeResponse(answer, text, decoded=bool(codings))


async def _stream(
    request: web.Request, answer: aiohttp.ClientResponse, edits: Edits
) -> web.StreamResponse:
    codings = codings_of(answer.headers)
    decoder = None
    with suppress(CodingError):
        decoder = Decoder(codings) if codings else None
    response = PassedResponse(answer, {}, decoded=decoder is not None)
    await response.prepare(request)
    frames = Frames()
    async for piece in pieces_of(answer, decoder):
        complete = frames.add(piece)
        if not frames.given_up:
            complete = [read_frame(frame, edits)[1] for frame in complete]
        await response.write(b"".join(complete))
    await response.write(frames.rest)
    await response.write_eof()
    return response
