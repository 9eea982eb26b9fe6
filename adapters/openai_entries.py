"""The token entries that chat completions and the Responses API share, as columns of numbers."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from operator import attrgetter, itemgetter
from typing import Any

import numpy as np

from gatekeeper.adapters._positions import (
    Positions,
    field,
    list_of,
    numbers,
    text_of,
    two_largest,
    with_another,
)
from gatekeeper.errors import BadInputError

__all__ = ["Entries", "entries_of"]


BATCH = 16  # entries of a stream that are taken at once


class Entries:
    """What is needed of a list of `{token, bytes, logprob, top_logprobs}`, objects or dicts.

    The chosen token counts among the candidates where `top_logprobs` lacks it. A token is told by
    its text, and by its bytes where the text does not tell; never by its value, so that ties stay
    ties.
    """

    def __init__(self, entries: list[Any] | None = None) -> None:
        """Raises BadInputError for what is no entry."""
        self._spelled: list[Any] = list(entries or ())  # each with its `token` and `bytes`
        self._chosen: list[float | None] = []
        self._alternatives: list[float | None] = []  # of all positions, one after the other
        self._lengths: list[int] = []
        self._listed: list[bool] = []  # whether the chosen token is among its alternatives
        self._waiting: list[Any] = []  # of a stream: not taken yet
        self._error: BadInputError | None = None
        if entries:
            self._take(entries)

    def __len__(self) -> int:
        return len(self._chosen) + len(self._waiting)

    def add(self, entries: list[Any]) -> None:
        """Take a chunk's. Their objects are not kept for long: the garbage collector would go
        through all of them again and again. What is wrong with them is said by `positions`."""
        self._waiting += entries
        if len(self._waiting) >= BATCH:
            self._take_waiting()

    def extend(self, more: Entries) -> None:
        for entries in (self, more):
            entries._take_waiting()
        self._spelled += more._spelled
        self._chosen += more._chosen
        self._alternatives += more._alternatives
        self._lengths += more._lengths
        self._listed += more._listed
        self._error = self._error or more._error

    def spelled(self) -> list[Any]:
        """Something with `token` and `bytes` of each."""
        self._take_waiting()
        return self._spelled

    def positions(self, *, sampled_first: bool = False) -> Positions:
        """As arrays. Raises BadInputError for what is no entry or no number.

        Two cases in which the second most probable token is not in the response give no margin:
        the list has one token and the chosen one is another, less probable; and the server puts
        the sampled token first and cuts the list at k = 2 (vLLM: `sampled_first`), where it is
        not the most probable one.
        """
        self._take_waiting()
        if self._error is not None:
            raise self._error
        chosen = numbers(self._chosen)
        top1, top2 = two_largest(numbers(self._alternatives), self._lengths)
        if not all(self._listed):
            top1, top2 = with_another(top1, top2, np.where(self._listed, np.nan, chosen))
        k = max(self._lengths, default=0)
        if k == 1 or (sampled_first and k == 2):
            top2[chosen < top1] = np.nan
        return Positions(chosen, top1, top2, k)

    def _take_waiting(self) -> None:
        entries, self._waiting = self._waiting, []
        if not entries:
            return
        try:
            tokens = self._take(entries)
        except BadInputError as error:
            self._error = error
            return
        self._spelled += [
            {"token": token, "bytes": field(entry, "bytes")}
            for token, entry in zip(tokens, entries, strict=True)
        ]

    def _take(self, entries: list[Any]) -> list[str]:
        """Returns the tokens."""
        try:
            chosen, tokens, lists, alternatives, listed = _columns(entries)
        except (AttributeError, KeyError, TypeError):  # nulls, missing fields, objects beside dicts
            entries = [_completed(entry) for entry in entries]
            chosen, tokens, lists, alternatives, listed = _columns(entries)
        self._chosen += chosen
        self._alternatives += alternatives
        self._lengths += map(len, lists)
        self._listed += listed
        return tokens


def entries_of(value: Any, name: str) -> Entries:
    """A field that is a list of entries, or already collected; empty where it is null or absent."""
    found = field(value, name)
    return found if isinstance(found, Entries) else Entries(list_of(value, name))


def _columns(entries: Sequence[Any]) -> tuple[Any, list[str], Any, Any, list[bool]]:
    """All at once, for speed, of entries that are of one kind and complete."""
    getter: Any = itemgetter if isinstance(entries[0], dict) else attrgetter
    logprob_of, token_of = getter("logprob"), getter("token")
    tokens, lists = list(map(token_of, entries)), list(map(getter("top_logprobs"), entries))
    listed = [token in map(token_of, top) for token, top in zip(tokens, lists, strict=True)]
    if not all(tokens) or "\ufffd" in "".join(tokens):
        for i, (token, top) in enumerate(zip(tokens, lists, strict=True)):
            if not token or "\ufffd" in token:
                raw = field(entries[i], "bytes")
                same = [field(each, "bytes") for each in top if token_of(each) == token]
                # Streams of the Responses API lack bytes.
                listed[i] = raw in same or None in same or bool(same and raw is None)
    values = list(map(logprob_of, chain.from_iterable(lists)))
    return list(map(logprob_of, entries)), tokens, lists, values, listed


def _completed(entry: Any) -> dict[str, Any]:
    """With every field that is read, and null for what is missing."""
    found = {name: field(entry, name) for name in ("logprob", "bytes")}
    found["token"] = text_of(entry, "token") or ""
    found["top_logprobs"] = [_completed(each) for each in list_of(entry, "top_logprobs")]
    return found
