"""Budget pacing: the price at which a share β of all costs is spent, evenly over the stream."""

from __future__ import annotations

from bisect import bisect_left
from math import inf, sqrt
from typing import Any

import numpy as np

from gatekeeper.policies.without_verdict import WithoutVerdict
from gatekeeper.types import FloatArray

__all__ = ["BudgetPacer", "propensity_at"]

LEAD, LAST = 5.0, 15.0  # verifications to be ahead by in the end, among so many candidates, ...
UNSURE = 1.0  # ... and both by as many as these standard errors of the cap would pay for
SPARE = 2.0  # mean costs to stay behind by, besides the highest cost so far
AHEAD = 0.03  # share by which to aim above a growing cap, too: refusals show where the cap is
SMOOTH, SMOOTH_VERIFIED = 50, 5  # candidates plus verifications over which a gap is made up
SLOWEST = 0.3  # of the rate that lasts to the end: one huge cost must not stop everything
TIE = 1e-6  # values this close, relatively, are ties, which are drawn at random
DOUBLINGS = 60  # of what a refusal subtracts: more than any account holds
PENDING = 10_000  # verifications under way whose expected cost is kept: the latest ones


class BudgetPacer:
    """An account of what may be spent, and the price that keeps the spending to it.

    Every candidate adds β times its expected cost to the account. A verification takes its
    expected cost, corrected once the true cost is known. The price is a quantile of the values of
    recent candidates: those above it make up the share of the cost to spend next.

    A difference between the account and the spending is corrected over a window of candidates,
    which shrinks to those still to come. So with a known horizon the whole budget is spent, and the
    last tenth of the stream gets its share. (Solving for the price again at every candidate, from
    what remains: Jasin and Kumar 2012, "A re-solving heuristic with bounded revenue loss"; Vera and
    Banerjee 2021, "The Bayesian prophet".) Only the last few candidates may take more than the
    account has. Without a horizon, spending stays slightly ahead of the growing cap, which costs an
    occasional refusal.

    Parameters
    ----------
    beta
        Share of the full cost to spend, in (0, 1).
    horizon
        Candidates to come. The cap is then on their total, and a refusal means that it is used up.
        None: the cap grows with the stream, and a refusal means that this account is ahead of it.
    use_up
        Propose more among the last candidates than the account has, so that nothing is left. False:
        a little may be left.
    spare
        Stay behind, so that the cap rarely refuses: by the highest cost so far and two mean ones;
        with a horizon by what is to be spent on the candidates to come, if that is less.
    """

    def __init__(
        self, beta: float, horizon: int | None, *, use_up: bool = True, spare: bool = False
    ) -> None:
        self.beta, self.horizon, self.use_up, self.spare = beta, horizon, use_up, spare
        self.mean = 1.0  # expected cost of a candidate
        self.rate = beta  # share of the cost to spend next, in [0, 1]
        self._seen = 0
        self._allowed = self._spent = self._withheld = 0.0
        self._refusals = 0  # in a row
        self._squares = 0.0  # Σ e² of the expected costs
        self._settled = 0  # verifications whose cost is known
        self._expected = self._missed = 0.0  # of these, Σ e² and Σ (c - e)²
        self._costliest = 0.0
        self._pending: dict[str, float] = {}  # id -> expected cost, latest last
        self._without = WithoutVerdict()
        self._values = [0.0]  # of recent candidates, descending
        self._shares = [1.0]  # cumulative share of their cost

    def set_prices(self, value: FloatArray, cost: FloatArray) -> None:
        """Set the price scale from value and expected cost of recent candidates, (n,) each."""
        value = value * (1.0 + TIE * (np.arange(value.size) + 0.5) / value.size)
        order = np.argsort(-value, kind="stable")
        self._values = value[order].tolist()
        self._shares = (np.cumsum(cost[order]) / cost.sum()).tolist()
        self.mean = float(cost.mean())

    def price(self, cost: float) -> float:
        """Add a candidate of this expected cost; return the value that it has to exceed."""
        smooth, lasts = SMOOTH + SMOOTH_VERIFIED / self.beta, self.beta
        left = self._left() / self.mean
        if self.horizon is not None:
            to_come = self._to_come()
            smooth = min(smooth, to_come)
            lasts = min(max(self.beta + left / to_come, 0.0), self.beta)
        self.rate = min(max(self.beta + left / smooth, SLOWEST * lasts), 1.0)
        self._seen += 1
        self._allowed += self.beta * cost  # after the rate: a costly one must not pay for itself
        self._squares += cost * cost
        i = bisect_left(self._shares, self.rate)
        return self._values[i] if i < len(self._values) and self.rate < 1.0 else 0.0

    def charge(self, id_: str, cost: float) -> None:
        """Charge the expected cost of a verification that begins."""
        self._pending[id_] = cost
        self._spent += cost
        self._refusals = 0
        if len(self._pending) > PENDING:
            del self._pending[next(iter(self._pending))]

    def release(self, id_: str) -> None:
        """Note that a verification ended without a verdict. See `WithoutVerdict`."""
        if id_ in self._pending:
            self._without.add(id_, self._pending.pop(id_))

    def settle(self, id_: str, cost: float) -> None:
        """Replace the expected cost by the true one. Ignored for an id that was not charged."""
        expected = self._pending.pop(id_, None)
        if expected is None:
            expected = self._without.take(id_)
        if expected is not None:
            more = cost - expected
            self._settled += 1
            self._costliest = max(self._costliest, cost)
            self._expected += expected * expected
            self._missed += more * more
            self._spent += more
            self._allowed += self.beta * more
            self._without.give_back(cost)

    def refuse(self) -> None:
        """Note that the budget refused a verification that the price allowed.

        Without a horizon the account is ahead of the growing cap. With one, less is left than the
        account shows, or this verification costs more than expected: each refusal in a row
        subtracts twice as much as the one before, the first one the cost of one verification.
        """
        off = left = self._account() if self.spare else self._left()
        if self.horizon is not None:
            left += self.beta * self.mean * self._to_come()
            off = min(2.0 ** min(self._refusals, DOUBLINGS) * self.mean, left)
            self._refusals += 1
        self._withheld += max(off, 0.0)

    def _to_come(self) -> int:
        assert self.horizon is not None
        return max(self.horizon - self._seen, 1)

    def _account(self) -> float:
        return self._allowed - self._withheld - self._spent + self._without.given_back

    def _left(self) -> float:
        left = self._account()
        if self.spare:
            to_come = inf if self.horizon is None else self.beta * self.mean * self._to_come()
            return left - min(self._costliest + SPARE * self.mean, to_come)
        if self.horizon is None:
            return left + AHEAD * self._allowed + LEAD * self.mean
        if not self.use_up:
            return left
        more = UNSURE * self._standard_error()
        ends = self._to_come() * self.mean <= LAST * self.mean + more
        return left + (LEAD * self.mean + more) * ends

    def _standard_error(self) -> float:
        """Standard error of what is allowed so far: costs vary, and their level is estimated from
        settled ones.
        """
        if not self._expected:  # nothing is settled, or costs are so small that squares vanish
            return 0.0
        variance = self._squares * (self._missed / self._expected)
        return self.beta * sqrt(variance * (1.0 + self._seen / self._settled))

    def state(self) -> dict[str, Any]:
        return {
            "mean": self.mean,
            "rate": self.rate,
            "seen": self._seen,
            "refusals": self._refusals,
            "account": [self._allowed, self._spent, self._withheld],
            "errors": [self._squares, self._settled, self._expected, self._missed],
            "costliest": self._costliest,
            "pending": dict(self._pending),
            "without": self._without.state(),
            "values": list(self._values),
            "shares": list(self._shares),
        }

    def restore(self, state: dict[str, Any]) -> None:
        self.mean, self.rate, self._seen = state["mean"], state["rate"], state["seen"]
        self._allowed, self._spent, self._withheld = state["account"]
        self._refusals = state["refusals"]
        self._squares, self._settled, self._expected, self._missed = state["errors"]
        self._costliest = state["costliest"]
        self._pending = dict(state["pending"])
        self._without.restore(state["without"])
        self._values, self._shares = list(state["values"]), list(state["shares"])


def propensity_at(value: float, price: float) -> float:
    """Probability in [0, 1] of verifying a value above 0 at this price: 0 or 1 except at ties."""
    return min(max((value * (1.0 + TIE) - price) / (TIE * value), 0.0), 1.0)
