"""`gatekeeper run tasks.jsonl`: the whole loop over a task file, resumable with the same log."""

from __future__ import annotations

import argparse

from gatekeeper.io.datasets import FORMATS
from gatekeeper.io.tasks import read_tasks
from gatekeeper.programs import task_run
from gatekeeper.programs.command_options import add_run
from gatekeeper.programs.run_options import run_options_of
from gatekeeper.programs.skipped_lines import skipped_lines

__all__ = ["add", "main"]


def add(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Generates an answer to each task, decides which ones to verify within the budget, "
        "verifies them, and prints the errors found and an estimate for all. After an "
        "interruption the same command with the same log continues."
    )
    add_run(parser)
    parser.set_defaults(run=main)


def main(args: argparse.Namespace) -> int:
    """Returns the exit code of `task_run.run`. Raises BadInputError for a bad task file."""
    convert = FORMATS[args.format]
    with skipped_lines() as bad:
        tasks = read_tasks(args.tasks, convert=convert, skip_bad=args.skip_bad, on_bad=bad.append)
    return task_run.run(tasks[: args.limit], run_options_of(args))
