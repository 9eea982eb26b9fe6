"""A fit of `calibrated` on a machine that is busy, beside the same products by BLAS's own threads.

    python benchmarks/fit.py [--rounds 40]

`stats/products.py` multiplies in blocks of rows, so that OpenBLAS computes each in one thread. The
table has the wall-clock time of X'X, X of 2,048 labels (`calibrated` remembers no more) and so many
columns: in blocks, and as one product, by turns; on the machine as it is, and while one process per
CPU computes. `ratio` is the median of the pairs, one product ÷ blocks; `worst` the highest time.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import time
from collections.abc import Callable
from statistics import median

import numpy as np
from _machine import machine
from rich.console import Console
from rich.table import Table

from gatekeeper.stats import products

LABELS = 2048
COLUMNS = (26, 50, 74)  # of calibrated: without features, with some, with as many as it takes
PAUSE = 0.02  # seconds between products, as between fits: threads that just worked are awake


def compute() -> None:
    while True:
        pass


def took(product: Callable[[], object]) -> float:
    """Milliseconds."""
    time.sleep(PAUSE)
    start = time.perf_counter()
    product()
    return 1000.0 * (time.perf_counter() - start)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=40)
    args = parser.parse_args()
    table = Table(title=f"X'X, {LABELS} rows: ms, {args.rounds} pairs")
    for heading in ("columns", "machine", "blocks", "worst", "one product", "worst", "ratio"):
        table.add_column(heading, justify="left" if heading == "machine" else "right")
    rng = np.random.default_rng(0)
    for busy in (False, True):
        others = [
            multiprocessing.Process(target=compute, daemon=True)
            for _ in range(busy * (os.cpu_count() or 1))
        ]
        for other in others:
            other.start()
        for columns in COLUMNS:
            x = rng.standard_normal((LABELS, columns))
            ours, plain = lambda x=x: products.of_columns(x, x), lambda x=x: x.T @ x
            pairs = [(took(ours), took(plain)) for _ in range(args.rounds)]
            blocks, whole = zip(*pairs, strict=True)
            table.add_row(
                str(columns),
                "busy" if busy else "as it is",
                *(f"{f(side):.2f}" for side in (blocks, whole) for f in (median, max)),
                f"{median(b / a for a, b in pairs):.1f}",
            )
        for other in others:
            other.kill()
    console = Console()
    console.print(machine(), highlight=False)
    console.print(table)


if __name__ == "__main__":
    main()
