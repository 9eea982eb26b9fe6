"""What a gate needs of a log. Anything of this shape will do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Protocol

from gatekeeper.log.events import Event

__all__ = ["Log"]


class Log(Protocol):
    """Where a gate keeps its events. Called under the gate's lock, never concurrently."""

    def settings(self) -> dict[str, Any]:
        """What `configure` stored; empty for a new log."""
        ...

    def configure(self, settings: Mapping[str, Any]) -> None:
        """Store the settings of the gate that writes this log: JSON values by name."""
        ...

    def append(self, events: Iterable[Event]) -> None:
        """Store all of the events, or none.

        Raises
        ------
        LogError
            Where they cannot be stored. What the log holds stays intact.
        """
        ...

    def events(self, id_: str | None = None) -> Iterator[Event]:
        """All events in order, or those of one output."""
        ...

    def close(self) -> None:
        """Free what the log holds. It is not used afterwards."""
        ...
