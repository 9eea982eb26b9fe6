"""Verifications that use their own gate, and calls that meet its end: none waits for ever."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as LateError
from contextlib import contextmanager
from typing import Any

import pytest
from handled_signal import PATIENCE, handling

from gatekeeper import (
    BadInputError,
    Budget,
    Decision,
    GatekeeperError,
    GateResult,
    Outcome,
    Random,
    Verdict,
    VerificationGate,
)
from gatekeeper.log import Event, MemoryLog, SQLiteLog
from gatekeeper.testing import AsyncScriptedVerifier, ScriptedVerifier, make_generation
from gatekeeper.types import Candidate, Generation
from gatekeeper.wording import described


def gate_of(verifier: Any, **more: Any) -> VerificationGate:
    settings: dict[str, Any] = {"budget": Budget(fraction=0.5), "on_unavailable": "pass"} | more
    return VerificationGate("random", verifier=verifier, **settings)


def within_time(call: Callable[[], Any]) -> Any:
    """The result of a call, in a thread that does not keep this process if it hangs."""
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(call()), daemon=True)
    thread.start()
    thread.join(PATIENCE)
    assert not thread.is_alive(), "it waits for ever"
    return found[0]


def batch_of(gate: VerificationGate, *ids: str) -> list[GateResult]:
    return gate.verify_batch([(make_generation(id_), None) for id_ in ids])


def one_of(gate: VerificationGate, id_: str) -> list[GateResult]:
    return [asyncio.run(gate.amaybe_verify(make_generation(id_)))]


class Nesting:
    """To judge "a" it has others verified by its own gate."""

    gate: VerificationGate

    def __init__(self, inner: Callable[[VerificationGate], list[GateResult]]) -> None:
        self.inner = inner

    def verify(self, output: Generation, task: object) -> Outcome:
        assert output.id != "a" or all(result.verified for result in self.inner(self.gate))
        return Outcome(Verdict.PASSED)


class AsyncNesting:
    def __init__(self, inner: Callable[[VerificationGate], list[GateResult]]) -> None:
        self.nesting = Nesting(inner)

    async def averify(self, output: Generation, task: object) -> Outcome:
        return await asyncio.to_thread(self.nesting.verify, output, task)


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("kind", [Nesting, AsyncNesting])
@pytest.mark.parametrize("outer", [batch_of, one_of])
@pytest.mark.parametrize(
    "inner", [lambda gate: batch_of(gate, "b", "c", "d"), lambda gate: one_of(gate, "b")]
)
def test_a_verification_may_wait_for_others(
    inner: Any, outer: Any, kind: type, workers: int
) -> None:
    """Also where all threads of the gate are such verifications."""
    verifier: Any = kind(inner)
    with gate_of(verifier, workers=workers) as gate:
        getattr(verifier, "nesting", verifier).gate = gate
        (result,) = within_time(lambda: outer(gate, "a"))
        assert result.outcome.verdict is Verdict.PASSED
        assert (gate.status().warmup_held, gate.status().verifying) == (0.0, 0)


def test_a_batch_on_the_loop_that_runs_its_verifier_is_refused() -> None:
    class Judge:
        gate: VerificationGate

        async def averify(self, output: Generation, task: object) -> Outcome:
            batch_of(self.gate, "b")
            return Outcome(Verdict.PASSED)

    with gate_of(judge := Judge()) as gate:
        judge.gate = gate
        (result,) = within_time(lambda: batch_of(gate, "a"))
        assert "await gate.amaybe_verify(...) there" in result.outcome.detail
        assert gate.status().seen == 1


def test_verifications_that_close_their_gate_do_not_wait_for_each_other() -> None:
    """Two of them close it at once; a third one is waited for."""
    both, third = threading.Barrier(3), threading.Event()

    class Judge:
        gate: VerificationGate
        closed = 0

        def verify(self, output: Generation, task: object) -> Outcome:
            both.wait(PATIENCE)
            if output.id == "c":
                third.wait(PATIENCE)
            else:
                self.gate.close()
                assert third.is_set()
                self.closed += 1
            return Outcome(Verdict.PASSED)

    def verify(id_: str) -> GateResult | str:
        try:
            return judge.gate.maybe_verify(make_generation(id_))
        except GatekeeperError as error:
            return str(error)

    judge = Judge()
    judge.gate = gate_of(judge)
    with ThreadPoolExecutor(3) as pool:
        found = [pool.submit(verify, id_) for id_ in "abc"]
        with pytest.raises(LateError):
            found[0].result(0.05)
        third.set()
        results = [each.result(PATIENCE) for each in found]
    assert judge.closed == 2
    assert "this gate is closed" in str(results[0])
    assert "this gate is closed" in str(results[1])
    assert isinstance(results[2], GateResult)


@contextmanager
def closed_after(gate: VerificationGate) -> Iterator[None]:
    yield
    gate.close()


@pytest.mark.parametrize("kind", [ScriptedVerifier, AsyncScriptedVerifier])
def test_a_verification_after_the_end_says_so_and_stays_open(kind: type, tmp_path: Any) -> None:
    """In the log it is reserved, and the next gate verifies it with that reservation."""
    verifier, path = kind(), tmp_path / "run.db"
    gate = gate_of(verifier, log=path)

    async def main() -> None:
        with closed_after(gate):
            _, rest = await gate.adecide(make_generation("a"))
        assert rest is not None
        with pytest.raises(GatekeeperError, match="this gate is closed: make a new one"):
            await rest
        with pytest.raises(GatekeeperError, match="this gate is closed: make a new one"):
            await gate.amaybe_verify(make_generation("b"))

    asyncio.run(main())
    with pytest.raises(GatekeeperError, match="this gate is closed: make a new one"):
        batch_of(gate, "b")
    assert verifier.calls == []
    with gate_of(verifier, log=path) as again:
        assert [output.id for output in again.pending()] == ["a"]
        assert again.status().warmup_held == 1.0
        assert again.maybe_verify(make_generation("a")).verified
        assert (again.status().warmup_held, again.status().warmup_spent) == (0.0, 1.0)


def test_the_end_waits_for_a_batch_of_another_thread() -> None:
    """Which has verifications that no thread has begun, and further ones to decide on."""
    begun, go_on = threading.Event(), threading.Event()

    class Judge:
        def verify(self, output: Generation, task: object) -> Outcome:
            begun.set()
            go_on.wait(PATIENCE)
            return Outcome(Verdict.PASSED)

    gate = gate_of(Judge(), workers=1, warmup=3)
    with ThreadPoolExecutor(2) as pool:
        batch = pool.submit(batch_of, gate, *map(str, range(8)))
        assert begun.wait(PATIENCE)
        end = pool.submit(gate.close)
        with pytest.raises(LateError):
            end.result(0.05)
        go_on.set()
        assert len(batch.result(PATIENCE)) == 8
        end.result(PATIENCE)


@pytest.mark.parametrize("moment", ["while it decides", "while it waits"])
def test_a_signal_handler_that_closes_the_gate_in_a_batch(moment: str) -> None:
    """It would wait for threads that wait for what it interrupts. The gate can be closed after."""
    main, decided = threading.get_ident(), threading.Event()

    class Judge:
        def verify(self, output: Generation, task: object) -> Outcome:
            if moment == "while it waits" and output.id == "3":
                signal.pthread_kill(main, signal.SIGUSR1)
            else:
                decided.wait(PATIENCE)
            return Outcome(Verdict.PASSED)

    class Log(MemoryLog):
        def append(self, events: Iterable[Event]) -> None:
            super().append(events)
            if any(self.rows("3")) and not decided.is_set():  # the last one, under the gate's lock
                decided.set()
                if moment == "while it decides":
                    signal.raise_signal(signal.SIGUSR1)

    gate = gate_of(Judge(), log=Log(), warmup=4, workers=2)
    with (
        handling(gate.close),
        closed_after(gate),
        pytest.raises(BadInputError, match=r"signal handler closes.*raise SystemExit"),
    ):
        batch_of(gate, *"0123")
    with pytest.raises(GatekeeperError, match="this gate is closed"):
        batch_of(gate, "4")


@pytest.mark.parametrize("moment", ["before it is logged", "after it is logged"])
@pytest.mark.parametrize("how", ["one", "async", "find"])
def test_a_handler_that_closes_the_gate_in_the_middle_of_a_step(
    how: str, moment: str, tmp_path: Any
) -> None:
    """Another thread verifies, which waits for this step. Each output is charged once in the end,
    by the next gate on the log, which stands for what memory may have lost.
    """
    begun, go_on = threading.Event(), threading.Event()
    main = threading.get_ident()

    def interrupt() -> None:
        go_on.set()
        signal.raise_signal(signal.SIGUSR1)

    class Judge:
        def verify(self, output: Generation, task: object) -> Outcome:
            begun.set()
            go_on.wait(PATIENCE)
            return Outcome(Verdict.PASSED)

    class Log(SQLiteLog):
        def append(self, events: Iterable[Event]) -> None:
            here = threading.get_ident() == main and begun.is_set() and not go_on.is_set()
            if here and moment == "before it is logged":
                interrupt()
            super().append(events)
            if here and moment == "after it is logged":
                interrupt()

        def events(self, id_: str | None = None) -> Iterator[Event]:
            if how == "find" and id_ is not None and not go_on.is_set():
                interrupt()
            return super().events(id_)

    def call(gate: VerificationGate) -> None:
        if how == "async":
            one_of(gate, "b")
        elif how == "one":
            gate.maybe_verify(make_generation("b"))
        else:
            gate.output("a")

    path = tmp_path / "run.db"
    gate = gate_of(Judge(), log=Log(path), warmup=4)
    with ThreadPoolExecutor(1) as pool, handling(gate.close), closed_after(gate):
        other = pool.submit(gate.maybe_verify, make_generation("a"))
        assert begun.wait(PATIENCE)
        with pytest.raises(BadInputError, match=r"signal handler closes.*raise SystemExit"):
            call(gate)
        # An incomplete change stops the gate: see `Transaction`.
        assert (other.exception(PATIENCE) is None) == (how == "find")
    with gate_of(Judge(), log=path, warmup=4) as again:
        for id_ in "ab":
            assert again.maybe_verify(make_generation(id_)).verified
        assert (again.status().warmup_held, again.status().warmup_spent) == (0.0, 2.0)


def test_a_policy_that_closes_its_gate() -> None:
    class Closing(Random):
        gate: VerificationGate

        def decide(self, candidate: Candidate) -> Decision:
            self.gate.close()
            return super().decide(candidate)

    policy = Closing(0.5)
    policy.gate = gate = VerificationGate(policy, budget=Budget(fraction=0.5))
    with closed_after(gate), pytest.raises(BadInputError, match="or a policy does"):
        gate.maybe_verify(make_generation("a"))


def test_a_handler_that_closes_the_gate_while_a_thread_is_started(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The pool of threads has a lock of its own, which its end needs."""
    submit = ThreadPoolExecutor.submit

    def interrupted(pool: Any, *given: Any) -> Any:
        if not pool._thread_name_prefix.startswith("gatekeeper"):
            return submit(pool, *given)
        with pool._shutdown_lock:  # as `submit` holds it
            signal.raise_signal(signal.SIGUSR1)
        return submit(pool, *given)

    gate = gate_of(lambda output, task: True)
    with handling(gate.close), closed_after(gate):
        with monkeypatch.context() as patch:
            patch.setattr(ThreadPoolExecutor, "submit", interrupted)
            with pytest.raises(BadInputError, match=r"raise SystemExit"):
                one_of(gate, "a")
        (result,) = one_of(gate, "a")
        assert result.verified


@pytest.mark.parametrize("kind", ["synchronous", "asynchronous"])
@pytest.mark.parametrize("how", ["one", "batch", "async"])
def test_without_a_further_thread_nothing_is_held(
    how: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The system refuses one: the call says so, and its output can be verified later."""
    start = threading.Thread.start

    def refuse(thread: threading.Thread) -> None:
        if thread.name.startswith("gatekeeper"):
            raise RuntimeError("can't start new thread")
        start(thread)

    def call(gate: VerificationGate) -> str:
        try:
            if how == "one":
                result = gate.maybe_verify(make_generation("a"))
            else:
                (result,) = batch_of(gate, "a") if how == "batch" else one_of(gate, "a")
        except RuntimeError as error:
            return described(error)
        return str(result.outcome)

    async def judge(output: Generation, task: object) -> bool:
        return True

    with gate_of(judge if kind == "asynchronous" else lambda output, task: True) as gate:
        with monkeypatch.context() as patch:
            patch.setattr(threading.Thread, "start", refuse)
            first = call(gate)
        needs_none = how == ("one" if kind == "synchronous" else "async")
        assert "passed" in first if needs_none else "thread" in first
        assert "passed" in call(gate)
        assert gate.maybe_verify(make_generation("b")).verified
        assert (gate.status().warmup_held, gate.status().warmup_spent) == (0.0, 2.0)
