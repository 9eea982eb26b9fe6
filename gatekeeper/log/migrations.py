"""The schema of a log file, as the steps that make it.

Append only. A file records the names of the steps that it has; one that has the first n is brought
up to date by the others, and one that has a step unknown here was written by a newer version.
"""

from __future__ import annotations

import sqlite3

__all__ = ["MIGRATIONS"]


def _create(db: sqlite3.Connection) -> None:
    db.execute("CREATE TABLE settings (name TEXT PRIMARY KEY, value TEXT NOT NULL)")
    db.execute(
        "CREATE TABLE events (seq INTEGER PRIMARY KEY, at REAL NOT NULL,"
        " kind TEXT NOT NULL, id TEXT NOT NULL, data TEXT NOT NULL)"
    )
    db.execute("CREATE INDEX events_by_id ON events (id)")


def _index_on_demand(db: sqlite3.Connection) -> None:
    """`SQLiteLog` makes the index when it is first asked for one output: most gates never ask, and
    keeping it makes every append slower."""
    db.execute("DROP INDEX events_by_id")


MIGRATIONS = (_create, _index_on_demand)
