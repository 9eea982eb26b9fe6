"""`diagnose`: from records to a `Diagnosis`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import nan

import numpy as np

from gatekeeper.analysis.diagnosis.data import Diagnosis, Thresholds
from gatekeeper.analysis.diagnosis.odds import odds_of
from gatekeeper.analysis.diagnosis.replays import (
    gate_conditions,
    replay_partitions,
    why_no_replay,
)
from gatekeeper.analysis.diagnosis.rules import conclude
from gatekeeper.analysis.diagnosis.strata import (
    base_rates,
    dispersion_of,
    label_weights,
    stratum_figures,
)
from gatekeeper.analysis.off_policy import without_unknown
from gatekeeper.analysis.vectorised import fixed_score
from gatekeeper.arguments import check_beta, check_count
from gatekeeper.errors import BadInputError
from gatekeeper.io.records import RecordTable
from gatekeeper.policies import T0
from gatekeeper.stats.strata import strata_of
from gatekeeper.wording import counted, plural

__all__ = ["diagnose", "orders_for"]

ORDERS = 10
MANY = 300_000  # records: one order differs little from the next, and takes seconds
ORDERS_OF_MANY = 3


def diagnose(
    table: RecordTable,
    *,
    beta: float = 0.2,
    strata: int = 4,
    warmup: int = T0,
    orders: int | None = None,
    on_progress: Callable[[int], None] = lambda done: None,
) -> Diagnosis:
    """Compare the cost strata of the records, and replay policies with and without strata.

    The figures of the strata and HGA's gate are those of the order given. In a replay a candidate
    without a signal is drawn with probability β, as the policies do.

    Parameters
    ----------
    table
        Records, or a run's log; labels may be missing.
    beta
        Budget at which policies are replayed, a share of the full cost in (0, 1).
    strata
        K >= 2, how many cost strata: quantiles of ĉ over the warm-up; at most its length, or T0.
    warmup
        How many records come first, to fit the score.
    orders
        In how many orders of the records partitions are replayed: seeds 0 … orders - 1. Default:
        `orders_for`.
    on_progress
        Called with the number of orders done since the last call.

    Returns
    -------
    Diagnosis

    Raises
    ------
    BadInputError
        There are no records, or an argument is out of range.
    """
    check_beta(beta)
    check_count("strata", strata, least=2)
    if strata > (most := max(warmup, T0)):
        raise BadInputError(
            f"strata={strata!r}: their edges are quantiles of the costs in the warm-up; give at "
            f"most {most}"
        )
    orders = orders_for(len(table)) if orders is None else check_count("orders", orders)
    check_count("warmup", warmup)
    if not len(table):
        raise BadInputError("there are no records to diagnose")
    table, left_out = _usable(table)
    found = _figures(table, beta, strata, warmup=warmup, orders=orders)
    if found.absent is None:
        partitions, sweep = replay_partitions(table, beta, strata, warmup, orders, on_progress)
        gate = gate_conditions(table, beta, strata, warmup)
        found = replace(found, partitions=partitions, sweep=sweep, gate=gate)
    thresholds, conclusion = conclude(found)
    return replace(
        found, notes=left_out + found.notes, thresholds=thresholds, conclusion=conclusion
    )


def _usable(table: RecordTable) -> tuple[RecordTable, list[str]]:
    """The table without records and labels that would only mislead, and notes on those."""
    notes: list[str] = []
    known = without_unknown(table)
    if without := len(table) - len(known):
        are = plural(without, "is", "are")
        notes.append(f"{counted(without, 'record')} without a label or a cost {are} left out")
        table = known
    external = ~np.isnan(table.error) & ~table.drawn
    if external.any() and np.isnan(table.error).any():
        outside = counted(external.sum(), "external verdict")
        are = plural(external.sum(), "which is", "which are")
        notes.append(f"left out: {outside}, {are} no random sample")
        table = replace(table, error=np.where(external, nan, table.error))
    return table, notes


def _figures(
    table: RecordTable, beta: float, strata: int, *, warmup: int, orders: int
) -> Diagnosis:
    """The figures of the strata and their tests, without a replay and a conclusion."""
    s = fixed_score(table.h, table.cost_estimate, table.error, warmup=warmup)
    k = np.where(np.isnan(s), -1, strata_of(table.cost_estimate, strata, warmup=warmup))
    w, chosen, notes = label_weights(table, warmup)
    after = np.arange(len(table)) >= warmup
    figures = [stratum_figures(table, after & (k == j), s, w) for j in range(strata)]
    dispersion, corrected, dispersion_p = dispersion_of(figures)
    spread, base_p = base_rates(figures)
    return Diagnosis(
        records=len(table),
        warmup=min(warmup, len(table)),
        without_signal=int((after & (k < 0)).sum()),
        beta=beta,
        orders=orders,
        strata=figures,
        overall=stratum_figures(table, after & (k >= 0), s, w),
        dispersion=dispersion,
        dispersion_corrected=corrected,
        dispersion_p=dispersion_p,
        base_rate_spread=spread,
        base_rate_p=base_p,
        gate=None,
        partitions=None,
        sweep=None,
        absent=why_no_replay(table, warmup),
        odds=odds_of(table, beta, strata, warmup=warmup),
        chosen=chosen,
        notes=notes,
        thresholds=Thresholds.UNKNOWN,
        conclusion="",
    )


def orders_for(n: int) -> int:
    """The default number of orders in which n records are replayed."""
    return ORDERS if n <= MANY else ORDERS_OF_MANY
