"""How much recall the advice of `report`, `diagnose`, `compare` and `run` gains, and its odds.

    python benchmarks/advice.py [--runs 2] [--size 500]

Streams and budgets of benchmarks/diagnosis.py, every run on a new stream: once with every label,
once as a log of policy cst and once as one of calibrated, which explore a tenth of their budgets.
The truth is the recall of each policy in the next run, on a further stream of the same length with
a warm-up of its own. It varies from run to run, so odds need many runs. The recall of the advised
policy, of the one with the highest estimated recall, and of the best one in hindsight is compared
with that of the default policy.
"""

from __future__ import annotations

import argparse
import zlib
from dataclasses import replace
from itertools import pairwise, product
from time import perf_counter

import numpy as np
from _machine import machine
from diagnosis import BETAS, STREAMS
from off_policy import logged

from gatekeeper.analysis.advice import Advice, advise
from gatekeeper.analysis.odds import WORTH
from gatekeeper.analysis.off_policy import Evidence
from gatekeeper.io.records import RecordTable
from gatekeeper.paper.stress import make_stream
from gatekeeper.policies import DEFAULT_POLICY

SOURCES = ("every label", "a log of cst", "a log of calibrated")
LEVELS = (0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.01)


def stream_of(name: str, n: int, seed: int) -> RecordTable:
    """A stream with costs in verifications, as logs have them by default."""
    return replace(make_stream(name, n, seed), cost=np.ones(n))


def next_recalls(table: RecordTable, policies: list[str], beta: float) -> dict[str, float]:
    evidence = Evidence(table)
    return {
        name: float(evidence.shares(name, beta) @ evidence.label / evidence.label.sum())
        for name in policies
    }


def highest(advice: Advice) -> str:
    """The policy of the highest estimated recall."""
    first = advice.rivals[0]
    return first.policy if first.less.value < 0.0 else advice.policy


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=2, help="of each stream and budget")
    parser.add_argument("--size", type=int, default=500, help="outputs")
    args = parser.parse_args()
    start, n = perf_counter(), args.size
    print(machine(), flush=True)
    rows: dict[str, list[tuple[float, ...]]] = {source: [] for source in SOURCES}
    odds: dict[str, list[tuple[float, bool]]] = {source: [] for source in SOURCES}
    reasons = dict.fromkeys(SOURCES, 0)
    for stream, beta in product(STREAMS, BETAS):
        first = zlib.crc32(repr((stream, beta, n, "advice")).encode())
        for seed in range(first, first + args.runs):
            table = stream_of(stream, n, seed)
            logs = [table, *(logged(name, table, beta, seed) for name in ("cst", DEFAULT_POLICY))]
            following = stream_of(stream, n, seed + 1_000_000)
            true: dict[str, float] = {}
            for source, log in zip(SOURCES, logs, strict=True):
                advice = advise(log, beta)
                if not advice.rivals:
                    reasons[source] += 1
                    continue
                names = [advice.policy, *(r.policy for r in advice.rivals)]
                true = true or next_recalls(following, names, beta)
                usual = true[DEFAULT_POLICY]
                chosen = (
                    advice.policy,
                    highest(advice),
                    "cst",
                    max(true, key=lambda name: true[name]),
                )
                rows[source].append(
                    (
                        *(true[name] - usual for name in chosen),
                        float(advice.policy != DEFAULT_POLICY),
                    )
                )
                for r in advice.rivals:
                    gain = true[advice.policy] - true[r.policy]
                    odds[source] += [(r.ahead, gain > WORTH), (r.behind, gain < -WORTH)]
    for source in SOURCES:
        x = np.array(rows[source])
        print(f"\n{n} outputs, {source}: {len(x)} runs, in {reasons[source]} no advice")
        other = x[:, 4] == 1.0
        print(f"  another policy than {DEFAULT_POLICY} advised: {int(other.sum())}", end="")
        print(f", which then finds {100 * x[other, 0].mean():+.2f} points" if other.any() else "")
        heads = ("the advice", "the highest estimate", "always cst", "the best in hindsight")
        for head, column in zip(heads, x.T, strict=False):
            error = 100 * column.std() / len(column) ** 0.5
            print(f"  {head:<24} {100 * column.mean():+6.2f} ± {1.96 * error:.2f} points of recall")
        said, came = (np.array(c) for c in zip(*odds[source], strict=True))
        for low, high in pairwise(LEVELS):
            mine = (low <= said) & (said < high)
            if mine.any():
                print(
                    f"  odds of {said[mine].mean():4.0%} came true in {came[mine].mean():4.0%}"
                    f" of {mine.sum()}"
                )
    print(f"\n{perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
