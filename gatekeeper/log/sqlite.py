"""A log in one SQLite file: events are appended, one transaction per change of the gate.

`kill -9` loses nothing that was acknowledged (WAL; a crash of the operating system may lose the
last events, but not the file). A gate that opens the file again applies its events and has its
earlier state.

The file has the outputs in clear, so only its owner may read it (mode 600, also for its companions
-wal, -shm and .lock); an existing file keeps its mode. No event has more than 64 MiB.
"""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from gatekeeper.arguments import as_path
from gatekeeper.errors import LogError, LogLockedError, LogSchemaError
from gatekeeper.limits import MAX_LINE
from gatekeeper.log.decoding import decode, decoded
from gatekeeper.log.encoding import encoded
from gatekeeper.log.events import Decided, Event, Row
from gatekeeper.log.migrations import MIGRATIONS, Migration
from gatekeeper.log.protocol import StampedEvent
from gatekeeper.log.snapshot import Snapshot, packed, unpacked
from gatekeeper.log.sqlite_file import (
    OPEN,
    connect,
    connect_to_read,
    identity,
    look,
    make_file,
    why_not,
)

if TYPE_CHECKING:
    from filelock import BaseFileLock

__all__ = ["SQLiteLog"]

_PART = 16 << 20  # bytes of a snapshot in one row, which SQLite's limit on rows allows


class SQLiteLog:
    """A log in one file, for one gate at a time; others may read it meanwhile.

    Parameters
    ----------
    path
        Path of the file, which is created if it does not exist.
    read_only
        Read committed events, without a lock. The file must exist.

    Raises
    ------
    LogLockedError
        While another gate has it open.
    LogSchemaError
        For a file of a newer gatekeeper.
    LogError
        For a file that is not a log or cannot be opened.
    """

    def __init__(self, path: str | Path, *, read_only: bool = False) -> None:
        given = as_path("log", path)
        self.path = Path(os.path.realpath(given))  # one lock, whatever link leads to the file
        self._lock: BaseFileLock | None = None
        self._n = 0  # of the last event, for a log that is written
        self._indexed = read_only  # a reader creates no index: it reads all events
        self._db = self._open(given, read_only=read_only)
        self._execute = self._db.cursor().execute  # of one cursor: `self._db` makes one per call
        self.file = identity(self.path)
        OPEN.add(self)
        try:
            self._prepare(read_only=read_only)
        except sqlite3.OperationalError as e:  # a full disk, no permission: the file may be fine
            why = why_not(e, self.path)
            self.close()
            raise LogError(f"log {str(given)!r} cannot be opened: {why}") from e
        except sqlite3.Error as e:
            self.close()
            raise LogError(f"{str(given)!r} is not a log of gatekeeper: {e}") from e
        except LogError:
            self.close()
            raise

    def _open(self, given: Path, *, read_only: bool) -> sqlite3.Connection:
        """Connect to the file; to write, lock it first, and make it where it is missing."""
        try:
            self._check_file(given, must_exist=read_only)
            if read_only:
                return connect_to_read(self.path)
            self._take_lock(given)
            make_file(self.path)
            return connect(self.path, "mode=rwc")
        except (OSError, sqlite3.Error) as e:
            why = why_not(e, self.path)
            self._unlock()
            raise LogError(f"log {str(given)!r} cannot be opened: {why}") from e

    def _check_file(self, given: Path, *, must_exist: bool) -> None:
        if not self.path.parent.is_dir():
            raise LogError(f"log {str(given)!r} cannot be opened: its folder does not exist")
        if must_exist and not self.path.exists():
            raise LogError(f"log {str(given)!r} does not exist")
        if self.path.exists() and not self.path.is_file():
            raise LogError(f"log {str(given)!r} cannot be opened: it is no regular file")

    def _take_lock(self, given: Path) -> None:
        from filelock import FileLock, Timeout  # here: it is slow to import

        lock = self.path.with_name(f"{self.path.name}.lock")
        make_file(lock)
        self._lock = FileLock(lock, thread_local=False)
        try:
            self._lock.acquire(timeout=0)
        except Timeout:
            raise LogLockedError(
                f"log {str(given)!r} is in use by another gate: close it, or give this one a file "
                "of its own; processes that share a budget share a run in PostgreSQL, with "
                "log='postgresql://...', run='eval-7' and shared=True"
            ) from None

    def _prepare(self, *, read_only: bool) -> None:
        """Bring the schema up to date, and note what the files are, to detect another in place."""
        steps = self._migrations(read_only=read_only)
        if not read_only:
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute("PRAGMA synchronous = NORMAL")
            self._migrate(steps)
            self._n = self._last()
        self._name, self._wal = str(self.path), f"{self.path}-wal"
        self._wal_file = identity(self._wal)
        self._size = look(self._name)[1]

    def _unlock(self) -> None:
        if self._lock:
            self._lock.release()

    def _migrations(self, *, read_only: bool) -> list[Migration]:
        """Those that the file lacks. It only reads: the file may be another program's."""
        tables = {row[0] for row in self._db.execute("SELECT name FROM sqlite_master")}
        if tables and "migrations" not in tables:
            instead = "give the log of a gate" if read_only else "choose a new file"
            raise LogError(f"{str(self.path)!r} is another program's database: {instead}")
        if read_only and not tables:
            raise LogError(
                f"log {str(self.path)!r} is empty: give the log of a gate that has begun; if it is "
                f"a copy, copy {self.path.name}-wal as well, which has the last events"
            )
        done = (
            {row[0] for row in self._db.execute("SELECT name FROM migrations")} if tables else set()
        )
        newer = sorted(done - {step.__name__ for step in MIGRATIONS})
        if newer:
            raise LogSchemaError(
                f"log {str(self.path)!r} was written by a newer gatekeeper (it knows "
                f"{', '.join(newer)}): read it with that version, or a later one"
            )
        return [step for step in MIGRATIONS if step.__name__ not in done]

    def _migrate(self, steps: Sequence[Migration]) -> None:
        if not steps:
            return
        with _transaction(self._db):
            self._db.execute(
                "CREATE TABLE IF NOT EXISTS migrations (name TEXT PRIMARY KEY, at REAL NOT NULL)"
            )
            for step in steps:
                step(self._db)
                self._db.execute(
                    "INSERT INTO migrations VALUES (?, ?)", (step.__name__, time.time())
                )

    def settings(self) -> dict[str, Any]:
        try:
            rows = self._db.execute("SELECT name, value FROM settings")
            settings = {name: json.loads(value) for name, value in rows}
            for name, value in settings.items():
                if not isinstance(value, dict):
                    raise ValueError(f"setting {name!r:.80} is {value!r:.80}, and no object")
            return settings
        except (sqlite3.Error, ValueError, RecursionError) as e:
            raise self._unreadable(e) from e

    def configure(self, settings: Mapping[str, Any]) -> None:
        self._write(
            "INSERT OR REPLACE INTO settings VALUES (?, ?)",
            [(name, json.dumps(value)) for name, value in settings.items()],
        )

    def append(self, events: Iterable[Event]) -> None:
        now = time.time()
        new = encoded(events, self._name)
        # With their numbers: of two gates that write one file, one has the other's number.
        rows = [(seq, now, *row) for seq, row in enumerate(new, self._n + 1)]
        self._write("INSERT INTO events (seq, at, kind, id, data) VALUES (?, ?, ?, ?, ?)", rows)
        self._n += len(rows)

    def _write(self, statement: str, rows: Sequence[tuple[Any, ...]]) -> None:
        if not rows:
            return
        try:
            if len(rows) == 1:  # a transaction by itself, and that is quicker
                self._execute(statement, rows[0])
            else:
                with _transaction(self._db):
                    self._db.executemany(statement, rows)
        except sqlite3.Error as e:
            why = why_not(e, self.path)
            if isinstance(e, sqlite3.IntegrityError):
                why = f"another gate writes to it, too (was {self.path.name}.lock removed?)"
            raise LogError(
                f"log {str(self.path)!r} cannot be written: {why}. What it holds is intact; fix "
                "the cause and open it again to continue"
            ) from e
        # A gate's file never becomes smaller, but another one may be copied over it.
        before, (file, self._size) = self._size, look(self._name)
        if self._size < before or file != self.file or look(self._wal)[0] != self._wal_file:
            raise LogError(
                f"log {str(self.path)!r} was moved, deleted or replaced while a gate wrote it, or "
                f"{self.path.name}-wal was: what is written now may not be in it. Restore it if "
                "need be, and open it again to continue"
            )

    def rows(self, id_: str | None = None) -> Iterator[Row]:
        """The events as they are stored: all, or those of one output."""
        for kind, stored_id, text in self.stored(None if id_ is None else (id_,)):
            yield Row(kind, stored_id, json.loads(text))

    def events(self, id_: str | None = None) -> Iterator[Event]:
        return decoded(self.stored(None if id_ is None else (id_,)), repr(str(self.path)))

    def events_of(self, ids: Collection[str]) -> Iterator[Event]:
        """The events of a few outputs, those of each in order."""
        return decoded(self.stored(ids), repr(str(self.path)))

    def events_after(self, seq: int) -> Iterator[Event]:
        return decoded(self.stored(after=seq), repr(str(self.path)))

    def stamped_after(self, seq: int) -> Iterator[StampedEvent]:
        query = "SELECT seq, at, kind, id, data FROM events WHERE seq > ? ORDER BY seq"
        try:
            for number, at, kind, id_, text in self._db.execute(query, (seq,)):
                yield StampedEvent(number, at, decode(kind, id_, text))
        except sqlite3.Error as e:
            raise self._unreadable(e) from e

    def last(self) -> int:
        try:
            return self._last()
        except sqlite3.Error as e:
            raise self._unreadable(e) from e

    def decided_ids(self, seq: int) -> Iterator[str]:
        query = "SELECT id FROM events WHERE seq <= ? AND kind = ? ORDER BY seq"
        try:
            for (id_,) in self._db.execute(query, (seq, Decided.kind)):
                yield id_
        except sqlite3.Error as e:
            raise self._unreadable(e) from e

    def snapshot(self, key: str) -> Snapshot | None:
        try:
            parts = [
                data for (data,) in self._db.execute("SELECT data FROM snapshot ORDER BY part")
            ]
            found = unpacked(key, b"".join(parts))
            last = self._last()
        except (sqlite3.Error, TypeError, ValueError):
            return None  # there is no such table, no bytes in it, or no state of a gate
        return None if found is None or found.seq > last else found

    def keep_snapshot(self, key: str, state: Mapping[str, Any]) -> None:
        try:
            data = packed(key, Snapshot(self._last(), dict(state)))
            parts = [(data[start : start + _PART],) for start in range(0, len(data), _PART)]
            with _transaction(self._db):
                self._db.execute(
                    "CREATE TABLE IF NOT EXISTS snapshot (part INTEGER PRIMARY KEY, data BLOB)"
                )
                self._db.execute("DELETE FROM snapshot")
                self._db.executemany("INSERT INTO snapshot (data) VALUES (?)", parts)
        except sqlite3.Error as e:
            raise LogError(f"log {str(self.path)!r} cannot be written: {e}") from e

    def _last(self) -> int:
        """The number of the last event."""
        (last,) = self._db.execute("SELECT max(seq) FROM events").fetchone()
        return last or 0

    def stored(
        self, ids: Collection[str] | None = None, *, after: int = 0
    ) -> Iterator[tuple[str, str, str]]:
        """Kind, id and JSON of all events, of those of some outputs, or of all but the first."""
        where = "seq > ?"
        values: list[str | int] = [after]
        if ids is not None:
            where, values = f"id IN ({', '.join('?' * len(ids))})", list(ids)
        query = f"SELECT kind, id, data FROM events WHERE {where} ORDER BY seq"
        try:
            if ids is not None and not self._indexed:
                self._indexed = True
                with suppress(sqlite3.OperationalError):  # a full disk: works without, but slower
                    self._db.execute("CREATE INDEX IF NOT EXISTS events_by_id ON events (id)")
            for row in self._db.execute(query, values):  # noqa: UP028  # that would close it too
                yield row
        except sqlite3.Error as e:
            raise self._unreadable(e) from e

    def _unreadable(self, error: Exception) -> LogError:
        why = str(error)
        if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_TOOBIG:
            why = f"an event in it has more than {MAX_LINE >> 20} MiB, the limit of one"
        return LogError(f"log {str(self.path)!r} cannot be read: {why}")

    def close(self) -> None:
        self._db.close()
        OPEN.discard(self)
        self._unlock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


@contextmanager
def _transaction(db: sqlite3.Connection) -> Iterator[None]:
    """BEGIN IMMEDIATE … COMMIT, or ROLLBACK where the body or the commit raises."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    finally:
        if db.in_transaction:
            db.execute("ROLLBACK")
