"""Errors that Calibrated and every other policy find at one budget, and the cost of a decision.

    python benchmarks/calibrated.py [RECORDS ...] [--seeds 20] [--workers 2] [--clean]
        [--sizes 500 1000 3000] [--streams NAME ...] [--quick]

The streams of `gatekeeper.paper.stress`, the paper's settings, and any files of records or logs
given. Every policy gets the same warm-up (paid from a separate account), the same budget β Σ c,
partial feedback and the paper's noise on labels and signals (with --clean none). The second half of
each stream is counted, as HGA and SplitConformal need. A stream is drawn again for every seed,
records are drawn from the file. Those with a * were looked at only when the policy was finished.
The worst of so many streams and budgets is partly chance: one that misses its bound is measured
again with five times as many seeds, none of the first ones, and that result decides (not with
--quick, which leaves out the longest part).

The tail: a budget that is spent early leaves the last outputs unverified. So the errors missed, and
the proposals that the budget refused, in the last tenth of what is counted are compared with those
in the tenth before it, over all runs.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from time import perf_counter

import numpy as np
from _machine import machine

from gatekeeper.analysis.experiment import Protocol, runs
from gatekeeper.analysis.policy_run import METRICS, Contender, PolicyRun
from gatekeeper.analysis.vectorised import Stream
from gatekeeper.io.records import RecordTable, load_records
from gatekeeper.paper.settings import SETTINGS
from gatekeeper.paper.streams import draw
from gatekeeper.paper.stress import STREAMS, make_stream
from gatekeeper.policies import Calibrated, Threshold
from gatekeeper.stats.student import student_interval
from gatekeeper.types import FloatArray

BETAS = (0.05, 0.10, 0.20, 0.30, 0.50)
SIZES = (500, 1000, 3000)
OTHERS = ("random", "threshold", "cst", "mp-adapt", "mp-strat", "hga", "split-conformal")
OURS = (Contender("calibrated"), Contender("calibrated", {"objective": "precision"}))
PROTOCOL = Protocol(seeds=1, shuffle=False, feedback="partial", evaluate="second-half")
HELD_OUT = {"confounded", "rare-errors", "u-shaped", "costly-errors"} | {
    "mbpp-llama3",
    "math-qwen3",
    "mmlu-pro__Qwen3-8B-think",
    "mmlu-pro__gpt-4o-mini-2024-07-18",
}
HIT_RATE, UTILISATION, RECALL = map(METRICS.index, ("hit_rate", "utilisation", "recall"))
# After METRICS, for the tenth before the last and for the last one: counts.
COUNTS = ("proposals", "refusals", "errors", "missed")
TAIL = len(METRICS) + np.arange(2 * len(COUNTS)).reshape(2, len(COUNTS))
LONG = 100_000

Source = Callable[[int, int], RecordTable]  # of n and seed
Again = Callable[["Cell", float], "Cell"]  # at one budget, with other seeds


@dataclass(frozen=True, slots=True)
class Cell:
    """One stream at one size: values (S, P, B, 14), OTHERS first and then OURS."""

    name: str
    n: int
    source: Source
    values: FloatArray

    def lead(self, which: int, metric: int) -> tuple[FloatArray, FloatArray, list[str]]:
        """Ours minus the best of the others, in points, by budget: mean and 95 % margin (B,)
        over seeds, and who is best. A hit rate counts only with 90 % of the budget used."""
        theirs = self.values[:, : len(OTHERS), :, metric].mean(axis=0)
        if metric == HIT_RATE:
            used = self.values[:, : len(OTHERS), :, UTILISATION].mean(axis=0)
            theirs = np.where((used >= 0.9) & ~np.isnan(theirs), theirs, -np.inf)
        best = theirs.argmax(axis=0)
        own = self.values[:, len(OTHERS) + which, :, metric]
        pairs = [own[:, b] - self.values[:, i, b, metric] for b, i in enumerate(best)]
        found = [student_interval(100 * pair) for pair in pairs]
        mean = np.array([f.value for f in found])
        return mean, np.array([f.margin for f in found]), [OTHERS[i] for i in best]

    def mean(self, policy: int, metric: int) -> FloatArray:
        """(B,), in points."""
        return np.asarray(100 * self.values[:, policy, :, metric].mean(axis=0))


def sources(files: list[Path]) -> Iterator[tuple[str, int, Source]]:
    """Name, largest number of records, and a function that draws some."""
    for name in STREAMS:
        yield name, LONG, partial(make_stream, name)
    for name in SETTINGS:
        yield name, LONG, partial(_of_paper, name)
    for path in files:
        table = load_records(path)
        table = table.take(~np.isnan(table.error) & ~np.isnan(table.cost))
        name = path.name.removesuffix(".gz").removesuffix(path.suffix).removesuffix(".jsonl")
        yield name, len(table), partial(_some_of, table)


def _of_paper(name: str, n: int, seed: int) -> RecordTable:
    table = draw(replace(SETTINGS[name], n=n), seed)
    return table.take(np.random.default_rng(seed).permutation(n))


def _some_of(table: RecordTable, n: int, seed: int) -> RecordTable:
    return table.take(np.random.default_rng(seed).permutation(len(table))[:n])


def measure(
    source: Source, protocol: Protocol, n: int, betas: Sequence[float], seed: int
) -> FloatArray:
    """METRICS and the tail of every policy on one stream, (P, B, 14).

    The objective "precision" is measured from n = 1,000 on.
    """
    ours = OURS if n >= 1000 else OURS[:1]
    # With equal seeds, noise and stream would begin with the same draws: the labels of the cheapest
    # tenth would be flipped.
    protocol = replace(protocol, first_seed=seed)
    policies = [*map(Contender, OTHERS), *ours]
    found = np.empty((len(betas), len(policies), TAIL.size + len(METRICS)))
    for i, run in enumerate(runs(source(n, seed + 1), policies, betas, protocol)):
        found[i // len(policies), i % len(policies)] = [*run.metrics(), *tail(run)]
    return found.swapaxes(0, 1)


def tail(run: PolicyRun) -> list[float]:
    """COUNTS of the tenth before the last, and of the last."""
    wanted, verified = run.decisions.wanted, run.decisions.verified
    n, counts = wanted.size, list[float]()
    for part in (slice(n * 8 // 10, n * 9 // 10), slice(n * 9 // 10, n)):
        w, v, error = wanted[part], verified[part], run.error[part]
        counts += [w.sum(), (w & ~v).sum(), error.sum(), error[~v].sum()]
    return counts


def table(cells: list[Cell], which: int, metric: int, title: str) -> None:
    print(f"\n{title}: ours, and in brackets points above the best other policy")
    print(f"{'stream':34}{'N':>6}" + "".join(f"{f'β = {beta:.0%}':>27}" for beta in BETAS))
    for cell in cells:
        lead, _, best = cell.lead(which, metric)
        ours = cell.mean(len(OTHERS) + which, metric)
        row = [
            f"{o:6.1f} ({d:+5.1f} {b[:12]:12})" for o, d, b in zip(ours, lead, best, strict=True)
        ]
        mark = "*" if cell.name in HELD_OUT else ""
        print(f"{cell.name + mark:34}{cell.n:6}" + "".join(f"{text:>27}" for text in row))


def check(what: str, reached: bool, figures: str) -> None:
    print(f"{'reached' if reached else 'MISSED ':8} {what}: {figures}")


def check_lead(
    cells: list[Cell],
    which: int,
    metric: int,
    *,
    least: float,
    average: float,
    what: str,
    again: Again | None,
) -> None:
    """The worst stream and budget, and the mean over all of them."""
    found = [cell.lead(which, metric) for cell in cells]
    lead = np.array([mean for mean, _, _ in found])
    margin = np.array([width for _, width, _ in found])
    i, b = np.unravel_index(lead.argmin(), lead.shape)
    figures = (
        f"worst {lead[i, b]:+.1f} ± {margin[i, b]:.1f} ({cells[i].name}, β = {BETAS[b]:.0%}); "
        f"{int((lead < least).sum())} of {lead.size} below"
    )
    reached = True
    for i, b in np.argwhere(lead < least):
        if again is None:
            reached = False
            break
        cell = again(cells[i], BETAS[b])
        (mean,), (width,), (best,) = cell.lead(which, metric)
        reached &= bool(mean >= least)
        figures += (
            f"\n{'':9}{cell.name}, β = {BETAS[b]:.0%}, {lead[i, b]:+.1f} ± {margin[i, b]:.1f}: "
            f"with {len(cell.values)} other seeds {mean:+.1f} ± {width:.1f} ({best})"
        )
    check(f"{what}, never below {least:+g}", reached, figures)
    by_stream = lead.mean(axis=1)
    check(
        f"{what}, average at least {average:+g}",
        bool(lead.mean() >= average),
        f"{lead.mean():+.2f}, median {np.median(lead):+.2f} (worst stream {by_stream.min():+.1f}, "
        f"{cells[int(by_stream.argmin())].name})",
    )


def check_tail(cells: list[Cell], which: int, what: str) -> None:
    """Over all streams, budgets and seeds."""
    own = [cell.values[:, len(OTHERS) + which][..., TAIL].sum(axis=(0, 1)) for cell in cells]
    proposals, refusals, errors, missed = np.sum(own, axis=0).T  # (2,) each
    before, last = missed / errors
    refused = refusals / proposals
    check(
        f"{what}, errors missed in the last tenth at most 1.2 × those in the tenth before",
        bool(last <= 1.2 * before),
        f"{last / before:.2f} × ({last:.1%} after {before:.1%}); of its proposals the budget "
        f"refused {refused[1]:.1%} after {refused[0]:.1%}",
    )


def checks(cells: list[Cell], n: int, again: Again | None) -> None:
    ours = len(OTHERS)
    least, average = (-1.0, 3.5) if n >= 3000 else (-2.0, 2.5)
    what = f"N = {n}: recall"
    check_lead(cells, 0, RECALL, least=least, average=average, what=what, again=again)
    check_tail(cells, 0, what)
    used = np.array([cell.values[:, ours, :, UTILISATION] for cell in cells])
    mean = used.mean(axis=1)
    theirs = np.array([cell.values[:, :ours, :, UTILISATION].mean(axis=0) for cell in cells])
    by_budget = mean.mean(axis=0)
    check(
        f"N = {n}: utilisation, mean of each budget at least 0.985",
        bool(by_budget.min() >= 0.985),
        ", ".join(f"{used:.3f}" for used in by_budget),
    )
    low = mean < 0.98
    i, b = np.unravel_index(mean.argmin(), mean.shape)
    check(
        f"N = {n}: utilisation at least 0.98",
        not low.any(),
        f"mean {mean.mean():.3f}, lowest {mean[i, b]:.3f} ({cells[i].name}, β = {BETAS[b]:.0%}); "
        f"{int(low.sum())} of {mean.size} below, where any other policy reaches it in "
        f"{int((low & (theirs.max(axis=1) >= 0.98)).sum())}",
    )
    check(f"N = {n}: utilisation never above 1", bool(used.max() <= 1 + 1e-12), f"{used.max():.4f}")
    bad = [cell for cell in cells if cell.name.startswith(("no-signal", "inverted"))]
    for cell in bad:
        cost = [
            student_interval(100 * (cell.values[:, ours, b, RECALL] - cell.values[:, 0, b, RECALL]))
            for b in range(len(BETAS))
        ]
        check(
            f"N = {n}: {cell.name} costs at most 1 point against random",
            min(c.value for c in cost) >= -1.0,
            ", ".join(f"{c.value:+.1f} ± {c.margin:.1f}" for c in cost),
        )
    if n >= 1000:
        what = f"N = {n}: hit rate for precision"
        check_lead(cells, 1, HIT_RATE, least=-2.0, average=8.0, what=what, again=again)
        check_tail(cells, 1, what)
        mean = np.array([cell.values[:, ours + 1, :, UTILISATION].mean(axis=0) for cell in cells])
        i, b = np.unravel_index(mean.argmin(), mean.shape)
        print(
            f"Its utilisation: mean {mean.mean():.3f}, lowest {mean[i, b]:.3f} "
            f"({cells[i].name}, β = {BETAS[b]:.0%})"
        )


def speed() -> None:
    """Decisions of the live classes, one after the other, on one long stream."""
    t = make_stream("usual", LONG, 0)
    stream = Stream(t.h, t.cost_estimate, t.cost, t.error)
    stream.step(Threshold(0.2), 0.2, feedback="partial")  # makes the candidates, once
    seconds = []
    for policy in (Threshold(0.2), Calibrated(0.2, horizon=LONG)):
        start = perf_counter()
        stream.step(policy, 0.2, feedback="partial")
        seconds.append(perf_counter() - start)
    per = [1e6 * s / LONG for s in seconds]
    print(
        f"{LONG:,} candidates, replay and all fits included: threshold {per[0]:.1f} µs each, "
        f"calibrated {per[1]:.1f} µs ({per[1] / per[0]:.1f} ×), {seconds[1]:.1f} s in all"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*", type=Path, help="records or logs, labelled")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--streams", nargs="*", help="only these")
    parser.add_argument("--sizes", nargs="*", type=int, default=SIZES, metavar="N")
    parser.add_argument("--quick", action="store_true", help="measure no cell again")
    parser.add_argument("--clean", action="store_true", help="no noise on labels and signals")
    args = parser.parse_args()
    protocol = replace(PROTOCOL, label_noise=0.0, signal_noise=0.0) if args.clean else PROTOCOL
    print(machine())
    speed()
    with ProcessPoolExecutor(args.workers) as pool:

        def values(source: Source, n: int, betas: Sequence[float], seeds: range) -> FloatArray:
            one = partial(measure, source, protocol, n, betas)
            return np.array(list(pool.map(one, seeds, chunksize=4)))

        def again(cell: Cell, beta: float) -> Cell:
            first = len(cell.values)
            seeds = range(first, 6 * first)
            return replace(cell, values=values(cell.source, cell.n, [beta], seeds))

        for n in args.sizes:
            seeds = range(args.seeds * (2 if n < 3000 else 1))  # short ones vary more, cost less
            cells = []
            for name, most, source in sources(args.files):
                if most >= n and (not args.streams or name in args.streams):
                    cells.append(Cell(name, n, source, values(source, n, BETAS, seeds)))
            print(f"\nN = {n}, {len(seeds)} seeds", flush=True)
            table(cells, 0, RECALL, "Recall in %")
            if n >= 1000:
                table(cells, 1, HIT_RATE, "Hit rate in %, objective precision")
            print()
            checks(cells, n, None if args.quick else again)


if __name__ == "__main__":
    main()
