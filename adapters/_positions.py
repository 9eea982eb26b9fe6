"""What every reader shares: fields of objects or dicts, and the two largest values per position."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from struct import error as struct_error
from struct import pack_into
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from gatekeeper.errors import BadInputError
from gatekeeper.types import MASKED, FloatArray, Generation

__all__ = [
    "Positions",
    "Scope",
    "count_of",
    "field",
    "fields",
    "flat",
    "has",
    "list_of",
    "make_generation",
    "numbers",
    "text_of",
    "two_largest",
]

# Which of the output's tokens count: those of the answer, those of the reasoning before it, both.
Scope = Literal["content", "reasoning", "all"]


@dataclass(slots=True)
class Positions:
    """Log-probabilities of an output's tokens, arrays of shape (L,): see Generation."""

    logprob: FloatArray
    top1: FloatArray
    top2: FloatArray
    k: int = 0  # length of the longest list of alternatives

    def __len__(self) -> int:
        return self.logprob.size

    def at(self, where: slice | NDArray[np.bool_]) -> Positions:
        return Positions(self.logprob[where], self.top1[where], self.top2[where], self.k)

    def unknown(self) -> Positions:
        """As many positions, of which nothing is known."""
        nothing = np.full(len(self), np.nan)
        return Positions(nothing, nothing, nothing, self.k)


def make_generation(
    positions: Positions, *, output_tokens: int | None, skip_forced: bool, **fields: Any
) -> Generation:
    """A Generation; `skip_forced` leaves out the positions where nothing else was allowed.

    A grammar gives such a token probability 1 and masks all others. What is left out is no
    longer counted among the output's tokens.
    """
    if skip_forced:
        kept = positions.at(~((positions.logprob == 0.0) & (positions.top2 <= MASKED)))
        if output_tokens is not None:
            output_tokens -= len(positions) - len(kept)
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
    """Largest and second largest of consecutive runs of `lengths`; NaN where there is none.

    By value and whatever the order: equal values are two, NaN is none.
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
    """As float64, of its own, None as NaN. Raises BadInputError for what is no number."""
    found = np.empty(len(values))
    try:
        pack_into(f"{len(values)}d", found.data, 0, *values)  # quicker than np.array of a list
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


def fields(value: Any) -> Mapping[str, Any]:
    """What a dict or an object holds; nothing for anything else.

    Not by getattr: what it lacks, a pydantic object takes microseconds to say.
    """
    if isinstance(value, dict):
        return value
    if value is None:
        return {}
    try:
        own = vars(value)
    except TypeError:
        slots = getattr(value, "__slots__", ())
        return {name: getattr(value, name) for name in slots if hasattr(value, name)}
    extra = getattr(value, "__pydantic_extra__", None)  # what its class does not know
    return {**own, **extra} if extra else own


def field(value: Any, name: str) -> Any:
    """A key of a dict, an attribute of an object; None where there is none."""
    return value.get(name) if type(value) is dict else fields(value).get(name)


def has(value: Any, name: str) -> bool:
    """Whether there is such a field, be it None."""
    return name in fields(value)


def list_of(value: Any, name: str) -> list[Any]:
    """A field that is a list; empty where it is null or absent."""
    found = field(value, name)
    if found is None:
        return []
    if not isinstance(found, list):
        raise BadInputError(f"{name}={found!r:.80}: a list is needed")
    return found


def text_of(value: Any, name: str) -> str | None:
    """A field that is text, None where it is null or absent."""
    found = field(value, name)
    if found is None or isinstance(found, str):
        return found
    raise BadInputError(f"{name}={found!r:.80}: text is needed")


def count_of(value: Any, name: str) -> int | None:
    """A field that counts tokens, None where it is null or absent."""
    found = field(value, name)
    if found is None or (isinstance(found, int) and not isinstance(found, bool)):
        return found
    raise BadInputError(f"{name}={found!r:.80}: a whole number is needed")


def flat(lists: Iterable[Iterable[Any]]) -> list[Any]:
    return list(chain.from_iterable(lists))
