"""The data that flows through gatekeeper: frozen, slotted, in one file.

Glossary
--------
audit rate      verified ÷ seen
hit rate        errors found ÷ verified (precision)
recall          errors found ÷ all errors
coverage        accepted without verification ÷ seen
residual risk   error rate among the outputs accepted without verification
utilisation     spent ÷ budget
propensity      probability with which this decision was to verify
yield           errors found per unit of spent cost

Units: log-probabilities are natural logarithms (nats); margins and signals are nats unless said
otherwise; costs are in the budget's unit; `seconds` are wall-clock seconds.
An error label is 1 for a wrong output, 0 for a right one, None where nobody could tell.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from numbers import Real
from operator import index
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from gatekeeper.errors import BadInputError

__all__ = [
    "MASKED",
    "Candidate",
    "Decision",
    "FloatArray",
    "GateResult",
    "GateStatus",
    "Generation",
    "Label",
    "Outcome",
    "PolicyHealth",
    "Reason",
    "Record",
    "SignalState",
    "Signals",
    "Undecided",
    "UndecidedState",
    "Verdict",
]

FloatArray = NDArray[np.float64]
_FLOAT64 = np.dtype(np.float64)
MASKED = -9999.0  # what HTTP servers send for a log-probability of -inf
Label = Literal[0, 1]


class SignalState(StrEnum):
    """How much of the three signals could be computed."""

    OK = "ok"  # h1, h2 and h3, from every position
    PARTIAL = "partial"  # some of them, or from some positions only
    MISSING = "missing"  # none: no usable log-probabilities came with the output


class Verdict(StrEnum):
    """What a verifier found out about an output."""

    PASSED = "passed"
    FAILED = "failed"
    TIMEOUT = "timeout"  # the output ran too long: wrong
    RESOURCE_EXCEEDED = "resource_exceeded"  # memory, processes, output, disk: wrong
    NO_ANSWER = "no_answer"  # nothing to check in the output: wrong
    INFRA_ERROR = "infra_error"  # the verifier could not tell: no label

    @property
    def error(self) -> Label | None:
        """1 wrong, 0 right, None unknown."""
        if self is Verdict.PASSED:
            return 0
        return None if self is Verdict.INFRA_ERROR else 1


class Reason(StrEnum):
    """Why a candidate was verified, or was not."""

    WARMUP = "warmup"  # the first T0 candidates: all are verified
    POLICY = "policy"  # score against threshold
    EXPLORE = "explore"  # drawn at random to keep learning
    CALIBRATION = "calibration"  # drawn at random to estimate what a policy needs
    BUDGET_EXHAUSTED = "budget_exhausted"  # proposed, and the budget had no room
    MISSING_SIGNAL = "missing_signal"  # drawn at random, there being nothing to score
    FORCED = "forced"  # the caller asked for it


class PolicyHealth(StrEnum):
    """Whether what a policy learned still describes the outputs that come."""

    COLD = "cold"  # unknown: too few labels
    VALID = "valid"  # labels are as predicted
    DRIFTED = "drifted"  # no longer: another model, say, or labels that contradict the predictions


@dataclass(frozen=True, slots=True, eq=False)
class Generation:
    """One model output with what is known of its token probabilities.

    Attributes
    ----------
    id, text
        Of the output.
    logprob, top1, top2
        Shape (L,), natural log, float64, NaN where the provider gave none: the chosen token's
        log-probability and the largest and second largest at the position, whether or not the
        chosen token is one of them. L = 0 means no log-probabilities at all.
    prompt_tokens, output_tokens
        As the provider counted them.
    model, finish_reason
        As the provider named them.
    k_seen
        The largest number of alternatives seen at a position.
    """

    id: str
    text: str
    logprob: FloatArray
    top1: FloatArray
    top2: FloatArray
    prompt_tokens: int | None = None
    output_tokens: int | None = None
    model: str | None = None
    finish_reason: str | None = None
    k_seen: int = 0

    def __post_init__(self) -> None:
        """Raises BadInputError for what is no number, and for what the log could not keep."""
        logprob, top1, top2 = self.logprob, self.top1, self.top2
        if not (
            type(logprob) is type(top1) is type(top2) is np.ndarray
            and logprob.dtype is top1.dtype is top2.dtype is _FLOAT64
        ):  # nearly always they are, and each output comes through here
            for name in ("logprob", "top1", "top2"):
                object.__setattr__(self, name, _floats(name, getattr(self, name)))
        for name, value in (("id", self.id), ("text", self.text)):
            if not isinstance(value, str):
                raise BadInputError(f"{name}={value!r:.80}: a string is needed")
        for name, text in (("model", self.model), ("finish_reason", self.finish_reason)):
            if not (text is None or isinstance(text, str)):
                raise BadInputError(f"{name}={text!r:.80}: a string is needed")
        for name, count in (
            ("prompt_tokens", self.prompt_tokens),
            ("output_tokens", self.output_tokens),
        ):
            if not (count is None or type(count) is int):
                object.__setattr__(self, name, _whole(name, count))
        if type(self.k_seen) is not int:
            object.__setattr__(self, "k_seen", _whole("k_seen", self.k_seen))

    @property
    def token_coverage(self) -> float:
        """Share of the output's positions that have a margin, in [0, 1]; 0 for no output."""
        n = max(self.logprob.size, self.output_tokens or 0)
        top1, top2 = self.top1, self.top2
        if not top1.size:
            return 0.0
        # argmin finds a NaN first, which fails the comparison. Nearly every output is complete.
        if n and top1.item(top1.argmin()) > MASKED and top2.item(top2.argmin()) > MASKED:
            return top1.size / n
        has_both = ~(np.isnan(top1) | np.isnan(top2))
        has_margin = has_both & (np.fmax(top1, top2) > MASKED)
        return int(has_margin.sum()) / n if n else 0.0


@dataclass(frozen=True, slots=True)
class Signals:
    """The paper's three uncertainty signals (Section "Unified Decision Framework").

    Larger means more uncertain. A signal that cannot be computed is NaN, never a made-up value.
    """

    h1: float  # mean negative log-likelihood, nats per token, >= 0
    h2: float  # minus the smallest top-1/top-2 margin, nats, <= 0
    h3: float  # mean of exp(-clip(margin, -5, inf)), in (0, 1] for a margin by value
    n_tokens: int = 0  # L, positions
    n_margins: int = 0  # positions that have a margin

    @property
    def state(self) -> SignalState:
        present = (self.h1 == self.h1) + (self.h2 == self.h2) + (self.h3 == self.h3)
        if present == 3 and self.n_margins == self.n_tokens:
            return SignalState.OK
        return SignalState.PARTIAL if present else SignalState.MISSING


@dataclass(frozen=True, slots=True)
class Candidate:
    """What a policy may know before verification."""

    id: str
    signals: Signals
    cost_estimate: float  # ĉ > 0, ex-ante proxy; any unit, the same for the whole stream


@dataclass(frozen=True, slots=True)
class Decision:
    """Verify or not, and why."""

    verify: bool
    reason: Reason
    score: float = float("nan")  # s in [0, 1]; NaN while warming up or without a signal
    threshold: float = float("nan")  # what score / ĉ had to exceed; NaN where there was none
    stratum: int | None = None
    propensity: float = 1.0  # probability with which this decision was to verify, in [0, 1]
    version: int = 0  # labels the policy had learned from when it decided


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a verifier found."""

    verdict: Verdict
    cost: float | None = None  # true cost in the budget's unit; None: the gate works it out
    seconds: float = 0.0
    detail: str = ""
    meta: Mapping[str, Any] = field(default_factory=dict)  # JSON values only

    def __post_init__(self) -> None:
        """Raises BadInputError for what could not be charged or logged.

        Not for a cost that makes no sense (NaN, negative): it is known only when the money is
        spent, so the gate keeps the verdict and charges the whole reservation.
        """
        if not isinstance(self.verdict, Verdict):
            raise BadInputError(f"verdict={self.verdict!r:.80}: one of {list(Verdict)} is needed")
        if not isinstance(self.detail, str):
            raise BadInputError(f"detail={self.detail!r:.80}: a string is needed")
        seconds = _number("seconds", self.seconds)
        if not 0.0 <= seconds < float("inf"):
            raise BadInputError(f"seconds={self.seconds!r}: must be finite and at least 0")
        object.__setattr__(self, "seconds", seconds)
        if self.cost is not None:
            object.__setattr__(self, "cost", _number("cost", self.cost))
        try:
            json.dumps(dict(self.meta), allow_nan=False)
        except (TypeError, ValueError) as e:
            raise BadInputError(
                f"meta={self.meta!r:.80}: only JSON values can be kept: {e}"
            ) from None

    @property
    def error(self) -> Label | None:
        """Label y: 1 wrong, 0 right, None where the verifier could not tell."""
        return self.verdict.error


@dataclass(frozen=True, slots=True)
class Record:
    """One candidate of a log or a replay file, with what is known in hindsight."""

    id: str
    signals: Signals
    cost_estimate: float  # ĉ > 0
    cost: float  # c > 0
    error: Label | None  # y; None where nobody verified it
    stratum: int | None = None
    group: str | None = None
    benefit: Label | None = None  # routing: 1 where the costlier model is right, this one wrong
    propensity: float | None = None  # probability in [0, 1] with which it was to be verified
    verified: bool | None = None
    meta: Mapping[str, Any] = field(default_factory=dict)  # whatever else the file had


@dataclass(frozen=True, slots=True)
class GateResult:
    """What a gate returns about an output. `outcome` is None when nothing was verified."""

    id: str
    signals: Signals
    decision: Decision
    outcome: Outcome | None = None

    @property
    def verified(self) -> bool:
        """True where a verdict on right or wrong was reached."""
        return self.outcome is not None and self.outcome.error is not None


class UndecidedState(StrEnum):
    """Why the gate did not decide on an output that it observed."""

    SKIPPED = "skipped"  # the caller said verify="never"
    EMPTY = "empty"  # the response has no output
    UNFINISHED = "unfinished"  # not read to its end, still under way, or cut off before its end
    UNREADABLE = "unreadable"  # of an unknown shape
    GATE_ERROR = "gate_error"  # an error of the gate: its log, an id, an argument


@dataclass(frozen=True, slots=True)
class Undecided:
    """In place of a GateResult, for an output on which no decision was taken: as if never seen.

    `error` names in words what was wrong; "" where nothing was.
    """

    id: str
    state: UndecidedState
    error: str = ""

    @property
    def decision(self) -> None:
        return None

    @property
    def outcome(self) -> None:
        return None

    @property
    def verified(self) -> bool:
        return False


@dataclass(frozen=True, slots=True)
class GateStatus:
    """Counts, account and policy health of a gate. Costs are in the budget's unit.

    Attributes
    ----------
    phase
        What the next candidate meets: the policy's phase, or "relearning".
    seen
        Candidates decided on.
    verified, errors_found
        Verdicts that were charged after the warm-up, and those that were "wrong".
    warmup_seen, warmup_verified, warmup_errors
        The same for the warm-up.
    budget_exhausted
        Candidates proposed for verification for which the budget had no room.
    missing_signal
        Candidates without any signal.
    external_verdicts
        Verdicts from outside on outputs that were not selected.
    unresolved
        Selected outputs without a verdict: under way, awaiting a report, or the verifier could not
        tell.
    verifying
        Outputs that a verifier has in this process.
    reserved
        Reservations held, the warm-up included.
    cap
        What may be spent and held after the warm-up, as of now.
    spent, held
        Charged, and reserved, after the warm-up: `spent + held <= cap`.
    warmup_spent, warmup_held
        The same for the warm-up, an account of its own.
    overrun
        What verifications took beyond their reservations.
    health
        Whether what the policy learned still holds.
    drift
        In words, why it last did not; "" if it never drifted.
    """

    phase: str
    seen: int
    verified: int
    errors_found: int
    warmup_seen: int
    warmup_verified: int
    warmup_errors: int
    budget_exhausted: int
    missing_signal: int
    external_verdicts: int
    unresolved: int
    verifying: int
    reserved: int
    cap: float
    spent: float
    held: float
    warmup_spent: float
    warmup_held: float
    overrun: float
    health: PolicyHealth
    drift: str


def _number(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, Real):
        raise BadInputError(f"{name}={value!r:.80}: a number is needed")
    return float(value)


def _floats(name: str, value: Any) -> FloatArray:
    try:
        return np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError) as e:
        raise BadInputError(f"{name}={value!r:.80}: an array of numbers is needed: {e}") from None


def _whole(name: str, value: Any) -> int:
    try:
        return index(value)
    except TypeError:
        raise BadInputError(f"{name}={value!r:.80}: a whole number is needed") from None
