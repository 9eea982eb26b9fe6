"""The events of a run with many writers, in one order.

Each writer numbers its own events without gaps. A reading is a consistent snapshot over all
writers, so an event that depends on another writer's comes with it. Events are ordered by time,
those of one writer by number.

Two processes may decide on outputs with one id before either has read the other's event. Both are
kept: the later one is `ID (process 2)`, by its writer.
"""

from __future__ import annotations

import heapq
import re
from array import array
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, LiteralString, NamedTuple

from psycopg import Connection

from gatekeeper.log.events import Decided
from gatekeeper.log.postgres_ids import as_text, of_text

__all__ = ["Merged", "SharedRow"]

PAGE = 1000  # events of a writer that are read at a time
RENAMED = re.compile(r"(?P<id>.*) \(process (?P<writer>\d+)\)", re.DOTALL)
_BITS = 40  # of a number, in a place: a writer and a number
_SELECT: LiteralString = (
    "SELECT extract(epoch FROM at)::float8, writer, n, kind, id, data::text FROM gatekeeper.events"
)


class SharedRow(NamedTuple):
    """An event as it is stored, with its writer and when it was appended."""

    at: float  # seconds since the epoch
    writer: int
    n: int
    kind: str
    id: str
    text: str  # its data, as JSON


class Merged:
    """The events of a run: those read so far, and new ones.

    Parameters
    ----------
    run
        Its number.
    without
        A writer whose events are left out; None: none.

    Attributes
    ----------
    latest
        When the latest event was appended that has been read, in seconds since the epoch.
    """

    def __init__(self, run: int, *, without: int | None = None) -> None:
        self._run, self._without, self.latest = run, without, 0.0
        self._read: dict[int, int] = {}  # number of the last event that was read, by writer
        self._places = array("q")  # of all events that were read, in order
        self._owners: dict[str, int] = {}  # writer of the first decision on an output
        self._twice: set[tuple[str, int]] = set()  # writers of later ones

    def __len__(self) -> int:
        return len(self._places)

    def after(self, db: Connection[Any], count: int) -> Iterator[SharedRow]:
        """All events but the first `count`; those that were read before, in the same order."""
        for place in self._places[count:]:
            yield self._stored(db, place)
        yield from self.new(db)

    def new(self, db: Connection[Any]) -> Iterator[SharedRow]:
        """The events that have not been read. The iteration may be stopped early."""
        return map(self._take, self._unread(db))

    def pieces(self, db: Connection[Any], most: int) -> Iterator[list[SharedRow]]:
        """The same, as lists. If the connection is lost, an event that was in no list is not read
        yet.
        """
        unread = self._unread(db)
        while piece := list(islice(unread, most)):
            yield list(map(self._take, piece))

    def _unread(self, db: Connection[Any]) -> Iterator[SharedRow]:
        streams = [
            self._of_writer(db, writer, until)
            for writer, until in self.last(db).items()
            if writer != self._without
        ]
        return heapq.merge(*streams)  # rows order by their first fields: time, writer, number

    def _take(self, row: SharedRow) -> SharedRow:
        at, writer, n, kind, id_, _ = row
        self._read[writer], self.latest = n, max(self.latest, at)
        self._places.append(writer << _BITS | n)
        if kind == Decided.kind and self._owners.setdefault(id_, writer) != writer:
            self._twice.add((id_, writer))
        return self._named(row)

    def last(self, db: Connection[Any]) -> Mapping[int, int]:
        """The number of each writer's last event."""
        rows = db.execute(
            "SELECT writer, (SELECT max(n) FROM gatekeeper.events e WHERE e.run = w.run"
            " AND e.writer = w.writer) FROM gatekeeper.writers w WHERE run = %s",
            (self._run,),
        )
        return {writer: n for writer, n in rows.fetchall() if n is not None}

    def behind(self, db: Connection[Any]) -> dict[int, int]:
        """How many events of each writer have not been read."""
        return {
            writer: n - self._read.get(writer, 0)
            for writer, n in self.last(db).items()
            if writer != self._without
        }

    def of_id(self, db: Connection[Any], id_: str) -> list[SharedRow]:
        """The events of one output, in order."""
        found = self._of_text(db, id_)
        deciders = [row.writer for row in found if row.kind == Decided.kind]
        if not deciders and (renamed := RENAMED.fullmatch(id_)):
            writer, same = int(renamed["writer"]), self._of_text(db, renamed["id"])
            # the others store the new id
            found += [row._replace(id=id_) for row in same if row.writer == writer]
            return sorted(found, key=lambda row: (row.at, row.writer, row.n))
        return [row for row in found if row.writer not in deciders[1:]]

    def _of_text(self, db: Connection[Any], id_: str) -> list[SharedRow]:
        rows = db.execute(
            _SELECT + " WHERE run = %s AND id = %s ORDER BY at, writer, n",
            (self._run, as_text(id_)),
        )
        return _rows(rows.fetchall())

    def _of_writer(self, db: Connection[Any], writer: int, until: int) -> Iterator[SharedRow]:
        after = self._read.get(writer, 0)
        while after < until:
            page = db.execute(
                _SELECT
                + " WHERE run = %s AND writer = %s AND n > %s AND n <= %s ORDER BY n LIMIT %s",
                (self._run, writer, after, until, PAGE),
            ).fetchall()
            yield from _rows(page)
            after = page[-1][2] if page else until

    def _stored(self, db: Connection[Any], place: int) -> SharedRow:
        rows = db.execute(
            _SELECT + " WHERE run = %s AND writer = %s AND n = %s",
            (self._run, place >> _BITS, place & (1 << _BITS) - 1),
        )
        (row,) = _rows(rows.fetchall())
        return self._named(row)

    def _named(self, row: SharedRow) -> SharedRow:
        if self._twice and (row.id, row.writer) in self._twice:
            return row._replace(id=f"{row.id} (process {row.writer})")
        return row


def _rows(stored: Iterable[tuple[Any, ...]]) -> list[SharedRow]:
    return [
        SharedRow(at, writer, n, kind, of_text(id_), text)
        for at, writer, n, kind, id_, text in stored
    ]
