"""Many runs of the policy `survey` at once: one step of all of them is a few operations on arrays.

The model of the spread, the columns of outputs and the estimate are the package's. Repeated here
is the arithmetic of `Survey.decide` and of `SequentialDraws`, for known horizons and verdicts
without delay; tests/analysis/test_score_benchmark.py compares it with a gate.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gatekeeper.policies.survey import ENOUGH, GROWTH, draws_within
from gatekeeper.stats.error_model import KNOWN, RECENT
from gatekeeper.stats.raw_table import RawTable
from gatekeeper.stats.sequential_draws import EQUAL
from gatekeeper.stats.spread_model import SpreadModel
from gatekeeper.types import BoolArray, FloatArray, IntArray

__all__ = ["Runs", "survey_of"]


class Runs(NamedTuple):
    """R runs over N outputs each; outputs of one stream may be in several runs."""

    tables: list[RawTable]  # of streams, N outputs each
    stream: IntArray  # of a run, (R,)
    y: FloatArray  # values (R, N)
    budget: FloatArray  # (R,)
    seed: list[int]  # of the draws, (R,)


def survey_of(runs: Runs) -> tuple[FloatArray, BoolArray]:
    """Propensities and draws (R, N) of `Survey(budget, horizon=N, seed=seed)`."""
    count, n = runs.y.shape
    uniform = np.stack([np.random.default_rng((seed, 4)).random(n) for seed in runs.seed])
    uniform, y = np.ascontiguousarray(uniform.T), runs.y  # a step is a row
    relative, p_of = np.ones((n, count)), np.empty((n, count))
    drawn_of = np.zeros((n, count), dtype=bool)
    total = np.array([draws_within(budget, n) for budget in runs.budget.tolist()])
    mass, filled = np.zeros(count), np.zeros(count)
    served = np.zeros(count, dtype=bool)
    labels, next_fit = np.zeros(count, dtype=np.intp), np.full(count, ENOUGH)
    models: dict[int, SpreadModel] = {}
    until = np.full(count, n)  # the output up to which `relative` is of the present model
    for t in range(n):
        for run in np.flatnonzero((labels >= next_fit) | (until <= t)).tolist():
            table = runs.tables[runs.stream[run]]
            if labels[run] >= next_fit[run]:
                next_fit[run] = int(labels[run] * GROWTH) + 1
                known = np.flatnonzero(drawn_of[:t, run])[-KNOWN:]
                recent = table.take(slice(max(t + 1 - RECENT, 0), t + 1))
                models[run] = SpreadModel.fit(recent, table.take(known), y[run, known])
            ahead = int(1.1 * (next_fit[run] - labels[run]) / runs.budget[run]) + 10
            until[run] = min(t + ahead, n)  # probably the next fit
            coming = table.take(slice(t, int(until[run])))
            relative[t : until[run], run] = models[run].of_rows(coming)
        p = p_of[t] = propensity(total - mass, n - t, relative[t])
        mass += p
        room = 1.0 - filled
        inside = p < room - EQUAL
        beyond = np.where(p > room + EQUAL, p - room, 0.0)
        first = ~served & (~inside | (uniform[t] * room < p))
        second = served & ~inside & (uniform[t] * (1.0 - room) < beyond)
        served = np.where(inside, served | first, second)
        filled = np.where(inside, filled + p, beyond)
        drawn = drawn_of[t] = first | second
        labels += drawn
    return np.ascontiguousarray(p_of.T), np.ascontiguousarray(drawn_of.T)


def propensity(left: FloatArray, to_come: int, relative: FloatArray) -> FloatArray:
    """Propensity of the next output in each run, if `left` draws (R,) remain from it on."""
    equal = left / to_come
    most = np.minimum(left / (1.0 + (to_come - 1) / 4.0), (1.0 + equal) / 2.0)
    tilted = equal * (1.0 + (relative - 1.0) * (1.0 - equal * equal))
    return np.rint(np.maximum(np.minimum(tilted, most), 0.0) * 1e12) / 1e12
