"""The fold over events: one transition per kind of event, for everything that reads a log.

A gate, live or on resume, applies its events to a `LogState` that also has its policy (see
`gatekeeper.gate.state`); a look-up applies the events of one output to an `Output`; reports and
records apply a whole log to a `LogState`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, Self, assert_never

from gatekeeper.budget import Ledger
from gatekeeper.log.decoding import EventError
from gatekeeper.log.events import (
    Decided,
    Event,
    ExternalVerdict,
    FingerprintChanged,
    HealthChanged,
    Learned,
    Released,
    ReservedAgain,
    Settled,
    WarmupRepeated,
)
from gatekeeper.types import (
    Candidate,
    Decision,
    GateResult,
    Outcome,
    PolicyHealth,
    Reason,
    SignalState,
    Verdict,
)

__all__ = ["UNDECIDED", "LogState", "Output", "decision_in", "misplaced"]

UNDECIDED = "no decision on this output comes before it"
_NOT_RESERVED = "no budget is reserved for this output at this point"
_NOT_RELEASED = "no reservation of this output has been released before it"


@dataclass(slots=True, eq=False)
class Output:
    """One output, after its events so far."""

    candidate: Candidate
    decision: Decision
    phase: str  # of the policy when it decided
    reserved: bool  # its budget is reserved
    outcome: Outcome | None = None  # with a label: charged, or from outside
    unavailable: Outcome | None = None  # why the verifier could not tell, the last time
    external: bool = False  # the outcome is from outside

    @classmethod
    def of(cls, events: Iterable[Event]) -> Self:
        """The output of these events, of which the first is `Decided`.

        Raises
        ------
        EventError
            For others.
        """
        first, *later = events
        decided = decision_in(first)
        output = cls(
            decided.candidate, decided.decision, decided.phase, reserved=decided.decision.verify
        )
        for event in later:
            output.apply(event)
        return output

    def apply(self, event: Event) -> None:
        match event:
            case Settled():
                self.outcome, self.reserved = event.outcome, False
            case Released():
                self.unavailable, self.reserved = event.outcome or self.unavailable, False
            case ReservedAgain():
                self.reserved = True
            case ExternalVerdict():
                self.outcome, self.external = event.outcome, True

    def result(self) -> GateResult:
        outcome = self.outcome or self.unavailable
        return GateResult(self.candidate.id, self.candidate.signals, self.decision, outcome)


class LogState:
    """Outputs, account, counts and policy health after the events applied so far.

    Parameters
    ----------
    ledger
        A fresh one, of the budget that the log's gate had.

    Attributes
    ----------
    outputs
        By id, in the order of deciding.
    fingerprint
        The last one; None before there is any. Early logs have none.
    health, drift
        Whether what the policy learned holds, and the reason of the last drift.
    decisions, verdicts
        As in `GateStatus`.
    """

    keeps_all = True  # outputs that were not selected, too
    COUNTS: ClassVar = (
        "verified",
        "errors_found",
        "warmup_seen",
        "warmup_verified",
        "warmup_errors",
        "budget_exhausted",
        "missing_signal",
        "external_verdicts",
        "unscored",
        "warmups",
    )

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.outputs: dict[str, Output] = {}
        self.fingerprint: FingerprintChanged | None = None
        self.health, self.drift = PolicyHealth.COLD, ""
        self.verified = self.errors_found = 0  # after the warm-up
        self.warmup_seen = self.warmup_verified = self.warmup_errors = 0
        self.budget_exhausted = self.missing_signal = self.external_verdicts = 0
        self.unscored = 0  # after the warm-up, with no signal to rank it by
        self.warmups = 1  # including repeated ones
        self.decisions = dict.fromkeys(Reason, 0)
        self.verdicts = dict.fromkeys(Verdict, 0)

    def apply(self, event: Event) -> None:
        """Change the state by what happened.

        Raises
        ------
        EventError
            For an event that cannot follow from those before, as in a log that was edited or lacks
            rows. Nothing has changed then.
        """
        match event:
            case Decided():
                self._decided(event)
            case Settled():
                if event.id not in self.ledger.holds:
                    raise misplaced(event, _NOT_RESERVED)
                self.ledger.settle(event.id, event.taken)
                output = self.outputs[event.id]
                output.apply(event)
                self.verdicts[event.outcome.verdict] += 1
                if output.decision.reason is Reason.WARMUP:
                    self.warmup_verified += 1
                    self.warmup_errors += event.outcome.error == 1
                else:
                    self.verified += 1
                    self.errors_found += event.outcome.error == 1
            case Learned():
                pass
            case Released():
                if event.id not in self.ledger.holds:
                    raise misplaced(event, _NOT_RESERVED)
                self.ledger.release(event.id)
                if event.outcome is not None:
                    self.verdicts[event.outcome.verdict] += 1
                self.outputs[event.id].apply(event)
            case ReservedAgain():
                if event.id not in self.ledger.released:
                    raise misplaced(event, _NOT_RELEASED)
                self.ledger.reserve_again(event.id)
                self.outputs[event.id].apply(event)
            case ExternalVerdict():
                if self.has_decided(event.id) is False:
                    raise misplaced(event, UNDECIDED)
                self.external_verdicts += 1
                if event.id in self.outputs:
                    self.outputs[event.id].apply(event)
            case FingerprintChanged():
                self.fingerprint = event
            case HealthChanged():
                self.health = event.health
                if event.health is PolicyHealth.DRIFTED:
                    self.drift = event.why
            case WarmupRepeated():
                self.warmups += 1
            case _:
                assert_never(event)

    def has_decided(self, id_: str) -> bool | None:
        """Whether the output has been decided on; None: it is not open, and no others are kept."""
        return True if id_ in self.outputs else (False if self.keeps_all else None)

    def _check_undecided(self, id_: str) -> None:
        if self.has_decided(id_):
            raise EventError(f"event 'decided' of id={id_!r:.80} decides on it again")

    def _decided(self, event: Decided) -> None:
        candidate, decision, warmup = event.candidate, event.decision, event.warmup
        self._check_undecided(candidate.id)
        hold = self.ledger.see(
            candidate.cost_estimate, warmup=warmup, groups=candidate.groups, accrued=event.accrued
        )
        if decision.verify:
            self.ledger.reserve(candidate.id, hold)
        if decision.verify or self.keeps_all:
            self.outputs[candidate.id] = Output(
                candidate, decision, event.phase, reserved=decision.verify
            )
        signals = candidate.signals  # nearly all have h1, and `state` takes longer
        missing = signals.h1 != signals.h1 and signals.state is SignalState.MISSING
        self.decisions[decision.reason] += 1
        self.warmup_seen += warmup
        self.budget_exhausted += decision.reason is Reason.BUDGET_EXHAUSTED
        self.missing_signal += missing
        if not warmup and decision.score != decision.score:
            self.unscored += missing or decision.reason is Reason.MISSING_SIGNAL


def decision_in(first: Event) -> Decided:
    """The first event of an output, which is its decision.

    Raises
    ------
    EventError
        For another event.
    """
    if not isinstance(first, Decided):
        raise misplaced(first, UNDECIDED)
    return first


def misplaced(event: Event, why: str) -> EventError:
    """The error for an event that cannot follow from those before it."""
    return EventError(
        f"event {event.kind!r} of id={event.id!r:.80} cannot be applied: {why}; rows were "
        "removed, added or changed after the gate wrote them"
    )
