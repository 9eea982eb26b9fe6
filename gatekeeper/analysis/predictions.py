"""Predicted log odds of an error for every output, from the verdicts on some."""

from __future__ import annotations

from collections.abc import Sequence
from math import nan

import numpy as np
from numpy.typing import NDArray

from gatekeeper.stats.error_model import ErrorModel, Known, Raw
from gatekeeper.types import FloatArray

__all__ = ["cross_fitted", "log_odds_of"]

FOLDS = 5  # predictions for a fifth of the outputs come from the verdicts on the other four
REFERENCE = 500  # outputs, at most, whose signals set the scale of predictions
SURE = 1e-6  # no prediction is closer to 0 or 1


def log_odds_of(raw: Sequence[Raw], drawn: NDArray[np.bool_], label: FloatArray) -> FloatArray:
    """Predicted log odds of an error.

    Parameters
    ----------
    raw
        What is known of each of the N outputs before verification.
    drawn
        Which of them have a label, shape (N,).
    label
        1 wrong, 0 right, shape (N,); only those drawn are used.

    Returns
    -------
    array
        Shape (N,), finite.
    """
    everything = np.ones(len(raw), dtype=bool)
    return _log_odds(raw, drawn, label, everything)


def cross_fitted(raw: Sequence[Raw], drawn: NDArray[np.bool_], label: FloatArray) -> FloatArray:
    """`log_odds_of` by cross-fitting: no prediction uses the output's own label.

    Parameters and return value are those of `log_odds_of`.
    """
    found = np.empty(len(raw))
    fold = np.arange(len(raw)) % FOLDS
    for k in range(FOLDS):
        found[fold == k] = _log_odds(raw, drawn & (fold != k), label, fold == k)
    return found


def _log_odds(
    raw: Sequence[Raw], drawn: NDArray[np.bool_], label: FloatArray, of: NDArray[np.bool_]
) -> FloatArray:
    known = [Known(raw[i], int(label[i]), nan) for i in np.flatnonzero(drawn).tolist()]
    model = ErrorModel.fit(raw[:: -(-len(raw) // REFERENCE)], known)
    asked = [raw[i] for i in np.flatnonzero(of).tolist()]
    p = model.of_rows(asked)[0].clip(SURE, 1.0 - SURE)
    return np.asarray(np.log(p) - np.log1p(-p))
