"""The paper's three signals from token log-probabilities (Section "Unified Decision Framework").

    h1 = -(1/L) Σ log P(x_l | x_<l)              mean negative log-likelihood, nats per token
    h2 = -min_l m_l                              minus the smallest margin, nats
    h3 = (1/L) Σ exp(-clip(m_l, -5, +inf))       mean exponentiated margin

with m_l = top1 - top2, the two most probable tokens *by value*, whichever was sampled. Margins are
therefore never negative and the paper's clip has no effect; it is kept as part of the definition.
Positions without a value are left out of the mean and counted; nothing is imputed:

- NaN: the provider gave nothing. -9999 or less: masked by a grammar or a sampler, as -inf.
- A masked second token gives an infinite margin: it adds 0 to h3, and h2 is -inf (most confident)
  where all positions are like that. Two masked tokens give no margin.
- A "log-probability" above 0.001 is a logit: the margins hold, h1 is NaN.
- All exactly 0 without a positive margin: a server that does not compute them. All NaN.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from gatekeeper.errors import BadInputError
from gatekeeper.types import MASKED, FloatArray, Generation, IntArray, Signals
from gatekeeper.types.checks import check_generation
from gatekeeper.types.values import LOGIT, as_floats

__all__ = ["DEFINITION", "batch_signals", "signals_from_arrays", "signals_of"]

DEFINITION = 1  # of the signals below: one more wherever a change gives an output other values
RUN = 8192  # positions at once: arrays of 64 KiB, which stay in the cache and in malloc's hands


def signals_of(generation: Generation) -> Signals:
    """Signals of one output. Raises BadInputError for no Generation, and where shapes differ."""
    check_generation(generation)
    _check_shapes(generation.logprob, generation.top1, generation.top2, id=generation.id)
    return _signals(generation.logprob, generation.top1, generation.top2)


def signals_from_arrays(logprob: ArrayLike, top1: ArrayLike, top2: ArrayLike) -> Signals:
    """Signals of one output from its arrays.

    Parameters
    ----------
    logprob
        Log-probabilities (L,) of the chosen tokens, natural log; NaN where missing.
    top1, top2
        The two largest log-probabilities (L,) at each position, in either order.

    Raises
    ------
    BadInputError
        If the shapes differ, or a value is not a number.
    """
    arrays = as_floats("logprob", logprob), as_floats("top1", top1), as_floats("top2", top2)
    _check_shapes(*arrays)
    return _signals(*arrays)


def batch_signals(generations: Sequence[Generation]) -> list[Signals]:
    """Signals of many outputs at once, in order. Raises BadInputError as `signals_of`."""
    if not isinstance(generations, Sequence):
        raise BadInputError(f"generations={generations!r:.80}: give a list of Generation")
    for g in generations:
        check_generation(g)
        _check_shapes(g.logprob, g.top1, g.top2, id=g.id)
    result = [Signals(np.nan, np.nan, np.nan)] * len(generations)
    run: list[int] = []  # outputs that are computed together
    positions = 0
    for i, g in enumerate(generations):
        if run and positions + g.logprob.size > RUN:
            _fill(result, generations, run)
            run, positions = [], 0
        if g.logprob.size:
            run.append(i)
            positions += g.logprob.size
    if run:
        _fill(result, generations, run)
    return result


def _fill(result: list[Signals], generations: Sequence[Generation], run: list[int]) -> None:
    some = [generations[i] for i in run]
    lengths = np.array([g.logprob.size for g in some], dtype=np.intp)
    table = _segment_signals(
        np.concatenate([g.logprob for g in some]),
        np.concatenate([g.top1 for g in some]),
        np.concatenate([g.top2 for g in some]),
        lengths.cumsum() - lengths,
        lengths,
    )
    for i, h1, h2, h3, n, m in zip(run, *(c.tolist() for c in table), strict=True):
        result[i] = Signals(h1, h2, h3, n_tokens=n, n_margins=m)


def _check_shapes(logprob: FloatArray, top1: FloatArray, top2: FloatArray, id: str = "") -> None:
    if not (logprob.ndim == 1 and logprob.shape == top1.shape == top2.shape):
        raise BadInputError(
            f"id={id!r}: logprob, top1 and top2 must be one-dimensional and of one length, "
            f"got shapes {logprob.shape}, {top1.shape}, {top2.shape}"
        )


def _signals(logprob: FloatArray, top1: FloatArray, top2: FloatArray) -> Signals:
    """One output, to the bit as in a batch, without what it costs to set a batch up."""
    n = logprob.size
    # argmin and argmax find a NaN first, and what fails a comparison is left to the batch. Numbers
    # come out by `item`: indexing makes a scalar of numpy's, and arithmetic with that is slow.
    if (
        n
        and logprob.item(logprob.argmax()) <= 0.0
        and top1.item(top1.argmax()) < inf
        and top2.item(top2.argmin()) > MASKED
    ):
        total = _sums(logprob, _START).item()
        lag = top2 - top1  # minus the margin where top1 is the larger, as in what readers give
        h2 = 0.0 + lag.item(lag.argmax())
        if 0.0 > total > MASKED and h2 <= 0.0:  # then so is every term; the clip has nothing to do
            h3 = _sums(np.exp(lag), _START).item() / n
            return Signals(-total / n, h2, h3, n, n)
    return batch_signals([Generation("", "", logprob, top1, top2)])[0]


_sums = np.add.reduceat  # one for each segment
_START = np.zeros(1, dtype=np.intp)
_Table: TypeAlias = tuple[FloatArray, FloatArray, FloatArray, IntArray, IntArray]


def _segment_signals(
    logprob: FloatArray, top1: FloatArray, top2: FloatArray, starts: IntArray, n: IntArray
) -> _Table:
    """h1, h2, h3, positions and margins of each segment of `n` > 0 positions from `starts` on."""
    # NaN fails every comparison, so what passes is complete. Nearly every output is.
    if (
        logprob.min() > MASKED
        and top1.min() > MASKED
        and top2.min() > MASKED
        and logprob.max() <= 0.0
        and max(top1.max(), top2.max()) < inf
    ):
        margin = np.abs(top1 - top2)
        h1 = -_sums(logprob, starts) / n + 0.0
        if h1.all():
            h2 = -np.minimum.reduceat(margin, starts) + 0.0
            h3 = _sums(np.exp(-np.maximum(margin, -5.0)), starts) / n
            return h1, h2, h3, n, n
    return _incomplete_segment_signals(logprob, top1, top2, starts, n)


def _incomplete_segment_signals(
    logprob: FloatArray, top1: FloatArray, top2: FloatArray, starts: IntArray, n: IntArray
) -> _Table:
    """The signals of segments whose positions may be masked, missing, logits, or not computed."""
    with np.errstate(invalid="ignore", divide="ignore"):
        top1 = np.where(top1 <= MASKED, -inf, top1)
        top2 = np.where(top2 <= MASKED, -inf, top2)
        margin = np.abs(top1 - top2)  # two masked tokens: inf - inf = NaN, no margin
        no_margin = np.isnan(margin)
        margins = n - _sums(no_margin, starts, dtype=np.intp)
        h2 = -np.minimum.reduceat(np.where(no_margin, inf, margin), starts) + 0.0
        decay = np.exp(-np.maximum(margin, -5.0))
        decay[no_margin] = 0.0
        h3 = _sums(decay, starts) / margins
        h2[margins == 0] = np.nan

        no_logprob = ~(logprob > MASKED)  # NaN, masked
        likelihoods = n - _sums(no_logprob, starts, dtype=np.intp)
        h1 = -_sums(np.where(no_logprob, 0.0, logprob), starts) / likelihoods
        h1 = np.maximum(h1, 0.0)
        h1[np.fmax.reduceat(logprob, starts) > LOGIT] = np.nan

    # Probability 1 at every position, yet never a lead over the second token: not computed.
    absent = np.logical_and.reduceat((logprob == 0.0) & ~(margin > 0.0), starts)
    for h in (h1, h2, h3):
        h[absent] = np.nan
    return h1, h2, h3, n, np.where(absent, 0, margins)
