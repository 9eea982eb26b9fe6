"""The paper's three signals from token log-probabilities (Section "Unified Decision Framework").

    h1 = -(1/L) Σ log P(x_l | x_<l)              mean negative log-likelihood, nats per token
    h2 = -min_l m_l                              minus the smallest margin, nats
    h3 = (1/L) Σ exp(-clip(m_l, -5, +inf))       mean exponentiated margin

with m_l = top1 - top2, the two most probable tokens *by value*, whichever was sampled. Margins
are therefore never negative and the paper's clip never acts; it stays because the definition has
it. What a position lacks is left out of the mean and counted, never invented:

- NaN: the provider gave nothing. -9999 or less: masked by a grammar or a sampler, as -inf.
- A masked second token gives an infinite margin: it adds 0 to h3, and h2 is -inf (most confident)
  where all positions are like that. Two masked tokens give no margin.
- A "log-probability" above 0.001 is a logit: the margins stand, h1 is NaN.
- All exactly 0 without a positive margin: a server that does not compute them. All NaN.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gatekeeper.errors import BadInputError
from gatekeeper.types import MASKED, FloatArray, Generation, Signals

__all__ = ["batch_signals", "signals_from_arrays", "signals_of"]

LOGIT = 1e-3  # a log-probability cannot exceed 0; this much is rounding


def signals_of(generation: Generation) -> Signals:
    """Signals of one output."""
    return batch_signals([generation])[0]


def signals_from_arrays(logprob: ArrayLike, top1: ArrayLike, top2: ArrayLike) -> Signals:
    """Signals of one output from three arrays of shape (L,), natural log.

    `top1` and `top2` are the two largest log-probabilities at each position, in either order.
    Raises BadInputError where the shapes differ or the values are not numbers.
    """
    return signals_of(Generation("", "", logprob, top1, top2))  # type: ignore[arg-type]


def batch_signals(generations: Sequence[Generation]) -> list[Signals]:
    """Signals of many outputs at once, in order. Raises BadInputError where shapes differ."""
    for g in generations:
        if not (g.logprob.ndim == 1 and g.logprob.shape == g.top1.shape == g.top2.shape):
            raise BadInputError(
                f"id={g.id!r}: logprob, top1 and top2 must be one-dimensional and of one length, "
                f"got shapes {g.logprob.shape}, {g.top1.shape}, {g.top2.shape}"
            )
    filled = [i for i, g in enumerate(generations) if g.logprob.size]
    result = [Signals(np.nan, np.nan, np.nan)] * len(generations)
    if not filled:
        return result
    some = [generations[i] for i in filled]
    lengths = np.array([g.logprob.size for g in some], dtype=np.intp)
    table = _segment_signals(
        np.concatenate([g.logprob for g in some]),
        np.concatenate([g.top1 for g in some]),
        np.concatenate([g.top2 for g in some]),
        lengths.cumsum() - lengths,
        lengths,
    )
    for i, h1, h2, h3, n, m in zip(filled, *(c.tolist() for c in table), strict=True):
        result[i] = Signals(h1, h2, h3, n_tokens=n, n_margins=m)
    return result


_Counts: TypeAlias = NDArray[np.intp]
_Table: TypeAlias = tuple[FloatArray, FloatArray, FloatArray, _Counts, _Counts]


def _segment_signals(
    logprob: FloatArray, top1: FloatArray, top2: FloatArray, starts: _Counts, n: _Counts
) -> _Table:
    """h1, h2, h3, positions and margins of each segment of `n` > 0 positions from `starts` on."""
    # NaN fails every comparison, so what passes is complete. Nearly every output is.
    if (
        logprob.min() > MASKED
        and top1.min() > MASKED
        and top2.min() > MASKED
        and logprob.max() <= 0.0
        and max(top1.max(), top2.max()) < np.inf
    ):
        margin = np.abs(top1 - top2)
        h1 = -np.add.reduceat(logprob, starts) / n + 0.0
        if h1.all():
            h2 = -np.minimum.reduceat(margin, starts) + 0.0
            h3 = np.add.reduceat(np.exp(-np.maximum(margin, -5.0)), starts) / n
            return h1, h2, h3, n, n
    return _incomplete_segment_signals(logprob, top1, top2, starts, n)


def _incomplete_segment_signals(
    logprob: FloatArray, top1: FloatArray, top2: FloatArray, starts: _Counts, n: _Counts
) -> _Table:
    """The same where positions may be masked, missing, logits, or not computed at all."""
    with np.errstate(invalid="ignore", divide="ignore"):
        top1 = np.where(top1 <= MASKED, -np.inf, top1)
        top2 = np.where(top2 <= MASKED, -np.inf, top2)
        margin = np.abs(top1 - top2)  # two masked tokens: inf - inf = NaN, no margin
        no_margin = np.isnan(margin)
        margins = n - np.add.reduceat(no_margin, starts, dtype=np.intp)
        h2 = -np.minimum.reduceat(np.where(no_margin, np.inf, margin), starts) + 0.0
        decay = np.exp(-np.maximum(margin, -5.0))
        decay[no_margin] = 0.0
        h3 = np.add.reduceat(decay, starts) / margins
        h2[margins == 0] = np.nan

        no_logprob = ~(logprob > MASKED)  # NaN, masked
        likelihoods = n - np.add.reduceat(no_logprob, starts, dtype=np.intp)
        h1 = -np.add.reduceat(np.where(no_logprob, 0.0, logprob), starts) / likelihoods
        h1 = np.maximum(h1, 0.0)
        h1[np.fmax.reduceat(logprob, starts) > LOGIT] = np.nan

    # Probability 1 at every position, yet never a lead over the second token: not computed.
    absent = np.logical_and.reduceat((logprob == 0.0) & ~(margin > 0.0), starts)
    for h in (h1, h2, h3):
        h[absent] = np.nan
    return h1, h2, h3, n, np.where(absent, 0, margins)
