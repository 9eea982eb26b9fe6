"""The token entries of an answer as objects with the fields that are read.

Each entry has five alternatives with the bytes of their texts, of which the signals need the
log-probability alone. Parsing all of it into dicts and lists took most of the gateway's time for an
answer (benchmarks/gateway.py).
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

__all__ = ["likely_span", "read_logprobs"]

_KEY = b'"logprobs":'
_LAST = b"}]}]"  # the ends of the last alternative, their list, the last entry and the entries
_end = re.compile(rb'\}\]\}\](?:, ?"refusal": ?null)?\}').match


class Alternative(msgspec.Struct, gc=False):
    """An alternative to a token. Its bytes are left out, because they only distinguish ambiguous
    texts.
    """

    token: str
    logprob: float


class Entry(msgspec.Struct, gc=False):
    """A token of the output."""

    token: str
    logprob: float
    top_logprobs: list[Alternative]
    bytes: list[int] | None = None


class _Lists(msgspec.Struct, forbid_unknown_fields=True):
    """The `logprobs` of a chat completion; those of a text completion have other members."""

    content: list[Entry] | msgspec.UnsetType | None = msgspec.UNSET
    refusal: list[Entry] | msgspec.UnsetType | None = msgspec.UNSET


_plain = msgspec.json.Decoder().decode
_typed = msgspec.json.Decoder(_Lists | list[Entry] | int | None).decode


def read_logprobs(text: msgspec.Raw | memoryview) -> Any:
    """The value of a `logprobs`: its entries as objects, or as dicts if they are unusual.

    Parameters
    ----------
    text
        An object with the lists `content` and `refusal` in chat completions, a list in the
        Responses API; anything else is read as it is.

    Raises
    ------
    msgspec.DecodeError
        If the text is not JSON.
    """
    try:
        found = _typed(text)
    except msgspec.ValidationError:
        return _plain(text)
    if not isinstance(found, _Lists):
        return _plain(text) if _is_ambiguous(found) else found
    members = msgspec.structs.asdict(found).items()
    lists = {name: entries for name, entries in members if entries is not msgspec.UNSET}
    return _plain(text) if any(map(_is_ambiguous, lists.values())) else lists


def likely_span(body: bytes) -> tuple[int, int] | None:
    """Where the `logprobs` of a chat completion begin and end, if it has one choice and was written
    as servers usually do; None if it was not. To be checked.
    """
    key, end = body.find(_KEY), _end(body, max(body.rfind(_LAST), 0))
    if key < 0 or end is None:
        return None
    start = key + len(_KEY)
    return start + (body[start : start + 1] == b" "), end.end()


def _is_ambiguous(entries: list[Entry] | int | None) -> bool:
    """Whether a token has a text that other tokens share: none, or a piece of a character."""
    if not isinstance(entries, list):
        return False
    tokens = [entry.token for entry in entries]
    return "" in tokens or "\ufffd" in "".join(tokens)
