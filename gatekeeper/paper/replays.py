"""The replays of policies on the synthetic streams: every table gets them here, none runs twice."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import cache, partial
from itertools import product
from typing import Any

import numpy as np

from gatekeeper.analysis.experiment import Comparison, Label, Protocol, compare, runs
from gatekeeper.analysis.parallel import WorkerPool
from gatekeeper.analysis.policy_run import Contender
from gatekeeper.analysis.replay import Evaluate, Feedback
from gatekeeper.io.records import RecordTable
from gatekeeper.paper import published
from gatekeeper.paper.settings import SETTINGS, STRATA, Setting
from gatekeeper.paper.streams import draw
from gatekeeper.stats.interval import Interval
from gatekeeper.types import FloatArray

__all__ = ["Change", "Grid", "Replays"]

Change = Callable[[RecordTable], RecordTable]
SECOND_HALF = ("random", "threshold", "cst", "hga", "split-conformal")


@dataclass(frozen=True, slots=True, eq=False)
class Grid:
    """Policies at budgets, compared on each of a setting's data sets."""

    draws: Sequence[Comparison]

    def hit_rate(self, policy: Contender | str, beta: float) -> FloatArray:
        """(draws, seeds); NaN where nothing was verified."""
        return np.array([c.seeds(policy, beta, "hit_rate") for c in self.draws])

    def mean(self, policy: Contender | str, beta: float) -> float:
        """Over the replays that verified anything; NaN where none did."""
        hits = self.hit_rate(policy, beta)
        return float(np.nanmean(hits)) if np.isfinite(hits).any() else float("nan")

    def gain(self, policy: str, base: str, beta: float) -> Interval:
        """Mean paired difference in pp.

        The interval is the one that the seeds of one data set give, as in the paper: its width is
        averaged over the data sets.
        """
        found = [c.difference(policy, base, beta, "hit_rate") for c in self.draws]
        mean = 100 * float(np.mean([e.value for e in found]))
        margin = 100 * float(np.mean([e.margin for e in found]))
        return Interval.around(mean, margin)

    def gate_open(self, beta: float) -> float:
        """Share of the replays in which HGA's gate opens."""
        b = list(self.draws[0].betas).index(beta)
        return float(np.nanmean([c.gate_open[:, b] for c in self.draws]))


@dataclass(slots=True)
class Replays:
    """Replays of every setting's data sets, `seeds` of each, each computed once."""

    seeds: int
    on_progress: Callable[[int], None] = lambda replays: None  # called with how many were just made
    _kept: dict[Any, Grid] = field(default_factory=dict)
    _pool: WorkerPool | None = None
    _opened: ExitStack = field(default_factory=ExitStack)

    def __enter__(self) -> Replays:
        return self

    def __exit__(self, *error: Any) -> None:
        self._pool = None
        self._opened.__exit__(*error)

    def grid(
        self,
        setting: str,
        policies: Sequence[Contender | str],
        betas: Sequence[float],
        *,
        evaluate: Evaluate = "all",
        feedback: Feedback = "full",
        label: Label = "error",
        change: Change | None = None,
    ) -> Grid:
        """Every policy at every budget; `change` makes other records of every data set first."""
        protocol = Protocol(seeds=self.seeds, evaluate=evaluate, feedback=feedback, label=label)
        key = (setting, tuple(map(str, policies)), tuple(betas), protocol, repr(change))
        if key not in self._kept:
            one = partial(_compare, SETTINGS[setting], change, policies, betas, protocol)
            self._kept[key] = Grid(self._in_parallel(one, SETTINGS[setting].draws))
        return self._kept[key]

    def second_half(self, setting: str) -> Grid:
        """The grid of the reanalysis tables, evaluated on the second half."""
        return self.grid(setting, SECOND_HALF, published.MAIN_BETAS, evaluate="second-half")

    def by_stratum(
        self, setting: str, policies: Sequence[str], beta: float
    ) -> dict[str, tuple[FloatArray, FloatArray]]:
        """Audit rate and hit rate of each policy in the data sets' cost quartiles, (K,) each."""
        counts = {policy: np.zeros((3, STRATA)) for policy in policies}  # seen, verified, found
        for number in range(SETTINGS[setting].draws):
            table = _data_set(SETTINGS[setting], None, number)
            rank = np.argsort(np.argsort(table.cost_estimate))
            stratum = rank * STRATA // len(table)
            for run in runs(table, policies, [beta], Protocol(seeds=self.seeds)):
                k, verified = stratum[run.rows], run.decisions.verified
                for row, mine in enumerate((slice(None), verified, verified & (run.error == 1))):
                    counts[run.contender.name][row] += np.bincount(k[mine], minlength=STRATA)
        return {p: (n[1] / n[0], n[2] / n[1]) for p, n in counts.items()}

    def _in_parallel(self, one: Callable[[int, range], Comparison], draws: int) -> list[Comparison]:
        """Several data sets go side by side; of a single one, the seeds do."""
        if self._pool is None:
            self._pool = self._opened.enter_context(WorkerPool(os.cpu_count() or 1))
        seeds = range(self.seeds)
        parts = [range(s, s + 1) for s in seeds] if draws == 1 else [seeds]
        tasks = list(product(range(draws), parts))
        found = []
        for comparison in self._pool.map(one, *zip(*tasks, strict=True)):
            found.append(comparison)
            self.on_progress(comparison.protocol.seeds)
        return [_joined(found)] if draws == 1 else found


def _compare(
    setting: Setting,
    change: Change | None,
    policies: Sequence[Contender | str],
    betas: Sequence[float],
    protocol: Protocol,
    number: int,
    seeds: range,
) -> Comparison:
    part = replace(protocol, first_seed=seeds.start, seeds=len(seeds))
    return compare(_data_set(setting, change, number), policies, betas, part)


def _joined(parts: Sequence[Comparison]) -> Comparison:
    """Comparisons of the same data set on consecutive seeds, as one."""
    first = parts[0]
    return replace(
        first,
        protocol=replace(first.protocol, seeds=sum(part.protocol.seeds for part in parts)),
        values=np.concatenate([part.values for part in parts], axis=2),
        gate_open=np.concatenate([part.gate_open for part in parts], axis=2),
    )


def _data_set(setting: Setting, change: Change | None, number: int) -> RecordTable:
    """One data set, shuffled, so that one seed is not the same order in all of them."""
    table = _drawn(setting, number)
    if change is not None:
        table = change(table)
    return table.take(np.random.default_rng(number).permutation(len(table)))


_drawn = cache(draw)  # in each process: most tables replay the same data sets
