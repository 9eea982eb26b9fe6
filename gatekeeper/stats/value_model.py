"""Predicted values of outputs, by a regression whose slopes are as large as the data support.

Columns are normal scores of ranks: the mean u of the signals, u², how each signal differs from u,
ĉ, positions, and features. Slopes have independent normal priors about 0; how wide, relative to the
noise, is averaged over four sizes by their evidence. One of them is 0: no prediction at all.
Leave-one-out predictions are exact: no output's own value is in its prediction.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from gatekeeper.stats import products
from gatekeeper.stats.feature_terms import FeatureTerms
from gatekeeper.stats.rank_scale import RankScale
from gatekeeper.stats.raw_table import Raw, RawTable
from gatekeeper.types import FloatArray, IntArray

__all__ = ["Columns", "Design", "Predicted", "predict"]

# Prior variances of the slopes, in units of the variance that is left: by column of the design.
SIGNAL, SQUARE, DIFFERENCE, COST, POSITIONS = 0.1, 0.01, 0.02, 0.03, 0.02
FEATURE = np.array([0.05, 0.05, 0.01])  # by kind: line, absent, curve
SIZES = (0.0, 0.3, 1.0, 3.0)  # of all prior variances, with equal probability
LEAST = 1e-9


class Columns(NamedTuple):
    """Columns (N, d) of a design, and the prior variances of their slopes (d,)."""

    z: FloatArray
    variance: FloatArray


class Predicted(NamedTuple):
    """Predictions of values: intercept + z @ slope for every output."""

    intercept: float
    slope: FloatArray  # (d,)
    left_out: FloatArray  # (n,), of the known outputs, each without its own value
    mean_left_out: FloatArray  # (n,), the mean of the other known values


class Design:
    """The columns of an output, by the scales of outputs seen so far."""

    def __init__(self, scales: Sequence[RankScale], terms: FeatureTerms) -> None:
        self._scales, self._terms = list(scales), terms
        of_features = FEATURE[terms.kinds] if len(terms) else ()
        self.variance = np.array(
            [SIGNAL, SQUARE, *(DIFFERENCE,) * 3, COST, POSITIONS, *of_features]
        )

    @classmethod
    def of(cls, seen: RawTable) -> Design:
        """The scales of these outputs, at least one."""
        terms = FeatureTerms.of_table(seen.names, seen.features)
        return cls([RankScale.of(column) for column in seen.rows.T], terms)

    def __call__(self, raw: Raw) -> list[float]:
        """The columns of one output, (d,)."""
        s1, s2, s3, s4, s5 = self._scales
        h = s1(raw.h1), s2(raw.h2), s3(raw.h3)
        there = [v for v in h if v == v]
        u = sum(there) / len(there) if there else 0.0
        off = [v - u if v == v else 0.0 for v in h]
        row = [u, u * u - 1.0, *off, s4(raw.size), s5(raw.positions)]
        return row + self._terms(raw.features) if self._terms else row

    def of_rows(self, table: RawTable) -> Columns:
        """The same for many at once."""
        features = self._terms.of_rows(table.names, table.features)
        z = np.column_stack([s.of_rows(v) for s, v in zip(self._scales, table.rows.T, strict=True)])
        h = z[:, :3]
        has = ~np.isnan(h)
        u = np.where(has, h, 0.0).sum(axis=1, keepdims=True)
        u /= np.maximum(has.sum(axis=1, keepdims=True), 1)
        z = np.hstack([u, u * u - 1.0, np.where(has, h - u, 0.0), z[:, 3:], features])
        return Columns(z, self.variance)

    def state(self) -> dict[str, Any]:
        """A snapshot of values that `json` takes."""
        return {
            "scales": [[scale.values, scale.scores] for scale in self._scales],
            "terms": self._terms.state(),
        }

    @classmethod
    def restored(cls, state: dict[str, Any]) -> Design:
        scales = [RankScale(values, scores) for values, scores in state["scales"]]
        return cls(scales, FeatureTerms.restored(state["terms"]))


def predict(columns: Columns, known: IntArray, y: FloatArray) -> Predicted:
    """Predict the values of all outputs from those of some.

    Parameters
    ----------
    columns
        Columns of all N outputs.
    known
        Positions of the outputs whose value is known, (n,), n >= 1.
    y
        Their values, (n,).

    Returns
    -------
    Predicted
    """
    n, mean = y.size, float(y.mean())
    flat = np.zeros(columns.variance.size)
    if n < 2:
        return Predicted(mean, flat, y.copy(), y.copy())
    mean_left_out = (n * mean - y) / (n - 1)
    root = np.sqrt(columns.variance)
    centre = columns.z[known].mean(axis=0)
    x = (columns.z[known] - centre) * root
    off = y - mean
    total = float(off @ off)
    if total <= LEAST or not root.size:
        return Predicted(mean, flat, mean_left_out, mean_left_out)
    # Eigenvalues would do for all sizes at once, but OpenBLAS computes them in several threads (see
    # `products`), at 60 columns in ten times the time of all these where others use the processors.
    gram, shared = products.of_columns(x, x), x.T @ off
    ridges = [np.eye(root.size) + size * gram for size in SIZES]
    shrunk = [
        np.asarray(size * np.linalg.inv(ridge), dtype=np.float64)
        for size, ridge in zip(SIZES, ridges, strict=True)
    ]
    left = np.array([total - float(shared @ s @ shared) for s in shrunk])
    evidence = -0.5 * (n - 1) * np.log(np.maximum(left, LEAST * total))
    evidence -= 0.5 * np.array([np.linalg.slogdet(ridge)[1] for ridge in ridges])
    weight = np.exp(evidence - evidence.max())
    weight /= weight.sum()
    left_out = np.zeros(n)
    slope = np.zeros(root.size)
    for w, s in zip(weight.tolist(), shrunk, strict=True):
        own = (products.of_rows(x, s) * x).sum(axis=1)
        leverage = np.minimum(1.0 / n + own, 1.0 - LEAST)
        left_out += w * (mean + x @ (s @ shared) - leverage * y) / (1.0 - leverage)
        slope += w * (s @ shared)
    slope *= root
    return Predicted(mean - float(centre @ slope), slope, left_out, mean_left_out)
