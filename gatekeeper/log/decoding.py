"""Events from the texts that a log stores."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from math import isfinite
from typing import Any, get_args

import msgspec

from gatekeeper.errors import BadInputError, LogError
from gatekeeper.log.events import Event

__all__ = ["EventError", "Naming", "decode", "decoded", "event_of", "parsed"]

_CLASSES: Mapping[str, type[Event]] = {event.kind: event for event in get_args(Event)}
_DECODERS = {kind: msgspec.json.Decoder(event.stored) for kind, event in _CLASSES.items()}


def _finite(text: str) -> float:
    value = float(text)
    if not isfinite(value):
        raise ValueError(f"{text:.80} is no number that a log has")
    return value


# Of bytes, too, which an edited file may have. A log has NaN as null and infinities as texts.
_from_json = partial(json.loads, parse_constant=_finite, parse_float=_finite)


class EventError(LogError):
    """One event of a log cannot be read, or does not follow from those before it. The message does
    not name the log.
    """


def decode(kind: str, id_: str, text: str) -> Event:
    """The event that was stored as a row with this JSON.

    Raises
    ------
    EventError
        As `parsed` and `event_of`.
    """
    return event_of(kind, id_, parsed(kind, id_, text))


def event_of(kind: str, id_: str, data: Any) -> Event:
    """The event of a row with this data, which `parsed` returned.

    Raises
    ------
    EventError
        For an outcome that no verifier may give.
    """
    try:
        return _CLASSES[kind].of(id_, data)
    except BadInputError as e:
        raise EventError(f"event {kind!r} of id={id_!r:.80} has no valid data: {e}") from e


def parsed(kind: str, id_: str, text: str) -> Any:
    """The data of a row with this JSON, of the type `stored` of its event.

    msgspec checks the types while it parses, in a fifth of the time of `json`
    (benchmarks/big_log.py). `json` parses what it refuses: half surrogate pairs, which are valid,
    and invalid data, of which the message shows the value.

    Raises
    ------
    EventError
        For a row that no version of the package has written, and for a value of a newer one.
    """
    if not isinstance(id_, str):
        raise EventError(f"event {kind!r:.80} of id={id_!r:.80}: the id is no text")
    decoder = _DECODERS.get(kind)
    if decoder is None:
        raise EventError(f"event {kind!r:.80} is unknown: known are {', '.join(_CLASSES)}")
    try:
        return decoder.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return _parsed_by_json(kind, id_, text, decoder.type)


def decoded(rows: Iterable[tuple[str, str, str]], log: object) -> Iterator[Event]:
    """The events of rows. `log` is its name, for the message of a LogError."""
    with Naming(log):
        for kind, id_, text in rows:
            yield decode(kind, id_, text)


class Naming:
    """Names the log in the message of an EventError, which becomes a LogError.

    A class, because `contextlib.contextmanager` leaves a cycle of references, by which an error
    keeps the log open in Python 3.13.
    """

    def __init__(self, log: object) -> None:
        self._log = log

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, EventError):
            raise LogError(f"log {self._log} cannot be read: {error}") from error


def _parsed_by_json(kind: str, id_: str, text: str, stored: type) -> Any:
    value = None
    try:
        value = _from_json(text)
        return msgspec.convert(value, stored)
    except (ValueError, RecursionError) as e:
        why = str(e)
        if isinstance(e, msgspec.ValidationError):
            why += f" (it is {_value_at(value, why)!r:.80})"
        raise EventError(f"event {kind!r} of id={id_!r:.80} has no valid data: {why}") from e


def _value_at(value: Any, message: str) -> Any:
    """The value that a message of msgspec is about: it ends with its path."""
    for name in re.findall(r"\w+", message.partition(" - at `$")[2]):
        if isinstance(value, dict) and name in value:
            value = value[name]
    return value
