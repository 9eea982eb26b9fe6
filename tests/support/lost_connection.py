"""A connection to PostgreSQL that is lost at a chosen statement, BEGIN and COMMIT included."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg

__all__ = ["Loss", "lost_at"]


class Loss:
    """Counts the statements of this process; `happened` is whether one was lost."""

    def __init__(self) -> None:
        self.statements, self.happened = 0, False


@contextmanager
def lost_at(statement: int, *, answered: bool) -> Iterator[Loss]:
    """Lose the connection at this statement from now on, from 1; 0: at none.

    Parameters
    ----------
    answered
        The server executes the statement, and its answer is lost; otherwise it never gets it.
    """
    loss, wait = Loss(), psycopg.Connection.wait

    def losing(db: psycopg.Connection[Any], sent: Any, *more: Any, **named: Any) -> Any:
        loss.statements += 1
        if loss.statements != statement:
            return wait(db, sent, *more, **named)
        loss.happened = True
        if answered:
            wait(db, sent, *more, **named)
        else:
            sent.close()
        db.pgconn.finish()
        raise psycopg.OperationalError("the connection was lost")

    psycopg.Connection.wait = losing  # type: ignore[method-assign, assignment]
    try:
        yield loss
    finally:
        psycopg.Connection.wait = wait  # type: ignore[method-assign]
