"""A run as columns, for what reads a log of millions of events as a whole.

`gatekeeper.log.run.Run` has objects of each output, about a kilobyte; columns need a tenth of that.
"""

from __future__ import annotations

from array import array
from bisect import insort
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import nan
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gatekeeper.budget import Ledger, Unit
from gatekeeper.log.events import (
    Decided,
    Event,
    ExternalVerdict,
    FingerprintChanged,
    HealthChanged,
    Settled,
)
from gatekeeper.log.fold import LogState, Output
from gatekeeper.log.opening import open_log
from gatekeeper.log.place import PostgresRun
from gatekeeper.log.run import HealthChange, fresh_ledger
from gatekeeper.types import (
    FloatArray,
    Generation,
    Outcome,
    Reason,
    SignalState,
    Verdict,
)

__all__ = ["NO_VERDICT", "RunTable", "read_table"]

_REASON = {reason: i for i, reason in enumerate(Reason)}
_VERDICT = {verdict: i for i, verdict in enumerate(Verdict)}
NO_VERDICT = -1
_NUMBERS, _KINDS = 5, 4  # of each output, one after another

Flags = NDArray[np.bool_]
Codes = NDArray[np.int8]


@dataclass(frozen=True, eq=False)
class RunTable:
    """A run, as read from its log; arrays of shape (N,), in the order of the decisions.

    Attributes
    ----------
    settings, ledger, fingerprint, health_changes, warmups
        As of `Run`.
    ids
        Of the outputs.
    h
        h1, h2, h3, (N, 3); NaN missing.
    stratum
        -1 without one.
    features
        By name; NaN absent.
    reason
        Index in `tuple(Reason)`.
    selected
        To be verified.
    scored, missing
        With a score of the policy; without any signal.
    verdict
        Index in `tuple(Verdict)`, also where the verifier could not tell; `NO_VERDICT`.
    known
        With an outcome: charged, or from outside.
    external
        The outcome is from outside.
    error, value
        Of the outcome; NaN unknown.
    cost
        The charge, or what it would have been for an external verdict; NaN unknown.
    why
        Why the verifier could not tell, the last time; "" where it always could.
    wrong
        The first outputs that were found wrong, with their texts.
    """

    settings: Mapping[str, Any]
    ledger: Ledger
    fingerprint: FingerprintChanged | None
    health_changes: tuple[HealthChange, ...]
    warmups: int
    ids: list[str]
    h: FloatArray
    cost_estimate: FloatArray
    propensity: FloatArray
    stratum: NDArray[np.intp]
    features: Mapping[str, FloatArray]
    reason: Codes
    selected: Flags
    scored: Flags
    missing: Flags
    verdict: Codes
    known: Flags
    external: Flags
    error: FloatArray
    value: FloatArray
    cost: FloatArray
    why: str
    wrong: tuple[tuple[Output, Generation], ...]

    def of_verdict(self, verdict: Verdict) -> Flags:
        """With this verdict, or with none because the verifier could not tell."""
        return np.asarray(self.verdict == _VERDICT[verdict])

    @property
    def labelled(self) -> Flags:
        """With a verdict of right or wrong."""
        return ~np.isnan(self.error)

    def of_reason(self, reason: Reason) -> Flags:
        """Decided on for this reason."""
        return np.asarray(self.reason == _REASON[reason])


class _FirstWrong:
    """The first outputs, in the order of the decisions, that were found wrong, with their texts.

    A verdict from outside may come for any output at any time. So all outputs are kept until enough
    are wrong, and from then on those before the last of these.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: dict[str, tuple[int, Output, Generation]] = {}  # by place
        self._places: list[int] = []  # of the wrong ones, at most `most`, in order

    def add(self, place: int, event: Decided, output: Output | None) -> None:
        """Of an output that is not in the fold's state there is no object yet."""
        if len(self._places) < self._most:
            kept = Output.of([event]) if output is None else output
            self._kept[event.id] = place, kept, event.generation

    def apply(self, event: ExternalVerdict) -> None:
        if event.id in self._kept:
            self._kept[event.id][1].apply(event)

    def judge(self, id_: str, error: int | None) -> None:
        """After a verdict."""
        if error != 1 or id_ not in self._kept:
            return
        insort(self._places, self._kept[id_][0])
        del self._places[self._most :]
        if len(self._places) == self._most:
            last = self._places[-1]
            self._kept = {k: kept for k, kept in self._kept.items() if kept[0] <= last}

    def wrong(self) -> tuple[tuple[Output, Generation], ...]:
        return tuple(
            (output, generation)
            for _, output, generation in self._kept.values()
            if output.outcome is not None and output.outcome.error == 1
        )


class _TableState(LogState):
    """The fold, with columns. `outputs` has selected ones, until a verdict is charged."""

    keeps_all = False

    def __init__(self, ledger: Ledger, shown: int) -> None:
        super().__init__(ledger)
        self.first = _FirstWrong(shown)
        self.changes: list[HealthChange] = []
        self.ids: list[str] = []
        self.numbers, self.kinds, self.strata = array("d"), array("b"), array("q")
        self.features: dict[str, array[float]] = {}
        self.places: dict[str, int] = {}  # of `outputs`
        self.settled_at, self.settled_as, self.settled = array("q"), array("b"), array("d")
        self.from_outside: dict[str, Outcome] = {}  # of those not in `outputs`

    def apply(self, event: Event) -> None:
        super().apply(event)
        match event:
            case Decided():
                self._append(event)
            case Settled():
                outcome, error = event.outcome, event.outcome.error
                self.settled_at.append(self.places.pop(event.id))
                self.settled_as.append(_VERDICT[outcome.verdict])
                self.settled.extend(map(_number, (error, outcome.value, outcome.cost)))
                self.first.judge(event.id, error)
                del self.outputs[event.id]
            case ExternalVerdict():
                if event.id not in self.outputs:
                    self.from_outside[event.id] = event.outcome
                    self.first.apply(event)
                self.first.judge(event.id, event.outcome.error)
            case HealthChanged():
                self.changes.append(HealthChange(self.ledger.seen, event.health, event.why))

    def _append(self, event: Decided) -> None:
        candidate, decision = event.candidate, event.decision
        h, score, place = candidate.signals, decision.score, len(self.ids)
        for name, value in candidate.features.items():
            column = self.features.setdefault(name, array("d"))
            column.extend((nan,) * (place - len(column)))
            column.append(value)
        if decision.verify:
            self.places[candidate.id] = place
        self.first.add(place, event, self.outputs.get(candidate.id))
        self.ids.append(candidate.id)
        self.numbers.extend((h.h1, h.h2, h.h3, candidate.cost_estimate, decision.propensity))
        missing = h.state is SignalState.MISSING
        self.kinds.extend((_REASON[decision.reason], decision.verify, score == score, missing))
        self.strata.append(-1 if decision.stratum is None else decision.stratum)

    def table(self, settings: Mapping[str, Any]) -> RunTable:
        n = len(self.ids)
        numbers = np.array(self.numbers).reshape(n, _NUMBERS)
        kinds = np.array(self.kinds, dtype=np.int8).reshape(n, _KINDS)
        verdict = np.full(n, NO_VERDICT, dtype=np.int8)
        known, external = np.zeros(n, dtype=np.bool_), np.zeros(n, dtype=np.bool_)
        outcomes = np.full((n, 3), nan)  # error, value, cost
        at = np.array(self.settled_at, dtype=np.intp)
        verdict[at], known[at] = np.array(self.settled_as, dtype=np.int8), True
        outcomes[at] = np.array(self.settled).reshape(-1, 3)
        why = ""
        for place, outcome, from_outside in self._others():
            verdict[place], external[place] = _VERDICT[outcome.verdict], from_outside
            if from_outside:
                known[place] = True
                cost = _external_cost(outcome, self.ledger.budget.unit)
                outcomes[place] = tuple(map(_number, (outcome.error, outcome.value, cost)))
            if kinds[place, 1] and outcome.error is None:
                why = outcome.detail or "it did not say why"
        return RunTable(
            settings,
            self.ledger,
            self.fingerprint,
            tuple(self.changes),
            self.warmups,
            self.ids,
            h=numbers[:, :3].copy(),
            cost_estimate=numbers[:, 3].copy(),
            propensity=numbers[:, 4].copy(),
            stratum=np.array(self.strata, dtype=np.intp),
            features={name: _filled(column, n) for name, column in sorted(self.features.items())},
            reason=kinds[:, 0].copy(),
            selected=kinds[:, 1] == 1,
            scored=kinds[:, 2] == 1,
            missing=kinds[:, 3] == 1,
            verdict=verdict,
            known=known,
            external=external,
            error=outcomes[:, 0].copy(),
            value=np.where(np.isnan(outcomes[:, 0]), nan, outcomes[:, 1]),
            cost=outcomes[:, 2].copy(),
            why=why,
            wrong=self.first.wrong(),
        )

    def _others(self) -> Sequence[tuple[int, Outcome, bool]]:
        """Place of each outcome that was not charged, and whether it is from outside; in order."""
        found = [
            (self.places[id_], outcome, output.external)
            for id_, output in self.outputs.items()
            if (outcome := output.outcome or output.unavailable) is not None
        ]
        if self.from_outside:
            found += [
                (place, self.from_outside[id_], True)
                for place, id_ in enumerate(self.ids)
                if id_ in self.from_outside
            ]
        return sorted(found, key=lambda other: other[0])


def read_table(path: str | Path | PostgresRun, *, shown: int = 0) -> RunTable:
    """Apply a log's events, read-only, also while a gate writes it.

    Parameters
    ----------
    path
        A gate's log: a file, or a run in PostgreSQL.
    shown
        How many of the wrong outputs are kept with their texts.

    Raises
    ------
    LogError
        As of `read_run`.
    """
    with open_log(path, read_only=True) as log:
        settings = log.settings()
        state = _TableState(fresh_ledger(settings, path), shown)
        for event in log.events():
            state.apply(event)
    return state.table(settings)


def _number(value: float | None) -> float:
    return nan if value is None else value


def _filled(column: array[float], n: int) -> FloatArray:
    filled = np.full(n, nan)
    filled[: len(column)] = column
    return filled


def _external_cost(outcome: Outcome, unit: Unit) -> float | None:
    """What the gate would have been charged for an external verdict."""
    if unit == "verifications":
        return 1.0
    return outcome.cost if unit == "usd" else outcome.cost or outcome.seconds
