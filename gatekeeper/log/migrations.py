"""The schema of a log file, as a list of migrations.

Append only. A file records the names of its migrations; missing ones are applied when a gate opens
it, and a file with an unknown one was written by a newer version.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

__all__ = ["MIGRATIONS", "Migration"]

Migration = Callable[[sqlite3.Connection], None]


def _create(db: sqlite3.Connection) -> None:
    db.execute("CREATE TABLE settings (name TEXT PRIMARY KEY, value TEXT NOT NULL)")
    db.execute(
        "CREATE TABLE events (seq INTEGER PRIMARY KEY, at REAL NOT NULL,"
        " kind TEXT NOT NULL, id TEXT NOT NULL, data TEXT NOT NULL)"
    )
    db.execute("CREATE INDEX events_by_id ON events (id)")


def _index_on_demand(db: sqlite3.Connection) -> None:
    """`SQLiteLog` creates the index at the first look-up of an output: most gates never make one,
    and the index makes every append slower.
    """
    db.execute("DROP INDEX events_by_id")


MIGRATIONS: tuple[Migration, ...] = (_create, _index_on_demand)
