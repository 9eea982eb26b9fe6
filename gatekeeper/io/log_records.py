"""The outputs of a gate's log as records."""

from __future__ import annotations

import numpy as np

from gatekeeper.io.record_table import RecordTable
from gatekeeper.log.run_table import RunTable

__all__ = ["table_of_run"]


def table_of_run(run: RunTable) -> RecordTable:
    """One record per output, in the order of the decisions."""
    unpaid = (run.cost <= 0.0) | (run.cost == np.inf)  # 0 is not the cost of a verification
    return RecordTable(
        run.ids,
        run.h,
        run.cost_estimate,
        np.where(unpaid, np.nan, run.cost) if unpaid.any() else run.cost,  # memory
        run.error,
        run.stratum if (run.stratum >= 0).any() else None,
        propensity=run.propensity,
        verified=(run.labelled & ~run.external).astype(np.float64),
        features=run.features or None,
        value=None if np.isnan(run.value).all() else run.value,
        selected=run.selected,
    )
