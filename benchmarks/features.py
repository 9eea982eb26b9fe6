"""How much features gain for `calibrated`, what noise among them costs, the time of a decision.

    OPENBLAS_NUM_THREADS=1 python benchmarks/features.py [RECORDS ...] [--n 3000] [--seeds 10]
        [--clean] [--tasks FILE] [--samples 4]

The matrices are small: several BLAS threads would add processor time, most on a busy machine.
Recall of `calibrated` with the features of the records is compared with its recall without them:
same streams, labels and budgets, partial feedback, the paper's noise on labels and signals (with
--clean none), measured after the warm-up. Records are drawn from the file. A line "offline" has
what features gain if all labels of the file are known and none is wrong: the same model is fitted
to four fifths of the records to rank the rest. Then the same with 20 features of pure noise on
stress streams, which have no others; without files only that is measured.

Then the bundled model answers its tasks greedily and draws `--samples` more answers to each, whose
agreement with the first is the feature; all answers are verified. What agreement alone gains over a
random draw, without log-probabilities, is compared with what the signals alone gain, and with what
choosing the wrong outputs first would add to that: no feature gains more.

Last, how often the interval that `gatekeeper diagnose` prints for the gain of a feature holds the
mean gain over all runs, with every label and from a log of policy cst.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from time import process_time

import numpy as np
from _machine import machine
from off_policy import logged

from gatekeeper.adapters.generate import bundled_generator
from gatekeeper.analysis.experiment import Protocol, compare
from gatekeeper.analysis.feature_worth import feature_worth
from gatekeeper.analysis.outputs import raw_of_records
from gatekeeper.analysis.policy_run import METRICS
from gatekeeper.analysis.predictions import cross_fitted
from gatekeeper.analysis.vectorised import Stream
from gatekeeper.bundled import TASKS
from gatekeeper.costs import output_length
from gatekeeper.features import with_agreement
from gatekeeper.io.records import RecordTable, load_records
from gatekeeper.io.tasks import read_tasks
from gatekeeper.maths import MathChecker
from gatekeeper.paper.stress import make_stream
from gatekeeper.policies import Calibrated, Threshold
from gatekeeper.sandbox import LocalSandbox
from gatekeeper.signals import signals_of
from gatekeeper.stats.raw_table import RawTable
from gatekeeper.stats.student import student_interval
from gatekeeper.types import FloatArray
from gatekeeper.verifiers import ByKind

BETAS = (0.1, 0.2, 0.3)
NOISY = ("usual", "rising", "no-signal", "one-signal")
NOISE, LONG = 20, 20_000
RECALL = METRICS.index("recall")
PROTOCOL = Protocol(seeds=1, shuffle=False, feedback="partial", evaluate="all")

Source = Callable[[int, int], RecordTable]  # of n and seed


def recall(
    table: RecordTable, seed: int, protocol: Protocol, policy: str = "calibrated"
) -> FloatArray:
    """Recall of a policy in points, (budgets,)."""
    found = compare(table, [policy], BETAS, replace(protocol, first_seed=seed))
    return 100 * found.values[0, :, 0, RECALL]


def gains(source: Source, protocol: Protocol, n: int, seeds: int) -> FloatArray:
    """Points of recall that features gain, (seeds, budgets)."""
    tables = [(source(n, seed), seed) for seed in range(seeds)]
    return np.array(
        [recall(t, s, protocol) - recall(replace(t, features=None), s, protocol) for t, s in tables]
    )


def answered(path: Path, samples: int) -> RecordTable:
    """The bundled model's answers to the tasks, with labels and agreement; costs are 1."""
    tasks = read_tasks(path)
    ids, kinds = [task["id"] for task in tasks], {task["id"]: task["kind"] for task in tasks}
    generate = with_agreement(bundled_generator(), samples, kinds=kinds)
    outputs = generate([task["prompt"] for task in tasks], ids)
    with ExitStack() as stack:
        code, maths = stack.enter_context(LocalSandbox()), stack.enter_context(MathChecker())
        verify = ByKind({"code": code, "math": maths}).verify
        outcomes = [*stack.enter_context(ThreadPoolExecutor(2)).map(verify, outputs, tasks)]
    signals = [signals_of(output) for output in outputs]
    return RecordTable(
        ids,
        np.array([(s.h1, s.h2, s.h3) for s in signals]),
        np.array([output_length(o, t) for o, t in zip(outputs, tasks, strict=True)]),
        np.ones(len(tasks)),
        np.array([np.nan if o.error is None else o.error for o in outcomes]),
        features={"agreement": np.array([output.features["agreement"] for output in outputs])},
    )


def check_agreement(table: RecordTable, samples: int, protocol: Protocol, seeds: int) -> None:
    """Print what agreement gains beside the signals, and without them."""
    table = table.take(~np.isnan(table.error))
    print(
        f"\n{len(table):,} tasks of the bundled model, {table.error.mean():.0%} wrong, {samples} "
        f"samples of each: points of recall"
    )
    both: dict[str, list[FloatArray]] = {}
    for seed in range(seeds):
        t = some_of(table, len(table), seed)
        blind = replace(t, h=np.full_like(t.h, np.nan))
        plain = replace(t, features=None)
        random = recall(plain, seed, protocol, "random")
        signals = recall(plain, seed, protocol)
        for name, found in {
            "agreement beside signals": recall(t, seed, protocol) - signals,
            "signals above random": signals - random,
            "agreement alone above random": recall(blind, seed, protocol) - random,
            "wrong outputs first, beside signals": recall(plain, seed, protocol, "oracle")
            - signals,
        }.items():
            both.setdefault(name, []).append(found)
    gain, by_signals, alone, _ = [show(name, np.array(found)) for name, found in both.items()]
    check("agreement beside signals", [gain], 2.0)
    print(
        "offline, agreement beside signals:" + "".join(f"{gain:+8.2f}" for gain in offline(table))
    )
    check("agreement alone, as a share of what signals gain", [alone / by_signals], 0.5)


def offline(table: RecordTable) -> FloatArray:
    """Points of recall that features gain where every label is known, (budgets,)."""
    raw = raw_of_records(table)
    used, plain = (recall_by(table, predicted(table, each)) for each in (raw, raw.only(())))
    return used - plain


def predicted(table: RecordTable, raw: RawTable) -> FloatArray:
    """P(error) of each output by the model of `calibrated`, fitted to four fifths of the others."""
    odds = cross_fitted(raw.take, np.ones(len(table), dtype=bool), table.error)
    return np.asarray(1.0 / (1.0 + np.exp(-odds)))


def recall_by(table: RecordTable, p: FloatArray) -> FloatArray:
    """Points of recall where outputs are verified in order of p / ĉ, (budgets,)."""
    order = np.argsort(-p / table.cost_estimate, kind="stable")
    spent = table.cost[order].cumsum() / table.cost.sum()
    found = table.error[order].cumsum() / table.error.sum()
    return np.asarray(100.0 * np.interp(BETAS, spent, found))


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
    """Print the processor time of a decision, replay and all fits included."""
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


def coverage(runs: int) -> None:
    """Print the coverage of the gains of a weak, a strong and a noise feature."""
    n, beta = 1500, 0.2
    mean: dict[str, float] = {}
    print(
        f"\nWorth of a feature, {runs} runs of {n:,} outputs, budget {beta:.0%}: mean, held, width"
    )
    for source in ("every label", "a log of cst"):
        found: dict[str, list[tuple[float, float, float]]] = {}
        for seed in range(runs):
            t, draw = make_stream("usual", n, seed), np.random.default_rng((seed, 5))
            strength = {"weak": 0.5, "strong": 1.2, "noise": 0.0}
            features = {k: s * t.error + draw.standard_normal(n) for k, s in strength.items()}
            t = t if source == "every label" else logged("cst", t, beta, seed)
            for w in feature_worth(replace(t, features=features), beta):
                worth = w.beside_signals
                found.setdefault(", ".join(w.features), []).append(
                    (worth.low, worth.high, worth.value)
                )
        for name, rows in found.items():
            low, high, value = np.array(rows).T
            true = mean.setdefault(name, value.mean())
            held = ((low <= true) & (true <= high)).mean()
            print(
                f"{source:16}{name:24}{100 * value.mean():+6.2f}{held:8.0%}"
                f"{100 * (high - low).mean():8.1f}"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*", type=Path, help="records with features and all labels")
    parser.add_argument("--n", type=int, default=3000)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--tasks", type=Path, default=TASKS, help="for the bundled model")
    parser.add_argument("--samples", type=int, default=4, help="of each task, for agreement")
    parser.add_argument("--runs", type=int, default=40, help="for the worth of features")
    parser.add_argument("--clean", action="store_true", help="no noise on labels and signals")
    args = parser.parse_args()
    protocol = replace(PROTOCOL, label_noise=0.0, signal_noise=0.0) if args.clean else PROTOCOL
    print(machine())
    speed()
    head = "".join(f"{f'β = {beta:.0%}':>15}" for beta in BETAS)
    print(f"\nN = {args.n}: points of recall gained{'':8}{head}{'mean':>15}")
    measure = partial(gains, protocol=protocol, n=args.n, seeds=args.seeds)
    if args.files:
        found, best = [], []
        for path in args.files:
            table, name = load_records(path), path.name.partition(".jsonl")[0]
            found.append(show(name, measure(partial(some_of, table))))
            known = ~np.isnan(table.error) & ~np.isnan(table.cost)
            best.append(float(offline(table.take(known)).mean()))
        check("features of the records", found, 3.0)
        print(
            f"{'offline, mean of the records':40}{np.mean(best):+.2f}, by file "
            + ", ".join(f"{gain:+.2f}" for gain in best)
        )
    found = [show(f"{name}, {NOISE} of noise", measure(partial(noisy, name))) for name in NOISY]
    check("noise", found, -0.3)
    check_agreement(answered(args.tasks, args.samples), args.samples, protocol, args.seeds)
    coverage(args.runs)


if __name__ == "__main__":
    main()
