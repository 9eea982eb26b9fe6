"""Long tests are read in another process, as short ones are here."""

from __future__ import annotations

import ast
import asyncio
import operator
import threading
from typing import Any

import pytest
from test_sandbox_service import Make

from gatekeeper.errors import BadInputError
from gatekeeper.sandbox import LocalSandbox, apart
from gatekeeper.sandbox.apart import ApartError
from gatekeeper.sandbox.suite import Suite, read_suite
from gatekeeper.types import Verdict

PROGRAM = """
def check(candidate):
    assert candidate(2) == 3
    assert candidate([1.5]) != {"a": (None, ...)}
"""
TASKS: list[dict[str, Any]] = [
    {"tests": ["assert f(1) == [1, 'a', None]", "assert not f(2) in (1, 2)"]},
    {"tests": ["assert abs(f(1) - 0.5) < 1e-6", "assert 3 not in f(2)", "assert f(3)"]},
    {"tests": ["x = f(1)\nassert x > 2"], "test_setup_code": "import math\ny = 3"},
    {"tests": ["from unknown import f\nassert [f(1)] == [2]"]},
    {"test": PROGRAM, "prompt": "import math\ndef f(x):\n", "entry_point": "f", "other": print},
]


def told(suite: Suite) -> dict[str, Any]:
    """All of a suite; for each test what it makes of a value."""
    found = {name: getattr(suite, name) for name in Suite.__slots__ if name != "literal"}
    values = (0, 1, 3, 0.5, [1, "a", None], {"a": (None, ...)}, [3], None, True)

    def holds(test: Any, value: object) -> object:
        try:
            return test.holds(value)
        except TypeError:
            return TypeError

    tests = [
        (test.source, test.call, test.names, [holds(test, value) for value in values])
        for test in suite.literal
    ]
    return found | {"literal": tests}


@pytest.mark.parametrize("task", TASKS)
def test_a_suite_is_the_same(task: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    here = read_suite("a", task)
    monkeypatch.setattr(apart, "LONG", 0)
    there = read_suite("a", task)
    assert told(there) == told(here)
    modules = ["math"]
    assert told(there.where(modules)) == told(here.where(modules))
    assert (there.where(modules) is not there) == ("unknown" in str(task))


def test_an_error_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    unsendable = {"test": PROGRAM, "entry_point": "f", "prompt": lambda: 0}
    for task in ({"tests": ["assert f("]}, {"tests": []}, {"test": "f()"}, unsendable):
        with pytest.raises(BadInputError) as here:
            read_suite("a", task)
        with monkeypatch.context() as patch:
            patch.setattr(apart, "LONG", 0)
            with pytest.raises(BadInputError) as there:
                read_suite("a", task)
        assert str(there.value) == str(here.value)


def test_no_verdict_without_the_other_process(
    generation: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(apart, "LONG", 0)
    monkeypatch.setattr(apart, "_BOOTSTRAP", "import os; os.abort()")
    with pytest.raises(ApartError, match="ended with -6"):
        apart.apart(operator.neg, 2, texts=[])
    with LocalSandbox(workers=1) as sandbox:
        outcome = sandbox.verify(generation("def f(): return 1"), {"tests": ["assert f() == 1"]})
    assert outcome.verdict is Verdict.INFRA_ERROR
    assert "the process that reads them ended with -6" in outcome.detail


def test_no_event_loop_waits(generation: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """The parser holds the interpreter's lock: this process parses nothing long, and the thread of
    the loop reads nothing at all.
    """
    task = {"tests": ["f()\n" * (1 << 14) + "assert f() == 1"]}
    wrong, threads, parse = generation("def f(): return 2"), set[int](), ast.parse

    def parsed(source: str, *given: Any, **more: Any) -> Any:
        assert len(source) < apart.LONG
        threads.add(threading.get_ident())
        return parse(source, *given, **more)

    async def main(sandbox: LocalSandbox) -> Verdict:
        return (await sandbox.averify(wrong, task)).verdict

    with LocalSandbox(workers=1) as sandbox, monkeypatch.context() as patch:
        patch.setattr(ast, "parse", parsed)
        assert asyncio.run(main(sandbox)) is Verdict.FAILED
    assert threading.get_ident() not in threads
