"""Threads parse Python at once."""

from __future__ import annotations

import ast
import gc
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from gatekeeper.io.syntax import dedent, parse_python

SOURCE = "def f(x):\n" + "".join(f"    g[{n}] = [x, {{'a': (x, {n} * -x)}}]\n" for n in range(50))


class Garbage:
    """When it is garbage-collected, in the middle of a parse, it lets another thread run."""

    def __init__(self) -> None:
        self.own = self

    def __del__(self) -> None:
        time.sleep(0)


@pytest.fixture
def busy_collector() -> Iterator[None]:
    before = gc.get_threshold()
    gc.set_threshold(20)
    yield
    gc.set_threshold(*before)


@pytest.mark.usefixtures("busy_collector")
def test_a_thread_does_not_break_the_parsing_of_another() -> None:
    """With `ast.parse` alone about one call in 300 fails on Python 3.11."""

    def work(_: int) -> str:
        Garbage()
        return ast.dump(parse_python(SOURCE))

    with ThreadPoolExecutor(6) as threads:
        assert set(threads.map(work, range(600))) == {ast.dump(ast.parse(SOURCE))}


def test_code_that_parses_without_the_lock_is_no_reason_to_fail(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    parse, calls = ast.parse, []

    def break_off(source: str) -> ast.Module:
        calls.append(source)
        if len(calls) < 3:
            raise SystemError("AST constructor recursion depth mismatch (before=42, after=34)")
        return parse(source)

    monkeypatch.setattr(ast, "parse", break_off)
    assert ast.dump(parse_python("a")) == ast.dump(parse("a"))
    assert len(calls) == 3


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("", ""),
        ("x = 1\n", "x = 1\n"),
        ("  if x:\n    y\n", "if x:\n  y\n"),
        ("\tx\n\n\ty", "x\n\ny"),
        ("\t x\n\t\ty", " x\n\ty"),
        ('x = """\n   \n"""', 'x = """\n   \n"""'),
        ('  x = """\n \n    \n  """', 'x = """\n \n  \n"""'),
    ],
)
def test_common_indentation_is_removed(source: str, expected: str) -> None:
    assert dedent(source) == expected
