"""`gate.wrap(client)`: a client of the `openai` package whose outputs pass through a gate.

The client is copied (the copy shares its connections), and the copy's class is a subclass that
overrides `request`, where everything the package sends comes by. There the log-probabilities are
asked for, on a copy of the request, and there the gate decides on the answer, which was read as its
JSON came by. The caller's client and arguments stay as they are, and the caller gets the package's
own objects.
"""

from __future__ import annotations

import copy
import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, cached_property
from types import NoneType
from typing import Any

from openai import APIResponse, APIStatusError, AsyncAPIResponse, AsyncOpenAI

from gatekeeper.adapters.openai import ALTERNATIVES, refuses_logprobs
from gatekeeper.adapters.openai_watch import CallSettings, Receipt, Watch, attach, settings_of
from gatekeeper.errors import BadInputError
from gatekeeper.gate import VerificationGate
from gatekeeper.types import Generation, Undecided, UndecidedState

__all__ = ["for_chat", "wrap"]

_LOG = logging.getLogger("gatekeeper")


# -- what is asked for ---------------------------------------------------------------------------


def _at_least(k: object) -> int:
    """The caller's k, or more; below 0 a server of vLLM's kind understands all."""
    if type(k) is not int:
        return ALTERNATIVES
    return k if k < 0 else max(k, ALTERNATIVES)


def for_chat(body: Mapping[str, Any]) -> dict[str, Any]:
    """What a chat completion has to be asked for, besides what the caller asks for."""
    if body.get("logprobs") is False:
        return {}
    return {"logprobs": True, "top_logprobs": _at_least(body.get("top_logprobs"))}


def _for_completions(body: Mapping[str, Any]) -> dict[str, Any]:
    if body.get("logprobs") is False:
        return {}
    return {"logprobs": _at_least(body.get("logprobs"))}


def _for_responses(body: Mapping[str, Any]) -> dict[str, Any]:
    wanted = "message.output_text.logprobs"
    include = body.get("include")
    include = list(include) if isinstance(include, list | tuple) else []
    return {
        "include": include if wanted in include else [*include, wanted],
        "top_logprobs": _at_least(body.get("top_logprobs")),
    }


# The endpoints that generate, and what they have to be asked for. No others are touched.
_ASK = {
    "/chat/completions": for_chat,
    "/completions": _for_completions,
    "/responses": _for_responses,
}

# -- one request ---------------------------------------------------------------------------------

_EXCHANGE = "gatekeeper"  # extension of an HTTP response: the exchange that it belongs to


@dataclass(frozen=True, slots=True)
class _Gating:
    """What a wrapped client and its copies share."""

    gate: VerificationGate
    strict: bool
    return_tokens_as_token_ids: bool
    refusing: set[tuple[Any, str, str]] = field(default_factory=set)  # server, endpoint, model

    def exchange(self, client: Any, options: Any, *, stream: bool) -> _Exchange | None:
        """None for what is no request for outputs."""
        path = options.url.partition("?")[0]
        if options.method.lower() != "post" or path not in _ASK:
            return None
        if not isinstance(options.json_data, (dict, Mapping, NoneType)):  # dict first: quicker
            return None
        return _Exchange(self, client, options, path, stream=stream)

    def refuses(self, exchange: _Exchange) -> bool:
        return bool(self.refusing) and exchange.server in self.refusing

    def asked(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """What is to be added to a request's body, or raised in it."""
        asked = _ASK[path](body)
        if asked and path == "/completions" and self.return_tokens_as_token_ids:
            asked["return_tokens_as_token_ids"] = True
        return {name: value for name, value in asked.items() if body.get(name) != value}


class _Exchange:
    """One request for outputs, its answer, and what the gate makes of it."""

    def __init__(
        self, gating: _Gating, client: Any, options: Any, path: str, *, stream: bool
    ) -> None:
        self._gating = gating
        self._options = options
        self._stream = stream
        self._body, self._extra = dict(options.json_data or {}), dict(options.extra_json or {})
        given = self._extra.pop("gatekeeper", {})
        sent = {**self._body, **self._extra}
        self._n = sent["n"] if type(sent.get("n")) is int else 1
        self._client, self._path, self._model = client, path, str(sent.get("model"))
        self._receipt = Receipt()
        self._found: list[Generation | Undecided] | Exception | None = None  # in the answer
        self._made: Any = None  # what a `parse()` helper made of it
        self._decided = False
        try:
            settings = settings_of(gating.gate, given)
        except BadInputError as error:
            settings = CallSettings()
            watch = Watch(gating.gate, settings, gating.strict)
            self._excuse(watch.undecided(UndecidedState.GATE_ERROR, "", error))
        if settings.verify == "never":
            self._excuse(Undecided("", UndecidedState.SKIPPED))
        self._watch = Watch(gating.gate, settings, gating.strict, self._receipt)
        ask = not self._decided and not gating.refuses(self)
        self._asked = gating.asked(path, sent) if ask else {}

    @property
    def server(self) -> tuple[Any, str, str]:
        """Who refuses, if it refuses. Only on demand: the URL takes long to get and to hash."""
        return self._client.base_url, self._path, self._model

    def _excuse(self, result: Undecided) -> None:
        self._receipt.results = (result,)
        self._decided = True

    def options(self) -> Any:
        """The request's options, with what is asked for besides and without what is ours."""
        options = copy.copy(self._options)
        extra = {name: value for name, value in self._extra.items() if name not in self._asked}
        vars(options).update(  # past pydantic's `__setattr__`, for speed
            json_data={**self._body, **self._asked}, extra_json=extra or None, post_parser=self
        )
        return options

    def refused(self, error: Any) -> bool:
        """Is it what was asked for that the provider does not like? Then ask no more."""
        if not self._asked or not refuses_logprobs(error):
            return False
        self._asked = {}
        return True

    def remember(self) -> None:
        """It was: the same request without went through."""
        self._gating.refusing.add(self.server)
        _LOG.warning(
            "model %r gives no log-probabilities at %s: signals missing", self._model, self._path
        )

    def expect(self, response: Any) -> None:
        """The answer's JSON will come by, with this response of the HTTP client."""
        if not self._stream:
            response.extensions[_EXCHANGE] = self

    def read(self, answer: Any) -> None:
        """Find its outputs: in its JSON where that has come by, else in the objects made of it."""
        if answer is None or self._found is not None or self._decided:
            return
        try:
            self._found = self._watch.outputs_of(answer)
        except Exception as error:  # if strict: `decide` raises it, past any parsing of the answer
            self._found = error

    def __call__(self, parsed: Any) -> Any:
        """Called by the package with what it has parsed, at once or in a raw response's `parse`."""
        attach(parsed, self._receipt)
        if self._stream and not self._decided:
            asynchronous = hasattr(parsed, "__aiter__")
            chunks = self._watch.achunks if asynchronous else self._watch.chunks
            parsed._iterator = chunks(parsed._iterator, self._n)
        else:
            self.read(parsed)
        self._made = parsed
        if callable(self._options.post_parser):
            try:
                self._made = self._options.post_parser(parsed)
            except Exception as error:  # LengthFinishReasonError, and its like
                attach(error, self._receipt)
                raise
            attach(self._made, self._receipt)
        return self._made

    def look_into(self, response: Any) -> None:
        """A raw response: the body of one kind is here already, that of the other comes later."""
        if response is self._made:
            return
        attach(response, self._receipt)
        if isinstance(response, AsyncAPIResponse):
            response.parse = self._aparse_of(response.parse)  # type: ignore[method-assign]
        elif isinstance(response, APIResponse):
            response.parse = self._parse_of(response.parse)  # type: ignore[method-assign]
        elif not self._stream:
            with suppress(Exception):  # of `parse()` helpers: the caller's own parse will raise it
                response.parse()

    def _parse_of(self, parse: Callable[..., Any]) -> Callable[..., Any]:
        def parse_and_decide(*, to: Any = None) -> Any:
            try:
                return parse(to=to)
            finally:
                self.decide()

        return parse_and_decide

    def _aparse_of(self, parse: Callable[..., Any]) -> Callable[..., Any]:
        async def parse_and_decide(*, to: Any = None) -> Any:
            try:
                return await parse(to=to)
            finally:
                await self.adecide()

        return parse_and_decide

    def decide(self) -> None:
        if (outputs := self._due()) is not None:
            self._watch.decide(outputs)

    async def adecide(self) -> None:
        if (outputs := self._due()) is not None:
            await self._watch.adecide(outputs)

    def _due(self) -> list[Generation | Undecided] | None:
        """What was found, once, when there is an answer; a stream decides by itself."""
        if self._found is None or self._decided:
            return None
        self._decided = True
        if isinstance(self._found, Exception):
            raise self._found
        return self._found


# -- the client ----------------------------------------------------------------------------------


def wrap(
    gate: VerificationGate, client: Any, *, strict: bool, return_tokens_as_token_ids: bool
) -> Any:
    if hasattr(client, "_gating"):
        raise BadInputError(f"client={client!r:.80} is wrapped already: wrap the original")
    patched = sorted(set(_patched(client, set())))
    if patched:
        raise BadInputError(
            f"another tool has replaced {', '.join(patched)} on this client, which would be lost "
            "or would bypass the gate: wrap the client first, then hand the wrapped one to the tool"
        )
    kind: Any = type(client)
    wrapped = client.copy()
    wrapped.__class__ = _gated(kind)
    wrapped._gating = _Gating(gate, strict, return_tokens_as_token_ids)
    return wrapped


def _patched(thing: Any, done: set[int]) -> Iterator[str]:
    """What has been replaced on the client itself or on its resources: methods, whole resources."""
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
    """The subclass, one for each class of clients. A mixin would give another object layout."""
    make_request = _async_request if issubclass(kind, AsyncOpenAI) else _request

    def copy(self: Any, **changes: Any) -> Any:
        copied = kind.copy(self, **changes)
        copied._gating = self._gating
        return copied

    def process_response(self: Any, *, options: Any, response: Any, **rest: Any) -> Any:
        if isinstance(options.post_parser, _Exchange):
            options.post_parser.expect(response)
        return kind._process_response(self, options=options, response=response, **rest)

    def process_data(self: Any, *, data: Any, response: Any, **rest: Any) -> Any:
        """Read the JSON here, while it is in the cache: of the thousands of objects that the
        package makes of it each would have to be fetched again."""
        if (exchange := response.extensions.get(_EXCHANGE)) is not None:
            exchange.read(data)
        return kind._process_response_data(self, data=data, response=response, **rest)

    members = {
        "request": make_request(kind),
        "_process_response": process_response,
        "_process_response_data": process_data,
        "copy": copy,
        "with_options": copy,
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
                if not exchange.refused(error):
                    raise
                response = kind.request(self, cast_to, exchange.options(), **how)
                exchange.remember()
            exchange.look_into(response)
        finally:  # also where `parse()` does not like what came: it was generated
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
                if not exchange.refused(error):
                    raise
                response = await kind.request(self, cast_to, exchange.options(), **how)
                exchange.remember()
            exchange.look_into(response)
        finally:
            await exchange.adecide()
        return response

    return request
