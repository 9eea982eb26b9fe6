"""The processor time of `gatekeeper paper`, relative to the last release.

    python benchmarks/paper.py             a reduced grid, some seconds; exit code 1 if it is slower
    python benchmarks/paper.py --whole     the whole command and the main grid, a minute or two
    python benchmarks/paper.py --renew     keep this run's figures as those of the release

Each figure is relative to a loop of fixed work that runs in turns with it, and the fastest of its
turns counts, so it changes little on a busy machine. On another processor it may differ by half:
one commit drew "data sets" in 1.5 units on one and in 2.2 on another. benchmarks/paper.json has the
figures of the last release. A part may take 1.5 times as much; one that seems to take more is
measured up to five times as long, since a machine may be disturbed for some seconds.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from heapq import heappop, heappush
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from time import process_time

import numpy as np
from _machine import machine
from rich.console import Console
from rich.table import Table

from gatekeeper.analysis.diagnosis import diagnose
from gatekeeper.analysis.experiment import Protocol, compare
from gatekeeper.paper import published
from gatekeeper.paper.settings import SETTINGS
from gatekeeper.paper.streams import draw
from gatekeeper.policies import Calibrated, replay_names

KEPT = Path(__file__).with_suffix(".json")
BOUND = 1.5  # times the last release's figure
TURNS = 7
LONGER = 5  # times as many where a part seems slower
SHORT, LONG = (SETTINGS[name] for name in ("mbpp-qwen3", "math-qwen3"))
POLICIES = [name for name in replay_names() if name != Calibrated.name]


def calibration() -> None:
    """Fixed work of the kinds that replays have: the interpreter's, numpy's on short arrays."""
    for _ in range(20):
        heap: list[float] = []
        for i in range(1000):
            heappush(heap, (i * 7919 % 1009) / 1009)
        while heap:
            heappop(heap)
        values = np.arange(5000) * 7919 % 5003 / 5003.0
        for _ in range(5):
            np.cumsum(values[np.argsort(values)])


def parts() -> dict[str, Callable[[], object]]:
    """A replay of each policy at the paper's budgets, and the other computations of the tables."""
    short, long = draw(SHORT, 0), draw(LONG, 0)

    def replayed(policy: str) -> Callable[[], object]:
        return lambda: compare(short, [policy], published.BETAS, Protocol(seeds=1))

    made: dict[str, Callable[[], object]] = {name: replayed(name) for name in POLICIES}
    return made | {
        "all, N = 5000": lambda: compare(long, POLICIES, (0.1, 0.5), Protocol(seeds=1)),
        "diagnosis": lambda: diagnose(short, orders=2),
        "data sets": lambda: (draw(SHORT, 0), draw(LONG, 0)),
    }


def ratios() -> Iterator[dict[str, float]]:
    """Least processor time of each part divided by that of `calibration`.

    Of `TURNS` turns, then of twice as many, and so on.
    """
    timed = {"calibration": calibration} | parts()
    for call in timed.values():  # for late imports
        call()
    best = dict.fromkeys(timed, float("inf"))
    while True:
        for _ in range(TURNS):
            for name, call in timed.items():
                best[name] = min(best[name], _seconds(call))
        unit = best["calibration"]
        yield {name: seconds / unit for name, seconds in best.items() if name != "calibration"}


def reduced(console: Console, *, renew: bool) -> bool:
    """Whether every part stays within the bound."""
    kept = json.loads(KEPT.read_text(encoding="utf-8"))

    def is_slower(name: str, ratio: float) -> bool:  # one that the file lacks, too
        return not ratio <= BOUND * kept["ratios"].get(name, float("nan"))

    measured = islice(ratios(), LONGER)
    now = next(measured)
    if renew:
        kept = {"version": version("llm-gatekeeper"), "ratios": now}
        KEPT.write_text(json.dumps(kept, indent=2) + "\n")
    while (slower := {name for name in now if is_slower(name, now[name])}) and (
        longer := next(measured, None)
    ):
        now = longer
    table = Table(title=f"Processor time, in units of the calibration loop; bound: {BOUND} ×")
    for heading in ("part", "now", kept["version"], "times", ""):
        table.add_column(heading, justify="left" if heading == "part" else "right")
    for name, ratio in now.items():
        before = kept["ratios"].get(name, float("nan"))
        verdict = "SLOWER" if name in slower else "fine"
        table.add_row(name, f"{ratio:.3f}", f"{before:.3f}", f"{ratio / before:.2f}", verdict)
    console.print(table)
    return not slower


def whole(console: Console) -> None:
    """The main grid in this process, and the command with its processes."""
    unit = min(_seconds(calibration) for _ in range(TURNS))
    grid = 0.0
    for setting in SETTINGS.values():
        table = draw(setting, 0)
        grid += _seconds(
            lambda: compare(table, POLICIES, published.BETAS, Protocol(seeds=10))  # noqa: B023
        )
    before = _children()
    command = [sys.executable, "-m", "gatekeeper", "paper", "--json"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    paper = _children() - before
    for name, seconds in (
        ("main grid, 5 settings × 8 budgets × 10 seeds × 9 policies", grid),
        ("gatekeeper paper, 10 seeds", paper),
    ):
        console.print(f"{name}: {seconds:.1f} s of processor time, {seconds / unit:.0f} units")


def _seconds(call: Callable[[], object]) -> float:
    start = process_time()
    call()
    return process_time() - start


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--whole", action="store_true", help="the whole command")
    parser.add_argument("--renew", action="store_true", help="keep the figures in paper.json")
    args = parser.parse_args(arguments)
    console = Console(width=None if sys.stdout.isatty() else 110)
    console.print(machine(), highlight=False)
    if args.whole:
        whole(console)
        return 0
    return 0 if reduced(console, renew=args.renew) else 1


if __name__ == "__main__":
    sys.exit(main())
