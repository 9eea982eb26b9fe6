"""Task files: what to generate, and how to verify it.

One JSON object per line: `id`, `prompt`, `kind`, and for kind "code" `tests` (a list of assert
statements, run in order after the candidate) with an optional `test_setup_code`, for kind "math"
`gold` (the reference answer). Other fields are kept and ignored.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from gatekeeper.errors import BadInputError
from gatekeeper.jsonl import field, read_jsonl

__all__ = ["Task", "read_tasks"]

Task = Mapping[str, Any]


def read_tasks(
    path: str | Path,
    *,
    skip_bad: bool = False,
    on_bad: Callable[[BadInputError], None] = lambda error: None,
) -> list[Task]:
    """All tasks, in file order. Raises BadInputError for a bad line (see `read_jsonl`), for an id
    that stands twice, and for a file without tasks."""
    ids: set[str] = set()

    def parse(data: Task) -> Task:
        task = _checked(data)
        if task["id"] in ids:
            raise BadInputError(f"id {task['id']!r} stands twice: each task needs one of its own")
        ids.add(task["id"])
        return task

    tasks = list(read_jsonl(path, parse, skip_bad=skip_bad, on_bad=on_bad))
    if not tasks:
        raise BadInputError(f"{path} holds no task")
    return tasks


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
                ast.parse(test.strip())
            except (SyntaxError, ValueError, RecursionError, MemoryError) as e:
                raise BadInputError(f"field 'tests' has {test!r:.80}, no Python: {e}") from None
        field(data, "test_setup_code", str, default="")
    elif kind == "math":
        if not field(data, "gold", str).strip():
            raise BadInputError("field 'gold' is empty: an answer is needed to compare with")
    else:
        raise BadInputError(f"field 'kind' is {kind!r}: choose 'code' or 'math'")
    return data
