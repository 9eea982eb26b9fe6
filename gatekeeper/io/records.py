"""Records as columns: read from JSON Lines or from a gate's log, and written as JSON Lines.

A line is one JSON object (docs/reference/records.md has all rules):

id              non-empty string, unique in the file; an integer is read as its decimal string
h1, h2, h3      signals, larger = more uncertain; missing or null: no signal. -inf (most certain) is
                written "-inf"; +inf is an error
cost_estimate   ĉ, a number above 0, from 1e-100 to 1e100
cost            c, the same; null if the output was not verified
error           y: 1 wrong, 0 correct, null unknown
stratum         optional, an integer of at least 0
group           optional, non-empty string; an integer is read as its decimal string
benefit         optional, 0 or 1
propensity      optional, in [0, 1]
verified        optional, true or false
value           optional, a finite number: of a metric; null: none
features        optional, an object: finite numbers by name; null: absent

Other fields are kept in `Record.meta` and written back as fields. NaN, which Python writes though
it is not JSON, is read as null. `n_tokens` and `n_margins` of `Signals` are not kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from gatekeeper.arguments import as_path
from gatekeeper.errors import BadInputError
from gatekeeper.io.jsonl import read_jsonl
from gatekeeper.io.log_records import table_of_run
from gatekeeper.io.record_lines import write_rows
from gatekeeper.io.record_rows import RowCheck, rows_of
from gatekeeper.io.record_table import RecordTable, table_of
from gatekeeper.log.place import PostgresRun
from gatekeeper.log.run_table import RunTable, read_table
from gatekeeper.log.sqlite_file import is_open_here
from gatekeeper.types import Record

__all__ = [
    "RecordTable",
    "is_log",
    "load_records",
    "load_with_run",
    "read_records",
    "records_of_log",
    "records_of_run",
    "write_records",
]

SQLITE = b"SQLite format 3\0"  # the first bytes of every SQLite file


def load_records(
    path: str | Path | PostgresRun,
    *,
    skip_bad: bool = False,
    on_bad: Callable[[BadInputError], None] = lambda error: None,
) -> RecordTable:
    """Read records from JSON Lines or from a gate's log, by the first bytes of the file.

    Parameters
    ----------
    path
        JSON Lines (gzip by suffix), or a log: an SQLite file, or a run in PostgreSQL.
    skip_bad, on_bad
        As in `read_records`; a log has no bad lines.

    Returns
    -------
    RecordTable
        With at least one record.

    Raises
    ------
    BadInputError, LogError
        As `read_records` and `records_of_log`.
    """
    return load_with_run(path, skip_bad=skip_bad, on_bad=on_bad)[0]


def load_with_run(
    path: str | Path | PostgresRun,
    *,
    skip_bad: bool = False,
    on_bad: Callable[[BadInputError], None] = lambda error: None,
    wrong_rows: int = 0,
) -> tuple[RecordTable, RunTable | None]:
    """As `load_records`, with the run that a log holds; a log is read once.

    Parameters
    ----------
    path, skip_bad, on_bad
        As of `load_records`.
    wrong_rows
        As of `read_table`.

    Returns
    -------
    tuple
        The records, and the run; None for JSON Lines.

    Raises
    ------
    BadInputError, LogError
        As `load_records`.
    """
    if is_log(path):
        run = read_table(path, wrong_rows=wrong_rows)
        return records_of_run(run, path), run
    assert not isinstance(path, PostgresRun)
    return read_records(path, skip_bad=skip_bad, on_bad=on_bad), None


def is_log(path: str | Path | PostgresRun) -> bool:
    """Whether this is a log: a run in PostgreSQL, or by its first bytes an SQLite file.

    Raises
    ------
    BadInputError
        If the file cannot be read.
    """
    if isinstance(path, PostgresRun):
        return True
    path = as_path("path", path)
    if is_open_here(path):
        return True
    try:
        with open(path, "rb") as file:
            return file.read(len(SQLITE)) == SQLITE
    except OSError as e:
        raise BadInputError(f"{path} cannot be read: {e.strerror}") from e


def read_records(
    path: str | Path,
    *,
    skip_bad: bool = False,
    on_bad: Callable[[BadInputError], None] = lambda error: None,
) -> RecordTable:
    """Read records from JSON Lines. The docstring of this module describes the format.

    Parameters
    ----------
    path
        The file; decompressed if its suffix is `.gz`.
    skip_bad
        Skip bad lines. A bad line has no effect; its id may occur again.
    on_bad
        Called with the error of each line skipped.

    Returns
    -------
    RecordTable
        In file order, with at least one record.

    Raises
    ------
    BadInputError
        For a bad line, unless `skip_bad`, naming file, line and field; if no record is left; if
        the file cannot be read.
    """
    table = table_of(read_jsonl(path, RowCheck(), skip_bad=skip_bad, on_bad=on_bad))
    if not len(table):
        kind = "good record" if skip_bad else "record"
        raise BadInputError(f"{path} holds no {kind}: give a log, or a JSON object a line")
    return table


def records_of_log(path: str | Path | PostgresRun) -> RecordTable:
    """Read records from a gate's log: one per output, in the order of the decisions.

    `error` comes from the gate's verifier or from an external verdict; `verified` is true for the
    former. `cost` is the gate's charge, or what it would have been for an external verdict, in the
    unit of the budget; NaN without either. `stratum` and `propensity` are those of the decision.

    Parameters
    ----------
    path
        SQLite file, or a run in PostgreSQL; opened read-only, also while a gate writes it.

    Returns
    -------
    RecordTable
        With at least one record.

    Raises
    ------
    LogError
        If the file is not a gate's log, or cannot be read.
    BadInputError
        If the gate has not decided on any output yet.
    """
    return records_of_run(read_table(path), path)


def records_of_run(run: RunTable, path: str | Path | PostgresRun) -> RecordTable:
    """As `records_of_log`, from a log that has been read already.

    Parameters
    ----------
    run
        From `gatekeeper.log.run_table.read_table`.
    path
        Path of the log, for the error message.

    Raises
    ------
    BadInputError
        If the gate has not decided on any output yet.
    """
    if not run.ids:
        raise BadInputError(f"{path} holds no record: its gate has not decided on any output yet")
    return table_of_run(run)


def write_records(path: str | Path, records: Iterable[Record]) -> None:
    """Write records as JSON Lines; reading the file gives the same records.

    The file is created or replaced when it is complete. Equal records give equal files.

    Parameters
    ----------
    path
        The file; compressed if its suffix is `.gz`.
    records
        A `RecordTable` or any iterable of records, with unique ids.

    Raises
    ------
    BadInputError
        For a value that could not be read back, naming the id; if the file cannot be written.
    """
    write_rows(path, rows_of(records))
