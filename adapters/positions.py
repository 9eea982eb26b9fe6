"""Log-probabilities by position, as every reader collects them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from struct import error as struct_error
from struct import pack_into
from typing import Any, Literal, get_args

import numpy as np

from gatekeeper.arguments import check_choice
from gatekeeper.errors import BadInputError
from gatekeeper.types import MASKED, BoolArray, FloatArray, Generation

__all__ = [
    "Positions",
    "Scope",
    "check_scope",
    "flat",
    "make_generation",
    "numbers",
    "two_largest",
]

Scope = Literal["content", "reasoning", "all"]
"""Which tokens of an output count: those of the answer, of the reasoning before it, or both."""

_SCOPES = get_args(Scope)


def check_scope(scope: object) -> None:
    """Raises BadInputError for what is no `Scope`."""
    check_choice("scope", scope, _SCOPES)


@dataclass(slots=True)
class Positions:
    """Log-probabilities of an output's tokens, arrays of shape (L,): see Generation."""

    logprob: FloatArray
    top1: FloatArray
    top2: FloatArray
    k: int = 0  # length of the longest list of alternatives

    def __len__(self) -> int:
        return self.logprob.size

    def at(self, where: slice | BoolArray) -> Positions:
        return Positions(self.logprob[where], self.top1[where], self.top2[where], self.k)

    def unknown(self) -> Positions:
        """As many positions, with unknown values."""
        nothing = np.full(len(self), np.nan)
        return Positions(nothing, nothing, nothing, self.k)


def make_generation(
    positions: Positions, *, output_tokens: int | None, skip_forced: bool, **fields: Any
) -> Generation:
    """A Generation from positions.

    Parameters
    ----------
    positions : Positions
    output_tokens : int or None
        As the usage counts them.
    skip_forced : bool
        Leave out the positions where a grammar allowed one token only: it has probability 1 and
        all others are masked. `output_tokens` then excludes them.
    **fields
        The other fields of Generation.
    """
    if skip_forced:
        kept = positions.at(~((positions.logprob == 0.0) & (positions.top2 <= MASKED)))
        if output_tokens is not None:
            output_tokens = max(output_tokens - (len(positions) - len(kept)), 0)
        positions = kept
    return Generation(
        logprob=positions.logprob,
        top1=positions.top1,
        top2=positions.top2,
        k_seen=positions.k,
        output_tokens=output_tokens,
        **fields,
    )


def two_largest(values: FloatArray, lengths: Sequence[int]) -> tuple[FloatArray, FloatArray]:
    """Largest and second largest value of each of consecutive runs.

    Parameters
    ----------
    values : array of shape (N,)
        The runs, one after the other, each in any order. NaN values do not count; equal values
        count as two.
    lengths : sequence of int
        The length of each run; their sum is N.

    Returns
    -------
    first, second : arrays of shape (len(lengths),)
        NaN where a run has no such value.
    """
    n, width = len(lengths), max(lengths, default=0)
    if values.size == n * width:
        table = values.reshape(n, width)
    else:
        table = np.full((n, width), np.nan)
        table[np.arange(width) < np.array(lengths)[:, None]] = values
    first, second, lower = np.full(n, np.nan), np.full(n, np.nan), np.empty(n)
    for alternatives in table.T:
        np.minimum(first, alternatives, out=lower)  # unlike fmax, keeps NaN
        np.fmax(second, lower, out=second)
        np.fmax(first, alternatives, out=first)
    return first, second


def numbers(values: Sequence[Any]) -> FloatArray:
    """A new float64 array, with NaN for None. Raises BadInputError for a value of another type."""
    found = np.empty(len(values))
    try:
        pack_into(f"{len(values)}d", found.data, 0, *values)  # faster than np.array of a list
        return found
    except (struct_error, OverflowError):
        pass
    for value in values:
        if value is not None and not isinstance(value, int | float):
            raise BadInputError(f"logprob={value!r:.80}: a number is needed")
    try:
        return np.array(values, dtype=np.float64)
    except OverflowError as e:
        raise BadInputError(f"logprob: {e}") from None


def flat(lists: Iterable[Iterable[Any]]) -> list[Any]:
    """The items of all lists, in order."""
    return list(chain.from_iterable(lists))
