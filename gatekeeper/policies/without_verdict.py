"""What verifications without a verdict would have cost, which is left for later candidates."""

from __future__ import annotations

from typing import Any

__all__ = ["WithoutVerdict"]

KEPT = 10_000  # the latest ones, whose outputs may be verified again


class WithoutVerdict:
    """An account of verifications that ended without a verdict.

    Their cost is given back as verdicts come: each verdict gives back at most its own cost. So a
    verifier that fails now and then leaves its budget to other candidates, and one that gives no
    verdict at all, or not yet, gets no further candidates in place of those that it had.

    Attributes
    ----------
    given_back
        The cost that others may take, at least 0.
    """

    def __init__(self) -> None:
        self.given_back = 0.0
        self._total = 0.0
        self._costs: dict[str, float] = {}  # id -> expected cost, latest last

    def add(self, id_: str, cost: float) -> None:
        """Note a verification of this expected cost that has ended without a verdict."""
        self._costs[id_] = cost
        self._total += cost
        if len(self._costs) > KEPT:
            del self._costs[next(iter(self._costs))]

    def take(self, id_: str) -> float | None:
        """The expected cost of an output that has a verdict now; None if it was not without."""
        cost = self._costs.pop(id_, None)
        if cost is not None:
            self._total = self._total - cost if self._costs else 0.0
            self.given_back = min(self.given_back, self._total)
        return cost

    def give_back(self, cost: float) -> None:
        """Give back what a verdict of this cost allows."""
        self.given_back = min(self.given_back + cost, self._total)

    def state(self) -> list[Any]:
        return [self.given_back, self._total, dict(self._costs)]

    def restore(self, state: list[Any]) -> None:
        self.given_back, self._total, costs = state
        self._costs = dict(costs)
