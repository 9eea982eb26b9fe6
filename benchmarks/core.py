"""The cost of the core: signals per token, one decision at any history, the gate, reading its log.

    python benchmarks/core.py            all of it, a minute or two on a quiet machine
    python benchmarks/core.py --quick    up to 10^5 candidates of history

Figures are wall-clock times and depend on the machine and its load. So every table also shows
figures relative to a reference measured in the same run, in turns with it: plain numpy, the same
policy with a short history, an empty transaction. Compare ratios before times.
"""

from __future__ import annotations

import argparse
import gc
import sqlite3
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator
from heapq import heappop, heappush
from pathlib import Path
from time import perf_counter_ns

import numpy as np
from _machine import machine
from rich.console import Console
from rich.table import Table

from gatekeeper import CST, HGA, Budget, Policy, Random, Threshold, VerificationGate
from gatekeeper.io.records import records_of_log
from gatekeeper.log import SQLiteLog
from gatekeeper.log.run import read_run
from gatekeeper.signals import batch_signals, signals_of
from gatekeeper.testing import ScriptedVerifier, make_generation
from gatekeeper.types import Candidate, FloatArray, Generation, Outcome, Signals, Verdict

BETA = 0.2
TARGET_US = 15.0  # one decide + update after 10^6 candidates
TARGET_RATIO = 2.0  # of that to the figure after 10^3
POLICIES: dict[str, Callable[[int], Policy]] = {
    "random": lambda seed: Random(BETA, seed=seed),
    "threshold": lambda seed: Threshold(BETA, seed=seed),
    "cst": lambda seed: CST(BETA, seed=seed),
    "hga": lambda seed: HGA(BETA, seed=seed),
}


def best(call: Callable[[], object], repeats: int) -> int:
    """Nanoseconds of the fastest of several calls."""
    return min(_timed(call) for _ in range(repeats))


def _timed(call: Callable[[], object]) -> int:
    start = perf_counter_ns()
    call()
    return perf_counter_ns() - start


def calibration() -> None:
    """A fixed piece of interpreter work: 1,000 pushes to a heap, and their pops."""
    heap: list[float] = []
    value = 0.5
    for _ in range(1000):
        value = (value * 3.9) * (1.0 - value)
        heappush(heap, value)
    while heap:
        heappop(heap)


# -- (a) signals -------------------------------------------------------------------------------


def plain(logprob: FloatArray, top1: FloatArray, top2: FloatArray) -> tuple[float, float, float]:
    """The three formulas alone, on ready arrays that lack nothing."""
    margin = top1 - top2
    return float(-logprob.mean()), float(-margin.min()), float(np.exp(-margin).mean())


def plain_matrix(logprob: FloatArray, top1: FloatArray, top2: FloatArray) -> tuple[FloatArray, ...]:
    """The same for all outputs at once, as arrays of shape (n, L): all of one length."""
    margin = top1 - top2
    return -logprob.mean(axis=1), -margin.min(axis=1), np.exp(-margin).mean(axis=1)


def signal_table(outputs: int, repeats: int) -> Table:
    table = Table(
        title=f"(a) signals, ns per token, {outputs} outputs, best of {repeats}",
        caption="plain numpy: the formulas on ready arrays, without a check or an object. "
        "Per output: one after the other; at once: one call for all, numpy on an (n, L) matrix.",
    )
    for heading in ("tokens", "signals_of", "numpy", "ratio", "batch_signals", "numpy", "ratio"):
        table.add_column(heading, justify="right")
    for tokens in (32, 128, 512):
        many = [make_generation(str(i), tokens=tokens, seed=i) for i in range(outputs)]
        arrays = [(g.logprob, g.top1, g.top2) for g in many]
        chosen, first, second = (np.stack(column) for column in zip(*arrays, strict=True))
        times = [10**18] * 4
        for _ in range(repeats):  # in turns: noise affects all alike
            calls: list[Callable[[], object]] = [
                lambda: [signals_of(g) for g in many],  # noqa: B023
                lambda: [plain(*a) for a in arrays],  # noqa: B023
                lambda: batch_signals(many),  # noqa: B023
                lambda: plain_matrix(chosen, first, second),  # noqa: B023
            ]
            times = [min(t, _timed(call)) for t, call in zip(times, calls, strict=True)]
        single, numpy_single, batch, numpy_batch = (t / (tokens * outputs) for t in times)
        table.add_row(
            str(tokens),
            f"{single:.1f}",
            f"{numpy_single:.1f}",
            f"{single / numpy_single:.2f}",
            f"{batch:.2f}",
            f"{numpy_batch:.2f}",
            f"{batch / numpy_batch:.2f}",
        )
    return table


# -- (b) one decision --------------------------------------------------------------------------


def candidates(n: int, *, seed: int) -> Iterator[tuple[Candidate, Outcome]]:
    """A stationary stream; longer outputs cost more and are wrong more often."""
    rng = np.random.default_rng(seed)
    right, wrong = Outcome(Verdict.PASSED, cost=1.0), Outcome(Verdict.FAILED, cost=1.0)
    for start in range(0, n, 10_000):
        size = min(10_000, n - start)
        hard = rng.random(size)
        columns = (
            rng.gamma(2.0, 0.1 + 0.2 * hard),
            -rng.exponential(1.5 - hard),
            rng.beta(1.0 + 3.0 * hard, 4.0),
            rng.lognormal(4.0 + hard, 0.5),
            rng.random(size) < 0.1 + 0.5 * hard,
        )
        for i, (h1, h2, h3, cost, y) in enumerate(
            zip(*(c.tolist() for c in columns), strict=True), start
        ):
            yield Candidate(f"{seed}-{i}", Signals(h1, h2, h3, 64, 64), cost), wrong if y else right


def step(policy: Policy, candidate: Candidate, outcome: Outcome) -> None:
    decision = policy.decide(candidate)
    if decision.verify:
        policy.update(candidate, decision, outcome)


def decision_times(make: Callable[[int], Policy], sizes: list[int], n: int) -> list[list[int]]:
    """Nanoseconds of each of n further steps, for a policy of each length of history."""
    policies = []
    for size in sizes:
        policy = make(size)
        for candidate, outcome in candidates(size, seed=size):
            step(policy, candidate, outcome)
        policies.append(policy)
    gc.collect()
    times: list[list[int]] = [[] for _ in sizes]
    further = list(candidates(n, seed=1))
    for start in range(0, n, 50):  # in turns: noise affects all lengths alike
        for policy, mine in zip(policies, times, strict=True):
            for candidate, outcome in further[start : start + 50]:
                begin = perf_counter_ns()
                step(policy, candidate, outcome)
                mine.append(perf_counter_ns() - begin)
    return times


def decision_table(sizes: list[int], n: int) -> tuple[Table, bool]:
    names = [f"10^{len(str(size)) - 1}" for size in sizes]
    table = Table(
        title=f"(b) one decide + update after so many candidates, µs: median / 99th percentile, "
        f"{n} steps each",
        caption=f"Target: at most {TARGET_US:g} µs at 10^6 and {TARGET_RATIO:g} times the figure "
        "at 10^3. update is called where the policy chose to verify.",
    )
    table.add_column("policy")
    for name in names:
        table.add_column(name, justify="right")
    table.add_column(f"{names[-1]} / {names[0]}", justify="right")
    table.add_column("target")
    every_met = True
    for name, make in POLICIES.items():
        times = decision_times(make, sizes, n)
        medians = [statistics.median(t) / 1000 for t in times]
        tails = [float(np.quantile(t, 0.99)) / 1000 for t in times]
        ratio = medians[-1] / medians[0]
        met = medians[-1] <= TARGET_US and ratio <= TARGET_RATIO
        every_met &= met
        cells = [f"{m:.2f} / {p:.2f}" for m, p in zip(medians, tails, strict=True)]
        table.add_row(name, *cells, f"{ratio:.2f}", "met" if met else "MISSED")
    return table, every_met


# -- (c) the gate ------------------------------------------------------------------------------


def transactions(folder: Path, n: int, *, row: bool) -> list[int]:
    """Nanoseconds of each of n transactions of the log's kind, empty or with one row."""
    db = sqlite3.connect(folder / f"plain-{row}.db", isolation_level=None)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = NORMAL")
    db.execute("CREATE TABLE events (seq INTEGER PRIMARY KEY, id TEXT, data TEXT)")
    data = "x" * 500
    times = []
    for i in range(n):
        start = perf_counter_ns()
        db.execute("BEGIN IMMEDIATE")
        if row:
            db.execute("INSERT INTO events (id, data) VALUES (?, ?)", (str(i), data))
        db.execute("COMMIT")
        times.append(perf_counter_ns() - start)
    db.close()
    return times


def gate_times(log: Path | None, outputs: list[Generation]) -> list[int]:
    times = []
    with VerificationGate("cst", budget=Budget(fraction=BETA), log=log) as gate:
        for generation in outputs:
            start = perf_counter_ns()
            gate.maybe_verify(generation)
            times.append(perf_counter_ns() - start)
    return times


def gate_table(n: int, rounds: int) -> Table:
    outputs = [make_generation(str(i), tokens=128, seed=i, text="x" * 400) for i in range(n)]
    table = Table(
        title=f"(c) the whole gate without a verifier, µs per call, {n} outputs of 128 tokens, "
        f"{rounds} rounds in turns",
        caption="maybe_verify with CST: signals, decision, ledger, log. Per transaction: what "
        "SQLite alone takes for BEGIN IMMEDIATE … COMMIT in WAL mode.",
    )
    for heading in ("", "median", "99th percentile", "of the gate with SQLite"):
        table.add_column(heading, justify="left" if not heading else "right")
    times: dict[str, list[int]] = {
        "gate, log in memory": [],
        "gate, log in SQLite": [],
        "an empty transaction": [],
        "a transaction with one row": [],
    }
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            new = (
                gate_times(None, outputs),
                gate_times(folder / "run.db", outputs),
                transactions(folder, n, row=False),
                transactions(folder, n, row=True),
            )
        for mine, more in zip(times.values(), new, strict=True):
            mine += more
    whole = statistics.median(times["gate, log in SQLite"])
    for label, mine in times.items():
        median = statistics.median(mine)
        tail = float(np.quantile(mine, 0.99))
        table.add_row(
            label, f"{median / 1000:.1f}", f"{tail / 1000:.1f}", f"{100 * median / whole:.0f} %"
        )
    return table


# -- (d) a log, read again -----------------------------------------------------------------------


def open_gate(path: Path, verifier: ScriptedVerifier) -> VerificationGate:
    return VerificationGate("cst", budget=Budget(fraction=BETA), verifier=verifier, log=path)


def rows_alone(path: Path) -> None:
    with SQLiteLog(path, read_only=True) as log:
        for _ in log.rows():
            pass


def without_snapshot(path: Path) -> None:
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("DROP TABLE IF EXISTS snapshot")
    db.close()


def log_table(n: int, rounds: int) -> Table:
    table = Table(
        title=f"(d) a log of {n} outputs, read again, ms: best of {rounds}, in turns",
        caption="Of the rows: relative to reading them and parsing their JSON. A full resume also "
        "writes the snapshot from which the next one goes on.",
    )
    for heading in ("", "ms", "of the rows"):
        table.add_column(heading, justify="left" if not heading else "right")
    times: dict[str, int] = {}
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "run.db"
        verifier = ScriptedVerifier({str(i): 0 if i % 3 else 1 for i in range(n)})
        with open_gate(path, verifier) as gate:
            for i in range(n):
                gate.maybe_verify(make_generation(str(i), tokens=32, seed=i))
        calls: dict[str, Callable[[], object]] = {
            "its rows, as JSON": lambda: rows_alone(path),
            "read_run": lambda: read_run(path),
            "records_of_log": lambda: records_of_log(path),
            "resume, every event": lambda: open_gate(path, verifier).close(),
            "resume, from the snapshot": lambda: open_gate(path, verifier).close(),
        }
        for _ in range(rounds):
            without_snapshot(path)
            for label, call in calls.items():
                times[label] = min(times.get(label, 10**18), _timed(call))
    alone = times["its rows, as JSON"]
    for label, mine in times.items():
        table.add_row(label, f"{mine / 1e6:.0f}", f"{mine / alone:.2f}")
    return table


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="shorter: up to 10^5, fewer repeats")
    quick = parser.parse_args(arguments).quick
    console = Console(width=None if sys.stdout.isatty() else 110)
    console.print(machine(), highlight=False)
    before = best(calibration, 50) / 1000
    console.print(f"calibration (1,000 heap pushes and pops): {before:.0f} µs\n", highlight=False)
    console.print(signal_table(200 if quick else 1000, 5 if quick else 15))
    sizes = [10**3, 10**4, 10**5] if quick else [10**3, 10**4, 10**5, 10**6]
    table, met = decision_table(sizes, 2000 if quick else 5000)
    console.print(table)
    console.print(gate_table(500 if quick else 2000, 3 if quick else 5))
    console.print(log_table(5000 if quick else 20_000, 2 if quick else 3))
    after = best(calibration, 50) / 1000
    console.print(f"calibration at the end: {after:.0f} µs", highlight=False)
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
