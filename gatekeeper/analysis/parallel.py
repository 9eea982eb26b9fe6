"""Work in processes of their own, which end with the program, however it ends."""

from __future__ import annotations

import functools
import multiprocessing
import os
import pickle
import signal
import tempfile
import threading
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from multiprocessing.connection import wait
from pathlib import Path
from types import TracebackType
from typing import Any

__all__ = ["WorkerPool", "in_processes", "interrupts_deferred"]


class WorkerPool(ProcessPoolExecutor):
    """Processes that end at once where the `with` block is left by an error or by Ctrl-C.

    A `ProcessPoolExecutor` would first finish the work that has begun. Ctrl-C on a terminal
    reaches the workers too: it is blocked there, so that they print no traceback.
    """

    def __init__(self, workers: int) -> None:
        # "spawn": a fork would copy whatever threads the caller has, half alive
        context = multiprocessing.get_context("spawn")
        super().__init__(workers, mp_context=context, initializer=_end_with_parent)

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        with interrupts_deferred():  # processes are started here
            return super().submit(fn, *args, **kwargs)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        if kind is not None:
            for process in list((self._processes or {}).values()):
                process.kill()
        self.shutdown(cancel_futures=True)
        return None


def in_processes(
    work: Callable[[int], Any], seeds: range, workers: int
) -> Generator[tuple[int, Any], None, None]:
    """(seed, work(seed)) as they are done; with one worker in this process.

    One piece of work per seed. Close the iterator if it is not read to its end.

    The workers read the work from a file, because it may hold all records. Before CPython 3.11.5 a
    pool waits for ever if a worker is killed while more than 64 KiB are sent to it (gh-94777).
    """
    workers = min(workers, len(seeds))
    if workers < 2:
        for seed in seeds:
            yield seed, work(seed)
        return
    with tempfile.TemporaryDirectory(prefix="gatekeeper-") as folder, WorkerPool(workers) as pool:
        path = Path(folder, "work")
        path.write_bytes(pickle.dumps(work))
        waiting: dict[Future[Any], int] = {pool.submit(_do, path, seed): seed for seed in seeds}
        for future in as_completed(waiting):
            yield waiting[future], future.result()


def _do(path: Path, seed: int) -> Any:
    return _read(path)(seed)


@functools.lru_cache(maxsize=1)
def _read(path: Path) -> Callable[[int], Any]:
    work: Callable[[int], Any] = pickle.loads(path.read_bytes())
    return work


@contextmanager
def interrupts_deferred() -> Iterator[None]:
    """Ctrl-C acts when the block has ended; processes that start in it have it blocked.

    To block it in this thread is not enough: another one may take the signal, and the exception
    would still be raised here, in the middle of a start. The worker would miss its first message.
    """
    handler = signal.getsignal(signal.SIGINT)
    raises = callable(handler) and threading.current_thread() is threading.main_thread()
    arrived: list[int] = []
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    if raises:
        signal.signal(signal.SIGINT, lambda number, frame: arrived.append(number))
    try:
        yield
    finally:
        if raises:
            signal.signal(signal.SIGINT, handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        if arrived and callable(handler):
            handler(arrived[0], None)


def _end_with_parent() -> None:
    """End this worker when its parent has ended, `kill -9` included."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        wait([parent.sentinel])
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
