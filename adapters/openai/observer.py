"""Read a provider's answer, let the gate decide on its outputs, and attach the results.

For wrapped clients (`openai.client`, `litellm`) and for streams of chunks from elsewhere. An error,
of the answer or of the gate, becomes a named state of the result; it is raised only if `strict`.
`openai` itself is not imported.
"""

from __future__ import annotations

import logging
from collections.abc import (
    AsyncIterable,
    AsyncIterator,
    Callable,
    Coroutine,
    Iterable,
    Iterator,
    Mapping,
)
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import Any
from uuid import uuid4
from weakref import WeakKeyDictionary

from gatekeeper.adapters.fields import field as get
from gatekeeper.adapters.openai.any_stream import AnyStream
from gatekeeper.adapters.openai.attachment import Attachment, Result, attach, attached, holders
from gatekeeper.adapters.openai.call_settings import CallSettings
from gatekeeper.adapters.openai.reader import generations_of
from gatekeeper.errors import BadInputError, VerifierUnavailableError
from gatekeeper.gate import VerificationGate
from gatekeeper.io.providers import readers
from gatekeeper.types import GateResult, Generation, Undecided, UndecidedState
from gatekeeper.wording import described

__all__ = ["AsyncObservedStream", "ObservedStream", "ResponseObserver", "observe_stream", "own_id"]

_LOG = logging.getLogger("gatekeeper")

_numbers: WeakKeyDictionary[VerificationGate, dict[str, int]] = WeakKeyDictionary()
_numbers_lock = Lock()


def own_id(gate: VerificationGate, generation: Generation) -> str:
    """The provider's id, made unique.

    Some servers send no id, or the same id twice. If this process sees an id for the first time,
    and the log has the same text for it, the output is one that an earlier process began.
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
    """Each output with the suffix that makes its id unique among several."""
    return [(output, f"/{i}" if len(outputs) > 1 else "") for i, output in enumerate(outputs)]


@dataclass(slots=True)
class ResponseObserver:
    """Reads one answer, lets the gate decide on its outputs, and keeps the results.

    An error about one output does not keep the gate from the others: if strict, the first is raised
    when all have their results.
    """

    gate: VerificationGate
    settings: CallSettings
    strict: bool = False
    attachment: Attachment = field(default_factory=Attachment)
    _first_error: Exception | None = field(default=None, init=False)

    def decide(self, outputs: list[Generation | Undecided]) -> None:
        self.attachment.results = tuple(
            [self._decide(output, s) for output, s in _numbered(outputs)]
        )
        self.check()

    async def adecide(self, outputs: list[Generation | Undecided]) -> None:
        """`decide` for asyncio, with all decisions before the first verification: a caller that is
        cancelled while it waits for a verdict leaves no output undecided.
        """
        results: list[Result] = []
        selected: list[tuple[int, Coroutine[Any, Any, GateResult]]] = []
        with ExitStack() as ending:
            for i, (output, suffix) in enumerate(_numbered(outputs)):
                result, verification = await self._abegin(output, suffix)
                results.append(result)
                if verification is not None:
                    ending.callback(verification.close)  # releases what is reserved for it
                    selected.append((i, verification))
            self.attachment.results = tuple(results)
            for i, verification in selected:
                results[i] = await self._verified(results[i].id, verification)
                self.attachment.results = tuple(results)
        self.check()

    def check(self) -> None:
        """Raise the first error so far, if strict."""
        if self.strict and self._first_error is not None:
            raise self._first_error

    def _decide(self, output: Generation | Undecided, suffix: str) -> Result:
        if isinstance(output, Undecided):
            return output
        id_ = output.id
        try:
            id_ = self._id(output, suffix)
            return self.gate.maybe_verify(output, self.settings.task, id=id_, force=self._force)
        except Exception as error:
            return self._failed(id_, error)

    async def _abegin(
        self, output: Generation | Undecided, suffix: str
    ) -> tuple[Result, Coroutine[Any, Any, GateResult] | None]:
        """The decision, and the verification of a selected output, which has not begun."""
        if isinstance(output, Undecided):
            return output, None
        id_ = output.id
        try:
            id_ = self._id(output, suffix)
            task, force = self.settings.task, self._force
            return await self.gate.adecide(output, task, id=id_, force=force)
        except Exception as error:
            return self._failed(id_, error), None

    async def _verified(self, id_: str, verification: Coroutine[Any, Any, GateResult]) -> Result:
        try:
            return await verification
        except Exception as error:
            return self._failed(id_, error)

    def _id(self, generation: Generation, suffix: str) -> str:
        id_ = self.settings.id
        return own_id(self.gate, generation) if id_ is None else id_ + suffix

    @property
    def _force(self) -> bool:
        return self.settings.verify == "always"

    def _failed(self, id_: str, error: Exception) -> Result:
        if isinstance(error, VerifierUnavailableError):
            self._first_error = self._first_error or error
            return error.result
        return self.undecided(UndecidedState.GATE_ERROR, id_, error)

    def undecided(self, state: UndecidedState, id_: object, error: Exception) -> Undecided:
        """A named state in place of the error, which `check` raises if strict."""
        self._first_error = self._first_error or error
        name = id_ if isinstance(id_, str) else ""
        kind = next(c for c in type(error).__mro__ if not c.__name__.startswith("_"))
        text = described(error, kind)
        _LOG.warning("output %r: no decision, %s: %s", name, state, text)
        return Undecided(name, state, text)

    def outputs_of(self, response: object) -> list[Generation | Undecided]:
        def read() -> list[Generation]:
            return generations_of(response, scope=self.settings.scope)

        output = get(response, "output")  # of the Responses API, whose answer may be incomplete
        return self.read(
            read if output != [] else list, get(response, "id"), must_end=output is not None
        )

    def read(
        self, generations: Callable[[], list[Generation]], id_: object, *, must_end: bool
    ) -> list[Generation | Undecided]:
        """The outputs, or why there are none; with `must_end` they need a finish reason."""
        try:
            found = generations()
        except Exception as error:
            return [self.undecided(UndecidedState.UNREADABLE, id_, error)]
        if not found:
            nothing = BadInputError(f"response {id_!r} has no output")
            return [self.undecided(UndecidedState.EMPTY, id_, nothing)]
        return [self._if_complete(output, must_end=must_end) for output in found]

    def _if_complete(self, output: Generation, *, must_end: bool) -> Generation | Undecided:
        if not (output.broke_off or (must_end and output.finish_reason is None)):
            return output
        incomplete = BadInputError(
            f"output {output.id!r} is incomplete: its finish reason is {output.finish_reason}"
        )
        return self.undecided(UndecidedState.UNFINISHED, output.id, incomplete)

    # The chunk that completes the output, and those after it, are held until the gate has decided.
    # So a caller that stops there, or that the package stops there (LengthFinishReasonError), has
    # a result too.

    def chunks(self, stream: Iterable[Any], n: int = 1) -> Iterator[Any]:
        """The unchanged chunks; the gate decides when the stream's n outputs are complete."""
        reading = _StreamObservation(self, n)
        with reading.to_the_end():
            for chunk in stream:
                yield from reading.add(chunk)
        self.decide(reading.outputs())
        yield from reading.held
        reading.raise_broken()

    async def achunks(self, stream: AsyncIterable[Any], n: int = 1) -> AsyncIterator[Any]:
        reading = _StreamObservation(self, n)
        with reading.to_the_end():
            async for chunk in stream:
                for ready in reading.add(chunk):
                    yield ready
        await self.adecide(reading.outputs())
        for chunk in reading.held:
            yield chunk
        reading.raise_broken()


class _StreamObservation:
    """One stream: what its chunks hold so far, and whether the outputs are complete."""

    def __init__(self, observer: ResponseObserver, n: int) -> None:
        self.held: list[Any] = []
        self._observer = observer
        self._n = n
        self._reader = AnyStream(scope=observer.settings.scope, strict=observer.strict)
        self._broken: Exception | None = None

    def add(self, chunk: Any) -> list[Any]:
        """Add a chunk. Returns those that the caller gets now, in their order; others are held.

        The outputs are incomplete again where another one begins after all before were complete.
        """
        self._reader.add(chunk)
        self.held.append(chunk)
        if self._reader.is_complete(self._n):
            return []
        ready, self.held = self.held, []
        return ready

    @contextmanager
    def to_the_end(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            self._broken = error
        except BaseException:
            _LOG.info("stream %r: not read to its end: no decision", self._reader.id)
            raise

    def outputs(self) -> list[Generation | Undecided]:
        if self._broken is not None and not self.held:  # the caller gets this error and no other
            observer = replace(self._observer, strict=False)
            return [observer.undecided(UndecidedState.UNFINISHED, self._reader.id, self._broken)]
        must_end = self._reader.needs_finish_reason
        return self._observer.read(self._reader.generations, self._reader.id, must_end=must_end)

    def raise_broken(self) -> None:
        if self._broken is not None:
            raise self._broken


# -- streams from elsewhere ------------------------------------------------------------------------


class ObservedStream:
    """Iterates over the chunks of the stream that it was made from."""

    def __init__(self, stream: Iterable[Any], observer: ResponseObserver) -> None:
        self._chunks = observer.chunks(stream)
        attach(self, observer.gate, observer.attachment)

    def __iter__(self) -> Iterator[Any]:
        return self._chunks

    def __next__(self) -> Any:
        return next(self._chunks)


class AsyncObservedStream:
    """`ObservedStream` for asyncio."""

    def __init__(self, stream: AsyncIterable[Any], observer: ResponseObserver) -> None:
        self._chunks = observer.achunks(stream)
        attach(self, observer.gate, observer.attachment)

    def __aiter__(self) -> AsyncIterator[Any]:
        return self._chunks

    async def __anext__(self) -> Any:
        return await anext(self._chunks)


def observe_stream(
    gate: VerificationGate, stream: Any, settings: CallSettings, *, strict: bool
) -> ObservedStream | AsyncObservedStream:
    """The stream that `VerificationGate.observe_stream` returns.

    Raises
    ------
    BadInputError
        If `stream` passes through a gate already, is a whole response, or is not iterable.
    """
    if any(map(attached, holders(stream))):
        raise BadInputError("stream passes through a gate already: iterate over it as it is")
    observer = ResponseObserver(gate, settings, strict)
    if hasattr(stream, "__aiter__"):
        return AsyncObservedStream(stream, observer)
    # A list is the chunks of a stream; many a whole response is iterable, too, over its fields, but
    # none is an iterator, as most streams are: they need not be shown to every reader.
    is_stream = isinstance(stream, list | Iterator)
    if not is_stream and any(reader.recognises(stream) for reader in readers()):
        raise BadInputError(
            f"stream of type {type(stream).__name__!r} is a whole response: pass it to "
            "gate.maybe_verify, or ask the model for a stream"
        )
    if not isinstance(stream, Iterable) or isinstance(stream, str | bytes | Mapping):
        raise BadInputError(
            f"stream={stream!r:.80}: give an iterable of chunks, or an async one (of an async "
            "client: await the call first; of a context manager: enter it first)"
        )
    return ObservedStream(stream, observer)
