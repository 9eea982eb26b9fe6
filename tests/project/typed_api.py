"""The public API as a user's program has it, for mypy.

`make lint` checks this file with the rest, so a change that takes a type away from users fails
there; tests/project/test_typed_api.py runs it, and has mypy reject wrong uses.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any, assert_type

import numpy as np
import openai

from gatekeeper import (
    AsyncVerifier,
    Attempt,
    Budget,
    Candidate,
    Decision,
    GateResult,
    GateStatus,
    Generation,
    LoopResult,
    Outcome,
    Policy,
    Reason,
    Signals,
    SignalState,
    Stopped,
    Undecided,
    Verdict,
    VerificationGate,
    Verifier,
    batch_signals,
    signals_of,
)
from gatekeeper.adapters import openai as openai_adapter
from gatekeeper.gate.runner import Generate, run_tasks
from gatekeeper.io.responses import as_generation, as_generations
from gatekeeper.io.tasks import Task, read_tasks


class LengthVerifier:
    """A verifier inherits from nothing."""

    def verify(self, generation: Generation, task: Any) -> Outcome:
        right = len(generation.text) <= task["longest"]
        return Outcome(Verdict.PASSED if right else Verdict.FAILED, seconds=0.1)

    async def averify(self, generation: Generation, task: Any) -> Outcome:
        return self.verify(generation, task)


class Everything:
    """A policy inherits from nothing."""

    @property
    def phase(self) -> str:
        return "steady"

    def decide(self, candidate: Candidate) -> Decision:
        return Decision(verify=True, score=1.0, threshold=0.0, reason=Reason.POLICY)

    def update(self, candidate: Candidate, decision: Decision, outcome: Outcome) -> None: ...

    def state(self) -> dict[str, Any]:
        return {}

    def restore(self, state: dict[str, Any]) -> None: ...


policy: Policy = Everything()
verifier: Verifier = LengthVerifier()
awaited: AsyncVerifier = LengthVerifier()


def output(id_: str) -> Generation:
    top = np.log([0.9, 0.8])
    return Generation(id_, "four", logprob=top, top1=top, top2=np.log([0.05, 0.1]))


def signals() -> None:
    found = signals_of(output("a"))
    assert_type(found, Signals)
    assert_type(found.h1, float)
    assert_type(found.state, SignalState)
    assert_type(batch_signals([output("a"), output("b")]), list[Signals])


def decide() -> None:
    with VerificationGate(policy, budget=Budget(fraction=0.5), verifier=verifier) as gate:
        assert_type(gate, VerificationGate)
        result = gate.maybe_verify(output("a"), {"longest": 10})
        assert_type(result, GateResult)
        assert_type(result.decision, Decision)
        assert_type(result.outcome, Outcome | None)
        assert_type(gate.find("a"), GateResult | None)
        assert_type(gate.status(), GateStatus)
        assert_type(gate.verify_batch([(output("b"), {"longest": 10})]), list[GateResult])
        assert_type(gate.pending(), list[Generation])


async def adecide() -> None:
    with VerificationGate("cst", budget=Budget(fraction=0.5), verifier=awaited) as gate:
        assert_type(await gate.amaybe_verify(output("a"), {"longest": 10}), GateResult)


def loop() -> None:
    def generate(task: Any, attempts: tuple[Attempt, ...]) -> object:
        return output(f"a/{len(attempts)}")

    with VerificationGate("cst", budget=Budget(fraction=0.5), verifier=verifier) as gate:
        result = gate.run_loop(generate, {"longest": 10}, id="a", max_attempts=2)
        assert_type(result, LoopResult)
        assert_type(result.stopped, Stopped)


def tasks(path: str) -> None:
    found = read_tasks(path)
    assert_type(found, list[Task])

    def answer(prompts: Any, ids: Any) -> list[Generation]:
        return [output(id_) for id_ in ids]

    generate: Generate = answer
    with VerificationGate("cst", budget=Budget(fraction=0.5), verifier=verifier) as gate:
        run_tasks(gate, found, generate)


def responses(response: Mapping[str, Any]) -> None:
    assert_type(as_generation(response, id="a"), Generation)
    assert_type(as_generations(response, scope="reasoning"), list[Generation])
    assert_type(openai_adapter.generations_of(response), list[Generation])
    reader = openai_adapter.StreamReader(scope="all")
    reader.add(response)
    assert_type(reader.generations(), list[Generation])


def clients() -> None:
    """A wrapped client has the type of the client that was wrapped."""
    with VerificationGate("cst", budget=Budget(fraction=0.5)) as gate:
        client = openai.OpenAI(api_key="none")
        assert_type(gate.wrap(client), openai.OpenAI)
        assert_type(gate.wrap(openai.AsyncOpenAI(api_key="none")), openai.AsyncOpenAI)

        @gate.watch()
        def answer(question: str) -> str:
            """A decorated function keeps its parameters and its result."""
            return question

        assert_type(answer("a"), str)
        context: AbstractContextManager[None] = gate.task({"longest": 10}, verify="always")
        with context:
            pass
        results = gate.results_of(client.models.list())
        assert_type(results, list[GateResult | Undecided])


if __name__ == "__main__":
    signals()
    decide()
    loop()
