"""Whether a database can store a log: version, rights, clock, and time of a change."""

from __future__ import annotations

import time
from statistics import median
from typing import Any
from uuid import uuid4

import psycopg

from gatekeeper.errors import LogError
from gatekeeper.log.events import Learned
from gatekeeper.log.place import PostgresRun
from gatekeeper.log.postgres import PostgresLog

__all__ = ["check"]

TRIES = 20
APART = 1.0  # seconds between two clocks that are reported


def check(dsn: str) -> tuple[str, str]:
    """Write and read a run, as a gate does, and remove it; tables that it creates stay.

    Parameters
    ----------
    dsn
        Address of a database.

    Returns
    -------
    tuple of str
        The server's version, and a sentence on latency, clock and durability.

    Raises
    ------
    LogError
        If no log can be kept there, with the reason.
    """
    place = PostgresRun(dsn, f"doctor {uuid4()}")
    with PostgresLog(place) as log:
        seconds = []
        for _ in range(TRIES):
            start = time.perf_counter()
            log.append([Learned("doctor")])
            seconds.append(time.perf_counter() - start)
        if len(list(log.events())) != TRIES:
            raise LogError(f"log {place.address} does not give back what was written")
    with psycopg.connect(dsn, autocommit=True) as db:
        run = "(SELECT run FROM gatekeeper.runs WHERE name = %s)"
        db.execute(f"DELETE FROM gatekeeper.events WHERE run = {run}", (place.name,))
        db.execute("DELETE FROM gatekeeper.runs WHERE name = %s", (place.name,))
        backends = {_value(db, "SELECT pg_backend_pid()") for _ in range(TRIES)}
        version = str(_value(db, "SHOW server_version"))
        lax = [n for n in ("fsync", "synchronous_commit") if _value(db, f"SHOW {n}") == "off"]
        ahead, error = _clock(db)
    if len(backends) > 1:
        raise LogError(
            f"log {place.address} is behind a pooler that shares sessions between clients "
            "(transaction mode), which keeps no locks: connect directly, or in session mode"
        )
    found = f"a run was written, read and removed; {1e3 * median(seconds):.1f} ms for each change"
    if abs(ahead) > max(APART, error):
        direction = "ahead of" if ahead > 0 else "behind"
        found += f"; its clock is {abs(ahead):.0f} s {direction} this machine's"
    if lax:
        found += f"; {' and '.join(lax)} off: the end of the server's host may lose the last events"
    return version, found


def _clock(db: psycopg.Connection[Any]) -> tuple[float, float]:
    """How far the server's clock is ahead of this machine's, and how exact that is, in seconds."""
    before = time.time()
    there = float(_value(db, "SELECT extract(epoch FROM clock_timestamp())"))
    after = time.time()
    return there - (before + after) / 2, (after - before) / 2


def _value(db: psycopg.Connection[Any], query: Any) -> Any:
    row = db.execute(query).fetchone()
    assert row is not None
    return row[0]
