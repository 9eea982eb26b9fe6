"""The state of a gate: account, open outputs, policy, and the policy's health.

An event changes the state in one way, whether it comes from a live call or from the log of an
earlier process.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, get_args

from msgspec import convert

from gatekeeper.budget import Ledger
from gatekeeper.drift.fingerprint import Fingerprint
from gatekeeper.drift.guard import RELEARNING, TESTS, DriftGuard
from gatekeeper.log.decoding import decode
from gatekeeper.log.encoding import encoded
from gatekeeper.log.events import (
    Decided,
    Event,
    FingerprintChanged,
    HealthChanged,
    Learned,
    Released,
    WarmupRepeated,
)
from gatekeeper.log.fold import LogState, Output, decision_in, misplaced
from gatekeeper.log.json_values import outcome_data, outcome_of
from gatekeeper.log.stored import StoredFingerprint, StoredOutcome
from gatekeeper.protocols import ObservingPolicy, Policy, ReleasingPolicy
from gatekeeper.types import Generation, PolicyHealth, Reason, Verdict

__all__ = ["ON_DRIFT", "GateState", "OnDrift"]

OnDrift = Literal["relearn", "report"]
ON_DRIFT: tuple[OnDrift, ...] = get_args(OnDrift)

# In all, where none gives a verdict. After that the verifier is assumed to be broken: a longer
# warm-up would only send it every output.
WARMUPS = 3


class GateState(LogState):
    """The state of a gate after the events applied so far.

    `outputs` has only those that are open: selected, and not learned from.

    Parameters
    ----------
    ledger
        A fresh one, of the gate's budget.
    policy
        The caller's, fresh. It decides without the guard in logs without a fingerprint.
    guard
        Around the same policy. It decides from the first fingerprint on.
    on_drift
        What drift of the fingerprint does: "relearn" drops what was learned, "report" keeps it.
    model
        Model of outputs that do not name theirs; None: unknown.

    Attributes
    ----------
    decider
        What decides on the next candidate: the policy or its guard.
    ids
        Ids of all outputs that were decided on.
    decided
        The decisions on the open outputs, with the outputs as a verifier needs them.
    """

    keeps_all = False

    def __init__(
        self,
        ledger: Ledger,
        policy: Policy,
        guard: DriftGuard,
        *,
        on_drift: OnDrift,
        model: str | None = None,
    ) -> None:
        super().__init__(ledger)
        self.guard = guard
        guard.behind = ledger.behind
        self.decider: Policy = policy
        self._observer = policy if isinstance(policy, ObservingPolicy) else None
        self._releaser = policy if isinstance(policy, ReleasingPolicy) else None
        self._on_drift, self._model = on_drift, model
        self._drift_ignored = False  # the fingerprint changed, without a reaction
        self.ids: set[str] = set()
        self.decided: dict[str, Decided] = {}

    def apply(self, event: Event) -> None:
        """Change the state by what happened, the policy included."""
        match event:
            case Decided():
                self._decided(event)
                candidate, decision = event.candidate, event.decision
                if self._observer is not None:
                    self._observer.observe(candidate, decision)
                self.ids.add(candidate.id)
                if decision.verify:
                    self.decided[candidate.id] = event
            case Learned():
                output = self.outputs.get(event.id)
                if output is None or output.outcome is None or output.reserved:
                    raise misplaced(event, "no verdict waits to be learned from")
                self.decider.update(output.candidate, output.decision, output.outcome)
                del self.outputs[event.id], self.decided[event.id]
            case Released():
                super().apply(event)
                if self._releaser is not None:
                    output = self.outputs[event.id]
                    self._releaser.release(output.candidate, output.decision)
            case FingerprintChanged():
                if self.fingerprint is None:
                    self._use_guard()
                super().apply(event)
                self.guard.testing = event.tests == TESTS
                if event.why and self._on_drift == "relearn":
                    self.guard.relearn()
                elif event.why:
                    self._drift_ignored = True
            case WarmupRepeated():
                self.guard.restart()
                super().apply(event)
            case HealthChanged():
                super().apply(event)
                if event.health is PolicyHealth.DRIFTED and not self.guard.testing:
                    self.guard.drift(event.why)
            case _:
                super().apply(event)

    def has_decided(self, id_: str) -> bool:
        return id_ in self.ids

    def _use_guard(self) -> None:
        self.decider = self._observer = self._releaser = self.guard

    def advance(self, event: Event) -> list[Event]:
        """Apply an event of a live call, and what follows from it: a change of policy health, or
        a warm-up that has to be repeated.

        Returns
        -------
        list of Event
            What is to be logged, in order.
        """
        self.apply(event)
        if isinstance(event, Released) and self._is_warmup_without_verdict():
            repeated = WarmupRepeated(event.why)
            self.apply(repeated)
            return [event, repeated]
        health = PolicyHealth.DRIFTED if self._drift_ignored else self.guard.health
        why = event.why if isinstance(event, FingerprintChanged) else ""
        if health is self.health and not why:
            return [event]
        drifted = health is PolicyHealth.DRIFTED
        change = HealthChanged(health, (why or self.guard.why) if drifted else "")
        self.apply(change)
        return [event, change]

    def _is_warmup_without_verdict(self) -> bool:
        """Whether the policy has left a warm-up that gave no verdict, with none still to come.

        So nothing was charged, and all warm-ups together are charged no more than one, unless their
        outputs come again. With a single verdict the warm-up stays what it was: the policy's first
        candidates. While the policy relearns, draws are its new warm-up.
        """
        if self.warmups == WARMUPS or self.verified or self.warmup_verified:
            return False
        if not self.warmup_seen or self.decider.phase in ("warmup", RELEARNING):
            return False
        first = [o for o in self.outputs.values() if o.decision.reason is Reason.WARMUP]
        return any(o.unavailable for o in first) and not any(o.reserved for o in first)

    def with_model(self, model: str | None) -> FingerprintChanged | None:
        """The event for an output of a new model, to apply before the decision; None for a known
        one.
        """
        model = model or self._model
        if model is None:
            return None
        assert self.fingerprint is not None
        known = self.fingerprint.fingerprint
        return None if known.knows(model) else self.with_fingerprint(known.with_models([model]))

    def with_fingerprint(self, fingerprint: Fingerprint) -> FingerprintChanged:
        """The event that labels depend on this from now on."""
        why = ""
        if self.fingerprint is not None and self.health is not PolicyHealth.COLD:
            why = fingerprint.since(self.fingerprint.fingerprint)
        return FingerprintChanged(fingerprint, self._on_drift, why, TESTS)

    def model_of(self, generation: Generation) -> str | None:
        """The model that an output is from; None: unknown."""
        return generation.model or self._model

    def snapshot(self) -> dict[str, Any]:
        """Everything but the ids, as values that `json` takes."""
        # As texts, which are one value each: there may be many of them.
        decisions = encoded((self.decided[id_] for id_ in self.outputs), "snapshot")
        return {
            "ledger": self.ledger.state(),
            "guard": self.guard.state(),
            "fingerprint": None if self.fingerprint is None else self.fingerprint.row().data,
            "health": [self.health, self.drift, self._drift_ignored],
            "counts": {name: getattr(self, name) for name in self.COUNTS},
            "decisions": dict(self.decisions),
            "verdicts": dict(self.verdicts),
            "open": [
                [
                    *decision,
                    output.reserved,
                    None if output.outcome is None else outcome_data(output.outcome),
                    None if output.unavailable is None else outcome_data(output.unavailable),
                ]
                for decision, output in zip(decisions, self.outputs.values(), strict=True)
            ],
        }

    def restore(self, snapshot: dict[str, Any], ids: Iterable[str]) -> None:
        """Go on from a snapshot that the state of an equal gate returned.

        Parameters
        ----------
        ids
            Ids of all outputs that had been decided on.
        """
        self.ids = set(ids)
        self.ledger.restore(snapshot["ledger"])
        self.guard.restore(snapshot["guard"])
        if snapshot["fingerprint"] is not None:
            self._use_guard()
            self.fingerprint = FingerprintChanged.of(
                "", convert(snapshot["fingerprint"], StoredFingerprint)
            )
        health, self.drift, self._drift_ignored = snapshot["health"]
        self.health = PolicyHealth(health)
        for name, count in snapshot["counts"].items():
            setattr(self, name, count)
        self.decisions |= {Reason(name): n for name, n in snapshot["decisions"].items()}
        self.verdicts |= {Verdict(name): n for name, n in snapshot["verdicts"].items()}
        for kind, id_, text, reserved, outcome, unavailable in snapshot["open"]:
            decided = decision_in(decode(kind, id_, text))
            self.decided[id_] = decided
            self.outputs[id_] = Output(
                decided.candidate,
                decided.decision,
                decided.phase,
                reserved,
                None if outcome is None else outcome_of(convert(outcome, StoredOutcome)),
                None if unavailable is None else outcome_of(convert(unavailable, StoredOutcome)),
            )

    @property
    def unresolved(self) -> int:
        """Open outputs without a verdict."""
        return sum(output.outcome is None for output in self.outputs.values())
