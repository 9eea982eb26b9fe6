"""The outputs of a gate's log as records."""

from __future__ import annotations

from math import inf, nan

import numpy as np

from gatekeeper.budget import Unit
from gatekeeper.io.record_table import RecordTable
from gatekeeper.log.run import Run
from gatekeeper.types import Outcome

__all__ = ["table_of_run"]


def table_of_run(run: Run) -> RecordTable:
    """One record per output, in the order of the decisions.

    Column by column: that is quicker than record by record (benchmarks/core.py, table d).
    """
    outputs, unit = list(run.outputs.values()), run.ledger.budget.unit
    candidates, decisions = [o.candidate for o in outputs], [o.decision for o in outputs]
    signals, n = [c.signals for c in candidates], len(outputs)
    strata = [d.stratum for d in decisions]
    has_strata = any(k is not None for k in strata)
    cost, error, value, verified = np.full(n, nan), np.full(n, nan), np.full(n, nan), np.zeros(n)
    for i, output in enumerate(outputs):
        outcome = output.outcome
        if outcome is None:
            continue
        verified[i] = not output.external
        if outcome.error is not None:
            charge = _external_cost(outcome, unit) if output.external else outcome.cost
            if charge is not None and 0 < charge < inf:  # 0 is not the cost of a verification
                cost[i] = charge
            error[i] = outcome.error
            value[i] = nan if outcome.value is None else outcome.value
    names = sorted({name for c in candidates if c.features for name in c.features})
    return RecordTable(
        [c.id for c in candidates],
        np.array([(h.h1, h.h2, h.h3) for h in signals], dtype=np.float64),
        np.array([c.cost_estimate for c in candidates], dtype=np.float64),
        cost,
        error,
        np.array([-1 if k is None else k for k in strata], dtype=np.intp) if has_strata else None,
        propensity=np.array([d.propensity for d in decisions], dtype=np.float64),
        verified=verified,
        features={k: np.array([c.features.get(k, nan) for c in candidates]) for k in names} or None,
        value=None if np.isnan(value).all() else value,
    )


def _external_cost(outcome: Outcome, unit: Unit) -> float | None:
    """What the gate would have been charged for an external verdict."""
    if unit == "verifications":
        return 1.0
    return outcome.cost if unit == "usd" else outcome.cost or outcome.seconds
