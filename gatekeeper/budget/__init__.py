"""The budget, the ledger that enforces it under concurrency, and its cap in a replay."""

from gatekeeper.budget.affordable import affordable
from gatekeeper.budget.budget import Budget, Unit
from gatekeeper.budget.ledger import Hold, Ledger

__all__ = ["Budget", "Hold", "Ledger", "Unit", "affordable"]
