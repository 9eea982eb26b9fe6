"""Many short texts in little memory."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import overload

import numpy as np

from gatekeeper.types import IntArray

__all__ = ["Texts"]

PIECE = 4096  # texts that are joined


class Texts(Sequence[str]):
    """A sequence of texts to which one can append; short ones take a third of a list's memory.

    They are joined in pieces: an object of its own takes each about 50 bytes beside its characters.
    """

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._ends = array("i")  # within the text's piece, of those in pieces
        self._rest: list[str] = []

    def append(self, text: str) -> None:
        rest = self._rest
        rest.append(text)
        if len(rest) == PIECE:
            self._pieces.append("".join(rest))
            self._ends.extend(accumulate(map(len, rest)))
            rest.clear()

    def pick(self, places: IntArray) -> list[str]:
        """The texts at these places, at least 0; of many in less time than one by one."""
        pieces = [*self._pieces, "".join(self._rest)]
        rest = np.array([*accumulate(map(len, self._rest))], dtype=np.intc)
        ends = np.concatenate((self._ends, rest))
        starts = np.where(places % PIECE, ends[places - 1], 0)
        rows = zip((places // PIECE).tolist(), starts.tolist(), ends[places].tolist(), strict=True)
        return [pieces[piece][start:end] for piece, start, end in rows]

    def __len__(self) -> int:
        return len(self._ends) + len(self._rest)

    @overload
    def __getitem__(self, at: int) -> str: ...
    @overload
    def __getitem__(self, at: slice) -> list[str]: ...
    def __getitem__(self, at: int | slice) -> str | list[str]:
        if isinstance(at, slice):
            return [self[i] for i in range(len(self))[at]]
        at = range(len(self))[at]
        if at >= len(self._ends):
            return self._rest[at - len(self._ends)]
        start = self._ends[at - 1] if at % PIECE else 0
        return self._pieces[at // PIECE][start : self._ends[at]]

    def __iter__(self) -> Iterator[str]:
        return map(self.__getitem__, range(len(self)))

    def __eq__(self, other: object) -> bool:
        """As lists: with equal texts in equal order."""
        return isinstance(other, Texts | list) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]  # as of a list
