"""Synthetic streams with the figures that the paper publishes of its data sets.

Of each data set a few figures are published, and N = 500 labels drawn at random would differ from
them by several hundredths. So values are spread evenly instead of drawn where possible: costs are
the normal quantiles themselves, the errors of a stratum stand at even distances along the cost, and
scores and true costs come from a rotated Kronecker sequence (a quasi-random lattice). A seed
rotates the lattice; error rates and ρ_k are the same for every seed, exactly.
"""

from __future__ import annotations

from dataclasses import replace
from statistics import NormalDist

import numpy as np

from gatekeeper.io.records import RecordTable
from gatekeeper.paper.settings import STRATA, Setting
from gatekeeper.types import FloatArray, IntArray

__all__ = ["draw", "homogeneous", "oracle_signal", "synthetic_signal", "with_benefit"]

# Signals are affine in the score, and the policies' scaling undoes that. So the level is free, as
# long as h1 >= 0, h2 <= 0 and h3 is in (0, 1] (`types.Signals`).
LEVEL = np.array([0.5, -8.0, 0.5])
SCALE = np.array([0.05, 0.8, 0.05])
DIMENSIONS = 5  # score, three signals' own noise, true cost
HALVINGS = 40  # of an interval of width 8: δ to 1e-11


def draw(setting: Setting, seed: int) -> RecordTable:
    """One data set of the setting: N records in ascending order of ĉ."""
    rng = np.random.default_rng(seed)
    n = setting.n
    rank = (np.arange(n) + 0.5) / n
    cost = _normal(rank)  # standardised log ĉ
    stratum = np.minimum((rank * STRATA).astype(int), STRATA - 1)
    y = _spread_evenly(setting.error_probability(rank), rng.random())
    u = np.empty((n, DIMENSIONS))
    score = np.empty(n)
    for k in range(STRATA):
        mine = stratum == k
        for label in (0, 1):
            rows = np.flatnonzero(mine & (y == label))
            u[rows] = _lattice(rows.size, rng.random(DIMENSIONS))
        own = _own(u[mine, 0], y[mine], setting.error_spread) + setting.score_slope * cost[mine]
        score[mine] = _separate(own, y[mine], setting.rho[k], setting.saturation)
    noise = _normal(u[:, 1:4])
    noise -= noise.mean(axis=1, keepdims=True)  # so that the mean signal is the score itself
    own_cost = _normal(u[:, 4])
    r = setting.cost_correlation
    log_cost = setting.true_cost_spread * (r * cost + np.sqrt(1 - r * r) * own_cost)
    return RecordTable(
        ids=[f"{setting.name}-{i}" for i in range(n)],
        h=LEVEL + SCALE * (score[:, None] + setting.signal_noise * noise),
        cost_estimate=np.exp(setting.cost_spread * cost),
        cost=np.exp(log_cost + setting.error_cost * y),
        error=y.astype(np.float64),
    )


def homogeneous(table: RecordTable) -> RecordTable:
    """The same records with c ≡ ĉ ≡ 0.5 (paper, Section "Homogeneous Cost Control Experiment")."""
    half = np.full(len(table), 0.5)
    return replace(table, cost_estimate=half, cost=half)


def synthetic_signal(table: RecordTable, rho: float) -> RecordTable:
    """The same records with one signal, h = ρ ỹ + √(1 − ρ²) ε (paper, Section "Signal strength
    analysis"): ỹ the standardised label, ε ~ N(0, 1), so that ρ is the same in every stratum."""
    y = (table.error - table.error.mean()) / table.error.std()
    noise = _normal(_lattice(len(table), np.array([0.5]))[:, 0])
    h = np.full((len(table), 3), np.nan)
    h[:, 0] = rho * y + np.sqrt(1 - rho * rho) * noise
    return replace(table, h=h)


def oracle_signal(table: RecordTable) -> RecordTable:
    """The same records with the true label as every signal (paper, Section "Hypothesis tests")."""
    return replace(table, h=np.repeat(table.error[:, None], 3, axis=1))


def with_benefit(table: RecordTable, rate: float) -> RecordTable:
    """The same records labelled by benefit: the cheap model fails, the expensive one succeeds.

    `rate` is the share of all records with a benefit. They are spread evenly over the cheap
    model's errors in order of cost.
    """
    wrong = table.error == 1.0
    share = np.where(wrong, rate * len(table) / wrong.sum(), 0.0)
    benefit = _spread_evenly(share, 0.5).astype(np.float64)
    return replace(table, benefit=benefit)


def _spread_evenly(p: FloatArray, offset: float) -> IntArray:
    """Labels (N,) in {0, 1} by systematic sampling: up to any i, as many as Σ p, rounded."""
    total = np.floor(np.concatenate(([0.0], np.cumsum(p))) + offset)
    return np.diff(total).astype(np.intp)


def _lattice(n: int, rotation: FloatArray) -> FloatArray:
    """A Kronecker sequence (n, d) in [0, 1)^d: multiples of powers of 1/g, g the root of
    g^(d+1) = g + 1, rotated. Every coordinate by itself is spread evenly."""
    d = rotation.size
    g = 2.0
    for _ in range(60):
        g = (1.0 + g) ** (1.0 / (d + 1))
    return np.asarray((np.arange(1, n + 1)[:, None] * g ** -np.arange(1.0, d + 1) + rotation) % 1.0)


def _own(u: FloatArray, y: IntArray, error_spread: float) -> FloatArray:
    """Normal scores (n,): of each label the quantiles themselves, in the order of u."""
    own = np.empty(u.size)
    for label, spread in ((0, 1.0), (1, error_spread)):
        mine = y == label
        rank = np.argsort(np.argsort(u[mine]))
        own[mine] = spread * _normal((rank + 0.5) / max(mine.sum(), 1))
    return own


def _separate(own: FloatArray, y: IntArray, rho: float, saturation: float) -> FloatArray:
    """Scores (n,): `own` with the errors' moved by the δ that makes corr(score, y) = ρ."""
    if np.ptp(y) == 0:
        return _saturate(own, saturation)
    label = y - y.mean()
    norm = float(np.linalg.norm(label))
    low, high = -4.0, 4.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        score = _saturate(own + middle * label, saturation)
        deviation = score - score.mean()
        if deviation @ label < rho * norm * np.linalg.norm(deviation):
            low = middle
        else:
            high = middle
    return score


def _saturate(score: FloatArray, saturation: float) -> FloatArray:
    """tanh(κ score) / κ: bounded, like a signal that saturates at high uncertainty."""
    return np.tanh(saturation * score) / saturation if saturation else score


def _normal(u: FloatArray) -> FloatArray:
    """Standard normal quantiles of u in (0, 1), of any shape."""
    inverse = NormalDist().inv_cdf
    clipped = np.clip(u, 1e-6, 1 - 1e-6)
    return np.array([inverse(v) for v in clipped.ravel().tolist()]).reshape(u.shape)
