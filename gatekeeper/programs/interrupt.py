"""Ctrl-C and SIGTERM end a program in time, even while it waits.

Both raise KeyboardInterrupt in the main thread, so that logs are closed and leases returned. A
command that serves handles SIGTERM itself, for as long as it does.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from time import monotonic
from types import FrameType

__all__ = ["Interrupt", "prompt_interrupts", "set_interrupt_message"]

# Seconds for closing files, logs and sandboxes. A person waits for the first; `docker stop` kills
# ten seconds after the second.
GRACE = {signal.SIGINT: 0.7, signal.SIGTERM: 8.0}
ENDED = b"\0"  # in place of the number of a signal

_message = ""


def set_interrupt_message(message: str = "") -> None:
    """Set what follows "interrupted" from now on: how far the program is, and how to continue."""
    global _message
    _message = message


class Interrupt:
    """The signal that ends the program.

    Attributes
    ----------
    number : int or None
        Of the first signal; None: none came.
    """

    number: int | None = None

    @property
    def exit_code(self) -> int:
        """The exit code that a shell gives a program ended by this signal."""
        return 128 + (self.number or signal.SIGINT)

    @property
    def message(self) -> str:
        """What the program prints at its end."""
        by = " by SIGTERM" if self.number == signal.SIGTERM else ""
        return f"gatekeeper: interrupted{by}{_message}"


@contextmanager
def prompt_interrupts() -> Iterator[Interrupt]:
    """Ctrl-C and SIGTERM raise KeyboardInterrupt; GRACE seconds later the process ends.

    So it does at a second Ctrl-C. A second SIGTERM has no effect, because `timeout` and service
    managers send it to the process and to its group.

    The result is set, at the latest when this ends, if a signal came: libraries of C that are
    interrupted while they are imported raise ImportError in place of KeyboardInterrupt.

    The main thread may be in a library of C, which no exception leaves, or wait for a thread that
    waits for a server. So a separate thread reads the signal's byte. A log survives this end as it
    survives `kill -9`. A signal that is ignored, as SIGINT is in a shell's background, stays so.

    A callback of a weak reference, as imports have, swallows the exception. Python would print its
    traceback; the thread ends the process then, too.
    """
    interrupt = Interrupt()
    if threading.current_thread() is not threading.main_thread():
        yield interrupt
        return
    set_interrupt_message()
    read, write = os.pipe()
    os.set_blocking(write, False)
    watcher = threading.Thread(target=_watch, args=(read, interrupt), daemon=True)
    watcher.start()
    wakeup = signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    # asyncio cancels its tasks at an interrupt if it finds Python's own handler
    handlers = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: _terminate}
    before = {
        number: signal.signal(number, handler)
        for number, handler in handlers.items()
        if signal.getsignal(number) not in (signal.SIG_IGN, None)
    }
    hook = sys.unraisablehook
    sys.unraisablehook = lambda swallowed: (
        None if swallowed.exc_type is KeyboardInterrupt else hook(swallowed)
    )
    try:
        yield interrupt
    finally:
        os.write(write, ENDED)  # a child that outlives this may hold the pipe open
        watcher.join()  # before the handlers change, by which it knows whose signal it was
        sys.unraisablehook = hook
        for number, handler_before in before.items():
            signal.signal(number, handler_before)
        signal.set_wakeup_fd(wakeup)
        os.close(write)
        os.close(read)


def _terminate(number: int, frame: FrameType | None) -> None:
    """Do what Ctrl-C does at this moment: asyncio cancels its tasks."""
    signal.signal(number, _ignore)
    at_interrupt = signal.getsignal(signal.SIGINT)
    if callable(at_interrupt):
        at_interrupt(number, frame)
    else:
        raise KeyboardInterrupt


def _ignore(number: int, frame: FrameType | None) -> None:
    """In place of SIG_IGN, which programs that are started would inherit."""


def _handles_sigterm() -> bool:
    """A program that serves has a handler of its own."""
    return signal.getsignal(signal.SIGTERM) in (_terminate, _ignore)


def _watch(read: int, interrupt: Interrupt) -> None:
    """Read the numbers of signals until ENDED: the program has then ended in time."""
    while (byte := os.read(read, 1)) != ENDED:
        number = byte[0]
        if number not in GRACE or (number == signal.SIGTERM and not _handles_sigterm()):
            continue
        interrupt.number = number
        deadline = monotonic() + GRACE[signal.Signals(number)]
        while (left := deadline - monotonic()) > 0 and select.select([read], [], [], left)[0]:
            later = os.read(read, 1)
            if later == ENDED:
                return
            if later[0] == signal.SIGINT:
                break
        with suppress(OSError):
            os.write(2, f"{interrupt.message}\n".encode())
        os._exit(interrupt.exit_code)


def _hold_back() -> None:
    if _handles_sigterm():
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})


def _let_in() -> None:
    if _handles_sigterm():
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})


def _in_child() -> None:
    """A forked child has the pipe: a SIGTERM of its own must not end its parent. One that comes
    before this waits."""
    if _handles_sigterm():
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.set_wakeup_fd(-1)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})


os.register_at_fork(before=_hold_back, after_in_parent=_let_in, after_in_child=_in_child)
