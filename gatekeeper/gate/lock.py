"""A lock that the child of a fork finds free, and what a thread is in the middle of."""

from __future__ import annotations

import os
from collections.abc import Callable
from threading import Condition, RLock, get_ident
from typing import ParamSpec, TypeVar
from weakref import WeakSet

__all__ = ["Inside", "Locked"]

Given = ParamSpec("Given")
Found = TypeVar("Found")


class Locked:
    """What one lock protects. In the child of a fork the lock is another one, because the thread
    that may have held it does not exist there.
    """

    def __init__(self) -> None:
        self._lock = RLock()  # a signal handler may ask for the status in the middle of a step
        _ALL.add(self)

    def is_held_here(self) -> bool:
        """Whether this thread holds the lock, as a signal handler that interrupts a step does."""
        try:
            Condition(self._lock).notify()  # raises where this thread does not hold it
        except RuntimeError:
            return False
        return True


class Inside:
    """The threads that are inside of certain calls, as a signal handler that interrupts one is."""

    def __init__(self) -> None:
        self._threads: list[int] = []

    def call(
        self, function: Callable[Given, Found], *args: Given.args, **kwargs: Given.kwargs
    ) -> Found:
        """Call a function. Not a context manager: an interrupt at its beginning would stay."""
        here = get_ident()
        outer = self._threads.count(here)
        try:
            self._threads.append(here)
            return function(*args, **kwargs)
        finally:
            while self._threads.count(here) > outer:
                self._threads.remove(here)

    def is_here(self) -> bool:
        """Whether this thread is inside of such a call."""
        return get_ident() in self._threads


_ALL: WeakSet[Locked] = WeakSet()


def _forked() -> None:
    for locked in list(_ALL):
        locked._lock = RLock()


os.register_at_fork(after_in_child=_forked)
