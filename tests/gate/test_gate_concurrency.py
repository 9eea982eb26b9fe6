"""At any concurrency and with any failure, the budget is not exceeded by a single tick."""

from __future__ import annotations

import asyncio
import faulthandler
import json
import random
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from ticks import ticks

from gatekeeper import CST, HGA, Budget, GateStatus, Outcome, Policy, Random, VerificationGate
from gatekeeper.errors import GatekeeperError
from gatekeeper.log import Log, MemoryLog, SQLiteLog
from gatekeeper.testing import AsyncScriptedVerifier, ScriptedVerifier, make_generation
from gatekeeper.types import Generation, Reason, Verdict

PATIENCE = 90.0  # seconds until something counts as a deadlock
MAX_COST = 0.05  # seconds reserved for one verification

POLICIES: dict[str, Callable[[], Policy]] = {
    "random": lambda: Random(0.5, seed=1),
    "cst": lambda: CST(0.3, seed=1),
    "hga": lambda: HGA(0.4, calibration=100, seed=1),
}
BUDGETS = {
    "300 verifications": Budget(total=300),
    "5.0 seconds": Budget(total=5.0, unit="seconds", max_cost=MAX_COST),
}

pytestmark = pytest.mark.parametrize("budget", BUDGETS.values(), ids=BUDGETS)
policies = pytest.mark.parametrize("policy", POLICIES)
troubles = pytest.mark.parametrize("trouble", [False, True], ids=["calm", "trouble"])


@pytest.fixture(autouse=True)
def no_deadlock() -> Iterator[None]:
    """Print all stacks and end the process, in case even the event loop is blocked."""
    faulthandler.dump_traceback_later(2 * PATIENCE, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()


class Costly(ScriptedVerifier):
    """Verdict, cost and delay follow from the id; with `trouble`, a third raises.

    A cost lies between nothing and the whole reservation, or (one in ten) above it.
    """

    def __init__(self, *, trouble: bool, delay: float = 0.002) -> None:
        super().__init__()
        self.trouble = trouble
        self.longest = delay

    def draw(self, id_: str) -> random.Random:
        return random.Random(f"verifier {id_}")

    def pause(self, id_: str) -> float:
        return self.longest * self.draw(f"{id_} pause").random()

    def raises(self, id_: str) -> bool:
        return self.trouble and self.draw(f"{id_} raises").random() < 1 / 3

    def _outcome(self, id_: str) -> Outcome:
        if self.raises(id_):
            raise ConnectionError(f"{id_}: the daemon is gone")
        rng = self.draw(id_)
        cost = MAX_COST * (1.5 if rng.random() < 0.1 else rng.random())
        return Outcome(Verdict.FAILED if rng.random() < 0.4 else Verdict.PASSED, cost=cost)

    def verify(self, generation: Generation, task: Any) -> Outcome:
        self._enter(generation.id)
        try:
            time.sleep(self.pause(generation.id))
            return self._outcome(generation.id)
        finally:
            self._leave()


class AsyncCostly(Costly, AsyncScriptedVerifier):
    """With `trouble`, a sixth raises and another sixth is cancelled while it is at work."""

    def raises(self, id_: str) -> bool:
        return self.trouble and self.draw(f"{id_} raises").random() < 1 / 6

    def cancels(self, id_: str) -> bool:
        return self.trouble and self.draw(f"{id_} cancels").random() < 1 / 5

    async def averify(self, generation: Generation, task: Any) -> Outcome:
        self._enter(generation.id)
        try:
            if self.cancels(generation.id):
                me = asyncio.current_task()
                assert me is not None
                asyncio.get_running_loop().call_later(self.pause(generation.id), me.cancel)
                await asyncio.sleep(PATIENCE)
            await asyncio.sleep(self.pause(generation.id))
            return self._outcome(generation.id)
        finally:
            self._leave()


def outputs(n: int, *, seed: int = 0) -> list[Generation]:
    rng = random.Random(seed)
    return [
        make_generation(
            f"g{i}",
            tokens=rng.choice((0, 3, 10, 20)) if i % 20 == 0 else rng.randint(1, 30),
            seed=i % 97,
            prompt_tokens=rng.randint(5, 200),
        )
        for i in range(n)
    ]


def assert_within(status: GateStatus, budget: Budget) -> None:
    assert budget.total is not None
    assert ticks(status.spent) + ticks(status.held) <= ticks(status.cap), status
    assert ticks(status.spent) + ticks(status.held) + ticks(status.warmup_spent) <= ticks(
        budget.total
    ), status


@contextmanager
def watched(gate: VerificationGate) -> Iterator[list[GateStatus]]:
    """Sample `status()` from another thread for as long as the body runs, and check each."""
    samples: list[GateStatus] = []
    over = threading.Event()

    def watch() -> None:
        while not over.wait(0.0005):
            samples.append(gate.status())

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield samples
    finally:
        over.set()
        watcher.join(PATIENCE)
    assert samples
    for status in samples:
        assert_within(status, gate.budget)


def recount(log: Log, budget: Budget) -> Counter[str]:
    """The account that the events alone give, checked against the budget after each."""
    assert budget.total is not None
    price = ticks(1.0 if budget.unit == "verifications" else MAX_COST)
    held: set[str] = set()
    given_back: set[str] = set()
    charged: set[str] = set()
    learned: set[str] = set()
    decided: dict[str, Any] = {}
    spent = 0
    n: Counter[str] = Counter()
    for kind, id_, data in log.rows():
        if kind == "decided":
            assert id_ not in decided
            decided[id_] = data
            n["seen"] += 1
            n["warmup_seen"] += data["phase"] == "warmup"
            n["budget_exhausted"] += data["reason"] == Reason.BUDGET_EXHAUSTED
            n["missing_signal"] += data["signal"] == "missing"
            if data["verify"]:
                held.add(id_)
        elif kind == "outcome":
            assert id_ in held
            assert id_ not in charged, f"{id_} was charged twice"
            held.remove(id_)
            charged.add(id_)
            assert 0 <= ticks(data["cost"]) <= price
            spent += ticks(data["cost"])
            where = "warmup_" if decided[id_]["reason"] == Reason.WARMUP else ""
            n[f"{where}verified"] += 1
            n["warmup_errors" if where else "errors_found"] += data["error"]
            n[f"{where}spent"] += ticks(data["cost"])
        elif kind == "learned":
            assert id_ in charged
            assert id_ not in learned, f"{id_} was learned twice"
            learned.add(id_)
        elif kind == "released":
            held.remove(id_)
            given_back.add(id_)
            n[f"released: {data['why']}"] += 1
        assert spent + price * len(held) <= ticks(budget.total), f"overshoot at {kind} of {id_}"
    assert not held, "a reservation was neither settled nor released"
    assert charged == learned
    assert not charged & given_back
    n["unresolved"] = len(given_back)
    return n


def assert_settled(gate: VerificationGate, log: Log, verifier: Costly) -> Counter[str]:
    """The ledger is empty, and status, log and verifier agree."""
    status, n = gate.status(), recount(log, gate.budget)
    assert_within(status, gate.budget)
    assert status.held == 0.0
    assert status.reserved == 0
    assert status.warmup_held == 0.0
    for name in (
        "seen",
        "verified",
        "errors_found",
        "warmup_seen",
        "warmup_verified",
        "warmup_errors",
        "budget_exhausted",
        "missing_signal",
        "unresolved",
    ):
        assert getattr(status, name) == n[name], name
    assert ticks(status.spent) == n["spent"]
    assert ticks(status.warmup_spent) == n["warmup_spent"]
    assert max(Counter(verifier.calls).values()) == 1
    assert verifier.most_at_once > 1
    return n


def run_threads(gate: VerificationGate, stream: list[Generation], threads: int = 64) -> None:
    """Run all threads at once on one gate, each with its share of the stream."""
    start = threading.Barrier(threads)
    errors: list[BaseException] = []

    def work(mine: list[Generation]) -> None:
        start.wait(PATIENCE)
        try:
            for generation in mine:
                gate.maybe_verify(generation)
        except BaseException as e:
            errors.append(e)
            raise

    crew = [
        threading.Thread(target=work, args=(stream[i::threads],), daemon=True)
        for i in range(threads)
    ]
    for thread in crew:
        thread.start()
    end = time.monotonic() + PATIENCE
    for thread in crew:
        thread.join(max(0.0, end - time.monotonic()))
    if any(thread.is_alive() for thread in crew):
        faulthandler.dump_traceback(sys.__stderr__)
        pytest.fail("deadlock: the threads' stacks are on stderr")
    assert not errors


@policies
@troubles
def test_64_threads_never_overspend(policy: str, budget: Budget, trouble: bool) -> None:
    """Zero overshoot with 64 threads on one gate, a third of the verifications raising or not."""
    log, verifier = MemoryLog(), Costly(trouble=trouble)
    gate = VerificationGate(
        POLICIES[policy](), budget=budget, verifier=verifier, log=log, on_unavailable="pass"
    )
    with watched(gate):
        run_threads(gate, outputs(64 * 25))
    n = assert_settled(gate, log, verifier)
    assert n["budget_exhausted"] > 0, "the budget was never tight: this shows nothing"
    assert (n["unresolved"] > 0) is trouble
    if budget.unit == "verifications" and not trouble:
        assert n["verified"] + n["warmup_verified"] == 300  # to the last one
    elif budget.unit == "seconds":
        assert gate.status().overrun > 0.0  # some took more: shown, and not charged
    gate.close()


async def run_tasks(gate: VerificationGate, stream: list[Generation], *, cancel: bool) -> int:
    """1,000 tasks on one gate; with `cancel`, a third are cancelled at random moments.

    Returns how many ended in a cancellation.
    """
    rng = random.Random("tasks")

    async def one(generation: Generation, later: float) -> None:
        await asyncio.sleep(later)
        await gate.amaybe_verify(generation)

    tasks = [asyncio.create_task(one(generation, 0.1 * rng.random())) for generation in stream]
    if cancel:
        for task in tasks:
            if rng.random() < 1 / 3:
                asyncio.get_running_loop().call_later(0.15 * rng.random(), task.cancel)
    done = await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), PATIENCE)
    for result in done:
        assert result is None or isinstance(result, asyncio.CancelledError), result
    return sum(result is not None for result in done)


@pytest.mark.parametrize("policy", ["random", "cst"])
@troubles
@pytest.mark.parametrize("kind", [AsyncCostly, Costly], ids=["averify", "pool"])
def test_1000_tasks_never_overspend(
    policy: str, budget: Budget, trouble: bool, kind: type[Costly]
) -> None:
    """The same for asyncio: an async verifier, and a synchronous one in the gate's threads.

    With trouble, verifications raise and tasks are cancelled: waiting, queued and at work.
    """
    log, verifier = MemoryLog(), kind(trouble=trouble, delay=0.01 if kind is AsyncCostly else 2e-3)
    gate = VerificationGate(
        POLICIES[policy](),
        budget=budget,
        verifier=verifier,
        log=log,
        on_unavailable="pass",
        workers=8,
    )
    with watched(gate):
        cancelled = asyncio.run(run_tasks(gate, outputs(1000), cancel=trouble))
        gate.close()  # waits for what no longer has a task
    n = assert_settled(gate, log, verifier)
    assert n["budget_exhausted"] > 0 or trouble or policy != "random", "never tight"
    assert (cancelled > 0) is trouble
    assert (n["unresolved"] > 0) is trouble
    if kind is AsyncCostly:
        assert (n["released: cancelled"] > 0) is trouble


@troubles
def test_batches_from_many_threads_never_overspend(budget: Budget, trouble: bool) -> None:
    """`verify_batch` from 16 threads on one gate and its few workers."""
    log, verifier = MemoryLog(), Costly(trouble=trouble)
    gate = VerificationGate(
        CST(0.3, seed=1), budget=budget, verifier=verifier, log=log, on_unavailable="pass"
    )
    stream = outputs(1200)
    batches = [[(g, None) for g in stream[i : i + 25]] for i in range(0, len(stream), 25)]
    with watched(gate), ThreadPoolExecutor(16) as crew:
        futures = [crew.submit(gate.verify_batch, batch) for batch in batches]
        for batch, future in zip(batches, futures, strict=True):
            assert [r.id for r in future.result(PATIENCE)] == [g.id for g, _ in batch]
    assert_settled(gate, log, verifier)
    gate.close()


def test_what_many_threads_wrote_is_resumed(budget: Budget, tmp_path: Path) -> None:
    """A log written by 64 threads at once gives the same gate again: totals and policy."""
    path = tmp_path / "run.db"
    policy, again = CST(0.3, seed=1), CST(0.3, seed=1)
    verifier = Costly(trouble=True)
    with VerificationGate(
        policy, budget=budget, verifier=verifier, log=path, on_unavailable="pass"
    ) as gate:
        with watched(gate):
            run_threads(gate, outputs(64 * 12))
        status = gate.status()
    with VerificationGate(again, budget=budget, log=path) as gate:
        resumed = gate.status()
        assert json.dumps(again.state()) == json.dumps(policy.state())  # NaN equals NaN
        assert resumed == status
    with SQLiteLog(path, read_only=True) as log:
        recount(log, budget)


def test_one_output_handed_in_by_many_threads_is_charged_once(budget: Budget) -> None:
    """The same id from 16 threads at once: one verification; the others get its result or wait."""
    log, verifier = MemoryLog(), Costly(trouble=False)
    gate = VerificationGate(Random(0.5, seed=1), budget=budget, verifier=verifier, log=log)
    refused: list[GatekeeperError] = []
    start = threading.Barrier(16)

    def work() -> None:
        for generation in outputs(30):
            start.wait(PATIENCE)
            try:
                assert gate.maybe_verify(generation).verified
            except GatekeeperError as e:
                refused.append(e)

    crew = [threading.Thread(target=work, daemon=True) for _ in range(16)]
    for thread in crew:
        thread.start()
    for thread in crew:
        thread.join(PATIENCE)
        assert not thread.is_alive()
    assert all("being verified" in str(e) for e in refused)
    assert sorted(verifier.calls) == sorted(f"g{i}" for i in range(30))
    n = recount(log, budget)
    assert n["warmup_verified"] == gate.status().warmup_verified == 30
