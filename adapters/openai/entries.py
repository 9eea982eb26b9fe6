"""The token entries that chat completions and the Responses API share."""

from __future__ import annotations

from collections.abc import Iterable
from math import nan
from operator import attrgetter, itemgetter
from typing import Any

import numpy as np

from gatekeeper.adapters.fields import field, list_of, text_of
from gatekeeper.adapters.positions import Positions, numbers
from gatekeeper.errors import BadInputError

__all__ = ["Entries", "entries_of"]


class Entries:
    """Three numbers of each `{token, bytes, logprob, top_logprobs}`, objects or dicts.

    The chosen token counts among the candidates where `top_logprobs` lacks it. Tokens are
    compared by text, and by bytes where the text is ambiguous; never by value, so that ties stay
    ties.
    """

    def __init__(self, entries: list[Any] | None = None) -> None:
        """Raises BadInputError for a value that is not an entry."""
        self._spelled: list[Any] = []  # token, bytes, token, bytes, ... of chunks, in one list
        self._entries: list[Any] = []  # of whole responses: the objects themselves
        self._chosen: list[float] = []
        self._top1: list[float] = []
        self._top2: list[float] = []
        self._k = 0
        self._error: BadInputError | None = None
        if entries:
            self._take(entries)
            self._entries += entries

    def __len__(self) -> int:
        return len(self._chosen)

    def __bool__(self) -> bool:
        """Whether there are entries, valid or not."""
        return bool(self._chosen) or self._error is not None

    def add(self, entries: list[Any]) -> None:
        """Add the entries of a chunk. If one is invalid, `positions` raises the error.

        The objects themselves are not kept: the garbage collector would visit all of them in
        every collection.
        """
        try:
            self._take(entries, spelled=self._spelled)
        except BadInputError as error:
            self._error = error

    def extend(self, more: Entries) -> None:
        self._spelled += more._spelled
        self._entries += more._entries
        self._chosen += more._chosen
        self._top1 += more._top1
        self._top2 += more._top2
        self._k = max(self._k, more._k)
        self._error = self._error or more._error

    def texts(self) -> list[str]:
        """The text of each token: from its bytes where it has them."""
        flat = iter(self._spelled)
        pairs = [(text_of(e, "token") or "", field(e, "bytes")) for e in self._entries]
        return [_spelling(token, raw) for token, raw in (*zip(flat, flat, strict=True), *pairs)]

    def positions(self, *, sampled_first: bool = False) -> Positions:
        """The log-probabilities as arrays.

        There is no margin in two cases in which the second most probable token is not in the
        response: the list has one token and the chosen one is another, less probable one; or the
        server puts the sampled token first and cuts the list at k = 2, and the sampled token is
        not the most probable one.

        Parameters
        ----------
        sampled_first : bool
            Whether the server puts the sampled token first, as vLLM does.

        Raises
        ------
        BadInputError
            For a value that is not an entry or not a number.
        """
        if self._error is not None:
            raise self._error
        chosen, top1, top2 = map(numbers, (self._chosen, self._top1, self._top2))
        if self._k == 1 or (sampled_first and self._k == 2):
            top2[chosen < top1] = np.nan
        return Positions(chosen, top1, top2, self._k)

    def _take(self, entries: list[Any], *, spelled: list[Any] | None = None) -> None:
        """One pass that reads each object once: `benchmarks/adapters.py` measures it.

        tests/adapters/test_openai_streams.py compares it with the plain definition.
        """
        if not entries:
            return
        getters = _DICT if isinstance(entries[0], dict) else _OBJECT
        parts_of, logprob_of, token_of, bytes_of = getters
        add_chosen, add_top1, add_top2 = self._chosen.append, self._top1.append, self._top2.append
        k = 0
        for entry in entries:
            try:
                token, own, alternatives = parts_of(entry)
                n = len(alternatives)
                if n > k:
                    k = n
                values = map(logprob_of, alternatives)
                if n > 1:
                    first, second = next(values), max(values)
                    if not second <= first:  # in most lists the first is the largest
                        first, second = _two_largest(map(logprob_of, alternatives))
                else:
                    first, second = _two_largest(values)
                # Only a token more probable than the second can change the two largest.
                if not own <= second and own == own:
                    if token == "" or "\ufffd" in token:  # several tokens may have this text
                        listed = _has_bytes(alternatives, token, bytes_of(entry))
                    else:  # most often it is the first alternative
                        listed = n > 0 and token == token_of(alternatives[0])
                        listed = listed or token in map(token_of, alternatives)
                    if not listed:
                        first, second = (first, own) if own < first else (own, first)
                if spelled is not None:
                    spelled += (token, bytes_of(entry))
            except (AttributeError, KeyError, TypeError):  # a field is null, absent or invalid
                self._take([_completed(entry)], spelled=spelled)
            else:
                add_chosen(own)
                add_top1(first)
                add_top2(second)
        self._k = max(self._k, k)


def entries_of(value: Any, name: str) -> Entries:
    """A field with a list of entries, or with `Entries`; empty where it is null or absent."""
    found = field(value, name)
    return found if isinstance(found, Entries) else Entries(list_of(value, name))


_NAMES = (("token", "logprob", "top_logprobs"), ("logprob",), ("token",), ("bytes",))
_OBJECT: Any = tuple(attrgetter(*names) for names in _NAMES)
_DICT: Any = tuple(itemgetter(*names) for names in _NAMES)


def _two_largest(values: Iterable[float]) -> tuple[float, float]:
    """The two largest of values in any order; NaN where there is none. NaN does not count."""
    first = second = nan
    for value in values:
        if value <= second:
            continue
        if value <= first:
            second = value
        elif value == value:  # the first value, or a larger one
            first, second = value, first
    return first, second


def _spelling(token: str, raw: Any) -> str:
    if not raw or isinstance(raw, int):  # bytes(n) would be n zeros
        return token
    try:
        return bytes(raw).decode("utf-8", "replace")
    except (TypeError, ValueError):
        return token


def _has_bytes(alternatives: Iterable[Any], token: str, raw: Any) -> bool:
    """Whether an alternative has the same text and the same bytes.

    For texts that several tokens share: "" and pieces of a character. Streams of the Responses
    API have no bytes: there the text decides.
    """
    found = [field(each, "bytes") for each in alternatives if field(each, "token") == token]
    return raw in found or None in found or (raw is None and bool(found))


def _completed(entry: Any) -> dict[str, Any]:
    """The entry with every field that is read, and NaN for null."""
    (own,) = numbers([field(entry, "logprob")]).tolist()
    found = {"token": text_of(entry, "token") or "", "bytes": field(entry, "bytes"), "logprob": own}
    alternatives = [_completed(each) for each in list_of(entry, "top_logprobs")]
    return found | {"top_logprobs": alternatives}
