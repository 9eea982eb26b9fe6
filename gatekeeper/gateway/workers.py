"""Several processes that serve the same sockets, and the one that starts and ends them.

All accept connections from one queue of the kernel, so waiting connections survive when a process
is killed. Separate sockets (SO_REUSEPORT) would lose them, and two commands could use one port
without an error.

SIGTERM ends a process gracefully, however often it comes: a service manager sends it to all
processes of a group, and the supervisor sends it again. A process ends at once when the
supervisor's end of its channel is closed, by the supervisor or by its end.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from socket import socket
from time import monotonic
from typing import Any

from gatekeeper.analysis.parallel import interrupts_deferred

__all__ = ["Supervisor", "Worker"]

PAUSE, LONGEST_PAUSE = 0.5, 10.0  # seconds before a process that failed to start is started again
# "spawn": a fork would copy whatever threads the caller has, half alive
_CONTEXT = multiprocessing.get_context("spawn")


@dataclass(frozen=True, slots=True)
class Worker:
    """The view of one process on itself.

    Attributes
    ----------
    number
        From 1. A process that replaces another one has its number.
    sockets
        That listen.
    supervisor
        The channel to it; None: there is none. If it ends, this process ends at once. First the
        process sends through it, once it serves, what is to be printed; last what it did.
    """

    number: int
    sockets: Sequence[socket]
    supervisor: Connection | None

    def say(self, message: Any) -> None:
        """Send it to the supervisor, if that is there."""
        if self.supervisor is not None:
            with suppress(OSError):
                self.supervisor.send(message)


Work = Callable[[Worker], int]


@dataclass(slots=True)
class _Child:
    process: SpawnProcess
    channel: Connection
    said: list[Any] = field(default_factory=list)

    def listen(self) -> None:
        with suppress(EOFError, OSError):
            while self.channel.poll():
                self.said.append(self.channel.recv())

    @property
    def ready(self) -> bool:
        return bool(self.said)


class Supervisor:
    """Starts the processes, restarts those that have ended, and ends them all.

    Parameters
    ----------
    work : callable
        What a process does, until SIGTERM; returns its exit code. It must be picklable.
    count : int
    sockets : sequence of socket
        Closed when the processes are to end.
    on_ready : callable
        Called with the first message of the first process when all processes serve.

    Attributes
    ----------
    last : list
        The last message of each process that has ended as it should.
    """

    def __init__(
        self,
        work: Work,
        count: int,
        sockets: Sequence[socket],
        on_ready: Callable[[Any], None],
    ) -> None:
        self._work, self._count, self._sockets, self._on_ready = work, count, sockets, on_ready
        self._children: dict[int, _Child] = {}
        self._due: dict[int, float] = {}  # when to start it again
        self._pauses: dict[int, float] = {}
        self._announced = self._ending = False
        self._code = 0
        self.last: list[Any] = []

    def run(self) -> int:
        """Run until SIGTERM, and until all have ended; a second SIGTERM ends them at once.

        Returns
        -------
        int
            0, or the exit code of a process that failed; before all serve, the first one's.
        """
        with _terminations() as signals:
            try:
                self._start(1)  # an error in the options is reported once
                while self._children or (self._due and not self._ending):
                    self._step(signals)
            finally:  # Ctrl-C
                self._end_at_once()
                for child in self._children.values():
                    child.process.join()
        return self._code

    def _step(self, signals: int) -> None:
        """Wait for a signal, for a message, or for an end."""
        due = min(self._due.values(), default=None)
        children = self._children.values()
        waiting: list[Connection | int] = [signals, *(c.process.sentinel for c in children)]
        waiting += [c.channel for c in children if not c.channel.closed]
        found = wait(waiting, None if due is None else max(0.0, due - monotonic()))
        if signals in found:
            os.read(signals, 64)
            if self._ending:
                self._end_at_once()
            else:
                self._end()
        for number, child in list(self._children.items()):
            child.listen()
            if child.process.sentinel in found:
                self._ended(number, child)
        if self._ending:
            return
        if not self._announced and self._children[1].ready:
            for number in range(2, self._count + 1):
                if number not in self._children:
                    self._start(number)
            if all(child.ready for child in self._children.values()):
                self._announced = True
                self._on_ready(self._children[1].said[0])
        for number, at in list(self._due.items()):
            if at <= monotonic():
                del self._due[number]
                self._start(number)

    def _start(self, number: int) -> None:
        ours, theirs = _CONTEXT.Pipe()
        worker = Worker(number, self._sockets, theirs)
        process = _CONTEXT.Process(
            target=_enter, args=(self._work, worker), name=f"worker {number}"
        )
        with interrupts_deferred():
            process.start()
        theirs.close()
        self._children[number] = _Child(process, ours)

    def _ended(self, number: int, child: _Child) -> None:
        child.process.join()
        child.channel.close()
        del self._children[number]
        code = child.process.exitcode or 0
        if self._ending:
            self._code = self._code or max(code, 0)  # a signal's is below 0
            self.last += child.said[1:][-1:]
        elif not self._announced:
            self._code = code if code > 0 else 1
            self._end()
        else:
            pause = 0.0 if child.ready else self._pauses.get(number, PAUSE)
            self._pauses[number] = min(2 * pause, LONGEST_PAUSE) or PAUSE
            self._due[number] = monotonic() + pause
            how = f"by signal {-code}" if code < 0 else f"with exit code {code}"
            print(
                f"gatekeeper: worker {number} (process {child.process.pid}) has ended {how}; it "
                "is started again",
                file=sys.stderr,
                flush=True,
            )

    def _end(self) -> None:
        self._ending = True
        for opened in self._sockets:
            opened.close()
        for child in self._children.values():
            child.process.terminate()

    def _end_at_once(self) -> None:
        self._ending = True
        for child in self._children.values():
            child.channel.close()


def _enter(work: Work, worker: Worker) -> None:
    """In the new process. Ctrl-C is blocked in it: on a terminal it reaches all processes, and
    this one ends with its supervisor."""
    sys.exit(work(worker))


@contextmanager
def _terminations() -> Iterator[int]:
    """A descriptor with a byte for each SIGTERM."""
    read, write = os.pipe()
    os.set_blocking(write, False)
    before = signal.signal(signal.SIGTERM, lambda *_: os.write(write, b"\0"))
    try:
        yield read
    finally:
        signal.signal(signal.SIGTERM, before)
        os.close(read)
        os.close(write)
