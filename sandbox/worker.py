"""The host's end of one supervisor: takes processes from it and gives them back."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import select
import socket
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

__all__ = [
    "ANSWER_SECONDS",
    "START_SECONDS",
    "Child",
    "LostError",
    "OverloadedError",
    "Report",
    "Spent",
    "Worker",
]

START_SECONDS = 30.0  # for a supervisor to start, on a machine under load
ANSWER_SECONDS = 2.0  # for it to clean up, or to report what was spent
TAKE_SECONDS = 10.0  # for it to provide a process, and for that to be confined


class LostError(Exception):
    """The supervisor or its container has ended: nothing is known about the candidate."""


class OverloadedError(LostError):
    """The candidate waited too long for a processor for a reliable verdict."""


@dataclass(slots=True)
class Child:
    """A process that waits for a job: its number, its socket, its output as descriptors."""

    number: int
    connection: socket.socket
    out: int
    error: int

    def stands_ready(self, seconds: float) -> bool:
        """Wait until it is confined. Returns whether it is alive; LostError if confining fails."""
        try:
            said = self._receive(seconds)
            if said[:1] == b"R":
                with contextlib.suppress(BlockingIOError):
                    return bool(self.connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT))
                return True
            why = said[5:].decode("utf-8", "replace") or "it ended"
        except OSError as error:
            why = str(error)
        raise LostError(f"a sandboxed process could not be confined: {why}")

    def _receive(self, seconds: float) -> bytes:
        """The first message of the process."""
        with contextlib.suppress(BlockingIOError):  # most often it has arrived already
            return self.connection.recv(1 << 12, socket.MSG_DONTWAIT)
        poll = select.poll()
        poll.register(self.connection, select.POLLIN)
        if not poll.poll(1000 * seconds):
            raise TimeoutError(f"no message in {seconds:g} s")
        return self.connection.recv(1 << 12)

    def close(self) -> None:
        """Close the socket and the descriptors. Safe to call twice."""
        if self.connection.fileno() >= 0:
            self.connection.close()
            os.close(self.out)
            os.close(self.error)


@dataclass(frozen=True, slots=True)
class Report:
    """How children ended, as reported by the supervisor.

    Attributes
    ----------
    status
        Exit status of each child, as `os.waitstatus_to_exitcode` returns it.
    cpu, waited
        Processor seconds of each child, and its seconds of waiting for a processor.
    left
        Whether a process, a file or a socket outlived them.
    memory, processes
        How often the kernel refused memory, or a process, since the last report.
    """

    status: tuple[int, ...]
    cpu: tuple[float, ...]
    waited: tuple[float, ...]
    left: bool
    memory: int
    processes: int


@dataclass(frozen=True, slots=True)
class Spent:
    """The processor time that children used so far, and waited for.

    Attributes
    ----------
    waited
        Seconds in which they waited for a processor.
    used
        Processor seconds of them and of all that they started.
    crowded
        Whether at present more of these are ready to run than there are processors.
    """

    waited: float
    used: float
    crowded: bool


class Worker:
    """One supervisor. Not for several threads at once.

    Parameters
    ----------
    control
        The socket to it.
    stop
        Ends the container or the process that it runs in.
    runs
        Whether that is running.
    about
        The worker's part of the `meta` of outcomes.

    Attributes
    ----------
    modules
        Top-level modules that candidates and tests can import.
    reusable
        Whether another candidate may run on it.
    used
        Whether a process of this worker ever got a job.
    tried
        Whether one got a job since the caller last set this to False.

    Raises
    ------
    LostError
        From every method: the supervisor is gone, or does not answer.
    OSError
        This process has no descriptors left.
    """

    def __init__(
        self,
        control: socket.socket,
        *,
        stop: Callable[[], None],
        runs: Callable[[], bool],
        about: Mapping[str, Any],
    ) -> None:
        self._control, self._stop, self.runs, self.about = control, stop, runs, dict(about)
        self._ready: deque[Child] = deque()
        self._counts = (0, 0)
        self.reusable = True
        self.used = self.tried = False
        control.settimeout(START_SECONDS)
        try:
            hello = self._receive(1 << 20)
        except TimeoutError as error:
            raise LostError("the sandbox's supervisor does not start") from error
        self.about["python"] = hello["ready"]
        self.modules: frozenset[str] = frozenset(hello["modules"])
        control.settimeout(ANSWER_SECONDS)

    @property
    def alive(self) -> bool:
        """Whether the supervisor has its end of the socket open."""
        poll = select.poll()
        poll.register(self._control, 0)
        return not poll.poll(0)

    def take(self) -> Child:
        """A fresh, confined process that waits for its job.

        So an error of confining is not an error of the candidate.
        """
        while True:
            patience = time.monotonic() + TAKE_SECONDS
            while not self._ready:
                try:
                    self._receive()
                except TimeoutError as error:
                    if time.monotonic() > patience:
                        raise LostError("the sandbox's supervisor provides no process") from error
            child = self._ready.popleft()
            try:
                if child.stands_ready(TAKE_SECONDS):
                    return child
            except LostError:
                child.close()
                raise
            self.end([child])  # this process ended while it waited

    def rehearse(self) -> None:
        """Start, confine and end one process. Raises LostError if that fails."""
        self.end([self.take()])

    def spent(self, children: Iterable[Child]) -> Spent:
        """The processor time that these processes used so far, and waited for."""
        return Spent(**self._ask("spent", children)["spent"])

    def end(self, children: Iterable[Child]) -> Report:
        """Kill these processes and those that they started, and remove their files."""
        children = list(children)
        for child in children:
            child.close()
        message = self._ask("end", children)
        counts = (message["memory"], message["processes"])
        memory, processes = (now - before for now, before in zip(counts, self._counts, strict=True))
        self._counts = counts
        for child in [child for child in self._ready if child.number in message["gone"]]:
            self._ready.remove(child)
            child.close()
        status, cpu, waited = (tuple(message[name]) for name in ("status", "cpu", "waited"))
        return Report(status, cpu, waited, message["left"], memory, processes)

    def close(self) -> None:
        """End the supervisor and everything under it. Safe to call twice."""
        self.reusable = False
        self._control.close()
        while self._ready:
            self._ready.popleft().close()
        self._stop()

    def _ask(self, what: str, children: Iterable[Child]) -> dict[str, Any]:
        """Send a request about these processes, and return the answer."""
        try:
            self._control.send(json.dumps({what: [c.number for c in children]}).encode())
        except OSError as error:
            raise LostError(f"the sandbox's supervisor is gone: {error}") from error
        try:
            while what not in (message := self._receive()):
                pass
        except TimeoutError as error:
            raise LostError(f"the sandbox's supervisor does not answer ({what})") from error
        return message

    def _receive(self, room: int = 1 << 16) -> dict[str, Any]:
        """The next message; keeps a process that comes with it. Raises LostError, TimeoutError."""
        try:
            data, descriptors, _, _ = socket.recv_fds(
                self._control, room, 3, socket.MSG_CMSG_CLOEXEC
            )
        except TimeoutError:
            raise
        except OSError as error:
            raise LostError(f"the sandbox's supervisor does not answer: {error}") from error
        if not data:
            raise LostError("the sandbox's supervisor is gone")
        message: dict[str, Any] = json.loads(data)
        if "failed" in message:
            raise LostError(str(message["failed"]))
        if "child" in message:
            if len(descriptors) < 3:
                for descriptor in descriptors:
                    os.close(descriptor)
                raise OSError(errno.EMFILE, "no descriptors for a sandboxed process")
            connection, *pipes = descriptors
            for pipe in pipes:
                os.set_blocking(pipe, False)
            self._ready.append(Child(message["child"], socket.socket(fileno=connection), *pipes))
        return message
