"""Published data sets as tasks: MBPP and MATH.

    read_tasks("mbpp.jsonl", convert=mbpp_task)
    load_tasks("google-research-datasets/mbpp", split="test", convert=mbpp_task)

A task keeps the solution of the data set as `reference`, for trying out a verifier.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from gatekeeper.errors import BadInputError, MissingDependencyError
from gatekeeper.io.jsonl import field
from gatekeeper.io.tasks import Convert, Task, as_tasks

__all__ = ["FORMATS", "load_tasks", "math_task", "mbpp_task"]


def mbpp_task(row: Mapping[str, Any]) -> Task:
    """Convert a row of MBPP: `task_id`, `text`, `code`, `test_list`, `test_setup_code`.

    The prompt shows the tests, as in the paper that published MBPP, since they name the function.

    Raises
    ------
    BadInputError
        If a field is missing or has another type.
    """
    tests = field(row, "test_list", list)
    listed = "\n".join(map(str, tests))
    return {
        "id": f"Mbpp/{field(row, 'task_id', int)}",
        "prompt": "You are an expert Python programmer, and here is your task: "
        f"{field(row, 'text', str)} Your code should pass these tests:\n\n{listed}\n",
        "kind": "code",
        "tests": tests,
        "test_setup_code": field(row, "test_setup_code", str, default=""),
        "reference": field(row, "code", str),
    }


def math_task(row: Mapping[str, Any]) -> Task:
    """Convert a row of MATH-500: `unique_id`, `problem`, `solution`, `answer`, `subject`, `level`.

    Raises
    ------
    BadInputError
        If a field is missing or has another type.
    """
    return {
        "id": field(row, "unique_id", str),
        "prompt": f"{field(row, 'problem', str)}\n\n"
        "Please reason step by step, and put your final answer within \\boxed{}.",
        "kind": "math",
        "gold": field(row, "answer", str),
        "subject": field(row, "subject", str, default=""),
        "level": field(row, "level", int, default=0),
        "reference": field(row, "solution", str),
    }


FORMATS: Mapping[str, Convert] = {"tasks": dict, "math": math_task, "mbpp": mbpp_task}
"""Formats of task files, by name, with the conversion of a line to a task."""


def load_tasks(dataset: str, *, split: str, convert: Convert) -> list[Task]:
    """Load a split of a data set from the Hugging Face hub, or from a folder `datasets` can read.

    Parameters
    ----------
    dataset
        Name on the hub, or path of a folder.
    split
        For example "test".
    convert
        Converts a row to a task, for example `mbpp_task`.

    Returns
    -------
    list of Task
        In the order of the rows, at least one.

    Raises
    ------
    MissingDependencyError
        Without the package `datasets` (extra `datasets`).
    BadInputError
        If the data set cannot be loaded, has no rows, or has a row that `convert` refuses.
    """
    try:
        from datasets import load_dataset
    except ImportError as error:
        raise MissingDependencyError(
            "datasets", extra="datasets", needed_for=f"dataset={dataset!r}"
        ) from error
    log = logging.getLogger("huggingface_hub")
    level = log.level
    log.setLevel(logging.ERROR)  # hide its messages about retries: our error reports the cause
    try:
        rows = load_dataset(dataset, split=split)
    except Exception as e:  # of many types: no network, unknown name, unknown split
        reason = " ".join(str(e).split()) or type(e).__name__
        raise BadInputError(
            f"dataset={dataset!r}, {split=!r} cannot be loaded: {reason:.300}; without the hub, "
            "read_tasks reads a file"
        ) from e
    finally:
        log.setLevel(level)
    tasks = as_tasks(rows, convert=convert)
    if not tasks:
        raise BadInputError(f"dataset={dataset!r}, {split=!r} holds no task")
    return tasks
