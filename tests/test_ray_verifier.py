"""The pool of actors on a cluster, with a stand-in for Ray; `tests/harness/test_ray.py` has Ray."""

from __future__ import annotations

import time
from concurrent.futures import Future, wait
from types import SimpleNamespace
from typing import Any

import pytest

from gatekeeper import Generation, Outcome, Verdict
from gatekeeper.ray import RayVerifier


class Passes:
    def verify(self, generation: Generation, task: object) -> Outcome:
        return Outcome(Verdict.PASSED)


class Actor:
    """One that lives, or one that dies at its start."""

    def __init__(self, *, lives: bool) -> None:
        self._lives = lives
        self.about = SimpleNamespace(remote=self._about)
        self.verify_many = SimpleNamespace(remote=self._verify_many)

    def _about(self) -> Future[Any]:
        future: Future[Any] = Future()
        if self._lives:
            future.set_result(("node", None))
        else:
            future.set_exception(RuntimeError("it died"))
        return future

    def _verify_many(self, pairs: list[Any]) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result([Passes().verify(*pair) for pair in pairs])
        return future


class Cluster:
    """Ray's module: its first actor lives, every other dies at its start."""

    def __init__(self) -> None:
        self.started = 0

    def remote(self, cls: object) -> Any:
        return SimpleNamespace(options=lambda **given: SimpleNamespace(remote=self._start))

    def _start(self, make: object) -> Actor:
        self.started += 1
        return Actor(lives=self.started == 1)

    def wait(self, calls: list[Future[Any]], timeout: float) -> Any:
        return [list(found) for found in wait(calls, timeout)]

    def get(self, call: Future[Any]) -> Any:
        return call.result()

    def kill(self, actor: Actor) -> None:
        pass


def test_a_free_actor_takes_an_output_while_another_slot_has_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whichever of the slots has waited longer."""
    monkeypatch.setattr("gatekeeper.ray.verifier.connected", lambda address: Cluster())
    monkeypatch.setattr("gatekeeper.ray.verifier.POLL", 3600.0)  # half a slot's pause
    with RayVerifier(Passes, actors=2) as pool:
        deadline = time.monotonic() + 60.0
        while not pool._failed:  # then the other slot is in its pause
            assert time.monotonic() < deadline
            time.sleep(0.01)
        for i in range(3):
            time.sleep(0.05)  # the free actor waits again
            future = pool._submit(Generation(str(i), "x"), {})
            assert future.result(20).verdict is Verdict.PASSED
