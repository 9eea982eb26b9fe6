"""How often the intervals of `gatekeeper.analysis.estimates` cover the truth, by policy.

    python benchmarks/estimates.py [--runs 2000] [--jobs 1] [--policy NAME ...]

The runs of a policy are spread over all combinations of the streams of `gatekeeper.paper.stress`
with the budgets and sizes below. Every run draws its stream again and uses the gate's parts without
outputs and log, which would take most of the time; tests/analysis/test_estimates.py runs a gate.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from math import ceil
from time import perf_counter

import numpy as np
from _gate import EXPLORE, go_through
from _machine import machine

from gatekeeper.analysis.estimates import estimate
from gatekeeper.budget import Budget
from gatekeeper.gate.rates import exploration_rate, named_policy
from gatekeeper.io.records import RecordTable
from gatekeeper.paper.stress import make_stream
from gatekeeper.types import FloatArray

POLICIES = (
    *("random", "threshold", "cst", "cst-memory", "mp-adapt", "mp-strat"),
    *("split-conformal", "hga", "calibrated"),
)
STREAMS = ("usual", "no-signal", "rare-errors", "drift", "sharp-signal")
BETAS = (0.1, 0.2, 0.3)
SIZES = {1000: 0.75, 3000: 0.25}  # share of the runs
MANY = 100_000  # runs of a cell, at most
EXPECTED = (0.0, 0.3, 1.0, 3.0, 10.0, 30.0, np.inf)  # wrong outputs among those drawn at random

Cell = tuple[str, str, float, int]  # policy, stream, β, N


def simulate(name: str, stream: RecordTable, beta: float, seed: int) -> RecordTable:
    """The records that the log of a gate with this policy would have."""
    budget = Budget(fraction=beta, horizon=len(stream))
    policy = named_policy(name, budget, exploration_rate(budget, EXPLORE), seed)
    return go_through(policy, stream, budget, seed)


def run(cell: Cell, seed: int) -> FloatArray:
    """The results of one run, (4, 4).

    For each of three estimates: its error, whether the truth lies below and above the interval, and
    the interval's width. In the last row: wrong outputs expected among those drawn at random,
    outputs drawn at random, and outputs that could not be drawn.
    """
    policy, stream, beta, n = cell
    table = make_stream(stream, n, seed)
    left = simulate(policy, table, beta, seed)
    p, verified = left.propensity, left.verified
    assert p is not None
    assert verified is not None
    truth = float(table.error[p > 0.0].mean())
    found = estimate(left)
    rows = []
    for one in (found.naive, found.weighted, found.assisted):
        if one is None:
            rows.append([np.nan] * 4)
            continue
        low, high = one.low - 1e-9, one.high + 1e-9  # allowance for rounding
        rows.append([one.value - truth, truth < low, truth > high, one.high - one.low])
    by_chance = (p > 0.0) & (p < 1.0)
    expected = float((p * table.error)[by_chance].sum())
    rows.append([expected, verified[by_chance].sum(), (p == 0.0).mean(), truth])
    return np.array(rows)


def run_cell(cell: Cell, seeds: range) -> FloatArray:
    """`run` for each seed: (len(seeds), 4, 4)."""
    return np.stack([run(cell, seed) for seed in seeds])


def _with(*values: tuple[int, object]) -> Callable[[Cell], bool]:
    """Whether a cell has these values at these places."""
    return lambda cell: all(cell[at] == value for at, value in values)


def coverage(x: FloatArray) -> FloatArray:
    """Coverage of each estimate, (3,) in [0, 1], over the runs that have it."""
    return np.asarray(1.0 - np.nanmean(x[:, :3, 1] + x[:, :3, 2], axis=0))


def header(title: str) -> str:
    return (
        f"\n{title:<17}   runs  by     no      coverage, %              width            "
        f"  bias, points\n{'':<17}         lot    chance  naive weighted assisted  "
        "weighted assisted  (of each)"
    )


def row(name: str, x: FloatArray) -> str:
    refused = int(np.isnan(x[:, 1, 0]).sum())
    cover = 100.0 * coverage(x)
    width = np.nanmean(x[:, :3, 3], axis=0)
    bias = 100.0 * np.nanmean(x[:, :3, 0], axis=0)
    return (
        f"{name:<17} {len(x):6} {x[:, 3, 1].mean():6.0f} {x[:, 3, 2].mean():7.1%} "
        f"{cover[0]:7.1f} {cover[1]:8.1f} {cover[2]:8.1f} {width[1]:9.3f} {width[2]:8.3f}"
        f"   {bias[0]:+6.1f} {bias[1]:+5.2f} {bias[2]:+5.2f}"
        + (f"  ({refused} refused)" if refused else "")
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=2000, help="of each policy")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--policy", action="append", choices=POLICIES)
    args = parser.parse_args()
    start = perf_counter()
    policies = args.policy or POLICIES
    kinds = list(product(STREAMS, BETAS, SIZES))
    cells = [(policy, *kind) for policy in policies for kind in kinds]
    runs = [ceil(args.runs * SIZES[cell[3]] * len(SIZES) / len(kinds)) for cell in cells]
    seeds = [range(MANY * k, MANY * k + n) for k, n in enumerate(runs)]  # all different
    found: dict[Cell, FloatArray] = {}

    def of(which: Callable[[Cell], bool]) -> FloatArray:
        return np.concatenate([x for cell, x in found.items() if which(cell)])

    print(machine())
    print(header("policy"))
    with ProcessPoolExecutor(args.jobs) as pool:
        for cell, x in zip(cells, pool.map(run_cell, cells, seeds), strict=True):
            found[cell] = x
            if cell[1:] == kinds[-1]:
                print(row(cell[0], of(_with((0, cell[0])))), flush=True)
    for title, at, values in (
        ("stream", 1, STREAMS),
        ("budget", 2, BETAS),
        ("outputs", 3, list(SIZES)),
    ):
        print(header(title))
        for value in values:
            print(row(str(value), of(_with((at, value)))))
    every = of(lambda c: True)
    print(header("errors expected"))  # among the outputs drawn at random
    low = np.digitize(every[:, 3, 0], EXPECTED) - 1
    for k in np.unique(low).tolist():
        print(row(f"{EXPECTED[k]:g} to {EXPECTED[k + 1]:g}", every[low == k]))
    print("\ncoverage, %, weighted / assisted" + "".join(f"{name:>16}" for name in STREAMS))
    for policy in policies:
        shown = [coverage(of(_with((0, policy), (1, s)))) for s in STREAMS]
        print(f"{policy:<32}" + "".join(f"{100 * c[1]:9.1f} /{100 * c[2]:5.1f}" for c in shown))
    print(f"\n{perf_counter() - start:.0f} s with {args.jobs} process(es)")


if __name__ == "__main__":
    main()
