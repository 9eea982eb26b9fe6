"""Keeps workers warm, and replaces those that cannot be used again."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

from gatekeeper.errors import GatekeeperError
from gatekeeper.sandbox.worker import Worker

__all__ = ["Pool"]

CLOSED = "the sandbox is closed: make a new one"


class Pool:
    """Workers, started when first needed. Safe to use from several threads.

    Parameters
    ----------
    start
        Makes a worker.
    size
        Most workers in use at once.
    spare
        Whether one more is kept ready, because starting one takes long.
    """

    def __init__(self, start: Callable[[], Worker], size: int, *, spare: bool) -> None:
        self._start, self._size, self._spare = start, size, spare
        self._owner = os.getpid()
        self._slots = threading.BoundedSemaphore(size)
        self._changed = threading.Condition()
        self._idle: list[Worker] = []
        self._all: set[Worker] = set()
        self._starting = 0
        self._closed = False
        self._keeper = ThreadPoolExecutor(2, thread_name_prefix="gatekeeper-pool")

    @contextlib.contextmanager
    def worker(self, *, fresh: bool = False) -> Iterator[Worker]:
        """A worker for this block; it is kept if it is `reusable` and there was no exception.

        `fresh`: on which nothing has run yet. Raises what starting a worker raises.
        """
        self.check_usable()
        with self._slots:
            worker = self._take(fresh)
            try:
                yield worker
            except BaseException:
                worker.reusable = False
                raise
            finally:
                self._give_back(worker)

    def check_usable(self) -> None:
        """Raise GatekeeperError after `close`, and in the child of a fork."""
        if os.getpid() != self._owner:
            raise GatekeeperError(
                "a forked process cannot use its parent's sandbox: create one in the child"
            )
        if self._closed:
            raise GatekeeperError(CLOSED)

    def close(self) -> None:
        """End all workers, busy ones too; in a forked child, whose parent has them, none."""
        if os.getpid() != self._owner:
            return
        with self._changed:
            self._closed = True
            workers = list(self._all)
            self._idle.clear()
            self._changed.notify_all()
        for worker in workers:
            self._end(worker)
        self._keeper.shutdown()

    def _take(self, fresh: bool) -> Worker:
        with self._changed:
            while not self._idle and self._starting and not self._closed:
                self._changed.wait()
            if self._closed:
                raise GatekeeperError(CLOSED)
            worker = self._idle.pop() if self._idle else None
            while worker is not None and (not worker.alive or (fresh and worker.used)):
                # The worker ended while it waited, or is not fresh.
                self._in_background(self._replace, worker)
                worker = self._idle.pop() if self._idle else None
        if worker is None:
            worker = self._make()
        with self._changed:
            wanted = self._spare and not self._idle and not self._starting
            if wanted and len(self._all) <= self._size:
                self._in_background(self._refill)
        return worker

    def _make(self) -> Worker:
        worker = self._start()
        with self._changed:
            if not self._closed:
                self._all.add(worker)
                return worker
        worker.close()
        raise GatekeeperError(CLOSED)

    def _refill(self) -> None:
        """Start a worker, in the background; the caller has incremented `_starting`."""
        worker = None
        try:
            with contextlib.suppress(Exception):  # the next call that needs one raises it
                worker = self._make()
        finally:
            with self._changed:
                self._starting -= 1
                if worker is not None:
                    self._idle.append(worker)
                self._changed.notify_all()

    def _give_back(self, worker: Worker) -> None:
        with self._changed:
            if worker.reusable and not self._closed:
                self._idle.append(worker)
                self._changed.notify()
                return
            self._in_background(self._replace, worker)

    def _replace(self, worker: Worker) -> None:
        self._refill()
        self._end(worker)

    def _end(self, worker: Worker) -> None:
        with self._changed:
            known = worker in self._all
            self._all.discard(worker)
        if known:
            worker.close()

    def _in_background(self, job: Callable[..., None], *arguments: Worker) -> None:
        """Run a job on a thread. The lock is held."""
        if not self._closed:
            self._starting += 1
            self._keeper.submit(job, *arguments)
