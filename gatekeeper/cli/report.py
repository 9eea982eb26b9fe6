"""`gatekeeper report records.jsonl|run.db -o report.html`: one self-contained page."""

from __future__ import annotations

import argparse
import shlex
from datetime import UTC, datetime
from pathlib import Path

from gatekeeper.log.place import PostgresRun
from gatekeeper.option_values import number
from gatekeeper.programs.log_argument import add_source, place_given
from gatekeeper.programs.skipped_lines import skipped_lines
from gatekeeper.programs.values import check_output, open_output, summary_stream

__all__ = ["add", "main"]


def add(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Writes one HTML page with figures. It loads nothing from the network, and needs the extra "
        "plots to be made."
    )
    parser.add_argument(
        "-o", "--out", type=Path, required=True, help="HTML file to write; - is standard output"
    )
    parser.add_argument(
        "--budget", "--beta", type=number("(0, 1)"), metavar="SHARE",
        help="share of the full cost, for the figures (default: the log's own; 0.2 for records)",
    )  # fmt: skip
    add_source(parser)
    parser.set_defaults(run=main)


def main(args: argparse.Namespace) -> int:
    """Returns 0. Raises BadInputError and LogError before anything is written."""
    file = place_given(args.file, args)
    from gatekeeper.report.report import report

    check_output("--out", args.out, source=file)  # before the figures, which take a while
    with skipped_lines() as bad:
        page = report(
            file,
            beta=args.budget,
            skip_bad=args.skip_bad,
            on_bad=bad.append,
            made=datetime.now(UTC),
            command=_command(args, file),
        )
    with open_output("--out", args.out) as out:
        out.write(page)
    print(f"Report: {args.out}", file=summary_stream(args.out))
    return 0


def _command(args: argparse.Namespace, file: Path | PostgresRun) -> str:
    """The command line that makes the page again, without the folders and the server."""
    words = ["gatekeeper", "report"]
    words += [] if args.budget is None else [f"--budget={args.budget:g}"]
    words += ["--skip-bad"] if args.skip_bad else []
    if isinstance(file, PostgresRun):
        words += ["postgresql://...", f"--run={file.name}"]
    else:
        words.append(f"./{file.name}" if file.name.startswith("-") else file.name)
    return shlex.join([*words, "-o", "report.html"])
