"""A connection to PostgreSQL that reconnects, with increasing delays."""

from __future__ import annotations

import select
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from time import monotonic
from typing import Any

import psycopg

from gatekeeper.budget.lease_store import UnavailableError
from gatekeeper.errors import LogError
from gatekeeper.log.place import PostgresRun, one_line

__all__ = ["LONGEST_PAUSE", "PAUSE", "Link", "configure", "is_lost"]

PAUSE, LONGEST_PAUSE = 0.1, 5.0  # seconds, doubled each time
# A crash of the server's host is noticed in about ten seconds.
_CONNECTION: dict[str, Any] = {
    "connect_timeout": 5,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,  # milliseconds
    "client_encoding": "utf8",
}
# A process that is stopped during a transaction must not keep its locks.
_SETTINGS = {"idle_in_transaction_session_timeout": "2s", "lock_timeout": "10s"}
# Whatever the database's own defaults are: the statements are written for this isolation, and a
# gate may have nothing to write for hours.
_ALWAYS = {"default_transaction_isolation": "read committed", "idle_session_timeout": "0"}
# Errors that end without a change of the statement. Others would return at each attempt.
_PASSING = (
    "08",  # of the connection
    "25006",  # a standby that is not promoted yet
    "25P03",  # a transaction that did nothing for too long
    "40",  # of transactions at the same time
    "53",  # resources: connections, memory, disk
    "55P03",  # a lock
    "57",  # an operator: the server stops
)


class Link:
    """A connection in autocommit mode, for one thread at a time.

    After a second UnavailableError in a row there is no attempt for a while, so that a caller does
    not wait at each decision. A connection that was lost is made again at once.

    Parameters
    ----------
    place
        The run.
    what
        What the connection is for, in the message of an UnavailableError.

    Attributes
    ----------
    connects
        How often a connection was made.
    """

    def __init__(self, place: PostgresRun, what: str) -> None:
        self.place, self._what = place, what
        self.connects = 0
        self._db: psycopg.Connection[Any] | None = None
        self._pause = 0.0
        self._again = 0.0  # time of the next attempt
        self._why = ""

    @contextmanager
    def connection(self) -> Iterator[psycopg.Connection[Any]]:
        """The connection, or a new one where it was lost; a statement is a transaction.

        Raises
        ------
        UnavailableError
            Without a connection, and if it is lost.
        LogError
            For other errors of the database.
        """
        if monotonic() < self._again:
            raise UnavailableError(self._why)
        try:
            if self._db is None or is_lost(self._db):
                self.close()
                self._db = psycopg.connect(self.place.dsn, autocommit=True, **_CONNECTION)
                configure(self._db, _SETTINGS)
                self.connects += 1
            yield self._db
        except psycopg.Error as e:
            self.close()  # whatever its state: the next call has a new one
            if not _passes(e):
                text = f"{self._what} of log {self.place} cannot be used: {one_line(e)}"
                raise LogError(text) from e
            self._why = f"{self._what} of log {self.place} cannot be reached: {one_line(e)}"
            self._again = monotonic() + self._pause
            self._pause = min(max(2 * self._pause, PAUSE), LONGEST_PAUSE)
            raise UnavailableError(self._why) from e
        self._pause = 0.0

    def end_pause(self) -> None:
        """Let the next call try, also soon after an error."""
        self._again = 0.0

    def close(self) -> None:
        if self._db is not None:
            self._db.close()


def configure(db: psycopg.Connection[Any], settings: Mapping[str, str]) -> None:
    """Settings of a session for a log; those that the server's version does not have are left out.

    Parameters
    ----------
    settings
        By name, beside those that every session has.
    """
    names, values = zip(*(_ALWAYS | dict(settings)).items(), strict=True)
    db.execute(
        "SELECT set_config(name, value, false) FROM unnest(%s::text[], %s::text[])"
        " AS new (name, value) WHERE name IN (SELECT name FROM pg_settings)",
        (list(names), list(values)),
    )


def is_lost(db: psycopg.Connection[Any]) -> bool:
    """Whether the server has ended an idle connection, without a query, which would fail.

    While there is no query, a server sends little but its last message. Where it was another one,
    such as a changed setting, a new connection is as good.
    """
    if db.closed:
        return True
    poll = select.poll()
    poll.register(db.pgconn.socket, select.POLLIN)
    return bool(poll.poll(0))


def _passes(error: psycopg.Error) -> bool:
    if error.sqlstate is None:  # libpq's own, where there is no connection
        return isinstance(error, psycopg.OperationalError)
    return error.sqlstate.startswith(_PASSING)
