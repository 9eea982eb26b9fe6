"""A connection to PostgreSQL that reconnects, with increasing delays."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Any

import psycopg

from gatekeeper.budget.lease_store import UnavailableError
from gatekeeper.errors import LogError
from gatekeeper.log.place import PostgresRun, one_line

__all__ = ["LONGEST_PAUSE", "PAUSE", "Link"]

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

    After an UnavailableError there is no attempt for a while, so that a caller does not wait at
    each decision.

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
        self._pause = PAUSE
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
            if self._db is None or self._db.closed:
                self._db = psycopg.connect(self.place.dsn, autocommit=True, **_CONNECTION)
                # A process that is stopped during a transaction must not keep its locks.
                self._db.execute("SET idle_in_transaction_session_timeout = '2s'")
                self._db.execute("SET lock_timeout = '10s'")
                self.connects += 1
            yield self._db
        except psycopg.Error as e:
            if not _passes(e):
                text = f"{self._what} of log {self.place} cannot be used: {one_line(e)}"
                raise LogError(text) from e
            self.close()
            self._why = f"{self._what} of log {self.place} cannot be reached: {one_line(e)}"
            self._again = monotonic() + self._pause
            self._pause = min(2 * self._pause, LONGEST_PAUSE)
            raise UnavailableError(self._why) from e
        self._pause = PAUSE

    def end_pause(self) -> None:
        """Let the next call try, also soon after an error."""
        self._again = 0.0

    def close(self) -> None:
        if self._db is not None:
            self._db.close()


def _passes(error: psycopg.Error) -> bool:
    if error.sqlstate is None:  # libpq's own, where there is no connection
        return isinstance(error, psycopg.OperationalError)
    return error.sqlstate.startswith(_PASSING)
