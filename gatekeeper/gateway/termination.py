"""SIGTERM, from before a process opens its gate until after it has closed it.

A process that ended at the signal itself would leave its gate open, and its lease on a shared
budget would be missing until the others take the process for dead.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from types import FrameType
from typing import Any, Self

__all__ = ["Termination"]


class Termination:
    """Keeps SIGTERM until `events` can be waited for. Entered in the main thread.

    A second SIGTERM ends the process at once: while it serves, without waiting for anything, and
    otherwise by the signal's default action.

    Parameters
    ----------
    supervisor : Connection or None
        Channel to the parent process, if there is one: this process ends at once when the channel
        does, and SIGTERM may come more than once.

    Attributes
    ----------
    came : bool
        Whether SIGTERM was received.
    """

    def __init__(self, supervisor: Connection | None = None) -> None:
        self._supervisor = supervisor
        self._pass: Callable[[], object] | None = None  # to the loop, while it serves
        self._before: Any = signal.SIG_DFL
        self.came = False

    def __enter__(self) -> Self:
        self._before = signal.signal(signal.SIGTERM, self._note)
        return self

    def __exit__(self, *error: object) -> None:
        signal.signal(signal.SIGTERM, self._before)

    def _note(self, number: int, frame: FrameType | None) -> None:
        repeated, self.came = self.came, True
        if self._pass is not None:
            self._pass()
        elif repeated and self._supervisor is None:
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)

    @contextmanager
    def events(self) -> Iterator[tuple[asyncio.Event, asyncio.Event]]:
        """Two events of the running loop: the process should end, and it should end at once.

        Not by the loop's `add_signal_handler`, which takes the wake-up descriptor that Ctrl-C
        needs: see `programs.interrupt`.
        """
        loop, in_time, at_once = asyncio.get_running_loop(), asyncio.Event(), asyncio.Event()

        def terminate() -> None:
            if in_time.is_set() and self._supervisor is None:
                at_once.set()
            in_time.set()

        def lose(channel: Connection) -> None:
            loop.remove_reader(channel)
            at_once.set()
            in_time.set()

        self._pass = lambda: loop.call_soon_threadsafe(terminate)
        if self.came:
            terminate()
        if self._supervisor is not None:
            loop.add_reader(self._supervisor, lose, self._supervisor)
        try:
            yield in_time, at_once
        finally:
            self._pass = None
            if self._supervisor is not None:
                loop.remove_reader(self._supervisor)
