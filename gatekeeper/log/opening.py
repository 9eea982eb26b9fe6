"""Opens the log at a place."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from gatekeeper.log.place import PostgresRun, place_of
from gatekeeper.log.sqlite import SQLiteLog

if TYPE_CHECKING:
    from gatekeeper.log.postgres import PostgresLog

__all__ = ["log_exists", "open_log"]


def open_log(
    place: str | Path | PostgresRun, *, read_only: bool = False
) -> SQLiteLog | PostgresLog:
    """Open a log to write it, or to read it.

    Parameters
    ----------
    place
        A file, or a run in a PostgreSQL database.
    read_only
        Read committed events, without a lock. The log must exist.

    Raises
    ------
    LogError
        As `SQLiteLog` and `PostgresLog`.
    MissingDependencyError
        For PostgreSQL without the extra `postgres`.
    """
    place = place_of(place)
    if isinstance(place, Path):
        return SQLiteLog(place, read_only=read_only)
    from gatekeeper.log.postgres import PostgresLog  # needs the extra

    return PostgresLog(place, read_only=read_only)


def log_exists(place: Path | PostgresRun) -> bool:
    """Whether there is a log at this place."""
    if isinstance(place, Path):
        return place.exists()
    from gatekeeper.log.postgres import exists

    return exists(place)
