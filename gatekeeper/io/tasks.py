"""Task files: what to generate, and how to verify it.

One JSON object per line: `id`, `prompt`, `kind`, and for kind "code" `tests` (a list of assert
statements, run in order after the candidate) with an optional `test_setup_code`, for kind "math"
`gold` (the reference answer). Other fields are kept and ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from gatekeeper.errors import BadInputError
from gatekeeper.io.jsonl import field, read_jsonl
from gatekeeper.io.syntax import parse_python

__all__ = ["Convert", "Task", "as_tasks", "read_tasks"]

Task = Mapping[str, Any]

Convert = Callable[[Mapping[str, Any]], Task]
"""From a row of a published data set to a task; see `gatekeeper.io.datasets`."""


def read_tasks(
    path: str | Path,
    *,
    convert: Convert = dict,
    skip_bad: bool = False,
    on_bad: Callable[[BadInputError], None] = lambda error: None,
) -> list[Task]:
    """All tasks, in file order. Raises BadInputError for a bad line (see `read_jsonl`), for an id
    that stands twice, and for a file without tasks."""
    tasks = list(read_jsonl(path, _parser(convert), skip_bad=skip_bad, on_bad=on_bad))
    if not tasks:
        raise BadInputError(f"{path} holds no task")
    return tasks


def as_tasks(rows: Iterable[Mapping[str, Any]], *, convert: Convert = dict) -> list[Task]:
    """The same for rows that are in memory. Raises BadInputError, naming the row by its number."""
    parse = _parser(convert)
    tasks = []
    for number, row in enumerate(rows, 1):
        try:
            tasks.append(parse(row))
        except BadInputError as e:
            raise BadInputError(f"row {number}: {e}") from None
    return tasks


def _parser(convert: Convert) -> Convert:
    """Converts and checks; remembers the ids."""
    ids: set[str] = set()

    def parse(data: Mapping[str, Any]) -> Task:
        task = _checked(convert(data))
        if task["id"] in ids:
            raise BadInputError(f"id {task['id']!r} stands twice: each task needs one of its own")
        ids.add(task["id"])
        return task

    return parse


def _checked(data: Task) -> Task:
    if not field(data, "id", str):
        raise BadInputError("field 'id' is empty")
    for name in ("id", "prompt"):
        try:
            field(data, name, str).encode()
        except UnicodeEncodeError:
            raise BadInputError(f"field {name!r} is no valid text: {data[name]!r:.80}") from None
    kind = field(data, "kind", str)
    if kind == "code":
        tests = field(data, "tests", list)
        if not tests or not all(isinstance(test, str) and test.strip() for test in tests):
            raise BadInputError("field 'tests' must be a list of at least one assert statement")
        for test in tests:
            try:
                parse_python(test.strip())
            except (SyntaxError, ValueError, RecursionError, MemoryError) as e:
                raise BadInputError(f"field 'tests' has {test!r:.80}, no Python: {e}") from None
        field(data, "test_setup_code", str, default="")
    elif kind == "math":
        if not field(data, "gold", str).strip():
            raise BadInputError("field 'gold' is empty: an answer is needed to compare with")
    else:
        raise BadInputError(f"field 'kind' is {kind!r}: choose 'code' or 'math'")
    return data
