"""Ctrl-C ends a program within a second, even while it waits."""

from __future__ import annotations

import os
import select
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

__all__ = ["interrupt_message", "prompt_interrupts", "set_interrupt_message"]

GRACE = 0.7  # seconds for closing files, logs and sandboxes
ENDED = b"\0"  # in place of the number of a signal

_message = "interrupted"


def set_interrupt_message(message: str = "interrupted") -> None:
    """Set what Ctrl-C prints from now on: how far the program is, and how to continue."""
    global _message
    _message = message


def interrupt_message() -> str:
    """What Ctrl-C prints."""
    return _message


@contextmanager
def prompt_interrupts() -> Iterator[threading.Event]:
    """Ctrl-C raises KeyboardInterrupt; GRACE seconds later, or at a second one, the process ends.

    The event is set, at the latest when this ends, if there was one: libraries of C that are
    interrupted while they are imported raise ImportError in place of KeyboardInterrupt.

    The main thread may be in a library of C, which no exception leaves, or wait for a thread that
    waits for a server. So a separate thread reads the signal's byte. A log survives this end as it
    survives `kill -9`. Where SIGINT is ignored, as in a shell's background, it stays ignored.
    """
    is_main = threading.current_thread() is threading.main_thread()
    interrupted = threading.Event()
    if not is_main or signal.getsignal(signal.SIGINT) in (signal.SIG_IGN, None):
        yield interrupted
        return
    set_interrupt_message()
    read, write = os.pipe()
    os.set_blocking(write, False)
    watcher = threading.Thread(target=_watch, args=(read, interrupted), daemon=True)
    watcher.start()
    wakeup = signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    # asyncio cancels its tasks at an interrupt if it finds Python's own handler
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield interrupted
    finally:
        signal.signal(signal.SIGINT, handler)
        signal.set_wakeup_fd(wakeup)
        os.write(write, ENDED)  # a child that outlives this may hold the pipe open
        watcher.join()
        os.close(write)
        os.close(read)


def _watch(read: int, interrupted: threading.Event) -> None:
    """Read the numbers of signals until ENDED: the program has then ended in time."""
    while (number := os.read(read, 1)) != ENDED:
        if number[0] != signal.SIGINT:
            continue
        interrupted.set()
        ready, _, _ = select.select([read], [], [], GRACE)
        if ready and os.read(read, 1) == ENDED:
            return
        with suppress(OSError):
            os.write(2, f"gatekeeper: {interrupt_message()}\n".encode())
        os._exit(130)
