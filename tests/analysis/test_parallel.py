"""Work in processes of their own: an interrupt waits for the start of a process to end."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from gatekeeper.analysis.parallel import interrupts_deferred


def test_an_interrupt_that_another_thread_takes_waits_for_the_start() -> None:
    """A thread that does not block it takes it; the exception would be raised in the main one."""
    done: list[str] = []
    asked, sent = threading.Event(), threading.Event()

    def interrupt() -> None:
        asked.wait()
        os.kill(os.getpid(), signal.SIGINT)
        sent.set()

    def start() -> None:
        with interrupts_deferred():
            asked.set()
            sent.wait()
            done.extend(str(i) for i in range(1000))

    other = threading.Thread(target=interrupt)
    other.start()
    with pytest.raises(KeyboardInterrupt):
        start()
    other.join()
    assert len(done) == 1000
    with pytest.raises(KeyboardInterrupt):  # the handler is the one that was there
        signal.raise_signal(signal.SIGINT)
