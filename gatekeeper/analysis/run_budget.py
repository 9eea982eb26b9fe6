"""The budget of a run, as a share of the cost of verifying everything after its warm-up."""

from __future__ import annotations

from gatekeeper.log.run_table import RunTable
from gatekeeper.types import Reason

__all__ = ["USUAL", "share_of"]

USUAL = 0.2  # for records, and for a run whose budget is no such share


def share_of(run: RunTable | None) -> float:
    """The share of the log's budget, or of its policy, in (0, 1)."""
    if run is None:
        return USUAL
    budget, warmup = run.ledger.budget, int(run.of_reason(Reason.WARMUP).sum())
    shares, rest = [budget.fraction], max(len(run.ids), budget.horizon or 0) - warmup
    if budget.total is not None and budget.unit == "verifications" and rest:
        shares.append((budget.total - warmup) / rest)
    if shares == [None]:
        shares.append(run.settings["policy"].get("beta"))
    return min((s for s in shares if isinstance(s, float) and 0.0 < s < 1.0), default=USUAL)
