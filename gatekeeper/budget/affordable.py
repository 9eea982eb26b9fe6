"""The cap of the budget in a replay, where every cost is known."""

from __future__ import annotations

import numpy as np

from gatekeeper.types import BoolArray, FloatArray

__all__ = ["affordable"]


def affordable(wanted: BoolArray, costs: FloatArray, cap: float) -> BoolArray:
    """Which of the wanted candidates fit a cap, in stream order; one that does not is skipped.

    Every cost is known. The rule is in docs/reference/policies.md, "Budget in
    replay".

    Parameters
    ----------
    wanted
        Mask of shape (n,).
    costs
        Above 0, shape (n,), in the unit of `cap`.

    Returns
    -------
    array
        Mask of shape (n,), true for those that are paid for.
    """
    fits = np.zeros(wanted.size, dtype=bool)
    at = np.flatnonzero(wanted)
    spent_by = np.cumsum(costs[at])  # one after the other, as a loop would add them up
    within = int(np.searchsorted(spent_by, cap, side="right"))
    fits[at[:within]] = True
    spent = float(spent_by[within - 1]) if within else 0.0
    late = at[within:]
    for i, cost in zip(late.tolist(), costs[late].tolist(), strict=True):
        if spent + cost <= cap:
            spent += cost
            fits[i] = True
    return fits
