"""One piece of work per seed, in processes of their own."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from typing import Any

__all__ = ["in_processes"]


def in_processes(
    work: Callable[[int], Any], seeds: range, workers: int
) -> Iterator[tuple[int, Any]]:
    """(seed, work(seed)) as they are done; with one worker in this process."""
    workers = min(workers, len(seeds))
    if workers < 2:
        for seed in seeds:
            yield seed, work(seed)
        return
    # "spawn": a fork would copy whatever threads the caller has, half alive
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=context) as pool:
        waiting: dict[Future[Any], int] = {pool.submit(work, seed): seed for seed in seeds}
        try:
            for future in as_completed(waiting):
                yield waiting[future], future.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
