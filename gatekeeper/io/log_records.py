"""The outputs of a gate's log as records."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf, nan
from typing import Any

from gatekeeper.budget import Unit
from gatekeeper.io.record_rows import Row
from gatekeeper.log.run import Run
from gatekeeper.types import GateResult, Outcome

__all__ = ["rows_of_run"]


def rows_of_run(run: Run) -> Iterator[Row]:
    """One row per output, in the order of the decisions."""
    for result in run.results.values():
        yield _row(result, run.cost_estimates[result.id], result.id in run.audited, run)


def _row(result: GateResult, cost_estimate: float, external: bool, run: Run) -> Row:
    h, decision, outcome = result.signals, result.decision, result.outcome
    known = outcome is not None and outcome.error is not None
    optional: dict[str, Any] = {
        "propensity": decision.propensity,
        "verified": float(known and not external),
    }
    if decision.stratum is not None:
        optional["stratum"] = decision.stratum
    cost = error = nan
    if outcome is not None and outcome.error is not None:
        error = float(outcome.error)
        charge = _external_cost(outcome, run.ledger.budget.unit) if external else outcome.cost
        # A charge of 0 is not the cost of a verification.
        cost = charge if charge is not None and 0 < charge < inf else nan
    return Row(result.id, h.h1, h.h2, h.h3, cost_estimate, cost, error, optional, {})


def _external_cost(outcome: Outcome, unit: Unit) -> float | None:
    """What the gate would have been charged for an external verdict."""
    if unit == "verifications":
        return 1.0
    return outcome.cost if unit == "usd" else outcome.cost or outcome.seconds
