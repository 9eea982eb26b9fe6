"""The error of the estimated score, and how often its interval covers, against a random subset.

    python benchmarks/scores.py [RECORDS ...] [--runs 200] [--sizes 100,300,1000,5000]
                                [--budgets 0.1,0.2,0.3,0.5] [--jobs 1]

RECORDS are files of records, or logs, whose outputs all have a label. Each run takes N of them at
random, in an order drawn anew where that is nearly all of the file; passes them through the policy
`survey`, which sees the values of those it draws; and estimates the mean of all N. The metric is
right or wrong, and, for records with a stated confidence, its Brier score, a graded value.

Columns: RMSE, relative to that of as many outputs drawn uniformly (computed, not simulated); the
limit of estimates with uniform draws, √(1 - R²), R² of the best prediction for each output from all
the others; their ratio; the share of the 95 % intervals that hold the true mean, with those below
and above; the intervals' mean width, relative to that of the normal interval for uniform draws.

The policy and the estimator are those of a gate, without its log and its budget, which would take
most of the time; tests/analysis/test_score.py holds a gate beside them.
"""

from __future__ import annotations

import argparse
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from math import floor, sqrt
from pathlib import Path
from time import perf_counter

import numpy as np
from _machine import machine
from numpy.typing import NDArray

from gatekeeper.analysis.mean_of_all import Drawn, mean_of_all, unchecked_interval
from gatekeeper.io.records import RecordTable, load_records
from gatekeeper.policies import Survey
from gatekeeper.stats.error_model import raw_of
from gatekeeper.stats.value_model import Design, predict
from gatekeeper.types import Candidate, FloatArray, Outcome, Record, Verdict

SHARED = Path(__file__).parents[1] / ".." / "shared" / "data" / "records"
CONFIDENCE = "verbal_numeric"  # the feature that is a stated confidence
NEARLY = 0.5  # share of a file from which on the order is drawn, too
RANKED = 100  # runs of which R² is computed


@dataclass(frozen=True)
class Series:
    """Outputs of one model with the values of one metric."""

    name: str
    candidates: list[Candidate]
    values: FloatArray  # (M,) in [0, 1]


def series_of(path: Path) -> list[Series]:
    """The metrics of a file."""
    table: RecordTable = load_records(path)
    records = [record for record in table if record.error is not None]
    candidates = [candidate_of(record) for record in records]
    name = path.name.removesuffix(".gz").removesuffix(".jsonl").split("__")[-1]
    name = name.removesuffix("-Instruct")
    right = np.array([1.0 - float(record.error or 0) for record in records])
    found = [Series(f"{name}, right", candidates, right)]
    stated = np.array([record.features.get(CONFIDENCE, np.nan) for record in records])
    if np.isfinite(stated).mean() > 0.5:
        brier = (np.nan_to_num(stated, nan=0.5) - right) ** 2
        found.append(Series(f"{name}, Brier", candidates, brier))
    return found


def candidate_of(record: Record) -> Candidate:
    return Candidate(record.id, record.signals, record.cost_estimate, record.features)


def run(series: Series, size: int, budget: float, seed: int) -> list[float]:
    """Error, variance of a uniform subset, R², interval too high, too low, width, Σ p."""
    rng = np.random.default_rng((seed, size, floor(1000 * budget)))
    at = rng.permutation(len(series.candidates))[:size]
    if size < NEARLY * len(series.candidates):
        at.sort()
    chosen = [series.candidates[i] for i in at.tolist()]
    y = series.values[at]
    p, known = draw(chosen, y, budget, seed)
    raws = [raw_of(candidate) for candidate in chosen]
    columns = Design.of(raws).of_rows(raws)
    drawn = Drawn(p, known, np.where(known, y, np.nan), np.ones(size))
    mean = mean_of_all(drawn, columns)
    assert mean is not None
    found = unchecked_interval(mean)
    truth, n = float(y.mean()), int(known.sum())
    r2 = np.nan
    if seed < RANKED:
        best = predict(columns, np.arange(size), y)
        r2 = 1.0 - float(((y - best.left_out) ** 2).sum() / ((y - best.mean_left_out) ** 2).sum())
    uniform = float(y.var(ddof=1)) * (1.0 - n / size) / n
    width = (found.high - found.low) / (3.92 * sqrt(uniform)) if uniform else np.nan
    low, high = found.low - 1e-9, found.high + 1e-9  # sums of floats
    return [found.value - truth, uniform, r2, truth < low, truth > high, width, float(n)]


def draw(
    candidates: list[Candidate], y: FloatArray, budget: float, seed: int
) -> tuple[FloatArray, NDArray[np.bool_]]:
    """Propensities and draws of the policy, which sees the values of what it draws."""
    policy = Survey(budget, horizon=len(candidates), seed=seed)
    p, known = np.empty(y.size), np.zeros(y.size, dtype=bool)
    for t, (candidate, value) in enumerate(zip(candidates, y.tolist(), strict=True)):
        decision = policy.decide(candidate)
        p[t], known[t] = decision.propensity, decision.verify
        if decision.verify:
            policy.update(candidate, decision, Outcome(Verdict.PASSED, value=value))
    return p, known


def run_cell(series: Series, size: int, budget: float, runs: int) -> FloatArray:
    """(runs, 7)"""
    return np.array([run(series, size, budget, seed) for seed in range(runs)])


def row(name: str, size: int, budget: float, x: FloatArray) -> str:
    rmse = sqrt(float((x[:, 0] ** 2).mean() / x[:, 1].mean()))
    limit = sqrt(1.0 - max(float(np.nanmean(x[:, 2])), 0.0))
    low, high = 100.0 * x[:, 3].mean(), 100.0 * x[:, 4].mean()
    return (
        f"{name:<30} {size:5} {budget:6.0%} {x[:, 6].mean():7.1f} {rmse:8.3f} {limit:7.3f} "
        f"{rmse / limit:7.3f} {100.0 - low - high:7.1f} {low:5.1f} {high:5.1f} "
        f"{np.nanmean(x[:, 5]):7.3f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("records", nargs="*", type=Path)
    parser.add_argument("--runs", type=int, default=200, help="of each cell")
    parser.add_argument("--sizes", default="100,300,1000,5000", metavar="N,N,...")
    parser.add_argument("--budgets", default="0.1,0.2,0.3,0.5", metavar="SHARE,...")
    parser.add_argument("--jobs", type=int, default=1)
    args = parser.parse_args()
    start = perf_counter()
    paths = args.records or sorted(SHARED.resolve().glob("*.jsonl.gz"))
    if not paths:
        parser.error("give files of records: there is no shared/data/records beside the repository")
    every = [series for path in paths for series in series_of(path)]
    print(machine())
    print(
        f"{'outputs, metric':<30} {'N':>5} {'budget':>6} {'checks':>7} {'RMSE':>8} {'limit':>7} "
        f"{'ratio':>7} {'covers':>7} {'below':>5} {'above':>5} {'width':>7}"
    )
    sizes = [int(size) for size in args.sizes.split(",")]
    budgets = [float(budget) for budget in args.budgets.split(",")]
    cells = [
        (series, size, budget)
        for size in sizes
        for series in every
        for budget in budgets
        if size <= len(series.candidates)
    ]
    with ProcessPoolExecutor(args.jobs) as pool:
        waiting = [pool.submit(run_cell, *cell, args.runs) for cell in cells]
        worst = []
        for (series, size, budget), future in zip(cells, waiting, strict=True):
            x = future.result()
            print(row(series.name, size, budget, x), flush=True)
            worst.append(x)
    holds = [100.0 * float(1.0 - x[:, 3:5].sum(axis=1).mean()) for x in worst]
    ratios = [sqrt(float((x[:, 0] ** 2).mean() / x[:, 1].mean())) for x in worst]
    print(
        f"\nover {len(cells)} cells: RMSE {min(ratios):.3f} to {max(ratios):.3f} of a random "
        f"subset's; coverage {min(holds):.1f} to {max(holds):.1f} %, mean {np.mean(holds):.1f} %"
    )
    print(f"{args.runs} runs of each cell, {perf_counter() - start:.0f} s, {args.jobs} process(es)")


if __name__ == "__main__":
    main()
