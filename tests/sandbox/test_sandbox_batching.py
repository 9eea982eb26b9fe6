"""Loops of many calls: batched only if that makes no difference."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

import pytest

from gatekeeper.sandbox.inside.batching import BATCHER, CHUNK, FIRST, batched
from gatekeeper.types import Outcome

ROUNDS = FIRST + 2 * CHUNK + 3


def is_changed(source: str) -> bool:
    program = ast.parse(source)
    batched(list(ast.walk(program)))
    return BATCHER in ast.unparse(program)


@pytest.mark.parametrize(
    "body",
    [
        "assert f(n) == n % 7",
        "total += n\n    assert counter.add(n) == total",
        "got = f(n, [n], -1)\n    assert got == str(n)",
        "f(n)",
    ],
)
def test_loops_that_can_be_asked_at_once(body: str) -> None:
    assert is_changed(f"for n in range(9):\n    {body}\n")


@pytest.mark.parametrize(
    "source",
    [
        "for n in numbers:\n    assert f(n) == n",  # whose next one the body may decide
        "for n in range(9):\n    assert f(n) == g(n)",  # two calls: which comes first?
        "for n in range(9):\n    m = m + 1\n    assert f(m) == n",  # the body changes an argument
        "for n in range(9):\n    m += 1\n    assert f(m) == n",
        "for n in range(9):\n    if n > 3:\n        assert f(n) == n",  # not for each n
        "for n in range(9):\n    assert n > 3 or f(n) == n",
        "for n in range(9):\n    assert 0 < n < f(n)",
        "for n in range(9):\n    assert f(n) == n\n    break",
        "for n in range(9):\n    f = f(n)",
        "for n in range(9):\n    assert f(n).real == 3, message(n)",
        "for n in range(9):\n    assert f(key=n) == n",
        "for n in range(9):\n    assert f(*n) == n",
        "for n in range(9):\n    assert f(a.b) == n",  # anything may hang on an attribute
        "for n in range(9):\n    try:\n        f(n)\n    except ValueError:\n        pass",
    ],
)
def test_loops_that_stay_as_they_are(source: str) -> None:
    assert not is_changed(source)


CANDIDATE = f"""
seen = []
def f(n):
    seen.append(n)
    if n == {ROUNDS}:
        raise KeyError(n)
    if n == {FIRST + 7}:
        return [n]
    return n * n
def late(n):
    return f(n)
class Counter:
    total = 0
    def add(self, n):
        self.total += n
        return self.total
"""
TEST = f"""
import solution
def test_order():
    expected = []
    for n in range({ROUNDS}):
        got = late(n)
        expected.append(got)
    assert expected == [[n] if n == {FIRST + 7} else n * n for n in range({ROUNDS})]
    assert solution.seen == list(range({ROUNDS}))
def test_state():
    counter, total = Counter(), 0
    for n in range({ROUNDS}):
        total += n
        assert counter.add(n) == total
def test_failure():
    n = 0
    try:
        for n in range({ROUNDS + 50}):
            late(n)
    except KeyError as error:
        assert (n, error.args) == ({ROUNDS}, ({ROUNDS},))
    else:
        assert False
    wrong = 0
    for n in range({ROUNDS}):
        wrong += f(n) == n + 1
    assert wrong == 0
"""


def test_results_are_those_of_calls_one_by_one(
    sandbox: Any, generation: Callable[..., Any]
) -> None:
    def verdict(code: str) -> Outcome:
        outcome: Outcome = sandbox.verify(generation(code), {"test": TEST})
        return outcome

    outcome = verdict(CANDIDATE)
    assert outcome.verdict == "passed", outcome.detail
    for n in (3, FIRST - 1, FIRST, FIRST + 8, FIRST + CHUNK, ROUNDS - 1):  # one wrong value each
        spoilt = CANDIDATE.replace("    return n * n", f"    return n * n + (n == {n})")
        assert verdict(spoilt).verdict == "failed", n


SEEN = f"""
class Box:
    items = []
def test_callbacks():
    out, count = [], 0
    def note(n):
        nonlocal count
        count += 1
    for listen in (out.append, note):
        notify(listen)
        for n in range({ROUNDS}):
            got = step(n)
            assert got == n
            assert len(out) + count == n + 1 + {ROUNDS} * (count > 0)
def test_parts():
    inner = []
    table = {{"inner": inner}}
    for kept in (inner, Box.items):
        notify(None)
        keep(kept)
        for n in range({ROUNDS}):
            assert step(n) == n
            assert len(table["inner"]) == min(n + 1 + {ROUNDS} * len(Box.items), {ROUNDS})
    assert Box.items == inner
"""
STEPS = """
listen, kept = None, []
def notify(function):
    global listen, kept
    listen, kept = function, []
def keep(items):
    global kept
    kept = items
def step(n):
    if listen is not None:
        listen(n)
    kept.append(n)
    return n
"""


def test_a_body_that_sees_what_the_candidate_changes(verify: Callable[..., Outcome]) -> None:
    outcome = verify(STEPS, SEEN)
    assert outcome.verdict == "passed", outcome.detail
    late = STEPS.replace("listen(n)", f"[listen(m) for m in range({ROUNDS}) if n == m != {FIRST}]")
    for wrong in (late, STEPS.replace("kept.append(n)", f"kept.append(n) if n != {FIRST} else 0")):
        assert verify(wrong, SEEN).verdict == "failed"
