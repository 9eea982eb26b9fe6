"""`gatekeeper report records.jsonl|run.db -o report.html`: one self-contained page."""

from __future__ import annotations

import argparse
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from gatekeeper.errors import BadInputError
from gatekeeper.programs.skipped_lines import skipped_lines

__all__ = ["add", "main"]


def add(commands: argparse._SubParsersAction[Any]) -> None:
    parser = commands.add_parser(
        "report",
        help="write one HTML page with figures, from records or a run's log",
        description="The page loads nothing from the network. It needs the extra plots.",
    )
    parser.add_argument("file", type=Path, help="JSONL (or .jsonl.gz) of records, or a run's log")
    parser.add_argument("-o", "--out", type=Path, required=True, help="HTML file to write")
    parser.add_argument(
        "--beta", type=float, metavar="SHARE",
        help="budget of the figures (default: the log's own; 0.2 for records)",
    )  # fmt: skip
    parser.add_argument("--skip-bad", action="store_true", help="skip and count bad lines")
    parser.set_defaults(run=main)


def main(args: argparse.Namespace) -> int:
    """Returns 0. Raises BadInputError and LogError before anything is written."""
    from gatekeeper.report.report import report

    if not os.access(args.out.parent, os.W_OK) or args.out.is_dir():
        raise BadInputError(f"--out {args.out} cannot be written: give a file in a writable folder")
    if args.out.exists() and args.file.exists() and args.out.samefile(args.file):
        raise BadInputError(f"--out {args.out} is the file to report on: give another one")
    with skipped_lines() as bad:
        page = report(
            args.file,
            beta=args.beta,
            skip_bad=args.skip_bad,
            on_bad=bad.append,
            made=datetime.now(UTC),
        )
    try:
        args.out.write_text(page, encoding="utf-8")
    except OSError as e:
        raise BadInputError(f"--out {args.out} cannot be written: {e.strerror}") from e
    print(f"Report: {args.out}")
    return 0
