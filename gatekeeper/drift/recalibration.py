"""Predictions of labels, corrected by the labels that came after earlier predictions."""

from __future__ import annotations

from math import exp, log, pi, sqrt

__all__ = ["Recalibration"]

OFFSET, SLOPE = 0.1, 0.05  # prior variances of a and of b - 1


class Recalibration:
    """Platt scaling, learned label by label: P(y = 1) = σ(a + b log(q / (1 - q))).

    A fitted model has small errors everywhere, larger ones if labels are few or wrong at another
    rate than assumed. With many labels a test would detect them as a change, so it tests the
    prediction after this correction, which depends on earlier labels only. The posterior of (a, b),
    with prior mean (0, 1), is kept as a normal distribution, updated by one Newton step a label; a
    prediction is its mean over that posterior (MacKay 1992).

    References
    ----------
    Platt (1999), "Probabilistic outputs for support vector machines".
    Spiegelhalter and Lauritzen (1990), "Sequential updating of conditional probabilities on
    directed graphical structures": the update.
    """

    def __init__(self) -> None:
        self._mean = (0.0, 1.0)
        self._covariance = (OFFSET, 0.0, SLOPE)  # of a, of both, of b

    def __call__(self, q: float) -> float:
        """The corrected prediction, in (0, 1), of one in (0, 1)."""
        (a, b), (aa, ab, bb), x = self._mean, self._covariance, log(q / (1.0 - q))
        variance = aa + x * (2.0 * ab + x * bb)
        return 1.0 / (1.0 + exp(-(a + b * x) / sqrt(1.0 + pi / 8.0 * variance)))

    def learn(self, q: float, error: int) -> None:
        """Learn the label that came after the prediction q."""
        p = self(q)
        (a, b), (aa, ab, bb), x = self._mean, self._covariance, log(q / (1.0 - q))
        u, v = aa + x * ab, ab + x * bb  # covariances of a and b with the log odds
        h = p * (1.0 - p)
        gain = h / (1.0 + h * (u + x * v))
        self._covariance = (aa - gain * u * u, ab - gain * u * v, bb - gain * v * v)
        step = (error - p) * gain / h
        self._mean = (a + u * step, b + v * step)

    def state(self) -> list[list[float]]:
        """A snapshot of values that `json` takes."""
        return [list(self._mean), list(self._covariance)]

    def restore(self, state: list[list[float]]) -> None:
        (a, b), (aa, ab, bb) = state
        self._mean, self._covariance = (a, b), (aa, ab, bb)
