"""Work in processes of their own: how it gets there, and an interrupt while they start."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from gatekeeper.analysis.parallel import in_processes, interrupts_deferred


class Counted:
    """Work that counts how often it is pickled."""

    pickled = 0

    def __reduce__(self) -> tuple[type[Counted], tuple[()]]:
        Counted.pickled += 1
        return Counted, ()

    def __call__(self, seed: int) -> int:
        return seed * seed


def test_work_is_sent_once() -> None:
    """Not for each seed: before Python 3.11.5 a pool may wait for ever while it sends much."""
    assert dict(in_processes(Counted(), range(5), 2)) == {n: n * n for n in range(5)}
    assert Counted.pickled == 1


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
