"""Error and coverage of the estimated score, compared with a random subset of the same size.

    python benchmarks/scores.py [RECORDS ...] [--quick] [--runs 2000] [--sizes 100,300,1000,5000]
                                [--budgets 0.1,0.2,0.3,0.5] [--jobs 1]

RECORDS are files of records, or logs, whose outputs all have a label; by default those in
shared/data/records, and the bundled model's answers if `bundled_answers.py` has made them. Each run
takes N of them at random (in a random order, too, if N is most of the file); passes them through
the policy `survey`, which sees the values of those it draws; and estimates the mean of all N.
Metrics: right or wrong; the graded value of a record that has one; the Brier score of a stated
confidence. `--quick`: 200 runs, without N = 5,000.

Columns: RMSE, relative to that of as many outputs drawn uniformly (computed, not simulated); the
limit of estimates with uniform draws, √(1 - R²), with R² of the best prediction of each output from
all the others; RMSE divided by the limit; the same limit and ratio for predictions learned from n
outputs drawn uniformly, with R² on those not drawn; the share of the 95 % intervals that hold the
true mean, with the shares that lie above and below it; the intervals' mean width, relative to that
of the normal interval for uniform draws.

Runs that differ only in budget or metric share their outputs, and go through the policy together
(`_surveys.py`), without a gate, its log and its budget, which would take most of the time.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass
from math import sqrt
from pathlib import Path
from time import perf_counter

import numpy as np
from _machine import machine
from _surveys import Runs, survey_of
from bundled_answers import ANSWERS

from gatekeeper.analysis.mean_of_all import Drawn, mean_of_all, unchecked_interval
from gatekeeper.io.records import load_records
from gatekeeper.stats.error_model import raw_of
from gatekeeper.stats.raw_table import RawTable
from gatekeeper.stats.value_model import Columns, Design, predict
from gatekeeper.types import BoolArray, Candidate, FloatArray, IntArray, Record

SHARED = Path(__file__).parents[1] / ".." / "shared" / "data" / "records"
CONFIDENCE = "verbal_numeric"  # the feature that is a stated confidence
NEARLY = 0.5  # share of a file above which the order is drawn, too
RANKED = 300  # runs for which the limits are computed
TOGETHER = 500_000  # outputs, at most, of the runs that go through the policy together
QUICK_RUNS, MOST_QUICK = 200, 1000


@dataclass(frozen=True)
class File:
    """Outputs of one model with the values of its metrics."""

    name: str
    table: RawTable  # (M,)
    metrics: dict[str, FloatArray]  # (M,) each, in [0, 1]


@dataclass(frozen=True)
class Task:
    """Runs with the seeds of a range, of each metric and budget."""

    file: File
    size: int
    budgets: tuple[float, ...]
    seeds: range


def read(path: Path) -> File:
    """A file with its metrics."""
    records = [record for record in load_records(path) if record.error is not None]
    name = path.name.removesuffix(".gz").removesuffix(".jsonl").split("__")[-1]
    right = np.array([1.0 - float(record.error or 0) for record in records])
    metrics = {"right": right}
    if all(record.value is not None for record in records):
        metrics["graded"] = np.array([record.value for record in records], dtype=np.float64)
    stated = np.array([record.features.get(CONFIDENCE, np.nan) for record in records])
    if np.isfinite(stated).mean() > 0.5:
        metrics["Brier"] = (np.nan_to_num(stated, nan=0.5) - right) ** 2
    table = RawTable.of([raw_of(candidate_of(record)) for record in records])
    return File(name.removesuffix("-Instruct"), table, metrics)


def candidate_of(record: Record) -> Candidate:
    return Candidate(record.id, record.signals, record.cost_estimate, record.features)


def outputs_of(seed: int, size: int, of: int) -> IntArray:
    """Positions of the outputs of a run, in their order."""
    at = np.random.default_rng((seed, size)).permutation(of)[:size]
    if size < NEARLY * of:
        at.sort()
    return at


def run(task: Task) -> FloatArray:
    """Results of each run: (metrics, budgets, seeds, 9)."""
    file, seeds = task.file, task.seeds
    at = [outputs_of(seed, task.size, len(file.table.rows)) for seed in seeds]
    tables = [file.table.take(each) for each in at]
    values = np.array([[y[each] for each in at] for y in file.metrics.values()])
    shape = (len(values), len(task.budgets), len(seeds))
    metric, budget, stream = (each.ravel() for each in np.indices(shape))
    p, known = survey_of(
        Runs(
            tables,
            stream,
            values[metric, stream],
            np.array(task.budgets)[budget],
            [seeds[i] for i in stream.tolist()],
        )
    )
    p, known = p.reshape(*shape, -1), known.reshape(*shape, -1)
    found = np.empty((*shape, 9))
    for i, table in enumerate(tables):
        columns = Design.of(table).of_rows(table)
        for j, y in enumerate(values[:, i]):
            r2 = explained(columns, y) if seeds[i] < RANKED else np.nan
            for k in range(len(task.budgets)):
                found[j, k, i, :7] = result(p[j, k, i], known[j, k, i], y, columns, r2)
                found[j, k, i, 7:] = np.nan
                if seeds[i] < RANKED:
                    found[j, k, i, 7:] = learned(columns, y, int(known[j, k, i].sum()), seeds[i])
    return found


def explained(columns: Columns, y: FloatArray) -> float:
    """R² of the best prediction of each value from all the others."""
    best = predict(columns, np.arange(y.size), y)
    return 1.0 - float(((y - best.left_out) ** 2).sum() / ((y - best.mean_left_out) ** 2).sum())


def learned(columns: Columns, y: FloatArray, n: int, seed: int) -> tuple[float, float]:
    """Sums of squared residuals of N - n outputs: predicted from n others, and not predicted."""
    order = np.random.default_rng((seed, n)).permutation(y.size)
    known, others = order[:n], order[n:]
    left = y[others] - columns.z[others] @ predict(columns, known, y[known]).slope
    return left.size * float(left.var()), left.size * float(y[others].var())


def result(
    p: FloatArray, known: BoolArray, y: FloatArray, columns: Columns, r2: float
) -> list[float]:
    """Error, variance of a uniform subset, R², interval too high, too low, width, verified."""
    drawn = Drawn(p, known, np.where(known, y, np.nan), np.ones(y.size))
    mean = mean_of_all(drawn, columns)
    assert mean is not None
    found = unchecked_interval(mean)
    truth, n = float(y.mean()), int(known.sum())
    uniform = float(y.var(ddof=1)) * (1.0 - n / y.size) / n
    width = (found.high - found.low) / (3.92 * sqrt(uniform)) if uniform else np.nan
    low, high = found.low - 1e-9, found.high + 1e-9  # allowance for rounding
    return [found.value - truth, uniform, r2, truth < low, truth > high, width, float(n)]


def tasks_of(file: File, size: int, budgets: tuple[float, ...], runs: int) -> Iterator[Task]:
    each = max(1, TOGETHER // (size * len(budgets) * len(file.metrics)))
    for start in range(0, runs, each):
        yield Task(file, size, budgets, range(start, min(start + each, runs)))


@dataclass(frozen=True)
class Cell:
    """The runs of one file, metric, size and budget: (runs, 9)."""

    name: str
    size: int
    budget: float
    x: FloatArray

    @property
    def rmse(self) -> float:
        return sqrt(float((self.x[:, 0] ** 2).mean() / self.x[:, 1].mean()))

    @property
    def limit(self) -> float:
        return sqrt(1.0 - max(float(np.nanmean(self.x[:, 2])), 0.0))

    @property
    def learned(self) -> float:
        return sqrt(float(np.nansum(self.x[:, 7]) / np.nansum(self.x[:, 8])))

    @property
    def covers(self) -> float:
        return 100.0 * float(1.0 - self.x[:, 3:5].sum(axis=1).mean())

    def __str__(self) -> str:
        low, high = 100.0 * self.x[:, 3].mean(), 100.0 * self.x[:, 4].mean()
        return (
            f"{self.name:<32} {self.size:5} {self.budget:6.0%} {self.x[:, 6].mean():7.1f} "
            f"{self.rmse:8.3f} {self.limit:7.3f} {self.rmse / self.limit:7.3f} "
            f"{self.learned:7.3f} {self.rmse / self.learned:7.3f} "
            f"{self.covers:7.1f} {low:5.1f} {high:5.1f} {np.nanmean(self.x[:, 5]):7.3f}"
        )


def summary(name: str, cells: list[Cell]) -> str:
    def span(values: list[float], form: str) -> str:
        least, most = format(min(values), form), format(max(values), form)
        return f"{np.mean(values):{form}} ({least} to {most})"

    return (
        f"{name:<16} {len(cells):5} {span([c.rmse for c in cells], '.3f'):>24} "
        f"{span([c.rmse / c.limit for c in cells], '.3f'):>24} "
        f"{span([c.rmse / c.learned for c in cells], '.3f'):>24} "
        f"{span([c.covers for c in cells], '.1f'):>22}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("records", nargs="*", type=Path)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--runs", type=int, default=2000, help="of each cell")
    parser.add_argument("--sizes", default="100,300,1000,5000", metavar="N,N,...")
    parser.add_argument("--budgets", default="0.1,0.2,0.3,0.5", metavar="SHARE,...")
    parser.add_argument("--jobs", type=int, default=1)
    args = parser.parse_args()
    start = perf_counter()
    paths = args.records or [
        *sorted(SHARED.resolve().glob("*.jsonl.gz")),
        *([ANSWERS] if ANSWERS.exists() else []),
    ]
    if not paths:
        parser.error("give files of records: there is no shared/data/records beside the repository")
    sizes = [int(size) for size in args.sizes.split(",")]
    sizes = [size for size in sizes if size <= MOST_QUICK or not args.quick]
    budgets = tuple(float(budget) for budget in args.budgets.split(","))
    runs = min(args.runs, QUICK_RUNS) if args.quick else args.runs
    files = [read(path) for path in paths]
    print(machine())
    print(
        f"{'outputs, metric':<32} {'N':>5} {'budget':>6} {'checks':>7} {'RMSE':>8} {'limit':>7} "
        f"{'ratio':>7} {'learned':>7} {'ratio':>7} {'covers':>7} {'below':>5} {'above':>5} "
        f"{'width':>7}"
    )
    cells: list[Cell] = []
    with ProcessPoolExecutor(args.jobs) as pool:
        waiting: list[tuple[File, int, list[Future[FloatArray]]]] = [
            (file, size, [pool.submit(run, task) for task in tasks_of(file, size, budgets, runs)])
            for size in sizes
            for file in files
            if size <= len(file.table.rows)
        ]
        for file, size, parts in waiting:
            x = np.concatenate([part.result() for part in parts], axis=2)
            for j, metric in enumerate(file.metrics):
                for k, budget in enumerate(budgets):
                    cells.append(Cell(f"{file.name}, {metric}", size, budget, x[j, k]))
                    print(cells[-1], flush=True)
    print(
        f"\n{'':<16} {'cells':>5} {'RMSE':>24} {'RMSE / limit':>24} "
        f"{'RMSE / learned':>24} {'covers':>22}"
    )
    for size in sizes:
        for kind in ("right", "graded"):
            some = [
                c for c in cells if c.size == size and c.name.endswith("right") == (kind == "right")
            ]
            if some:
                print(summary(f"{size}, {kind}", some))
    print(summary("all", cells))
    processor = sum(os.times()[:4]) / 60.0
    print(
        f"{runs} runs of each cell, {perf_counter() - start:.0f} s, {args.jobs} process(es), "
        f"{processor:.1f} minutes of processor time"
    )


if __name__ == "__main__":
    main()
