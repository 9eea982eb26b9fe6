"""`gatekeeper export run.db --format jsonl|csv|parquet`: a log's outputs as a table."""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Any

from gatekeeper.errors import BadInputError, MissingDependencyError
from gatekeeper.programs.log_argument import add_run_name, log_file, place_given
from gatekeeper.programs.values import check_output
from gatekeeper.wording import counted

__all__ = ["add", "main"]

FORMATS = ("jsonl", "csv", "parquet")

Row = dict[str, Any]


def add(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "One row for each output: text, verdict, detail, reason, signals, cost. Parquet needs the "
        "extra tables."
    )
    parser.add_argument("log", type=log_file, help="a gate's log")
    parser.add_argument(
        "--format",
        choices=FORMATS,
        help="format of the table (default: by the file's suffix; jsonl where it has none)",
    )
    parser.add_argument(
        "-o",
        "--out",
        type=Path,
        default=Path("-"),
        metavar="FILE",
        help="file to write, gzip where its name ends in .gz; - is standard output",
    )
    add_run_name(parser)
    parser.set_defaults(run=main)


def main(args: argparse.Namespace) -> int:
    """Returns 0.

    Raises
    ------
    BadInputError, LogError
        For a file that is no log, and one that cannot be written.
    MissingDependencyError
        For parquet, without pyarrow.
    """
    from gatekeeper.log.run import read_run

    log = place_given(args.log, args)
    check_output("--out", args.out, source=log)
    zipped = args.out.suffix == ".gz"
    plain = args.out.with_suffix("") if zipped else args.out
    kind = args.format or plain.suffix.removeprefix(".").lower() or "jsonl"
    if kind not in FORMATS:
        raise BadInputError(
            f"--out {args.out}: format {kind!r} is unknown: give --format, or a name that ends in "
            f".{', .'.join(FORMATS)}"
        )
    if kind == "parquet":
        _check_pyarrow()
        if str(args.out) == "-" and sys.stdout.isatty():
            raise BadInputError("--format parquet is binary: give a file, -o FILE, or a pipe")
    run = read_run(log)
    if str(args.out) == "-":
        _write(run.rows(), kind, sys.stdout.buffer)
        return 0
    try:
        with (gzip.open if zipped else open)(args.out, "wb") as file:
            _write(run.rows(), kind, file)
    except OSError as e:
        raise BadInputError(f"--out {args.out} cannot be written: {e.strerror}") from e
    print(f"{counted(len(run.outputs), 'output')}: {args.out}", file=sys.stderr)
    return 0


def _write(rows: Iterable[Row], kind: str, file: IO[bytes]) -> None:
    {"jsonl": _write_jsonl, "csv": _write_csv, "parquet": _write_parquet}[kind](rows, file)
    file.flush()


def _write_jsonl(rows: Iterable[Row], file: IO[bytes]) -> None:
    from gatekeeper.log.rows import as_json

    for row in rows:
        file.write(json.dumps(as_json(row)).encode() + b"\n")


def _write_csv(rows: Iterable[Row], file: IO[bytes]) -> None:
    from gatekeeper.log.rows import COLUMNS

    lines = csv.writer(_Encoded(file))
    lines.writerow(COLUMNS)
    lines.writerows(row.values() for row in rows)


class _Encoded:
    """The text file that `csv` writes: UTF-8, whatever the locale."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def write(self, text: str) -> None:
        self._file.write(text.encode("utf-8", "backslashreplace"))


def _write_parquet(rows: Iterable[Row], file: IO[bytes]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    from gatekeeper.log.rows import COLUMNS, encodable

    kinds = {str: pa.string(), int: pa.int64(), bool: pa.bool_(), float: pa.float64()}
    schema = pa.schema([(name, kinds[kind]) for name, kind in COLUMNS.items()])
    clean = list(map(encodable, rows))
    pq.write_table(pa.Table.from_pylist(clean, schema=schema), file)


def _check_pyarrow() -> None:
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        raise MissingDependencyError(
            "pyarrow", extra="tables", needed_for="--format parquet"
        ) from None
