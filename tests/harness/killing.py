"""Processes that are killed with signal 9."""

from __future__ import annotations

import multiprocessing
import signal
import time
from collections.abc import Callable
from typing import Any


def killed_when(far_enough: Callable[[], bool], run: Callable[..., Any], *given: Any) -> None:
    """Call `run` in a process of its own, and kill that before it ends.

    It is a fork of this one: a new interpreter would import the harness again.
    """
    process = multiprocessing.get_context("fork").Process(target=run, args=given)
    process.start()
    while process.is_alive() and not far_enough():
        time.sleep(0.01)
    process.kill()
    process.join()
    assert process.exitcode == -signal.SIGKILL
