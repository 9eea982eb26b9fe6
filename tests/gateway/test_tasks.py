"""Tasks of callers in memory: which stay, and what a call for one that has left gets."""

from __future__ import annotations

import asyncio
import tracemalloc

import openai
import pytest
from running_gateway import running_gateway
from scripted_upstream import ScriptedUpstream
from test_verdicts import TASK, answers, call, client_of, get

from gatekeeper.errors import BadInputError
from gatekeeper.gateway import tasks as module
from gatekeeper.gateway.tasks import Tasks


@pytest.fixture(autouse=True)
def room_for_four(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "OVERHEAD", 1 << 18)
    monkeypatch.setattr(module, "ROOM", (1 << 20) + (1 << 16))


def put(tasks: Tasks, id_: str, gold: str) -> bool:
    return asyncio.run(tasks.put(id_, {"kind": "math", "gold": gold}))


def test_tasks_used_last_stay() -> None:
    """A call for one that has left is an error that says so, and works once it was put again."""
    with (
        ScriptedUpstream(answers) as upstream,
        running_gateway(upstream.url) as gateway,
        client_of(gateway) as client,
    ):

        def sent(name: str) -> int:
            return get(f"{gateway.url}/gatekeeper/tasks/{name}", method="PUT", data=TASK)[0]

        def verdict(name: str) -> str | None:
            headers = {"x-gatekeeper-task": name}
            return call(client, headers=headers, wait="verdict").headers["x-gatekeeper-verdict"]

        assert [sent(f"t{i}") for i in range(4)] == [201] * 4
        assert verdict("t0") == "passed"
        assert sent("t4") == 201
        for name in ("t0", "t2", "t3", "t4"):
            assert verdict(name) == "passed"
        with pytest.raises(openai.BadRequestError, match=r"'t1' is unknown.*put it again"):
            verdict("t1")
        assert sent("t1") == 201
        assert verdict("t1") == "passed"
        assert len(gateway.tasks) == 4


def test_no_other_task_takes_the_place_of_one_that_has_left() -> None:
    """Not the one that a task of the file had before, nor one whose id is the decoded name, which
    a header could mean as well.
    """
    tasks = Tasks([{"id": "f", "prompt": "", **TASK}], kinds=["math"])
    assert not put(tasks, "f", "new")
    assert tasks.named("f")["gold"] == "new"
    with pytest.raises(BadInputError, match=r"^id='a%20b' looks percent-.* name 'a b': give"):
        put(tasks, "a%20b", "other")
    for id_ in ("100%", "a b", "c", "d"):
        assert put(tasks, id_, id_)
        assert tasks.named(id_)["gold"] == id_
    for name in ("a b", "a%20b"):
        assert tasks.named(name)["gold"] == "a b"


def test_what_is_larger_than_the_room_stays_until_the_next() -> None:
    tasks = Tasks(kinds=["math"])
    for id_ in ("a", "b"):
        put(tasks, id_, "7" * module.ROOM)
        assert tasks.named(id_)["id"] == id_
        assert len(tasks) == 1


def test_the_room_is_that_of_the_memory() -> None:
    """Whatever the tasks consist of, and whether or not they replace those of the file."""
    file = [{"id": f"f{i}", "prompt": "", **TASK} for i in range(9)]
    tasks = Tasks(file, kinds=["math"])
    lists: dict[str, object] = {"kind": "math", "gold": "7", "more": [[] for _ in range(1 << 16)]}
    tracemalloc.start()
    try:
        for task in file:
            assert not asyncio.run(tasks.put(str(task["id"]), lists))
        used = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert used < 2 * module.ROOM
    assert 1 <= len(tasks) < 4
    assert tasks.named("f8")["more"] == lists["more"]
    with pytest.raises(BadInputError, match=r"'f0' is unknown.*put it again"):
        tasks.named("f0")


def test_no_other_takes_the_place_of_a_task_of_the_file_that_has_left() -> None:
    names = ("a%20b", "a b")
    tasks = Tasks(
        [{"id": id_, "prompt": "", "kind": "math", "gold": id_} for id_ in names], kinds=["math"]
    )
    for id_ in ("a%20b", "1", "2", "3", "4"):
        put(tasks, id_, "new")
    with pytest.raises(BadInputError, match="'a%20b' is unknown"):
        tasks.named("a%20b")
    assert tasks.named("a b")["gold"] == "a b"
    assert put(tasks, "a%20b", "newer")
    assert tasks.named("a%20b")["gold"] == "newer"
