"""`gatekeeper run tasks.jsonl`: the whole loop over a task file, resumable with the same log."""

from __future__ import annotations

import argparse

from gatekeeper.io.datasets import FORMATS
from gatekeeper.io.providers import generator_names
from gatekeeper.io.tasks import read_tasks
from gatekeeper.programs import task_run
from gatekeeper.programs.run_options import add_run_options, run_options_of
from gatekeeper.programs.skipped_lines import skipped_lines
from gatekeeper.programs.values import input_file, whole

__all__ = ["add", "main"]


def add(parser: argparse.ArgumentParser) -> None:
    parser.description = "After an interruption the same command with the same log continues."
    parser.add_argument(
        "tasks", type=input_file, help="JSONL: id, prompt, kind, tests | gold; - is standard input"
    )
    parser.add_argument("--limit", type=whole(), metavar="N", help="only the first N tasks")
    parser.add_argument(
        "--format",
        choices=FORMATS,
        default="tasks",
        help="what a line is: a task (default), or a row of MBPP or MATH-500",
    )
    parser.add_argument(
        "--generator",
        choices=generator_names(),
        default="bundled",
        help="what answers the prompts: the bundled model (default), an endpoint of OpenAI's API, "
        "or vLLM in this process",
    )
    parser.add_argument("--model", metavar="NAME", help="openai, vllm: the model's name or folder")
    parser.add_argument("--skip-bad", action="store_true", help="skip and count bad lines")
    add_run_options(parser)
    parser.set_defaults(run=main)


def main(args: argparse.Namespace) -> int:
    """Returns the exit code of `task_run.run`. Raises BadInputError for a bad task file."""
    convert = FORMATS[args.format]
    with skipped_lines() as bad:
        tasks = read_tasks(args.tasks, convert=convert, skip_bad=args.skip_bad, on_bad=bad.append)
    return task_run.run(tasks[: args.limit], run_options_of(args))
