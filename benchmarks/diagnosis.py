"""Whether the odds of `gatekeeper diagnose` are calibrated, what its advice gains, what HGA adds.

    python benchmarks/diagnosis.py [--runs 20] [--size 500 --size 2000]

Streams of `gatekeeper.paper.stress` and budgets as below, every run on a new stream, once
with every label and once as a log of policy cst that explores a tenth of its budget. The truth is
the difference of the two recalls on 12,000 further outputs, with the score that the run's warm-up
fitted. HGA is compared with CST as in the paper: on the second half, labels of the first half shown
to HGA whatever they cost.
"""

from __future__ import annotations

import argparse
import zlib
from dataclasses import replace
from itertools import pairwise, product
from time import perf_counter

import numpy as np
from _machine import machine
from off_policy import logged

from gatekeeper.analysis.diagnosis.odds import odds_of
from gatekeeper.analysis.odds import WORTH
from gatekeeper.analysis.off_policy import STRATA, Evidence
from gatekeeper.analysis.plan import settled_share
from gatekeeper.analysis.vectorised import Stream
from gatekeeper.errors import BadInputError
from gatekeeper.io.records import RecordTable
from gatekeeper.paper.stress import make_stream
from gatekeeper.policies import CST, HGA, T0
from gatekeeper.types import FloatArray

STREAMS = (
    *("usual", "weak-cost", "heavy-tail", "rising", "falling", "u-shaped", "no-signal"),
    *("inverted-signal", "one-bad-stratum", "incomparable", "confounded", "rare-errors"),
    *("common-errors", "sharp-signal", "missing-signals", "costly-errors"),
)
BETAS = (0.1, 0.2, 0.3)
MORE = 12_000
LEVELS = (0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.01)


def true_gain(run: RecordTable, stream: str, beta: float, seed: int) -> float:
    """Recall of CST minus that of Threshold on further outputs."""
    more = make_stream(stream, MORE, seed + 1_000_000)
    both = RecordTable(
        [str(i) for i in range(T0 + MORE)],
        np.vstack([run.h[:T0], more.h]),
        np.concatenate([run.cost_estimate[:T0], more.cost_estimate]),
        np.concatenate([run.cost[:T0], more.cost]),
        np.concatenate([run.error[:T0], more.error]),
    )
    evidence = Evidence(both)
    cst, threshold = (settled_share(evidence, beta, k) for k in (STRATA, 1))
    return float((cst - threshold) @ more.error / more.error.sum())


def hga_above_cst(table: RecordTable, beta: float, seed: int) -> float:
    stream = Stream(table.h, table.cost_estimate, table.cost, table.error, evaluate="second-half")
    y = table.error[stream.first :]
    hga, cst = (stream.decide(policy, beta, seed=seed).verified for policy in (HGA, CST))
    return float((y[hga].sum() - y[cst].sum()) / y.sum()) if y.any() else np.nan


def run(stream: str, beta: float, n: int, seed: int) -> list[float]:
    """The results of one run.

    True gain and HGA's gain; then, with every label and from a log, the odds of cst and of
    threshold, the estimated gain, and whether the interval holds the truth.
    """
    table = make_stream(stream, n, seed)
    true = true_gain(table, stream, beta, seed)
    row = [true, hga_above_cst(table, beta, seed)]
    for records in (replace(table, cost=np.ones(n)), logged("cst", table, beta, seed)):
        try:
            found = odds_of(records, beta, STRATA)
        except BadInputError:
            found = None
        if found is None:
            row += [np.nan] * 4
            continue
        held = found.gain.low <= true <= found.gain.high
        row += [found.cst, found.threshold, found.gain.value, float(held)]
    return row


def show(x: FloatArray, n: int) -> None:
    for first, source in ((2, "every label"), (6, "a log of cst")):
        y = x[~np.isnan(x[:, first])]
        true, cst, threshold, gain, held = y[:, 0], *y[:, first : first + 4].T
        print(
            f"\n{n} outputs, {source}: {len(y)} runs, interval of the gain holds {held.mean():.1%}"
        )
        print("  stated odds     cst: runs, stated, true  threshold: runs, stated, true")
        for low, high in pairwise(LEVELS):
            cells = []
            for odds, so in ((cst, true > WORTH), (threshold, true < -WORTH)):
                mine = (low <= odds) & (odds < high)
                shown = f"{odds[mine].mean():6.2f} {so[mine].mean():6.2f}" if mine.any() else ""
                cells.append(f"{mine.sum():6} {shown:13}")
            print(f"  {low:.1f} to {min(high, 1.0):.1f}      " + "     ".join(cells))
        bet = np.where(gain > 0.0, true, 0.0)
        for name, value in (
            ("the better bet", bet),
            ("always cst", true),
            ("the better one in hindsight", np.maximum(true, 0.0)),
        ):
            print(f"  recall above threshold, {name:<28} {100 * value.mean():+6.2f} points")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=20, help="of each stream and budget")
    parser.add_argument("--size", action="append", type=int, help="outputs (default: 500, 2000)")
    args = parser.parse_args()
    start = perf_counter()
    print(machine(), flush=True)
    for n in args.size or (500, 2000):
        rows = []
        for cell in product(STREAMS, BETAS):
            first = zlib.crc32(repr((cell, n)).encode())
            rows += [[*run(*cell, n, first + i)] for i in range(args.runs)]
        x = np.array(rows, dtype=np.float64)
        show(x, n)
        print(f"\n  recall of hga above that of cst, {n} outputs")
        per = len(rows) // len(STREAMS)
        means = [float(np.nanmean(x[i * per : (i + 1) * per, 1])) for i in range(len(STREAMS))]
        for stream, mean in zip(STREAMS, means, strict=True):
            print(f"  {stream:<20} {100 * mean:+6.2f} points")
        print(f"  {'median of streams':<20} {100 * float(np.median(means)):+6.2f} points")
    print(f"\n{perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
