"""How often a gate reports drift: on streams where nothing changes, and where the model switches.

    python benchmarks/drift.py [--runs 2] [--first 0] [--null 1000] [--jobs 1] [--policy NAME ...]

First the test for drift alone, on scores and labels that follow its null hypothesis; then the
streams of `gatekeeper.paper.stress` in which nothing changes; then switches in the middle between
models whose error rates differ by 20 points or more: of those streams, and of the real records in
`--records`, if there are any. Every run draws its stream again and uses the gate's parts without
outputs and log, which would take most of the time. The budget is in verifications.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path
from statistics import mean, median
from time import perf_counter

import numpy as np
from _gate import EXPLORE, go_through
from _machine import machine

from gatekeeper.budget import Budget
from gatekeeper.drift.guard import BATCH, DriftGuard
from gatekeeper.drift.monitor import Monitor
from gatekeeper.drift.scores import STATISTICS
from gatekeeper.gate.rates import exploration_rate, named_policy, relearning_rate
from gatekeeper.io.records import RecordTable, read_records
from gatekeeper.paper.stress import STREAMS, Recipe, make_stream
from gatekeeper.policies import T0
from gatekeeper.stats.mid_p import midp_interval
from gatekeeper.types import BoolArray, PolicyHealth

POLICIES = (
    *("random", "threshold", "cst", "cst-memory", "mp-adapt", "mp-strat"),
    *("split-conformal", "hga", "calibrated"),
)
N = 3000
HALF = N // 2
SOON = 200  # outputs within which a switch should be noticed
STEADY = tuple(name for name, recipe in STREAMS.items() if recipe.then is None)
RECORDS = Path("../shared/data/records")

Source = str | Recipe | Path  # a stress stream, or a file of records
Switch = tuple[Source, Source]


def wrong(rate: float) -> Recipe:
    return Recipe(error_rate=(rate,))


SWITCHES: dict[str, Switch] = {
    "usual, common-errors": ("usual", "common-errors"),
    "common-errors, usual": ("common-errors", "usual"),
    "usual, rare-errors": ("usual", "rare-errors"),
    "rare-errors, usual": ("rare-errors", "usual"),
    "rare, common-errors": ("rare-errors", "common-errors"),
    "common, rare-errors": ("common-errors", "rare-errors"),
    "no-signal, common-errors": ("no-signal", "common-errors"),
    "20 % wrong, then 70 %": (wrong(0.2), wrong(0.7)),
    "70 % wrong, then 20 %": (wrong(0.7), wrong(0.2)),
    "20 % wrong, then 50 %": (wrong(0.2), wrong(0.5)),
    "20 % wrong, then 40 %": (wrong(0.2), wrong(0.4)),
}
INVERTED = "drift-inverted"  # the rate stays: from the switch on, uncertain outputs are right


@dataclass(frozen=True, slots=True)
class Run:
    drifted: list[int]  # outputs after which the tests found drift
    why: list[str]
    verified: BoolArray  # (N,)
    errors: BoolArray  # verified, and wrong
    beta: float

    @property
    def noticed(self) -> list[int]:
        """Outputs from the switch to each detection after it; empty if it was not noticed."""
        return [t + 1 - HALF for t in self.drifted if t >= HALF]

    @property
    def spent(self) -> float:
        """Share spent of what the budget had left, or allows if that is less, after the switch."""
        left = self.beta * (N - T0) - self.verified[T0:HALF].sum()
        return float(self.verified[HALF:].sum() / min(left, self.beta * (N - HALF)))


def half_of(source: Source, seed: int, part: int) -> RecordTable:
    """Half a stream of outputs of one model."""
    if not isinstance(source, Path):
        return make_stream(source, HALF, 2 * seed + part)
    table = _records(source)
    rows = np.random.default_rng((seed, part)).permutation(len(table))[:HALF]
    h, estimate, cost, error = table.h, table.cost_estimate, table.cost, table.error
    return RecordTable([""] * HALF, h[rows], estimate[rows], cost[rows], error[rows])


@cache
def _records(path: Path) -> RecordTable:
    return read_records(path)


def stream_of(source: Source | Switch, seed: int) -> RecordTable:
    if isinstance(source, str):
        return make_stream(source, N, seed)
    assert isinstance(source, tuple)
    a, b = (half_of(part, seed, i) for i, part in enumerate(source))
    return RecordTable(
        [f"s{i}" for i in range(N)],
        np.concatenate([a.h, b.h]),
        np.concatenate([a.cost_estimate, b.cost_estimate]),
        np.concatenate([a.cost, b.cost]),
        np.concatenate([a.error, b.error]),
    )


def simulate(
    name: str, source: Source | Switch, beta: float, seed: int, *, relearns: bool = True
) -> Run:
    budget = Budget(fraction=beta, horizon=N)
    epsilon = exploration_rate(budget, EXPLORE)
    policy = named_policy(name, budget, epsilon, seed)
    guard = DriftGuard(policy, rate=relearning_rate(budget, epsilon), relearns=relearns, seed=seed)
    drifted: list[int] = []
    why: list[str] = []
    known = guard.health

    def look(t: int) -> None:
        nonlocal known
        if guard.health is PolicyHealth.DRIFTED and known is not guard.health:
            drifted.append(t)
            why.append(guard.why)
        known = guard.health

    left = go_through(guard, stream_of(source, seed), budget, seed, after=look)
    assert left.verified is not None
    return Run(drifted, why, left.verified == 1.0, left.error == 1.0, beta)


def null(seed: int) -> bool:
    """Whether the test finds drift in scores and labels that follow its null hypothesis."""
    rng, monitor = np.random.default_rng((seed, 9)), Monitor()
    p = rng.uniform(0.0, 1.0, N)
    labels, verified = (rng.random(N) < p).tolist(), (rng.random(N) < 0.2).tolist()
    scores = rng.standard_normal((N, len(STATISTICS)))
    for t in range(N):
        if t % BATCH == 0:  # the outputs of a batch, after their labels
            monitor.observe_outputs(scores[max(t - BATCH, 0) : t])
        if verified[t]:
            monitor.observe_label(1 if labels[t] else 0, p[t], p[t])
    return monitor.drifted


def steady(cell: tuple[str, str, float], seeds: range) -> list[Run]:
    name, stream, beta = cell
    # With equal seeds all streams would have equal costs, and false alarms at the same time.
    first = 1000 * (len(STEADY) * POLICIES.index(name) + STEADY.index(stream) + 1)
    return [simulate(name, stream, beta, first + seed) for seed in seeds]


def changing(cell: tuple[str, Source | Switch, float], seeds: range) -> list[tuple[Run, Run]]:
    """Each run twice: with on_drift "relearn" and "report"."""
    name, source, beta = cell
    return [
        (simulate(name, source, beta, s), simulate(name, source, beta, s, relearns=False))
        for s in seeds
    ]


def switches(records: Path) -> dict[str, Source | Switch]:
    """All switches, with those between models of the records that differ by 20 points in errors."""
    files = sorted(records.glob("mmlu-pro__*.jsonl.gz"))
    rates = {path: float(np.nanmean(_records(path).error)) for path in files}
    found: dict[str, Source | Switch] = {
        f"{a.name[10:15]} {rates[a]:.0%}, {b.name[10:15]} {rates[b]:.0%}": (a, b)
        for a, b in product(files, files)
        if abs(rates[a] - rates[b]) >= 0.2
    }
    return found | SWITCHES | {INVERTED: INVERTED}


def print_steady(found: dict[tuple[str, str, float], list[Run]], betas: Sequence[float]) -> None:
    policies = list(dict.fromkeys(name for name, _, _ in found))
    columns = [*product(policies, betas)]
    print(f"\nNothing changes: runs of {N:,} outputs that were reported as drifted")
    print(f"{'stream':<24}" + "".join(f"{f'{p} {b:.0%}':>20}" for p, b in columns))
    for stream in STEADY:
        alarms = [sum(bool(run.drifted) for run in found[p, stream, b]) for p, b in columns]
        print(f"{stream:<24}" + "".join(f"{a:>20}" for a in alarms))
    every = [run for runs in found.values() for run in runs]
    drifted = [run for run in every if run.drifted]
    share = midp_interval(len(drifted) / len(every), len(every))
    print(
        f"in all {len(drifted)} of {len(every)}: {share.value:.2%}, at most {share.high:.2%} (95 %)"
    )
    for run in drifted:
        print(f"    after output {run.drifted[0]:,}: {run.why[0]}")


def print_switch(stream: str, cell: tuple[str, float], pairs: list[tuple[Run, Run]]) -> None:
    (policy, beta), runs = cell, [run for run, _ in pairs]
    noticed = [run.noticed[0] for run in runs if run.noticed]
    labels = [int(run.verified[HALF : HALF + run.noticed[0]].sum()) for run in runs if run.noticed]
    early = sum(any(t < HALF for t in run.drifted) for run in runs)
    relearn, report = (mean(int(p[i].errors[HALF:].sum()) for p in pairs) for i in (0, 1))
    print(
        f"{stream:<26}{policy:<16}{beta:>6.0%}{f'{sum(t <= SOON for t in noticed)}/{len(runs)}':>8}"
        f"{f'{len(noticed)}/{len(runs)}':>8}{median(noticed) if noticed else '–':>9}"
        f"{median(labels) if labels else '–':>8}{early:>7}{relearn:>10.1f}{report:>8.1f}"
        f"{min(run.spent for run in runs):>8.1%}{min(run.spent for _, run in pairs):>8.1%}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=2, help="of each policy, stream and budget")
    parser.add_argument("--first", type=int, default=0, help="seed of the first of them")
    parser.add_argument("--null", type=int, default=1000, help="runs of the test alone")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--policy", action="append", choices=POLICIES)
    parser.add_argument("--budget", action="append", type=float, help="default: 0.2")
    parser.add_argument("--records", type=Path, default=RECORDS)
    args = parser.parse_args()
    seeds = range(args.first, args.first + args.runs)
    start, betas = perf_counter(), args.budget or [0.2]
    policies = args.policy or POLICIES
    print(machine())
    with ProcessPoolExecutor(args.jobs) as pool:
        alarms = sum(pool.map(null, range(args.null), chunksize=50))
        print(f"\nThe test alone, where its null hypothesis holds: {alarms} of {args.null} runs")
        cells = [*product(policies, STEADY, betas)]
        runs = pool.map(steady, cells, [seeds] * len(cells))
        print_steady(dict(zip(cells, runs, strict=True)), betas)
        print(
            f"\nA switch after {HALF:,} outputs: runs in which it is noticed within {SOON}, and at "
            "all;\nmedians of outputs and labels until then; runs with an alarm before it; wrong "
            "outputs\nfound after it, and the least share of the budget spent, by on_drift"
        )
        print(
            f"{'models':<26}{'policy':<16}{'budget':>6}{'soon':>8}{'at all':>8}{'outputs':>9}"
            f"{'labels':>8}{'early':>7}{'relearn':>10}{'report':>8}{'relearn':>8}{'report':>8}"
        )
        soon: list[bool] = []
        named = [*product(switches(args.records).items(), policies, betas)]
        todo = [(policy, source, beta) for (_, source), policy, beta in named]
        done = pool.map(changing, todo, [seeds] * len(todo))
        for ((stream, _), policy, beta), pairs in zip(named, done, strict=True):
            print_switch(stream, (policy, beta), pairs)
            if stream != INVERTED:
                soon += [bool(run.noticed) and run.noticed[0] <= SOON for run, _ in pairs]
    print(f"\nof the switches {mean(soon):.1%} were noticed within {SOON} outputs")
    print(f"{perf_counter() - start:.0f} s with {args.jobs} process(es)")


if __name__ == "__main__":
    main()
