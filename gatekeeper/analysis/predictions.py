"""Predicted log odds of an error for every output, from the verdicts on some."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gatekeeper.stats.error_model import ErrorModel, KnownTable
from gatekeeper.stats.raw_table import RawTable
from gatekeeper.types import BoolArray, FloatArray, IntArray

__all__ = ["FOLDS", "cross_fitted", "log_odds_of"]

FOLDS = 5  # predictions for a fifth of the outputs come from the verdicts on the other four
REFERENCE = 500  # outputs, at most, whose signals set the scale of predictions
SURE = 1e-6  # no prediction is closer to 0 or 1
AT_ONCE = 100_000  # outputs that are predicted at a time: memory
MOST = 100_000  # labels that a fit takes, of all parts of the run: more would not improve it

Source = Callable[[IntArray], RawTable]


def log_odds_of(raw: Source, drawn: BoolArray, label: FloatArray) -> FloatArray:
    """Predicted log odds of an error.

    Parameters
    ----------
    raw
        What is known before verification, of the outputs at some of the N places.
    drawn
        Which of them have a label, shape (N,).
    label
        1 wrong, 0 right, shape (N,); only those drawn are used.

    Returns
    -------
    array
        Shape (N,), finite.
    """
    everything = np.ones(label.size, dtype=bool)
    return _log_odds(raw, drawn, label, everything)


def cross_fitted(raw: Source, drawn: BoolArray, label: FloatArray) -> FloatArray:
    """`log_odds_of` by cross-fitting: no prediction uses the output's own label.

    Parameters and return value are those of `log_odds_of`.
    """
    found = np.empty(label.size)
    fold = np.arange(label.size) % FOLDS
    for k in range(FOLDS):
        found[fold == k] = _log_odds(raw, drawn & (fold != k), label, fold == k)
    return found


def _log_odds(raw: Source, drawn: BoolArray, label: FloatArray, of: BoolArray) -> FloatArray:
    at = np.flatnonzero(drawn)
    if at.size > MOST:
        at = at[np.arange(MOST) * at.size // MOST]
    known = KnownTable(raw(at), label[at], np.full(at.size, np.nan))
    model = ErrorModel.fit(raw(np.arange(0, label.size, -(-label.size // REFERENCE))), known)
    asked = np.flatnonzero(of)
    parts = np.array_split(asked, max(-(-asked.size // AT_ONCE), 1))
    p = np.concatenate([model.of_rows(raw(part))[0] for part in parts])
    p = p.clip(SURE, 1.0 - SURE)
    return np.asarray(np.log(p) - np.log1p(-p))
