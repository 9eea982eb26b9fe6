"""What features gain for `calibrated`, what noise among them costs, and what a decision takes.

    python benchmarks/features.py [RECORDS ...] [--n 3000] [--seeds 10] [--clean]

Recall of `calibrated` with the features of the records beside the same without them: same streams,
labels and budgets, partial feedback, the paper's noise on labels and signals (with --clean none),
measured after the warm-up. Then with 20 features of pure noise on stress streams, which have no
others. Records are drawn from the file; without files only the noise is measured.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from time import process_time

import numpy as np
from _machine import machine

from gatekeeper.analysis.experiment import METRICS, Protocol, compare
from gatekeeper.analysis.vectorised import Stream
from gatekeeper.io.records import RecordTable, load_records
from gatekeeper.paper.stress import make_stream
from gatekeeper.policies import Calibrated, Threshold
from gatekeeper.stats.student import student_interval
from gatekeeper.types import FloatArray

BETAS = (0.1, 0.2, 0.3)
NOISY = ("usual", "rising", "no-signal", "one-signal")
NOISE, LONG = 20, 20_000
RECALL = METRICS.index("recall")
PROTOCOL = Protocol(seeds=1, shuffle=False, feedback="partial", evaluate="all")

Source = Callable[[int, int], RecordTable]  # of n and seed


def gains(source: Source, protocol: Protocol, n: int, seeds: int) -> FloatArray:
    """Points of recall that features gain, (seeds, budgets)."""

    def recall(table: RecordTable, seed: int) -> FloatArray:
        found = compare(table, ["calibrated"], BETAS, replace(protocol, first_seed=seed))
        return 100 * found.values[0, :, 0, RECALL]

    tables = [(source(n, seed), seed) for seed in range(seeds)]
    return np.array([recall(t, s) - recall(replace(t, features=None), s) for t, s in tables])


def some_of(table: RecordTable, n: int, seed: int) -> RecordTable:
    return table.take(np.random.default_rng(seed).permutation(len(table))[:n])


def noisy(name: str, n: int, seed: int) -> RecordTable:
    draw = np.random.default_rng((seed, 9)).standard_normal
    features = {f"noise{i}": draw(n) for i in range(NOISE)}
    return replace(make_stream(name, n, seed + 1), features=features)


def show(name: str, found: FloatArray) -> float:
    by_beta = [student_interval(column) for column in found.T]
    mean = student_interval(found.mean(axis=1))
    cells = "".join(f"{i.value:+8.2f} ± {i.margin:4.2f}" for i in (*by_beta, mean))
    print(f"{name:40}{cells}", flush=True)
    return mean.value


def check(what: str, values: list[float], least: float) -> None:
    mean = float(np.mean(values))
    print(
        f"{'reached' if mean >= least else 'MISSED '} {what}, mean at least {least}: {mean:+.2f}\n"
    )


def speed() -> None:
    """Processor time of a decision, replay and all fits included."""
    t = make_stream("usual", LONG, 0)
    draw = np.random.default_rng(0).standard_normal
    for useful in (0, 1, 10):
        columns = {f"f{i}": 0.5 * (i < useful) * t.error + draw(LONG) for i in range(10)}
        seconds = []
        for features in ({}, columns):
            stream = Stream(t.h, t.cost_estimate, t.cost, t.error, features=features)
            stream.step(Threshold(0.2), 0.2, feedback="partial")  # makes the candidates
            start = process_time()
            stream.step(Calibrated(0.2, horizon=LONG), 0.2, feedback="partial")
            seconds.append(process_time() - start)
        per = [1e6 * s / LONG for s in seconds]
        print(
            f"10 features, {useful} of them useful: {per[1]:.0f} µs a decision, without features "
            f"{per[0]:.0f} µs ({per[1] / per[0]:.2f} ×)",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*", type=Path, help="records with features and all labels")
    parser.add_argument("--n", type=int, default=3000)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--clean", action="store_true", help="no noise on labels and signals")
    args = parser.parse_args()
    protocol = replace(PROTOCOL, label_noise=0.0, signal_noise=0.0) if args.clean else PROTOCOL
    print(machine())
    speed()
    head = "".join(f"{f'β = {beta:.0%}':>15}" for beta in BETAS)
    print(f"\nN = {args.n}: points of recall gained{'':8}{head}{'mean':>15}")
    measure = partial(gains, protocol=protocol, n=args.n, seeds=args.seeds)
    if args.files:
        found = [
            show(path.name.partition(".jsonl")[0], measure(partial(some_of, load_records(path))))
            for path in args.files
        ]
        check("features of the records", found, 3.0)
    found = [show(f"{name}, {NOISE} of noise", measure(partial(noisy, name))) for name in NOISY]
    check("noise", found, -0.3)


if __name__ == "__main__":
    main()
