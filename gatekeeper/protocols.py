"""The extension points, as protocols: implement the methods; no base class is needed.

`gatekeeper.testing` has the contracts as code: `check_policy` and `check_verifier`.
"""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from gatekeeper.types import Candidate, Decision, Generation, Observation, Outcome

__all__ = [
    "AsyncVerifier",
    "CostEstimator",
    "Feature",
    "ObservingPolicy",
    "Policy",
    "ReleasingPolicy",
    "Sink",
    "Verifier",
]

Task = Any
"""What a verifier needs besides the output: tests, a reference answer. Opaque to the gate."""


@runtime_checkable
class Policy(Protocol):
    """Proposes which candidates to verify.

    The gate calls its methods one at a time, never concurrently. Equal policies with equal calls
    decide equally, so randomness comes from a seed of the policy's own.

    Attributes of its class describe it to replay, tables and the CLI: a label, what it learns
    from, what its constructor needs. `gatekeeper.policies.descriptor` lists them, each
    with its default.
    """

    @property
    def phase(self) -> str:
        """The phase for the *next* candidate: "warmup", "calibration", "steady" or another name.

        A batch waits for pending labels before a policy leaves a phase.
        """
        ...

    def decide(self, candidate: Candidate) -> Decision:
        """Propose whether to verify a candidate. Called once for each, in stream order.

        Parameters
        ----------
        candidate
            The data known before verification: signals (NaN where missing) and ĉ > 0.

        Returns
        -------
        Decision
            The proposal. `propensity` is the probability, in [0, 1], with which it was to verify;
            `reason` is WARMUP for a candidate that all policies verify to learn the signals'
            ranges, which the budget charges to the warm-up's account. The budget may refuse the
            proposal, and exploration may verify where it does not.
        """
        ...

    def update(self, candidate: Candidate, decision: Decision, outcome: Outcome) -> None:
        """Learn from a verdict, which may come late or out of order.

        Parameters
        ----------
        candidate, decision
            As they were decided on. `decision` is the final one, which may differ from the
            proposal.
        outcome
            With a label (`outcome.error` is 0 or 1) and the charge as `cost`. Called at most once
            for each candidate.
        """
        ...

    def state(self) -> dict[str, Any]:
        """A snapshot of JSON values: everything needed to continue in another process."""
        ...

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a snapshot that `state` of an equal policy returned.

        Decisions and states that follow are equal to the bit.
        """
        ...


@runtime_checkable
class ObservingPolicy(Policy, Protocol):
    """A policy that also observes the final decisions; the method is optional."""

    def observe(self, candidate: Candidate, decision: Decision) -> None:
        """Called once for each candidate, after `decide` and before anything else.

        Parameters
        ----------
        candidate
            As for `decide`.
        decision
            The final one: `verify` is False if the budget refused, and True if exploration drew it.
        """
        ...


@runtime_checkable
class ReleasingPolicy(Policy, Protocol):
    """A policy that also observes which verifications gave no verdict; the method is optional."""

    def release(self, candidate: Candidate, decision: Decision) -> None:
        """Called when a verification has ended without a verdict: nothing was charged for it.

        The output may be verified again later: then `update` follows, or another call of this.

        Parameters
        ----------
        candidate, decision
            As for `update`.
        """
        ...


@runtime_checkable
class Verifier(Protocol):
    """Finds out whether an output is right."""

    def verify(self, generation: Generation, task: Task) -> Outcome:
        """Verify one output. Called from several threads at once.

        Parameters
        ----------
        generation
            The output. After a resume its token arrays are empty: logs do not keep them.
        task
            The caller's, unchanged.

        Returns
        -------
        Outcome
            With the verdict, `Verdict.INFRA_ERROR` where the verifier could not tell. `cost` is in
            the budget's unit; None leaves it to the gate: 1 verification, or the `seconds` taken,
            or for usd the whole reservation.

        Raises
        ------
        Exception
            Treated as INFRA_ERROR: nothing is charged or learned.
        """
        ...


@runtime_checkable
class AsyncVerifier(Protocol):
    """A verifier for asyncio."""

    async def averify(self, generation: Generation, task: Task) -> Outcome:
        """`Verifier.verify` as a coroutine. Cancelling it must free its resources.

        It must not block, because that stops everything else on its event loop. Put blocking code
        into `Verifier.verify`, which runs in a thread.
        """
        ...


class CostEstimator(Protocol):
    """Estimates what the verification of an output will cost, before it happens."""

    def __call__(self, generation: Generation, task: Task) -> float:
        """ĉ, a finite number above 0.

        In any unit, the same for the whole stream: policies use ratios only. Called once for each
        output, in the caller's thread.
        """
        ...


class Feature(Protocol):
    """Computes a number that may help to predict errors. Its name is that of the function."""

    __name__: str

    def __call__(self, generation: Generation, task: Task, /) -> float | None:
        """A finite number, or None where there is none.

        Called once for each output, in the caller's thread, before it is decided on.
        """
        ...


@runtime_checkable
class Sink(Protocol):
    """Gets every decision and every outcome of a gate; for `VerificationGate(telemetry=...)`.

    Called from several threads at once, without the gate's lock, and before the caller has the
    result: so it must be quick. An exception is logged once and does not affect results.
    """

    def decided(self, seen: Observation) -> object:
        """A decision. Called in the caller's context, with the caller's current span.

        Returns
        -------
        object
            Anything. For a selected output `concluded` gets it back.
        """
        ...

    def concluded(self, seen: Observation, kept: object) -> None:
        """An outcome: a verdict, or an `infra_error`, which may be followed by another outcome.

        Called in the thread and context in which the verification ended.

        Parameters
        ----------
        seen
            The output, its decision and its outcome.
        kept
            What `decided` returned for this output; None where it was not selected, or an earlier
            process decided.
        """
        ...
