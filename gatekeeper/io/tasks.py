"""Task files: prompts, and how to verify the outputs.

One JSON object per line:

id                unique, non-empty string
prompt            string
kind              "code" or "math"
tests             for "code": list of assert statements, run in order after the candidate
test_setup_code   for "code", optional: run before the tests
gold              for "math": the reference answer

Other fields are kept and ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from gatekeeper.errors import BadInputError
from gatekeeper.io.jsonl import UniqueIds, field, read_jsonl
from gatekeeper.io.syntax import parse_python
from gatekeeper.limits import MAX_ID, is_id

__all__ = ["Convert", "Task", "as_tasks", "check_asked", "check_task", "read_tasks"]

Task = Mapping[str, Any]

Convert = Callable[[Mapping[str, Any]], Task]
"""Converts a row of a published data set to a task; see `gatekeeper.io.datasets`."""


def read_tasks(
    path: str | Path,
    *,
    convert: Convert = dict,
    skip_bad: bool = False,
    on_bad: Callable[[BadInputError], None] = lambda error: None,
) -> list[Task]:
    """Read a task file.

    Parameters
    ----------
    path
        JSON Lines, gzip by suffix.
    convert
        Converts a line's object to a task. Default: it is one.
    skip_bad, on_bad
        As in `gatekeeper.io.jsonl.read_jsonl`.

    Returns
    -------
    list of Task
        In file order, at least one.

    Raises
    ------
    BadInputError
        For a bad line or a repeated id, unless `skip_bad`; if no task is left; if the file cannot
        be read.
    """
    tasks = list(read_jsonl(path, _parser(convert), skip_bad=skip_bad, on_bad=on_bad))
    if not tasks:
        raise BadInputError(f"{path} holds no task: give a JSON object a line")
    return tasks


def as_tasks(rows: Iterable[Mapping[str, Any]], *, convert: Convert = dict) -> list[Task]:
    """Convert and check rows in memory, as `read_tasks` does with lines.

    Raises
    ------
    BadInputError
        For a bad row, naming its number, counted from 1.
    """
    parse = _parser(convert)
    tasks = []
    for number, row in enumerate(rows, 1):
        try:
            tasks.append(parse(row))
        except BadInputError as e:
            raise BadInputError(f"row {number}: {e}") from None
    return tasks


def _parser(convert: Convert) -> Convert:
    """Converts and checks tasks whose ids must be unique."""
    ids = UniqueIds("task")

    def parse(data: Mapping[str, Any]) -> Task:
        task = check_task(convert(data))
        ids.add(task["id"])
        return task

    return parse


def check_task(data: Task) -> Task:
    """The task, unchanged.

    Raises
    ------
    BadInputError
        Naming the field that is missing or wrong.
    """
    _check_texts(data)
    kind = field(data, "kind", str)
    if kind == "code":
        tests = field(data, "tests", list)
        if not tests or not all(isinstance(test, str) and test.strip() for test in tests):
            raise BadInputError("field 'tests' must be a list of at least one assert statement")
        for test in tests:
            try:
                parse_python(test.strip())
            except (SyntaxError, ValueError, RecursionError, MemoryError) as e:
                raise BadInputError(
                    f"field 'tests' has {test!r:.80}, which is not Python: {e}"
                ) from None
        field(data, "test_setup_code", str, default="")
    elif kind == "math":
        if not field(data, "gold", str).strip():
            raise BadInputError("field 'gold' is empty: give the reference answer")
    else:
        raise BadInputError(f"field 'kind' is {kind!r}: choose 'code' or 'math'")
    return data


def check_asked(tasks: Iterable[Task]) -> None:
    """Check what the main loop reads of tasks, of whatever kind: ids and prompts.

    Raises
    ------
    BadInputError
        For a task without one of them, naming its number, counted from 1; and for an id that
        occurs twice.
    """
    ids = UniqueIds("task")
    for number, task in enumerate(tasks, 1):
        try:
            if not isinstance(task, Mapping):
                raise BadInputError(f"{task!r:.80}: give a mapping with 'id' and 'prompt'")
            _check_texts(task)
            ids.add(task["id"])
        except BadInputError as e:
            raise BadInputError(f"task {number}: {e}") from None


def _check_texts(task: Task) -> None:
    if not field(task, "id", str):
        raise BadInputError("field 'id' is empty")
    for name in ("id", "prompt"):
        try:
            field(task, name, str).encode()
        except UnicodeEncodeError:
            raise BadInputError(
                f"field {name!r} is not valid Unicode text: {task[name]!r:.80}"
            ) from None
    if not is_id(task["id"]):
        raise BadInputError(
            f"field 'id' is {task['id']!r:.80}: an id may have {MAX_ID} bytes in UTF-8"
        )
