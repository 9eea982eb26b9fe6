"""What the policies did on the synthetic streams: every table asks here, nothing runs twice."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from math import nan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gatekeeper.paper import published
from gatekeeper.paper.settings import SETTINGS, STRATA
from gatekeeper.paper.streams import draw
from gatekeeper.policies import CSTMemory, MPAdapt, MPStrat
from gatekeeper.protocols import Policy
from gatekeeper.records import RecordTable
from gatekeeper.replay import Evaluate, Feedback
from gatekeeper.types import FloatArray
from gatekeeper.vectorised import Stream

__all__ = ["Grid", "Replays"]

Change = Callable[[RecordTable], RecordTable]

FLIPPED = 0.10  # share of observed labels that are wrong (paper, "Costs, Noise, and Baselines")
NOISE = 0.1  # of each signal's standard deviation
SECOND_HALF = ("random", "threshold", "cst", "hga", "split-conformal")
LEARNERS: Mapping[str, Callable[..., Policy]] = {
    policy.name: policy for policy in (CSTMemory, MPAdapt, MPStrat)
}


@dataclass(frozen=True, slots=True)
class Grid:
    """Hit rates of policies at budgets, each of shape (draws, seeds); NaN where nothing was
    verified."""

    hits: Mapping[tuple[str, float], FloatArray]

    def hit_rate(self, policy: str, beta: float) -> FloatArray:
        return self.hits[policy, beta]

    def mean(self, policy: str, beta: float) -> float:
        return float(np.nanmean(self.hits[policy, beta]))

    def gain(self, policy: str, base: str, beta: float) -> tuple[float, float, float]:
        """Mean difference in pp, paired by seed, with the ends of its 95 % interval.

        The interval is Student's t over the seeds of one data set, as in the paper, its width
        averaged over the data sets.
        """
        from scipy.stats import t as student

        difference = 100 * (self.hits[policy, beta] - self.hits[base, beta])
        seeds = difference.shape[1]
        spread = float(np.nanmean(np.nanstd(difference, axis=1, ddof=1)))
        half = float(student.ppf(0.975, seeds - 1)) * spread / np.sqrt(seeds)
        mean = float(np.nanmean(difference))
        return mean, mean - half, mean + half


@dataclass(frozen=True, slots=True)
class _Job:
    policy: str
    beta: float
    evaluate: Evaluate = "all"
    feedback: Feedback = "full"
    option: tuple[str, float] | None = None


@dataclass(slots=True)
class Replays:
    """Replays of every setting's data sets, `seeds` of each, kept for whoever asks again."""

    seeds: int
    _kept: dict[Any, FloatArray] = field(default_factory=dict)

    def grid(
        self,
        setting: str,
        policies: Sequence[str],
        betas: Sequence[float],
        *,
        evaluate: Evaluate = "all",
        feedback: Feedback = "full",
        change: Change | None = None,
    ) -> Grid:
        """Hit rates of the policies; `change` makes other records of every data set first."""
        jobs = [_Job(p, b, evaluate, feedback) for p in policies for b in betas]
        figures = self._figures(setting, jobs, change)
        return Grid({(j.policy, j.beta): figures[j][..., 0] for j in jobs})

    def second_half(self, setting: str) -> Grid:
        """The grid of the reanalysis tables, evaluated on the second half."""
        return self.grid(setting, SECOND_HALF, published.MAIN_BETAS, evaluate="second-half")

    def gate_open(self, setting: str, beta: float) -> float:
        """Share of the replays in which HGA's gate opens."""
        job = _Job("hga", beta, "second-half", "full")
        return float(self._figures(setting, [job], None)[job][..., 1].mean())

    def by_stratum(self, setting: str, policy: str, beta: float) -> tuple[FloatArray, FloatArray]:
        """Audit rate and hit rate in each of the data sets' cost quartiles, (K,) each."""
        figures = self._figures(setting, [job := _Job(policy, beta)], None)[job]
        seen, verified, found = figures[..., 2:].sum(axis=(0, 1)).reshape(3, STRATA)
        return verified / seen, found / verified

    def memory(self, setting: str, weights: Sequence[float], beta: float) -> dict[float, float]:
        """Hit rate of CST + memory by the memory's weight."""
        jobs = {w: _Job("cst-memory", beta, option=("weight", w)) for w in weights}
        figures = self._figures(setting, list(jobs.values()), None)
        return {w: float(np.nanmean(figures[job][..., 0])) for w, job in jobs.items()}

    def strata_sweep(self, setting: str, k: int, betas: Sequence[float]) -> dict[float, float]:
        """Hit rate of CST with K strata."""
        jobs = {beta: _Job("cst", beta, option=("strata", k)) for beta in betas}
        figures = self._figures(setting, list(jobs.values()), None)
        return {beta: float(np.nanmean(figures[job][..., 0])) for beta, job in jobs.items()}

    def _figures(
        self, setting: str, jobs: Sequence[_Job], change: Change | None
    ) -> dict[_Job, FloatArray]:
        """(draws, seeds, figures) of each job; only what was never asked for is replayed."""
        new = [job for job in jobs if (setting, job, str(change)) not in self._kept]
        if new:
            draws = SETTINGS[setting].draws
            every = [(d, s) for d in range(draws) for s in range(self.seeds)]
            work = partial(_replay_one, setting, new, change)
            with ProcessPoolExecutor() as pool:
                done = np.array(list(pool.map(work, every, chunksize=5)))
            done = done.reshape(draws, self.seeds, len(new), -1)
            for i, job in enumerate(new):
                self._kept[setting, job, str(change)] = done[:, :, i]
        return {job: self._kept[setting, job, str(change)] for job in jobs}


def _replay_one(
    setting: str, jobs: Sequence[_Job], change: Change | None, which: tuple[int, int]
) -> list[list[float]]:
    """Hit rate, gate, and the three counts by stratum of each job, on one data set and seed."""
    number, seed = which
    table = draw(SETTINGS[setting], number)
    if change is not None:
        table = change(table)
    # A seed shuffles; the data sets come shuffled differently, so that one seed is not one order.
    table = table.take(np.random.default_rng(number).permutation(len(table)))
    rng = np.random.default_rng(seed)
    table = table.take(rng.permutation(len(table)))
    flipped = rng.random(len(table)) < FLIPPED
    noise = NOISE * table.h.std(axis=0) * rng.standard_normal(table.h.shape)
    streams = {
        evaluate: Stream(
            table.h + noise,
            table.cost_estimate,
            table.cost,
            table.error,
            observed=np.where(flipped, 1.0 - table.error, table.error),
            evaluate=evaluate,
        )
        for evaluate in {job.evaluate for job in jobs}
    }
    rank = np.argsort(np.argsort(table.cost_estimate))
    stratum = rank * STRATA // len(table)
    return [_play(job, streams[job.evaluate], stratum, seed) for job in jobs]


def _play(job: _Job, stream: Stream, stratum: NDArray[np.intp], seed: int) -> list[float]:
    options = {} if job.option is None else dict([job.option])
    if job.policy in LEARNERS:
        learner = LEARNERS[job.policy](job.beta, seed=seed, **options)
        decisions = stream.step(learner, job.beta, feedback=job.feedback)
    else:
        decisions = stream.decide(job.policy, job.beta, seed=seed, **options)
    verified, y = decisions.verified, stream.error[stream.first :]
    k = stratum[stream.first :]
    counts = [np.bincount(k[v], minlength=STRATA) for v in (y >= 0, verified, verified & (y == 1))]
    gate = nan if decisions.evidence is None else float(decisions.evidence.open)
    hit = float(y[verified].mean()) if verified.any() else nan
    return [hit, gate, *np.concatenate(counts).tolist()]
