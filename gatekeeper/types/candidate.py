"""The input and the output of a policy: candidate and decision."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from gatekeeper.types.as_dataclass import as_dataclass
from gatekeeper.types.states import Reason, SignalState

__all__ = ["Candidate", "Decision", "Signals"]


@as_dataclass
class Signals(Struct, frozen=True):
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
        has1, has2, has3 = self.h1 == self.h1, self.h2 == self.h2, self.h3 == self.h3
        if has1 and has2 and has3 and self.n_margins == self.n_tokens:
            return SignalState.OK
        return SignalState.PARTIAL if has1 or has2 or has3 else SignalState.MISSING


@as_dataclass
class Candidate(Struct, frozen=True):
    """The part of an output that a policy gets before verification."""

    id: str
    signals: Signals
    cost_estimate: float  # ĉ > 0, ex-ante proxy; any unit, the same for the whole stream
    # Of the generation: finite numbers by name, in the order of the names.
    features: Mapping[str, float] = {}
    # Groups for which the budget has caps: {"tenant": "a"}.
    groups: Mapping[str, str] = {}

    def __hash__(self) -> int:  # without the dicts
        return hash((self.id, self.signals, self.cost_estimate))


@as_dataclass
class Decision(Struct, frozen=True):
    """Verify or not, and why."""

    verify: bool
    reason: Reason
    score: float = float("nan")  # s in [0, 1]; NaN while warming up or without a signal
    threshold: float = float("nan")  # what score / ĉ had to exceed; NaN where there was none
    stratum: int | None = None
    propensity: float = 1.0  # probability with which this decision was to verify, in [0, 1]
    version: int = 0  # labels that the policy had learned when it decided
