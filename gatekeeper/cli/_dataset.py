"""What the examples on published data sets share: where the tasks are, and what answers them."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from gatekeeper.cli import run
from gatekeeper.errors import BadInputError
from gatekeeper.io.datasets import load_tasks
from gatekeeper.io.tasks import Convert, Task, read_tasks

__all__ = ["add_data", "go", "tasks_of"]


def add_data(parser: argparse.ArgumentParser, *, name: str, fields: str) -> None:
    """The arguments for the data, the model and the loop; `name` is the data set's on the hub."""
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--data", type=Path, metavar="FILE", help=f"JSONL (or .gz): {fields}")
    source.add_argument("--dataset", metavar="NAME", help=f"on the Hugging Face hub: {name}")
    parser.add_argument("--split", default="test", help="of --dataset (default: test)")
    parser.add_argument("--limit", type=int, metavar="N", help="the first N tasks only")
    models = parser.add_mutually_exclusive_group()
    models.add_argument("--model", metavar="NAME", help="of an endpoint: see --base-url")
    models.add_argument("--vllm", metavar="MODEL", help="by vLLM in this process: name or folder")
    run.add_options(parser)


def tasks_of(args: argparse.Namespace, convert: Convert) -> list[Task]:
    """The tasks asked for. Raises BadInputError where there are none."""
    if args.limit is not None and args.limit < 1:
        raise BadInputError(f"limit={args.limit!r}: give at least 1")
    if args.data is not None:
        tasks = read_tasks(args.data, convert=convert)
    else:
        tasks = load_tasks(args.dataset, split=args.split, convert=convert)
    return tasks[: args.limit]


def go(tasks: Sequence[Task], args: argparse.Namespace) -> int:
    """The loop and its closing report, with the bundled model where none is named."""
    args.generator = "vllm" if args.vllm else "openai" if args.model else "bundled"
    args.model = args.vllm or args.model
    return run.run(tasks, args)
