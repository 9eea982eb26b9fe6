"""The fold over a log's events for the page, in little memory.

Account, counts and health are those of `LogState`. Of each output only a few bytes are kept; of the
open ones, and of the last ones, what their rows on the page need. Texts stay in the log.
"""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b

import numpy as np

from gatekeeper.analysis.estimates import Estimates, estimate_weighted
from gatekeeper.analysis.summary import Summary, summary_of
from gatekeeper.budget import Ledger
from gatekeeper.gate.notices import Shortfall
from gatekeeper.log import (
    Decided,
    ExternalVerdict,
    HealthChanged,
    Released,
    Settled,
    StampedEvent,
)
from gatekeeper.log.fold import LogState, Output
from gatekeeper.log.run import HealthChange
from gatekeeper.page.columns import REASONS, Columns
from gatekeeper.report.sections.decisions import ReasonCounts
from gatekeeper.types import Decision, Outcome, Reason, Verdict

__all__ = ["LAST", "Figures", "ShownOutput", "WatchState", "key_of", "one_line"]

LAST = 50  # decisions listed
LONG = 90  # characters of a text or a detail on one line


@dataclass(slots=True, eq=False)
class ShownOutput:
    """An output with a row on the page."""

    seq: int  # of its decision in the log
    at: float  # when it was decided on, seconds since the epoch
    id: str
    decision: Decision
    start: str  # of its text, on one line
    outcome: Outcome | None = None  # or why the verifier could not tell
    external: bool = False

    @property
    def key(self) -> int:
        """The key of its row, equal in all processes that serve the page of a shared run.

        (Numbers of events differ between readers.)
        """
        return key_of(self.id)


@dataclass(frozen=True, slots=True)
class _Open:
    """Where a selected output without a verdict stands."""

    index: int
    seq: int
    at: float


class Figures:
    """The numbers of one moment, computed from the columns when they are asked for."""

    def __init__(self, columns: Columns, missing_signal: int) -> None:
        self.columns, self._missing_signal = columns, missing_signal
        self._labels = columns.labels
        self._labelled = self._labels >= 0
        self.drawn = columns.selected & self._labelled  # with a verdict of the gate's own
        self.wrong = self._labels == 1

    @cached_property
    def summary(self) -> Summary:
        """The report's counts."""
        columns = self.columns
        return summary_of(
            warmup=columns.of_reason(Reason.WARMUP),
            selected=columns.selected,
            labelled=self._labelled,
            wrong=self.wrong,
            budget_exhausted=int(columns.of_reason(Reason.BUDGET_EXHAUSTED).sum()),
            missing_signal=self._missing_signal,
        )

    @cached_property
    def rate(self) -> Estimates:
        """The error rate of all outputs, without predictions."""
        return self.rate_of(slice(None))

    def rate_of(self, part: slice) -> Estimates:
        """The error rate of a part of the stream, without predictions."""
        p, drawn = self.columns.propensity[part], self.drawn[part]
        if not p.size:
            return Estimates(None, None, None, 0, 0, "There are no outputs.")
        label = np.where(self._labelled[part], self._labels[part], np.nan)
        selected = int(self.columns.selected[part].sum())
        return estimate_weighted(p, drawn, label, selected=selected)

    @cached_property
    def reasons(self) -> dict[Reason, ReasonCounts]:
        """Counts by reason, of the reasons that occurred."""
        found = {}
        for reason in REASONS:
            of = self.columns.of_reason(reason)
            if of.any():
                masks = (of, of & self.columns.selected, of & self.drawn)
                counts = (int(mask.sum()) for mask in (*masks, masks[-1] & self.wrong))
                found[reason] = ReasonCounts(*counts)
        return found


class WatchState(LogState):
    """What the page shows of the events so far. `outputs` has the open ones: selected, and without
    a verdict.

    Parameters
    ----------
    ledger
        A fresh one, of the budget that the log's gate has.

    Attributes
    ----------
    seq, at
        Number and time of the last event; 0 before the first.
    last
        The last decisions, in order.
    health_changes
        As of `Run`.
    by_gate, external
        Verdicts, by whether the budget paid for them.
    """

    keeps_all = False

    def __init__(self, ledger: Ledger) -> None:
        super().__init__(ledger)
        self.seq, self.at = 0, 0.0
        self.last: deque[ShownOutput] = deque(maxlen=LAST)
        self.health_changes: list[HealthChange] = []
        self.by_gate: Counter[Verdict] = Counter()
        self.external: Counter[Verdict] = Counter()
        self._columns = Columns()
        self._open: dict[str, _Open] = {}

    def take(self, stamped: StampedEvent) -> None:
        """Change the state by the next event of the log."""
        self.seq, self.at, event = stamped
        self.apply(event)
        match event:
            case Decided():
                self._take_decision(stamped.seq, stamped.at, event)
            case Settled():
                del self.outputs[event.id]
                error = event.outcome.error
                assert error is not None
                self._columns.set_label(self._open.pop(event.id).index, error)
                self.by_gate[event.outcome.verdict] += 1
                self._show(event.id, event.outcome)
            case ExternalVerdict():
                if (error := event.outcome.error) is not None:
                    self._columns.set_label_by_id(event.id, error)
                self.external[event.outcome.verdict] += 1
                self._show(event.id, event.outcome, external=True)
            case Released():
                self._show(event.id, self.outputs[event.id].unavailable)
            case HealthChanged():
                change = HealthChange(self.ledger.seen, event.health, event.why)
                self.health_changes.append(change)

    def _take_decision(self, seq: int, at: float, event: Decided) -> None:
        decision = event.decision
        index = self._columns.add(
            event.id, decision.propensity, decision.reason, selected=decision.verify
        )
        if decision.verify:
            self._open[event.id] = _Open(index, seq, at)
        self.last.append(ShownOutput(seq, at, event.id, decision, one_line(event.generation.text)))

    def _show(self, id_: str, outcome: Outcome | None, *, external: bool = False) -> None:
        for shown in reversed(self.last):
            if shown.id == id_:
                shown.outcome, shown.external = outcome, external
                return

    # -- what it shows ----------------------------------------------------------------------------

    def figures(self) -> Figures:
        """The numbers as of now, valid until the next event."""
        return Figures(self._columns, self.missing_signal)

    def notes(self) -> tuple[str, ...]:
        """Reasons why the gate could not choose or learn, in sentences."""
        return Shortfall.of_state(self).notes()

    @property
    def pace(self) -> float | None:
        """As of `GateStatus`."""
        allowed = self.ledger.allowed
        return (self.ledger.spent + self.ledger.held) / allowed if allowed else None

    @property
    def verifies(self) -> bool:
        """Whether the gate has a verifier, as far as the log shows."""
        return self.fingerprint is None or self.fingerprint.fingerprint.verifier is not None

    def unavailable(self) -> int:
        """Open outputs for which the verifier could not tell."""
        return sum(output.unavailable is not None for output in self.outputs.values())

    def under_way(self) -> list[float]:
        """Times of the decisions on outputs that are being or wait to be verified, oldest first."""
        if not self.verifies:
            return []
        return [self._open[id_].at for id_, output in self.outputs.items() if output.reserved]

    def waiting(self) -> list[tuple[int, float, Output]]:
        """Outputs that wait for a person, the oldest first: number, time, and what is known.

        Those for which the verifier could not tell; without a verifier, all selected ones.
        """
        everything = not self.verifies
        return [
            (self._open[id_].seq, self._open[id_].at, output)
            for id_, output in self.outputs.items()
            if everything or not output.reserved
        ]

    def find(self, key: int) -> ShownOutput | None:
        """An output with a row on the page, by the row's key; None for another."""
        for shown in self.last:
            if shown.key == key:
                return shown
        for seq, at, output in self.waiting():
            id_, decision = output.candidate.id, output.decision
            if key_of(id_) == key:
                return ShownOutput(seq, at, id_, decision, "", output.unavailable)
        return None


def key_of(id_: str) -> int:
    """A number for an output."""
    return int.from_bytes(blake2b(id_.encode("utf-8", "surrogatepass"), digest_size=7).digest())


def one_line(text: str, most: int = LONG) -> str:
    """The start of a text, at most so many characters, without line breaks."""
    start = " ".join(text[: 4 * most].split())
    return start if len(start) <= most else f"{start[:most]} …"
