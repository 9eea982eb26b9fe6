"""The tasks for verification: from a file, or sent by callers."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Protocol
from urllib.parse import unquote

from gatekeeper.errors import BadInputError
from gatekeeper.io.tasks import Task, check_task

__all__ = ["TaskStore", "Tasks"]

SEPARATOR = "~"  # between the id of a task and the rest of the id of an output


class TaskStore(Protocol):
    """Tasks of callers, for all gateways on a run. Both methods raise LogError if it cannot be
    reached.
    """

    def put(self, id_: str, task: Mapping[str, Any]) -> bool:
        """Add a task or replace it; whether it is new."""
        ...

    def get(self, id_: str) -> dict[str, Any] | None:
        """The task as it is now; None for an unknown one."""
        ...


class Tasks:
    """Tasks by id, in memory. Those of callers are lost with the process, unless there is a store.

    Parameters
    ----------
    tasks : iterable of Task
        Tasks of the task file.
    kinds : collection of str
        Those that have a verifier.
    store : TaskStore or None
        Stores tasks of callers, also for other processes.
    """

    def __init__(
        self,
        tasks: Iterable[Task] = (),
        *,
        kinds: Collection[str],
        store: TaskStore | None = None,
    ) -> None:
        self._kinds, self._store = kinds, store
        self._tasks = {str(task["id"]): task for task in tasks}
        self._of_file = frozenset(self._tasks)

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
            f"x-gatekeeper-task: {name!r:.80} is unknown: it is not in the task file, and "
            "was not put to /gatekeeper/tasks/ID"
            + (" since the gateway started" if self._store is None else "")
        )

    async def put(self, id_: str, data: Any) -> bool:
        """Add a task or replace it; whether it is new.

        Raises
        ------
        BadInputError
            As `checked`; and with a store for a task of the file, which other processes have.
        LogError
            If the store cannot be reached.
        """
        task = self.checked(id_, data)
        if self._store is not None:
            if id_ in self._of_file:
                raise BadInputError(
                    f"task {id_!r} is in the task file, which all processes have read: give this "
                    "one another id"
                )
            return await asyncio.to_thread(self._store.put, id_, task)
        is_new = id_ not in self._tasks
        self._tasks[id_] = task
        return is_new

    async def fetch(self, *names: str) -> None:
        """Look these up in the store, as another process may have put or replaced one of them.

        Raises
        ------
        LogError
            If the store cannot be reached.
        """
        if self._store is None:
            return
        for name in dict.fromkeys([*names, *map(unquote, names)]):
            if name in self._of_file:
                continue
            task = await asyncio.to_thread(self._store.get, name)
            if task is not None:
                self._tasks[name] = task

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

    async def of_output(self, id_: str) -> Task | None:
        """The task of an output of an earlier process; None if it is lost.

        Raises
        ------
        LogError
            As `fetch`.
        """
        await self.fetch(id_, id_.rpartition(SEPARATOR)[0])
        return self._tasks.get(id_) or self._tasks.get(id_.rpartition(SEPARATOR)[0])
