"""The tasks that callers sent to one of several gateways on a run, for all of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from threading import Lock
from typing import Any

from gatekeeper.errors import BadInputError
from gatekeeper.limits import MAX_ID, is_id
from gatekeeper.log.place import PostgresRun
from gatekeeper.log.postgres_ids import as_text
from gatekeeper.log.postgres_link import Link

__all__ = ["PostgresTasks"]

_PUT = """
INSERT INTO gatekeeper.tasks (run, id, task)
SELECT run, %s, %s::json FROM gatekeeper.runs WHERE name = %s
ON CONFLICT (run, id) DO UPDATE SET task = excluded.task
RETURNING xmax = 0
"""


class PostgresTasks:
    """Tasks by id. Each method raises UnavailableError while the database cannot be reached.

    Parameters
    ----------
    place
        The run, which a gate of this process has open.
    """

    def __init__(self, place: PostgresRun) -> None:
        self._name, self._link = place.name, Link(place, "tasks")
        self._lock = Lock()  # threads share the connection

    def put(self, id_: str, task: Mapping[str, Any]) -> bool:
        """Add a task or replace it; whether it is new.

        Raises
        ------
        BadInputError
            For an id that no output could have.
        """
        if not is_id(id_):
            raise BadInputError(f"id={id_!r:.80}: give a string of 1 to {MAX_ID} bytes in UTF-8")
        with self._lock, self._link.connection() as db:
            values = (as_text(id_), json.dumps(dict(task)), self._name)
            found = db.execute(_PUT, values).fetchone()
        assert found is not None
        return bool(found[0])

    def get(self, id_: str) -> dict[str, Any] | None:
        """The task as it is now; None for an unknown one."""
        with self._lock, self._link.connection() as db:
            found = db.execute(
                "SELECT task FROM gatekeeper.tasks JOIN gatekeeper.runs USING (run)"
                " WHERE name = %s AND id = %s",
                (self._name, as_text(id_)),
            ).fetchone()
        return None if found is None else dict(found[0])

    def close(self) -> None:
        self._link.close()
