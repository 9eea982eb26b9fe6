"""Enumerations: signal state, verdict, reason, policy health, undecided state."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

__all__ = [
    "REFUSED",
    "Label",
    "PolicyHealth",
    "Reason",
    "SignalState",
    "UndecidedState",
    "Verdict",
]

Label = Literal[0, 1]


class SignalState(StrEnum):
    """How much of the three signals could be computed."""

    OK = "ok"  # h1, h2 and h3, from every position
    PARTIAL = "partial"  # some of them, or from some positions only
    MISSING = "missing"  # none: no usable log-probabilities came with the output


class Verdict(StrEnum):
    """The verdict of a verifier on an output."""

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
    GROUP_EXHAUSTED = "group_exhausted"  # proposed, and the account of a group of it had no room
    BUDGET_UNAVAILABLE = "budget_unavailable"  # proposed; no connection to a shared budget
    MISSING_SIGNAL = "missing_signal"  # drawn at random, because there are no signals
    FORCED = "forced"  # the caller asked for it


REFUSED = (Reason.BUDGET_EXHAUSTED, Reason.GROUP_EXHAUSTED, Reason.BUDGET_UNAVAILABLE)
"""Proposed for verification, and not admitted."""


class PolicyHealth(StrEnum):
    """Whether what a policy learned still holds."""

    COLD = "cold"  # unknown: too few labels
    VALID = "valid"  # outputs and labels are as before
    DRIFTED = "drifted"  # no longer: for example another model, or changed scores or labels


class UndecidedState(StrEnum):
    """Why there is no decision on an observed output."""

    SKIPPED = "skipped"  # the caller set verify="never"
    EMPTY = "empty"  # the response has no output
    UNFINISHED = "unfinished"  # not read to its end, still running, or cut off
    UNREADABLE = "unreadable"  # of an unknown shape
    GATE_ERROR = "gate_error"  # an error of the gate: its log, an id, an argument
