"""SIGTERM before a gateway serves, and after it: its gate is closed all the same."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import Pipe
from typing import TYPE_CHECKING, Any

import pytest
from shared_runs import writers

from gatekeeper.cli import main, serve
from gatekeeper.gateway.termination import Termination

if TYPE_CHECKING:
    from postgres import Server

SECOND = """\
from signal import SIGTERM, raise_signal
from gatekeeper.gateway.termination import Termination

with Termination():
    raise_signal(SIGTERM)
    print("kept", flush=True)
    raise_signal(SIGTERM)
    print("not reached", flush=True)
"""


@pytest.fixture
def lost() -> Iterator[list[int]]:
    """SIGTERMs that no handler caught: each would have ended the process."""
    found: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: found.append(number))
    yield found
    signal.signal(signal.SIGTERM, before)


def test_while_it_starts(
    postgres: Server,
    lost: list[int],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The gate is open, and has a lease."""
    place, live = postgres.new_run(), []

    @contextmanager
    def store(plan: Any) -> Iterator[None]:
        live.append(len(writers(place)))
        signal.raise_signal(signal.SIGTERM)
        yield None

    def must_not_serve(*_: Any) -> None:
        pytest.fail("it serves")

    monkeypatch.setattr(serve, "_store", store)
    monkeypatch.setattr(serve, "_routes", must_not_serve)
    options = ["--log", place.dsn, "--run", place.name, "--shared", "--port", "0"]
    assert main(["serve", "--upstream", "http://127.0.0.1:9/v1", *options]) == 0
    assert live == [1]
    assert not writers(place)
    assert not lost
    assert "is in front of" not in capsys.readouterr().err


def test_again_and_again_at_one_of_several(lost: list[int]) -> None:
    """A service manager sends SIGTERM to all processes, and the supervisor forwards it."""
    ours, theirs = Pipe()

    async def work(termination: Termination) -> None:
        with termination.events() as (in_time, at_once):
            assert in_time.is_set()
            signal.raise_signal(signal.SIGTERM)
            await asyncio.sleep(0.01)
            assert not at_once.is_set()
            ours.close()
            await at_once.wait()

    with Termination(theirs) as termination:
        for _ in range(2):
            signal.raise_signal(signal.SIGTERM)
        assert termination.came
        asyncio.run(work(termination))
        signal.raise_signal(signal.SIGTERM)
    assert not lost


def test_a_second_one_ends_a_single_process() -> None:
    done = subprocess.run([sys.executable, "-c", SECOND], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (-signal.SIGTERM, "kept\n")
