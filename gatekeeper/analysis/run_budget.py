"""The budget of a run, as a share of the cost of verifying everything after its warm-up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from gatekeeper.log.run_table import RunTable
from gatekeeper.types import Reason

__all__ = ["USUAL", "share_of", "share_of_costs"]

USUAL = 0.2  # for records, and for a run whose budget is no such share


def share_of_costs(budget: Mapping[str, Any], warmup: float, rest: float) -> float | None:
    """The smaller of a budget's two limits, `fraction` and `total`.

    Parameters
    ----------
    budget
        The settings of a run's budget; `total` in its unit, the warm-up included.
    warmup, rest
        The cost of verifying the warm-up, and that of verifying all later outputs.

    Returns
    -------
    float or None
        In (0, 1); None for a budget that verifies everything, or nothing after the warm-up.
    """
    fraction, total = budget.get("fraction"), budget.get("total")
    shares = [] if fraction is None else [float(fraction)]
    if total is not None and rest > 0.0:
        shares.append((total - warmup) / rest)
    share = min(shares, default=1.0)
    return share if 0.0 < share < 1.0 else None


def share_of(run: RunTable | None) -> float:
    """The share of a log's budget, or of its policy where only that has one; in (0, 1).

    `USUAL` for records, and for a run that verifies everything. A running gate's outputs count up
    to its horizon. An output whose cost is unknown costs the mean of the others.
    """
    if run is None:
        return USUAL
    known = ~np.isnan(run.cost)
    mean = float(run.cost[known].mean()) if known.any() else 1.0
    warmup = run.of_reason(Reason.WARMUP)
    count = int(warmup.sum())
    rest = max(len(run.ids), run.ledger.budget.horizon or 0) - count
    spent = float(np.where(known, run.cost, mean)[warmup].sum())
    budget = run.settings["budget"]
    share = share_of_costs(budget, spent, rest * mean)
    if share is None and budget.get("fraction") is None:
        share = run.settings["policy"].get("beta")
    return share if isinstance(share, float) and 0.0 < share < 1.0 else USUAL
