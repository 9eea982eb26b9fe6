"""A run as columns, for what reads a long log as a whole.

`gatekeeper.log.run.Run` has objects of each output, about a kilobyte; columns need a tenth of that.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from math import nan
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gatekeeper.budget import Ledger, Unit
from gatekeeper.log.decision_table import Codes, DecisionColumns, DecisionTable
from gatekeeper.log.decoding import Naming, event_of, parsed
from gatekeeper.log.events import (
    Decided,
    Event,
    ExternalVerdict,
    FingerprintChanged,
    HealthChanged,
    Learned,
    Settled,
    candidate_of,
    decision_of,
)
from gatekeeper.log.fold import UNDECIDED, LogState, Output, decision_in, misplaced
from gatekeeper.log.opening import open_log
from gatekeeper.log.place import PostgresRun
from gatekeeper.log.rows import row_of
from gatekeeper.log.run import HealthChange, fresh_ledger
from gatekeeper.log.stored import StoredDecision
from gatekeeper.types import BoolArray, FloatArray, Outcome, Verdict

if TYPE_CHECKING:
    from gatekeeper.log.postgres import PostgresLog
    from gatekeeper.log.sqlite import SQLiteLog

__all__ = ["NO_VERDICT", "RunTable", "read_table"]

NO_VERDICT = -1
_VERDICT = {verdict: i for i, verdict in enumerate(Verdict)}


@dataclass(frozen=True, eq=False)
class RunTable(DecisionTable):
    """A run, as read from its log: the decisions, and for each of them what followed.

    Arrays have shape (N,), in the order of the decisions.

    Attributes
    ----------
    settings, ledger, fingerprint, health_changes, warmups
        As of `gatekeeper.log.run.Run`.
    verdict
        Index in `tuple(Verdict)`, also where the verifier could not tell; `NO_VERDICT`: none.
    external
        The verdict is from outside.
    error
        1 wrong, 0 right; NaN: unknown.
    value
        Of a metric; NaN: none was given, or the error is unknown.
    cost
        The charge in the budget's unit, or what it would have been for an external verdict; NaN:
        the error or the cost is unknown.
    why
        Why the verifier could not tell, for the last selected output that has no verdict for this
        reason; "": there is none.
    wrong_rows
        The first wrong outputs as flat rows (`gatekeeper.log.rows`), as many as were asked for.
    """

    settings: Mapping[str, Any]
    ledger: Ledger
    fingerprint: FingerprintChanged | None
    health_changes: tuple[HealthChange, ...]
    warmups: int
    verdict: Codes
    external: BoolArray
    error: FloatArray
    value: FloatArray
    cost: FloatArray
    why: str
    wrong_rows: tuple[dict[str, Any], ...] = ()

    @property
    def labelled(self) -> BoolArray:
        """With a verdict of right or wrong."""
        return ~np.isnan(self.error)

    @property
    def wrong(self) -> BoolArray:
        """With a verdict of wrong."""
        return np.asarray(self.error == 1.0)

    def of_verdict(self, verdict: Verdict) -> BoolArray:
        """With this verdict."""
        return np.asarray(self.verdict == _VERDICT[verdict])


def read_table(path: str | Path | PostgresRun, *, wrong_rows: int = 0) -> RunTable:
    """Apply a log's events, read-only, also while a gate writes it.

    Parameters
    ----------
    path
        A gate's log: a file, or a run in PostgreSQL.
    wrong_rows
        How many wrong outputs to read as rows, with their texts.

    Raises
    ------
    LogError
        As `gatekeeper.log.run.read_run`.
    """
    with open_log(path, read_only=True) as log:
        settings = log.settings()
        state = _TableState(fresh_ledger(settings, path))
        with Naming(repr(str(path))):
            for kind, id_, text in log.stored():
                state.take(kind, id_, parsed(kind, id_, text))
            table = state.table(settings)
            first = np.flatnonzero(table.wrong)[:wrong_rows].tolist()
            return replace(table, wrong_rows=_rows(log, [table.ids[i] for i in first]))


def _rows(log: SQLiteLog | PostgresLog, ids: Collection[str]) -> tuple[dict[str, Any], ...]:
    """Rows of some outputs, in the order of their ids."""
    found: dict[str, list[Event]] = {id_: [] for id_ in ids}
    for event in log.events_of(ids):
        found[event.id].append(event)
    rows = []
    for events in found.values():
        rows.append(row_of(Output.of(events), decision_in(events[0]).generation))
    return tuple(rows)


class _TableState(LogState):
    """The fold, with columns.

    Nearly all events of a log are decisions, verdicts and that these were learned. They are applied
    by their stored data: the objects of events and outputs would take longer
    (benchmarks/big_log.py). tests/log/test_run_table.py holds the result beside that of the plain
    fold. What else happens to a selected output makes it an `Output`, which is in `outputs` until
    it is charged.
    """

    keeps_all = False

    def __init__(self, ledger: Ledger) -> None:
        super().__init__(ledger)
        self._changes: list[HealthChange] = []
        self._selected: dict[str, tuple[int, StoredDecision]] = {}  # with place; no `Output` yet
        self._decisions = DecisionColumns()
        # Of verdicts, which only some outputs have: the output's place, and its values.
        self._verdict_places, self._verdicts = array("q"), array("b")
        self._label_places, self._labels = array("q"), array("d")
        self._places: dict[str, int] = {}  # of `outputs`
        self._external: dict[str, Outcome] = {}  # of those not in `outputs`

    def take(self, kind: str, id_: str, data: Any) -> None:
        """Apply the event of a row with this data, which `parsed` returned."""
        if kind == Decided.kind:
            self._take_decision(id_, data)
        elif kind != Learned.kind:
            event = event_of(kind, id_, data)
            if isinstance(event, Settled) and id_ in self._selected and id_ in self.ledger.holds:
                self.ledger.settle(id_, event.taken)
                self._conclude(self._selected.pop(id_)[0], event.outcome, external=False)
            else:
                self.apply(event)

    def apply(self, event: Event) -> None:
        if event.id in self._selected:
            place, data = self._selected.pop(event.id)
            self._places[event.id] = place
            self.outputs[event.id] = Output(
                candidate_of(event.id, data), decision_of(data), data.phase, reserved=True
            )
        super().apply(event)
        match event:
            case Settled():
                output = self.outputs.pop(event.id)
                place = self._places.pop(event.id)
                self._conclude(place, event.outcome, external=output.external)
            case ExternalVerdict() if event.id not in self.outputs:
                self._external[event.id] = event.outcome
            case HealthChanged():
                self._changes.append(HealthChange(self.ledger.seen, event.health, event.why))

    def has_decided(self, id_: str) -> bool | None:
        return id_ in self._selected or super().has_decided(id_)

    def _take_decision(self, id_: str, data: StoredDecision) -> None:
        verify, place = data.verify, self.ledger.seen
        if verify:
            self._check_undecided(id_)
        hold = self.ledger.see(
            data.cost_estimate, warmup=data.is_warmup, groups=data.groups, accrued=data.accrued
        )
        if verify:
            self.ledger.reserve(id_, hold)
            self._selected[id_] = place, data
        self._decisions.append(id_, data)

    def _conclude(self, place: int, outcome: Outcome, *, external: bool) -> None:
        """Set what is known of a verification, or that the verifier could not tell."""
        error, cost = outcome.error, outcome.cost
        if external:
            cost = _external_cost(outcome, self.ledger.budget.unit)
        if error is not None:
            self._label_places.append(place)
            self._labels.extend((error, _number(outcome.value), _number(cost)))
        self._verdict_places.append(place)
        self._verdicts.extend((_VERDICT[outcome.verdict], external))

    def table(self, settings: Mapping[str, Any]) -> RunTable:
        """The columns of all outputs. Called once, after the last event."""
        why = ""
        for id_ in sorted(self.outputs, key=self._places.__getitem__):
            output = self.outputs[id_]
            outcome = output.outcome or output.unavailable
            if outcome is not None:
                self._conclude(self._places[id_], outcome, external=output.external)
                if outcome.error is None:
                    why = outcome.detail or "it did not say why"
        decisions = self._decisions.table()
        if self._external:
            for place, id_ in enumerate(decisions.ids):
                if (given := self._external.pop(id_, None)) is not None:
                    self._conclude(place, given, external=True)
        for id_, given in self._external.items():  # that are left
            raise misplaced(ExternalVerdict(id_, given), UNDECIDED)
        n = len(decisions.ids)
        verdict, external = np.full((2, n), [[NO_VERDICT], [False]], dtype=np.int8)
        verdict[self._verdict_places], external[self._verdict_places] = _columns(self._verdicts, 2)
        error, value, cost = (
            _placed(values, self._label_places, n) for values in _columns(self._labels, 3)
        )
        return RunTable(
            **vars(decisions),
            settings=settings,
            ledger=self.ledger,
            fingerprint=self.fingerprint,
            health_changes=tuple(self._changes),
            warmups=self.warmups,
            verdict=verdict,
            external=external == 1,
            error=error,
            value=value,
            cost=cost,
            why=why,
        )


def _number(value: float | None) -> float:
    return nan if value is None else value


def _columns(rows: array[Any], width: int) -> NDArray[Any]:
    """Columns (width, n) of rows that stand one after another."""
    return np.asarray(rows).reshape(-1, width).T


def _placed(values: FloatArray, places: array[int], n: int) -> FloatArray:
    """A column of n values, NaN where there is none; few logs have any of a metric."""
    if np.isnan(values).all():
        return np.broadcast_to(nan, n)
    column = np.full(n, nan)
    column[places] = values
    return column


def _external_cost(outcome: Outcome, unit: Unit) -> float | None:
    """What the gate would have been charged for an external verdict."""
    if unit == "verifications":
        return 1.0
    return outcome.cost if unit == "usd" else outcome.cost or outcome.seconds
