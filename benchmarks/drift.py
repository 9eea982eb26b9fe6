"""How often a gate says that a stream drifted: where nothing changed, and where something did.

    python benchmarks/drift.py [--runs 5] [--jobs 1] [--policy NAME ...]

First the streams of `gatekeeper.paper.stress` in which nothing changes, then those that change in
the middle: its own two, and swaps of the error rate. Every run is on a stream drawn anew, with the
gate's parts but without outputs and log, which would take most of the time.
"""

from __future__ import annotations

import argparse
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import pairwise, product
from statistics import mean, median
from time import perf_counter

import numpy as np
from _gate import EXPLORE, go_through
from _machine import machine
from numpy.typing import NDArray

from gatekeeper.budget import Budget
from gatekeeper.drift.guard import DriftGuard
from gatekeeper.gate.configuration import exploration_rate, named_policy, relearning_rate
from gatekeeper.paper.stress import STREAMS, Recipe, make_stream
from gatekeeper.policies import T0
from gatekeeper.types import PolicyHealth

POLICIES = ("threshold", "cst", "calibrated")
BETAS = (0.1, 0.2)
N = 3000
STEADY = tuple(name for name, recipe in STREAMS.items() if recipe.then is None)
CHANGING: dict[str, str | Recipe] = {
    "drift": "drift",
    "drift-inverted": "drift-inverted",
    "20 % wrong, then 50 %": Recipe(error_rate=(0.2,), then=Recipe(error_rate=(0.5,))),
    "20 % wrong, then 70 %": Recipe(error_rate=(0.2,), then=Recipe(error_rate=(0.7,))),
    "60 % wrong, then 20 %": Recipe(error_rate=(0.6,), then=Recipe(error_rate=(0.2,))),
}


@dataclass(frozen=True, slots=True)
class Run:
    drifted: list[int]  # at which candidates the status became "drifted"
    verified: NDArray[np.bool_]  # (N,)
    errors: NDArray[np.bool_]  # verified, and wrong
    beta: float

    @property
    def utilisation(self) -> float:
        return float(self.verified[T0:].sum() / (self.beta * (N - T0)))


def simulate(name: str, stream: str | Recipe, beta: float, seed: int, *, relearns: bool) -> Run:
    budget = Budget(fraction=beta, horizon=N)
    epsilon = exploration_rate(budget, EXPLORE)
    policy = named_policy(name, budget, epsilon, seed)
    guard = DriftGuard(policy, rate=relearning_rate(budget, epsilon), relearns=relearns, seed=seed)
    standings: list[PolicyHealth] = []
    left = go_through(
        guard,
        make_stream(stream, N, seed),
        budget,
        seed,
        after=lambda t: standings.append(guard.health),
    )
    drifted = [
        t
        for t, (before, now) in enumerate(pairwise(standings), start=1)
        if now is PolicyHealth.DRIFTED and before is not now
    ]
    assert left.verified is not None
    return Run(drifted, left.verified == 1.0, left.error == 1.0, beta)


def steady(cell: tuple[str, str, float], seeds: range) -> list[bool]:
    """Whether each run drifted."""
    name, stream, beta = cell
    return [bool(simulate(name, stream, beta, seed, relearns=True).drifted) for seed in seeds]


def changing(cell: tuple[str, str, float], seeds: range) -> list[tuple[Run, Run]]:
    """With on_drift "relearn" and "report"."""
    name, stream, beta = cell
    return [
        (
            simulate(name, CHANGING[stream], beta, seed, relearns=True),
            simulate(name, CHANGING[stream], beta, seed, relearns=False),
        )
        for seed in seeds
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=5, help="of each policy, stream and budget")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--policy", action="append", choices=POLICIES)
    args = parser.parse_args()
    start = perf_counter()
    policies = args.policy or POLICIES
    seeds = range(args.runs)
    print(machine())
    with ProcessPoolExecutor(args.jobs) as pool:
        print(f"\nNothing changes: runs of {N:,} candidates that were said to have drifted")
        print(f"{'stream':<24}" + "".join(f"{f'{p} {b:.0%}':>16}" for p in policies for b in BETAS))
        cells = [*product(policies, STEADY, BETAS)]
        found = dict(zip(cells, pool.map(steady, cells, [seeds] * len(cells)), strict=True))
        for stream in STEADY:
            alarms = [sum(found[p, stream, b]) for p in policies for b in BETAS]
            print(f"{stream:<24}" + "".join(f"{a:>16}" for a in alarms))
        print(f"{'all, of runs':<24}", end="")
        for p, b in product(policies, BETAS):
            runs = [alarm for stream in STEADY for alarm in found[p, stream, b]]
            print(f"{f'{sum(runs)} of {len(runs)}':>16}", end="")
        every = [alarm for runs in found.values() for alarm in runs]
        print(f"\nin all {sum(every)} of {len(every)}: {mean(every):.2%}")

        print(
            "\nA change in the middle: labels from there until it is said, and what is found then"
        )
        print(
            f"{'stream':<24}{'policy':<12}{'budget':>7}{'noticed':>9}{'labels':>8}{'outputs':>9}"
            f"{'too early':>10}{'wrong found: relearn':>22}{'report':>8}{'utilisation':>13}"
        )
        cells = [(p, stream, b) for stream in CHANGING for p in policies for b in BETAS]
        for cell, pairs in zip(cells, pool.map(changing, cells, [seeds] * len(cells)), strict=True):
            p, stream, b = cell
            half, labels, outputs = N // 2, [], []
            for run, _ in pairs:
                late = [t for t in run.drifted if t >= half]
                if late:
                    labels.append(int(run.verified[half : late[0] + 1].sum()))
                    outputs.append(late[0] + 1 - half)
            early = sum(any(t < half for t in run.drifted) for run, _ in pairs)
            relearn, report = (
                mean(int(pair[i].errors[half:].sum()) for pair in pairs) for i in (0, 1)
            )
            print(
                f"{stream:<24}{p:<12}{b:>7.0%}{f'{len(labels)}/{len(pairs)}':>9}"
                f"{median(labels) if labels else '–':>8}{median(outputs) if outputs else '–':>9}"
                f"{early:>10}{relearn:>22.1f}{report:>8.1f}"
                f"{mean(run.utilisation for run, _ in pairs):>13.1%}",
                flush=True,
            )
    print(f"\n{perf_counter() - start:.0f} s with {args.jobs} process(es)")


if __name__ == "__main__":
    main()
