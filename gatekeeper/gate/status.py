"""A gate's status, from its state."""

from __future__ import annotations

from gatekeeper.gate.notices import Shortfall
from gatekeeper.gate.state import GateState
from gatekeeper.stats.histogram import Histogram
from gatekeeper.types import GateStatus, SharedStatus

__all__ = ["DURATION_BOUNDS", "status_of"]

DURATION_BOUNDS = (0.01, 0.05, 0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0)  # seconds


def status_of(
    state: GateState, *, verifying: int, durations: Histogram, shared: SharedStatus | None
) -> GateStatus:
    """The status of a gate. Call it under the gate's lock.

    Parameters
    ----------
    state
        The gate's.
    verifying
        Number of outputs that are being verified in this process.
    durations
        Durations of its verifications in this process.
    shared
        State of the processes on its run; None where the run is not shared.
    """
    ledger = state.ledger
    allowed = ledger.allowed
    return GateStatus(
        phase=state.decider.phase,
        seen=ledger.seen,
        verified=state.verified,
        errors_found=state.errors_found,
        warmup_seen=state.warmup_seen,
        warmup_verified=state.warmup_verified,
        warmup_errors=state.warmup_errors,
        budget_exhausted=state.budget_exhausted,
        missing_signal=state.missing_signal,
        external_verdicts=state.external_verdicts,
        unresolved=state.unresolved,
        verifying=verifying,
        reserved=ledger.reserved,
        cap=ledger.cap,
        spent=ledger.spent,
        held=ledger.held,
        warmup_spent=ledger.warmup_spent,
        warmup_held=ledger.warmup_held,
        groups=ledger.groups.status(),
        overrun=ledger.overrun,
        pace=(ledger.spent + ledger.held) / allowed if allowed else None,
        shift=state.guard.shift,
        health=state.health,
        drift=state.drift,
        notes=Shortfall.of_state(state).notes(),
        decisions=dict(state.decisions),
        verdicts=dict(state.verdicts),
        durations=durations.cumulative(),
        seconds=durations.total,
        shared=shared,
    )
