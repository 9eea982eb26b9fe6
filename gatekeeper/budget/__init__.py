"""The budget, and the ledger that keeps to it whatever happens at once."""

from gatekeeper.budget.affordable import affordable
from gatekeeper.budget.budget import Budget, Unit
from gatekeeper.budget.ledger import Hold, Ledger

__all__ = ["Budget", "Hold", "Ledger", "Unit", "affordable"]
