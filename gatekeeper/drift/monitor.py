"""The test for drift: a sequential test of scores against earlier ones, and of labels against
predictions.

Testing by betting, started again at every output so that a late change is noticed, too: a mixture
over the start times.
"""

from __future__ import annotations

from math import exp
from typing import Any

import numpy as np

from gatekeeper.drift.scores import STATISTICS
from gatekeeper.errors import BadInputError
from gatekeeper.types import FloatArray, Label

__all__ = ["ALPHA", "Monitor"]

# Bound of the probability of a false alarm at any time. Within 3,000 outputs it is half as much,
# because half of the wealth is kept for later changes.
ALPHA = 1 / 75
SHIFTS = (0.8, 1.6)  # of the log odds of an error: small changes and large
CLEAR = 4.0  # ratio of evidence from which a change is named as the cause
PATIENCE = 3000  # outputs over which half of the wealth is bet

# Normal scores after a change, N(μ, σ²): μ, σ and prior. Statistics share the wealth unequally: the
# mean of the signals is the most sensitive to a change of all of them.
CHANGES = (
    (-1.5, 1.0, 0.08),
    (-0.7, 1.0, 0.14),
    (-0.35, 1.0, 0.15),
    (-0.15, 1.0, 0.08),
    (0.15, 1.0, 0.08),
    (0.35, 1.0, 0.15),
    (0.7, 1.0, 0.14),
    (1.5, 1.0, 0.08),
    (0.0, 0.5, 0.05),
    (0.0, 2.0, 0.05),
)
SHARES = (0.06, 0.06, 0.06, 0.45, 0.25, 0.12)  # by statistic
# Of the wealth: for a change of the labels alone, of the scores alone, of both in any way, and of
# both as another rate of errors makes it, if wrong outputs are more uncertain: a little uncertainty
# more where there are more errors. A fifth of the last is for outputs that are less uncertain.
LABELS_ALONE, SCORES_ALONE, ANY_WAY, TOGETHER = 0.05, 0.1, 0.05, 0.8
UNCERTAINTY, LITTLE, AGAINST = 3, (0.15, 0.35), 0.2
_MU, _SIGMA, _PRIOR = np.array(CHANGES).T
# log of the density of N(μ, σ²) by that of N(0, 1), as a polynomial of the normal score
_SQUARE = 0.5 - 0.5 / _SIGMA**2
_LINEAR = _MU / _SIGMA**2
_CONSTANT = -0.5 * (_MU / _SIGMA) ** 2 - np.log(_SIGMA)
_MORE, _FEWER = ([exp(sign * shift) for shift in SHIFTS] for sign in (1.0, -1.0))  # of odds
_SAME = 0  # row and column of what has not changed
_OF_LABELS = np.full(2 * len(SHIFTS), 0.5 / len(SHIFTS))  # more errors, then fewer
_OF_SCORES = np.outer(SHARES, _PRIOR).ravel()


def _bets() -> FloatArray:
    """The bets of a wealth of 1, by change of the labels and change of the scores."""
    bets = np.zeros((1 + _OF_LABELS.size, 1 + _OF_SCORES.size))
    bets[1:, _SAME] = LABELS_ALONE * _OF_LABELS
    bets[_SAME, 1:] = SCORES_ALONE * _OF_SCORES
    bets[1:, 1:] = ANY_WAY * np.outer(_OF_LABELS, _OF_SCORES)
    by_change = np.zeros((2, len(CHANGES)))  # more errors, fewer
    for j, (mu, _, _) in enumerate(CHANGES):
        if abs(mu) in LITTLE:
            by_change[:, j] = (1.0 - AGAINST, AGAINST) if mu > 0.0 else (AGAINST, 1.0 - AGAINST)
    first = 1 + UNCERTAINTY * len(CHANGES)
    together = by_change.repeat(len(SHIFTS), axis=0) * _OF_LABELS[:, None] / len(LITTLE)
    bets[1:, first : first + len(CHANGES)] += TOGETHER * together
    return bets


_BETS = _bets()


class Monitor:
    """Becomes `drifted` once scores or labels differ from earlier ones by more than chance.

    Null hypothesis: outputs are exchangeable before verification, so that the normal scores of
    their ranks (`ScoreRanks`) are independent N(0, 1); and whatever came before, P(y = 1 | past)
    lies in the predicted range, which was made before y was known.

    Guarantee: the wealth bet on the scores alone, and that bet on the labels alone, are e-processes
    under the null: P(either reaches 1 / α, ever) <= α for each, however long the stream, at any
    stopping time, and for any selection of the verified outputs (Ville's inequality). Bets on both
    at once multiply the two, which helps where neither alone is enough. Their mean is at most 1 at
    any given time; that it is at alarms, too, is not proven, because ranks among few outputs are
    not independent of earlier labels. `benchmarks/drift.py` counts false alarms. After `reset` the
    same holds for what follows, so k resets may cause k + 1 false alarms of α each.

    It does not guarantee that a change is noticed: one of the labels within the predicted range may
    never be, others the later the smaller they are. It cannot distinguish a stream that changed
    from one that is in an order, nor from predictions that were bad from the start.

    Method: a wealth of 1 is bet. Scores: the likelihood ratio of N(μ, σ²) to N(0, 1), for ten (μ,
    σ) and six statistics. Labels: the likelihood ratio e^(s y) / (1 - q + q e^s) of odds that are
    e^s times as high, with q the upper end of the predicted range; under the null its mean is at
    most 1, as p <= q and it grows with y. For fewer errors s < 0, and q is the lower end. Most of
    the wealth is bet on both at once as another rate of errors alone would make them; where scores
    move far, little wealth is enough. A share w_t of the wealth, Σ w_t <= 1, is bet for the first
    time on output t, divided among all combinations of a change of the scores and one of the
    labels. Scores may be passed in groups, and after labels that came later: fewer tests keep the
    guarantee, and so does a bet on labels that begins later.

    Parameters
    ----------
    alpha
        α, in (0, 1).

    Attributes
    ----------
    wealth
        Evidence against the null, >= 0, 1 at the start.

    References
    ----------
    Vovk et al. (2021), "Retrain or not retrain: conformal test martingales for change-point
    detection".
    Waudby-Smith and Ramdas (2024), "Estimating means of bounded random variables by betting".
    Shin, Ramdas and Rinaldo (2023), "E-detectors": the mixture over start times.
    """

    def __init__(self, *, alpha: float = ALPHA) -> None:
        if not 0.0 < alpha < 1.0:
            raise BadInputError(f"alpha={alpha!r}: the rate of false alarms lies in (0, 1)")
        self.alpha = alpha
        self._drifted = False
        self.reset()

    def reset(self) -> None:
        """Start again, without the observations so far."""
        self._seen = 0
        self._wealth: FloatArray = np.zeros_like(_BETS)  # in play, by labels' change and scores'
        self.wealth = 1.0
        self._drifted = False

    @property
    def drifted(self) -> bool:
        """Whether there is drift; stays True until `reset`."""
        return self._drifted

    @property
    def shift(self) -> float:
        """Evidence against exchangeable scores, whatever the labels: an e-value at all times, 1 at
        the start. Under the null it reaches x with a probability of at most 1 / x."""
        share = float(_BETS[_SAME].sum())
        return self._cash + float(self._wealth[_SAME].sum()) / share

    @property
    def why(self) -> str:
        """The finding, in words; "" without drift."""
        if not self._drifted:
            return ""
        labels, scores = self._wealth.sum(axis=1), self._wealth.sum(axis=0)
        more = labels[1 : 1 + len(SHIFTS)].sum() > labels[1 + len(SHIFTS) :].sum()
        by_labels = f"{'more' if more else 'fewer'} errors than predicted"
        by_scores = f"scores shifted: {_shift(scores[1:])}"
        # Without separate evidence, a change of the one is as good a bet as none.
        if _per_bet(labels, _BETS.sum(axis=1)) < CLEAR:
            return by_scores
        if _per_bet(scores, _BETS.sum(axis=0)) < CLEAR:
            return by_labels
        return f"{by_labels}; {by_scores}"

    def observe_outputs(self, scores: FloatArray) -> None:
        """Bet on the normal scores of more outputs, (n, 6), in the order of `STATISTICS`, and test
        once, after the last."""
        n = len(scores)
        if self._drifted or not n:
            return
        t = np.arange(self._seen + 1, self._seen + n + 1)
        self._seen += n
        begun = PATIENCE / ((t + PATIENCE - 1) * (t + PATIENCE))  # w_t, 1 in sum
        g = scores[::-1, :, None]
        logs = (_CONSTANT + g * (_LINEAR + g * _SQUARE)).reshape(n, -1)
        gains = np.exp(logs.cumsum(axis=0))  # of what was bet on the last i + 1
        self._wealth[:, 1:] *= gains[-1]
        self._wealth[:, 1:] += _BETS[:, 1:] * (begun[::-1] @ gains)
        self._wealth[:, _SAME] += _BETS[:, _SAME] * begun.sum()
        self._test()

    def observe_label(self, error: Label, least: float, most: float) -> None:
        """Bet on one more label.

        Parameters
        ----------
        error
            The label: 1 wrong, 0 right.
        least, most
            Range of P(error), in [0, 1], as it was predicted without this label; no wider than
            predictions are uncertain.
        """
        if self._drifted:
            return
        gains = [1.0]
        for q, ratios in ((most, _MORE), (least, _FEWER)):
            gains += [(ratio if error else 1.0) / (1.0 - q + q * ratio) for ratio in ratios]
        self._wealth *= np.array(gains)[:, None]
        self._test()

    @property
    def _cash(self) -> float:
        return PATIENCE / (self._seen + PATIENCE)

    def _test(self) -> None:
        self._count()
        self._drifted = self.wealth * self.alpha >= 1.0

    def _count(self) -> None:
        self.wealth = self._cash + float(self._wealth.sum())

    def state(self) -> dict[str, Any]:
        """A snapshot of values that `json` takes."""
        return {"seen": self._seen, "wealth": self._wealth.tolist(), "drifted": self._drifted}

    def restore(self, state: dict[str, Any]) -> None:
        self._seen, self._drifted = state["seen"], state["drifted"]
        self._wealth = np.array(state["wealth"], dtype=np.float64)
        self._count()


def _per_bet(wealth: FloatArray, bet: FloatArray) -> float:
    """Average growth of the bets on a change, relative to that of bets on no change."""
    return float(wealth[1:].sum() / bet[1:].sum() / (wealth[_SAME] / bet[_SAME]))


def _shift(wealth: FloatArray) -> str:
    """The change with the most evidence, in words."""
    by = wealth.reshape(len(STATISTICS), len(CHANGES))
    of = by.sum(axis=1).argmax()
    mu, sigma, _ = CHANGES[by[of].argmax()]
    how = ("higher" if mu > 0 else "lower") if mu else ("wider" if sigma > 1 else "narrower")
    return f"{STATISTICS[of]} {how}"
