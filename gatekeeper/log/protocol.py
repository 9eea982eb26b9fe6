"""The protocols of logs."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

from gatekeeper.budget.leases import Leases
from gatekeeper.log.decoding import decode
from gatekeeper.log.events import Event
from gatekeeper.log.snapshot import Snapshot
from gatekeeper.types import SharedStatus

__all__ = ["FollowedLog", "JointLog", "Log", "OthersEvent", "SnapshotLog", "StampedEvent"]


class StampedEvent(NamedTuple):
    """An event, its number in the log, from 1, and when it was appended."""

    seq: int
    at: float  # seconds since the epoch
    event: Event


@runtime_checkable
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
        """Free the log's resources. It is not used afterwards."""
        ...


@runtime_checkable
class SnapshotLog(Log, Protocol):
    """A log that also keeps one snapshot, so that a resume need not apply every event.

    A snapshot is optional: a gate without one applies all events.
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
        """All events in order, except the first `seq`."""
        ...

    def decided_ids(self, seq: int) -> Iterator[str]:
        """Ids of the outputs that the first `seq` events decided on."""
        ...


class OthersEvent(NamedTuple):
    """An event that another process wrote."""

    writer: int
    event: Event

    def renamed(self) -> Event:
        """The same, of an output whose id has the writer's number."""
        kind, id_, data = self.event.row()
        return decode(kind, f"{id_} (process {self.writer})", json.dumps(data))


@runtime_checkable
class JointLog(Log, Protocol):
    """A log that several processes write. `events` has those of all."""

    leases: Leases  # of this process, on the budget of all

    def follow(self, apply: Callable[[Sequence[OthersEvent]], None]) -> None:
        """Pass on what other processes write from now on, from a thread of the log's own."""
        ...

    def status(self) -> SharedStatus:
        """State of the processes, at most about two seconds old."""
        ...

    def sync(self) -> None:
        """Return when the events appended so far are stored, except decisions not to verify. Not
        called under the gate's lock: concurrent callers wait for the same statement.

        Without a database it returns at once, and the events wait for it.

        Raises
        ------
        LogError
            If this process was taken for dead.
        """
        ...

    def flush_unless_writing(self) -> None:
        """Write waiting events, for a caller under the gate's lock; do nothing while callers
        outside the lock are writing, which will write them soon.

        Raises
        ------
        UnavailableError
            If that is not possible at the moment.
        """
        ...

    def mine(self, ids: Collection[str]) -> set[str]:
        """Those of these open outputs that no other process verifies, as far as is known."""
        ...


class FollowedLog(Protocol):
    """A log that is read while its gate writes it."""

    def settings(self) -> dict[str, Any]:
        """As of `Log`."""
        ...

    def stamped_after(self, seq: int) -> Iterator[StampedEvent]:
        """All events in order, except the first `seq`. The iteration may be stopped early."""
        ...

    def last(self) -> int:
        """The number of the last event; 0 while there is none."""
        ...
