"""The data of the outputs of a run as columns, from its results or from the records of its log."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from math import log, log1p, nan
from typing import NamedTuple

import numpy as np

from gatekeeper.errors import BadInputError
from gatekeeper.io.record_table import RecordTable
from gatekeeper.stats.raw_table import Raw, RawTable
from gatekeeper.types import BoolArray, FloatArray, GateResult, IntArray, Record, Signals
from gatekeeper.types.record import check_record
from gatekeeper.types.values import COST, LEAST_COST, MOST_COST

__all__ = ["OutputTable", "raw_of_records"]

ALL = slice(None)
OUTPUTS = "give a run's GateResults, or the records of its log"


class OutputTable(NamedTuple):
    """Outputs, as estimates need them; arrays of shape (N,)."""

    ids: Sequence[str]
    raw: Callable[[IntArray | BoolArray], RawTable]  # what some are predicted from
    propensity: FloatArray  # NaN unknown
    selected: BoolArray  # as far as that is known
    drawn: BoolArray  # the label, if there is one, is the gate's own
    label: FloatArray  # 1 wrong, 0 right; NaN unknown
    value: FloatArray  # of a metric; else 1 right, 0 wrong; NaN unknown

    @classmethod
    def of(cls, outputs: Iterable[Record | GateResult]) -> OutputTable:
        """The table of these outputs.

        Raises
        ------
        BadInputError
            One is neither a record nor a result, or its propensity or ĉ is impossible.
        """
        if isinstance(outputs, RecordTable):
            table = _of_records(outputs)
        elif not isinstance(outputs, Iterable):
            raise BadInputError(f"outputs={outputs!r:.80}: {OUTPUTS}")
        else:
            table = _of_rows([_row_of(output) for output in outputs])
        p = table.propensity
        if (bad := np.flatnonzero((p < 0.0) | (p > 1.0))).size:
            raise BadInputError(
                f"id={table.ids[bad[0]]!r:.80}: propensity={p[bad[0]].item()!r} must lie in [0, 1]"
            )
        return table


def raw_of_records(table: RecordTable, which: IntArray | BoolArray | slice = ALL) -> RawTable:
    """What predictions are made from, of some records: they keep no numbers of positions."""
    costs = table.cost_estimate[which].tolist()
    sizes = list(map(log, costs))  # numpy's differs in the last bit
    none = np.zeros((len(costs), 0))
    names = tuple(sorted(table.features or {}))
    columns = [] if table.features is None else [table.features[name][which] for name in names]
    return RawTable(
        np.column_stack((table.h[which], sizes, np.zeros(len(costs)))),
        names,
        np.column_stack((none, *columns)),
    )


def _of_records(table: RecordTable) -> OutputTable:
    cost = table.cost_estimate
    if (bad := np.flatnonzero(~((cost >= LEAST_COST) & (cost <= MOST_COST)))).size:
        raise _impossible_cost(table.ids[bad[0]], cost[bad[0]].item())
    n = len(table)
    p = np.full(n, nan) if table.propensity is None else table.propensity
    drawn = table.drawn
    right = 1.0 - table.error
    return OutputTable(
        table.ids,
        partial(raw_of_records, table),
        p,
        # without it as in `_row_of_record`
        drawn | (p == 1.0) if table.selected is None else table.selected,
        drawn,
        table.error,
        right if table.value is None else np.where(np.isnan(table.value), right, table.value),
    )


def _impossible_cost(id_: str, cost: float) -> BadInputError:
    return BadInputError(f"id={id_!r:.80}: cost_estimate={cost!r} must be {COST}")


class _Row(NamedTuple):
    """Of an `OutputTable`."""

    id: str
    raw: Raw
    propensity: float
    selected: bool
    drawn: bool
    label: float
    value: float


def _of_rows(rows: Sequence[_Row]) -> OutputTable:
    return OutputTable(
        [row.id for row in rows],
        RawTable.of([row.raw for row in rows]).take,
        np.array([row.propensity for row in rows], dtype=np.float64),
        np.array([row.selected for row in rows], dtype=np.bool_),
        np.array([row.drawn for row in rows], dtype=np.bool_),
        np.array([row.label for row in rows], dtype=np.float64),
        np.array([row.value for row in rows], dtype=np.float64),
    )


def _row_of(output: Record | GateResult) -> _Row:
    if isinstance(output, Record):
        return _row_of_record(check_record(output))
    if isinstance(output, GateResult):
        return _row_of_result(output)
    raise BadInputError(f"output={output!r:.80}: {OUTPUTS}")


def _row_of_record(record: Record) -> _Row:
    if not LEAST_COST <= record.cost_estimate <= MOST_COST:
        raise _impossible_cost(record.id, record.cost_estimate)
    p = nan if record.propensity is None else record.propensity
    drawn = record.error is not None and record.verified is not False
    # A record does not state that it was selected and no verdict came, except where the propensity
    # is 1: those were selected.
    selected = drawn or p == 1.0
    label = nan if record.error is None else float(record.error)
    raw = _raw(record.signals, log(record.cost_estimate))._replace(features=record.features)
    value = 1.0 - label if record.value is None else record.value
    return _Row(record.id, raw, p, selected, drawn, label, value)


def _row_of_result(result: GateResult) -> _Row:
    decision, outcome = result.decision, result.outcome
    label = None if outcome is None else outcome.error
    grade = None if outcome is None else outcome.grade
    return _Row(
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
