"""The budget, the ledger that enforces it under concurrency, and its cap in a replay."""

from gatekeeper.budget.affordable import affordable
from gatekeeper.budget.budget import Budget, Unit
from gatekeeper.budget.ledger import Hold, Ledger, is_chargeable
from gatekeeper.budget.share import USUAL_SHARE, share_beside
from gatekeeper.budget.shared import SharedLedger

__all__ = [
    "USUAL_SHARE",
    "Budget",
    "Hold",
    "Ledger",
    "SharedLedger",
    "Unit",
    "affordable",
    "is_chargeable",
    "share_beside",
]
