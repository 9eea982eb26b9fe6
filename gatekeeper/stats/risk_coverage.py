"""The risk–coverage curve of a score, and the area under it."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gatekeeper.errors import BadInputError

__all__ = ["aurc", "risk_coverage"]


def risk_coverage(scores: ArrayLike, labels: ArrayLike) -> NDArray[np.float64]:
    """Expected error rate among the i outputs accepted first, i = 1 … n, least score first.

    scores (n,): larger = more doubtful; labels (n,) in {0, 1}. Equal scores are accepted in
    random order, and the result is the expectation over it: a constant score gives the base rate
    throughout. Element i − 1 belongs to coverage i / n.
    """
    s, y = np.asarray(scores, dtype=np.float64), np.asarray(labels, dtype=np.float64)
    if s.ndim != 1 or s.shape != y.shape or not s.size:
        raise BadInputError(f"scores {s.shape} and labels {y.shape}: two equal lengths above 0")
    if np.isnan(s).any() or not np.isin(y, (0.0, 1.0)).all():
        raise BadInputError("scores must be numbers and labels 0 or 1: leave the others out")
    _, group, size = np.unique(s, return_inverse=True, return_counts=True)
    # Within a group of equal scores the expected number of errors grows linearly.
    ends = np.concatenate(([0], np.cumsum(size)))
    errors = np.concatenate(([0.0], np.cumsum(np.bincount(group, weights=y))))
    accepted = np.arange(1, s.size + 1)
    return np.asarray(np.interp(accepted, ends, errors) / accepted, dtype=np.float64)


def aurc(scores: ArrayLike, labels: ArrayLike) -> float:
    """Area under the risk–coverage curve: the mean of `risk_coverage`, in [0, 1]; less is better.

    The base rate for an ordering that knows nothing.
    """
    return float(risk_coverage(scores, labels).mean())
