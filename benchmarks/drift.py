"""How often a gate says that a stream drifted: where nothing changed, and where something did.

    python benchmarks/drift.py [--runs 5] [--jobs 1] [--policy NAME ...]

First the streams of `gatekeeper.streams` in which nothing changes, then those that change in the
middle: its own two, and swaps of the error rate. Every run is on a stream drawn anew. What the gate
does is done here with its parts but without outputs and log, which would take most of the time:
policy, guard, ledger, and ε = explore β of the candidates drawn whatever the policy says.
"""

from __future__ import annotations

import argparse
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from itertools import product
from statistics import mean, median
from time import perf_counter

import numpy as np
from _machine import machine

from gatekeeper._settings import chance_of, named_policy, relearning_rate
from gatekeeper.budget import Budget, Ledger
from gatekeeper.guard import Guard
from gatekeeper.protocols import Policy
from gatekeeper.replay import outcome_of
from gatekeeper.streams import STREAMS, Recipe, make_stream
from gatekeeper.types import Calibration, Candidate, Reason, Signals

POLICIES = ("threshold", "cst", "calibrated")
BETAS = (0.1, 0.2)
N = 3000
EXPLORE = 0.1
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
    labels: list[bool]  # of each candidate: whether it was verified
    errors: list[bool]  # verified, and wrong
    spent: float  # share of the budget


def simulate(
    name: str, stream: str | Recipe, beta: float, seed: int, *, relearns: bool, n: int = N
) -> Run:
    table = make_stream(stream, n, seed)
    budget = Budget(fraction=beta, horizon=n)
    epsilon = chance_of(budget, EXPLORE)
    policy: Policy = named_policy(name, budget, epsilon, seed)
    guard = Guard(policy, rate=relearning_rate(budget, epsilon), relearns=relearns, seed=seed)
    ledger = Ledger(budget, 1.0, explore=epsilon)
    lots = np.random.default_rng((seed, 1)).random(n) < epsilon
    outcomes = [outcome_of(label, 1.0) for label in (0, 1)]
    run = Run([], [], [], 0.0)
    before = guard.calibration
    rows = zip(
        table.h.tolist(),
        table.cost_estimate.tolist(),
        table.error.astype(int).tolist(),
        lots.tolist(),
        strict=True,
    )
    for t, (h, cost_estimate, error, drawn) in enumerate(rows):
        candidate = Candidate(table.ids[t], Signals(*h), cost_estimate)
        wish = guard.decide(candidate)
        warmup = wish.reason is Reason.WARMUP
        hold = ledger.see(cost_estimate, warmup=warmup)
        granted = ledger.has_room(warmup=warmup, spare=not warmup)
        chance = epsilon if not warmup and ledger.has_room(warmup=False) else 0.0
        verify = (wish.verify and granted) or (drawn and chance > 0.0)
        decision = wish if verify == wish.verify else replace(wish, verify=verify)
        if verify:
            ledger.reserve(candidate.id, hold)
        guard.observe(candidate, decision)
        if verify:
            ledger.settle(candidate.id, 1.0)
            guard.update(candidate, decision, outcomes[error])
        if guard.calibration is not before:
            before = guard.calibration
            if before is Calibration.DRIFTED:
                run.drifted.append(t)
        run.labels.append(verify)
        run.errors.append(verify and error == 1)
    return replace(run, spent=ledger.spent / ledger.cap)


def steady(cell: tuple[str, str, float], seeds: range) -> list[int]:
    """How often each run drifted."""
    name, stream, beta = cell
    return [len(simulate(name, stream, beta, seed, relearns=True).drifted) for seed in seeds]


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
            alarms = [sum(map(bool, found[p, stream, b])) for p in policies for b in BETAS]
            print(f"{stream:<24}" + "".join(f"{a:>16}" for a in alarms))
        print(f"{'all, of runs':<24}", end="")
        for p, b in product(policies, BETAS):
            runs = [n for stream in STEADY for n in found[p, stream, b]]
            print(f"{f'{sum(map(bool, runs))} of {len(runs)}':>16}", end="")
        every = [n for runs in found.values() for n in runs]
        print(f"\nin all {sum(map(bool, every))} of {len(every)}: {mean(map(bool, every)):.2%}")

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
                    labels.append(sum(run.labels[half : late[0] + 1]))
                    outputs.append(late[0] + 1 - half)
            early = sum(any(t < half for t in run.drifted) for run, _ in pairs)
            relearn, report = (mean(sum(pair[i].errors[half:]) for pair in pairs) for i in (0, 1))
            print(
                f"{stream:<24}{p:<12}{b:>7.0%}{f'{len(labels)}/{len(pairs)}':>9}"
                f"{median(labels) if labels else '–':>8}{median(outputs) if outputs else '–':>9}"
                f"{early:>10}{relearn:>22.1f}{report:>8.1f}"
                f"{mean(run.spent for run, _ in pairs):>13.1%}",
                flush=True,
            )
    print(f"\n{perf_counter() - start:.0f} s with {args.jobs} process(es)")


if __name__ == "__main__":
    main()
