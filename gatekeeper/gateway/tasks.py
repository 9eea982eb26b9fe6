"""The tasks that outputs are verified against: from a file, or sent by callers."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any
from urllib.parse import unquote

from gatekeeper.errors import BadInputError
from gatekeeper.io.tasks import Task, check_task

__all__ = ["Tasks"]

SEPARATOR = "~"  # between the id of a task and the rest of the id of an output


class Tasks:
    """Tasks by id, in memory: those of callers are lost with the process.

    Parameters
    ----------
    tasks : iterable of Task
        Of the task file.
    kinds : collection of str
        Those that have a verifier.
    """

    def __init__(self, tasks: Iterable[Task] = (), *, kinds: Collection[str]) -> None:
        self._kinds = kinds
        self._tasks = {str(task["id"]): task for task in tasks}

    def __len__(self) -> int:
        return len(self._tasks)

    def named(self, name: str) -> Task:
        """The task that a header names, as it is or percent-encoded.

        Raises
        ------
        BadInputError
            For an unknown one.
        """
        for id_ in (name, unquote(name)):
            if id_ in self._tasks:
                return self._tasks[id_]
        raise BadInputError(
            f"x-gatekeeper-task: {name!r:.80} is unknown: it is neither in the task file nor was "
            "it put to /gatekeeper/tasks/ID since the gateway started"
        )

    def put(self, id_: str, data: Any) -> bool:
        """Add a task or replace it; whether it is new.

        Raises
        ------
        BadInputError
            As `checked`.
        """
        is_new = id_ not in self._tasks
        self._tasks[id_] = self.checked(id_, data)
        return is_new

    def checked(self, id_: str, data: Any) -> Task:
        """A task that a caller sent: as in a task file, and the id and the prompt may be absent.

        Raises
        ------
        BadInputError
            For anything else, and for a kind without a verifier.
        """
        if not isinstance(data, Mapping):
            raise BadInputError("a task is an object with 'kind', and 'tests' or 'gold'")
        task = check_task({"prompt": "", **data, "id": id_})
        if task["kind"] not in self._kinds:
            found = ", ".join(map(repr, self._kinds)) or "none"
            raise BadInputError(
                f"kind {task['kind']!r} has no verifier in this gateway; the kinds with one: "
                f"{found}. Tasks of kind 'code' need a sandbox, which the gateway's owner names"
            )
        return task

    def output_id(self, task: Task, unique: str) -> str:
        """The id of an output to a task of this store: `of_output` finds the task again."""
        return f"{task['id']}{SEPARATOR}{unique}"

    def of_output(self, id_: str) -> Task | None:
        """The task of an output of an earlier process; None where it is not known any more."""
        return self._tasks.get(id_) or self._tasks.get(id_.rpartition(SEPARATOR)[0])
