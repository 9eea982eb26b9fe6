"""How often the intervals of `gatekeeper compare` and `gatekeeper plan` cover the truth.

    python benchmarks/off_policy.py [--runs 2000] [--jobs 1] [--part compare|plan] [--size N]
        [--log NAME] [--policy NAME]      the last three may be repeated

Logs are those of a gate that explores a tenth of its budget, on streams whose labels are known; the
runs are spread evenly over the streams, budgets and sizes below. Logs of random, threshold and cst
are computed by columns, as if no proposal was ever refused; those of calibrated are computed as in
benchmarks/estimates.py.

compare: the truth is what the same choices found on the whole stream.
plan: the truth is what the policy, with the score that the run's warm-up fitted, finds on 30,000
further outputs of the stream; from a log, and from the same outputs with all labels. The truth at a
budget is that of a run so long that it verifies exactly this share; simulated runs miss it by about
a point, as their quantiles are still being learned, and that counts against the intervals. A budget
that is claimed to keep a residual risk is false if the truth at this budget is above the risk.
"""

from __future__ import annotations

import argparse
import zlib
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from itertools import product
from time import perf_counter

import numpy as np
from _gate import EXPLORE
from _machine import machine
from estimates import simulate

from gatekeeper.analysis.off_policy import Evidence, policy_values
from gatekeeper.analysis.plan import curve_of
from gatekeeper.analysis.policy_run import Contender
from gatekeeper.analysis.vectorised import Stream, fixed_score
from gatekeeper.errors import BadInputError
from gatekeeper.io.records import RecordTable
from gatekeeper.paper.stress import make_stream
from gatekeeper.policies import T0, describe_policy
from gatekeeper.stats.interval import Interval
from gatekeeper.stats.strata import strata_of
from gatekeeper.types import FloatArray

LOGS = ("random", "threshold", "cst", "calibrated")
POLICIES = ("threshold", "cst", "calibrated", "random")
STREAMS = (
    *("usual", "no-signal", "rare-errors", "sharp-signal", "missing-signals"),
    *("drift", "rising", "u-shaped", "one-bad-stratum", "inverted-signal"),
)
STATIONARY = tuple(stream for stream in STREAMS if stream != "drift")  # where a next run is alike
BETAS = (0.1, 0.2, 0.3)
SIZES = (1000, 2000, 8000)
VALUES = ("recall", "hit rate", "more errors")
LONG = 30_000
TARGETS = (0.5, 0.9)  # recall
BUDGETS = (0.2, 0.5, 0.8, 0.9)
RISKS = (0.02, 0.05, 0.1, 0.2, 0.3, 0.4)
GRID = tuple(i / 20 for i in range(1, 20))

Cell = tuple[str, str, float, int]  # of the log: policy, stream, β, N
NOTHING = [np.nan] * 4


def judged(found: Interval | None, truth: float) -> list[float]:
    """Whether the truth lies below and above the interval, its width, the error."""
    if found is None or np.isnan([found.value, truth]).any():
        return NOTHING
    low, high = found.low - 1e-9, found.high + 1e-9  # allowance for rounding
    return [truth < low, truth > high, high - low, found.value - truth]


def logged(name: str, table: RecordTable, beta: float, seed: int) -> RecordTable:
    """The records that a gate with this policy would log: only verified outputs have labels."""
    if name == "calibrated":
        return simulate(name, table, beta, seed)
    epsilon = EXPLORE * beta
    left = (beta - epsilon) / (1.0 - epsilon)  # the policy's share of the budget
    rng = np.random.default_rng((seed, 2))
    if name == "random":
        p = np.full(len(table) - T0, left)
        wanted = rng.random(p.size) < p
    else:
        stream = Stream(table.h, table.cost_estimate, np.ones(len(table)), table.error)
        wanted = stream.decide(describe_policy(name).make, left, seed=seed).wanted
        missing = np.isnan(stream.score[T0:])  # drawn at random
        p = np.where(missing, left, wanted.astype(np.float64))
    verified = np.ones(len(table), dtype=bool)
    verified[T0:] = wanted | (rng.random(p.size) < epsilon)
    return replace(
        table,
        cost=np.where(verified, 1.0, np.nan),
        error=np.where(verified, table.error, np.nan),
        propensity=np.concatenate([np.ones(T0), p + epsilon * (1.0 - p)]),
        verified=verified.astype(np.float64),
    )


class Once(Evidence):
    """Replays each policy once: `compare` and the truth both need its choices."""

    def __init__(self, table: RecordTable) -> None:
        super().__init__(table)
        self._shares: dict[tuple[str, float], FloatArray] = {}

    def shares(self, policy: Contender | str, beta: float) -> FloatArray:
        asked = str(policy), beta
        if asked not in self._shares:
            self._shares[asked] = super().shares(policy, beta)
        return self._shares[asked]


def compared(cell: Cell, seed: int, *, policies: Sequence[str]) -> FloatArray:
    """`judged` for each policy and value of `compare`: (policies, values, 4)."""
    name, stream, beta, n = cell
    table = make_stream(stream, n, seed)
    try:
        evidence = Once(logged(name, table, beta, seed))
    except BadInputError:
        return np.full((len(policies), len(VALUES), 4), np.nan)
    counted, y = evidence.counted, table.error[T0:]
    first = evidence.shares(policies[0], beta)
    rows = []
    for value in policy_values(evidence, policies, beta):
        share = evidence.shares(value.policy, beta) * counted
        found, spent, errors = share @ y, share.sum(), counted @ y
        recall = float(found / errors) if errors else np.nan
        hit_rate = float(found / spent) if spent else np.nan
        rows.append(
            [
                judged(value.recall, recall),
                judged(value.hit_rate, hit_rate),
                judged(value.more, float(found - (first * counted) @ y)),
            ]
        )
    return np.array(rows)


def planned(cell: Cell, seed: int) -> FloatArray:
    """Figures for each line of a plan, (2, targets + budgets + budgets + risks, 4).

    First from the log, then with all labels. Those of a risk are as `claims` takes them, the others
    as `judged` returns them.
    """
    name, stream, beta, n = cell
    table = make_stream(stream, n, seed)
    recall, risk = truth_of(name, table, make_stream(stream, LONG, seed + 1_000_000))
    rows = []
    for records in (logged(name, table, beta, seed), table):
        try:
            curve = curve_of(Evidence(records), name, GRID)
        except BadInputError:
            rows.append([NOTHING] * (len(TARGETS) + 2 * len(BUDGETS) + len(RISKS)))
            continue
        row = []
        for target in TARGETS:
            needed = curve.for_recall(target)
            true = float(np.interp(target, recall, np.linspace(0.0, 1.0, recall.size)))
            found = needed.budget
            row.append(judged(found, true))
        at = [round(100 * b) for b in BUDGETS]
        row += [judged(curve.at(b).recall, recall[i]) for b, i in zip(BUDGETS, at, strict=True)]
        row += [
            judged(curve.at(b).residual_risk, risk[i]) for b, i in zip(BUDGETS, at, strict=True)
        ]
        for target in RISKS:
            claim = curve.for_residual_risk(target)
            false = claim is not None and risk[round(100 * claim)] > target
            row.append([float(false), 0.0, np.nan if claim is None else claim, claim is not None])
        rows.append(row)
    return np.array(rows, dtype=np.float64)


def truth_of(name: str, run: RecordTable, more: RecordTable) -> tuple[FloatArray, FloatArray]:
    """Recall at budgets of 0, 1, … 100 % of the outputs, and residual risk at 0 … 99 %."""
    h = np.vstack([run.h[:T0], more.h])
    estimate = np.concatenate([run.cost_estimate[:T0], more.cost_estimate])
    z = fixed_score(h, estimate, run.error[:T0]) / estimate
    part = strata_of(estimate, 4, warmup=T0)[T0:] if name == "cst" else np.zeros(LONG, dtype=int)
    z = z[T0:]
    part[np.isnan(z)] = -1  # drawn at random
    place = np.empty(LONG)
    for k in np.unique(part):
        mine = np.flatnonzero(part == k)
        order = mine[np.argsort(-z[mine], kind="stable")] if k >= 0 else mine
        place[order] = (np.arange(mine.size) + 0.5) / mine.size
    found = np.cumsum(np.bincount(np.ceil(100 * place).astype(int), more.error, 101))
    left = LONG * (1.0 - np.arange(100) / 100)
    return found / found[-1], (found[-1] - found[:-1]) / left


def run_cell(cell: Cell, runs: int, one: Callable[[Cell, int], FloatArray]) -> FloatArray:
    first = zlib.crc32(repr(cell).encode())  # so that cells have different draws
    return np.stack([one(cell, first + i) for i in range(runs)])


def measure(
    one: Callable[[Cell, int], FloatArray],
    logs: list[str],
    sizes: Sequence[int],
    runs: int,
    jobs: int,
) -> dict[Cell, FloatArray]:
    kinds = list(product(STREAMS if one is not planned else STATIONARY, BETAS, sizes))
    cells = [(name, *kind) for name in logs for kind in kinds]
    work = partial(run_cell, runs=-(-runs // len(kinds)), one=one)
    with ProcessPoolExecutor(jobs) as pool:
        return dict(zip(cells, pool.map(work, cells), strict=True))


def row(name: str, x: FloatArray) -> str:
    """A line of the table, of values (runs, 4)."""
    x = x[~np.isnan(x).any(axis=1)]
    if not len(x):
        return f"  {name:<34} none"
    below, above, width, error = x.mean(axis=0)
    return (
        f"  {name:<34} {len(x):6} {100 * (1 - below - above):8.1f} {100 * below:7.1f} "
        f"{100 * above:7.1f} {width:9.3f} {error:+9.4f}"
    )


HEAD = f"  {'':<34}   runs  covered    below   above     width      bias"


def print_compared(found: dict[Cell, FloatArray], logs: list[str], policies: Sequence[str]) -> None:
    """Print `compare`, without values that no verdict influences: random's recall and gain."""
    asked = {
        value: [
            p
            for p, policy in enumerate(policies)
            if not (policy == "random" and value.startswith("recall"))
            and not (p == 0 and value == "more errors")
        ]
        for value in VALUES
    }
    for name in logs:
        x = np.concatenate([v for cell, v in found.items() if cell[0] == name])
        print(f"\nlog of {name}: what others would have found\n{HEAD}")
        for p, policy in enumerate(policies):
            for v, value in enumerate(VALUES):
                if p in asked[value]:
                    print(row(f"{policy}, {value}", x[:, p, v]))
    for position, title in ((1, "stream"), (2, "budget"), (3, "outputs")):
        print(f"\nby {title}, all policies but random\n{HEAD}")
        for key in dict.fromkeys(cell[position] for cell in found):
            x = np.concatenate([v for cell, v in found.items() if cell[position] == key])
            for v in (0, 1):
                print(row(f"{key}, {VALUES[v]}", x[:, asked["recall"], v].reshape(-1, 4)))
    print(f"\nby value, all logs and policies\n{HEAD}")
    x = np.concatenate(list(found.values()))
    for v, value in enumerate(VALUES):
        print(row(value, x[:, asked[value], v].reshape(-1, 4)))


def claims(x: FloatArray, risk: str) -> str:
    """A line on the claimed budgets, of values (runs, 4): whether false, …, whether claimed."""
    x = x[~np.isnan(x[:, 0])]
    times = int(x[:, 3].sum())
    false = f"false in {x[:, 0].sum() / times:.1%} of these" if times else "never"
    return f"  a budget claimed to keep the risk, {risk}: {times} of {len(x)} times, {false}"


def print_planned(found: dict[Cell, FloatArray], logs: list[str]) -> None:
    names = [f"budget for a recall of {t:.0%}" for t in TARGETS]
    names += [f"recall at {b:.0%}" for b in BUDGETS] + [
        f"residual risk at {b:.0%}" for b in BUDGETS
    ]
    sources = "from its log", "from all labels"
    for name in logs:
        x = np.concatenate([v for cell, v in found.items() if cell[0] == name])
        for source, records in enumerate(sources):
            print(f"\nplan for {name} {records}\n{HEAD}")
            for i, what in enumerate(names):
                print(row(what, x[:, source, i]))
            for i, target in enumerate(RISKS):
                y = x[:, source, len(names) + i]
                y = y[~np.isnan(y[:, 0])]
                print(claims(y, f"<= {target:g}"))
    x = np.concatenate(list(found.values()))
    for source, records in enumerate(sources):
        print(f"\nby value, {records}\n{HEAD}")
        for value in ("budget", "recall", "residual risk"):
            mine = [i for i, what in enumerate(names) if what.startswith(value)]
            print(row(value, x[:, source, mine].reshape(-1, 4)))
        print(claims(x[:, source, len(names) :].reshape(-1, 4), "all"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=2000, help="of each policy that logs")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--part", choices=("compare", "plan"))
    parser.add_argument("--log", action="append", choices=LOGS)
    parser.add_argument("--size", action="append", type=int, help="outputs")
    parser.add_argument("--policy", action="append", choices=POLICIES, help="to compare")
    args = parser.parse_args()
    start = perf_counter()
    print(machine(), flush=True)
    if args.part != "plan":
        logs = args.log or list(LOGS)
        policies = args.policy or list(POLICIES)
        one = partial(compared, policies=policies)
        print_compared(measure(one, logs, args.size or SIZES, args.runs, args.jobs), logs, policies)
    if args.part != "compare":
        logs = [name for name in args.log or LOGS if name in ("threshold", "cst")]
        if not logs:
            parser.error(f"--log {args.log}: plan needs --log threshold or --log cst")
        print_planned(measure(planned, logs, args.size or SIZES, args.runs, args.jobs), logs)
    print(f"\n{perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
