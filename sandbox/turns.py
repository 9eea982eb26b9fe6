"""Lets candidates of this process run together, or one of them alone."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Iterator

__all__ = ["TURNS", "Turns"]

_TICK_SECONDS = 0.05  # how soon a cancellation is noticed


class Turns:
    """Decides when a candidate may run: beside others, or alone.

    A candidate that got too little processor time beside others runs again alone, so that its
    verdict does not depend on them, even if no control group divides the machine.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._running = 0
        self._waiting = 0  # candidates that wait to run alone; no other one begins meanwhile
        self._alone = False

    @contextlib.contextmanager
    def turn(self, cancelled: threading.Event, *, alone: bool, patience: float) -> Iterator[None]:
        """Wait until this candidate may run; with `alone`, until no other one runs.

        After `patience` seconds, or once it is cancelled, it runs beside the others.
        """
        end = time.monotonic() + patience
        with self._changed:
            self._waiting += alone
            try:
                while self._alone or (self._running if alone else self._waiting):
                    if cancelled.is_set() or time.monotonic() > end:
                        break
                    self._changed.wait(_TICK_SECONDS)
            finally:
                self._waiting -= alone
            mine = alone and not self._running
            self._alone = self._alone or mine
            self._running += 1
        try:
            yield
        finally:
            with self._changed:
                self._running -= 1
                if mine:
                    self._alone = False
                self._changed.notify_all()


TURNS = Turns()  # of the whole process: its sandboxes share the machine
os.register_at_fork(after_in_child=TURNS.__init__)  # type: ignore[misc]
