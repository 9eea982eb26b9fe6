"""A log in memory, for as long as the process lives."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import starmap
from typing import Any

from gatekeeper.log.events import Event, Row, decode

__all__ = ["MemoryLog"]


class MemoryLog:
    """Keeps events as rows, so that it gives back what a log in a file would."""

    def __init__(self) -> None:
        self._settings: dict[str, Any] = {}
        self._rows: list[Row] = []
        self._by_id: dict[str, list[Row]] = {}

    def settings(self) -> dict[str, Any]:
        return dict(self._settings)

    def configure(self, settings: Mapping[str, Any]) -> None:
        self._settings = dict(settings)

    def append(self, events: Iterable[Event]) -> None:
        for event in events:
            row = event.row()
            self._rows.append(row)
            self._by_id.setdefault(row.id, []).append(row)

    def rows(self, id_: str | None = None) -> Iterator[Row]:
        """The events as they are stored: all, or those of one output."""
        return iter(self._rows if id_ is None else self._by_id.get(id_, []))

    def events(self, id_: str | None = None) -> Iterator[Event]:
        return starmap(decode, self.rows(id_))

    def close(self) -> None:
        pass
