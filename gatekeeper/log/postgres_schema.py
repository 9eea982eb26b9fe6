"""The schema of a PostgreSQL log, as a list of migrations.

Append only, as those of a file: see `gatekeeper.log.migrations`.
"""

from __future__ import annotations

from typing import Any

from psycopg import Connection

from gatekeeper.errors import LogError, LogSchemaError

__all__ = ["MIGRATIONS", "AbsentError", "migrate"]

LOCK = 0x6761_7465_6B65_6570  # advisory: one process at a time makes the tables


class AbsentError(LogError):
    """There is no such run; a LogError for callers."""


def _create(db: Connection[Any]) -> None:
    db.execute(
        "CREATE TABLE gatekeeper.runs (run integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,"
        " name text NOT NULL UNIQUE, settings json NOT NULL DEFAULT '{}',"
        " at timestamptz NOT NULL DEFAULT clock_timestamp())"
    )
    db.execute(
        "CREATE TABLE gatekeeper.events (run integer NOT NULL REFERENCES gatekeeper.runs,"
        " n bigint NOT NULL, at timestamptz NOT NULL DEFAULT clock_timestamp(),"
        " kind text NOT NULL, id text NOT NULL, data json NOT NULL, PRIMARY KEY (run, n))"
    )
    db.execute("CREATE INDEX events_by_id ON gatekeeper.events (run, id, n)")
    db.execute(
        "CREATE TABLE gatekeeper.snapshots (run integer NOT NULL REFERENCES gatekeeper.runs,"
        " part integer NOT NULL, data bytea NOT NULL, PRIMARY KEY (run, part))"
    )


def _share(db: Connection[Any]) -> None:
    """The constraints enforce the rules of `gatekeeper.budget.leases` again."""
    db.execute(
        "CREATE TABLE gatekeeper.writers (run integer NOT NULL REFERENCES gatekeeper.runs,"
        " writer integer NOT NULL, epoch integer NOT NULL DEFAULT 1, live boolean NOT NULL"
        " DEFAULT true, name text NOT NULL, beat bigint NOT NULL DEFAULT 0,"
        " PRIMARY KEY (run, writer))"
    )
    db.execute(
        "CREATE TABLE gatekeeper.accounts (run integer NOT NULL REFERENCES gatekeeper.runs,"
        " account text NOT NULL, cap bigint NOT NULL, granted bigint NOT NULL DEFAULT 0,"
        " PRIMARY KEY (run, account), CONSTRAINT no_overshoot CHECK (granted <= cap))"
    )
    db.execute(
        "CREATE TABLE gatekeeper.leases (run integer NOT NULL, writer integer NOT NULL,"
        " account text NOT NULL, granted bigint NOT NULL DEFAULT 0,"
        " bound bigint NOT NULL DEFAULT 0, PRIMARY KEY (run, writer, account),"
        " FOREIGN KEY (run, writer) REFERENCES gatekeeper.writers,"
        " FOREIGN KEY (run, account) REFERENCES gatekeeper.accounts,"
        " CONSTRAINT within_the_lease CHECK (bound <= granted))"
    )


def _many_writers(db: Connection[Any]) -> None:
    """An event's number is its writer's; writer 0 is the one gate of a run that is not shared."""
    db.execute("ALTER TABLE gatekeeper.runs ADD COLUMN shared boolean NOT NULL DEFAULT false")
    db.execute("ALTER TABLE gatekeeper.writers ADD COLUMN heir integer")  # of its open outputs
    db.execute("ALTER TABLE gatekeeper.events ADD COLUMN writer integer NOT NULL DEFAULT 0")
    db.execute("ALTER TABLE gatekeeper.events DROP CONSTRAINT events_pkey")
    db.execute("ALTER TABLE gatekeeper.events ADD PRIMARY KEY (run, writer, n)")


def _divide(db: Connection[Any]) -> None:
    """Which process does which block of a run's tasks."""
    db.execute(
        "CREATE TABLE gatekeeper.blocks (run integer NOT NULL REFERENCES gatekeeper.runs,"
        " block integer NOT NULL, writer integer, done boolean NOT NULL DEFAULT false,"
        " PRIMARY KEY (run, block), FOREIGN KEY (run, writer) REFERENCES gatekeeper.writers)"
    )


def _put_tasks(db: Connection[Any]) -> None:
    """Tasks that callers sent to one of several gateways."""
    db.execute(
        "CREATE TABLE gatekeeper.tasks (run integer NOT NULL REFERENCES gatekeeper.runs,"
        " id text NOT NULL, task json NOT NULL, PRIMARY KEY (run, id))"
    )


MIGRATIONS = (_create, _share, _many_writers, _divide, _put_tasks)


def migrate(db: Connection[Any], log: str, *, read_only: bool) -> None:
    """Apply missing migrations; a reader only checks.

    Parameters
    ----------
    db
        In autocommit mode.
    log
        Its name, for messages.

    Raises
    ------
    LogSchemaError
        For a schema of a newer gatekeeper.
    LogError
        For a schema of another program, and for a reader without a schema.
    """
    done = _steps(db, log)
    if read_only:
        if not done:
            raise AbsentError(f"log {log} does not exist: its database has no runs of gatekeeper")
        return
    if len(done) == len(MIGRATIONS):
        return
    with db.transaction():
        db.execute("SELECT pg_advisory_xact_lock(%s)", (LOCK,))
        done = _steps(db, log)  # another process may have been quicker
        if not done:
            db.execute("CREATE SCHEMA IF NOT EXISTS gatekeeper")
            db.execute(
                "CREATE TABLE gatekeeper.migrations (name text PRIMARY KEY,"
                " at timestamptz NOT NULL DEFAULT clock_timestamp())"
            )
        for step in MIGRATIONS:
            if step.__name__ not in done:
                step(db)
                db.execute("INSERT INTO gatekeeper.migrations VALUES (%s)", (step.__name__,))


def _steps(db: Connection[Any], log: str) -> set[str]:
    """Names of the steps that the database has."""
    found = db.execute(
        "SELECT c.relname FROM pg_class c JOIN pg_namespace s ON s.oid = c.relnamespace"
        " WHERE s.nspname = 'gatekeeper' AND c.relkind = 'r'"
    )
    tables = {name for (name,) in found}
    if tables and "migrations" not in tables:
        raise LogError(
            f"log {log}: the schema gatekeeper of its database is another program's: give another "
            "database"
        )
    if not tables:
        return set()
    done = {name for (name,) in db.execute("SELECT name FROM gatekeeper.migrations")}
    newer = sorted(done - {step.__name__ for step in MIGRATIONS})
    if newer:
        raise LogSchemaError(
            f"log {log} was written by a newer gatekeeper (it knows {', '.join(newer)}): read it "
            "with that version, or a later one"
        )
    return done
