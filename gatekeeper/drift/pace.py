"""The test of the pace: whether a policy still verifies as many outputs as the budget pays for."""

from __future__ import annotations

from typing import Any

__all__ = ["UNDERSPENT", "PaceTest"]

ALPHA = 0.002  # probability of a false alarm at any time
SLOW = 0.7  # of its usual rate: below that it underspends
STAKES = (0.3, 0.6, 0.9)  # κ, share of the wealth on "not verified"
PATIENCE = 1000  # outputs over which half of the wealth is bet
KNOWN = 100  # outputs that the budget's rate is worth beside the policy's own
UNDERSPENT = "fewer outputs verified than the budget pays for"


class PaceTest:
    """Becomes `underspent` once outputs are verified at less than 70 % of the usual rate.

    Null hypothesis: given any past, P(verified | past) >= 0.7 p, where p is the policy's own rate
    so far, which starts as the budget's. A proposal that the budget refused counts as verified,
    because that policy does not underspend. An e-process as in `Monitor`, with a = 1 for a verified
    output: a share κ bet on a = 0 becomes 1 - κ + κ (1 - a) / (1 - 0.7 p) of itself.

    Parameters
    ----------
    rate
        The budget's, in (0, 1]; None where it has none: the test then begins after 100 outputs.

    References
    ----------
    Waudby-Smith and Ramdas (2024), "Estimating means of bounded random variables by betting".
    """

    def __init__(self, rate: float | None) -> None:
        self._begin = KNOWN if rate is None else 0  # the first output that is bet on
        self._known = 0 if rate is None else KNOWN
        self._known_verified = self._known * (rate or 0.0)
        self.reset()

    def reset(self) -> None:
        """Start again, without the observations so far."""
        self._seen = self._verified = 0
        self._wealth = (0.0, 0.0, 0.0)  # by κ
        self.underspent = False

    def observe(self, verified: bool) -> None:
        """Bet on one more output; with "verified" as defined above."""
        if self.underspent:
            return
        seen = self._seen
        t = seen - self._begin
        if t >= 0:
            later = t + 1 + PATIENCE
            begun = PATIENCE / ((t + PATIENCE) * later)
            gain = -1.0
            if not verified:
                p = (self._known_verified + self._verified) / (self._known + seen)
                gain += 1.0 / (1.0 - SLOW * p)
            (a, b, c), (x, y, z) = self._wealth, STAKES  # written out: every output takes this
            a, b, c = self._wealth = (
                (a + begun) * (1.0 + x * gain),
                (b + begun) * (1.0 + y * gain),
                (c + begun) * (1.0 + z * gain),
            )
            self.underspent = (PATIENCE / later + (a + b + c) / 3.0) * ALPHA >= 1.0
        self._seen = seen + 1
        self._verified += verified

    def state(self) -> list[Any]:
        """A snapshot of values that `json` takes."""
        return [self._seen, self._verified, list(self._wealth), self.underspent]

    def restore(self, state: list[Any]) -> None:
        self._seen, self._verified, wealth, self.underspent = state
        a, b, c = wealth
        self._wealth = (a, b, c)
