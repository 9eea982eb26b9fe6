"""The outputs of a gate's log as records."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf, nan
from typing import Any

from gatekeeper.budget import Unit
from gatekeeper.io.record_rows import Row
from gatekeeper.log.fold import Output
from gatekeeper.log.run import Run
from gatekeeper.types import Outcome

__all__ = ["rows_of_run"]


def rows_of_run(run: Run) -> Iterator[Row]:
    """One row per output, in the order of the decisions."""
    for output in run.outputs.values():
        yield _row(output, run.ledger.budget.unit)


def _row(output: Output, unit: Unit) -> Row:
    candidate, decision, outcome = output.candidate, output.decision, output.outcome
    h = candidate.signals
    optional: dict[str, Any] = {
        "propensity": decision.propensity,
        "verified": float(outcome is not None and not output.external),
    }
    if decision.stratum is not None:
        optional["stratum"] = decision.stratum
    cost = error = nan
    if outcome is not None and outcome.error is not None:
        error = float(outcome.error)
        if outcome.value is not None:
            optional["value"] = outcome.value
        charge = _external_cost(outcome, unit) if output.external else outcome.cost
        # A charge of 0 is not the cost of a verification.
        cost = charge if charge is not None and 0 < charge < inf else nan
    estimate = candidate.cost_estimate
    return Row(
        candidate.id, h.h1, h.h2, h.h3, estimate, cost, error, optional, {}, candidate.features
    )


def _external_cost(outcome: Outcome, unit: Unit) -> float | None:
    """What the gate would have been charged for an external verdict."""
    if unit == "verifications":
        return 1.0
    return outcome.cost if unit == "usd" else outcome.cost or outcome.seconds
