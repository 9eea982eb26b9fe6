"""A signal whose handler does something while a test runs, and an end to waiting for ever."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from concurrent.futures import TimeoutError as LateError
from contextlib import contextmanager

__all__ = ["PATIENCE", "handling"]

PATIENCE = 60.0  # seconds


@contextmanager
def handling(handler: Callable[[], None]) -> Iterator[None]:
    """SIGUSR1 calls the handler, and a wait without an end is an error."""

    def late(*_: object) -> None:
        raise LateError("it waits for ever")

    before = {
        signal.SIGUSR1: signal.signal(signal.SIGUSR1, lambda *_: handler()),
        signal.SIGALRM: signal.signal(signal.SIGALRM, late),
    }
    signal.alarm(int(PATIENCE))
    try:
        yield
    finally:
        signal.alarm(0)
        for number, earlier in before.items():
            signal.signal(number, earlier)
