"""The test for drift: a sequential test of labels against their predictions.

Testing by betting, started again at every label so that a late change is noticed, too: a mixture
over the start times.
"""

from __future__ import annotations

from typing import Any

from gatekeeper.errors import BadInputError
from gatekeeper.types import Label

__all__ = ["ALPHA", "TOLERANCE", "Monitor"]

ALPHA = 0.01  # probability of a false alarm, ever, on a stream that follows its predictions
# By how much predictions may be off, because they rest on few labels. The fits of policies treat
# 10 % of the labels as wrong, so they never predict less; with a smaller tolerance a stream without
# errors would be drift.
TOLERANCE = 0.1
STAKES = (0.1, 0.25, 0.5)  # κ, share of the wealth on the next label: for small changes and large
PATIENCE = 100  # labels over which half the wealth comes into play


class Monitor:
    """Becomes `drifted` once labels differ from their predictions by more than chance explains.

    Null hypothesis: whatever came before, P(y_t = 1 | past) lies within δ of the prediction p_t,
    which was made before y_t was known. Guarantee: under it P(drifted, ever) <= α, however long
    the stream, whenever one looks, whatever chose which outputs were verified. After `reset` the
    same holds for what follows, so k resets may cause k + 1 false alarms of α each.

    It does not guarantee that a change is noticed: one of less than δ may never be, others the
    later the smaller they are. It cannot distinguish a stream that changed from predictions that
    were bad from the start.

    Method: a wealth of 1 is bet on labels. A share κ of it on "wrong" at odds of 1 / (p + δ)
    becomes 1 - κ + κ y / (p + δ) of itself, which under the null is no gain on average; on "right"
    the odds are 1 / (1 - p + δ). A share w_t of the wealth, Σ w_t <= 1, is bet for the first time
    on label t, divided among both sides and every κ. The wealth reaches 1 / α with a probability
    of at most α (Ville's inequality).

    Parameters
    ----------
    alpha
        α, in (0, 1).
    tolerance
        δ, in (0, 1).

    References
    ----------
    Waudby-Smith and Ramdas (2024), "Estimating means of bounded random variables by betting".
    Shin, Ramdas and Rinaldo (2023), "E-detectors": the mixture over start times.
    """

    def __init__(self, *, alpha: float = ALPHA, tolerance: float = TOLERANCE) -> None:
        if not 0.0 < alpha < 1.0:
            raise BadInputError(f"alpha={alpha!r}: the rate of false alarms lies in (0, 1)")
        if not 0.0 < tolerance < 1.0:
            raise BadInputError(f"tolerance={tolerance!r}: a difference of rates lies in (0, 1)")
        self.alpha, self.tolerance = alpha, tolerance
        self._seen = 0
        self._more = [0.0] * len(STAKES)  # wealth on its way, by κ
        self._fewer = [0.0] * len(STAKES)
        self._drifted = False

    @property
    def drifted(self) -> bool:
        """Once True it stays so, until `reset`."""
        return self._drifted

    @property
    def wealth(self) -> float:
        """Evidence against the null, >= 0, 1 at the start: an e-value at every label."""
        cash = PATIENCE / (self._seen + PATIENCE)
        return cash + (sum(self._more) + sum(self._fewer)) / (2 * len(STAKES))

    @property
    def why(self) -> str:
        """What was found, in words; "" while nothing has drifted."""
        if not self._drifted:
            return ""
        side = "more" if sum(self._more) > sum(self._fewer) else "fewer"
        return f"{side} errors than predicted"

    def observe(self, error: Label, p: float) -> None:
        """Bet on one more label.

        Parameters
        ----------
        error
            The label: 1 wrong, 0 right.
        p
            P(error) in [0, 1], as it was predicted without this label.
        """
        if self._drifted:
            return
        t = self._seen = self._seen + 1
        begun = PATIENCE / ((t + PATIENCE - 1) * (t + PATIENCE))  # w_t, 1 in sum
        on_wrong = error / min(p + self.tolerance, 1.0)  # what 1 becomes that is bet on it
        on_right = (1 - error) / min(1.0 - p + self.tolerance, 1.0)
        for i, kappa in enumerate(STAKES):
            self._more[i] = (self._more[i] + begun) * (1.0 - kappa + kappa * on_wrong)
            self._fewer[i] = (self._fewer[i] + begun) * (1.0 - kappa + kappa * on_right)
        self._drifted = self.wealth * self.alpha >= 1.0

    def reset(self) -> None:
        """Start again: forget what was observed so far."""
        self.restore(Monitor().state())

    def state(self) -> dict[str, Any]:
        """A snapshot of values that `json` takes."""
        return {
            "seen": self._seen,
            "more": list(self._more),
            "fewer": list(self._fewer),
            "drifted": self._drifted,
        }

    def restore(self, state: dict[str, Any]) -> None:
        self._seen, self._drifted = state["seen"], state["drifted"]
        self._more, self._fewer = list(state["more"]), list(state["fewer"])
