"""The status of a gate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from gatekeeper.notebook import as_html
from gatekeeper.types.shared_status import SharedStatus
from gatekeeper.types.states import PolicyHealth, Reason, Verdict
from gatekeeper.wording import cost_text

__all__ = ["GateStatus", "GroupAccount"]


@dataclass(frozen=True, slots=True)
class GroupAccount:
    """The account of a group, in the budget's unit: `spent + held <= cap`, the warm-up included."""

    cap: float
    spent: float
    held: float


@dataclass(frozen=True, slots=True)
class GateStatus:
    """Counts, account and policy health of a gate. Costs are in the budget's unit.

    Attributes
    ----------
    phase
        The phase for the next candidate: the policy's, or "relearning".
    seen
        Candidates decided on.
    verified, errors_found
        Verdicts charged after the warm-up, and the number of wrong outputs among them.
    warmup_seen, warmup_verified, warmup_errors
        The same for the warm-up.
    budget_exhausted
        Candidates proposed for verification for which the budget had no room; those whose group
        had none are in `decisions`.
    missing_signal
        Candidates without any signal.
    external_verdicts
        Verdicts from outside on outputs that were not selected.
    unresolved
        Selected outputs without a verdict: under way, awaiting a report, or the verifier could not
        tell.
    verifying
        Outputs that are being verified in this process.
    reserved
        Reservations held, the warm-up included.
    cap
        What may be spent and held now, after the warm-up.
    spent, held
        Charged, and reserved, after the warm-up: `spent + held <= cap`.
    warmup_spent, warmup_held
        The same for the warm-up, which has a separate account.
    groups
        The accounts of the groups that have a cap, by name, such as "tenant=a".
    overrun
        Costs of verifications beyond their reservations.
    pace
        `spent + held` as a share of what the budget allows for the outputs so far; None where it
        has no rate, or nothing is allowed yet.
    shift
        Evidence that signals, cost estimates and lengths are not as in earlier outputs: an e-value,
        1 at the start. While outputs do not change it reaches x with a probability of at most 1/x.
    health
        Whether what the policy learned still holds.
    drift
        Why it last did not hold, in words; "" if it never drifted.
    notes
        Sentences on what kept the gate from choosing or learning: outputs without
        log-probabilities, verifications without a verdict. Empty if nothing did.
    decisions
        Candidates by the reason of their decision; every reason is named.
    verdicts
        Verifications of selected candidates that have ended, by verdict; every verdict is named.
        One that is repeated after an `infra_error` counts twice.
    shared
        The processes that share the run; None where this gate has it alone.
    durations
        How long this process's verifications with a verdict took: (seconds, how many took at most
        so long), with ascending seconds, of which the last are infinite.
    seconds
        What those took together.
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
    pace: float | None
    shift: float
    health: PolicyHealth
    drift: str
    notes: tuple[str, ...] = ()
    groups: Mapping[str, GroupAccount] = field(default_factory=dict, hash=False)
    decisions: Mapping[Reason, int] = field(default_factory=dict, hash=False)
    verdicts: Mapping[Verdict, int] = field(default_factory=dict, hash=False)
    durations: tuple[tuple[float, int], ...] = field(default=(), compare=False)
    shared: SharedStatus | None = field(default=None, compare=False)
    seconds: float = field(default=0.0, compare=False)

    def _repr_html_(self) -> str:
        rows = [
            ("phase", self.phase),
            ("seen", self.seen),
            ("warm-up: verified, wrong", f"{self.warmup_verified}, {self.warmup_errors}"),
            ("then: verified, wrong", f"{self.verified}, {self.errors_found}"),
            ("spent of what is allowed", f"{cost_text(self.spent)} of {cost_text(self.cap)}"),
            *(
                (f"spent of {name}", f"{cost_text(group.spent)} of {cost_text(group.cap)}")
                for name, group in self.groups.items()
            ),
            ("reserved", self.reserved),
            ("selected, no verdict", self.unresolved),
            ("without log-probabilities", self.missing_signal),
            ("policy health", f"{self.health}{'; last drift: ' if self.drift else ''}{self.drift}"),
        ]
        return as_html("gate", rows, notes=self.notes)
