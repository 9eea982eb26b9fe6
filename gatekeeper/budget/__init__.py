"""The budget, the ledger that enforces it under concurrency, and its cap in a replay."""

from gatekeeper.budget.affordable import affordable
from gatekeeper.budget.budget import Budget, Unit
from gatekeeper.budget.ledger import Hold, Ledger, is_chargeable
from gatekeeper.budget.share import DEFAULT_FRACTION, budget_text, fraction_of
from gatekeeper.budget.shared import SharedLedger

__all__ = [
    "DEFAULT_FRACTION",
    "Budget",
    "Hold",
    "Ledger",
    "SharedLedger",
    "Unit",
    "affordable",
    "budget_text",
    "fraction_of",
    "is_chargeable",
]
