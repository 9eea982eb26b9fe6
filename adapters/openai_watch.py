"""How an answer of OpenAI's shape is read, decided on and remembered.

For wrapped clients (`openai_client`), and for anyone's streams of chunks. Whatever is wrong, with
the answer or with the gate, becomes a named state of the result: it is raised only if `strict`.
`openai` itself is not imported.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, fields, replace
from threading import Lock
from types import MappingProxyType
from typing import Any, Literal, get_args
from uuid import uuid4
from weakref import WeakKeyDictionary

from gatekeeper.adapters._positions import field as get
from gatekeeper.adapters.openai import Scope, StreamReader, generations_of
from gatekeeper.errors import BadInputError, VerifierUnavailableError
from gatekeeper.gate import VerificationGate
from gatekeeper.types import GateResult, Generation, Undecided, UndecidedState

__all__ = [
    "AsyncObservedStream",
    "CallSettings",
    "ObservedStream",
    "Receipt",
    "Verify",
    "Watch",
    "attach",
    "observe_stream",
    "results_of",
    "settings_of",
    "task",
]

Verify = Literal["auto", "always", "never"]
Result = GateResult | Undecided

_LOG = logging.getLogger("gatekeeper")


# -- what the caller says of a call --------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CallSettings:
    """What one call wants of the gate.

    task     what the verifier needs besides the output
    id       of the output, instead of the provider's; several outputs are `id/0`, `id/1`, ...
    verify   "auto": as the policy decides; "always": within the budget; "never": not even seen
    scope    whose log-probabilities make the signals: "content", "reasoning" or "all"
    """

    task: object = None
    id: str | None = None
    verify: Verify = "auto"
    scope: Scope = "content"

    def __post_init__(self) -> None:
        for name, choices in (("verify", get_args(Verify)), ("scope", get_args(Scope))):
            if getattr(self, name) not in choices:
                raise BadInputError(
                    f"{name}={getattr(self, name)!r}: choose one of {', '.join(choices)}"
                )
        if not (self.id is None or (isinstance(self.id, str) and self.id)):
            raise BadInputError(f"id={self.id!r:.80}: give a non-empty string, or None")


_DEFAULT = CallSettings()
_current: ContextVar[Mapping[VerificationGate, CallSettings]] = ContextVar(
    "gatekeeper", default=MappingProxyType({})
)


@contextmanager
def task(gate: VerificationGate, settings: CallSettings) -> Iterator[None]:
    """Calls made inside, by this thread or asyncio task, have these settings."""
    token = _current.set({**_current.get(), gate: settings})
    try:
        yield
    finally:
        _current.reset(token)


def settings_of(gate: VerificationGate, given: Any) -> CallSettings:
    """Those of `task`, and over them what a call was given. Raises BadInputError for others."""
    current = _current.get().get(gate) or _DEFAULT
    try:
        return replace(current, **given) if given != {} else current
    except TypeError:
        names = ", ".join(f.name for f in fields(CallSettings))
        raise BadInputError(f"gatekeeper={given!r:.80}: a dict of {names} is needed") from None


# -- what becomes of an answer -------------------------------------------------------------------


@dataclass(slots=True)
class Receipt:
    """Hangs on what the caller gets. Plain data: it is copied and pickled along."""

    results: tuple[Result, ...] = (Undecided("", UndecidedState.UNFINISHED),)


def attach(thing: object, receipt: Receipt) -> None:
    """Past pydantic's `__setattr__`, so that no dump of a response shows it."""
    try:
        object.__setattr__(thing, "_gatekeeper", receipt)
    except (AttributeError, TypeError):  # a bare string, from a server that sent no JSON
        return


def results_of(response: object) -> list[Result]:
    """What became of the outputs of a response, a raw response, a stream or a parsing error."""
    for thing in (response, getattr(response, "_raw_stream", None)):  # `.stream()` has one inside
        receipt = getattr(thing, "_gatekeeper", None)
        if isinstance(receipt, Receipt):
            return list(receipt.results)
    raise BadInputError(
        f"response of type {type(response).__name__!r} did not come through this gate: pass what "
        "a wrapped client or observe_stream returned; for a stream that is the stream itself"
    )


_numbers: WeakKeyDictionary[VerificationGate, dict[str, int]] = WeakKeyDictionary()
_numbers_lock = Lock()


def _own_id(gate: VerificationGate, generation: Generation) -> str:
    """The provider's id, made the output's own.

    Some servers send none, or the same one twice. One that this process has not had, for the text
    that the log has, is an output that an earlier process began with.
    """
    if not generation.id:
        return f"output-{uuid4().hex}"
    while True:
        with _numbers_lock:
            numbers = _numbers.get(gate)
            if numbers is None:
                numbers = _numbers[gate] = {}
            n = numbers[generation.id] = numbers.get(generation.id, 0) + 1
        id_ = generation.id if n == 1 else f"{generation.id}#{n}"
        if gate.find(id_) is None or (n == 1 and gate.output(id_).text == generation.text):
            return id_


def _numbered(outputs: list[Any]) -> list[tuple[Any, str]]:
    """With what tells several outputs of one id apart."""
    return [(output, f"/{i}" if len(outputs) > 1 else "") for i, output in enumerate(outputs)]


@dataclass(slots=True)
class Watch:
    """Reads one answer, has the gate decide on its outputs, and notes the results."""

    gate: VerificationGate
    settings: CallSettings
    strict: bool = False
    receipt: Receipt = field(default_factory=Receipt)

    def decide(self, outputs: list[Generation | Undecided]) -> None:
        self.receipt.results = tuple([self._decide(output, s) for output, s in _numbered(outputs)])

    async def adecide(self, outputs: list[Generation | Undecided]) -> None:
        self.receipt.results = tuple(
            [await self._adecide(output, s) for output, s in _numbered(outputs)]
        )

    def _decide(self, output: Generation | Undecided, suffix: str) -> Result:
        if isinstance(output, Undecided):
            return output
        try:
            output = self._named(output, suffix)
            return self.gate.maybe_verify(output, self.settings.task, force=self._force)
        except Exception as error:
            return self._in_trouble(output.id, error)

    async def _adecide(self, output: Generation | Undecided, suffix: str) -> Result:
        if isinstance(output, Undecided):
            return output
        try:
            output = self._named(output, suffix)
            return await self.gate.amaybe_verify(output, self.settings.task, force=self._force)
        except Exception as error:
            return self._in_trouble(output.id, error)

    def _named(self, generation: Generation, suffix: str) -> Generation:
        id_ = self.settings.id
        id_ = _own_id(self.gate, generation) if id_ is None else id_ + suffix
        return generation if generation.id == id_ else replace(generation, id=id_)

    @property
    def _force(self) -> bool:
        return self.settings.verify == "always"

    def _in_trouble(self, id_: str, error: Exception) -> Result:
        if isinstance(error, VerifierUnavailableError) and not self.strict:
            return error.result
        return self.undecided(UndecidedState.GATE_ERROR, id_, error)

    def undecided(self, state: UndecidedState, id_: object, error: Exception) -> Undecided:
        """A named state in place of the error, which goes to the caller only if asked for."""
        if self.strict:
            raise error
        name = id_ if isinstance(id_, str) else ""
        kind = next(c for c in type(error).__mro__ if not c.__name__.startswith("_"))
        text = f"{kind.__name__}: {error}"
        _LOG.warning("output %r: not decided on, %s: %s", name, state, text)
        return Undecided(name, state, text)

    def outputs_of(self, response: object) -> list[Generation | Undecided]:
        def read() -> list[Generation]:
            return generations_of(response, scope=self.settings.scope)

        output = get(response, "output")  # of the Responses API, which may answer before it is done
        return self.read(
            read if output != [] else list, get(response, "id"), must_end=output is not None
        )

    def read(
        self, generations: Callable[[], list[Generation]], id_: object, *, must_end: bool
    ) -> list[Generation | Undecided]:
        """The outputs, or why there are none; with `must_end` they say how they ended."""
        try:
            found = generations()
        except Exception as error:
            return [self.undecided(UndecidedState.UNREADABLE, id_, error)]
        if not found:
            nothing = BadInputError(f"response {id_!r} has no output")
            return [self.undecided(UndecidedState.EMPTY, id_, nothing)]
        return [self._if_complete(output, must_end=must_end) for output in found]

    def _if_complete(self, output: Generation, *, must_end: bool) -> Generation | Undecided:
        reason = output.finish_reason
        if reason not in ("failed", "cancelled") and not (reason is None and must_end):
            return output
        cut_off = BadInputError(f"output {output.id!r} broke off: its finish reason is {reason}")
        return self.undecided(UndecidedState.UNFINISHED, output.id, cut_off)

    # The chunk that completes the output waits, with what follows, until the gate has decided.
    # So a caller who stops there, or whom the package stops there (LengthFinishReasonError), has
    # a result too.

    def chunks(self, stream: Iterable[Any], n: int = 1) -> Iterator[Any]:
        """The stream's chunks, untouched; the gate decides when its n outputs are complete."""
        reading = _Reading(self, n)
        with reading.to_the_end():
            for chunk in stream:
                if reading.add(chunk):
                    yield chunk
        self.decide(reading.outputs())
        yield from reading.held
        reading.raise_broken()

    async def achunks(self, stream: AsyncIterable[Any], n: int = 1) -> AsyncIterator[Any]:
        reading = _Reading(self, n)
        with reading.to_the_end():
            async for chunk in stream:
                if reading.add(chunk):
                    yield chunk
        await self.adecide(reading.outputs())
        for chunk in reading.held:
            yield chunk
        reading.raise_broken()


class _Reading:
    """A stream on its way: what its chunks say so far, and whether the outputs are complete."""

    def __init__(self, watch: Watch, n: int) -> None:
        self.held: list[Any] = []
        self._watch = watch
        self._n = n
        self._reader = StreamReader(scope=watch.settings.scope, strict=watch.strict)
        self._broken: Exception | None = None

    def add(self, chunk: Any) -> bool:
        """Take a chunk in. True if it is to be passed on now; else it is held."""
        self._reader.add(chunk)
        if not (self._reader.finished and self._reader.is_complete(self._n)):
            return True
        self.held.append(chunk)
        return False

    @contextmanager
    def to_the_end(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            self._broken = error
        except BaseException:
            _LOG.info("stream %r: not read to its end, and so not decided on", self._reader.id)
            raise

    def outputs(self) -> list[Generation | Undecided]:
        if self._broken is not None and not self.held:  # that error is the caller's, and no other
            watch = replace(self._watch, strict=False)
            return [watch.undecided(UndecidedState.UNFINISHED, self._reader.id, self._broken)]
        return self._watch.read(self._reader.generations, self._reader.id, must_end=True)

    def raise_broken(self) -> None:
        if self._broken is not None:
            raise self._broken


# -- streams of anyone ---------------------------------------------------------------------------


class ObservedStream:
    """Iterates as what it was made from does."""

    def __init__(self, stream: Iterable[Any], watch: Watch) -> None:
        self._chunks = watch.chunks(stream)
        self._gatekeeper = watch.receipt

    def __iter__(self) -> Iterator[Any]:
        return self._chunks

    def __next__(self) -> Any:
        return next(self._chunks)


class AsyncObservedStream:
    """The asynchronous twin."""

    def __init__(self, stream: AsyncIterable[Any], watch: Watch) -> None:
        self._chunks = watch.achunks(stream)
        self._gatekeeper = watch.receipt

    def __aiter__(self) -> AsyncIterator[Any]:
        return self._chunks

    async def __anext__(self) -> Any:
        return await anext(self._chunks)


def observe_stream(
    gate: VerificationGate, stream: Any, settings: CallSettings, *, strict: bool
) -> ObservedStream | AsyncObservedStream:
    if isinstance(getattr(stream, "_gatekeeper", None), Receipt):
        raise BadInputError("stream comes through a gate already: iterate over it as it is")
    watch = Watch(gate, settings, strict)
    if hasattr(stream, "__aiter__"):
        return AsyncObservedStream(stream, watch)
    if not isinstance(stream, Iterable):
        raise BadInputError(f"stream={stream!r:.80}: give an iterable of chunks, or an async one")
    return ObservedStream(stream, watch)
