"""The extension points. Nobody is asked to subclass: anything of the right shape will do."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from gatekeeper.types import Candidate, Decision, Generation, Outcome

__all__ = ["AsyncVerifier", "CostEstimator", "ObservingPolicy", "Policy", "Verifier"]

Task = Any
"""What a verifier needs to know besides the output: tests, a reference answer. Opaque here."""


@runtime_checkable
class Policy(Protocol):
    """Decides which candidates deserve verification.

    `decide` is called once for each candidate, in stream order; `update` once for each label that
    becomes known, whenever that is: late, out of order, or never. Neither is called concurrently.
    `phase` names what the *next* candidate will meet ("warmup", "calibration", "steady"); whoever
    can wait lets pending labels arrive before a policy leaves a phase.
    """

    @property
    def phase(self) -> str: ...

    def decide(self, candidate: Candidate) -> Decision: ...

    def update(self, candidate: Candidate, decision: Decision, outcome: Outcome) -> None: ...

    def state(self) -> dict[str, Any]:
        """Everything needed to go on elsewhere: a snapshot, of values that `json` takes."""
        ...

    def restore(self, state: dict[str, Any]) -> None: ...


@runtime_checkable
class ObservingPolicy(Policy, Protocol):
    """A policy that also wants to know what became of its wish; the method is optional."""

    def observe(self, candidate: Candidate, decision: Decision) -> None:
        """Called once for each candidate, after `decide` and before anything else, with the
        decision as it stands: what the budget refused has `verify` False."""
        ...


@runtime_checkable
class Verifier(Protocol):
    """Finds out whether an output is right. Must be callable from several threads at once.

    What it cannot tell is `Verdict.INFRA_ERROR`; an exception is understood as one.
    """

    def verify(self, generation: Generation, task: Task) -> Outcome: ...


@runtime_checkable
class AsyncVerifier(Protocol):
    """The asynchronous twin; cancelling the call must free what it holds."""

    async def averify(self, generation: Generation, task: Task) -> Outcome: ...


class CostEstimator(Protocol):
    """Estimates what verification will cost, before it happens: ĉ > 0, any fixed unit."""

    def __call__(self, generation: Generation, task: Task) -> float: ...
