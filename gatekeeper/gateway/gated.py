"""Answers to requests for outputs: forwarded and decided on, whole or as a stream."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from time import perf_counter
from typing import Any, NamedTuple

import aiohttp
from aiohttp import web

from gatekeeper.adapters.openai.logprobs import REFUSALS, is_refusal
from gatekeeper.gateway import results
from gatekeeper.gateway.answer_edit import Edits
from gatekeeper.gateway.calls import BODY_KEY, Call, make_ready
from gatekeeper.gateway.codings import CodingError, Decoder, codings_of, decoded
from gatekeeper.gateway.json_edit import with_members
from gatekeeper.gateway.logprobs import NOTHING, Requested
from gatekeeper.gateway.metrics import Metrics
from gatekeeper.gateway.outputs import Decided, Outputs, ended
from gatekeeper.gateway.refusal import RefusalError
from gatekeeper.gateway.stored import StoredResponses
from gatekeeper.gateway.streamed import StreamedAnswer
from gatekeeper.gateway.upstream import (
    CutError,
    PassedResponse,
    Upstream,
    WholeResponse,
    body_of,
    pieces_of,
)

__all__ = ["LONGEST", "GatedCalls"]

LONGEST = 1024  # characters of a name that is remembered; a caller's may have 64 MiB
MODELS = 4096  # that are remembered as refusing log-probabilities; callers may send any name
REPEATING = (307, 308)  # redirects after which a caller sends its request again, as it is


@dataclass(slots=True)
class GatedCalls:
    """Sends requests for outputs upstream, and returns their answers.

    Parameters
    ----------
    upstream, outputs, stored, metrics
        Parts of one gateway.
    """

    upstream: Upstream
    outputs: Outputs
    stored: StoredResponses
    metrics: Metrics
    _refusing: set[tuple[str, str]] = field(default_factory=set)  # paths and models

    async def answer(self, request: web.Request, call: Call, begun: float) -> web.StreamResponse:
        """Answer a call.

        Parameters
        ----------
        begun
            When the request came, by `perf_counter`.

        Raises
        ------
        RefusalError
            If the upstream does not answer, or the answer is blocked.
        CutError
            If the upstream's connection ends early.
        """
        key = request.path, call.model  # Azure has the model in the path
        asks = bool(call.requested.parameters) and key not in self._refusing
        edits = call.requested if asks or not call.requested.parameters else NOTHING
        body = call.body(plain=not asks)
        before = perf_counter() - begun
        async with await self.upstream.answer(request, body, plain=True) as answer:
            if not (asks and answer.status in REFUSALS):
                return await self._pass(request, call, answer, edits, before)
            if not is_refusal(answer.status, _text_of(answer, await body_of(answer))):
                return await self._plain(call, answer, edits, before)
        body = call.body(plain=True)
        async with await self.upstream.answer(request, body, plain=True) as answer:
            if _is_success(answer) and sum(map(len, key)) <= LONGEST:
                if len(self._refusing) == MODELS:
                    self._refusing.clear()
                self._refusing.add(key)
            return await self._pass(request, call, answer, NOTHING, before)

    async def _pass(
        self,
        request: web.Request,
        call: Call,
        answer: aiohttp.ClientResponse,
        edits: Requested,
        before: float,
    ) -> web.StreamResponse:
        """`before`: the time in the gateway before the request was sent."""
        if _is_success(answer) and answer.content_type == "text/event-stream":
            return await self._stream(request, call, answer, edits)
        return await self._plain(call, answer, edits, before)

    # -- in one piece -----------------------------------------------------------------------------

    async def _plain(
        self,
        call: Call,
        answer: aiohttp.ClientResponse,
        edits: Requested,
        before: float,
    ) -> web.Response:
        if answer.status in REPEATING:
            self.upstream.check_redirect(answer)
        body = await body_of(answer)
        begun = perf_counter() - before
        if not _is_success(answer):
            self.metrics.answered(call.endpoint, answer.status)
            return WholeResponse(answer, body)
        whole = _read(body, codings_of(answer.headers), edits.answer, once=call.n == 1)
        if call.endpoint == "/responses":
            self.stored.add(whole.value, edits, self.upstream)
        decided = await ended(
            self.outputs.decide(
                lambda: self.outputs.of_answer(whole.value, call.settings),
                call.settings,
                unreadable=whole.unreadable,
            )
        )
        overhead = perf_counter() - begun
        if call.waits:
            await self.outputs.verdicts(decided)
        asyncio.get_running_loop().call_soon(_when_sent, whole.value)
        return self._whole(call, answer, whole, decided, overhead)

    def _whole(
        self,
        call: Call,
        answer: aiohttp.ClientResponse,
        whole: _Whole,
        decided: Sequence[Decided],
        overhead: float,
    ) -> web.Response:
        """The answer with its result, or the error in its place."""
        id_, body = str(call.settings.id), whole.body
        own = results.headers(id_, decided)
        own["x-gatekeeper-overhead-ms"] = f"{1e3 * overhead:.2f}"
        if call.blocks and (wrong := results.wrong(decided)):
            self.metrics.answered(call.endpoint, 422, overhead)
            return RefusalError(422, "verification_failed", wrong).response(own)
        if call.annotates and isinstance(whole.value, dict):
            summary = {BODY_KEY: results.summary(id_, decided)}
            body = with_members(body, whole.value, drop=BODY_KEY, put=summary)
        self.metrics.answered(call.endpoint, answer.status, overhead)
        return WholeResponse(answer, body, own, decoded=whole.decoded)

    # -- as a stream ------------------------------------------------------------------------------

    async def _stream(
        self, request: web.Request, call: Call, answer: aiohttp.ClientResponse, edits: Requested
    ) -> web.StreamResponse:
        own = results.id_header(str(call.settings.id))
        codings = codings_of(answer.headers)
        try:
            decoder = Decoder(codings) if codings else None
        except CodingError as error:
            return await self._stream_unread(request, call, answer, error)
        response = PassedResponse(answer, own, decoded=decoder is not None)
        await response.prepare(request)
        note = partial(self.stored.add, requested=edits, upstream=self.upstream)
        stream = StreamedAnswer(call, edits.event, self.outputs, write=response.write, note=note)
        try:
            async for piece in pieces_of(answer, decoder):
                await stream.add(piece)
            await stream.finish()
        except CutError:
            await stream.cut()
            raise
        except (asyncio.CancelledError, ConnectionError):
            await stream.leave()
            raise
        finally:
            self.metrics.answered(call.endpoint, answer.status)
            make_ready()
        await response.write_eof()
        return response

    async def _stream_unread(
        self, request: web.Request, call: Call, answer: aiohttp.ClientResponse, why: CodingError
    ) -> web.StreamResponse:
        """Forward a stream that cannot be read: a comment between its bytes would break it."""
        self.metrics.answered(call.endpoint, answer.status)
        response = PassedResponse(answer, results.id_header(str(call.settings.id)))
        await response.prepare(request)
        async for piece in pieces_of(answer):
            await response.write(piece)
        await ended(self.outputs.decide(list, call.settings, unreadable=why))
        await response.write_eof()
        return response


def _when_sent(value: Any) -> None:
    """What can wait for the next turn, when the answer has been sent: freeing thousands of objects,
    and what the next call needs.
    """
    make_ready()


def _is_success(answer: aiohttp.ClientResponse) -> bool:
    return 200 <= answer.status < 300


def _text_of(answer: aiohttp.ClientResponse, body: bytes) -> str:
    with suppress(CodingError):
        body = decoded(body, codings_of(answer.headers))
    return body.decode(errors="replace")


class _Whole(NamedTuple):
    """An answer in one piece, as it was read."""

    value: Any  # None if it is no JSON, or cannot be decoded
    body: bytes  # after the edits
    decoded: bool = False
    unreadable: CodingError | None = None


def _read(body: bytes, codings: str, edits: Edits, *, once: bool) -> _Whole:
    try:
        text = decoded(body, codings) if codings else body
    except CodingError as error:
        return _Whole(None, body, unreadable=error)
    try:
        return _Whole(*edits.apply(text, once=once), decoded=bool(codings))
    except ValueError:
        return _Whole(None, body)
