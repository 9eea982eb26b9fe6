"""An asynchronous verifier in synchronous calls: one event loop for all of them."""

from __future__ import annotations

import asyncio
import gc
import signal
import sys
import threading
import time
from typing import Any

import pytest

from gatekeeper import Budget, Generation, Verdict, VerificationGate
from gatekeeper.gate.own_loop import OwnLoop
from gatekeeper.testing import make_generation

PATIENCE = 60.0


def gate_of(verifier: Any, **more: Any) -> VerificationGate:
    settings: dict[str, Any] = {"budget": Budget(fraction=1.0), "on_unavailable": "pass"} | more
    return VerificationGate("random", verifier=verifier, **settings)


def loops() -> list[threading.Thread]:
    return [t for t in threading.enumerate() if t.name == "gatekeeper-loop"]


@pytest.mark.parametrize("workers", [1, 4])
def test_what_a_verifier_keeps_works_in_every_call(workers: int) -> None:
    """A client or a semaphore belongs to the loop that used it first."""
    limit, used = asyncio.Semaphore(1), set()

    async def judge(output: Generation, task: Any) -> bool:
        async with limit:
            used.add(asyncio.get_running_loop())
            await asyncio.sleep(0.001)
            return True

    with gate_of(judge, workers=workers) as gate:
        one = [gate.maybe_verify(make_generation(f"a{i}"), {}) for i in range(2)]
        many = gate.verify_batch([(make_generation(f"b{i}"), {}) for i in range(6)])
    assert [r.outcome.verdict for r in one + many if r.outcome] == [Verdict.PASSED] * 8
    assert len(used) == 1


@pytest.mark.parametrize("error", [asyncio.CancelledError, KeyboardInterrupt, SystemExit])
def test_what_ends_a_verifier_is_raised_and_the_loop_goes_on(error: type[BaseException]) -> None:
    async def judge(output: Generation, task: Any) -> bool:
        if output.id == "a":
            raise error
        return True

    with gate_of(judge) as gate:
        with pytest.raises(error):
            gate.maybe_verify(make_generation("a"), {})
        assert gate.maybe_verify(make_generation("b"), {}).verified
        assert (gate.status().warmup_held, gate.status().warmup_spent) == (0.0, 1.0)


def test_an_interrupt_of_the_caller_cancels_the_verifier() -> None:
    cancelled = threading.Event()

    async def judge(output: Generation, task: Any) -> bool:
        if output.id == "b":
            return True
        caller = threading.main_thread().ident
        assert caller is not None
        while sys._current_frames()[caller].f_code.co_name != "wait":  # for this coroutine
            await asyncio.sleep(0.001)
        try:
            signal.pthread_kill(caller, signal.SIGINT)
            await asyncio.sleep(PATIENCE)
        except asyncio.CancelledError:
            cancelled.set()
            raise
        raise AssertionError("not cancelled")

    with gate_of(judge) as gate:
        with pytest.raises(KeyboardInterrupt):
            gate.maybe_verify(make_generation("a"), {})
        assert cancelled.wait(PATIENCE)
        assert gate.status().warmup_held == 0.0
        assert gate.maybe_verify(make_generation("b"), {}).verified


def test_the_thread_begins_when_it_is_needed_and_ends_with_the_gate() -> None:
    async def judge(output: Generation, task: Any) -> bool:
        return True

    before = len(loops())
    gate = gate_of(judge)
    asyncio.run(gate.amaybe_verify(make_generation("a"), {}))
    assert len(loops()) == before
    gate.maybe_verify(make_generation("b"), {})
    assert len(loops()) == before + 1
    gate.close()
    gate.close()
    assert len(loops()) == before


def test_the_thread_of_a_gate_that_nobody_closes_ends_too() -> None:
    async def answer() -> int:
        return 1

    before = set(loops())
    loop = OwnLoop()
    assert loop.run(answer()) == 1
    (thread,) = set(loops()) - before
    del loop
    end = time.monotonic() + PATIENCE
    while thread.is_alive():
        gc.collect()
        assert time.monotonic() < end
        time.sleep(0.001)
