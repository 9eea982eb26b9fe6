"""Ctrl-C ends a program within a second, whatever it waits for."""

from __future__ import annotations

import os
import select
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

__all__ = ["interrupt_message", "prompt_interrupts", "set_interrupt_message"]

GRACE = 0.7  # seconds for closing files, logs and sandboxes

_message = "interrupted"


def set_interrupt_message(message: str = "interrupted") -> None:
    """Set what Ctrl-C prints from now on: how far the program is, and how to continue."""
    global _message
    _message = message


def interrupt_message() -> str:
    """What Ctrl-C prints."""
    return _message


@contextmanager
def prompt_interrupts() -> Iterator[None]:
    """Ctrl-C raises KeyboardInterrupt; GRACE seconds later, or at a second one, the process ends.

    The main thread may be in a library of C, which no exception leaves, or wait for a thread that
    waits for a server. So a separate thread reads the signal's byte. A log survives this end as it
    survives `kill -9`. Where SIGINT is ignored, as in a shell's background, it stays ignored.
    """
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGINT) in (signal.SIG_IGN, None):
        yield
        return
    set_interrupt_message()
    read, write = os.pipe()
    os.set_blocking(write, False)
    watcher = threading.Thread(target=_watch, args=(read,), daemon=True)
    watcher.start()
    wakeup = signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    # asyncio cancels its tasks at an interrupt if it finds Python's own handler
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        signal.set_wakeup_fd(wakeup)
        os.close(write)  # ends the thread
        watcher.join()
        os.close(read)


def _watch(read: int) -> None:
    """Read the numbers of signals, until the pipe is closed: the program has then ended in time."""
    while number := os.read(read, 1):
        if number[0] != signal.SIGINT:
            continue
        ready, _, _ = select.select([read], [], [], GRACE)
        if ready and not os.read(read, 1):
            return
        with suppress(OSError):
            os.write(2, f"gatekeeper: {interrupt_message()}\n".encode())
        os._exit(130)
