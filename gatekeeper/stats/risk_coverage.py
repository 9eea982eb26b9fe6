"""The risk–coverage curve of a score, and the area under it."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gatekeeper.errors import BadInputError

__all__ = ["aurc", "risk_coverage"]


def risk_coverage(scores: ArrayLike, labels: ArrayLike) -> NDArray[np.float64]:
    """Expected error rate among the first i outputs accepted, smallest score first.

    Equal scores are accepted in random order, and the result is the expectation over that order: a
    constant score gives the base rate throughout.

    Parameters
    ----------
    scores
        (n,), n >= 1; larger = more uncertain. Infinite scores are allowed, NaN is not.
    labels
        (n,) in {0, 1}; 1 is wrong.

    Returns
    -------
    NDArray
        (n,), in [0, 1]. Element i − 1 is the error rate at coverage i / n.

    Raises
    ------
    BadInputError
        For other shapes or values.
    """
    s, y = np.asarray(scores, dtype=np.float64), np.asarray(labels, dtype=np.float64)
    if s.ndim != 1 or s.shape != y.shape or not s.size:
        raise BadInputError(
            f"scores {s.shape} and labels {y.shape}: give two vectors of equal length, at least 1"
        )
    if np.isnan(s).any() or not np.isin(y, (0.0, 1.0)).all():
        raise BadInputError(
            "scores must not be NaN and labels must be 0 or 1: leave out other outputs"
        )
    _, group, size = np.unique(s, return_inverse=True, return_counts=True)
    # Within a group of equal scores the expected number of errors grows linearly.
    ends = np.concatenate(([0], np.cumsum(size)))
    errors = np.concatenate(([0.0], np.cumsum(np.bincount(group, weights=y))))
    accepted = np.arange(1, s.size + 1)
    return np.asarray(np.interp(accepted, ends, errors) / accepted, dtype=np.float64)


def aurc(scores: ArrayLike, labels: ArrayLike) -> float:
    """Area under the risk–coverage curve: the mean of `risk_coverage`, in [0, 1]; less is better.

    An uninformative score has the base rate. Parameters and errors as in `risk_coverage`.
    """
    return float(risk_coverage(scores, labels).mean())
