"""The tasks for verification: from a file, or sent by callers."""

from __future__ import annotations

import asyncio
import json
from collections import OrderedDict
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Protocol
from urllib.parse import unquote

from gatekeeper.errors import BadInputError
from gatekeeper.io.tasks import Task, check_task

__all__ = ["TaskStore", "Tasks"]

SEPARATOR = "~"  # between the id of a task and the rest of the id of an output
ROOM = 256 << 20  # bytes for tasks of callers
OVERHEAD = 1 << 10  # bytes of a task beside those of its JSON
# Characters of Python code in a task that a caller sends. A megabyte may take six seconds to parse,
# in which no other call is served, in whatever thread: the parser holds the interpreter's lock.
CODE = 1 << 18


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
    """Tasks by id. Those of callers are in the store if there is one. Otherwise they are in memory:
    those used last, up to `ROOM`, until the process ends. A verification has its task by itself.

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
        self._of_file = {str(task["id"]): task for task in tasks}  # without those replaced
        self._in_file = frozenset(self._of_file)
        # Of callers, those used last at the end. As JSON: objects may take twenty times as much.
        self._sent: OrderedDict[str, bytes] = OrderedDict()
        self._fetched: dict[str, Task] = {}  # what the last `fetch` has found in the store
        self._size = 0
        self._has_left = False

    def __len__(self) -> int:
        return len(self._of_file) + len(self._sent)

    def named(self, name: str) -> Task:
        """The task that a header names, as it is or percent-encoded.

        Raises
        ------
        BadInputError
            For an unknown one.
        """
        for id_ in (name, unquote(name)):
            if (task := self._known(id_)) is not None:
                return task
            if id_ in self._in_file:  # was replaced, and has left: no other takes its place
                break
        where = "" if self._store is not None else " since the gateway started"
        if self._has_left:
            where += (
                f"; or it was, and has left the memory, which has the tasks used last, up to "
                f"{ROOM >> 20} MiB: put it again"
            )
        raise BadInputError(
            f"x-gatekeeper-task: {name!r:.80} is unknown: it is not in the task file, and "
            f"was not put to /gatekeeper/tasks/ID{where}"
        )

    async def put(self, id_: str, data: Any) -> bool:
        """Add a task or replace it; whether it is new.

        Raises
        ------
        BadInputError
            As `checked`; for a new id that a header, which is decoded, could not name; and with a
            store for a task of the file, which other processes have.
        LogError
            If the store cannot be reached.
        """
        if id_ not in self._in_file and unquote(id_) != id_:
            raise BadInputError(
                f"id={id_!r:.80} looks percent-encoded, so that a header with it would name "
                f"{unquote(id_)!r:.80}: give the task an id without %XX"
            )
        task = self.checked(id_, data)
        if self._store is not None:
            if id_ in self._of_file:
                raise BadInputError(
                    f"task {id_!r} is in the task file, which all processes have read: give this "
                    "one another id"
                )
            return await asyncio.to_thread(self._store.put, id_, task)
        is_new = self._keep(id_, task)
        # The file's own must not come back.
        return self._of_file.pop(id_, None) is None and is_new

    def _keep(self, id_: str, task: Task) -> bool:
        """Add a task or replace it, and drop those that were not used for longest."""
        before = self._sent.pop(id_, None)
        text = json.dumps(dict(task)).encode()
        self._size += _size(text) - _size(before)
        self._sent[id_] = text
        while self._size > ROOM and len(self._sent) > 1:
            _, other = self._sent.popitem(last=False)
            self._size -= _size(other)
            self._has_left = True
        return before is None

    def _known(self, id_: str) -> Task | None:
        if (task := self._of_file.get(id_) or self._fetched.get(id_)) is not None:
            return task
        if (text := self._sent.get(id_)) is None:
            return None
        self._sent.move_to_end(id_)
        found: Task = json.loads(text)
        return found

    async def fetch(self, *names: str) -> None:
        """Look these up in the store, as another process may have put or replaced one of them.

        They are known until the next `fetch`, so for what the caller does without waiting.

        Raises
        ------
        LogError
            If the store cannot be reached.
        """
        if self._store is None:
            return
        found: dict[str, Task] = {}
        for name in dict.fromkeys([*names, *map(unquote, names)]):
            if name in self._of_file:
                continue
            task = await asyncio.to_thread(self._store.get, name)
            if task is not None:
                found[name] = task
        self._fetched = found

    def checked(self, id_: str, data: Any) -> Task:
        """A task that a caller sent: as in a task file, and the id and the prompt may be absent.

        Raises
        ------
        BadInputError
            For anything else, for a kind without a verifier, and for more than `CODE` characters
            of code.
        """
        if not isinstance(data, Mapping):
            raise BadInputError("a task is an object with 'kind', and 'tests' or 'gold'")
        if (length := _length_of_code(data)) > CODE:
            raise BadInputError(
                f"the task has {length} characters of code, and {CODE} are the limit here: put it "
                "into the gateway's task file"
            )
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
        names = id_, id_.rpartition(SEPARATOR)[0]
        await self.fetch(*names)
        return next(filter(None, map(self._known, names)), None)


def _size(text: bytes | None) -> int:
    """Bytes, roughly."""
    return 0 if text is None else OVERHEAD + len(text)


def _length_of_code(task: Mapping[str, Any]) -> int:
    """The length of what the sandbox parses, in characters."""
    tests = task.get("tests")
    texts = [task.get("test_setup_code"), *(tests if isinstance(tests, list) else ())]
    return sum(len(text) for text in texts if isinstance(text, str))
