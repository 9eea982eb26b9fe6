"""The run loop: gives jobs to processes, reads what they write, and ends them in time."""

from __future__ import annotations

import contextlib
import os
import random
import select
import socket
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import Enum

from gatekeeper.sandbox.inside.wire import MAX_BYTES
from gatekeeper.sandbox.worker import Child, LostError, OverloadedError, Report, Worker

__all__ = ["FORGIVEN_SECONDS", "TAIL_BYTES", "End", "Finished", "Job", "Terms", "run_jobs"]

_TICK_SECONDS = 0.05  # how soon a cancellation is noticed
_AWAY_SECONDS = 0.2  # interval of the host's checks, in seconds; longer gaps do not count
FORGIVEN_SECONDS = 2.0  # most seconds of such gaps that do not count
_LOOK_SECONDS = 0.1  # on average, between two readings of a run's processor time
_CHUNK = 1 << 16
_BUFFERED = 8  # chunks that fit into a socket
_MORE_ANSWERS = 100  # answers beyond the number of texts in a job; later ones are not read
TAIL_BYTES = 2048
_LAST = frozenset({b"D", b"E", b"S", b"M", b"L", b"I", b"G"})  # kinds after which nothing comes


class End(Enum):
    """What ended the run."""

    ANSWERED = "answered"  # the final frame arrived
    CLOSED = "closed"  # the process closed its socket before the final frame
    DEADLINE = "deadline"
    OUTPUT = "output"  # it wrote more than allowed
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class Terms:
    """The limits of a run.

    A candidate gets `seconds` of wall clock, without the time in which it waited for a processor,
    at most `waiting` seconds. Waiting does count while more of its own threads were ready than
    there are processors, and once all its processes together used `seconds` of processor time. So
    no candidate gains time by starving itself. If it still had less in the end, that is an
    OverloadedError, not a timeout.

    Attributes
    ----------
    seconds
        Wall clock, without waiting that does not count.
    waiting
        Most seconds of waiting that do not count.
    cpu_seconds
        Processor seconds of each process.
    output_bytes
        Most bytes of standard output and error together.
    cancelled
        Set to end the run.
    """

    seconds: float
    waiting: float
    cpu_seconds: int
    output_bytes: int
    cancelled: threading.Event

    def after(self, run: Finished) -> Terms:
        """The rest of these limits for the next run."""
        seconds = max(0.01, self.seconds - (run.seconds - run.waited))
        return replace(self, seconds=seconds, waiting=max(0.0, self.waiting - run.waited))


@dataclass(frozen=True, slots=True)
class Job:
    """Texts for one process (`child.py`), and the descriptor that goes with them, if any.

    `run_jobs` closes it, so that a reader of its other end notices the end of the process.
    """

    texts: Sequence[str]
    descriptor: int | None = None

    def send(self, child: Child) -> None:
        encoded = [text.encode("utf-8", "surrogatepass") for text in self.texts]
        stream = b"".join(len(e).to_bytes(8, "little") + e for e in encoded)
        message = len(stream).to_bytes(8, "little") + stream
        descriptors = [] if self.descriptor is None else [self.descriptor]
        with contextlib.suppress(OSError):  # the process died: its missing answer shows that
            sent = socket.send_fds(child.connection, [message], descriptors)
            child.connection.sendall(memoryview(message)[sent:])


@dataclass(frozen=True, slots=True)
class Finished:
    """The result of a run.

    Attributes
    ----------
    end
        What ended the run.
    seconds
        Wall clock of the run.
    waited
        Seconds of these in which the candidate waited for a processor.
    answers
        Kind and payload of each frame of the last job's process.
    stdout, stderr
        Output of the first job's process: the last 2 KiB, or all.
    report
        How the processes ended.
    """

    end: End
    seconds: float
    waited: float
    answers: list[tuple[bytes, bytes]]
    stdout: str
    stderr: str
    report: Report


@dataclass(slots=True)
class _Stream:
    """A pipe being read: its last `keep` bytes, and how many bytes it had in all."""

    keep: int
    data: bytearray = field(default_factory=bytearray)
    total: int = 0

    def feed(self, chunk: bytes) -> None:
        self.total += len(chunk)
        self.data += chunk
        del self.data[: -self.keep]


def run_jobs(
    worker: Worker,
    jobs: Sequence[Job],
    terms: Terms,
    *,
    keep_output: bool = False,
) -> Finished:
    """Run each job in a process of its own.

    Parameters
    ----------
    worker
        Its processes take the jobs; its `tried` becomes True when the candidate begins.
    jobs
        The first is the candidate's, whose output is kept; the last one's answers are returned.
    terms
        What the run may take.
    keep_output
        Whether all output is kept, not only its last 2 KiB.

    Raises
    ------
    LostError
        The worker was lost: nothing is known about the candidate.
    OverloadedError
        The candidate had too little of a processor.
    """
    children: list[Child] = []
    try:
        try:
            for job in jobs:  # no candidate begins before the last process has its job
                children.append(worker.take())
                worker.used = True
                worker.tried = len(children) == len(jobs) or worker.tried
                job.send(children[-1])
        finally:
            for job in jobs:
                if job.descriptor is not None:
                    os.close(job.descriptor)
        started = time.monotonic()
        keep = terms.output_bytes if keep_output else TAIL_BYTES
        most = len(jobs[-1].texts) + _MORE_ANSWERS
        exchange = _Exchange(children, keep=keep, output_bytes=terms.output_bytes, most=most)
        end = End.CLOSED
        try:
            end = _converse(worker, exchange, terms)
            elapsed = time.monotonic() - started
            report = worker.end(children)
        except OverloadedError:
            raise
        except LostError:
            elapsed = time.monotonic() - started
            worker.reusable = False
            # These verdicts need no report, unless the whole container was halted from outside.
            if end not in (End.DEADLINE, End.OUTPUT) or not worker.runs():
                raise
            report = _NO_REPORT
    finally:
        for child in children:
            child.close()
    out, error = exchange.output
    return Finished(
        end,
        elapsed,
        min(sum(report.waited), elapsed),
        exchange.answers if end is not End.OUTPUT else [],
        out.data.decode("utf-8", "replace"),
        error.data.decode("utf-8", "replace"),
        report,
    )


_NO_REPORT = Report(status=(), cpu=(), waited=(), left=True, memory=0, processes=0)


def _converse(worker: Worker, exchange: _Exchange, terms: Terms) -> End:
    """Run until there is an end, by the clock that `Terms` describes. Raises OverloadedError."""
    started = time.monotonic()
    passed, until = 0.0, terms.seconds
    looks = crowded = 0
    while True:
        # At random times, so that a candidate cannot know them.
        more = min(until - passed, _LOOK_SECONDS * random.uniform(0.5, 1.5))
        if (end := exchange.run(more, terms.cancelled)) is not End.DEADLINE:
            return end
        asked = time.monotonic()
        try:
            spent = worker.spent(exchange.children)
        except LostError:
            if passed + more < until:
                raise
            return End.DEADLINE  # a timeout needs no report of the supervisor
        exchange.count(time.monotonic() - asked)
        looks, crowded = looks + 1, crowded + spent.crowded
        passed = time.monotonic() - started - exchange.forgiven
        if passed < until:
            continue
        if (end := exchange.run(0.0, terms.cancelled)) is not End.DEADLINE:
            return end
        waited = min(spent.waited, passed) - passed * crowded / looks
        missing = terms.seconds - (passed - max(0.0, waited))
        if missing <= 0 or spent.used >= terms.seconds:
            return End.DEADLINE
        most = terms.seconds + terms.waiting
        if passed >= most:
            raise OverloadedError(
                f"overloaded: the candidate waited {waited:.2f} of {passed:.2f} s for a processor"
            )
        until = min(passed + max(missing, _TICK_SECONDS), most)


class _Exchange:
    """Reads all streams of the children until one of the ends."""

    def __init__(
        self, children: Sequence[Child], *, keep: int, output_bytes: int, most: int
    ) -> None:
        limit = 2 * MAX_BYTES
        self._output_bytes, self._answer_bytes, self._most = output_bytes, limit, most
        self._poll = select.poll()
        self._streams: dict[int, _Stream] = {}
        self.children = children
        self._connections = [child.connection.fileno() for child in children]
        for child in children:
            self._watch(child.connection.fileno(), limit + _CHUNK)
            self._watch(child.out, keep)
            self._watch(child.error, keep)
        self._answering = self._connections[-1]
        self._answer = self._streams[self._answering]
        self.answers: list[tuple[bytes, bytes]] = []  # kind and payload of each frame
        self.output = self._streams[children[0].out], self._streams[children[0].error]
        self.forgiven = 0.0  # seconds that do not count, because there was no check
        self._parsed = 0

    def _watch(self, descriptor: int, keep: int) -> None:
        self._poll.register(descriptor, select.POLLIN)
        self._streams[descriptor] = _Stream(keep)

    def run(self, seconds: float, cancelled: threading.Event) -> End:
        """Read until there is an end, or for `seconds`.

        Up to `FORGIVEN_SECONDS` of gaps do not count in which this thread could not read, because
        another one held the interpreter or the machine was halted. The pipes are read before the
        clock.
        """
        left, now = seconds, time.monotonic()
        late = 0  # reads of the answers since the time was up
        while True:
            news = closed = False
            for descriptor, _ in self._poll.poll(1000 * max(0.0, min(left, _TICK_SECONDS))):
                open_ = self._read(descriptor)
                if descriptor == self._answering:
                    news, closed = open_, not open_
            if self._last_word():
                self._drain()
                return End.OUTPUT if self._too_much() else End.ANSWERED
            if self._too_much():
                return End.OUTPUT
            if closed:
                self._drain()
                return End.CLOSED
            if cancelled.is_set():
                return End.CANCELLED
            if left <= 0:
                late += 1
                if not news or late > _BUFFERED:
                    return End.DEADLINE
            before, now = now, time.monotonic()
            left -= self.count(now - before)

    def count(self, seconds: float) -> float:
        """The seconds that count of the time between two reads, which should be a tick."""
        if seconds < _AWAY_SECONDS or self.forgiven > FORGIVEN_SECONDS:
            return seconds
        self.forgiven += seconds - _TICK_SECONDS
        return _TICK_SECONDS

    def _read(self, descriptor: int) -> bool:
        """Read once; False at the end of a stream."""
        try:
            chunk = os.read(descriptor, _CHUNK)
        except BlockingIOError:
            return True
        except OSError:  # a socket that was reset
            chunk = b""
        if not chunk:
            self._poll.unregister(descriptor)
            return False
        self._streams[descriptor].feed(chunk)
        return True

    def _drain(self) -> None:
        """Read what was written before the final frame and is still in the pipes."""
        for pipe in (self.children[0].out, self.children[0].error):
            before = -1
            while before < self._streams[pipe].total and not self._too_much():
                before = self._streams[pipe].total
                with contextlib.suppress(KeyError, FileNotFoundError):  # its end was read already
                    self._read(pipe)

    def _last_word(self) -> bool:
        """Whether a frame arrived after which none comes."""
        data = self._answer.data
        while self._parsed + 5 <= len(data):
            start = self._parsed + 5
            end = start + int.from_bytes(data[self._parsed + 1 : start], "little")
            if end > len(data):
                return False
            kind = bytes(data[self._parsed : self._parsed + 1])
            self.answers.append((kind, bytes(data[start:end])))
            self._parsed = end
            if kind in _LAST or len(self.answers) > self._most:
                return True
        return False

    def _too_much(self) -> bool:
        pipes = [pipe for child in self.children for pipe in (child.out, child.error)]
        written = sum(self._streams[pipe].total for pipe in pipes)
        return written > self._output_bytes or any(
            self._streams[connection].total > self._answer_bytes for connection in self._connections
        )
