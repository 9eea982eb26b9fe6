"""Helpers for runs that several processes share, and assertions about their logs.

`GATEKEEPER_SCALE=full`, as in `make test-scale`, makes histories as long as docs/scale.md says.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import psycopg
from ticks import ticks

from gatekeeper.budget.lease_store import UnavailableError
from gatekeeper.log import Decided, PostgresRun, Settled, open_log
from gatekeeper.log.fold import LogState
from gatekeeper.log.postgres_leases import PostgresLeases
from gatekeeper.log.run import fresh_ledger

__all__ = [
    "AWAY",
    "FULL",
    "HISTORIES",
    "PATIENCE",
    "accounts",
    "asked",
    "check_every_moment",
    "reclaim",
    "reclaim_writer",
    "until",
    "writers",
]

FULL = os.environ.get("GATEKEEPER_SCALE") == "full"
HISTORIES = 30 if FULL else 4
AWAY = 60.0 if FULL else 1.0  # seconds for which a database or a process is away
PATIENCE = 600.0 if FULL else 60.0  # seconds


def until(holds: Callable[[], object]) -> None:
    """Wait until a condition holds that other processes cause."""
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def asked(place: PostgresRun, query: str, *values: object) -> list[Any]:
    """Rows of the run's database; the query's first value is the name of the run."""
    with psycopg.connect(place.dsn) as db:
        return db.execute(query, (place.name, *values)).fetchall()


def writers(place: PostgresRun) -> dict[int, int]:
    """The live ones, by the process's id."""
    rows = asked(
        place,
        "SELECT w.name, writer FROM gatekeeper.writers w JOIN gatekeeper.runs r USING (run)"
        " WHERE r.name = %s AND live",
    )
    return {int(name.split(":")[1]): writer for name, writer in rows}


def reclaim(place: PostgresRun, pid: int) -> None:
    """Take a process for dead at once. Its last statement may still be under way."""
    store = PostgresLeases(place, {}, 1)
    writer = writers(place).get(pid)
    if writer is not None:
        reclaim_writer(store, writer)
    store.close()


def reclaim_writer(store: PostgresLeases, writer: int) -> None:
    """The same, by the writer's number. On a busy machine the server may give up waiting."""

    def is_reclaimed() -> bool:
        try:
            beat = store.beats().get(writer)
            if beat is not None:
                store.reclaim(writer, beat)
        except UnavailableError:
            return False
        return beat is None

    until(is_reclaimed)


def check_every_moment(place: PostgresRun) -> LogState:
    """No event of the log has the account above its cap; nothing is decided or settled twice."""
    with open_log(place, read_only=True) as log:
        state = LogState(fresh_ledger(log.settings(), place))
        once: Counter[tuple[str, str]] = Counter()
        for event in log.events():
            state.apply(event)
            ledger = state.ledger
            spent = ticks(ledger.spent) + ticks(ledger.held)
            assert spent <= ticks(ledger.cap), event
            total = ledger.budget.total
            if total is not None:
                warmup = ticks(ledger.warmup_spent) + ticks(ledger.warmup_held)
                assert spent + warmup <= ticks(total), event
            for group in ledger.groups.status().values():
                assert ticks(group.spent) + ticks(group.held) <= ticks(group.cap), event
            if isinstance(event, Decided | Settled):
                once[event.kind, event.id] += 1
    assert not once or max(once.values()) == 1
    return state


def accounts(place: PostgresRun) -> dict[str, int]:
    """The amount granted of each account; once no process holds any, the amount charged."""
    return dict(
        asked(
            place,
            "SELECT account, granted FROM gatekeeper.accounts JOIN gatekeeper.runs USING (run)"
            " WHERE name = %s",
        )
    )
