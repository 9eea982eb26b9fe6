"""A run over a published data set, from a file or from the Hugging Face hub."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from gatekeeper.errors import BadInputError
from gatekeeper.io.datasets import load_tasks
from gatekeeper.io.tasks import Convert, Task, read_tasks
from gatekeeper.option_values import whole
from gatekeeper.programs import task_run
from gatekeeper.programs.run_arguments import add_run_options
from gatekeeper.programs.run_options import run_options_of

__all__ = ["add_arguments", "run", "tasks_of"]


def add_arguments(parser: argparse.ArgumentParser, *, name: str, fields: str) -> None:
    """Add the arguments for the data, the model and the run.

    Parameters
    ----------
    parser : argparse.ArgumentParser
    name : str
        The data set's name on the hub, for the help.
    fields : str
        The fields of its rows, for the help.
    """
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--data", type=Path, metavar="FILE", help=f"JSONL (or .gz): {fields}")
    source.add_argument("--dataset", metavar="NAME", help=f"on the Hugging Face hub: {name}")
    parser.add_argument("--split", default="test", help="of --dataset (default: %(default)s)")
    parser.add_argument("--limit", type=whole(), metavar="N", help="only the first N tasks")
    models = parser.add_mutually_exclusive_group()
    models.add_argument("--model", metavar="NAME", help="of an endpoint: see --base-url")
    models.add_argument("--vllm", metavar="MODEL", help="by vLLM in this process: name or folder")
    add_run_options(parser)


def tasks_of(args: argparse.Namespace, convert: Convert) -> list[Task]:
    """The tasks that the arguments name. Raises BadInputError if there are none."""
    if args.data is not None:
        tasks = read_tasks(args.data, convert=convert)
    else:
        try:
            tasks = load_tasks(args.dataset, split=args.split, convert=convert)
        except BadInputError as e:
            raise BadInputError(f"{e}; --data FILE takes it") from e
    return tasks[: args.limit]


def run(tasks: Sequence[Task], args: argparse.Namespace) -> int:
    """Pass the tasks through the loop, with the bundled model if the arguments name no other.

    Returns the exit code of `task_run.run`.
    """
    generator = "vllm" if args.vllm else "openai" if args.model else "bundled"
    options = replace(run_options_of(args), generator=generator, model=args.vllm or args.model)
    return task_run.run(tasks, options)
