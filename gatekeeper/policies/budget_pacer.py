"""Budget pacing: the price at which β of all costs is spent, evenly over the stream."""

from __future__ import annotations

from bisect import bisect_left
from math import sqrt
from typing import Any

import numpy as np

from gatekeeper.types import FloatArray

__all__ = ["BudgetPacer", "propensity_at"]

AHEAD = 0.03  # share to aim past the cap, which the ledger keeps: unspent budget finds nothing
UNSURE = 1.0  # standard errors of the total cost to aim past it as well
LEAD = 5.0  # verifications to be ahead by at the end: chance varies the count by a few
SMOOTH, SMOOTH_VERIFIED = 50, 5  # candidates plus verifications over which a gap is made up
SLOWEST = 0.3  # of β: one huge cost must not stop everything
TIE = 1e-6  # values this close, relatively, are ties, which are drawn at random
PENDING = 10_000  # verifications under way whose expected cost is kept: the latest ones


class BudgetPacer:
    """An account of what may be spent, and the price that keeps spending on it.

    Every candidate adds β times its expected cost to the account. A verification takes its
    expected cost, corrected once the true cost is known. The price is a quantile of the values of
    recent candidates: those above it make up the share of the cost to spend next.

    Parameters
    ----------
    beta
        Share of the full cost to spend, in (0, 1).
    horizon
        Candidates to come. The cap is then on their total, and a refusal means that it is used up.
        None: the cap grows with the stream, and a refusal means that this account is ahead of it.
    past
        Aim slightly past the cap, so that all of it is used. False: aim at it; a little may be
        left over.
    """

    def __init__(self, beta: float, horizon: int | None, *, past: bool = True) -> None:
        self.beta, self.horizon, self.past = beta, horizon, past
        self.mean = 1.0  # expected cost of a candidate
        self.rate = beta  # share of the cost to spend next, in [0, 1]
        self._seen = 0
        self._allowed = self._spent = self._withheld = 0.0
        self._squares = self._settled = self._missed = 0.0  # Σ e², and of settled ones, Σ (c - e)²
        self._pending: dict[str, float] = {}  # id -> expected cost, latest last
        self._values = [0.0]  # of recent candidates, descending
        self._shares = [1.0]  # of their cost that those down to here make up

    def set_prices(self, value: FloatArray, cost: FloatArray) -> None:
        """Set the price scale from value and expected cost of recent candidates, (n,) each."""
        value = value * (1.0 + TIE * (np.arange(value.size) + 0.5) / value.size)
        order = np.argsort(-value, kind="stable")
        self._values = value[order].tolist()
        self._shares = (np.cumsum(cost[order]) / cost.sum()).tolist()
        self.mean = float(cost.mean())

    def price(self, cost: float) -> float:
        """Add a candidate of this expected cost; return the value that it has to exceed."""
        smooth = SMOOTH + SMOOTH_VERIFIED / self.beta
        if self.horizon is not None:
            smooth = min(smooth, max(self.horizon - self._seen, 0) + 1)
        rate = self.beta + self._left() / (smooth * self.mean)
        self.rate = min(max(rate, SLOWEST * self.beta), 1.0)
        self._seen += 1
        self._allowed += self.beta * cost  # after the rate: a costly one must not pay for itself
        self._squares += cost * cost
        i = bisect_left(self._shares, self.rate)
        return self._values[i] if i < len(self._values) and self.rate < 1.0 else 0.0

    def charge(self, id_: str, cost: float) -> None:
        """Charge the expected cost of a verification that begins."""
        self._pending[id_] = cost
        self._spent += cost
        if len(self._pending) > PENDING:
            del self._pending[next(iter(self._pending))]

    def settle(self, id_: str, cost: float) -> None:
        """Replace the expected cost by the true one. Ignored for an id that was not charged."""
        if id_ in self._pending:
            expected = self._pending.pop(id_)
            more = cost - expected
            self._settled += expected * expected
            self._missed += more * more
            self._spent += more
            self._allowed += self.beta * more

    def refuse(self) -> None:
        """Note that the budget refused a verification that the price allowed."""
        if self.horizon is None:
            self._withheld += max(self._left(), 0.0)

    def _left(self) -> float:
        lead = LEAD * self.mean
        if self.horizon is not None:
            lead *= min(self._seen / self.horizon, 1.0)
        if self.past:
            variance = self._squares * self._missed / (self._settled or 1.0)
            lead += AHEAD * self._allowed + UNSURE * self.beta * sqrt(variance)
        return self._allowed + lead - self._withheld - self._spent

    def state(self) -> dict[str, Any]:
        return {
            "mean": self.mean,
            "rate": self.rate,
            "seen": self._seen,
            "account": [self._allowed, self._spent, self._withheld],
            "errors": [self._squares, self._settled, self._missed],
            "pending": dict(self._pending),
            "values": list(self._values),
            "shares": list(self._shares),
        }

    def restore(self, state: dict[str, Any]) -> None:
        self.mean, self.rate, self._seen = state["mean"], state["rate"], state["seen"]
        self._allowed, self._spent, self._withheld = state["account"]
        self._squares, self._settled, self._missed = state["errors"]
        self._pending = dict(state["pending"])
        self._values, self._shares = list(state["values"]), list(state["shares"])


def propensity_at(value: float, price: float) -> float:
    """Probability in [0, 1] of verifying a value above 0 at this price: 0 or 1 except at ties."""
    return min(max((value * (1.0 + TIE) - price) / (TIE * value), 0.0), 1.0)
