"""An event loop in a thread of its own, where synchronous calls run an asynchronous verifier.

All calls of a gate share one, because a client or a lock that a verifier keeps belongs to a loop.
"""

from __future__ import annotations

import concurrent.futures
import weakref
from collections.abc import Coroutine
from contextlib import suppress
from threading import Event, RLock, Thread, current_thread
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    import asyncio

__all__ = ["OwnLoop"]

Result = TypeVar("Result")


class OwnLoop:
    """Runs coroutines for other threads. The thread begins with the first coroutine."""

    def __init__(self) -> None:
        self._lock = RLock()  # a signal handler may close the gate
        self._runner: asyncio.Runner | None = None
        self._thread: Thread | None = None

    def run(self, coroutine: Coroutine[Any, Any, Result]) -> Result:
        """The result of a coroutine. An interrupt of the calling thread cancels the coroutine."""
        with self._lock:
            try:
                import asyncio  # here: few gates need it, and it is slow to import

                if self._runner is None:
                    self._runner = asyncio.Runner(loop_factory=asyncio.new_event_loop)
                loop = self._runner.get_loop()
                if self._thread is None:
                    self._begin(self._runner, loop)
            except BaseException:
                coroutine.close()  # it will not begin
                raise
            future = asyncio.run_coroutine_threadsafe(coroutine, loop)
        try:
            return future.result()
        except concurrent.futures.CancelledError:  # an Exception, which asyncio's is not
            raise asyncio.CancelledError from None
        except BaseException:
            future.cancel()
            raise

    def runs_here(self) -> bool:
        """Whether this is the loop's thread."""
        return self._thread is current_thread()

    def _begin(self, runner: asyncio.Runner, loop: asyncio.AbstractEventLoop) -> None:
        ended = Event()
        thread = Thread(target=_serve, args=(runner, ended), name="gatekeeper-loop", daemon=True)
        thread.start()  # raises where the system has no further thread
        self._thread = thread
        # The thread has no reference to this object: a gate that was not closed ends it, too.
        self._end = weakref.finalize(self, _stop, loop, ended)
        self._end.atexit = False

    def close(self) -> None:
        """Cancel what still runs, and end the thread."""
        with self._lock:
            if self._thread is not None:
                self._end()
                self._thread.join()


def _serve(runner: asyncio.Runner, ended: Event) -> None:
    with runner:
        while not ended.is_set():
            # These two leave the loop if a coroutine raises them; its caller gets them as well.
            with suppress(KeyboardInterrupt, SystemExit):
                runner.get_loop().run_forever()


def _stop(loop: asyncio.AbstractEventLoop, ended: Event) -> None:
    ended.set()
    loop.call_soon_threadsafe(loop.stop)
