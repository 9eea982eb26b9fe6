"""Loops around a gate: try again with the reason of the failure, and the best of several outputs.

Both pass outputs to a gate and read the results; policy, budget and log are the gate's. Outputs are
named after their task, `id/1`, `id/2`, ..., so that an interrupted loop continues: outputs in the
log are not generated, decided on or charged again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from gatekeeper.errors import BadInputError
from gatekeeper.gate.protocol import Gate
from gatekeeper.types import GateResult
from gatekeeper.types.states import REFUSED

__all__ = [
    "AsyncGenerate",
    "Attempt",
    "Generate",
    "LoopResult",
    "Stopped",
    "arun_loop",
    "run_loop",
]


class Stopped(StrEnum):
    """Why a loop made no further attempt."""

    PASSED = "passed"  # the last attempt was verified, and is right
    UNVERIFIED = "unverified"  # the policy did not select it: accepted unchecked
    BUDGET = "budget"  # it was selected, and the budget had no room
    NO_VERDICT = "no_verdict"  # the verifier could not tell, or the verdict is still missing
    ATTEMPTS = "attempts"  # the maximum number of attempts was verified, and all are wrong


@dataclass(frozen=True, slots=True)
class Attempt:
    """One output of a loop, with its result. `number` counts from 1."""

    number: int
    text: str
    result: GateResult

    def feedback(self, limit: int = 2000) -> str:
        """Why the output is wrong, as plain text for the next prompt.

        The verdict, the outcome's detail, and its meta's `stdout` and `stderr`; of long texts the
        beginning and the end. "" for an output that was not found wrong.

        Parameters
        ----------
        limit
            Characters at most, at least 1.
        """
        if not limit > 0:
            raise BadInputError(f"limit={limit!r}: give a number of characters, at least 1")
        outcome = self.result.outcome
        if outcome is None or outcome.error != 1:
            return ""
        parts = {"verdict": outcome.verdict, "detail": outcome.detail} | {
            name: str(outcome.meta.get(name, "")) for name in ("stdout", "stderr")
        }
        lines = [f"{name}: {text.strip()}" for name, text in parts.items() if text.strip()]
        left = limit
        for n, i in enumerate(sorted(range(len(lines)), key=lambda i: len(lines[i]))):
            # The short ones first: the rest of the limit is for the long ones.
            lines[i] = _shortened(lines[i], left // (len(lines) - n) - 1)
            left -= len(lines[i]) + 1
        return "\n".join(lines)[:limit]


@dataclass(frozen=True, slots=True)
class LoopResult:
    """The result of a loop. `stopped` shows whether its `text` was verified."""

    id: str
    attempts: tuple[Attempt, ...]
    stopped: Stopped

    @property
    def text(self) -> str:
        """The last attempt's: it passed, or is unverified, or came after the most feedback."""
        return self.attempts[-1].text

    @property
    def verified(self) -> bool:
        """Whether there is a verdict on that text; it is right only if `stopped` is PASSED."""
        return self.attempts[-1].result.verified


Generate = Callable[[Any, tuple[Attempt, ...]], object]
"""(task, attempts) -> a response of any shape that `maybe_verify` takes, with one output.

`attempts` are the earlier ones, all found wrong; empty the first time.
"""

AsyncGenerate = Callable[[Any, tuple[Attempt, ...]], Awaitable[object]]


def run_loop(
    gate: Gate, generate: Generate, task: object, *, id: str, max_attempts: int
) -> LoopResult:
    """See `VerificationGate.run_loop`."""
    attempts: tuple[Attempt, ...] = ()
    for output_id in _output_ids(id, max_attempts):
        if gate.find(output_id) is not None:
            response: object = gate.output(output_id)
        else:
            with gate.task(task, id=output_id):
                response = generate(task, attempts)
        result = gate.maybe_verify(response, task, id=output_id)
        attempts += (Attempt(len(attempts) + 1, gate.output(output_id).text, result),)
        if stopped := _stopped(result):
            return LoopResult(id, attempts, stopped)
    return LoopResult(id, attempts, Stopped.ATTEMPTS)


async def arun_loop(
    gate: Gate, generate: AsyncGenerate, task: object, *, id: str, max_attempts: int
) -> LoopResult:
    """See `VerificationGate.arun_loop`."""
    attempts: tuple[Attempt, ...] = ()
    for output_id in _output_ids(id, max_attempts):
        if gate.find(output_id) is not None:
            response: object = gate.output(output_id)
        else:
            with gate.task(task, id=output_id):
                response = await generate(task, attempts)
        result = await gate.amaybe_verify(response, task, id=output_id)
        attempts += (Attempt(len(attempts) + 1, gate.output(output_id).text, result),)
        if stopped := _stopped(result):
            return LoopResult(id, attempts, stopped)
    return LoopResult(id, attempts, Stopped.ATTEMPTS)


def _output_ids(id: str, max_attempts: int) -> Iterator[str]:
    if not (isinstance(id, str) and id):
        raise BadInputError(f"id={id!r:.80}: give the task a name of its own, a non-empty string")
    if type(max_attempts) is not int or max_attempts < 1:
        raise BadInputError(f"max_attempts={max_attempts!r}: give a whole number of at least 1")
    for number in range(1, max_attempts + 1):
        yield f"{id}/{number}"


def _stopped(result: GateResult) -> Stopped | None:
    """None for an attempt that was found wrong, also by an external verdict: try again."""
    if result.outcome is not None and result.outcome.error is not None:
        return None if result.outcome.error else Stopped.PASSED
    if result.decision.verify:
        return Stopped.NO_VERDICT
    return Stopped.BUDGET if result.decision.reason in REFUSED else Stopped.UNVERIFIED


def _shortened(text: str, room: int) -> str:
    """A text of at most about `room` characters: both ends, if it is longer."""
    if len(text) <= room:
        return text
    half = max((room - 5) // 2, 0)
    return f"{text[:half]} ... {text[len(text) - half :]}"
