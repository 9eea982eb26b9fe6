"""The calls that verify now, for which the gate's end waits."""

from __future__ import annotations

from threading import Condition, RLock, get_ident

from gatekeeper.errors import GatekeeperError
from gatekeeper.gate.transaction import CLOSED

__all__ = ["Calls"]


class Calls:
    """Entered by each call that verifies in its thread, or waits there for verifications."""

    def __init__(self) -> None:
        self.lock = RLock()  # a signal handler may end the gate
        self._changed = Condition(self.lock)
        self._threads: list[int] = []  # of the calls
        self._ending: list[int] = []  # of those that wait in `end`
        self._ended = False

    def __enter__(self) -> None:
        with self.lock:
            self.check()
            self._threads.append(get_ident())

    def __exit__(self, *exception: object) -> None:
        with self.lock:
            self._threads.remove(get_ident())
            self._changed.notify_all()

    def check(self) -> None:
        """Raises GatekeeperError after `end`."""
        if self._ended:
            raise GatekeeperError(CLOSED)

    def end(self) -> None:
        """Wait for the calls of other threads, and refuse later ones.

        A call that ends the gate itself, as a verifier or a signal handler may, is not waited for:
        two of them would wait for each other.
        """
        here = get_ident()
        with self.lock:
            self._ending.append(here)
            self._changed.notify_all()
            try:
                self._changed.wait_for(lambda: all(t in self._ending for t in self._threads))
                self._ended = True
            finally:
                self._ending.remove(here)
