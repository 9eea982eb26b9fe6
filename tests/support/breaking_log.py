"""A log whose writes can be made to fail."""

from __future__ import annotations

from collections.abc import Iterable

from gatekeeper.errors import LogError
from gatekeeper.log import Event, MemoryLog

__all__ = ["Breaking"]


class Breaking(MemoryLog):
    """A log whose disk is full while `full` is True."""

    full = False

    def append(self, events: Iterable[Event]) -> None:
        if self.full:
            raise LogError("disk full")
        super().append(events)
