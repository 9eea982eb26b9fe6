"""Gives a job to waiting processes, drains what they write, and ends them in time."""

from __future__ import annotations

import contextlib
import os
import select
import socket
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import Enum

from gatekeeper.sandbox.inside.codec import MAX_BYTES, frames
from gatekeeper.sandbox.worker import Child, LostError, Report, Worker

__all__ = ["TAIL_BYTES", "End", "Finished", "Job", "Terms", "drive"]

_TICK_SECONDS = 0.05  # how soon a cancellation is noticed
_CHUNK = 1 << 16
TAIL_BYTES = 2048
_LAST = frozenset({b"D", b"E", b"S", b"M", b"L", b"I", b"G"})  # kinds after which nothing comes


class End(Enum):
    """What ended the conversation."""

    ANSWERED = "answered"  # by its last word
    CLOSED = "closed"  # by the process, before its last word
    DEADLINE = "deadline"
    OUTPUT = "output"  # it wrote more than allowed
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class Terms:
    """What a run may take: wall-clock seconds, processor seconds, bytes of output.

    `waiting`: at the end of its wall-clock time, a run gets the seconds back that it stood in the
    queue for a processor, up to that many: a timeout should not be the machine's fault.
    """

    seconds: float
    waiting: float
    cpu_seconds: int
    output_bytes: int
    cancelled: threading.Event

    def after(self, run: Finished) -> Terms:
        """What is left for the next run on the same terms."""
        over = run.seconds - self.seconds
        return replace(self, seconds=max(0.01, -over), waiting=self.waiting - max(0.0, over))


@dataclass(frozen=True, slots=True)
class Job:
    """Texts for one process (`child.py`), and the descriptor that goes with them, if any.

    `drive` closes it: whoever waits for its other end must see when the process is gone.
    """

    texts: Sequence[str]
    descriptor: int | None = None

    def send(self, child: Child) -> None:
        encoded = [text.encode("utf-8", "surrogatepass") for text in self.texts]
        stream = b"".join(len(e).to_bytes(8, "little") + e for e in encoded)
        message = len(stream).to_bytes(8, "little") + stream
        descriptors = [] if self.descriptor is None else [self.descriptor]
        with contextlib.suppress(OSError):  # it died: the answer will not come either
            sent = socket.send_fds(child.connection, [message], descriptors)
            child.connection.sendall(memoryview(message)[sent:])


@dataclass(frozen=True, slots=True)
class Finished:
    """What is left of a run: the answers of the process that was to answer."""

    end: End
    seconds: float
    answers: list[tuple[bytes, bytes]]
    stdout: str  # the last of it, or all
    stderr: str
    report: Report


@dataclass(slots=True)
class _Stream:
    """A pipe being read: the last `keep` bytes, and how many went by."""

    keep: int
    data: bytearray = field(default_factory=bytearray)
    total: int = 0

    def feed(self, chunk: bytes) -> None:
        self.total += len(chunk)
        self.data += chunk
        del self.data[: -self.keep]


def drive(
    worker: Worker,
    jobs: Sequence[Job],
    terms: Terms,
    *,
    keep_output: bool = False,
) -> Finished:
    """Have each job done by a process of its own; the last one's answers are what counts.

    Output is the first one's, the candidate's. Raises LostError.
    """
    children: list[Child] = []
    try:
        try:
            children += (worker.take() for _ in jobs)
            started = time.monotonic()
            for job, child in zip(jobs, children, strict=True):
                job.send(child)
        finally:
            for job in jobs:
                if job.descriptor is not None:
                    os.close(job.descriptor)
        keep = terms.output_bytes if keep_output else TAIL_BYTES
        exchange = _Exchange(children, keep=keep, output_bytes=terms.output_bytes)
        deadline = started + terms.seconds
        end = exchange.run(deadline, terms.cancelled)
        try:
            if end is End.DEADLINE:
                deadline += min(worker.waited(children), terms.waiting)
                end = exchange.run(deadline, terms.cancelled)
            elapsed = time.monotonic() - started
            report = worker.end(children)
        except LostError:
            elapsed = time.monotonic() - started
            worker.fit = False
            # Those verdicts stand without a report, unless all of it was halted from outside.
            if end not in (End.DEADLINE, End.OUTPUT) or not worker.runs():
                raise
            report = _NO_REPORT
    finally:
        for child in children:
            child.close()
    exchange.check(end)
    answers = frames(bytes(exchange.answer.data)) if end is not End.OUTPUT else []
    out, error = exchange.output
    return Finished(
        end,
        elapsed,
        answers[1:],
        out.data.decode("utf-8", "replace"),
        error.data.decode("utf-8", "replace"),
        report,
    )


_NO_REPORT = Report(status=(), cpu=(), left=True, memory=0, processes=0)


class _Exchange:
    """Reads all streams of the children until one of the ends."""

    def __init__(self, children: Sequence[Child], *, keep: int, output_bytes: int) -> None:
        limit = 2 * MAX_BYTES
        self._output_bytes, self._answer_bytes = output_bytes, limit
        self._poll = select.poll()
        self._streams: dict[int, _Stream] = {}
        self._children = children
        self._connections = [child.connection.fileno() for child in children]
        for child in children:
            self._watch(child.connection.fileno(), limit + _CHUNK)
            self._watch(child.out, keep)
            self._watch(child.error, keep)
        self._answering = self._connections[-1]
        self.answer = self._streams[self._answering]
        self.output = self._streams[children[0].out], self._streams[children[0].error]
        self._parsed = 0

    def _watch(self, descriptor: int, keep: int) -> None:
        self._poll.register(descriptor, select.POLLIN)
        self._streams[descriptor] = _Stream(keep)

    def run(self, deadline: float, cancelled: threading.Event) -> End:
        while True:
            left = deadline - time.monotonic()
            if left <= 0:
                return End.DEADLINE
            if cancelled.is_set():
                return End.CANCELLED
            closed = False
            for descriptor, _ in self._poll.poll(1000 * min(left, _TICK_SECONDS)):
                open_ = self._read(descriptor)
                closed = closed or (not open_ and descriptor == self._answering)
            if self._last_word():
                self._drain()
                return End.OUTPUT if self._too_much() else End.ANSWERED
            if self._too_much():
                return End.OUTPUT
            if closed:
                self._drain()
                return End.CLOSED

    def check(self, end: End) -> None:
        """Raises LostError where a process was not even locked in: no fault of the candidate's."""
        for data in (self._streams[c].data for c in self._connections):
            if end is not End.OUTPUT and data[:1] != b"R":
                why = data[5:].decode("utf-8", "replace") or f"no answer ({end.value})"
                raise LostError(f"a sandboxed process could not be locked in: {why}")

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
        """What was written before the last word, and is still in the pipes."""
        for pipe in (self._children[0].out, self._children[0].error):
            before = -1
            while before < self._streams[pipe].total and not self._too_much():
                before = self._streams[pipe].total
                with contextlib.suppress(KeyError, FileNotFoundError):  # it is at its end already
                    self._read(pipe)

    def _last_word(self) -> bool:
        """Whether a frame arrived after which none comes."""
        data = self.answer.data
        while self._parsed + 5 <= len(data):
            size = int.from_bytes(data[self._parsed + 1 : self._parsed + 5], "little")
            if self._parsed + 5 + size > len(data):
                return False
            kind = bytes(data[self._parsed : self._parsed + 1])
            self._parsed += 5 + size
            if kind in _LAST:
                return True
        return False

    def _too_much(self) -> bool:
        pipes = [pipe for child in self._children for pipe in (child.out, child.error)]
        written = sum(self._streams[pipe].total for pipe in pipes)
        return written > self._output_bytes or any(
            self._streams[connection].total > self._answer_bytes for connection in self._connections
        )
