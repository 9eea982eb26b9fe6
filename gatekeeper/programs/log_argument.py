"""The arguments that name a log: a file, or the address of a database with `--run`."""

from __future__ import annotations

import argparse
from pathlib import Path

from gatekeeper.log.place import PostgresRun, is_address, place_of
from gatekeeper.programs.values import input_file, named_file

__all__ = ["add_run_name", "add_source", "log_file", "log_or_records", "place_given"]


def log_file(text: str) -> Path | str:
    """A file, or an address as it is given."""
    return text if is_address(text) else named_file(text)


def log_or_records(text: str) -> Path | str:
    """The same; "-" is standard input."""
    return text if is_address(text) else input_file(text)


def add_source(parser: argparse.ArgumentParser, *, records: str = "records") -> None:
    """Add `file`, a run's log or records, and the options on how it is read.

    `records` says what they need to be, for the help.
    """
    parser.add_argument(
        "file",
        type=log_or_records,
        help=f"a run's log, or JSONL (or .jsonl.gz) of {records}; - is standard input",
    )
    parser.add_argument("--skip-bad", action="store_true", help="skip and count bad lines")
    add_run_name(parser)


def add_run_name(parser: argparse.ArgumentParser) -> None:
    """Add `--run`."""
    parser.add_argument(
        "--run",
        dest="run_name",
        metavar="NAME",
        help="of a log in PostgreSQL, postgresql://USER@HOST/DATABASE: which of its runs",
    )


def place_given(log: Path | str, args: argparse.Namespace) -> Path | PostgresRun:
    """Where the log is, or the records.

    Raises
    ------
    BadInputError
        For an address without `--run`, and for `--run` with a file.
    """
    return place_of(log, args.run_name)
