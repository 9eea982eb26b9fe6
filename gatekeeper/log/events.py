"""The events of a gate, one class per kind, and the rows in which a log stores them.

class               stored kind    what happened
Decided             "decided"      an output was decided on; if selected, budget was reserved
ReservedAgain       "reserved"     budget was reserved again, for a verification to repeat
Settled             "outcome"      a verifier gave a verdict, and its cost was charged
Released            "released"     a verification ended without a verdict; its budget is free
Learned             "learned"      the policy was updated with the outcome
ExternalVerdict     "audited"      a verdict from outside, on an output that was not selected
FingerprintChanged  "fingerprint"  the conditions of labels from here on
HealthChanged       "calibration"  whether what the policy learned holds, from here on
WarmupRepeated      "warmup"       the warm-up begins again: it ended without a single verdict

A row is the stored kind, the output's id ("" for the last three) and an object of JSON values. The
methods `row` and `of` of a class write and read it; `stored` is the type of the data that it reads.
NaN is stored as null and an infinity as a string, so that every row is JSON for any reader.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite, nan
from typing import Any, ClassVar, NamedTuple, Self

from msgspec import Struct

from gatekeeper.drift.fingerprint import Fingerprint
from gatekeeper.log.json_values import json_number, number_of, outcome_data, outcome_of
from gatekeeper.log.stored import (
    Stored,
    StoredDecision,
    StoredFingerprint,
    StoredHealth,
    StoredOutcome,
    StoredRelease,
    StoredSettlement,
    StoredWarmup,
)
from gatekeeper.types import (
    Candidate,
    Decision,
    Generation,
    Outcome,
    PolicyHealth,
    Signals,
)
from gatekeeper.types.as_dataclass import as_dataclass
from gatekeeper.types.values import NO_POSITIONS

__all__ = [
    "Decided",
    "Event",
    "ExternalVerdict",
    "FingerprintChanged",
    "HealthChanged",
    "Learned",
    "Released",
    "ReservedAgain",
    "Row",
    "Settled",
    "WarmupRepeated",
    "candidate_of",
    "decision_of",
]


class Row(NamedTuple):
    """An event as a log stores it."""

    kind: str
    id: str  # of the output; "" for events without one
    data: Mapping[str, Any]  # JSON values


@as_dataclass
class Decided(Struct, frozen=True):
    """An output was decided on.

    The token arrays of `generation` are not stored, only their signals.
    """

    kind: ClassVar[str] = "decided"
    stored: ClassVar = StoredDecision

    generation: Generation
    candidate: Candidate
    decision: Decision
    phase: str  # of the policy when it decided
    forced: bool  # the caller asked for verification
    warmup: bool  # counted as warm-up by the ledger, also where the budget had no room
    token_coverage: float  # of the output, in [0, 1]
    accrued: int | None = None  # ticks added to the base of the cap; None: as earlier events say

    @property
    def id(self) -> str:
        return self.candidate.id

    def row(self) -> Row:
        """The event as it is stored."""
        generation, candidate, decision = self.generation, self.candidate, self.decision
        signals, score, threshold = candidate.signals, decision.score, decision.threshold
        h1, h2, h3 = signals.h1, signals.h2, signals.h3
        # `isfinite` first: nearly all are, and each output comes through here. Plain strings: the
        # garbage collector leaves out a dict of them, and follows one with members of enums.
        data: dict[str, Any] = {
            "h1": h1 if isfinite(h1) else json_number(h1),
            "h2": h2 if isfinite(h2) else json_number(h2),
            "h3": h3 if isfinite(h3) else json_number(h3),
            "signal": str(signals.state),
            "n_tokens": signals.n_tokens,
            "n_margins": signals.n_margins,
            "token_coverage": self.token_coverage,
            "k_seen": generation.k_seen,
            "cost_estimate": candidate.cost_estimate,
            "phase": self.phase,
            "forced": self.forced,
            "warmup": self.warmup,
            "verify": decision.verify,
            "reason": str(decision.reason),
            "score": score if isfinite(score) else json_number(score),
            "threshold": threshold if isfinite(threshold) else json_number(threshold),
            "stratum": decision.stratum,
            "propensity": decision.propensity,
            "version": decision.version,
            "model": generation.model,
            "finish_reason": generation.finish_reason,
            "prompt_tokens": generation.prompt_tokens,
            "output_tokens": generation.output_tokens,
            "text": generation.text,
        }
        if candidate.features:
            data["features"] = dict(candidate.features)
        if candidate.groups:
            data["groups"] = dict(candidate.groups)
        if self.accrued is not None:
            data["accrued"] = self.accrued
        return Row("decided", candidate.id, data)

    @classmethod
    def of(cls, id_: str, data: StoredDecision) -> Self:
        generation = Generation(
            id_,
            data.text,
            NO_POSITIONS,
            NO_POSITIONS,
            NO_POSITIONS,
            data.prompt_tokens,
            data.output_tokens,
            data.model,
            data.finish_reason,
            data.k_seen,
            data.features,
        )
        return cls(
            generation,
            candidate_of(id_, data),
            decision_of(data),
            data.phase,
            bool(data.forced),
            data.is_warmup,
            data.token_coverage,
            data.accrued,
        )


def candidate_of(id_: str, data: StoredDecision) -> Candidate:
    """The candidate of a `Decided` with this data."""
    h1, h2, h3 = number_of(data.h1), number_of(data.h2), number_of(data.h3)
    signals = Signals(h1, h2, h3, data.n_tokens, data.n_margins)
    return Candidate(id_, signals, data.cost_estimate, data.features, data.groups)


def decision_of(data: StoredDecision) -> Decision:
    """The decision of a `Decided` with this data."""
    return Decision(
        bool(data.verify),
        data.reason,
        number_of(data.score),
        number_of(data.threshold),
        data.stratum,
        data.propensity,
        data.version,
    )


@as_dataclass
class _OfOutput(Struct, frozen=True):
    """An event of an output, without further data."""

    kind: ClassVar[str]
    stored: ClassVar = Stored

    id: str

    def row(self) -> Row:
        """The event as it is stored."""
        return Row(self.kind, self.id, {})

    @classmethod
    def of(cls, id_: str, data: Stored) -> Self:
        return cls(id_)


@as_dataclass
class ReservedAgain(_OfOutput, frozen=True):
    """Budget was reserved again, for an output whose reservation had been released."""

    kind = "reserved"


@as_dataclass
class Settled(Struct, frozen=True):
    """A verdict on a selected output, charged to the budget. `outcome.cost` is the charge."""

    kind: ClassVar[str] = "outcome"
    stored: ClassVar = StoredSettlement

    id: str
    outcome: Outcome
    taken: float  # its actual cost, in the budget's unit; NaN if unknown

    def row(self) -> Row:
        """The event as it is stored."""
        taken = {"taken": self.taken if isfinite(self.taken) else None}
        return Row(self.kind, self.id, outcome_data(self.outcome) | taken)

    @classmethod
    def of(cls, id_: str, data: StoredSettlement) -> Self:
        return cls(id_, outcome_of(data), nan if data.taken is None else data.taken)


@as_dataclass
class Released(Struct, frozen=True):
    """A verification ended without a verdict, and its reservation was given back."""

    kind: ClassVar[str] = "released"
    stored: ClassVar = StoredRelease

    id: str
    why: str
    outcome: Outcome | None  # an `infra_error`; None if the verifier was interrupted

    def row(self) -> Row:
        """The event as it is stored."""
        outcome = None if self.outcome is None else outcome_data(self.outcome)
        return Row(self.kind, self.id, {"why": self.why, "outcome": outcome})

    @classmethod
    def of(cls, id_: str, data: StoredRelease) -> Self:
        return cls(id_, data.why, None if data.outcome is None else outcome_of(data.outcome))


@as_dataclass
class Learned(_OfOutput, frozen=True):
    """The policy was updated with the output's outcome."""

    kind = "learned"


@as_dataclass
class ExternalVerdict(Struct, frozen=True):
    """A verdict from outside on an output that was not selected: nothing is charged or learned."""

    kind: ClassVar[str] = "audited"
    stored: ClassVar = StoredOutcome

    id: str
    outcome: Outcome

    def row(self) -> Row:
        """The event as it is stored."""
        return Row(self.kind, self.id, outcome_data(self.outcome))

    @classmethod
    def of(cls, id_: str, data: StoredOutcome) -> Self:
        return cls(id_, outcome_of(data))


@as_dataclass
class FingerprintChanged(Struct, frozen=True):
    """The conditions of labels from here on: models, prompt template, verifier, signals."""

    kind: ClassVar[str] = "fingerprint"
    stored: ClassVar = StoredFingerprint
    id: ClassVar[str] = ""

    fingerprint: Fingerprint
    on_drift: str  # the gate's reaction: "relearn" or "report"
    why: str  # the change, in words, if that is drift; else ""
    tests: int = 1  # number of the definition of the tests for drift, from here on

    def row(self) -> Row:
        """The event as it is stored."""
        more = {"on_drift": self.on_drift, "why": self.why, "tests": self.tests}
        return Row(self.kind, self.id, self.fingerprint.data() | more)

    @classmethod
    def of(cls, id_: str, data: StoredFingerprint) -> Self:
        fingerprint = Fingerprint(
            models=tuple(data.models),
            prompt_template=data.prompt_template,
            verifier=data.verifier,
            signals=data.signals,
        )
        return cls(fingerprint, data.on_drift, data.why, data.tests)


@as_dataclass
class HealthChanged(Struct, frozen=True):
    """Whether what the policy learned holds, from here on."""

    kind: ClassVar[str] = "calibration"
    stored: ClassVar = StoredHealth
    id: ClassVar[str] = ""

    health: PolicyHealth
    why: str  # the reason of the drift, in words; "" without drift

    def row(self) -> Row:
        """The event as it is stored."""
        return Row(self.kind, self.id, {"status": self.health, "why": self.why})

    @classmethod
    def of(cls, id_: str, data: StoredHealth) -> Self:
        return cls(data.status, data.why)


@as_dataclass
class WarmupRepeated(Struct, frozen=True):
    """The policy's warm-up begins again, because the last one ended without a single verdict."""

    kind: ClassVar[str] = "warmup"
    stored: ClassVar = StoredWarmup
    id: ClassVar[str] = ""

    why: str  # the last verification's failure, in words

    def row(self) -> Row:
        """The event as it is stored."""
        return Row(self.kind, self.id, {"why": self.why})

    @classmethod
    def of(cls, id_: str, data: StoredWarmup) -> Self:
        return cls(data.why)


Event = (
    Decided
    | ReservedAgain
    | Settled
    | Released
    | Learned
    | ExternalVerdict
    | FingerprintChanged
    | HealthChanged
    | WarmupRepeated
)
