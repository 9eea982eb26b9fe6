"""Verdicts on a loaded machine: a sandbox reports that it was too busy to tell."""

from __future__ import annotations

from collections.abc import Callable

from gatekeeper.sandbox.control import DISTURBED
from gatekeeper.types import Outcome

__all__ = ["settled"]

TRIES = 4  # an outcome that stays the same is due to the candidate


def settled(verify: Callable[[], Outcome]) -> Outcome:
    """The outcome of a verification, which is tried again while the machine is overloaded."""
    for _ in range(TRIES):
        outcome = verify()
        if not (outcome.detail.startswith("overloaded") or DISTURBED in outcome.detail):
            break
    return outcome
