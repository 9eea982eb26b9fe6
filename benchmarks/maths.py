"""Speed and accuracy of MathChecker beside math-verify as its documentation calls it, in one run.

    python benchmarks/maths.py [--seed 0] [--json]

Workloads: the project's own pairs (tests/maths/pairs.py without the hostile ones), which are hard
on purpose; and, if ../shared/data/math_500.jsonl exists, its 500 solutions against their own
answers and 500 against another problem's. One worker process; its start is not counted. A verdict
is right if it is the expected one; "could not tell" is neither right nor a false accept.
"""

from __future__ import annotations

import argparse
import json
import logging
import random
import sys
from collections.abc import Callable
from math import isnan
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

import numpy as np
from math_verify import parse, verify
from rich.console import Console
from rich.table import Table

from gatekeeper.maths import MathChecker

ROOT = Path(__file__).resolve().parents[1]
MATH_500 = ROOT / ".." / "shared" / "data" / "math_500.jsonl"
sys.path.append(str(ROOT / "tests" / "maths"))

from pairs import PAIRS  # noqa: E402


class Pair(NamedTuple):
    gold: str
    response: str
    same: bool


class Result(NamedTuple):
    """One grader on one workload; p50 and p95 in milliseconds for one check, NaN in a batch."""

    workload: str
    grader: str
    pairs: int
    right: int
    false_accepts: int
    checks_per_second: float
    p50: float
    p95: float


def own_pairs() -> list[Pair]:
    return [
        Pair(
            gold, answer if kind in ("boxes", "cues") else rf"So $\boxed{{{answer}}}$.", bool(same)
        )
        for kind, gold, answer, same in PAIRS
        if isinstance(same, bool)
    ]


def math_500(rng: random.Random) -> list[Pair]:
    rows = [json.loads(line) for line in MATH_500.read_text().splitlines()]
    own = [Pair(row["answer"], row["solution"], same=True) for row in rows]
    others: list[Pair] = []
    while len(others) < len(rows):
        row, other = rng.sample(rows, 2)
        if row["answer"] != other["answer"]:
            others.append(Pair(row["answer"], other["solution"], same=False))
    return own + others


def singly(workload: str, grader: str, pairs: list[Pair], check: Callable[..., object]) -> Result:
    """`check(gold, response)` returns True, False or None for "could not tell"."""
    seconds, verdicts = [], []
    for pair in pairs:
        started = perf_counter()
        verdicts.append(check(pair.gold, pair.response))
        seconds.append(perf_counter() - started)
    p50, p95 = (float(1e3 * np.quantile(seconds, q)) for q in (0.5, 0.95))
    return result(workload, grader, pairs, verdicts, sum(seconds), p50, p95)


def result(
    workload: str,
    grader: str,
    pairs: list[Pair],
    verdicts: list[object],
    seconds: float,
    p50: float = float("nan"),
    p95: float = float("nan"),
) -> Result:
    right = sum(verdict is pair.same for verdict, pair in zip(verdicts, pairs, strict=True))
    false = sum(bool(v) and not pair.same for v, pair in zip(verdicts, pairs, strict=True))
    return Result(workload, grader, len(pairs), right, false, len(pairs) / seconds, p50, p95)


def run(workload: str, pairs: list[Pair]) -> list[Result]:
    label = {0: True, 1: False, None: None}
    first = ("x^2+2x+1", r"\boxed{(x+1)^2}")  # its answer shows that the worker has started
    with MathChecker(workers=1) as checker:
        checker.check(*first)
        alone = singly(
            workload,
            "gatekeeper, singly",
            pairs,
            lambda gold, response: label[checker.check(gold, response).error],
        )
    with MathChecker(workers=1) as checker:
        checker.check(*first)
        started = perf_counter()
        outcomes = list(checker.check_many((pair.gold, pair.response) for pair in pairs))
        seconds = perf_counter() - started
        verdicts: list[object] = [label[outcome.error] for outcome in outcomes]
        batch = result(workload, "gatekeeper, batch", pairs, verdicts, seconds)
    verify(parse("$1$"), parse("$1$"))
    documented = singly(
        workload,
        "math-verify, as documented",
        pairs,
        lambda gold, response: verify(parse(f"${gold}$"), parse(response)),
    )
    return [alone, batch, documented]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    logging.disable()  # math-verify reports its timeouts on the root logger
    rng = random.Random(args.seed)
    workloads = {"own pairs": own_pairs()}
    if MATH_500.exists():
        workloads["MATH-500"] = math_500(rng)
    else:
        print(f"no {MATH_500}: MATH-500 left out", file=sys.stderr)
    results = []
    for name, pairs in workloads.items():
        rng.shuffle(pairs)
        results += run(name, pairs)
    if args.json:
        print(json.dumps([row._asdict() for row in results]))
        return
    table = Table("workload", "grader", "right", "false accepts", "checks/s", "p50 ms", "p95 ms")
    for row in results:
        table.add_row(
            row.workload,
            row.grader,
            f"{row.right} of {row.pairs}",
            str(row.false_accepts),
            f"{row.checks_per_second:.0f}",
            "" if isnan(row.p50) else f"{row.p50:.2f}",
            "" if isnan(row.p95) else f"{row.p95:.1f}",
        )
    Console(width=100).print(table)


if __name__ == "__main__":
    main()
