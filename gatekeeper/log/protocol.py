"""What a gate needs of a log. Anything of this shape will do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple, Protocol, runtime_checkable

from gatekeeper.log.events import Event
from gatekeeper.log.snapshot import Snapshot

__all__ = ["FollowedLog", "Log", "SnapshotLog", "StampedEvent"]


class StampedEvent(NamedTuple):
    """An event, its number in the log, from 1, and when it was appended."""

    seq: int
    at: float  # seconds since the epoch
    event: Event


class Log(Protocol):
    """Where a gate keeps its events. Called under the gate's lock, never concurrently."""

    def settings(self) -> dict[str, Any]:
        """What `configure` stored; empty for a new log."""
        ...

    def configure(self, settings: Mapping[str, Any]) -> None:
        """Store the settings of the gate that writes this log: JSON values by name.

        A gate may replace those of a log that has no decision yet.
        """
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


@runtime_checkable
class SnapshotLog(Log, Protocol):
    """A log that also keeps one snapshot, so that a resume need not apply every event.

    A snapshot is never needed: a gate that gets none applies all events.
    """

    def snapshot(self, key: str) -> Snapshot | None:
        """The snapshot kept under this key; None where there is none, and for a damaged one."""
        ...

    def keep_snapshot(self, key: str, state: Mapping[str, Any]) -> None:
        """Keep the state after all events so far, in place of an earlier snapshot.

        Raises
        ------
        LogError
            Where it cannot be stored. The events stay intact.
        """
        ...

    def events_after(self, seq: int) -> Iterator[Event]:
        """All events in order, but for the first `seq`."""
        ...

    def decided_ids(self, seq: int) -> Iterator[str]:
        """Ids of the outputs that the first `seq` events decided on."""
        ...


class FollowedLog(Protocol):
    """A log that is read while its gate writes it."""

    def settings(self) -> dict[str, Any]:
        """As of `Log`."""
        ...

    def stamped_after(self, seq: int) -> Iterator[StampedEvent]:
        """All events in order, but for the first `seq`. It may be left before its end."""
        ...

    def last(self) -> int:
        """The number of the last event; 0 while there is none."""
        ...
