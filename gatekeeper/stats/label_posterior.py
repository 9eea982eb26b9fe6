"""The posterior of all labels, given the verdicts on some outputs, as draws.

The log odds of an error of output i are

    a + b x_i + Σ_e u_e[part_e(i)],    u_e[j] ~ N(0, τ_e²)

with x_i the log odds predicted for it, b their slope, and u_e[j] the effect of part j of a
partition e of the outputs, for what predictions miss there. A part with many verdicts has about
their rate. One without verdicts has the predicted rate, as uncertain as parts differ: τ_e is
estimated from the parts that have verdicts (hierarchical logistic regression).

Verdicts on outputs that a policy chose and on outputs drawn at random count alike: the choice
depends only on what x and the parts describe, so it is ignorable. Design weights would discard
information that is used here; so intervals are narrower. Effects by propensity account for chosen
outputs that are unlike the others. `benchmarks/off_policy.py` measures the coverage.

The posterior is normal about its mode (Laplace). At the mode the fitted rates are the observed
ones; the mean of σ over normal log odds of variance v differs from them by about
v p (1-p) (1-2p) / 2, which is subtracted.

Of more than `EACH` outputs not each label is drawn. Outputs of equal weights and parts and of
nearly the same prediction are a cell, and a draw needs only how many of them are wrong, which is
binomial. Their random weights are exponential, so those of the wrong and of the right add up to one
gamma variate each. The time of a draw then does not depend on the number of outputs
(`benchmarks/big_log.py`); `tests/stats/test_label_posterior.py` holds both ways beside each other.

References
----------
Gelman et al. (2013), "Bayesian Data Analysis", ch. 15: the regression. Rubin (1976), "Inference and
missing data": ignorability. Rubin (1981), "The Bayesian bootstrap".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import inf
from typing import NamedTuple

import numpy as np

from gatekeeper.stats.shrinkage import Group, shrunk_fit
from gatekeeper.types import BoolArray, FloatArray, IntArray

__all__ = ["DRAWS", "LabelPosterior"]

DRAWS = 1000
AT_ONCE = 2_000_000  # labels drawn at a time, to bound memory
EACH = 100_000  # outputs up to which each has a label of its own in each draw
FINE = 16.0  # cells of predictions per standard deviation: the rate in one is off by some 1e-5
BLOCK = 1 << 18  # outputs that are put into cells at a time, to bound memory
LEAST_SCALE = 0.3  # of predicted log odds; below it they hardly predict
SLOPE_MEAN, SLOPE_VARIANCE = 0.85, 0.15  # prior of b, below 1: the fit has seen the same labels
EFFECT_VARIANCE = 0.15  # prior guess of τ²: rates near 1/2 differ by 0.1 (standard deviation)
EFFECT_WEIGHT = 4.0  # how many parts the guess counts for


class Cells(NamedTuple):
    """Outputs that are alike, as arrays of shape (c,)."""

    rows: IntArray  # one output of each cell
    size: FloatArray  # how many there are
    predicted: FloatArray  # their mean


class LabelPosterior:
    """Labels of N outputs, some of which are known, as `DRAWS` draws."""

    def __init__(
        self,
        label: FloatArray,
        predicted: FloatArray,
        partitions: Sequence[IntArray],
        *,
        seed: int = 0,
    ) -> None:
        """Fit the regression to the known labels.

        Parameters
        ----------
        label
            (N,), 1 wrong, 0 right, NaN unknown.
        predicted
            Log odds of an error (N,), finite, from a fit that is shrunk enough for its own labels.
            Cross-fitted ones would make b too small: leaving out an error lowers the prediction
            for it.
        partitions
            Partitions of the outputs: the part of each (N,), at least 0; -1 for those without an
            effect.
        seed
            Seed of the draws.
        """
        self.label = label
        self._seed = seed
        self._known = ~np.isnan(label)
        self._predicted: FloatArray = np.broadcast_to(0.0, label.shape)
        self._partitions: list[tuple[IntArray, IntArray]] = []
        if self._known.all():
            return
        scale = max(float(predicted.std()), LEAST_SCALE)
        self._predicted = (predicted - predicted.mean()) / scale
        self._partitions = [(of, np.unique(of[of >= 0])) for of in partitions]
        groups = [
            Group((0,), variance=25.0, weight=inf),
            Group((1,), mean=SLOPE_MEAN * scale, variance=SLOPE_VARIANCE, weight=inf),
        ]
        first = len(groups)
        for _, parts in self._partitions:
            if parts.size:
                columns = tuple(range(first, first + parts.size))
                groups.append(Group(columns, variance=EFFECT_VARIANCE, weight=EFFECT_WEIGHT))
                first += parts.size
        if label.size > EACH:
            known = self._cells(self._known, lambda rows: label[rows])
        else:
            rows = np.flatnonzero(self._known)
            known = Cells(rows, np.ones(rows.size), self._predicted[rows])
        self._mode, covariance, _ = shrunk_fit(
            self._design(known.rows, known.predicted),
            label[known.rows],
            groups,
            "logistic",
            flipped=0.0,
            count=known.size,
        )
        variance, direction = np.linalg.eigh(covariance)
        self._root = direction * np.sqrt(np.maximum(variance, 0.0))

    def _design(self, rows: IntArray, predicted: FloatArray) -> FloatArray:
        """Rows of the regression's design, (rows, d). All of them may not fit into memory."""
        plain = [np.ones((rows.size, 1)), predicted[:, None]]
        parts = [of[rows, None] == parts for of, parts in self._partitions]
        return np.hstack([*plain, *parts])

    def totals(
        self, weights: FloatArray, *, resample: bool = False
    ) -> tuple[FloatArray, FloatArray]:
        """Σ w y and Σ w of each draw, for several w at once.

        Parameters
        ----------
        weights
            (N, m), of any sign.
        resample
            Whether each draw has random weights of the outputs (Bayesian bootstrap), so that draws
            are about the population of which these outputs are a sample.

        Returns
        -------
        tuple
            Two arrays (DRAWS, m).
        """
        if self.label.size > EACH:
            return self._totals_of_cells(weights, resample=resample)
        rng = np.random.default_rng(self._seed)
        used = weights.any(axis=1)
        found = np.zeros((DRAWS, weights.shape[1]))
        if resample:
            size = np.zeros_like(found)
            rows = np.flatnonzero(used)
        else:
            known = used & self._known
            found += self.label[known] @ weights[known]
            size = np.broadcast_to(weights.sum(axis=0), found.shape)
            rows = np.flatnonzero(used & ~self._known)
        if rows.size and not self._known.all():
            off = rng.standard_normal((DRAWS, self._root.shape[1])) @ self._root.T
        for some in _divided(rows, AT_ONCE // DRAWS):
            label = np.broadcast_to(self.label[some], (DRAWS, some.size))
            unknown = ~self._known[some]
            if unknown.any():
                p = self._probabilities(some[unknown], self._predicted[some[unknown]], off)
                drawn = rng.random(p.shape) < p
                column = np.maximum(np.cumsum(unknown) - 1, 0)  # of `drawn`, of each output
                label = np.where(unknown, drawn.take(column, axis=1), label)
            if resample:
                chance = rng.standard_exponential(label.shape)
                size += chance @ weights[some]
                label = label * chance
            found += label @ weights[some]
        return found, size

    def _totals_of_cells(
        self, weights: FloatArray, *, resample: bool
    ) -> tuple[FloatArray, FloatArray]:
        """`totals`, from how many outputs of each cell are wrong."""
        rng = np.random.default_rng(self._seed)
        # Rows with equal weights have equal projections; others have not, but for one case in 2^50.
        direction = rng.standard_normal(weights.shape[1] + 1)

        def kind(rows: IntArray) -> FloatArray:
            label = np.where(self._known[rows], self.label[rows], -1.0)
            projected: FloatArray = weights[rows] @ direction[:-1] + label * direction[-1]
            return projected

        cells = self._cells(np.asarray(weights.any(axis=1)), kind)
        found = np.zeros((DRAWS, weights.shape[1]))
        size = np.zeros_like(found)
        known = self._known[cells.rows]
        if not known.all():
            off = rng.standard_normal((DRAWS, self._root.shape[1])) @ self._root.T
        for some in _divided(np.arange(known.size), AT_ONCE // DRAWS):
            rows, n, weight = cells.rows[some], cells.size[some], weights[cells.rows[some]]
            wrong = np.broadcast_to(self.label[rows] * n, (DRAWS, some.size)).copy()
            unknown = ~known[some]
            if unknown.any():
                p = self._probabilities(rows[unknown], cells.predicted[some][unknown], off)
                wrong[:, unknown] = rng.binomial(n[unknown].astype(np.int64), p)
            right = n - wrong
            if resample:
                wrong, right = rng.standard_gamma(wrong), rng.standard_gamma(right)
            found += wrong @ weight
            size += (wrong + right) @ weight
        return found, size

    def _cells(self, among: BoolArray, kind: Callable[[IntArray], FloatArray]) -> Cells:
        """Cells of some outputs (N,), each of one kind."""
        parts = [
            self._merged(Cells(rows, np.ones(rows.size), self._predicted[rows]), kind)
            for start in range(0, among.size, BLOCK)
            for rows in (start + np.flatnonzero(among[start : start + BLOCK]),)
        ]
        return self._merged(Cells(*map(np.concatenate, zip(*parts, strict=True))), kind)

    def _merged(self, cells: Cells, kind: Callable[[IntArray], FloatArray]) -> Cells:
        """Cells of cells that are alike."""
        rows, size, predicted = cells
        cell = np.unique(kind(rows), return_inverse=True)[1]
        level = np.rint(self._predicted[rows] * FINE).astype(np.intp)
        level -= level.min(initial=0)
        cell = cell * (level.max(initial=0) + 1) + level
        for of, parts in self._partitions:
            cell = cell * (parts.max(initial=0) + 2) + (of[rows] + 1)
        _, first, cell = np.unique(cell, return_index=True, return_inverse=True)
        total = np.asarray(np.bincount(cell, weights=size), dtype=np.float64)
        return Cells(rows[first], total, np.bincount(cell, weights=size * predicted) / total)

    def _probabilities(self, rows: IntArray, predicted: FloatArray, off: FloatArray) -> FloatArray:
        """Of errors (DRAWS, rows), from coefficients that are off the mode by `off` (DRAWS, d)."""
        from scipy.special import expit

        x = self._design(rows, predicted)
        odds = x @ self._mode
        variance = ((x @ self._root) ** 2).sum(axis=1)
        odds -= 0.5 * variance * (1.0 - 2.0 * expit(odds))
        p: FloatArray = expit(odds + off @ x.T)
        return p


def _divided(rows: IntArray, size: int) -> Iterator[IntArray]:
    """The rows, so many at a time."""
    for start in range(0, rows.size, size):
        yield rows[start : start + size]
