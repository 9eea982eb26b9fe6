"""Applies the events of the other processes on a shared run to this process's gate.

Their events change the state like this gate's own, so its policy gets every candidate and every
label. Decisions are not repeated: each keeps the propensity that it was made with. Each process
runs its own tests for drift.
"""

from __future__ import annotations

from collections.abc import Sequence
from threading import RLock

from gatekeeper.budget import SharedLedger
from gatekeeper.gate.admission import Admission
from gatekeeper.gate.state import GateState
from gatekeeper.gate.transaction import Transaction
from gatekeeper.log import Decided, Event, FingerprintChanged, HealthChanged, WarmupRepeated
from gatekeeper.log.protocol import OthersEvent

__all__ = ["Following"]

PIECE = 64  # events after which the lock is released for callers
PATIENCE = 0.1  # seconds


class Following:
    """Applies events of others to a gate.

    Parameters
    ----------
    state, admission
        The gate's.
    ledger
        The state's.
    lock, transaction
        The gate's: each piece of events is one change.
    """

    def __init__(
        self,
        state: GateState,
        admission: Admission,
        ledger: SharedLedger,
        lock: RLock,
        transaction: Transaction,
    ) -> None:
        self._state, self._admission, self._ledger = state, admission, ledger
        self._lock, self._transaction = lock, transaction
        self._twice: set[tuple[int, str]] = set()  # outputs that this gate also decided on

    def __call__(self, events: Sequence[OthersEvent]) -> None:
        """Apply the events, in order."""
        for start in range(0, len(events), PIECE):
            while not self._lock.acquire(timeout=PATIENCE):
                if self._transaction.closed:  # closing the gate waits for this thread
                    return
            try:
                with self._transaction, self._ledger.following():
                    for other in events[start : start + PIECE]:
                        self._apply(self._named(other))
            finally:
                self._lock.release()

    def _named(self, other: OthersEvent) -> Event:
        """The event, under another id where this gate has decided on an output of that id."""
        event = other.event
        key = other.writer, event.id
        if isinstance(event, Decided) and event.id in self._state.ids:
            self._twice.add(key)
        return other.renamed() if key in self._twice else event

    def _apply(self, event: Event) -> None:
        state = self._state
        match event:
            case HealthChanged():
                return
            case FingerprintChanged():
                known = state.fingerprint
                if known is not None and known.fingerprint == event.fingerprint:
                    return
            case WarmupRepeated():
                if state.decider.phase == "warmup":  # this gate has done so, too
                    return
            case Decided():
                self._admission.follow(event.candidate)
        state.apply(event)
