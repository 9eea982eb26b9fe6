"""Warnings about verifications without a verdict and outputs without log-probabilities.

A gate logs them with the standard `logging` (logger `gatekeeper`, level WARNING): at the first of
each kind, at the end of the warm-up, and when it closes. `status()`, `gatekeeper run` and the
report have the same sentences.
"""

from __future__ import annotations

import logging
import traceback
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Self

from gatekeeper.gate.state import GateState
from gatekeeper.log.events import Decided, Event, Released, WarmupRepeated
from gatekeeper.log.fold import LogState
from gatekeeper.printable import printable
from gatekeeper.types import Outcome
from gatekeeper.wording import counted, plural

__all__ = ["LOG", "Notices", "Shortfall"]

LOG = logging.getLogger("gatekeeper")
ASK = "Ask the model for them: logprobs=True, top_logprobs=5."
NOTHING = (
    "there is nothing to rank it by, and after the warm-up the choice among such outputs is a "
    "random draw"
)
ONLY_FEATURES = "there are only its features to rank it by, which the policy 'calibrated' uses"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shortfall:
    """The signals and verdicts that a gate lacked.

    Attributes
    ----------
    outputs, missing
        Decided on, and of these without any signal.
    evaluated, unscored
        Decided on after the warm-up, and of these without a score, because they have no signal.
    verdicts, failed
        Selected outputs with a verdict, and those for which the verifier could not tell.
    why
        The last of these failures, in words.
    warmups
        1, and one more for each time that the warm-up was repeated.
    """

    outputs: int
    missing: int
    evaluated: int
    unscored: int
    verdicts: int
    failed: int
    why: str
    warmups: int

    @classmethod
    def of_state(cls, state: LogState) -> Self:
        """Of a gate, under its lock, or of what follows its log."""
        failed = [
            o.unavailable
            for o in state.outputs.values()
            if o.unavailable is not None and o.outcome is None
        ]
        return cls(
            outputs=state.ledger.seen,
            missing=state.missing_signal,
            evaluated=state.ledger.seen - state.warmup_seen,
            unscored=state.unscored,
            verdicts=state.verified + state.warmup_verified,
            failed=len(failed),
            why=_last(failed),
            warmups=state.warmups,
        )

    def notes(self) -> tuple[str, ...]:
        """One sentence or more for each kind; empty if nothing was missing."""
        found = [self._on_signals(), self._on_verdicts()]
        if self.warmups > 1:
            times = "once" if self.warmups == 2 else counted(self.warmups - 1, "time")
            found.append(f"The warm-up was repeated {times}: it had ended without any verdict.")
        return tuple(note for note in found if note)

    def _on_signals(self) -> str:
        """What outputs without log-probabilities mean for the ranking; "" if there are none."""
        outputs, evaluated = counted(self.outputs, "output"), counted(self.evaluated, "output")
        if self.unscored and self.unscored == self.evaluated:
            return (
                f"This was a random draw, because none of the {evaluated} after the warm-up could "
                f"be ranked: {self.missing:,} of all {self.outputs:,} came without "
                f"log-probabilities. {ASK}"
            )
        if self.unscored:
            return (
                f"For {self.unscored:,} of {evaluated} after the warm-up this was a random draw, "
                f"because they came without log-probabilities. {ASK}"
            )
        if not self.missing:
            return ""
        if self.missing < self.outputs:
            return (
                f"{self.missing:,} of {outputs} came without log-probabilities: such outputs can "
                f"be ranked by features only. {ASK}"
            )
        none = plural(self.outputs, "The 1 output came without", f"None of the {outputs} came with")
        if self.evaluated:
            return (
                f"{none} log-probabilities: such outputs can be ranked by features only, if they "
                f"have any. {ASK}"
            )
        return (
            f"{none} log-probabilities: after the warm-up this is a random draw, because there is "
            f"nothing to rank outputs by, unless the policy uses their features. {ASK}"
        )

    def _on_verdicts(self) -> str:
        """What failed verifications mean; "" if there are none."""
        if not self.failed:
            return ""
        why = printable(self.why)
        if not self.verdicts:
            return (
                f"No output has a verdict: the verifier could not tell for any of {self.failed:,} "
                f"(the last time: {why}). Nothing was charged, and the policy has learned "
                "nothing."
            )
        return (
            f"Selected outputs without a verdict: {self.failed:,}. The verifier could not tell "
            f"(the last time: {why}). They count neither as wrong nor as correct, and "
            "nothing was charged for them."
        )


class Notices:
    """Warnings of one gate. Collected under its lock, and sent when the lock is free again: a
    handler may take its time, or ask for the status.

    Parameters
    ----------
    state
        The gate's, resumed.
    """

    def __init__(self, state: GateState) -> None:
        self._state = state
        self._waiting: deque[str] = deque()
        self._missing_before = state.missing_signal
        self._in_warmup = state.warmup_seen == state.ledger.seen
        self._warned_missing = self._warned_failed = False

    def decided(self, event: Decided) -> None:
        """After the state has the event."""
        if self._in_warmup and not event.warmup:
            self._in_warmup = False
            if self._state.warmup_seen:  # the goal "score" has no warm-up
                found = Shortfall.of_state(self._state)
                self._summarise(
                    f"the warm-up of {counted(self._state.warmup_seen, 'output')} is over",
                    replace(found, evaluated=0, unscored=0),  # the rest is not known yet
                )
        if not self._warned_missing and self._state.missing_signal > self._missing_before:
            self._warned_missing = True
            self._waiting.append(
                f"output {event.id!r} came without log-probabilities: "
                f"{ONLY_FEATURES if event.candidate.features else NOTHING}. {ASK} "
                "Later ones are counted, without a warning"
            )

    def released(self, events: Iterable[Event]) -> None:
        """After a verification ended without a verdict: its events, in order."""
        for event in events:
            if isinstance(event, WarmupRepeated):
                self._in_warmup = True
                self._waiting.append(
                    f"the warm-up begins again, because it ended without any verdict after "
                    f"{counted(self._state.warmup_seen, 'output')}; nothing was charged for them"
                )
            elif isinstance(event, Released) and event.outcome is not None:
                if self._warned_failed:
                    continue
                self._warned_failed = True
                why = printable(event.why) or "it did not say why"
                self._waiting.append(
                    f"the verifier could not tell whether output {event.id!r} is wrong: "
                    f"{why}. Nothing was charged or learned. "
                    "Later ones are counted, without a warning"
                )

    def closing(self) -> None:
        """The last summary, once, if anything was missing in this process."""
        if self._warned_failed or self._warned_missing:
            self._warned_failed = self._warned_missing = False
            self._summarise("the gate closes", Shortfall.of_state(self._state))

    def send(self) -> None:
        """Send the warnings, without the gate's lock. An exception in a handler or filter does not
        affect verdicts.
        """
        while self._waiting:
            try:
                text = self._waiting.popleft()
            except IndexError:  # another thread was faster
                return
            try:
                LOG.warning("gatekeeper: %s", text)
            except Exception:  # the handlers of `logging` itself print theirs, too
                if logging.raiseExceptions:
                    traceback.print_exc()

    def _summarise(self, when: str, found: Shortfall) -> None:
        if notes := found.notes():
            self._waiting.append(f"{when}. {' '.join(notes)}")


def _last(failed: Sequence[Outcome]) -> str:
    return failed[-1].detail or "it did not say why" if failed else ""
