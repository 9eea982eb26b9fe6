"""The error rate that is estimated beside a gate."""

from __future__ import annotations

import multiprocessing
from pathlib import Path
from threading import Barrier, Event, Thread
from time import monotonic, sleep
from typing import Any

import pytest

from gatekeeper.errors import LogError
from gatekeeper.telemetry import error_rate as module
from gatekeeper.telemetry.error_rate import LoggedErrorRate

PATIENCE = 60.0  # seconds


def test_a_fork_during_an_estimate_makes_estimates_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has not the thread that was estimating."""
    context = multiprocessing.get_context("fork")
    asked, go = context.Value("i", 0), Event()

    def reading(log: Path) -> Any:
        asked.value += 1
        go.wait(PATIENCE)
        raise LogError("no output yet")

    def wait_for(count: int) -> bool:
        deadline = monotonic() + PATIENCE
        while asked.value < count and monotonic() < deadline:
            rate()
            sleep(0.001)
        return bool(asked.value == count)

    monkeypatch.setattr(module, "records_of_log", reading)
    rate = LoggedErrorRate(tmp_path / "gate.db", every=0.0)
    assert wait_for(1)
    rate()
    assert asked.value == 1  # one at a time
    process = context.Process(target=wait_for, args=(2,))
    process.start()
    process.join(PATIENCE)
    go.set()
    assert asked.value == 2


def test_calls_at_the_same_time_make_one_estimate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, go, together = [], Event(), Barrier(8)

    def reading(log: Path) -> Any:
        asked.append(log)
        go.wait(PATIENCE)
        raise LogError("no output yet")

    class SlowThread(Thread):
        def start(self) -> None:
            sleep(0.05)  # in which the others see a thread that is not alive
            super().start()

    def call() -> None:
        together.wait(PATIENCE)
        rate()

    monkeypatch.setattr(module, "records_of_log", reading)
    rate = LoggedErrorRate(tmp_path / "gate.db", every=0.0)
    monkeypatch.setattr(module, "Thread", SlowThread)
    callers = [Thread(target=call) for _ in range(8)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join(PATIENCE)
    go.set()
    assert len(asked) == 1
