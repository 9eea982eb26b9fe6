"""Amounts as the ledger counts them.

A status has floats. Their sums and products are rounded, so that `spent + held <= cap` can fail by
the last digit where the ledger is exact.
"""

from __future__ import annotations

__all__ = ["ticks"]


def ticks(amount: float) -> int:
    """Billionths of the budget's unit."""
    return round(amount * 10**9)
