"""What is asked for in one turn of an event loop, done in one go."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Generic, TypeVar

__all__ = ["Together"]

Item = TypeVar("Item")
Answer = TypeVar("Answer")


class Together(Generic[Item, Answer]):
    """Awaited with an item, it gives what `handle` makes of it, of several items at once.

    The first one that asks waits until all others that are ready have had their turn, then does
    it for those that asked meanwhile; whoever makes them `most` does it at once. Nobody waits for
    what is not ready, so a lone caller has its answer in the next turn.

    handle   from items, in the order in which they came, to as many answers; not called
             concurrently by one event loop
    undo     gets an answer whose caller was cancelled before it could take it. Who was cancelled
             earlier is left out
    """

    def __init__(
        self,
        handle: Callable[[list[Item]], list[Answer]],
        undo: Callable[[Answer], None],
        *,
        most: int,
    ) -> None:
        self._handle, self._undo, self._most = handle, undo, most
        self._groups: dict[asyncio.AbstractEventLoop, _Group[Item, Answer]] = {}

    async def __call__(self, item: Item) -> Answer:
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:  # trio, which has no turns: each by itself
            return self._handle([item])[0]
        future: asyncio.Future[Answer] = loop.create_future()
        group = self._groups.get(loop)
        try:
            if group is None:
                group = self._groups[loop] = [(item, future)]
                try:
                    await asyncio.sleep(0)
                except BaseException:
                    future.cancel()
                    raise
                finally:
                    self._go_on(loop, group)
            else:
                group.append((item, future))
                if len(group) == self._most:
                    self._go_on(loop, group)
            return await future
        except asyncio.CancelledError:
            if future.done() and not future.cancelled():
                self._undo(future.result())
            raise

    def _go_on(self, loop: asyncio.AbstractEventLoop, group: _Group[Item, Answer]) -> None:
        if self._groups.get(loop) is not group:
            return  # there were enough before the turn was over
        del self._groups[loop]
        there = [(item, future) for item, future in group if not future.done()]
        try:
            answers = self._handle([item for item, _ in there])
        except BaseException:
            for _, future in there:
                future.cancel()
            raise
        for (_, future), answer in zip(there, answers, strict=True):
            future.set_result(answer)


_Group = list[tuple[Item, "asyncio.Future[Answer]"]]
