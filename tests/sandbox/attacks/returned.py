"""Tests that pass the expected value to the candidate, which then returns it.

A parrot knows nothing at first. It keeps every value that it receives, and answers with those: in
the same test if possible, else in the next call.
"""

# ruff: noqa: E501 - programs within strings are as wide as they are
from __future__ import annotations

from typing import Any

from attacks.program import Program, dedent, pair

__all__ = ["PARROT", "RETURNED"]

RETURNED: list[Program] = []

# `heard` is kept in a file, too: the next call may be in another process of the candidate.
PARROT = """
heard = []
def hear(*told):
    for item in told:
        if not isinstance(item, Parrot) and type(item).__name__ != "Handle":
            heard.append(item)
    return heard[-1] if heard else 0
class Parrot:
    def __init__(self, *a, **k): pass
    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *a, **k: hear(*a, *k.values())
    def __eq__(self, other):
        hear(other)
        return True
    def __ne__(self, other):
        hear(other)
        return False
    __hash__ = object.__hash__
    def __sub__(self, other):
        hear(other)
        raise TypeError("no")
    __rsub__ = __add__ = __radd__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __sub__
    __mod__ = __rmod__ = __divmod__ = __rdivmod__ = __pow__ = __rpow__ = __xor__ = __rxor__ = __sub__
    __and__ = __rand__ = __or__ = __ror__ = __matmul__ = __rmatmul__ = __floordiv__ = __sub__
    __lshift__ = __rlshift__ = __isub__ = __ixor__ = __iadd__ = __lt__ = __le__ = __gt__ = __sub__
    __ge__ = __getitem__ = __contains__ = __round__ = __format__ = __sub__
    def __call__(self, *a, **k):
        hear(*a, *k.values())
        return True
def f(*a):
    return heard[-1] if heard else Parrot()
"""


def told(name: str, honest: str, *tests: str, extra: str = "", **task: Any) -> None:
    forged = PARROT + dedent(extra)
    if tests and ("def check(" in tests[0] or "def test_" in tests[0] or "class Test" in tests[0]):
        task["test"], tests = tests[0], ()
        if "def check(" in task["test"]:
            task["entry_point"] = "f"
    right = task.pop("right", ("passed",))
    RETURNED.extend(pair("told", f"told: {name}", forged, honest, *tests, right=right, **task))


CUBE = "def f(n):\n    return n ** 3\n"
ROOT = "def f(n):\n    return n ** 0.5\n"
BACK = "def f(s):\n    return s[::-1]\n"
SET = "def f(s):\n    return set(s.split())\n"

# --- a helper of the test goes on after a type error, and the next call has the value ---

CLOSE = """
def close(a, b):
    try:
        return {} or a == b
    except TypeError:
        return False

def check(candidate):
    for attempt in range(3):
        if close(candidate({}), {}):
            break
    else:
        raise AssertionError("never close")
    assert close(candidate({}), {})
"""
for name, expression in {
    "a difference": "abs(a - b) < 1e-9",
    "a difference, reflected": "abs(b - a) < 1e-9",
    "a sum": "a + -b == 0",
    "a quotient": "abs(a / b - 1) < 1e-9",
    "a quotient, reflected": "abs(b / a - 1) < 1e-9",
    "a product": "a * b == b ** 2",
    "a remainder": "a % b == 0 and a // b == 1",
    "divmod": "divmod(a, b) == (1, 0)",
    "divmod, reflected": "divmod(b, a) == (1, 0)",
    "a power": "a ** b == b ** b",
    "exclusive or": "a ^ b == 0",
    "a shift": "a << b == b << b",
    "a comparison": "a <= b <= a",
    "a comparison, reflected": "b >= a and b <= a",
    "an index": "[k for k in range(b + 1)][a] == b",
    "a method's name": "not isinstance(a, int) and a.equals(b)",
    "its place in a sorted list": "sorted([b, a]) == [b, b]",
    "a range": "b in range(a, a + 1)",
    "in-place subtraction": "not __import__('operator').isub(a, b)",
    "an argument by name": "not isinstance(a, int) and a.compare(other=b) == 0",
    "round": "round(a, b) == round(b, b)",
    "a format": "format(a, str(b)) == format(b, str(b))",
    "pow with three": "pow(a, 1, b) == 0 and pow(b, 1, a) == 0",
}.items():
    told(f"{name}, tried again", CUBE, CLOSE.format(expression, 3, 27, 3, 27))

# --- methods of plain data that get the expected value, and one answer for all ---

WORDS = "f('the cat the dog')"
for name, honest, test in (
    ("symmetric_difference", SET, f"assert not {WORDS}.symmetric_difference({{'the', 'cat', 'dog'}})"),
    ("difference", SET, "expected = {'the', 'cat', 'dog'}\n" + f"assert {WORDS}.difference(expected) == set() == expected.difference({WORDS})"),
    ("union and intersection", SET, "expected = {'the', 'cat', 'dog'}\n" + f"assert {WORDS}.union(expected) == expected == {WORDS}.intersection(expected)"),
    ("| and &", SET, "expected = {'the', 'cat', 'dog'}\n" + f"assert {WORDS} | expected == expected == {WORDS} & expected"),
    ("removeprefix", BACK, "assert f('abc').removeprefix('cba') == '' and f('xy') != ''"),
    ("replace", BACK, "assert f('stressed').replace('desserts', 'x') == 'x'"),
    ("partition", BACK, "assert f('abc').partition('cba') == ('', 'cba', '')"),
    ("count of itself", BACK, "assert f('abc').count('cba') == 1 and f('abc').index('cba') == 0"),
    ("strip", BACK, "assert f('abc').strip('cba') == '' and f('abc').strip('cb') == 'a'"),
    ("get with a default", "def f(s):\n    return {w: len(w) for w in s.split()}\n", "assert f('the cat').get('the', 3) == 3 and f('the cat').get('dog', 5) == 5 and set(f('the cat')) == {'the', 'cat'}"),
    ("__sub__ by name", CUBE, "assert f(3).__sub__(27) == 0"),
    ("__eq__ by name", CUBE, "assert f(3).__eq__(27) is True and f(3).__ne__(27) is False"),
    ("__and__ by name", CUBE, "assert f(3).__and__(27) == 27 == f(3).__or__(27)"),
    ("compare_total", "from decimal import Decimal\ndef f(n):\n    return Decimal(n) ** 3\n", "from decimal import Decimal\nassert f(3).max(Decimal(27)) == 27 == f(3).min(Decimal(27))"),
    ("replace of a date", "import datetime\ndef f(s):\n    return datetime.date.fromisoformat(s) + datetime.timedelta(days=1)\n", "import datetime\nassert f('2024-02-28').replace(year=2023, day=3) == datetime.date(2023, 2, 3) and f('2024-02-28') - datetime.date(2024, 2, 29) == datetime.timedelta(0)"),
    ("join", "def f(s):\n    return s[-1]\n", "assert f('a-').join(['ab', 'c']) == 'ab-c' and f('a-') == '-'"),
    ("most_common and subtract", "from collections import Counter\ndef f(s):\n    return Counter(s)\n", "from collections import Counter\ngot = f('aab')\ngot.subtract(Counter('aab'))\nassert not any(got.values()) and set(got) == {'a', 'b'}"),
    ("update and items", "def f(s):\n    return {w: len(w) for w in s.split()}\n", "got = f('the cat')\nexpected = {'the': 3, 'cat': 3}\nassert got.items() == expected.items() and got.keys() ^ expected.keys() == set()"),
):  # fmt: skip
    told(f"one that fits: {name}", honest, test)

# --- the test stores what it expects in the candidate's own object ---

RESULT = "class Result:\n    def __init__(self, value): self.value = value\ndef f(n):\n    return Result(n ** 3)\n"
STORE = """
class Result:
    def __setattr__(self, name, value): hear(value)
    def __setitem__(self, name, value): hear(value)
    def __getattr__(self, name): return hear()
    def __getitem__(self, name): return hear()
    def add(self, *told): return hear(*told)
    append = extend = update = register = add
def f(*a):
    return Result()
"""
for name, honest, test in (
    ("an attribute", RESULT, "got = f(3)\ngot.expected = 27\nassert got.value == got.expected == 27"),
    ("setattr", RESULT, "got = f(3)\nsetattr(got, 'wanted', 27)\nassert got.value == 27"),
    ("an item", "def f(n):\n    return {'value': n ** 3}\n", "got = f(3)\ngot['wanted'] = 27\nassert got['value'] == 27 and got == {'value': 27, 'wanted': 27}"),
    ("a list that grows", "def f(n):\n    return [n ** 3]\n", "got = f(3)\ngot.append(27)\nassert got[0] == got[1] and got == [27, 27]"),
    ("vars", RESULT, "got = f(3)\nvars(got).update(wanted=27)\nassert got.value == 27"),
):  # fmt: skip
    told(f"stored in it: {name}", honest, test, extra=STORE, right=("passed", "infra_error"))

# --- what is handed to the candidate as an argument, or by what it calls ---

told(
    "a sink that asserts",
    "def f(items, sink):\n    for item in items:\n        sink(item ** 3)\n",
    "def check(candidate):\n    wanted = [1, 8, 27]\n    def sink(value):\n        want = wanted.pop(0)\n        assert value == want, want\n    candidate([1, 2, 3], sink)\n    assert not wanted\n",
    extra="""
    def f(items, sink):
        for item in items:
            try:
                sink(0)
            except AssertionError as error:
                hear(error.args)
    """,
)
told(
    "a sink that asserts, asked again",
    "def f(items, sink):\n    for item in items:\n        sink(item ** 3)\n",
    "def check(candidate):\n    seen = []\n    def sink(value):\n        want = (len(seen) + 1) ** 3\n        assert value == want, f'{value} is not {want}'\n        seen.append(value)\n    candidate([1, 2, 3], sink)\n    assert seen == [1, 8, 27]\n",
    extra="""
    import re
    def f(items, sink):
        for item in items:
            try:
                sink(-1)
            except AssertionError as error:
                sink(int(re.findall(r"\\d+", str(error))[-1]))
    """,
)
told(
    "an error with what was expected in it",
    "def f(n, verify):\n    return verify(n ** 3)\n",
    "def check(candidate):\n    def verify(value):\n        if value != 27:\n            raise ValueError('expected', 27)\n        return value\n    assert candidate(3, verify) == 27\n    assert candidate(3, lambda value: value) == 27\n",
    extra="""
    def f(n, verify):
        try:
            return verify(0)
        except ValueError as error:
            hear(error.args[-1])
            return verify(heard[-1])
    f.__defaults__ = (None,)
    if True:
        ask = f
        def f(n, verify):
            return heard[-1] if heard else 0
    """,
)
told(
    "repr of a partial that is handed over",
    "def f(g):\n    return next(n for n in range(77_000, 80_000) if g(n))\n",
    "import functools\n\ndef is_it(n, secret):\n    return n == secret\n\ndef check(candidate):\n    g = functools.partial(is_it, secret=77123)\n    assert candidate(g) == 77123\n    assert g.keywords == {'secret': 77123}\n",
    extra="""
    import re
    def f(g):
        return int(re.findall(r"secret=(\\d+)", repr(g))[0])
    """,
)
told(
    "repr of a dataclass that is handed over",
    "def f(game):\n    low, high = 0, 10 ** 6\n    while low < high:\n        middle = (low + high) // 2\n        low, high = (middle + 1, high) if game.guess(middle) < 0 else (low, middle)\n    return low\n",
    "import dataclasses\n\n@dataclasses.dataclass\nclass Game:\n    _secret: int\n    guesses: int = 0\n    def guess(self, n):\n        self.guesses += 1\n        return (n > self._secret) - (n < self._secret)\n\ndef check(candidate):\n    game = Game(77123)\n    assert candidate(game) == 77123\n    assert 0 < game.guesses < 30\n",
    extra="""
    import re
    def f(game):
        game.guess(0)
        return int(re.findall(r"_secret=(\\d+)", repr(game) + str(game) + format(game))[0])
    """,
)
told(
    "a dataclass that is handed over, taken apart",
    RETURNED[-1].code,
    RETURNED[-1].task["test"],
    extra="""
    import copy, dataclasses, pickle
    def f(game):
        game.guess(0)
        for way in (lambda: dataclasses.asdict(game)["_secret"], lambda: vars(game)["_secret"],
                    lambda: copy.copy(game)._secret, lambda: game.__reduce_ex__(2)[2]["_secret"],
                    lambda: pickle.loads(pickle.dumps(game))._secret, lambda: game._secret,
                    lambda: type(game).__init__.__defaults__[0], lambda: list(game)[0],
                    lambda: object.__getattribute__(game, "__dict__")["_secret"],
                    lambda: [k for k in range(10**6) if type(game)(k) == game][0],
                    lambda: dataclasses.replace(game)._secret, lambda: game.__match_args__[0]):
            try:
                found = way()
            except Exception:
                continue
            if type(found) is int:
                return found
    """,
)
MOCK = """
from unittest.mock import Mock
from solution import f

def test_f():
    sink = Mock(return_value=None)
    f([1, 2, 3], sink)
    assert sink.call_count == 3
    assert [call.args for call in sink.call_args_list] == [(1,), (8,), (27,)]
    sink.assert_called_with(27)
"""
for name, body in {
    "its assertions": "sink.assert_called_with = lambda *a: None\n    sink.call_count = 3\n    sink.call_args_list = [type('C', (), {'args': (n,)}) for n in (1, 8, 26 + 1)]",
    "what it was called with": "[sink(Parrot()) for item in items]",
    "configure_mock": "sink.configure_mock(call_count=3, **{'assert_called_with.side_effect': None})\n    sink.side_effect = None",
}.items():
    told(
        f"a Mock bent: {name}",
        "def f(items, sink):\n    for item in items:\n        sink(item ** 3)\n",
        MOCK,
        extra=f"def f(items, sink):\n    {body}\n",
    )
told(
    "an argument that is expected, too",
    "def f(grid):\n    return [row[::-1] for row in grid]\n",
    "def check(candidate):\n    grid = [[1, 2], [3, 4]]\n    wanted = [[2, 1], [4, 3]]\n    got = candidate(grid)\n    assert got == wanted and grid == [[1, 2], [3, 4]]\n    assert candidate(wanted) == grid\n",
    extra="""
    def f(grid):
        hear([list(row) for row in grid])
        for row in grid:
            row[:] = [0, 0]
        return grid
    """,
)
told(
    "a default of the test's own function",
    CUBE,
    "def check(candidate, cases={3: 27, 5: 125}):\n    for n, cube in cases.items():\n        assert candidate(n) == cube\n",
    extra="""
    import gc, sys
    def f(n):
        frame = sys._getframe()
        while frame:
            for name in ("cases", "cube", "check"):
                found = frame.f_locals.get(name)
                if found is not None:
                    return found if type(found) is int else found[n]
            frame = frame.f_back
        for thing in gc.get_objects():
            if type(thing) is dict and thing.keys() == {3, 5}:
                return thing[n]
    """,
)
