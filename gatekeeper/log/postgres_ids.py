"""Ids of outputs as texts that PostgreSQL accepts, and which process decided on an output."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from gatekeeper.log.events import Decided

if TYPE_CHECKING:
    import psycopg

__all__ = ["as_text", "deciders", "of_text", "unknown"]


def as_text(id_: str) -> str:
    """The id; as JSON where it has a NUL or half a surrogate pair, or could be taken for JSON."""
    if id_.startswith('"') or "\0" in id_ or (not id_.isascii() and _is_broken(id_)):
        return json.dumps(id_)
    return id_


def _is_broken(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def of_text(text: str) -> str:
    """The id that `as_text` has made a text of."""
    return str(json.loads(text)) if text.startswith('"') else text


def deciders(db: psycopg.Connection[Any], run: int, ids: Collection[str]) -> dict[str, int]:
    """The process that decided first on each of these outputs of a run, by the log.

    Returns
    -------
    dict
        From the id to the number of the process; without outputs on which none has decided.
    """
    by_text = {as_text(id_): id_ for id_ in ids}
    rows = db.execute(
        "SELECT id, writer FROM gatekeeper.events WHERE run = %s AND kind = %s"
        " AND id = ANY(%s) ORDER BY at DESC",
        (run, Decided.kind, list(by_text)),
    ).fetchall()
    return {by_text[text]: int(writer) for text, writer in rows}


def unknown(
    db: psycopg.Connection[Any],
    run: int,
    ids: Collection[str],
    known: Mapping[int, int],
    *,
    without: int,
) -> set[str]:
    """Those of these outputs of which a run's log has an event that is not known.

    Parameters
    ----------
    known
        Number of the last event that is known, by writer.
    without
        A writer whose events are all known.
    """
    rows = db.execute(
        "SELECT id, writer, max(n) FROM gatekeeper.events WHERE run = %s AND id = ANY(%s)"
        " AND writer <> %s GROUP BY id, writer",
        (run, list(map(as_text, ids)), without),
    ).fetchall()
    return {of_text(text) for text, writer, n in rows if n > known.get(writer, 0)}
