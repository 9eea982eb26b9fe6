"""Verifications that asyncio cancels: before they begin, and after the gate is closed."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from itertools import count
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import gatekeeper.gate
from gatekeeper import Budget, GateResult, LogError, VerificationGate
from gatekeeper.log import Event, MemoryLog
from gatekeeper.testing import AsyncScriptedVerifier, ScriptedVerifier, make_generation

PATIENCE = 60.0


def gate_of(verifier: Any) -> VerificationGate:
    return VerificationGate("random", budget=Budget(fraction=0.2), verifier=verifier, warmup=3)


async def cancelled(rest: Any) -> None:
    task = asyncio.create_task(rest)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def closed(rest: Any) -> None:
    rest.close()


@pytest.mark.parametrize("end", [cancelled, closed])
def test_a_verification_that_ends_before_its_first_step_frees_its_budget(
    end: Callable[[Any], Any],
) -> None:
    gate = gate_of(AsyncScriptedVerifier())

    async def main() -> GateResult:
        _, rest = await gate.adecide(make_generation("a"))
        assert gate.status().warmup_held == 1.0
        await end(rest)
        status = gate.status()
        assert (status.warmup_held, status.verifying) == (0.0, 0)
        assert [output.id for output in gate.pending()] == ["a"]
        return await gate.amaybe_verify(make_generation("a"))

    assert asyncio.run(main()).verified
    assert gate.status().warmup_verified == 1


def test_a_verification_is_awaited_once() -> None:
    gate = gate_of(AsyncScriptedVerifier())

    async def main() -> None:
        _, rest = await gate.adecide(make_generation("a"))
        assert (await rest).verified
        rest.close()  # ended: nothing is given back
        with pytest.raises(RuntimeError, match="cannot reuse"):
            await rest

    asyncio.run(main())
    assert (gate.status().warmup_held, gate.status().warmup_spent) == (0.0, 1.0)


@pytest.mark.parametrize("delay", [0.0, PATIENCE])
def test_a_closed_gate_does_not_replace_the_exception_under_way(delay: float) -> None:
    """With a delay, the verification has begun when the gate is closed."""

    async def main() -> None:
        with gate_of(AsyncScriptedVerifier(delay=delay)) as gate:
            _, rest = await gate.adecide(make_generation("a"))
            task = asyncio.create_task(rest)
            if delay:
                await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())


def test_ctrl_c_in_the_middle_of_a_decision_frees_its_budget() -> None:
    """asyncio.run turns it into a cancellation of all that wait, also for this decision."""

    class Interrupting(MemoryLog):
        armed = False

        def append(self, events: Iterable[Event]) -> None:
            super().append(events)
            if self.armed:
                self.armed = False
                signal.raise_signal(signal.SIGINT)

    log = Interrupting()
    gate = VerificationGate(
        "random", budget=Budget(fraction=0.2), verifier=AsyncScriptedVerifier(), log=log
    )

    async def main() -> None:
        log.armed = True
        await asyncio.gather(*(gate.amaybe_verify(make_generation(id_)) for id_ in "abc"))

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(main())
    status = gate.status()
    assert (status.seen, status.warmup_held, status.verifying) == (3, 0.0, 0)
    assert all(gate.verify_batch([(make_generation(id_), None) for id_ in "abc"]))
    assert gate.status().warmup_spent == 3.0


def test_an_interrupt_at_any_line_holds_no_output() -> None:
    """The gate goes on, or has stopped; then another one goes on with its log."""
    folder, line, output = str(Path(gatekeeper.gate.__file__).parent), 0, make_generation("a")

    def interrupt(frame: FrameType, what: str, _: object) -> Any:
        nonlocal line
        if not frame.f_code.co_filename.startswith(folder):
            return None
        if what == "line":
            line -= 1
            if line == 0:
                raise KeyboardInterrupt
        return interrupt

    ends = Counter[str]()
    for at in count(1):
        line, log, tracer = at, MemoryLog(), sys.gettrace()
        gate = logged(log)
        try:
            sys.settrace(interrupt)
            gate.maybe_verify(output)
        except KeyboardInterrupt:
            ends["interrupted"] += 1
        finally:
            sys.settrace(tracer)
        try:
            assert gate.maybe_verify(output).verified
        except LogError:
            ends["stopped"] += 1
        gate.close()
        with logged(log) as gate:
            assert gate.maybe_verify(output).verified
            assert (gate.status().warmup_held, gate.status().warmup_spent) == (0.0, 1.0)
        if line > 0:
            break
    assert ends["interrupted"] == at - 1
    assert 0 < ends["stopped"] < at - 1


def logged(log: MemoryLog) -> VerificationGate:
    return VerificationGate(
        "random", budget=Budget(fraction=0.2), verifier=ScriptedVerifier(), log=log
    )
