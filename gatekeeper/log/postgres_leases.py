"""The leases of a run's budget in PostgreSQL: a `LeaseStore`, one transaction for each method.

Locks are taken in one order: the process's own row, the accounts by name, the leases. The row of an
account is locked only where a lease changes, so that processes write what they use without waiting
for each other.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import psycopg

from gatekeeper.budget import leases
from gatekeeper.budget.lease_store import FENCED, Claim, FencedError, Grant, Member
from gatekeeper.budget.leases import bound_of, exchanged
from gatekeeper.log.place import PostgresRun
from gatekeeper.log.postgres_link import Link

__all__ = ["PostgresLeases"]

_ADD_ACCOUNT = """
INSERT INTO gatekeeper.accounts (run, account, cap) VALUES (%s, %s, %s) ON CONFLICT DO NOTHING
"""
# The lock of the process's own row comes first: `me` waits for a reclaim, and then has no row. The
# beat refuses a statement that comes late, from a connection that was lost: its bound is too low.
_RAISE_BOUNDS = """
WITH place AS (SELECT %s::text[] AS accounts, %s::bigint[] AS used, %s::bigint[] AS need,
               %s::integer AS run, %s::integer AS writer, %s::integer AS epoch,
               %s::bigint AS beat, %s::bigint AS ahead),
new AS (SELECT run, writer, ahead, n.* FROM place,
        unnest(accounts, used, need) AS n (account, used, need)),
me AS (UPDATE gatekeeper.writers w SET beat = w.beat + 1 FROM place
       WHERE w.run = place.run AND w.writer = place.writer
       AND w.epoch = place.epoch AND w.beat = place.beat
       AND (SELECT bool_and(l.granted - new.used >= new.need)
            FROM new JOIN gatekeeper.leases l USING (run, writer, account))
       RETURNING w.writer)
UPDATE gatekeeper.leases l SET bound = least(granted, new.used + greatest(new.need, new.ahead))
FROM new JOIN me USING (writer)
WHERE l.run = new.run AND l.writer = new.writer AND l.account = new.account
RETURNING l.account, l.granted, l.bound
"""


class PostgresLeases:
    """A `LeaseStore` that reconnects by itself; an unreachable database is an UnavailableError.

    Parameters
    ----------
    place
        The run, whose log exists.
    caps
        Caps of the accounts, by name, in ticks. The first process of a run stores them.
    price
        Price of one reservation, in ticks, above 0.
    """

    def __init__(self, place: PostgresRun, caps: Mapping[str, int], price: int) -> None:
        self.place, self._caps, self._price = place, dict(caps), price
        self._link = Link(place, "budget")
        self._beat: int | None = None  # of the process, as this connection wrote it
        self._connects = 0  # of the link, when that was written
        try:
            self._run = self._found()
        except BaseException:
            self._link.close()
            raise

    def _found(self) -> int:
        """The run's number; its accounts are created if they do not exist."""
        with self._transaction() as db:
            query = "SELECT run FROM gatekeeper.runs WHERE name = %s"
            found = db.execute(query, (self.place.name,)).fetchone()
            assert found is not None
            for account, cap in self._caps.items():
                db.execute(_ADD_ACCOUNT, (*found, account, cap))
        return int(found[0])

    def join(self) -> Member:
        name = f"{socket.gethostname()}:{os.getpid()}"
        with self._transaction() as db:
            db.execute("SELECT FROM gatekeeper.runs WHERE run = %s FOR NO KEY UPDATE", (self._run,))
            found = db.execute(
                "INSERT INTO gatekeeper.writers (run, writer, name)"
                " SELECT %s, count(*) + 1, %s FROM gatekeeper.writers WHERE run = %s"
                " RETURNING writer, epoch",
                (self._run, name, self._run),
            ).fetchone()
            assert found is not None
            member = Member(*found)
            db.execute(
                "INSERT INTO gatekeeper.leases (run, writer, account)"
                " SELECT run, %s, account FROM gatekeeper.accounts WHERE run = %s",
                (member.writer, self._run),
            )
        return member

    def open(self, member: Member, caps: Mapping[str, int]) -> None:
        with self._transaction() as db:
            self._check(db, member)
            for account, cap in sorted(caps.items()):
                db.execute(_ADD_ACCOUNT, (self._run, account, cap))
                db.execute(
                    "INSERT INTO gatekeeper.leases (run, writer, account) VALUES (%s, %s, %s)"
                    " ON CONFLICT DO NOTHING",
                    (self._run, member.writer, account),
                )

    def exchange(
        self, member: Member, claims: Mapping[str, Claim], *, trim: bool = False
    ) -> dict[str, Grant]:
        if not trim and (grants := self._raise_bounds(member, claims)):
            return grants
        with self._transaction() as db:
            self._check(db, member)
            before = self._leases(db, member.writer)
            after = {name: before[name].granted for name in claims}
            short = any(before[n].granted - claim.used < claim.need for n, claim in claims.items())
            if short or trim:
                free = self._lock_free(db)
                live = self._live(db)
                found = {
                    name: exchanged(after[name], free[name], claim, live, self._price, trim=trim)
                    for name, claim in claims.items()
                }
                if all(found[n] - claim.used >= claim.need for n, claim in claims.items()):
                    after = found
                else:
                    claims = {name: Claim(claim.used) for name, claim in claims.items()}
            grants = {
                name: Grant(after[name], bound_of(after[name], claim, self._price))
                for name, claim in claims.items()
            }
            self._set(db, member.writer, before, grants)
        return grants

    def _raise_bounds(self, member: Member, claims: Mapping[str, Claim]) -> dict[str, Grant]:
        """Write the used amounts, in one round trip; the result is empty, and nothing is written,
        if a lease has to change, the process was fenced, or the connection is new.
        """
        used = [claim.used for claim in claims.values()]
        need = [claim.need for claim in claims.values()]
        ahead = leases.AHEAD * self._price
        with self._link.connection() as db:
            if self._beat is None or self._connects != self._link.connects:
                return {}
            rows = db.execute(
                _RAISE_BOUNDS, (list(claims), used, need, self._run, *member, self._beat, ahead)
            ).fetchall()
            self._beat += bool(rows)
        return {account: Grant(granted, bound) for account, granted, bound in rows}

    def leave(self, member: Member, used: Mapping[str, int]) -> None:
        with self._transaction() as db:
            self._check(db, member)
            self._end(
                db, member.writer, {name: Grant(ticks, ticks) for name, ticks in used.items()}
            )

    def beats(self) -> dict[int, int]:
        query = "SELECT writer, beat FROM gatekeeper.writers WHERE run = %s AND live"
        with self._transaction() as db:
            return dict(db.execute(query, (self._run,)).fetchall())

    def free(self) -> dict[str, int]:
        query = "SELECT account, cap - granted FROM gatekeeper.accounts WHERE run = %s"
        with self._link.connection() as db:
            return dict(db.execute(query, (self._run,)).fetchall())

    def reclaim(self, writer: int, beat: int) -> None:
        with self._transaction() as db:
            found = db.execute(
                "SELECT live, beat FROM gatekeeper.writers WHERE run = %s AND writer = %s"
                " FOR NO KEY UPDATE",
                (self._run, writer),
            ).fetchone()
            if found == (True, beat):
                charged = {
                    name: Grant(lease.bound, lease.bound)
                    for name, lease in self._leases(db, writer).items()
                }
                self._end(db, writer, charged)

    def end_pause(self) -> None:
        """See `Link.end_pause`."""
        self._link.end_pause()

    def close(self) -> None:
        self._link.close()

    def _check(self, db: psycopg.Connection[Any], member: Member) -> None:
        """Lock the process's own row; no other process can raise its epoch before this transaction
        ends.
        """
        found = db.execute(
            "UPDATE gatekeeper.writers SET beat = beat + 1"
            " WHERE run = %s AND writer = %s AND epoch = %s RETURNING beat",
            (self._run, member.writer, member.epoch),
        ).fetchone()
        if found is None:
            raise FencedError(FENCED)
        self._beat, self._connects = int(found[0]), self._link.connects

    def _leases(self, db: psycopg.Connection[Any], writer: int) -> dict[str, Grant]:
        rows = db.execute(
            "SELECT account, granted, bound FROM gatekeeper.leases WHERE run = %s AND writer = %s",
            (self._run, writer),
        )
        return {account: Grant(granted, bound) for account, granted, bound in rows}

    def _lock_free(self, db: psycopg.Connection[Any]) -> dict[str, int]:
        """The free part of each account; their rows are locked until the transaction ends."""
        rows = db.execute(
            "SELECT account, cap - granted FROM gatekeeper.accounts WHERE run = %s"
            " ORDER BY account FOR NO KEY UPDATE",
            (self._run,),
        )
        return dict(rows.fetchall())

    def _live(self, db: psycopg.Connection[Any]) -> int:
        query = "SELECT count(*) FROM gatekeeper.writers WHERE run = %s AND live"
        found = db.execute(query, (self._run,)).fetchone()
        assert found is not None
        return int(found[0])

    def _set(
        self,
        db: psycopg.Connection[Any],
        writer: int,
        before: Mapping[str, Grant],
        after: Mapping[str, Grant],
    ) -> None:
        for account, grant in sorted(after.items()):
            if change := grant.granted - before[account].granted:
                db.execute(
                    "UPDATE gatekeeper.accounts SET granted = granted + %s"
                    " WHERE run = %s AND account = %s",
                    (change, self._run, account),
                )
        for account, grant in after.items():
            if grant != before[account]:
                db.execute(
                    "UPDATE gatekeeper.leases SET granted = %s, bound = %s"
                    " WHERE run = %s AND writer = %s AND account = %s",
                    (*grant, self._run, writer, account),
                )

    def _end(self, db: psycopg.Connection[Any], writer: int, last: Mapping[str, Grant]) -> None:
        self._lock_free(db)  # locks the accounts, in their order
        self._set(db, writer, self._leases(db, writer), last)
        db.execute(
            "UPDATE gatekeeper.writers SET epoch = epoch + 1, live = false"
            " WHERE run = %s AND writer = %s",
            (self._run, writer),
        )

    @contextmanager
    def _transaction(self) -> Iterator[psycopg.Connection[Any]]:
        with self._link.connection() as db, db.transaction():
            yield db
