"""Matrix products over many rows, computed in the thread that asks for them.

OpenBLAS divides a large product among threads, which wait for one another. Where other programs use
the processors, that takes tens of times as long as the product itself (`benchmarks/fit.py`), and a
policy that fits lets its gate wait. A product of a few rows takes one thread; so these functions
take blocks of rows. Their results do not depend on the number of threads either.
"""

from __future__ import annotations

import numpy as np

from gatekeeper.types import FloatArray

__all__ = ["of_columns", "of_rows"]

ROWS = 32  # of a block: with up to 80 columns OpenBLAS takes one thread


def of_columns(x: FloatArray, y: FloatArray) -> FloatArray:
    """`x.T @ y` for x (n, a) and y (n, b): (a, b)."""
    blocks, rest = _blocks(x)
    other, other_rest = _blocks(y)
    total: FloatArray = (blocks.swapaxes(1, 2) @ other).sum(axis=0) + rest.T @ other_rest
    return total


def of_rows(x: FloatArray, w: FloatArray) -> FloatArray:
    """`x @ w.T` for x (n, d) and w (m, d): (n, m)."""
    blocks, rest = _blocks(x)
    return np.concatenate([(blocks @ w.T).reshape(-1, len(w)), rest @ w.T])


def _blocks(x: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Blocks (k, ROWS, d), without a copy where x is in C order; and the rows that remain."""
    whole = len(x) - len(x) % ROWS
    return x[:whole].reshape(-1, ROWS, x.shape[1]), x[whole:]
