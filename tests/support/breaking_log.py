"""A log that fails from some moment on."""

from __future__ import annotations

from collections.abc import Iterable

from gatekeeper.errors import LogError
from gatekeeper.log import Event, MemoryLog

__all__ = ["Breaking"]


class Breaking(MemoryLog):
    """A disk that is full as long as `full` says so."""

    full = False

    def append(self, events: Iterable[Event]) -> None:
        if self.full:
            raise LogError("disk full")
        super().append(events)
