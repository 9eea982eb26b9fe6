"""`gate.wrap(client)`: a client of the `openai` package whose outputs pass through a gate.

The client is copied (the copy shares its connections), and the copy's class is a subclass that
overrides `request`, through which the package sends every request. There the log-probabilities are
requested, on a copy of the request, and there the gate decides on the answer, which is read from
its JSON. The caller's client and arguments do not change, and the caller gets the package's own
objects.
"""

from __future__ import annotations

import copy
import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any
from urllib.parse import urlsplit

from openai import APIResponse, APIStatusError, AsyncAPIResponse, AsyncOpenAI, OpenAI

from gatekeeper.adapters.openai.attachment import Attachment, attach
from gatekeeper.adapters.openai.call_settings import (
    CallSettings,
    outputs_requested,
    settings_of,
)
from gatekeeper.adapters.openai.logprobs import PARAMETERS, endpoint_of, refuses_logprobs
from gatekeeper.adapters.openai.observer import ResponseObserver
from gatekeeper.errors import BadInputError
from gatekeeper.gate import VerificationGate
from gatekeeper.types import Generation, Undecided, UndecidedState

__all__ = ["wrap"]

_LOG = logging.getLogger("gatekeeper")


# -- one request ---------------------------------------------------------------------------------

_EXCHANGE = "gatekeeper"  # extension of an HTTP response: the exchange that it belongs to


@dataclass(frozen=True, slots=True)
class _ClientGate:
    """The gate and the settings that a wrapped client and its copies share."""

    gate: VerificationGate
    strict: bool
    return_tokens_as_token_ids: bool
    refusing: set[tuple[Any, str, str]] = field(default_factory=set)  # server, endpoint, model

    def exchange(self, client: Any, options: Any, *, stream: bool) -> _Exchange | None:
        """None for a request that generates no output. Raises BadInputError as `_check_body`."""
        if options.method.lower() != "post" or (endpoint := _endpoint(options.url)) is None:
            return None
        _check_body(options, endpoint)
        return _Exchange(self, client, options, endpoint, stream=stream)

    def refused(self, exchange: _Exchange) -> bool:
        """Whether this server has refused log-probabilities for this endpoint and model."""
        return bool(self.refusing) and exchange.server in self.refusing

    def added(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """The parameters to add to a request's body, or to increase in it."""
        added = PARAMETERS[path](body)
        if added and path == "/completions" and self.return_tokens_as_token_ids:
            added["return_tokens_as_token_ids"] = True
        return {name: value for name, value in added.items() if body.get(name) != value}


def _endpoint(url: str) -> str | None:
    """The endpoint of a request's URL, which may be a path with or without a first slash."""
    return url if url in PARAMETERS else endpoint_of(f"/{urlsplit(url).path}")


def _check_body(options: Any, endpoint: str) -> None:
    """Raise BadInputError for a body without settings to read and parameters to add."""
    bare = getattr(options, "content", None)
    body = options.json_data if bare is None else bare
    if not (bare is None and isinstance(body, (dict, Mapping, type(None)))):  # dict first: quicker
        raise BadInputError(
            f"a body of type {type(body).__name__} for {endpoint} would bypass the gate: give a "
            "dict, body={...}, or use the client that is not wrapped"
        )


def _check_websocket(options: Any) -> None:
    """Raise BadInputError for a connection whose outputs the gate would not see."""
    if options.url.startswith("/"):  # a path: nearly all
        return
    url = urlsplit(options.url)
    if url.scheme in ("ws", "wss") and endpoint_of(url.path) is not None:
        raise BadInputError(
            "a WebSocket of the Responses API would bypass the gate: use responses.create or "
            "responses.stream, or connect with the client that is not wrapped"
        )


class _Exchange:
    """One request for outputs, its answer, and the gate's results."""

    def __init__(
        self, gating: _ClientGate, client: Any, options: Any, path: str, *, stream: bool
    ) -> None:
        self._gating = gating
        self._options = options
        self._stream = stream
        self._body, self._extra = dict(options.json_data or {}), dict(options.extra_json or {})
        given = self._extra.pop("gatekeeper", {})
        sent = {**self._body, **self._extra}
        self._n = outputs_requested(sent)
        self._client, self._path, self._model = client, path, str(sent.get("model"))
        self._attachment = Attachment()
        self._found: list[Generation | Undecided] | None = None  # in the answer
        self._http: Any = None  # the response of the HTTP client
        self._parsed: Any = None  # the answer as the caller gets it
        self._decided = False
        try:
            settings = settings_of(gating.gate, given)
        except BadInputError as error:
            settings = CallSettings()
            observer = ResponseObserver(gating.gate, settings, gating.strict)
            self._settle(observer.undecided(UndecidedState.GATE_ERROR, "", error))
            observer.check()
        if settings.verify == "never":
            self._settle(Undecided("", UndecidedState.SKIPPED))
        self._observer = ResponseObserver(gating.gate, settings, gating.strict, self._attachment)
        add = not self._decided and not gating.refused(self)
        self._added = gating.added(path, sent) if add else {}

    @property
    def server(self) -> tuple[Any, str, str]:
        """The key of a refusal. Computed on demand: the URL is slow to build and to hash."""
        return self._client.base_url, self._options.url, self._model

    def _settle(self, result: Undecided) -> None:
        """Record why this request gets no decision."""
        self._attachment.results = (result,)
        self._decided = True

    @property
    def _is_open(self) -> bool:
        """Whether its outputs are still to be found."""
        return self._found is None and not self._decided

    def options(self) -> Any:
        """The request's options, with the added parameters and without the gate's settings."""
        options = copy.copy(self._options)
        extra = {name: value for name, value in self._extra.items() if name not in self._added}
        vars(options).update(  # without pydantic's `__setattr__`, for speed
            json_data={**self._body, **self._added}, extra_json=extra or None, post_parser=self
        )
        return options

    def drop_refused(self, error: Any) -> bool:
        """Drop the added parameters if the provider refuses them. Returns whether it does."""
        if not self._added or not refuses_logprobs(error):
            return False
        self._added = {}
        return True

    def remember(self) -> None:
        """Remember the refusal: the same request without the parameters succeeded."""
        self._gating.refusing.add(self.server)
        _LOG.warning(
            "model %r gives no log-probabilities at %s: signals missing", self._model, self._path
        )

    def expect(self, response: Any) -> None:
        """Let `process_data` find this exchange by the response of the HTTP client."""
        self._http = response
        if not self._stream:
            response.extensions[_EXCHANGE] = self

    def read(self, answer: Any) -> None:
        """Find the outputs in the JSON of the answer."""
        self._http = None  # which has this exchange: a cycle would keep both until a collection
        if self._is_open:
            self._found = self._observer.outputs_of(answer)

    def _read_body(self, parsed: Any) -> None:
        """Find the outputs where `process_data` did not: in the body's JSON or, without it, in what
        the body was parsed into.
        """
        if self._is_open:
            with suppress(Exception):
                parsed = self._http.json()
            self.read(parsed)

    def _attach(self, thing: object) -> None:
        attach(thing, self._gating.gate, self._attachment)

    def __call__(self, parsed: Any) -> Any:
        """The package's `post_parser`: called at once, or by `parse` of a raw response."""
        self._attach(parsed)
        if self._stream and not self._decided:
            asynchronous = hasattr(parsed, "__aiter__")
            chunks = self._observer.achunks if asynchronous else self._observer.chunks
            parsed._iterator = chunks(parsed._iterator, self._n)
        elif not self._stream:
            self._read_body(parsed)
        self._parsed = parsed
        if callable(self._options.post_parser):
            try:
                self._parsed = self._options.post_parser(parsed)
            except Exception as error:  # such as LengthFinishReasonError
                self._attach(error)
                raise
            self._attach(self._parsed)
        return self._parsed

    def observe_raw(self, response: Any) -> None:
        """Observe a raw response, whose body may have been read already or be read later."""
        if response is self._parsed:
            return
        self._attach(response)
        if self._stream:
            return
        if isinstance(response, AsyncAPIResponse):
            response.read = self._aread_of(response.read)  # type: ignore[method-assign]
        elif isinstance(response, APIResponse):
            response.read = self._read_of(response.read)  # type: ignore[method-assign]
        elif hasattr(response, "parse"):
            with suppress(Exception):  # of `parse()` helpers: the caller's own `parse` raises it
                response.parse()
        elif getattr(response, "is_stream_consumed", False):  # of the HTTP client
            self._read_body(response)

    # `parse`, `json` and `text` of a streaming response call its `read`.

    def _read_of(self, read: Callable[..., Any]) -> Callable[..., Any]:
        def read_and_decide() -> Any:
            body = read()
            self._read_body(body)
            self.decide()
            return body

        return read_and_decide

    def _aread_of(self, read: Callable[..., Any]) -> Callable[..., Any]:
        async def read_and_decide() -> Any:
            body = await read()
            self._read_body(body)
            await self.adecide()
            return body

        return read_and_decide

    def decide(self) -> None:
        if (outputs := self._undecided_outputs()) is not None:
            self._observer.decide(outputs)

    async def adecide(self) -> None:
        if (outputs := self._undecided_outputs()) is not None:
            await self._observer.adecide(outputs)

    def _undecided_outputs(self) -> list[Generation | Undecided] | None:
        """The outputs to decide on, once; None without an answer. A stream decides by itself."""
        if self._found is None or self._decided:
            return None
        self._decided = True
        return self._found


# -- the client ----------------------------------------------------------------------------------


def wrap(
    gate: VerificationGate, client: Any, *, strict: bool, return_tokens_as_token_ids: bool
) -> Any:
    """The copy of a client that `VerificationGate.wrap` returns.

    Raises
    ------
    BadInputError
        If it is no client, such as a resource of one, or one that its `copy` cannot copy; if it is
        wrapped already, or another tool has replaced a part of it.
    """
    if not isinstance(client, OpenAI | AsyncOpenAI):
        raise BadInputError(
            f"client={client!r:.80}: give the client itself, an OpenAI or AsyncOpenAI, not a part "
            "or an answer of it"
        )
    if hasattr(client, "_gating"):
        raise BadInputError(f"client={client!r:.80} is wrapped already: wrap the original")
    patched = sorted(set(_patched(client, set())))
    if patched:
        raise BadInputError(
            f"another tool has replaced {', '.join(patched)} on this client, which would be lost "
            "or would bypass the gate: wrap the client first, then pass the copy to the tool"
        )
    kind: Any = type(client)
    try:
        wrapped: Any = client.copy()
    except TypeError as error:  # of a class with parameters of its own
        raise BadInputError(
            f"a client of type {kind.__name__} cannot be copied: its copy() raises {error}"
        ) from error
    wrapped.__class__ = _gated(kind)
    wrapped._gating = _ClientGate(gate, strict, return_tokens_as_token_ids)
    return wrapped


def _patched(thing: Any, done: set[int]) -> Iterator[str]:
    """Methods and resources that have been replaced on the client or on its resources."""
    done.add(id(thing))
    for name, value in vars(thing).items():
        original = getattr(type(thing), name, None)
        own = type(value).__module__.partition(".")[0] == "openai"
        if callable(original) or (isinstance(original, cached_property) and not own):
            yield f"{type(thing).__name__}.{name}"
        elif type(value).__module__.startswith("openai.resources") and id(value) not in done:
            yield from _patched(value, done)


@cache
def _gated(kind: Any) -> Any:
    """The gated subclass of a client's class. A mixin would have another object layout."""
    make_request = _async_request if issubclass(kind, AsyncOpenAI) else _request

    def gated(copy: Callable[..., Any]) -> Callable[..., Any]:
        def gated_copy(self: Any, **changes: Any) -> Any:
            copied = copy(self, **changes)
            copied._gating = self._gating
            return copied

        return gated_copy

    def prepare_options(self: Any, options: Any) -> Any:
        """Of WebSockets, too, which are not opened by `request`."""
        _check_websocket(options)
        return kind._prepare_options(self, options)

    def process_response(self: Any, *, options: Any, response: Any, **rest: Any) -> Any:
        if isinstance(options.post_parser, _Exchange):
            options.post_parser.expect(response)
        return kind._process_response(self, options=options, response=response, **rest)

    def process_data(self: Any, *, data: Any, response: Any, **rest: Any) -> Any:
        """Read the JSON here, while the processor's cache has it.

        The package makes thousands of objects of it, and reading those would fetch each of them
        again: benchmarks/wrap.py.
        """
        if (exchange := response.extensions.get(_EXCHANGE)) is not None:
            exchange.read(data)
        return kind._process_response_data(self, data=data, response=response, **rest)

    members = {
        "request": make_request(kind),
        "_process_response": process_response,
        "_process_response_data": process_data,
        "_prepare_options": prepare_options,
        "copy": gated(kind.copy),
        "with_options": gated(kind.with_options),
        "__module__": __name__,
        "__doc__": f"{kind.__name__} behind a gate: made by `gate.wrap`.",
    }
    return type(f"Gated{kind.__name__}", (kind,), members)


def _request(kind: Any) -> Callable[..., Any]:
    def request(
        self: Any, cast_to: Any, options: Any, *, stream: bool = False, stream_cls: Any = None
    ) -> Any:
        how = {"stream": stream, "stream_cls": stream_cls}
        exchange = self._gating.exchange(self, options, stream=stream)
        if exchange is None:
            return kind.request(self, cast_to, options, **how)
        try:
            try:
                response = kind.request(self, cast_to, exchange.options(), **how)
            except APIStatusError as error:
                if not exchange.drop_refused(error):
                    raise
                response = kind.request(self, cast_to, exchange.options(), **how)
                exchange.remember()
            exchange.observe_raw(response)
        finally:  # also where `parse()` raises: the output was generated
            exchange.decide()
        return response

    return request


def _async_request(kind: Any) -> Callable[..., Any]:
    async def request(
        self: Any, cast_to: Any, options: Any, *, stream: bool = False, stream_cls: Any = None
    ) -> Any:
        how = {"stream": stream, "stream_cls": stream_cls}
        exchange = self._gating.exchange(self, options, stream=stream)
        if exchange is None:
            return await kind.request(self, cast_to, options, **how)
        try:
            try:
                response = await kind.request(self, cast_to, exchange.options(), **how)
            except APIStatusError as error:
                if not exchange.drop_refused(error):
                    raise
                response = await kind.request(self, cast_to, exchange.options(), **how)
                exchange.remember()
            exchange.observe_raw(response)
        finally:
            await exchange.adecide()
        return response

    return request
