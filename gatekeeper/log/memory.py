"""A log in memory, for as long as the process lives."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any

from gatekeeper.log.decoding import decode
from gatekeeper.log.events import Event, Row
from gatekeeper.log.protocol import StampedEvent

__all__ = ["MemoryLog"]


class MemoryLog:
    """Keeps events as rows, so that it returns the same as a log in a file."""

    def __init__(self) -> None:
        self._settings: dict[str, Any] = {}
        self._rows: list[Row] = []
        self._at: list[float] = []  # appended to first: a reader may be in another thread
        self._first: dict[str, Row] = {}  # of each id; most outputs have only one
        self._later: dict[str, list[Row]] = {}

    def settings(self) -> dict[str, Any]:
        return dict(self._settings)

    def configure(self, settings: Mapping[str, Any]) -> None:
        self._settings = dict(settings)

    def append(self, events: Iterable[Event]) -> None:
        now = time.time()
        for event in events:
            row = event.row()
            self._at.append(now)
            self._rows.append(row)
            if self._first.setdefault(row.id, row) is not row:
                self._later.setdefault(row.id, []).append(row)

    def rows(self, id_: str | None = None) -> Iterator[Row]:
        """The events as they are stored: all, or those of one output."""
        if id_ is None:
            return iter(self._rows)
        if id_ not in self._first:
            return iter(())
        return chain([self._first[id_]], self._later.get(id_, ()))

    def events(self, id_: str | None = None) -> Iterator[Event]:
        return map(_event, self.rows(id_))

    def stamped_after(self, seq: int) -> Iterator[StampedEvent]:
        for number in range(seq, self.last()):
            yield StampedEvent(number + 1, self._at[number], _event(self._rows[number]))

    def last(self) -> int:
        return len(self._rows)

    def close(self) -> None:
        pass


def _event(row: Row) -> Event:
    return decode(row.kind, row.id, json.dumps(row.data))
