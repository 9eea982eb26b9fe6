"""Whatever a verifier raises, returns or calls, its output can be verified again, and no other
output is held up.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from gatekeeper import Budget, Outcome, Verdict, VerificationGate
from gatekeeper.testing import make_generation
from gatekeeper.types import Generation

PATIENCE = 60.0


class MuteError(Exception):
    """As some are that were unpickled without their arguments."""

    def __str__(self) -> str:
        raise AttributeError("message")


class Mute:
    def __repr__(self) -> str:
        raise AttributeError("name")


def raise_mute() -> object:
    raise MuteError


class Judge:
    def __init__(self, first: Callable[[], object]) -> None:
        self.first, self.times = first, 0

    def verify(self, output: Generation, task: object) -> Any:
        self.times += 1
        return self.first() if self.times == 1 else Outcome(Verdict.PASSED)


class AsyncJudge:
    def __init__(self, first: Callable[[], object]) -> None:
        self.judge = Judge(first)

    async def averify(self, output: Generation, task: object) -> Any:
        return self.judge.verify(output, task)


def gate_of(verifier: Any, **more: Any) -> VerificationGate:
    settings: dict[str, Any] = {"budget": Budget(fraction=0.5), "on_unavailable": "pass"} | more
    return VerificationGate("random", verifier=verifier, **settings)


def ask(gate: VerificationGate, how: str) -> Outcome:
    output = make_generation("a")
    if how == "one":
        result = gate.maybe_verify(output)
    elif how == "batch":
        (result,) = gate.verify_batch([(output, None)])
    else:
        result = asyncio.run(gate.amaybe_verify(output))
    assert result.outcome is not None
    return result.outcome


ways = pytest.mark.parametrize("how", ["one", "batch", "async"])
kinds = pytest.mark.parametrize("kind", [Judge, AsyncJudge])


@ways
@kinds
@pytest.mark.parametrize(
    ("first", "said"),
    [(raise_mute, "MuteError: its text cannot be made"), (Mute, "AttributeError: name")],
)
def test_what_has_no_text_is_no_verdict(
    how: str, kind: type, first: Callable[[], object], said: str
) -> None:
    with gate_of(kind(first)) as gate:
        outcome = ask(gate, how)
        assert outcome.verdict is Verdict.INFRA_ERROR
        assert said in outcome.detail
        assert outcome.seconds > 0.0
        assert (gate.status().warmup_held, gate.status().verifying) == (0.0, 0)
        assert ask(gate, how).verdict is Verdict.PASSED


@ways
def test_an_outcome_keeps_the_details_that_it_was_made_with(how: str) -> None:
    """A verifier may use one dict for all outputs, and fill it later with anything."""
    meta: dict[str, Any] = {}

    def judge(output: Generation, task: object) -> Outcome:
        meta.clear()
        outcomes = [Outcome(Verdict.PASSED, meta=meta)]
        meta["tests"] = [1]
        outcomes.append(Outcome(Verdict.PASSED, meta=meta))
        meta["tests"].append(object())
        assert outcomes[0].meta == {}
        return outcomes[1]

    with gate_of(judge) as gate:
        assert ask(gate, how).meta == {"tests": [1]}
        assert gate.maybe_verify(make_generation("b")).verified


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, asyncio.CancelledError])
def test_a_batch_that_breaks_off_holds_no_output(error: type[BaseException]) -> None:
    """One has ended the batch, one cannot tell, one has a verdict: by then, or later."""
    ended, begun = threading.Event(), {"b": threading.Event(), "c": threading.Event()}
    first = [True]

    def judge(output: Generation, task: object) -> bool | None:
        if not first[0]:
            return True
        if output.id == "a":
            for event in begun.values():
                assert event.wait(PATIENCE)
            raise error
        begun[output.id].set()
        assert ended.wait(PATIENCE)
        return None if output.id == "b" else True

    outputs = [make_generation(id_) for id_ in "abc"]
    with gate_of(judge, workers=3) as gate:
        with pytest.raises(error):
            gate.verify_batch([(output, None) for output in outputs])
        ended.set()
        end = time.monotonic() + PATIENCE
        while gate.status().verifying:
            assert time.monotonic() < end
            time.sleep(0.001)
        assert gate.status().warmup_held == 0.0
        first[0] = False
        results = gate.verify_batch([(output, None) for output in outputs])
        assert all(result.verified for result in results)
        assert gate.status().warmup_spent == 3.0


@pytest.mark.parametrize(("kind", "how"), [(Judge, "batch"), (Judge, "async"), (AsyncJudge, "one")])
def test_a_verifier_that_closes_its_gate_is_told_so(kind: type, how: str) -> None:
    """In a thread of the gate's own, which closing waits for; the gate goes on."""
    gates: list[VerificationGate] = []

    def close() -> object:
        gates[0].close()
        return None

    gates.append(gate_of(kind(close)))
    with gates[0] as gate:
        assert "closes its gate while it verifies" in ask(gate, how).detail
        assert ask(gate, how).verdict is Verdict.PASSED
