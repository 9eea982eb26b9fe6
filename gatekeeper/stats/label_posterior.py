"""What some verdicts say of the outputs without one: draws of all labels from their posterior.

The log odds of an error of output i are

    a + b x_i + Σ_e u_e[part_e(i)],    u_e[j] ~ N(0, τ_e²)

with x_i the log odds predicted for it, of which b says how far they hold, and an effect of each
part of some partitions of the outputs, for what predictions miss there. A part with many verdicts
has the rate that these show, one without has the predicted rate, as uncertain as parts differ: τ_e
is estimated from the parts that have verdicts (hierarchical logistic regression; Gelman et al.,
"Bayesian Data Analysis", ch. 15).

Verdicts on outputs that a policy chose and on outputs drawn at random count alike: the choice
depends on nothing but what x and the parts say too, so it is ignorable (Rubin 1976). What design
weights would discard is used, and that makes intervals narrow; effects by propensity keep them
honest where the chosen outputs are unlike the others.

The posterior is normal about its mode (Laplace). At the mode fitted rates are those observed; the
mean of σ over normal log odds of variance v is off by about v p (1-p) (1-2p) / 2, and this is
taken off.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

import numpy as np
from numpy.typing import NDArray

from gatekeeper.stats.shrinkage import Group, shrunk_fit
from gatekeeper.types import FloatArray

__all__ = ["DRAWS", "LabelPosterior"]

DRAWS = 1000
CELLS = 2_000_000  # labels drawn at a time: memory
LEAST_SCALE = 0.3  # of predicted log odds; below it they hardly predict
DIFFER = 0.15  # prior guess of τ²: rates near 1/2 differ by 0.1 (standard deviation)
HOLD, SLOPE = 0.85, 0.15  # prior mean and variance of b: of a fit to the same labels, below 1
GUESS = 4.0  # how many parts the guess counts for

Indices = NDArray[np.intp]


class LabelPosterior:
    """Labels of N outputs, some of which are known, as `DRAWS` draws."""

    def __init__(
        self,
        label: FloatArray,
        predicted: FloatArray,
        partitions: Sequence[Indices],
        *,
        seed: int = 0,
    ) -> None:
        """Fit.

        Parameters
        ----------
        label
            (N,), 1 wrong, 0 right, NaN unknown.
        predicted
            Log odds of an error (N,), finite, from a fit that is shrunk enough for its own labels.
            Cross-fitted ones would make b too small: an error that is left out lowers what is
            predicted for it.
        partitions
            Of the outputs: the part of each (N,), at least 0; -1 for those without an effect.
        seed
            Of the draws.
        """
        self.label = label
        self._seed = seed
        self._known = ~np.isnan(label)
        if self._known.all():
            return
        scale = max(float(predicted.std()), LEAST_SCALE)
        plain = [np.ones(label.size), (predicted - predicted.mean()) / scale]
        groups = [
            Group((0,), variance=25.0, weight=inf),
            Group((1,), mean=HOLD * scale, variance=SLOPE, weight=inf),
        ]
        for of in partitions:
            parts = np.unique(of[of >= 0]).tolist()
            first = len(plain)
            plain += [(of == part).astype(np.float64) for part in parts]
            if parts:
                columns = tuple(range(first, len(plain)))
                groups.append(Group(columns, variance=DIFFER, weight=GUESS))
        self._design = np.column_stack(plain)
        known = self._known
        self._mode, covariance = shrunk_fit(
            self._design[known], label[known], groups, "logistic", flipped=0.0
        )
        variance, direction = np.linalg.eigh(covariance)
        self._root = direction * np.sqrt(np.maximum(variance, 0.0))

    def totals(
        self, weights: FloatArray, *, resample: bool = False
    ) -> tuple[FloatArray, FloatArray]:
        """Σ w y and Σ w of each draw, for several w at once.

        Parameters
        ----------
        weights
            (N, m), of any sign.
        resample
            Whether each draw weighs the outputs anew (Rubin's Bayesian bootstrap), so that draws
            are about all outputs of which these are a sample, not about these.

        Returns
        -------
        tuple
            Two arrays (DRAWS, m).
        """
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
        step = max(CELLS // DRAWS, 1)
        for start in range(0, rows.size, step):
            some = rows[start : start + step]
            label = np.broadcast_to(self.label[some], (DRAWS, some.size))
            unknown = ~self._known[some]
            if unknown.any():
                label = label.copy()
                label[:, unknown] = self._drawn(some[unknown], off, rng)
            if resample:
                chance = rng.standard_exponential(label.shape)
                size += chance @ weights[some]
                label = label * chance
            found += label @ weights[some]
        return found, size

    def _drawn(self, rows: Indices, off: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Labels (DRAWS, rows), from coefficients that are off the mode by `off` (DRAWS, d)."""
        from scipy.special import expit

        x = self._design[rows]
        odds = x @ self._mode
        variance = ((x @ self._root) ** 2).sum(axis=1)
        odds -= 0.5 * variance * (1.0 - 2.0 * expit(odds))
        p = expit(odds + off @ x.T)
        drawn: FloatArray = (rng.random(p.shape) < p).astype(np.float64)
        return drawn
