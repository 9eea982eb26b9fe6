"""The odds of two policies in the next run, from draws of the difference of their recalls."""

from __future__ import annotations

from gatekeeper.stats.interval import Interval
from gatekeeper.types import FloatArray
from gatekeeper.wording import chance, signed

__all__ = ["WORTH", "chances_of", "odds_text"]

WORTH = 0.01  # of recall: a difference below a point does not matter


def chances_of(gain: FloatArray) -> tuple[float, float]:
    """The probabilities of a gain, and of a loss, of over a point of recall.

    Parameters
    ----------
    gain
        Draws (D,) of the recall of one policy minus that of another one, each in [-1, 1].
    """
    return float((gain > WORTH).mean()), float((gain < -WORTH).mean())


def odds_text(policy: str, rival: str, gain: Interval, more: float, less: float) -> str:
    """The odds of a policy against another one, as a clause.

    Parameters
    ----------
    policy, rival
        Their names.
    gain
        Recall of the policy minus that of its rival, in [-1, 1].
    more, less
        Its `chances_of` a gain, and of a loss, in [0, 1].
    """
    low, high, at = (100 * v for v in (gain.low, gain.high, gain.value))
    return (
        f"in the next run {policy} finds {signed(low)} to {signed(high)} points of recall more "
        f"than {rival} (95 % interval; estimate {signed(at, 1)}), over a point more with "
        f"probability {chance(more)}, over a point less with {chance(less)}"
    )
