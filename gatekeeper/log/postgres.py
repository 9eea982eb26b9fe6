"""A log in PostgreSQL: the runs of many gates in one database, each run with its own events.

One statement for each change of the gate, so one transaction: `kill -9` of the gate loses nothing
that was acknowledged, and neither does a crash of the database's host, if the database's settings
(`fsync`, `synchronous_commit`) ensure that.

One gate at a time owns a run: it holds an advisory lock of the session in which it also writes. So
a gate that has lost its lock has lost the connection, and can write nothing more. A pooler that
shares sessions between clients (transaction mode) does not keep such locks: connect directly. The
number of an event is unique in its run, so that even then no event is written twice.
"""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import chain, islice
from typing import Any, LiteralString, NoReturn, Self

from gatekeeper.errors import BadInputError, LogError, LogLockedError, MissingDependencyError
from gatekeeper.log.decoding import decode, decoded
from gatekeeper.log.encoding import encoded
from gatekeeper.log.events import Decided, Event, Row
from gatekeeper.log.place import PostgresRun, one_line
from gatekeeper.log.protocol import StampedEvent
from gatekeeper.log.snapshot import Snapshot, packed, unpacked

try:
    import psycopg
    from psycopg.conninfo import conninfo_to_dict
except ImportError as e:
    raise MissingDependencyError(
        "psycopg", extra="postgres", needed_for="a log in PostgreSQL"
    ) from e

from gatekeeper.log.postgres_ids import as_text, of_text
from gatekeeper.log.postgres_link import configure, is_lost
from gatekeeper.log.postgres_merge import Merged
from gatekeeper.log.postgres_schema import AbsentError, migrate

__all__ = ["PostgresLog", "exists"]

OLDEST = 12  # version of the server
PATIENCE = 5.0  # seconds in which the server notices the end of the run's last process
OWNED = 0x6761_7465  # advisory locks of this class: of runs, by their number
PAGE = 1000  # events that are read at a time
_PART = 16 << 20  # bytes of a snapshot in one row
# After a crash of the host its lock is kept for about a minute.
_CONNECTION = {
    "connect_timeout": 10,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
}


class PostgresLog:
    """The log of one run in a database, for one gate at a time; others may read it meanwhile.

    Parameters
    ----------
    place
        The database and the run, which is created if it does not exist.
    read_only
        Read committed events, without a lock. The run must exist.
    shared
        For one of several gates that write the run (`SharedLog`): appends nothing itself.

    Raises
    ------
    LogLockedError
        While another gate has the run open, and for a run that is shared.
    LogSchemaError
        For a schema of a newer gatekeeper.
    LogError
        For a database that cannot be opened, or cannot store a log.
    BadInputError
        For an address that libpq does not understand.
    """

    def __init__(
        self, place: PostgresRun, *, read_only: bool = False, shared: bool = False
    ) -> None:
        self.place = place
        self._n = 0  # of the last event, for a log that is written
        parameters = _parameters(place)
        with self._errors("opened"):
            self._db = psycopg.connect(place.dsn, autocommit=True, **parameters)
        try:
            with self._errors("opened"):
                self._check_server()
                if read_only:
                    self._db.execute("SET default_transaction_read_only = on")
                else:
                    _keep_alive(self._db)
                migrate(self._db, str(place), read_only=read_only)
                self.run = self._find() if read_only else self._make()
                if not read_only:
                    self._own(shared=shared)
                    self._n = self._last()
                self._merged = Merged(self.run) if self._is_shared() else None
        except BaseException:
            self.close()
            raise

    def _check_server(self) -> None:
        version = self._db.info.server_version
        if version < OLDEST * 10_000:
            raise LogError(
                f"log {self.place} is in PostgreSQL {version // 10_000}: version {OLDEST} or later "
                "is needed"
            )
        encoding = self._db.info.parameter_status("server_encoding")
        if encoding != "UTF8":
            raise LogError(
                f"log {self.place}: its database has the encoding {encoding}: give one that has "
                "UTF8"
            )

    def _find(self) -> int:
        found = self._db.execute(
            "SELECT run FROM gatekeeper.runs WHERE name = %s", (self.place.name,)
        ).fetchone()
        if found is None:
            runs = self._db.execute("SELECT name FROM gatekeeper.runs ORDER BY at DESC LIMIT 10")
            names = ", ".join(name for (name,) in runs) or "none"
            raise AbsentError(
                f"log {self.place} does not exist: the database's latest runs: {names}"
            )
        return int(found[0])

    def _make(self) -> int:
        self._db.execute(
            "INSERT INTO gatekeeper.runs (name) SELECT %s"
            " WHERE NOT EXISTS (SELECT FROM gatekeeper.runs WHERE name = %s)"
            " ON CONFLICT DO NOTHING",
            (self.place.name, self.place.name),
        )
        return self._find()

    def _own(self, *, shared: bool) -> None:
        """Take the run's lock, or a part in it. The last owner may have ended a moment ago."""
        deadline = time.monotonic() + PATIENCE
        lock: LiteralString = "SELECT pg_try_advisory_lock(%s, %s)"
        if shared:
            lock = "SELECT pg_try_advisory_lock_shared(%s, %s)"
            self._db.execute(
                "UPDATE gatekeeper.runs r SET shared = true WHERE run = %s AND NOT shared"
                " AND NOT EXISTS (SELECT FROM gatekeeper.events e WHERE e.run = r.run)",
                (self.run,),
            )
        if self._is_shared() != shared:
            raise LogLockedError(
                f"log {self.place} is shared by several gates: give shared=True (on a command line "
                "--shared)"
                if not shared
                else f"log {self.place} was begun by one gate, whose account is its own: leave "
                "shared=True out, or share a new run"
            )
        while self._db.execute(lock, (OWNED, self.run)).fetchone() != (True,):
            if time.monotonic() > deadline:
                raise LogLockedError(
                    f"log {self.place} is in use by another gate ({self._owner()}): close it, or "
                    "give this one a run of its own, or begin a run with shared=True in all"
                )
            time.sleep(0.05)

    def _owner(self) -> str:
        """The holder of the run's lock, if this user may read that."""
        found = self._db.execute(
            "SELECT a.application_name, to_char(a.backend_start, 'YYYY-MM-DD HH24:MI TZ')"
            " FROM pg_locks l JOIN pg_stat_activity a USING (pid) WHERE l.locktype = 'advisory'"
            " AND l.classid = %s AND l.objid = %s AND l.granted AND l.database ="
            " (SELECT oid FROM pg_database WHERE datname = current_database())",
            (OWNED, self.run),
        ).fetchone()
        return f"{found[0]}, since {found[1]}" if found and found[0] else "of another user"

    def _is_shared(self) -> bool:
        query = "SELECT shared FROM gatekeeper.runs WHERE run = %s"
        return self._db.execute(query, (self.run,)).fetchone() == (True,)

    @property
    def lost(self) -> bool:
        """Whether the connection was lost, so that the log can be read no more."""
        return is_lost(self._db)

    def settings(self) -> dict[str, Any]:
        with self._errors("read"):
            query = "SELECT settings FROM gatekeeper.runs WHERE run = %s"
            found = self._db.execute(query, (self.run,)).fetchone()
        assert found is not None
        return dict(found[0])

    def configure(self, settings: Mapping[str, Any]) -> None:
        statement: LiteralString = "UPDATE gatekeeper.runs SET settings = %s WHERE run = %s"
        if self._merged is not None:  # the first process stores them
            statement += " AND settings::text = '{}'"
        with self._errors("written"):
            self._db.execute(statement, (json.dumps(dict(settings)), self.run))

    def append(self, events: Iterable[Event]) -> None:
        rows = encoded(events, self.place)
        if not rows:
            return
        kinds, ids, data = zip(*rows, strict=True)
        with self._errors("written"):
            self._db.execute(
                "INSERT INTO gatekeeper.events (run, n, kind, id, data)"
                " SELECT %s, %s + row, kind, id, data::json"
                " FROM unnest(%b::text[], %b::text[], %b::text[])"  # binary: nothing to escape
                " WITH ORDINALITY AS new (kind, id, data, row)",
                (self.run, self._n, list(kinds), list(map(as_text, ids)), list(data)),
            )
        self._n += len(rows)

    def rows(self, id_: str | None = None) -> Iterator[Row]:
        """The events as they are stored: all, or those of one output."""
        for kind, stored_id, text in self.stored(id_):
            yield Row(kind, stored_id, json.loads(text))

    def events(self, id_: str | None = None) -> Iterator[Event]:
        return decoded(self.stored(id_), self.place)

    def events_of(self, ids: Collection[str]) -> Iterator[Event]:
        """The events of a few outputs, those of each in order."""
        return chain.from_iterable(map(self.events, ids))

    def events_after(self, seq: int) -> Iterator[Event]:
        return decoded(self.stored(after=seq), self.place)

    def stamped_after(self, seq: int) -> Iterator[StampedEvent]:
        query: LiteralString = (
            "SELECT n, kind, id, data::text, extract(epoch FROM at) FROM gatekeeper.events"
            " WHERE run = %s AND writer = 0 AND n > %s ORDER BY n LIMIT %s"
        )
        if self._merged is not None:
            with self._errors("read"):
                for i, row in enumerate(self._merged.after(self._db, seq), seq + 1):
                    yield StampedEvent(i, row.at, decode(row.kind, row.id, row.text))
            return
        for n, kind, id_, text, at in self._pages(query, seq, ()):
            yield StampedEvent(n, float(at), decode(kind, of_text(id_), text))

    def last(self) -> int:
        with self._errors("read"):
            return self._last()

    def decided_ids(self, seq: int) -> Iterator[str]:
        query: LiteralString = (
            "SELECT n, id FROM gatekeeper.events WHERE run = %s AND writer = 0 AND n > %s"
            " AND n <= %s AND kind = %s ORDER BY n LIMIT %s"
        )
        for _, id_ in self._pages(query, 0, (seq, Decided.kind)):
            yield of_text(id_)

    def stored(self, id_: str | None = None, *, after: int = 0) -> Iterator[tuple[str, str, str]]:
        if self._merged is not None:
            with self._errors("read"):
                merged = Merged(self.run)
                found = merged.new(self._db) if id_ is None else merged.of_id(self._db, id_)
                for row in islice(found, after, None):
                    yield row.kind, row.id, row.text
            return
        of_id: LiteralString = "" if id_ is None else " AND id = %s"
        query = (
            "SELECT n, kind, id, data::text FROM gatekeeper.events"
            " WHERE run = %s AND writer = 0 AND n > %s" + of_id + " ORDER BY n LIMIT %s"
        )
        values = () if id_ is None else (as_text(id_),)
        for _, kind, stored_id, text in self._pages(query, after, values):
            yield kind, of_text(stored_id), text

    def _pages(
        self, query: LiteralString, after: int, values: tuple[Any, ...]
    ) -> Iterator[tuple[Any, ...]]:
        """The rows of a query by number; a part at a time, as a log may be larger than memory."""
        while True:
            with self._errors("read"):
                page = self._db.execute(query, (self.run, after, *values, PAGE)).fetchall()
            yield from page
            if len(page) < PAGE:
                return
            after = page[-1][0]

    def snapshot(self, key: str) -> Snapshot | None:
        query = "SELECT data FROM gatekeeper.snapshots WHERE run = %s ORDER BY part"
        try:
            parts = self._db.execute(query, (self.run,)).fetchall()
            found = unpacked(key, b"".join(data for (data,) in parts))
            last = self._last()
        except (psycopg.Error, TypeError, ValueError):
            return None  # no state of a gate
        return None if found is None or found.seq > last else found

    def keep_snapshot(self, key: str, state: Mapping[str, Any]) -> None:
        data = packed(key, Snapshot(self._n, dict(state)))
        with self._errors("written"), self._db.transaction():
            self._db.execute("DELETE FROM gatekeeper.snapshots WHERE run = %s", (self.run,))
            # Not by `executemany`, which fails an assertion where the connection is lost in it.
            for part, start in enumerate(range(0, len(data), _PART)):
                self._db.execute(
                    "INSERT INTO gatekeeper.snapshots VALUES (%s, %s, %s)",
                    (self.run, part, data[start : start + _PART]),
                )

    def _last(self) -> int:
        """The number of the last event; of a run that is shared, how many there are."""
        if self._is_shared():
            return sum(Merged(self.run).last(self._db).values())
        query = "SELECT max(n) FROM gatekeeper.events WHERE run = %s AND writer = 0"
        found = self._db.execute(query, (self.run,)).fetchone()
        return (found and found[0]) or 0

    def close(self) -> None:
        self._db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    @contextmanager
    def _errors(self, done: str) -> Iterator[None]:
        """Turns errors of the database into a LogError."""
        try:
            yield
        except (psycopg.Error, ValueError, RecursionError) as e:
            self._raise(done, e)

    def _raise(self, done: str, error: Exception) -> NoReturn:
        text = f"log {self.place} cannot be {done}: {one_line(error)}"
        if done == "written":
            text += ". What it holds is intact; fix the cause and open it again to continue"
        elif isinstance(error, psycopg.errors.InsufficientPrivilege):
            text += ". Its user needs the right to create a schema in the database, or to use one"
        raise LogError(text) from error


def _parameters(place: PostgresRun) -> dict[str, Any]:
    """The parameters of a connection, beside those of the address."""
    try:
        given = conninfo_to_dict(place.dsn)
    except psycopg.Error:  # libpq's message may quote a part of the password
        raise BadInputError(
            f"log {place}: its address has an option that libpq does not know, or a % that "
            "begins no percent-encoded character"
        ) from None
    name = f"gatekeeper {socket.gethostname()}:{os.getpid()}"
    own = {"application_name": name} | _CONNECTION
    more = {key: value for key, value in own.items() if key not in given}
    return more | {"client_encoding": "utf8"}


def _keep_alive(db: psycopg.Connection[Any]) -> None:
    """Let the server, too, notice that the other side is gone."""
    names = ("idle", "interval", "count")
    configure(
        db, {f"tcp_keepalives_{name}": str(_CONNECTION[f"keepalives_{name}"]) for name in names}
    )


def exists(place: PostgresRun) -> bool:
    """Whether the database has a run of this name. Raises LogError as `PostgresLog`."""
    try:
        PostgresLog(place, read_only=True).close()
    except AbsentError:
        return False
    return True
