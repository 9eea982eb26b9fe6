"""Verdicts as scores of traces, and the queue to a tracing tool."""

from __future__ import annotations

import atexit
import logging
import os
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from threading import Condition, Thread
from typing import Any, ClassVar, NamedTuple
from weakref import WeakSet

from gatekeeper.arguments import check_count, check_flag, check_printable, check_seconds
from gatekeeper.errors import BadInputError
from gatekeeper.printable import printable
from gatekeeper.types import Observation
from gatekeeper.wording import counted, described

__all__ = ["ClientSink", "Place", "Score", "ScoreSink", "UnsentError"]

_LOG = logging.getLogger("gatekeeper")
BATCH = 100  # scores in one batch
WAITS = (0.5, 1.0, 2.0, 4.0)  # seconds before a batch that failed is sent again
GRACE = 5.0  # seconds for the queue at the end of the process


_SINKS: WeakSet[ScoreSink] = WeakSet()


def _forked() -> None:
    for sink in _SINKS:
        sink._empty()


os.register_at_fork(after_in_child=_forked)


class Place(NamedTuple):
    """Where a score belongs: a span of a trace, by the tool's ids."""

    trace: str
    span: str


@dataclass(frozen=True, slots=True)
class Score:
    """A verdict as a score for tracing tools.

    Attributes
    ----------
    place
        The span in which the output reached the gate.
    output
        Its id in the gate.
    value
        1.0 for a right output, 0.0 for a wrong one; of a graded metric its value.
    label
        "pass" or "fail".
    explanation
        The verifier's `detail`; "" if left out.
    metadata
        Data for averages over scores, in particular the propensity: JSON values.
    """

    place: Place
    output: str
    value: float
    label: str
    explanation: str
    metadata: dict[str, Any]

    @classmethod
    def of(cls, seen: Observation, place: Place) -> Score:
        """The score of an outcome with a verdict."""
        result, gate = seen.result, seen.gate
        outcome, decision = result.outcome, result.decision
        assert outcome is not None
        assert outcome.grade is not None
        metadata = {
            "propensity": decision.propensity,
            "reason": str(decision.reason),
            "verdict": str(outcome.verdict),
            "policy": gate.policy,
            "policy_version": decision.version,
            "cost": outcome.cost,
            "unit": gate.unit,
            "external": seen.external,
        }
        label = "fail" if outcome.error else "pass"
        return cls(place, result.id, outcome.grade, label, outcome.detail, metadata)


class UnsentError(Exception):
    """Raised by `ScoreSink.send` from the tool's error if it has sent a part of the scores.

    Parameters
    ----------
    scores : sequence of Score
        Those that were not sent.
    """

    def __init__(self, scores: Sequence[Score]) -> None:
        super().__init__(f"not sent: {counted(len(scores), 'score')}")
        self.scores = scores


class ScoreSink(ABC):
    """A sink that sends scores to a tool from a thread of its own, and never raises.

    Outputs that were not verified, or for which the verifier could not tell, have no score.

    Parameters
    ----------
    name : str
        Name of the scores.
    most : int
        Most scores in the queue; further ones are dropped.
    explanations : bool
        Whether scores have the verifier's `detail`, which may quote the output, its tests or its
        reference answer.

    Raises
    ------
    BadInputError
        For another value.

    Attributes
    ----------
    sent, dropped, failed, without_span : int
        Numbers of scores: sent; dropped because the queue was full, or at the end; failed five
        times; of outputs outside of any span, or in one that the tracer does not sample.
    """

    def __init__(
        self, name: str = "correctness", *, most: int = 10_000, explanations: bool = True
    ) -> None:
        self.name = check_printable("name", name)
        self.sent = self.dropped = self.failed = self.without_span = 0
        self._most = check_count("most", most)
        self._explanations = check_flag("explanations", explanations)
        self._closed = False
        self._warned = False
        self._error: BaseException | None = None  # of the last try that failed
        self._empty()
        _SINKS.add(self)

    def _empty(self) -> None:
        """No queue, no thread: at the beginning, and after a fork, whose parent sends its own."""
        self._waiting: deque[Score] = deque()
        self._sending = 0
        self._changed = Condition()
        self._thread: Thread | None = None

    @abstractmethod
    def place(self) -> Place | None:
        """The tool's current span; called in the context of the gate's caller."""

    @abstractmethod
    def send(self, scores: Sequence[Score]) -> None:
        """Send scores to the tool, again if an earlier try failed. May raise anything.

        Raises
        ------
        UnsentError
            If some were sent: only the others are sent again.
        """

    def decided(self, seen: Observation) -> object:
        """The place, which is kept until the verdict."""
        return self.place()

    def concluded(self, seen: Observation, kept: Any) -> None:
        """Queue the score of a verdict."""
        outcome = seen.result.outcome
        if outcome is None or outcome.error is None:
            return
        with self._changed:
            if kept is None:
                self.without_span += 1
            elif self._closed or len(self._waiting) >= self._most:
                self.dropped += 1
            else:
                score = Score.of(seen, kept)
                self._waiting.append(
                    score if self._explanations else replace(score, explanation="")
                )
                self._begin()
                self._changed.notify_all()

    def flush(self, seconds: float = 30.0) -> bool:
        """Wait until everything is sent; False if that takes longer.

        Raises
        ------
        BadInputError
            For a number of seconds below 0, and for anything else.
        """
        timeout = check_seconds("seconds", seconds)
        with self._changed:
            return self._changed.wait_for(
                lambda: not self._waiting and not self._sending, timeout=timeout
            )

    def close(self, seconds: float = GRACE) -> None:
        """Send the queue, as far as possible in so many seconds, at least 0."""
        self.flush(seconds)
        with self._changed:
            self._closed = True
            self.dropped += len(self._waiting)
            # Its thread may not live long enough to count and report the batch that it is sending.
            if unsent := len(self._waiting) + self._sending:
                _LOG.warning(
                    "gatekeeper: %s was closed before %d scores were sent%s",
                    type(self).__name__,
                    unsent,
                    f": {described(self._error)}" if self._error else "",
                )
            self._waiting.clear()
            self._changed.notify_all()
        atexit.unregister(self.close)

    def _begin(self) -> None:
        if self._thread is None:
            self._thread = Thread(target=self._run, name=f"{type(self).__name__}", daemon=True)
            self._thread.start()
            atexit.register(self.close)

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._closed)
                if not self._waiting:
                    return
                batch = [self._waiting.popleft() for _ in range(min(BATCH, len(self._waiting)))]
                self._sending = len(batch)
            failed = self._send(batch)
            with self._changed:
                self._sending = 0
                self.sent += len(batch) - failed
                self.failed += failed
                self._changed.notify_all()

    def _send(self, batch: Sequence[Score]) -> int:
        """How many could not be sent."""
        batch = [_storable(score) for score in batch]
        waits = [*WAITS]
        while True:
            error: BaseException
            try:
                self.send(batch)
                self._error = None
                return 0
            except UnsentError as some:
                batch, error = some.scores, some.__cause__ or some
            except Exception as caught:
                error = caught
            self._error = error
            if not waits:
                self._warn(error)
                return len(batch)
            with self._changed:  # the end of the process does not wait for a tool that fails
                if self._changed.wait_for(lambda: self._closed, timeout=waits.pop(0)):
                    return len(batch)

    def _warn(self, error: BaseException) -> None:
        if not self._warned:
            self._warned = True
            _LOG.warning(
                "gatekeeper: %s took no scores: %s: %s. Further ones are counted as failed",
                type(self).__name__,
                type(error).__name__,
                error,
            )


def _storable(score: Score) -> Score:
    """The score without characters that a tool cannot encode or store, such as NUL and halves of
    surrogate pairs: for one of them it would refuse a whole batch.
    """
    texts = printable(score.output), printable(score.explanation)
    return replace(score, output=texts[0], explanation=texts[1])


class ClientSink(ScoreSink):
    """A sink of a tool whose spans are OpenTelemetry's, as those of Langfuse and Phoenix are.

    Parameters
    ----------
    client
        The tool's own.
    name, most, explanations
        As of `ScoreSink`.

    Raises
    ------
    BadInputError
        For another value.
    """

    calls: ClassVar[str]  # the method of the client with which scores are sent
    clients: ClassVar[str]  # which clients have it

    def __init__(
        self,
        client: Any,
        name: str = "correctness",
        *,
        most: int = 10_000,
        explanations: bool = True,
    ) -> None:
        super().__init__(name, most=most, explanations=explanations)
        try:
            attrgetter(self.calls)(client)
        except AttributeError:  # its text may be a key, given by mistake
            raise BadInputError(
                f"client: a {type(client).__name__} has no {self.calls}: give {self.clients}"
            ) from None
        self._client = client

    def place(self) -> Place | None:
        """OpenTelemetry's current span; None for one that is not sampled, as no tool gets it."""
        from opentelemetry import trace

        about = trace.get_current_span().get_span_context()
        if not (about.is_valid and about.trace_flags.sampled):
            return None
        return Place(trace.format_trace_id(about.trace_id), trace.format_span_id(about.span_id))
