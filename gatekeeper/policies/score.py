"""The combined score s = w0ᵀx of the signals, fitted to the warm-up. Every scoring policy uses it.

docs/reference/policies.md, "Warm-up, scaling and the fixed score"; paper, Section
"Hyperparameters" (T0 = 50).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import isnan, nan
from typing import Any

import numpy as np

from gatekeeper.types import Candidate, FloatArray, Signals

__all__ = ["T0", "WarmupScore", "weighted_mean"]

T0 = 50  # candidates of the warm-up
AT_ONCE = 100_000  # rows that are scored at a time: memory
LATE_LABELS = 1000  # candidates after the warm-up during which its late labels still count
ROUNDING = 1e-12  # correlations that are 0 come out as up to about 1e-16

Seen = tuple[float, float, float, float]  # h1, h2, h3, ĉ


class WarmupScore:
    """The score s = w0ᵀx, and the first `t0` candidates, to which it is fitted.

    Scaling: x_j = clip((h_j - lo_j) / (hi_j - lo_j), 0, 1) with lo_j, hi_j the 2 % and 98 %
    quantiles over the warm-up; hi_j = lo_j gives x_j = 0. Weights: w0_j ∝ max(0, corr(x_j, y))
    over the labelled warm-up, uniform where all are 0; 0 for a signal absent from the warm-up.

    Live, labels of the warm-up may arrive after it has ended. `stale` is then True: the score
    should be fitted again. `seen` keeps what is needed to score the history again, until all
    labels are known or `LATE_LABELS` more candidates have passed.
    """

    def __init__(self, t0: int = T0) -> None:
        self.t0 = t0
        self.seen: list[Seen] = []
        self.labels: dict[str, int] = {}
        self.ids: list[str] = []
        self.active = t0 > 0  # whether the next candidate belongs to the warm-up
        self._open = True
        self.stale = True
        self._lo = self._hi = self._w = [0.0, 0.0, 0.0]

    @property
    def costs(self) -> list[float]:
        """ĉ of the warm-up candidates; available only while `seen` is kept."""
        return [seen[3] for seen in self.seen[: self.t0]]

    def add(self, candidate: Candidate) -> None:
        """Add a candidate, of the warm-up or after it."""
        if not self._open:
            return
        if self.active:
            self.ids.append(candidate.id)
            self.active = len(self.ids) < self.t0
        h = candidate.signals
        self.seen.append((h.h1, h.h2, h.h3, candidate.cost_estimate))
        waiting = len(self.labels) < self.t0 and len(self.seen) < self.t0 + LATE_LABELS
        if not (waiting or self.stale):
            self.close()

    def learn(self, candidate_id: str, label: int) -> None:
        """Record a label; ignored unless it is of the warm-up and the score is not closed."""
        if self._open and candidate_id in self.ids:
            self.labels[candidate_id] = label
            self.stale = True

    def fit(self) -> None:
        """Fit scaling and weights to the candidates and labels known now."""
        h = np.array([seen[:3] for seen in self.seen[: self.t0]], dtype=np.float64)
        ranges = [_range(column) for column in h.reshape(-1, 3).T]
        self._lo = [lo for lo, _ in ranges]
        self._hi = [hi for _, hi in ranges]
        present = [not isnan(lo) for lo in self._lo]
        rows = [i for i, id_ in enumerate(self.ids) if id_ in self.labels]
        y = np.array([self.labels[self.ids[i]] for i in rows], dtype=np.float64)
        w = [0.0, 0.0, 0.0]
        for j in range(3):
            if present[j]:
                x = np.array([_scale(h[i, j], self._lo[j], self._hi[j]) for i in rows])
                w[j] = max(0.0, _correlation(x, y))
        if not any(w):
            w = [float(p) for p in present]
        total = sum(w)
        self._w = [v / total for v in w] if total else w
        self.stale = False

    def score(self, signals: Signals) -> float:
        """s in [0, 1]; NaN without a usable signal.

        A candidate that lacks some signals is scored with the weights of the others, renormalised
        (uniform where those are all 0).
        """
        a, b, c = signals.h1, signals.h2, signals.h3
        (lo1, lo2, lo3), (hi1, hi2, hi3), (u, v, t) = self._lo, self._hi, self._w
        # As `_score`, written out for what nearly every candidate is.
        if lo1 < a < hi1 and lo2 < b < hi2 and lo3 < c < hi3 and (weight := u + v + t):
            x1, x2, x3 = (a - lo1) / (hi1 - lo1), (b - lo2) / (hi2 - lo2), (c - lo3) / (hi3 - lo3)
            s = (u * x1 + v * x2 + t * x3) / weight
            return s if s < 1.0 else 1.0
        return self._score((a, b, c))

    def score_array(self, h: FloatArray) -> FloatArray:
        """`score` of every row of h (N, 3), equal to the last bit: (N,)."""
        parts = range(0, max(len(h), 1), AT_ONCE)
        return np.concatenate([self._score_rows(h[start : start + AT_ONCE]) for start in parts])

    def _score_rows(self, h: FloatArray) -> FloatArray:
        s, weight, plain, count = (np.zeros(len(h)) for _ in range(4))
        for x, w in zip(self.scaled_array(h).T, self._w, strict=True):
            has = ~np.isnan(x)
            x = np.where(has, x, 0.0)
            s += w * x
            weight += w * has
            plain += x
            count += has
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(weight > 0.0, np.minimum(s / weight, 1.0), plain / count)

    def scaled_array(self, h: FloatArray) -> FloatArray:
        """`scaled` of every row of h (N, 3) at once, equal to the last bit: (N, 3)."""
        x = np.full(h.shape, np.nan)
        for j, (lo, hi) in enumerate(zip(self._lo, self._hi, strict=True)):
            column = h[:, j]
            if hi > lo:
                with np.errstate(invalid="ignore"):
                    x[:, j] = np.where(
                        column <= lo, 0.0, np.minimum((column - lo) / (hi - lo), 1.0)
                    )
            elif not isnan(lo):
                x[:, j] = np.where(np.isnan(column), np.nan, 0.0)
        return x

    def scaled(self, h: tuple[float, ...]) -> list[float]:
        """x in [0, 1]³ of the raw signals; NaN where the candidate or the warm-up lacks one."""
        return [_scale(v, lo, hi) for v, lo, hi in zip(h, self._lo, self._hi, strict=True)]

    @property
    def weights(self) -> list[float]:
        """w0, which sums to 1 (or is all 0 where the warm-up had no signal)."""
        return list(self._w)

    def scores(self) -> Iterable[tuple[float, float]]:
        """(s, ĉ) of everything in `seen`, in stream order."""
        return ((self._score(seen[:3]), seen[3]) for seen in self.seen)

    def _score(self, h: tuple[float, ...]) -> float:
        return weighted_mean(self.scaled(h), self._w)

    def close(self) -> None:
        """Drop the data for later fits: labels that arrive from now on have no effect."""
        self._open = self.stale = False
        self.seen = []

    def state(self) -> dict[str, Any]:
        return {
            "ids": list(self.ids),
            "labels": dict(self.labels),
            "seen": list(self.seen),
            "open": self._open,
            "stale": self.stale,
            "lo": list(self._lo),
            "hi": list(self._hi),
            "w": list(self._w),
        }

    def restore(self, state: dict[str, Any]) -> None:
        self.ids = list(state["ids"])
        self.active = len(self.ids) < self.t0
        self.labels = dict(state["labels"])
        self.seen = [tuple(seen) for seen in state["seen"]]
        self._open = state["open"]
        self.stale = state["stale"]
        self._lo, self._hi, self._w = (list(state[key]) for key in ("lo", "hi", "w"))


def weighted_mean(x: Sequence[float], w: Sequence[float]) -> float:
    """wᵀx over the x that are not NaN, with w renormalised over those.

    Uniform where their weights are all 0, NaN where there is no x.
    """
    (a, b, c), (u, v, t) = x, w
    if a == a and b == b and c == c and (weight := u + v + t):  # nearly all
        s = (u * a + v * b + t * c) / weight
        return s if s < 1.0 else 1.0  # a sum of weights may be off 1 in the last bit
    s = weight = plain = 0.0
    count = 0
    for xj, wj in zip(x, w, strict=True):
        if xj == xj:
            s += wj * xj
            weight += wj
            plain += xj
            count += 1
    if weight:
        return min(s / weight, 1.0)
    return plain / count if count else nan


def _range(column: FloatArray) -> tuple[float, float]:
    """2 % and 98 % quantiles of the finite values; NaN for a signal absent throughout."""
    finite = column[np.isfinite(column)]
    if finite.size:
        lo, hi = np.quantile(finite, (0.02, 0.98)).tolist()
        return lo, hi
    return (float("nan"), float("nan")) if np.isnan(column).all() else (0.0, 0.0)


def _scale(h: float, lo: float, hi: float) -> float:
    """x in [0, 1]; NaN where the candidate or the warm-up lacks the signal."""
    if lo < h < hi:  # nearly all
        return (h - lo) / (hi - lo)
    if h != h or lo != lo:
        return nan
    return 1.0 if lo < hi <= h else 0.0


def _correlation(x: FloatArray, y: FloatArray) -> float:
    """Pearson correlation over the rows that have x; 0 where x or y is constant.

    One that differs from 0 by rounding only is 0: it would be the whole weight where all others
    are 0.
    """
    has = np.isfinite(x)
    x, y = x[has], y[has]
    if x.size < 2 or np.ptp(x) == 0.0 or np.ptp(y) == 0.0:
        return 0.0
    r = float(np.corrcoef(x, y)[0, 1])
    return r if abs(r) > ROUNDING else 0.0
