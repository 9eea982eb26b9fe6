"""Outputs that arrive at once get the decisions that they would get one after the other."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from gatekeeper import Budget, GateResult, Generation, Outcome, Verdict, VerificationGate
from gatekeeper.adapters.harness import ordered_queue
from gatekeeper.adapters.harness.ordered_queue import BLOCK, OrderedQueue
from gatekeeper.errors import BadInputError

N = 150


def outputs() -> list[Generation]:
    """Uncertain outputs are more often wrong."""
    rng = np.random.default_rng(0)
    made = []
    for i in range(N):
        doubt = rng.random()
        top1 = np.log(np.full(20, 1 - doubt / 2))
        text = "wrong" if rng.random() < doubt else "right"
        made.append(Generation(f"s{i:03}", text, top1, top1, np.log(np.full(20, doubt / 2))))
    return made


def judge(generation: Generation) -> Outcome:
    return Outcome(Verdict.FAILED if generation.text == "wrong" else Verdict.PASSED, seconds=0.1)


class Judge:
    def verify(self, generation: Generation, task: object) -> Outcome:
        return judge(generation)


@pytest.fixture(autouse=True)
def fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ordered_queue, "QUIET", 0.01)
    monkeypatch.setattr(ordered_queue, "WAKE", 0.02)


def gate(log: Path | None = None, *, verifier: Judge | None = None) -> VerificationGate:
    return VerificationGate("cst", budget=Budget(fraction=0.3), verifier=verifier, log=log)


def expected() -> list[GateResult]:
    """One block after the other, by the gate's own batches."""
    every = outputs()
    with gate(verifier=Judge()) as one:
        found: list[GateResult] = []
        for start in range(0, N, BLOCK):
            found += one.verify_batch([(g, None) for g in every[start : start + BLOCK]])
    return found


def summary(results: list[GateResult]) -> list[tuple[object, ...]]:
    return [
        (r.id, r.decision.verify, r.decision.reason, r.decision.propensity, r.decision.version)
        for r in results
    ] + [(r.id, r.outcome.verdict) for r in results if r.outcome]


class Scoring:
    """All outputs at once, in random order; each waits as long as a verification takes."""

    def __init__(self, queue: OrderedQueue, seed: int) -> None:
        self.queue = queue
        self.rng = random.Random(seed)
        self.verified: Counter[str] = Counter()
        self.failing: set[str] = set()
        self.stop_after = N

    async def one(self, generation: Generation) -> None:
        async with self.queue.decided(generation.id, generation) as queued:
            assert queued.result is not None
            if queued.result.decision.verify and queued.result.outcome is None:
                if self.verified.total() >= self.stop_after:
                    raise KeyboardInterrupt
                self.verified[generation.id] += 1
                await asyncio.sleep(self.rng.random() / 100)
                if generation.id in self.failing:
                    raise RuntimeError(generation.id)
                queued.outcome = judge(generation)

    async def all(self) -> list[BaseException | None]:
        every = outputs()
        self.rng.shuffle(every)
        return await asyncio.gather(*map(self.one, every), return_exceptions=True)

    def results(self) -> list[GateResult]:
        found = [self.queue.gate.find(generation.id) for generation in outputs()]
        return [result for result in found if result is not None]


@pytest.fixture
def scoring() -> Iterator[Scoring]:
    with gate() as one:
        yield Scoring(OrderedQueue(one), seed=1)


def test_whatever_the_order_of_arrival(scoring: Scoring) -> None:
    assert set(asyncio.run(scoring.all())) == {None}
    assert summary(scoring.results()) == summary(expected())
    assert scoring.queue.idle
    assert set(scoring.verified.values()) == {1}
    status = scoring.queue.gate.status()
    assert status.verified <= status.cap
    assert not status.unresolved


@pytest.mark.parametrize("stop_after", [0, 7, 40, 55, 70])
def test_interrupted_and_run_again(tmp_path: Path, stop_after: int) -> None:
    """The second run ends as one run would, and verifies again only what was under way."""
    verified: Counter[str] = Counter()
    for stop in (stop_after, N):
        with gate(tmp_path / "run.db") as one:
            scoring = Scoring(OrderedQueue(one), seed=stop_after)
            scoring.stop_after = stop
            if stop < N:
                with pytest.raises(KeyboardInterrupt):
                    asyncio.run(scoring.all())
            else:
                asyncio.run(scoring.all())
                assert summary(scoring.results()) == summary(expected())
            verified += scoring.verified
    selected = {result.id for result in expected() if result.decision.verify}
    assert verified.keys() == selected
    assert sum(verified.values()) <= len(selected) + BLOCK


def test_outputs_that_fail_block_no_other(scoring: Scoring) -> None:
    scoring.failing = {f"s{i:03}" for i in range(0, 40, 3)}
    raised = [error for error in asyncio.run(scoring.all()) if error]
    assert sorted(map(str, raised)) == sorted(scoring.failing)
    assert len(scoring.results()) == N
    assert scoring.queue.gate.status().unresolved == len(scoring.failing)
    scoring.failing = set()
    assert set(asyncio.run(scoring.all())) == {None}
    assert not scoring.queue.gate.status().unresolved


def test_outputs_that_are_cancelled_block_no_other(scoring: Scoring) -> None:
    async def cancel_some() -> list[BaseException | None]:
        tasks = [asyncio.ensure_future(scoring.one(generation)) for generation in outputs()]
        await asyncio.sleep(0.015)
        for task in tasks[::5]:
            task.cancel()
        return await asyncio.gather(*tasks, return_exceptions=True)

    asyncio.run(cancel_some())
    assert {f"s{i:03}" for i in range(N) if i % 5} <= {r.id for r in scoring.results()}
    assert scoring.queue.idle


def test_another_output_under_a_known_id_is_refused_alone(scoring: Scoring) -> None:
    asyncio.run(scoring.all())
    first, second = outputs()[:2]
    other = Generation(first.id, "other", *[np.zeros(0)] * 3)

    async def again() -> list[BaseException | None]:
        return await asyncio.gather(scoring.one(other), scoring.one(second), return_exceptions=True)

    refused, fine = asyncio.run(again())
    assert isinstance(refused, BadInputError)
    assert fine is None


def test_the_phase_in_which_the_policy_decided(scoring: Scoring) -> None:
    asyncio.run(scoring.all())
    phases = [scoring.queue.gate.phase_of(generation.id) for generation in outputs()]
    assert phases == ["warmup"] * 50 + ["steady"] * (N - 50)
    with pytest.raises(BadInputError, match="no such output came to this gate"):
        scoring.queue.gate.phase_of("nobody")
