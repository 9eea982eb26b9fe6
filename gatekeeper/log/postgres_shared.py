"""One process's log of a run that several processes write, and its leases on their budget.

Events that take or return budget, and verdicts, are on disk before the call returns: `append`
collects the events of all callers, and each waits for its own in `sync`, outside the gate's lock.
The first caller writes the events of all of them, in one statement. Events are written in the order
in which they were appended, so none is in the log without the earlier ones.

A decision not to verify is written within `DELAY` seconds, together with others: `kill -9` loses at
most such decisions. While the database cannot be reached, all events wait in memory, and the gate
continues with its leases.

A process that was taken for dead can write nothing more, because each statement checks its epoch.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from itertools import count
from threading import Condition, Lock, Thread
from threading import Event as Flag
from time import monotonic, sleep
from typing import Any

from gatekeeper.budget import SharedLedger
from gatekeeper.budget.budget import TICKS
from gatekeeper.budget.lease_store import FENCED, FencedError, UnavailableError
from gatekeeper.budget.leases import Leases
from gatekeeper.budget.silence import BEAT
from gatekeeper.errors import LogError
from gatekeeper.log.decoding import decode
from gatekeeper.log.encoding import encoded
from gatekeeper.log.events import Decided, Event, Learned
from gatekeeper.log.place import PostgresRun
from gatekeeper.log.postgres import PostgresLog
from gatekeeper.log.postgres_ids import as_text, deciders, unknown
from gatekeeper.log.postgres_leases import PostgresLeases
from gatekeeper.log.postgres_link import Link
from gatekeeper.log.postgres_merge import Merged
from gatekeeper.log.protocol import OthersEvent
from gatekeeper.types import SharedProcess, SharedStatus
from gatekeeper.wording import counted

__all__ = ["DELAY", "SharedLog"]

DELAY = 0.05  # seconds by which a decision not to verify may be written later
FOLLOW = 0.25  # seconds between two readings of what others wrote, and two returns of leases
PIECE = 256  # of their events, decoded at once
BATCH = 256  # such decisions are written at once
MOST_AT_ONCE = 1024  # events in a statement
MOST = 100_000  # events that wait for a database
LAST = 5.0  # seconds in which they must be written when the gate is closed
_LOG = logging.getLogger("gatekeeper")

# The row of the writer is locked until its events are written, so no process can raise its epoch
# meanwhile. An event that exists already was written by this statement, whose answer was lost. An
# event comes after all that its writer has written and read before, also if the clock is set back.
# Arrays are sent in binary form: psycopg makes one in a thirtieth of the time of a text.
_APPEND = """
WITH me AS (SELECT run, writer, to_timestamp(%s) + interval '1 microsecond' AS after
            FROM gatekeeper.writers
            WHERE run = %s AND writer = %s AND epoch = %s FOR SHARE),
new AS (INSERT INTO gatekeeper.events (run, writer, n, at, kind, id, data)
        SELECT run, writer, %s + row, greatest(clock_timestamp(), after), kind, id, data::json
        FROM me, unnest(%b::text[], %b::text[], %b::text[]) WITH ORDINALITY
                 AS t (kind, id, data, row)
        ON CONFLICT DO NOTHING RETURNING at)
SELECT extract(epoch FROM greatest(clock_timestamp(), after, (SELECT max(at) FROM new))) FROM me
"""


class SharedLog:
    """A `Log` for one of several gates on a run.

    Parameters
    ----------
    place
        The database and the run, which is created if it does not exist.
    ledger
        A fresh one of the gate. The first process of a run stores the caps of its accounts.

    Raises
    ------
    LogError
        As `PostgresLog`, and for a run that is not shared.
    """

    def __init__(self, place: PostgresRun, ledger: SharedLedger) -> None:
        self.place = place
        with ExitStack() as undo:
            self._reader = PostgresLog(place, shared=True)
            undo.callback(self._reader.close)
            self._store = PostgresLeases(place, ledger.caps, ledger.price)
            undo.callback(self._store.close)
            self.leases = Leases(self._store, ledger.price, ledger.accounts)
            undo.pop_all()
        self._run = self._reader.run
        self._link = Link(place, "events")
        self._asking = Link(place, "events")
        self._lock = Lock()  # protects waiting events; never held during a statement
        self._written = Condition(self._lock)
        self._is_writing = False  # whether one caller is writing the events of all
        self._merged = Merged(self._run, without=self.leases.member.writer)
        self._following = Link(place, "events")
        self._apply: Callable[[Sequence[OthersEvent]], None] | None = None
        self._applied: dict[int, int] = {}  # number of the last event, by writer
        self._status = SharedStatus(self.leases.member.writer, (), {}, 0, reachable=True)
        self._n = 0  # of the last event in the database
        self._at = 0.0  # when that was written
        self._rows: list[tuple[str, str, str]] = []  # events not in the database yet
        self._must = 0  # number of the last event for which a caller waits
        self._open: set[str] = set()  # outputs that this process selected, and has not learned from
        self._accrued = 0  # what their candidates add to the budget
        self._fenced: FencedError | None = None
        self._reachable = True
        self._closing = Flag()
        self._thread = Thread(target=self._tend, name="gatekeeper shared", daemon=True)
        self._thread.start()

    # -- the log of a gate ------------------------------------------------------------------------

    def settings(self) -> dict[str, Any]:
        return self._opened().settings()

    def configure(self, settings: Mapping[str, Any]) -> None:
        """Store the settings, unless another process has: compare `settings` afterwards."""
        self._opened().configure(settings)

    def append(self, events: Iterable[Event]) -> None:
        events = list(events)
        rows = encoded(events, self.place)
        with self._lock:
            if self._fenced is not None:
                raise self._fenced
            if len(self._rows) + len(rows) > MOST:
                raise LogError(
                    f"log {self.place} could not be reached for so long that "
                    f"{counted(len(self._rows), 'event')} wait for it: fix the cause and make a "
                    "new gate"
                )
            self._rows += rows
            for event in events:
                if isinstance(event, Decided) and event.decision.verify:
                    self._open.add(event.id)
                elif isinstance(event, Learned):
                    self._open.discard(event.id)
            self._accrued += self.leases.take_accrued()
            waiting = self._n + len(self._rows)
            if not all(map(_may_wait, events)):
                self._must = waiting
        if waiting - self._n >= BATCH:
            with suppress(UnavailableError):
                self._flush(waiting)

    def sync(self) -> None:
        with suppress(UnavailableError):
            self._flush(self._must)

    def events(self, id_: str | None = None) -> Iterator[Event]:
        """Those of all processes; of this one as far as they are in the database.

        To be read once as a whole, at the beginning; `follow` continues from there.
        """
        if id_ is None:
            with self._following.connection() as db:
                for new in self._merged.new(db):
                    yield decode(new.kind, new.id, new.text)
                    self._applied[new.writer] = new.n
            return
        try:
            self.flush()
        except UnavailableError:
            with self._lock:
                if any(waiting == id_ for _, waiting, _ in self._rows):
                    raise
        yield from self._opened().events(id_)

    def close(self) -> None:
        """Write the remaining events, and return the leases. Without a connection, others reclaim
        them, and a warning says how many events are lost.
        """
        self._closing.set()
        self._thread.join()
        self._finish()
        for link in (self._link, self._asking, self._following):
            link.close()
        self._store.close()
        self._reader.close()

    def _finish(self) -> None:
        deadline, why = monotonic() + LAST, ""
        for attempt in count(1):
            self._link.end_pause()
            self._store.end_pause()
            try:
                self.flush()
                self.leases.leave()
                return
            except LogError as error:
                why = str(error)
                if not isinstance(error, UnavailableError):
                    break
            has_retried = attempt > 1  # the first may only find that its connection was lost
            if (has_retried and not self._rows) or monotonic() >= deadline:
                break
            sleep(DELAY)
        if self._rows:
            _LOG.warning(
                "gatekeeper: %d events were not written when the gate was closed, and are lost: %s",
                len(self._rows),
                why,
            )

    def status(self) -> SharedStatus:
        return replace(self._status, waiting=len(self._rows), reachable=self._reachable)

    # -- the other processes ----------------------------------------------------------------------

    def mine(self, ids: Collection[str]) -> set[str]:
        """Those of these outputs that this process may verify: its own, and those of ended
        processes that no other process has claimed before, once it has applied what they wrote of
        them: there may be a verdict. Only its own while the database cannot be reached.
        """
        own = self._open.intersection(ids)
        others = [id_ for id_ in ids if id_ not in own]
        if others:
            with suppress(UnavailableError):
                own |= self._inherited(others)
        return own

    def _inherited(self, ids: Collection[str]) -> set[str]:
        me = self.leases.member.writer
        with self._asking.connection() as db:
            found = deciders(db, self._run, ids)
            rows = db.execute(
                "UPDATE gatekeeper.writers w SET heir = %s WHERE run = %s AND writer = ANY(%s)"
                " AND NOT live AND (heir IS NULL OR NOT EXISTS (SELECT FROM gatekeeper.writers h"
                " WHERE h.run = w.run AND h.writer = w.heir AND h.live AND h.writer <> %s))"
                " RETURNING writer",
                (me, self._run, list(set(found.values())), me),
            ).fetchall()
            taken = {writer for (writer,) in rows}
            claimed = {id_ for id_, writer in found.items() if writer in taken}
            return claimed - unknown(db, self._run, claimed, self._applied, without=me)

    def _tend(self) -> None:
        """Write waiting events, follow the others, and write a sign of life."""
        read, beat = monotonic() + FOLLOW, 0.0
        while not self._closing.wait(DELAY):
            try:
                self.flush()
                self.leases.write_ahead()
                if self._apply is not None and monotonic() >= read:
                    self._follow()
                    self.leases.share()
                    read = monotonic() + FOLLOW
                if monotonic() >= beat:
                    self.leases.beat()
                    if self._apply is not None:  # the log has been read by now
                        self._look()
                    beat = monotonic() + BEAT
                self._reachable = True
            except UnavailableError:
                self._reachable = False
            except FencedError as error:
                self._fenced = error
                return
            except LogError:
                continue  # the caller's next event gets it

    def follow(self, apply: Callable[[Sequence[OthersEvent]], None]) -> None:
        self._apply = apply

    def _follow(self) -> None:
        with self._following.connection() as db:
            for piece in self._merged.pieces(db, PIECE):
                if self._apply is None:
                    return
                events = [OthersEvent(r.writer, decode(r.kind, r.id, r.text)) for r in piece]
                try:
                    self._apply(events)
                except Exception:  # the gate is closed or stopped: its next call raises why
                    self._apply = None
                self._applied |= {row.writer: row.n for row in piece}

    def _look(self) -> None:
        """Read the live processes and their leases."""
        leases = self.leases
        with self._following.connection() as db:
            rows = db.execute(
                "SELECT w.writer, w.name, account, granted FROM gatekeeper.writers w"
                " JOIN gatekeeper.leases USING (run, writer) WHERE run = %s AND live"
                " ORDER BY writer, account",
                (self._run,),
            ).fetchall()
            behind = self._merged.behind(db)
        found: dict[tuple[int, str], dict[str, float]] = {}
        for writer, name, account, granted in rows:
            found.setdefault((writer, name), {})[account] = granted / TICKS
        self._status = SharedStatus(
            leases.member.writer,
            tuple(
                SharedProcess(writer, name, leased, behind.get(writer, 0))
                for (writer, name), leased in found.items()
            ),
            {name: ticks / TICKS for name, ticks in leases.free().items()},
            waiting=0,
            reachable=True,
        )

    def flush(self) -> None:
        with self._lock:
            until = self._n + len(self._rows)
        self._flush(until)

    def flush_unless_writing(self) -> None:
        if not self._is_writing:
            self.flush()

    def _flush(self, until: int) -> None:
        """Return when the events up to this number are written, by any thread."""
        while self._n < until:
            leads = False
            try:
                with self._written:
                    if self._is_writing:
                        self._written.wait()
                        continue
                    rows, accrued = self._rows[:MOST_AT_ONCE], 0
                    if len(rows) == len(self._rows):
                        accrued = self._accrued
                    self._is_writing = leads = bool(rows)
                if leads:
                    self._at = self._write(rows)
                    self._drop(len(rows), accrued)
            finally:
                if leads:
                    with self._written:
                        self._is_writing = False
                        self._written.notify_all()

    def _drop(self, count: int, accrued: int) -> None:
        """The first rows are written: their candidates now add to the budget."""
        with self._lock:
            del self._rows[:count]
            self._n += count
            self._accrued -= accrued
        if accrued:
            self.leases.grow(accrued)

    def _write(self, rows: Sequence[tuple[str, str, str]]) -> float:
        """Returns when they were written, by the database's clock, if that was not set back."""
        kinds, ids, data = zip(*rows, strict=True)
        member, columns = self.leases.member, (list(kinds), list(map(as_text, ids)), list(data))
        before = max(self._at, self._merged.latest)
        with self._link.connection() as db:
            found = db.execute(_APPEND, (before, self._run, *member, self._n, *columns)).fetchone()
        if found is None:
            self._fenced = FencedError(FENCED)
            raise self._fenced
        return float(found[0])

    def _opened(self) -> PostgresLog:
        """The log to read with, opened again where its connection was lost."""
        if self._reader.lost:
            self._reader.close()
            self._reader = PostgresLog(self.place, shared=True)
        return self._reader


def _may_wait(event: Event) -> bool:
    return isinstance(event, Decided) and not event.decision.verify
