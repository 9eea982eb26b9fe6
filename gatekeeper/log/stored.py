"""The data of events as a log stores them: one type per kind, which parsing checks."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from gatekeeper.types import PolicyHealth, Reason, Verdict
from gatekeeper.types.values import MOST_TOKENS

__all__ = [
    "Stored",
    "StoredDecision",
    "StoredFingerprint",
    "StoredHealth",
    "StoredOutcome",
    "StoredRelease",
    "StoredSettlement",
    "StoredWarmup",
]

# For Python a bool is an int and an int a float, and so for the policies that gave these numbers.
# Tables of outputs have 64 bits for each.
Whole = bool | Annotated[int, msgspec.Meta(ge=-(1 << 63), le=(1 << 63) - 1)]
Number = Whole | float
Infinite = Literal["inf", "-inf"]
Count = Annotated[int, msgspec.Meta(ge=0, le=MOST_TOKENS)]
Ticks = Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]


class Stored(msgspec.Struct, gc=False):
    """The data of an event, of some kinds without a field. Unknown fields are ignored."""


class StoredDecision(Stored, gc=False):
    h1: Number | Infinite | None
    h2: Number | Infinite | None
    h3: Number | Infinite | None
    n_tokens: Whole
    n_margins: Whole
    token_coverage: Number
    k_seen: Count
    cost_estimate: Number
    phase: str
    forced: Whole
    verify: Whole
    reason: Reason
    score: Number | Infinite | None
    threshold: Number | Infinite | None
    stratum: Whole | None
    propensity: Number
    version: Whole
    model: str | None
    finish_reason: str | None
    prompt_tokens: Count | None
    output_tokens: Count | None
    text: str
    warmup: Whole | None = None  # early logs do not store it
    features: dict[str, Number] = {}
    groups: dict[str, str] = {}
    accrued: Ticks | None = None

    @property
    def is_warmup(self) -> bool:
        """Whether it counts as warm-up in the account."""
        if self.warmup is not None:
            return bool(self.warmup)
        refused = self.reason is Reason.BUDGET_EXHAUSTED
        return self.reason is Reason.WARMUP or (refused and self.phase == "warmup")


class StoredOutcome(Stored):
    verdict: Verdict
    cost: Number | None
    seconds: Number
    detail: str
    meta: dict[Any, Any]
    value: Number | None = None


class StoredSettlement(StoredOutcome, kw_only=True):
    taken: Number | None


class StoredRelease(Stored):
    why: str
    outcome: StoredOutcome | None


class StoredFingerprint(Stored):
    models: list[str]
    prompt_template: str | None
    verifier: dict[str, Any] | None
    signals: Whole
    on_drift: str
    why: str
    tests: Whole = 1  # early logs do not store it


class StoredHealth(Stored):
    status: PolicyHealth
    why: str


class StoredWarmup(Stored):
    why: str
