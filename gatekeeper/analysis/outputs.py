"""The data of each output of a run, from its results or from the records of its log."""

from __future__ import annotations

from math import isnan, log, log1p, nan
from typing import NamedTuple

from gatekeeper.errors import BadInputError
from gatekeeper.stats.error_model import Raw
from gatekeeper.types import GateResult, Record, Signals
from gatekeeper.types.values import COST, LEAST_COST, MOST_COST

__all__ = ["OutputRow", "row_of"]


class OutputRow(NamedTuple):
    """One output, as estimates need it."""

    id: str
    raw: Raw  # what predictions are made from
    propensity: float  # NaN unknown
    selected: bool  # as far as that is known
    drawn: bool  # the label, if there is one, is the gate's own
    label: float  # 1 wrong, 0 right; NaN unknown
    value: float  # of a metric; else 1 right, 0 wrong; NaN unknown


def row_of(output: Record | GateResult) -> OutputRow:
    """The row of an output.

    Raises
    ------
    BadInputError
        It is neither a record nor a result, or its propensity or ĉ is impossible.
    """
    if isinstance(output, Record):
        row = _row_of_record(output)
    elif isinstance(output, GateResult):
        row = _row_of_result(output)
    else:
        raise BadInputError(
            f"output={output!r:.80}: give a run's GateResults, or the records of its log"
        )
    if not (isnan(row.propensity) or 0.0 <= row.propensity <= 1.0):
        raise BadInputError(
            f"id={output.id!r:.80}: propensity={row.propensity!r} must lie in [0, 1]"
        )
    return row


def _row_of_record(record: Record) -> OutputRow:
    if not LEAST_COST <= record.cost_estimate <= MOST_COST:
        raise BadInputError(
            f"id={record.id!r:.80}: cost_estimate={record.cost_estimate!r} must be {COST}"
        )
    p = nan if record.propensity is None else record.propensity
    drawn = record.error is not None and record.verified is not False
    # A log's records do not state for which selected outputs no verdict came, except where the
    # propensity is 1: those were selected.
    selected = drawn or p == 1.0
    label = nan if record.error is None else float(record.error)
    raw = _raw(record.signals, log(record.cost_estimate))._replace(features=record.features)
    value = 1.0 - label if record.value is None else record.value
    return OutputRow(record.id, raw, p, selected, drawn, label, value)


def _row_of_result(result: GateResult) -> OutputRow:
    decision, outcome = result.decision, result.outcome
    label = None if outcome is None else outcome.error
    grade = None if outcome is None else outcome.grade
    return OutputRow(
        result.id,
        _raw(result.signals, 0.0),
        decision.propensity,
        decision.verify,
        decision.verify,
        nan if label is None else float(label),
        nan if grade is None else grade,
    )


def _raw(h: Signals, log_cost: float) -> Raw:
    return Raw(h.h1, h.h2, h.h3, log_cost, log1p(h.n_tokens))
