"""Micro-batching: requests of an event loop's callers in one turn are handled together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    import asyncio

__all__ = ["MicroBatcher"]

Item = TypeVar("Item")
Answer = TypeVar("Answer")


class MicroBatcher(Generic[Item, Answer]):
    """Awaited with an item, it returns the answer to it; several items are handled at once.

    The first caller waits until all other ready tasks have run, then handles the items requested by
    then; the caller that completes a batch of `most` handles it at once. No caller waits for tasks
    that are not ready, so a single caller has its answer in the next turn.

    Parameters
    ----------
    handle
        Gets items, in the order in which they came; returns the answer to each, or the exception
        for its caller. Not called concurrently by one event loop.
    undo
        Called with an answer whose caller was cancelled before it got it, also by a signal handler
        while the items are handled. Items of callers that were cancelled earlier are left out.
    most
        Items in a batch.
    """

    def __init__(
        self,
        handle: Callable[[Sequence[Item]], Sequence[Answer | Exception]],
        undo: Callable[[Answer], None],
        *,
        most: int,
    ) -> None:
        self._handle, self._undo, self._most = handle, undo, most
        self._batches: dict[asyncio.AbstractEventLoop, _Batch[Item, Answer]] = {}

    async def __call__(self, item: Item) -> Answer:
        import asyncio  # here: a gate without it need not load it

        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:  # trio, which has no turns: each item alone
            (answer,) = self._handle([item])
            if isinstance(answer, Exception):
                raise answer from None
            return answer
        future: asyncio.Future[Answer] = loop.create_future()
        batch = self._batches.get(loop)
        try:
            if batch is None:
                batch = self._batches[loop] = [(item, future)]
                try:
                    await asyncio.sleep(0)
                except BaseException:
                    future.cancel()
                    raise
                finally:
                    self._handle_batch(loop, batch)
            else:
                batch.append((item, future))
                if len(batch) == self._most:
                    self._handle_batch(loop, batch)
            return await future
        except BaseException:  # cancelled, or the coroutine was closed
            if future.done() and not future.cancelled() and future.exception() is None:
                self._undo(future.result())
            raise

    def _handle_batch(self, loop: asyncio.AbstractEventLoop, batch: _Batch[Item, Answer]) -> None:
        if self._batches.get(loop) is not batch:
            return  # the batch was full before the turn ended
        del self._batches[loop]
        waiting = [(item, future) for item, future in batch if not future.done()]
        try:
            answers = self._handle([item for item, _ in waiting])
            for (_, future), answer in zip(waiting, answers, strict=True):
                self._give(future, answer)
        except BaseException:
            for _, future in waiting:
                future.cancel()
            raise

    def _give(self, future: asyncio.Future[Answer], answer: Answer | Exception) -> None:
        import asyncio

        try:
            if isinstance(answer, Exception):
                future.set_exception(answer)
            else:
                future.set_result(answer)
        except asyncio.InvalidStateError:  # cancelled by a signal handler
            if not isinstance(answer, Exception):
                self._undo(answer)


_Batch = list[tuple[Item, "asyncio.Future[Answer]"]]
