"""`python -m gatekeeper.adapters.inspect_ai report run.db`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from gatekeeper.adapters.inspect_ai.metric import question_of
from gatekeeper.analysis.score import estimate_score, range_of, show_score
from gatekeeper.errors import GatekeeperError
from gatekeeper.io.records import records_of_log

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """`report run.db` prints the score of all samples. Returns 2 for bad input."""
    parser = argparse.ArgumentParser(prog="python -m gatekeeper.adapters.inspect_ai")
    commands = parser.add_subparsers(required=True, metavar="command")
    report = commands.add_parser("report", help="print the estimated score of all samples")
    report.add_argument("log", type=Path, help="the gate's log")
    args = parser.parse_args(argv)
    try:
        records = list(records_of_log(args.log))
        values = [r.value for r in records if r.value is not None]
        score = estimate_score(
            records,
            bounds=range_of(values),
            questions={record.id: question_of(record.id) for record in records},
        )
    except GatekeeperError as e:
        print(f"gatekeeper: {e}", file=sys.stderr)
        return 2
    print(*show_score(score), sep="\n")
    return 0
