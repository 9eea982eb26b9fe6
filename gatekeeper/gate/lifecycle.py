"""The steps of an output in a gate: admitted, then settled or released, then learned.

Each step is one transaction: it changes the state and appends the events to the log, under one
short lock. Verification runs between the steps, outside the lock.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from math import nan

from gatekeeper.budget import SharedLedger, Unit
from gatekeeper.errors import BadInputError, GatekeeperError
from gatekeeper.gate.admission import Admission, refusal
from gatekeeper.gate.following import Following
from gatekeeper.gate.journal import Journal
from gatekeeper.gate.lock import Locked
from gatekeeper.gate.new_output import NewOutput, OutputReader
from gatekeeper.gate.notices import Notices
from gatekeeper.gate.sinks import Sinks
from gatekeeper.gate.sizes import charged, uncharged
from gatekeeper.gate.state import GateState
from gatekeeper.gate.status import DURATION_BOUNDS, status_of
from gatekeeper.gate.transaction import Transaction
from gatekeeper.log import (
    Decided,
    Event,
    ExternalVerdict,
    JointLog,
    Learned,
    Released,
    ReservedAgain,
    Settled,
)
from gatekeeper.log.fold import Output
from gatekeeper.stats.histogram import Histogram
from gatekeeper.types import GateResult, GateStatus, Generation, Outcome, Reason

__all__ = ["Lifecycle"]


Answer = Output | GateResult | None
"""To a new output: selected, not selected, or its id is known."""


class Lifecycle(Locked):
    """Every change of a gate's state and log.

    Parameters
    ----------
    state, admission, journal
        Parts of one gate, resumed.
    reader
        Reads new outputs.
    unit
        Unit of the budget.
    verifies
        The gate has a verifier. Without one, outcomes come through `report` only.
    transaction
        The gate's; each step is one.
    sinks
        Get each decision and each outcome.
    """

    def __init__(
        self,
        state: GateState,
        admission: Admission,
        journal: Journal,
        *,
        reader: OutputReader,
        unit: Unit,
        verifies: bool,
        transaction: Transaction,
        sinks: Sinks,
    ) -> None:
        super().__init__()
        self.read, self.has_forked = reader.read, transaction.has_forked
        self.syncing = journal.syncing
        self._state, self._admission, self._log = state, admission, journal
        self._unit, self._verifies = unit, verifies
        self._transaction = transaction
        self._notices, self._sinks = Notices(state), sinks
        self._durations = Histogram(DURATION_BOUNDS)
        # Outputs that this process verifies now, by id, with the call that does.
        self._verifying: dict[str, NewOutput] = {}

    @property
    def phase(self) -> str:
        """The phase for the next candidate: the policy's, or "relearning"."""
        return self._state.decider.phase

    # -- admission ------------------------------------------------------------------------------

    def decide(self, new: NewOutput) -> Answer:
        """Decide on one output."""
        events: list[Event] = []
        with self._lock, self._transaction:
            answer = self._decide(new, events)
            self._log.append(events)
        self._notices.send()
        return answer

    def decide_batch(self, batch: Sequence[NewOutput]) -> Sequence[Answer | Exception]:
        """Decide on outputs in order, and log all decisions in one transaction.

        Returns
        -------
        sequence
            The answer to each, or the error for its caller; if the log cannot be written, that
            error for all.
        """
        events: list[Event] = []
        answers: list[Answer | Exception] = []
        try:
            with self._lock, self._transaction:
                for new in batch:
                    try:
                        with self._transaction:  # its own: if it breaks off, earlier ones stand
                            answers.append(self._decide(new, events))
                    except Exception as error:
                        answers.append(error)
                self._log.append(events)
            self._log.sync()
        except Exception as error:
            answers = [error] * len(batch)
        self._notices.send()
        return answers

    def _decide(self, new: NewOutput, events: list[Event]) -> Answer:
        """Adds what is to be logged to the events."""
        generation, candidate, force = new.generation, new.candidate, new.force
        state = self._state
        if candidate is None or candidate.id in state.ids:
            return None
        changed = state.with_model(generation.model)
        first = None if changed is None else state.advance(changed)
        decided = self._admission.decide(generation, candidate, force=force)
        events += state.advance(decided) if first is None else first + state.advance(decided)
        self._notices.decided(decided)
        if not decided.decision.verify:
            return GateResult(candidate.id, candidate.signals, decided.decision)
        if self._verifies:
            self._verifying[candidate.id] = new
        return state.outputs[candidate.id]

    def admitted(self, new: NewOutput, answer: Answer, *, learn: bool) -> Output | GateResult:
        """The answer for the caller; an Output is the caller's to verify.

        Parameters
        ----------
        learn
            Learn an outcome that is there already; otherwise the output is returned, for a later
            call of `learn`.

        Raises
        ------
        BadInputError
            Where the id names another output, or one that is being verified already.
        """
        if answer is None:
            found = self._continue(new, learn=learn)
            self._log.sync()
            return found
        if self._verifies and not self._sinks:
            return answer
        self._log.sync()
        result = answer if isinstance(answer, GateResult) else answer.result()
        if self._sinks:
            self._sinks.decided(result, new.response_id)
        return answer if self._verifies else result

    def _continue(self, new: NewOutput, *, learn: bool) -> Output | GateResult:
        """Go on with an output whose id is known."""
        id_ = new.generation.id
        with self._lock, self._transaction:
            output = self._state.outputs.get(id_)
            known = self._result(id_)
            decided = self._state.decided.get(id_) or self.decided(id_)
            if decided.generation.text != new.generation.text:
                raise self._transaction.refusal(
                    f"id={id_!r} already names another output: give each output an id of its own"
                )
            if output is None:
                if new.force and known.outcome is None:
                    raise self._transaction.refusal(
                        f"id={id_!r} was decided on and not selected; force=True comes too late: "
                        "verify it yourself and pass the verdict to report_outcome"
                    )
                return known
            if id_ in self._verifying:
                raise self._transaction.refusal(f"id={id_!r} is being verified already")
            self._log.check_mine(id_)
            if output.outcome is not None:
                if not learn:
                    return output
                self._log.append(self._learn([output]))
                return known
            if not self._verifies:
                return known
            if not output.reserved and not self._reserve_again(output):
                ledger = self._state.ledger
                is_full = ledger.group_room(ledger.groups.of(output.candidate.groups)) < 0
                return _refused(output, refusal(ledger, is_full=is_full))
            self._verifying[id_] = new
            return output

    def withdraw(self, answer: Answer) -> None:
        """Give back what was reserved for a caller that was cancelled."""
        with self._lock:
            if isinstance(answer, Output) and answer.reserved:
                self.release(answer, "cancelled")

    def abandon(self, new: NewOutput) -> None:
        """Give back what a call has reserved that ends by an exception before it concludes."""
        with self._lock:
            output = self._state.outputs.get(new.generation.id)
            if output is not None and self._verifying.get(output.candidate.id) is new:
                self.withdraw(output)

    # -- verification ---------------------------------------------------------------------------

    def generation_of(self, output: Output) -> Generation:
        """An open output in the form for the verifier; the log has its reservation."""
        try:
            self._log.sync()
        except BaseException:
            self.release(output, "interrupted")
            raise
        return self._state.decided[output.candidate.id].generation

    def conclude(self, output: Output, outcome: Outcome, *, learn: bool) -> None:
        """Settle an output with a verdict, or release it where the verifier could not tell."""
        with self._lock, self._transaction:
            self._verifying.pop(output.candidate.id, None)
            if outcome.error is None:
                self._release(output, outcome.detail, outcome)
            else:
                self._settle(output, outcome, learn=learn)
                self._durations.add(outcome.seconds)
        self._log.sync()
        self._notices.send()
        if self._sinks:
            self._sinks.concluded(output.result())

    def release(self, output: Output, why: str) -> None:
        """Release in an exception handler: a gate that has stopped or is closed raises nothing."""
        with suppress(GatekeeperError):
            with self._lock, self._transaction:
                self._verifying.pop(output.candidate.id, None)
                self._release(output, why)
            self._log.sync()

    def suspend(self, output: Output) -> None:
        """Note that a verification did not begin: it stays reserved until the output is back."""
        self._verifying.pop(output.candidate.id, None)

    def learn(self, outputs: Iterable[Output]) -> None:
        """Update the policy with outcomes, in this order; those it has learned are left out."""
        with self._lock, self._transaction:
            self._log.append(self._learn(outputs))
        self._log.sync()

    def report(self, id_: str, outcome: Outcome) -> GateResult:
        """Take a verdict from outside. See `VerificationGate.report_outcome`."""
        with self._lock, self._transaction:
            output = self._state.outputs.get(id_)
            if output is None:
                external = self._external(id_, outcome)
            elif id_ in self._verifying or output.outcome is not None:
                raise self._transaction.refusal(
                    f"id={id_!r} is being verified or has a verdict already"
                )
            elif outcome.error is not None:
                self._log.check_mine(id_)
                if not output.reserved and not self._reserve_again(output):
                    raise self._transaction.refusal(
                        f"id={id_!r}: the budget has no room for this verdict any more"
                    )
                self._settle(output, outcome, learn=True)
            elif output.reserved:
                self._log.check_mine(id_)
                self._release(output, outcome.detail, outcome)
        self._log.sync()
        self._notices.send()
        result = external if output is None else output.result()
        if self._sinks:
            self._sinks.concluded(result)
        return result

    # -- what is known --------------------------------------------------------------------------

    def find(self, id_: str) -> GateResult | None:
        with self._lock:
            return self._result(id_) if id_ in self._state.ids else None

    def decided(self, id_: str) -> Decided:
        """The decision on an output, with the output itself.

        Raises
        ------
        BadInputError
            For an unknown id.
        """
        with self._lock:
            if id_ not in self._state.ids:
                raise BadInputError(f"id={id_!r} is unknown: no such output came to this gate")
            event = next(self._log.events(id_))  # the first that is logged of any output
            assert isinstance(event, Decided)
            return event

    def pending(self) -> list[Generation]:
        with self._lock:
            state = self._state
            mine = self._log.mine([id_ for id_ in state.outputs if id_ not in self._verifying])
            return [state.decided[id_].generation for id_ in state.outputs if id_ in mine]

    def status(self) -> GateStatus:
        with self._lock:
            verifying = len(self._verifying)
            return status_of(
                self._state,
                verifying=verifying,
                durations=self._durations,
                shared=self._log.shared(),
            )

    def follow(self, log: JointLog, ledger: SharedLedger) -> None:
        """Apply what other processes write from now on."""
        state, admission = self._state, self._admission
        log.follow(Following(state, admission, ledger, self._lock, self._transaction))

    def stop(self) -> None:
        """Refuse every further step."""
        self._transaction.closed = True

    def close(self) -> None:
        with self._lock:
            self._notices.closing()
        self._notices.send()
        with self._lock:
            self._log.close()

    # -- the steps themselves, under the lock and within a transaction -----------------------------

    def _settle(self, output: Output, outcome: Outcome, *, learn: bool) -> None:
        id_ = output.candidate.id
        if self._unit == "verifications":
            taken = 1.0
        elif outcome.cost is not None:
            taken = outcome.cost
        else:  # unknown is charged as the whole reservation
            taken = (outcome.seconds or nan) if self._unit == "seconds" else nan
        charge = self._state.ledger.charge(id_, taken)
        events = self._state.advance(Settled(id_, charged(outcome, charge), taken))
        self._log.append(events + (self._learn([output]) if learn else []))

    def _learn(self, outputs: Iterable[Output]) -> list[Event]:
        """Learns once, even if a batch and another caller had the same output."""
        events: list[Event] = []
        for output in outputs:
            if output.candidate.id in self._state.outputs:
                events += self._state.advance(Learned(output.candidate.id))
        return events

    def _release(self, output: Output, why: str, outcome: Outcome | None = None) -> None:
        kept = None if outcome is None else uncharged(outcome)
        why = why if kept is None else kept.detail
        events = self._state.advance(Released(output.candidate.id, why, kept))
        self._log.append(events)
        self._notices.released(events)

    def _reserve_again(self, output: Output) -> bool:
        if not self._state.ledger.can_reserve_again(output.candidate.id):
            return False
        self._log.append(self._state.advance(ReservedAgain(output.candidate.id)))
        return True

    def _external(self, id_: str, outcome: Outcome) -> GateResult:
        if id_ not in self._state.ids:
            raise self._transaction.refusal(
                f"id={id_!r} is unknown: report only outputs that came to this gate"
            )
        known = self._result(id_)
        if known.outcome is not None:
            raise self._transaction.refusal(
                f"id={id_!r} already has the verdict {known.outcome.verdict.value!r}"
            )
        outcome = uncharged(outcome)
        if outcome.error is not None:
            self._log.append(self._state.advance(ExternalVerdict(id_, outcome)))
        return replace(known, outcome=outcome)

    def _result(self, id_: str) -> GateResult:
        output = self._state.outputs.get(id_)
        return (output or Output.of(self._log.events(id_))).result()


def _refused(output: Output, reason: Reason) -> GateResult:
    """A selected output that cannot be verified now."""
    decision = replace(output.decision, verify=False, reason=reason, propensity=0.0)
    return replace(output.result(), decision=decision)
