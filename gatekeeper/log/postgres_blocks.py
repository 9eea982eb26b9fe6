"""Which process on a shared run does which block of its tasks.

A block is done by one process. Another process may take it when that one has ended, or was taken
for dead and fenced: then it can write nothing more, so the log has all events of the block.
"""

from __future__ import annotations

from collections.abc import Collection

from gatekeeper.budget.lease_store import FENCED, FencedError
from gatekeeper.log.events import Decided, Settled
from gatekeeper.log.place import PostgresRun
from gatekeeper.log.postgres_ids import as_text, deciders
from gatekeeper.log.postgres_link import Link

__all__ = ["PostgresBlocks"]

# Skips blocks that others are taking at this moment.
_TAKE = """
WITH me AS (SELECT run, writer FROM gatekeeper.writers
            WHERE run = %s AND writer = %s AND live FOR SHARE)
UPDATE gatekeeper.blocks b SET writer = me.writer FROM me
WHERE b.run = me.run AND b.block = (
    SELECT block FROM gatekeeper.blocks f
    WHERE run = %s AND NOT done AND (writer IS NULL OR EXISTS (
        SELECT FROM gatekeeper.writers w
        WHERE w.run = f.run AND w.writer = f.writer AND NOT w.live))
    ORDER BY block LIMIT 1 FOR UPDATE OF f SKIP LOCKED)
RETURNING block
"""
_FINISH = """
UPDATE gatekeeper.blocks SET done = true
WHERE run = %s AND writer = %s AND block = %s
AND (SELECT count(DISTINCT id) FROM gatekeeper.events
     WHERE run = %s AND kind = %s AND id = ANY(%s)) = %s
"""


class PostgresBlocks:
    """The blocks of a run, for one of its processes and one thread.

    Each method raises UnavailableError while the database cannot be reached.

    Parameters
    ----------
    place
        The run, which a gate of this process has open.
    writer
        The number of that gate's process, `status().shared.number`.
    count
        Number of the blocks; all processes give the same.
    """

    def __init__(self, place: PostgresRun, writer: int, count: int) -> None:
        self._writer = writer
        self._link = Link(place, "tasks")
        with self._link.connection() as db:
            found = db.execute(
                "SELECT run FROM gatekeeper.runs WHERE name = %s", (place.name,)
            ).fetchone()
            assert found is not None
            self._run = int(found[0])
            db.execute(
                "INSERT INTO gatekeeper.blocks (run, block) SELECT %s, generate_series(0, %s - 1)"
                " ON CONFLICT DO NOTHING",
                (self._run, count),
            )

    def left(self) -> int:
        """Blocks that no process has finished yet.

        Raises
        ------
        FencedError
            If this process was taken for dead.
        """
        with self._link.connection() as db:
            found = db.execute(
                "SELECT live, (SELECT count(*) FROM gatekeeper.blocks b"
                " WHERE b.run = w.run AND NOT done)"
                " FROM gatekeeper.writers w WHERE run = %s AND writer = %s",
                (self._run, self._writer),
            ).fetchone()
        assert found is not None
        if not found[0]:
            raise FencedError(FENCED)
        return int(found[1])

    def take(self) -> int | None:
        """The next block for this process; None if others have all remaining ones."""
        with self._link.connection() as db:
            found = db.execute(_TAKE, (self._run, self._writer, self._run)).fetchone()
        return None if found is None else int(found[0])

    def decided(self, ids: Collection[str]) -> set[str]:
        """Those of these outputs with a decision in the log."""
        with self._link.connection() as db:
            return set(deciders(db, self._run, ids))

    def finish(self, block: int, ids: Collection[str]) -> bool:
        """Mark a block as done; False, and nothing is marked, while the log lacks a decision on one
        of its outputs."""
        texts = list(map(as_text, ids))
        values = (self._run, self._writer, block, self._run, Decided.kind, texts, len(texts))
        with self._link.connection() as db:
            return db.execute(_FINISH, values).rowcount == 1

    def logged(self) -> tuple[int, int]:
        """Outputs that the log has a decision on, and verifications."""
        with self._link.connection() as db:
            found = db.execute(
                "SELECT count(*) FILTER (WHERE kind = %s), count(*) FILTER (WHERE kind = %s)"
                " FROM gatekeeper.events WHERE run = %s",
                (Decided.kind, Settled.kind, self._run),
            ).fetchone()
        assert found is not None
        return int(found[0]), int(found[1])

    def close(self) -> None:
        self._link.close()
