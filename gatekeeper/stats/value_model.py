"""Predicted values of outputs, by a regression whose slopes are as large as the data support.

Columns are normal scores of ranks: the mean u of the signals, u², how each signal differs from u,
ĉ, positions, and features. Slopes have independent normal priors about 0; how wide, relative to the
noise, is averaged over four sizes by their evidence. One of them is 0: no prediction at all.
Leave-one-out predictions are exact: no output's own value is in its prediction.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gatekeeper.stats.error_model import Raw
from gatekeeper.stats.feature_terms import FeatureTerms
from gatekeeper.stats.rank_scale import RankScale
from gatekeeper.types import FloatArray

__all__ = ["Columns", "Predicted", "columns_of", "design", "predict"]

# Prior variances of the slopes, in units of the variance that is left: by column of the design.
SIGNAL, SQUARE, DIFFERENCE, COST, POSITIONS = 0.1, 0.01, 0.02, 0.03, 0.02
FEATURE = np.array([0.05, 0.05, 0.01])  # by kind: line, absent, curve
SIZES = (0.0, 0.3, 1.0, 3.0)  # of all prior variances, with equal probability
LEAST = 1e-9


class Columns(NamedTuple):
    """A design: columns (N, d) and the prior variances of their slopes (d,)."""

    z: FloatArray
    variance: FloatArray


class Predicted(NamedTuple):
    """Predictions of values."""

    of_all: FloatArray  # (N,)
    left_out: FloatArray  # (n,), of the known ones, each without its own value
    mean_left_out: FloatArray  # (n,), the mean of the other known values


def columns_of(raws: Sequence[Raw]) -> Columns:
    """The design of all outputs, from what is known before verification."""
    rows = np.array([raw[:5] for raw in raws], dtype=np.float64).reshape(-1, 5)
    terms = FeatureTerms.of([raw.features for raw in raws])
    return design(rows, terms.of_rows([raw.features for raw in raws]), terms.kinds)


def design(rows: FloatArray, features: FloatArray, kinds: NDArray[np.intp]) -> Columns:
    """The same from arrays: h1, h2, h3, log ĉ and positions (N, 5), columns of features (N, m)
    and their kinds (m,)."""
    z = np.column_stack([RankScale.of(column).of_rows(column) for column in rows.T])
    h = z[:, :3]
    has = ~np.isnan(h)
    u = np.where(has, h, 0.0).sum(axis=1, keepdims=True)
    u /= np.maximum(has.sum(axis=1, keepdims=True), 1)
    z = np.hstack([u, u * u - 1.0, np.where(has, h - u, 0.0), z[:, 3:], features])
    variance = np.array([SIGNAL, SQUARE, *(DIFFERENCE,) * 3, COST, POSITIONS, *FEATURE[kinds]])
    varied = np.ptp(z, axis=0) > LEAST if len(z) else np.zeros(variance.size, dtype=bool)
    return Columns(z[:, varied], variance[varied])


def predict(columns: Columns, known: NDArray[np.intp], y: FloatArray) -> Predicted:
    """Predict the values of all outputs from those of some.

    Parameters
    ----------
    columns
        Of all N outputs.
    known
        Positions of the outputs whose value is known, (n,), n >= 1.
    y
        Their values, (n,).

    Returns
    -------
    Predicted
    """
    n, mean = y.size, float(y.mean())
    if n < 2:
        return Predicted(np.full(len(columns.z), mean), y.copy(), y.copy())
    mean_left_out = (n * mean - y) / (n - 1)
    root = np.sqrt(columns.variance)
    centre = columns.z[known].mean(axis=0)
    x = (columns.z[known] - centre) * root
    off = y - mean
    total = float(off @ off)
    if total <= LEAST or not root.size:
        return Predicted(np.full(len(columns.z), mean), mean_left_out, mean_left_out)
    eigen, basis = np.linalg.eigh(x.T @ x)
    eigen = np.maximum(eigen, 0.0)
    x = x @ basis
    shared = x.T @ off
    shrunk = [size / (1.0 + size * eigen) for size in SIZES]
    left = np.array([total - float(s @ shared**2) for s in shrunk])
    evidence = -0.5 * (n - 1) * np.log(np.maximum(left, LEAST * total))
    evidence -= 0.5 * np.array([np.log1p(size * eigen).sum() for size in SIZES])
    weight = np.exp(evidence - evidence.max())
    weight /= weight.sum()
    squares = x * x
    left_out = np.zeros(n)
    slope = np.zeros(eigen.size)
    for w, s in zip(weight.tolist(), shrunk, strict=True):
        leverage = np.minimum(1.0 / n + squares @ s, 1.0 - LEAST)
        left_out += w * (mean + x @ (s * shared) - leverage * y) / (1.0 - leverage)
        slope += w * s * shared
    of_all = mean + (columns.z - centre) @ (root * (basis @ slope))
    return Predicted(of_all, left_out, mean_left_out)
