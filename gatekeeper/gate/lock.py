"""A lock that the child of a fork finds free."""

from __future__ import annotations

import os
from threading import RLock
from weakref import WeakSet

__all__ = ["Locked"]


class Locked:
    """What one lock protects. In the child of a fork the lock is another one, because the thread
    that may have held it does not exist there.
    """

    def __init__(self) -> None:
        self._lock = RLock()  # a signal handler may ask for the status in the middle of a step
        _ALL.add(self)


_ALL: WeakSet[Locked] = WeakSet()


def _forked() -> None:
    for locked in list(_ALL):
        locked._lock = RLock()


os.register_at_fork(after_in_child=_forked)
