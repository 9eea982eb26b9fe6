"""A pool of killable worker processes, for any number of calling threads.

A caller acquires a worker, sends one item and waits for the reply, with a deadline that starts
with the item. A worker that misses it is killed. One spare worker is kept started, so that the next
item does not wait after a kill.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from gatekeeper.child_python import child_command, import_path
from gatekeeper.errors import GatekeeperError
from gatekeeper.maths.worker import BOOTSTRAP

__all__ = ["CallCancelledError", "Cancellation", "Limits", "Pool"]

Reply = dict[str, Any]

START_LIMIT = 60.0  # seconds for a worker to import SymPy
MAX_ITEMS = 1_000  # after which a worker is replaced
MAX_RSS_MB = 300.0  # MiB of memory after which a worker is replaced: SymPy's caches never shrink
ATTEMPTS = 3  # at one item, if workers die; all within its hard limit
_UNDISTURBED = ("passed", "failed", "infra_error")  # the comparison was not interrupted
_ENVIRONMENT = {
    "PATH": os.defpath,
    "LC_ALL": "C.UTF-8",
    "OPENBLAS_NUM_THREADS": "1",  # each thread reserves address space, which is limited
    "PYTHONHASHSEED": "0",  # SymPy's order of terms, and so its verdict, may depend on hashes
    **{name: os.environ[name] for name in ("LD_LIBRARY_PATH",) if name in os.environ},
}


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one item: seconds of processor time until it stops, seconds of wall clock until
    its worker is killed, MiB of address space of a worker."""

    soft_limit: float = 2.0
    hard_limit: float = 3.0
    memory_mb: int = 1024


class CallCancelledError(Exception):
    """The caller no longer wants the reply."""


class WorkerDiedError(Exception):
    """The process ended without a reply."""


class Worker:
    """One worker process. One thread at a time uses it; any thread may call `kill`."""

    def __init__(self, limits: Limits) -> None:
        arguments = asdict(limits) | {
            "parent": os.getpid(),
            "path": import_path(),
        }
        self._process = subprocess.Popen(
            child_command(BOOTSTRAP, json.dumps(arguments)),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            cwd="/",
            env=_ENVIRONMENT,
        )
        self._buffer = b""
        self._cpu = 0.0  # processor seconds used until the last reply
        self.items = 0

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def wait_ready(self) -> None:
        """Wait for the worker to start. Raises WorkerDiedError with the reason if it does not."""
        hello = self._receive(START_LIMIT)
        if hello is None or not hello["ready"]:
            self.kill()
            raise WorkerDiedError("it was too slow to start" if hello is None else hello["detail"])

    def ask(self, gold: str, answer: str, limit: float) -> Reply | None:
        """The reply to one pair; None if it takes longer than `limit` seconds.

        Raises WorkerDiedError if the process ends first.
        """
        line = json.dumps({"gold": gold, "answer": answer}).encode() + b"\n"
        assert self._process.stdin is not None
        self.items += 1
        try:
            # A line is shorter than a pipe's buffer and the worker is waiting for it.
            self._process.stdin.write(line)
        except OSError as error:
            raise WorkerDiedError("a worker process ended") from error
        return self._receive(limit)

    def _receive(self, limit: float) -> Reply | None:
        assert self._process.stdout is not None
        output = self._process.stdout.fileno()
        deadline = time.monotonic() + limit
        poll = select.poll()
        poll.register(output, select.POLLIN)
        while b"\n" not in self._buffer:
            remaining = deadline - time.monotonic()
            if remaining <= 0 or not poll.poll(remaining * 1000):
                return None
            chunk = os.read(output, 65536)
            if not chunk:
                raise WorkerDiedError("a worker process ended")
            self._buffer += chunk
        line, _, self._buffer = self._buffer.partition(b"\n")
        try:
            reply: Reply = json.loads(line)
            self._cpu = reply["cpu"]
        except (ValueError, LookupError, TypeError):
            raise WorkerDiedError(f"a worker process wrote {line!r:.200}") from None
        return reply

    def cpu_since_reply(self) -> float:
        """Processor seconds used on the present item."""
        try:
            stat = Path(f"/proc/{self._process.pid}/stat").read_text()
        except OSError:
            return 0.0
        user, system = stat.rpartition(")")[2].split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK") - self._cpu

    def kill(self) -> None:
        """End the process now. Its pipes stay open: a thread may be reading them."""
        self._process.kill()

    def dispose(self) -> None:
        """Kill, reap and close; only by the thread that uses the worker."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()


class Cancellation:
    """Lets another thread cancel a call: it wakes the call and kills its worker."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._worker: Worker | None = None
        self.requested = False

    def cancel(self) -> None:
        with self._lock:
            self.requested = True
            if self._worker is not None:
                self._worker.kill()

    def hold(self, worker: Worker | None) -> None:
        """Set the worker in use, None after it. Raises CallCancelledError after a cancellation."""
        with self._lock:
            self._worker = worker
            if self.requested and worker is not None:
                raise CallCancelledError


class Pool:
    """At most `size` items at a time, on at most `size` + 1 processes, all started on demand."""

    def __init__(self, size: int, limits: Limits) -> None:
        self._size = size
        self._limits = limits
        self._changed = threading.Condition()
        self._idle: list[Worker] = []
        self._all: set[Worker] = set()
        self._busy = 0
        self._starting = 0
        self._failures = 0  # starts that failed
        self._failure = ""  # why the last one did
        self._closed = False
        # The kernel ends workers with the *thread* that started them: one thread starts all.
        self._starter = ThreadPoolExecutor(1, thread_name_prefix="gatekeeper-maths-starter")

    def ask(self, gold: str, answer: str, cancellation: Cancellation | None = None) -> Reply:
        """Compare one pair of canonical answers, whatever their content.

        Raises CallCancelledError after a cancellation, GatekeeperError if the pool is closed.
        """
        token = cancellation or Cancellation()
        failure = _unknown("no_worker", "")
        remaining = self._limits.hard_limit
        for _ in range(ATTEMPTS):
            try:
                worker = self._acquire(token)
            except WorkerDiedError as error:
                failure = _unknown("no_worker", f"no worker process could be started: {error}")
                continue
            healthy = False
            started = time.monotonic()
            try:
                token.hold(worker)
                reply = worker.ask(gold, answer, remaining)
                if reply is None:
                    return self._late(worker.cpu_since_reply())
                healthy = (
                    reply["verdict"] in _UNDISTURBED
                    and worker.items < MAX_ITEMS
                    and reply["rss_mb"] < MAX_RSS_MB
                )
                return reply
            except WorkerDiedError:
                if token.requested:
                    raise CallCancelledError from None
                failure = _unknown("worker_died", "the worker process ended before it replied")
                remaining -= time.monotonic() - started
            finally:
                token.hold(None)
                self._release(worker, healthy and not token.requested)
        return failure

    def _late(self, cpu: float) -> Reply:
        """The reply for an item at its hard limit: a timeout, unless the machine was too busy."""
        limits = self._limits
        detail = f"stopped after {limits.hard_limit:g} s, {cpu:.1f} s of them on a processor"
        reply = {"verdict": "timeout", "rule": "symbolic", "detail": detail}
        if cpu < limits.soft_limit:
            reply = _unknown("overloaded", detail)
        return reply | {"seconds": limits.hard_limit}

    def warm(self) -> None:
        """Start a worker in the background, unless there is one."""
        with self._changed:
            self._start_if_needed()

    def close(self, *, wait: bool) -> None:
        """Kill all workers; waiting calls raise. With `wait`, wait for the starting thread too."""
        with self._changed:
            self._closed = True
            for worker in self._all:
                worker.kill()
            idle, self._idle = self._idle, []
            self._changed.notify_all()
        for worker in idle:
            self._dispose(worker)
        self._starter.shutdown(wait=wait)

    def check_open(self) -> None:
        """Raise GatekeeperError after `close`."""
        if self._closed:
            raise GatekeeperError("this MathChecker is closed: make a new one")

    def _acquire(self, token: Cancellation) -> Worker:
        with self._changed:
            failures = self._failures
            while True:
                if token.requested:
                    raise CallCancelledError
                self.check_open()
                if self._busy < self._size:
                    while self._idle:
                        worker = self._idle.pop()
                        if not worker.alive:  # something else ended it
                            self._dispose(worker)
                            continue
                        self._busy += 1
                        self._start_if_needed()
                        return worker
                    if self._failures > failures:
                        raise WorkerDiedError(self._failure)
                    self._start_if_needed()
                if not self._closed:
                    self._changed.wait()

    def wake(self) -> None:
        """Let waiting calls check their cancellation."""
        with self._changed:
            self._changed.notify_all()

    def _release(self, worker: Worker, healthy: bool) -> None:
        with self._changed:
            self._busy -= 1
            if healthy and not self._closed:
                self._idle.append(worker)
                worker_to_dispose = None
            else:
                worker_to_dispose = worker
                self._start_if_needed()
            self._changed.notify_all()
        if worker_to_dispose is not None:
            self._dispose(worker_to_dispose)

    def _dispose(self, worker: Worker) -> None:
        with self._changed:
            self._all.discard(worker)
        worker.dispose()

    def _start_if_needed(self) -> None:
        """Keep one idle or starting worker. The lock is held."""
        present = self._busy + len(self._idle) + self._starting
        if not self._idle and not self._starting and present <= self._size and not self._closed:
            try:
                self._starter.submit(self._start)
                self._starting += 1
            except RuntimeError:  # the interpreter is shutting down
                self._closed = True

    def _start(self) -> None:
        worker = None
        failure = None
        try:
            worker = Worker(self._limits)
            with self._changed:
                self._all.add(worker)
                if self._closed:
                    worker.kill()
            worker.wait_ready()
        except (WorkerDiedError, OSError) as error:
            failure = str(error)
        with self._changed:
            self._starting -= 1
            usable = worker is not None and failure is None and not self._closed
            if usable and worker is not None:
                self._idle.append(worker)
            if failure is not None:
                self._failures += 1
                self._failure = failure
            self._changed.notify_all()
        if worker is not None and not usable:
            self._dispose(worker)


def _unknown(rule: str, detail: str) -> Reply:
    return {"verdict": "infra_error", "rule": rule, "detail": detail, "seconds": 0.0}
