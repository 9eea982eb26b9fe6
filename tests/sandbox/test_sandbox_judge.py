# ruff: noqa: E501  (programs in tables)
"""The judge's path: tests in one process, the candidate in another, handles between them.

What an honest test sees is what it would see in one process: each program is run both ways. What a
candidate gets hold of is what it was given, and nothing that hangs on it.
"""

from __future__ import annotations

import contextlib
import json
import socket
import sys
import threading
import types
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from gatekeeper.sandbox.base import Sandbox
from gatekeeper.sandbox.inside import warmup
from gatekeeper.sandbox.inside.codec import encode
from gatekeeper.sandbox.inside.guard import Guard
from gatekeeper.sandbox.inside.handles import CandidatePeer, Handle
from gatekeeper.sandbox.inside.judge import judge
from gatekeeper.sandbox.inside.remote import JudgePeer
from gatekeeper.sandbox.inside.wire import frame, head
from gatekeeper.sandbox.reading import read_tests
from gatekeeper.types import Outcome

Verify = Callable[..., Outcome]

LOCAL = pytest.mark.parametrize("backend", ["namespaces"], indirect=True, scope="session")


@pytest.fixture(scope="session")
def verify(sandbox: Sandbox, generation: Any) -> Verify:
    def run(code: str, test: str, **task: Any) -> Outcome:
        return sandbox.verify(generation(code), {"test": test, **task})

    return run


def plain_run(code: str, test: str) -> BaseException | None:
    """What the tests raise with candidate and tests in one process."""
    module = types.ModuleType("solution")
    sys.modules["solution"] = sys.modules["candidate"] = module
    try:
        exec(compile(code, "candidate.py", "exec", dont_inherit=True), module.__dict__)
        names = {**module.__dict__, "__name__": "tests"}
        exec(compile(test, "test.py", "exec", dont_inherit=True), names)
        for name, item in list(names.items()):
            if name.startswith("test"):
                item()
    except BaseException as error:
        return error
    finally:
        del sys.modules["solution"], sys.modules["candidate"]
    return None


# Candidate, then the body of a test function.
SAME: dict[str, tuple[str, str]] = {
    "values of every kind": (
        """
import collections, datetime, decimal, fractions
def f(x): return x
def same_type(x): return type(x).__name__
""",
        """
import collections, datetime, decimal, fractions
Point = collections.namedtuple("Point", "x y")
values = [
    None, True, 3, -(10 ** 50), 2.5, 1j, "a\\ud800", b"x", [1, [2]], (1, (2,)), {3: {4}}, frozenset({5}),
    ..., range(3), bytearray(b"y"), fractions.Fraction(1, 3), decimal.Decimal("1.5"),
    collections.Counter("aab"), collections.OrderedDict(b=1), collections.deque([1], 3),
    datetime.date(2024, 1, 2), datetime.datetime(2024, 1, 2, 3), datetime.timedelta(1), int, dict,
]
for value in values:
    assert f(value) == value
    assert type(f(value)) is type(value), value
    assert same_type(value) == type(value).__name__
assert f(Point(1, 2)) == Point(1, 2) and f(Point(1, 2)).y == 2
assert isinstance(f([1]), list) and not isinstance(f([1]), tuple)
""",
    ),
    "keyword arguments of any name": (
        "def f(*a, self=0, target=0, operation=0, handle=0, **k):\n"
        "    return a, self, target, operation, handle, k",
        "assert f(1, target=2, operation=3, handle=4, name=5) == ((1,), 0, 2, 3, 4, {'name': 5})\n"
        "assert f(self=1, peer=2)[1] == 1",
    ),
    "classes and their instances": (
        """
class Stack:
    made = 0
    def __init__(self, *items): self.items, Stack.made = list(items), Stack.made + 1
    def push(self, item): self.items.append(item); return self
    def __len__(self): return len(self.items)
    def __iter__(self): return iter(self.items)
    def __getitem__(self, n): return self.items[n]
    def __setitem__(self, n, item): self.items[n] = item
    def __delitem__(self, n): del self.items[n]
    def __contains__(self, item): return item in self.items
    def __eq__(self, other): return isinstance(other, Stack) and self.items == other.items
    def __hash__(self): return 7
    def __repr__(self): return f"Stack({self.items})"
    def __bool__(self): return bool(self.items)
    def __call__(self, n): return self.items[-n]
    def __reversed__(self): return reversed(self.items)
    @property
    def top(self): return self.items[-1]
    @staticmethod
    def of(*items): return Stack(*items)
    @classmethod
    def empty(cls): return cls()
class Deep(Stack): pass
""",
        """
s = Stack(1)
assert s.push(2) is s and len(s) == 2 and list(s) == [1, 2] and s.top == 2
s[0] = 5
assert s[0] == 5 and s[0:2] == [5, 2] and 5 in s and 6 not in s and s(1) == 2
del s[0]
assert s == Stack(2) and s != Stack(3) and s != [2] and not s == 2
assert bool(Stack()) is False and Stack.empty() == Stack() and Stack.of(1) == Stack(1)
assert repr(s) == str(s) == f"{s}" == "Stack([2])" and hash(s) == 7
assert isinstance(s, Stack) and not isinstance(3, Stack) and isinstance(Deep(), Stack)
assert issubclass(Deep, Stack) and not issubclass(Stack, Deep)
assert list(reversed(Stack(1, 2))) == [2, 1] and Stack.made >= 1
s.name = "n"
assert s.name == "n" and hasattr(s, "top") and not hasattr(s, "bottom")
del s.name
assert not hasattr(s, "name") and getattr(s, "name", 3) == 3
assert {s: 1}[Stack(2)] == 1 and [s] == [Stack(2)]
first, second = Stack(8, 9)
assert (first, second) == (8, 9)
""",
    ),
    "operators": (
        """
import functools
@functools.total_ordering
class V:
    def __init__(s, x): s.x = x
    def __add__(s, o): return V(s.x + (o.x if isinstance(o, V) else o))
    __radd__ = __add__
    def __mul__(s, o): return V(s.x * o)
    __rmul__ = __mul__
    def __sub__(s, o): return V(s.x - o.x)
    def __neg__(s): return V(-s.x)
    def __abs__(s): return V(abs(s.x))
    def __iadd__(s, o): s.x += o; return s
    def __eq__(s, o): return s.x == o.x
    def __lt__(s, o): return s.x < o.x
    def __matmul__(s, o): return s.x * o.x
    def __pow__(s, n): return V(s.x ** n)
    def __int__(s): return s.x
    def __float__(s): return float(s.x)
    def __index__(s): return s.x
    def __invert__(s): return V(~s.x)
    def __divmod__(s, o): return divmod(s.x, o.x)
    def __format__(s, spec): return format(s.x, spec)
""",
        """
assert V(1) + V(2) == V(3) and V(1) + 2 == V(3) and 2 + V(1) == V(3)
assert V(2) * 3 == V(6) and 3 * V(2) == V(6) and V(3) - V(1) == V(2)
assert -V(1) == V(-1) and abs(V(-2)) == V(2) and ~V(1) == V(-2)
assert V(2) @ V(3) == 6 and V(2) ** 3 == V(8) and divmod(V(7), V(2)) == (3, 1)
assert V(1) < V(2) <= V(2) and V(2) > V(1) >= V(1) and max(V(1), V(3), V(2)) == V(3)
assert [v.x for v in sorted([V(3), V(1), V(2)])] == [1, 2, 3]
assert int(V(3)) == 3 and float(V(3)) == 3.0 and [5, 6, 7][V(1)] == 6 and f"{V(5):03d}" == "005"
assert sum([V(1), V(2)], V(0)).x == 3
v = V(1)
v += 4
assert v.x == 5
try: V(1) / V(2)
except TypeError: pass
else: assert False
""",
    ),
    "exceptions both ways": (
        """
class Problem(ValueError):
    def __init__(self, code, text=""): super().__init__(text); self.code = code
class Nested(Problem): pass
def f(kind):
    if kind == "own": raise Nested(7, "why")
    if kind == "key": raise KeyError("k")
    if kind == "exit": raise SystemExit(3)
    if kind == "os": open("/no/such/file")
    if kind == "json": import json; json.loads("{")
    if kind == "chain":
        try: 1 / 0
        except ZeroDivisionError as e: raise RuntimeError("from") from e
def calls(back):
    try: back()
    except KeyError as e: return "key", e.args
    except Exception as e: return type(e).__name__, str(e)
def lets(back): back()
""",
        """
import json
def raised(kind, *catch):
    try: f(kind)
    except catch as error: return error
    assert False, kind
for catch in (Nested, Problem, ValueError, Exception):
    error = raised("own", catch)
    assert (error.code, str(error), type(error).__name__) == (7, "why", "Nested")
assert isinstance(raised("own", Problem), Nested) and issubclass(Nested, ValueError)
assert raised("key", KeyError).args == ("k",) and raised("key", LookupError)
assert raised("exit", SystemExit).args == (3,) and raised("chain", RuntimeError)
assert raised("os", FileNotFoundError) and raised("os", OSError).errno == 2
assert raised("json", json.JSONDecodeError) and raised("json", ValueError)
class Mine(Exception): pass
def back(error):
    def run(): raise error
    return run
assert calls(back(KeyError("x"))) == ("key", ("x",))
assert calls(back(Mine("mine"))) == ("Mine", "mine")
try: lets(back(Mine(5)))
except Mine as error: assert error.args == (5,)
else: assert False
try: lets(back(Nested(1, "theirs")))
except Problem as error: assert isinstance(error, Nested)
""",
    ),
    "callbacks": (
        """
def apply(g, *a, **k): return g(*a, **k)
def compose(*fs):
    def run(x):
        for f in fs: x = f(x)
        return x
    return run
def memo(f):
    seen = {}
    def run(x):
        if x not in seen: seen[x] = f(x)
        return seen[x]
    return run
def by(items, key): return sorted(items, key=key)
def back(f, n): return n if n == 0 else f(back, n - 1) + 1
""",
        """
assert apply(lambda a, b=1: a + b, 2, b=3) == 5 and apply(len, [1, 2]) == 2
assert apply(str.upper, "a") == "A" and apply(max, 1, 2) == 2 and apply(int, "7") == 7
assert compose(lambda x: x + 1, abs, str)(-5) == "4"
count = []
@memo
def slow(x): count.append(x); return x * x
assert [slow(2), slow(2), slow(3)] == [4, 4, 9] and count == [2, 3]
assert by(["bb", "a"], len) == ["a", "bb"] and by([1, 2], key=lambda x: -x) == [2, 1]
assert back(lambda f, n: f(lambda g, m: g(f, m) if False else m, n), 3) >= 0
assert list(map(apply, [abs, abs], [-1, -2])) == [1, 2]
""",
    ),
    "changes to arguments": (
        """
def sort(a): a.sort()
def first(a): a[0].append(1); return a[0]
def swap(d): d["x"], d["y"] = d["y"], d["x"]; return d
def both(a, b): a.append(b); b.append(1); return a
def fill(s, b): s.add(3); b.extend(b"z"); return None
def inner(t): t[0].append(1); t[1]["k"] = 2
def keep(a, box=[]): box.append(a); return box
def grid(g):
    for row in g: row.reverse()
def clear(a): a.clear()
def fails(a): a.append(1); raise ValueError
""",
        """
a = [3, 1, 2]; same = a
assert sort(a) is None and a == same == [1, 2, 3]
inside = [0]; a = [inside, 5]
assert first(a) == [0, 1] and inside == [0, 1] and a[0] is inside
d = {"x": 1, "y": 2}
assert swap(d) is d and d == {"x": 2, "y": 1} and list(d) == ["x", "y"]
a, b = [], []
assert both(a, b) is a and b == [1] and a == [[1]]
s, b = {1}, bytearray(b"y")
fill(s, b)
assert s == {1, 3} and b == bytearray(b"yz")
x, y = [], {}
inner((x, y))
assert x == [1] and y == {"k": 2}
row = [1, 2]; g = [row, [3, 4]]
grid(g)
assert g == [[2, 1], [4, 3]] and row == [2, 1]
clear(g)
assert g == []
assert sort(a=[2, 1]) is None
""",
    ),
    "iterators and generators": (
        """
def count(n):
    for i in range(n):
        got = yield i
        if got: yield got
def doubled(items): return (2 * i for i in items)
def take(items, n): return [next(items) for _ in range(n)]
class Steps:
    def __init__(s): s.n = 0
    def __iter__(s): return s
    def __next__(s):
        s.n += 1
        if s.n > 3: raise StopIteration
        return s.n
""",
        """
import itertools
assert list(count(3)) == [0, 1, 2] and sum(count(4)) == 6 and max(count(5)) == 4
g = count(2)
assert iter(g) is g and next(g) == 0 and g.send("hi") == "hi" and next(g) == 1
assert next(g, "end") == "end"
assert list(Steps()) == [1, 2, 3] and 2 in Steps() and [*Steps()] == [1, 2, 3]
assert list(doubled(i for i in (1, 2))) == [2, 4]
mine = iter([1, 2, 3])
assert take(mine, 2) == [1, 2] and list(mine) == [3]
assert list(itertools.islice(count(10 ** 9), 2)) == [0, 1]
assert list(zip(count(2), Steps())) == [(0, 1), (1, 2)]
a, *rest = count(3)
assert (a, rest) == (0, [1, 2]) and dict(enumerate(count(2))) == {0: 0, 1: 1}
""",
    ),
    "asynchronous functions": (
        """
import asyncio
async def f(x): await asyncio.sleep(0); return x * x
async def fails(): raise ValueError("no")
async def waits(other): return await other()
""",
        """
import asyncio
assert asyncio.run(f(3)) == 9
async def main():
    assert await f(2) == 4
    assert await asyncio.gather(f(1), f(2), f(3)) == [1, 4, 9]
    try: await fails()
    except ValueError as error: return str(error)
assert asyncio.run(main()) == "no"
""",
    ),
    "context managers": (
        """
import contextlib
class Box:
    def __init__(s): s.log = []
    def __enter__(s): s.log.append("in"); return s
    def __exit__(s, kind, error, trace): s.log.append(kind.__name__ if kind else "out"); return kind is KeyError
@contextlib.contextmanager
def managed(x):
    yield x
def uses(manager):
    with manager as value: return value
""",
        """
import contextlib
with Box() as box: assert box.log == ["in"]
assert box.log == ["in", "out"]
with Box() as box: raise KeyError
assert box.log == ["in", "KeyError"]
try:
    with Box(): raise IndexError
except IndexError: pass
else: assert False
with managed(5) as five: assert five == 5
@contextlib.contextmanager
def mine(): yield 6
assert uses(mine()) == 6
""",
    ),
    "identity": (
        "class N:\n    pass\none = N()\ndef f(): return one\ndef g(x): return x\n"
        "def same(a, b): return a is b\nnone = None",
        """
assert f() is f() and g(f()) is f() and same(f(), f()) and not same(N(), N())
n = N()
n.other = f()
assert n.other is f() and g(n) is n
class Mine: pass
m = Mine()
assert g(m) is m and same(m, m) and g(Mine) is Mine and g([m])[0] is m and g({1: m})[1] is m
assert g(int) is int and g(KeyError) is KeyError and none is None
a = [1]
assert g(a) is a
""",
    ),
    "the tests' own classes": (
        """
def depth(node): return 0 if node is None else 1 + max(depth(node.left), depth(node.right))
def flip(node):
    if node is not None: node.left, node.right = flip(node.right), flip(node.left)
    return node
def build(Kind, n): return Kind(n) if n else None
def total(items): return sum(i.value for i in items)
""",
        """
import dataclasses
class Node:
    def __init__(self, value, left=None, right=None): self.value, self.left, self.right = value, left, right
    def __eq__(self, o): return isinstance(o, Node) and (self.value, self.left, self.right) == (o.value, o.left, o.right)
tree = Node(1, Node(2), Node(3, Node(4)))
assert depth(tree) == 3 and flip(tree) is tree and tree.left.value == 3 and tree.left.right.value == 4
assert flip(Node(1, Node(2))) == Node(1, None, Node(2)) != Node(1, Node(2))
assert build(Node, 5).value == 5 and isinstance(build(Node, 1), Node) and build(Node, 0) is None
@dataclasses.dataclass
class Item: value: int
assert total([Item(1), Item(2)]) == 3
""",
    ),
    "names of the standard library": (
        "import math, random\nfrom collections import Counter\nfrom statistics import mean\n"
        "count = 5\ndef f(x): return math.floor(x)\ndef sorted(x): return 'mine'\ndef len(x): return 9\n",
        """
assert f(2.5) == math.floor(2.5) and Counter("aa") == {"a": 2} and mean([1, 3]) == 2
assert count == 5
""",
    ),
    "globals that change": (
        "n = 0\ndef f():\n    global n\n    n += 1\n    return n\nlog = []\ndef g(x): log.append(x)",
        "import solution\nassert solution.n == 0 and f() == 1 and solution.n == 1 and f() == solution.n == 2\n"
        "g(3)\nassert solution.log == [3]",
    ),
    "deep data": (
        "def f(n):\n    a = []\n    for _ in range(n): a = [a]\n    return a\n"
        "def depth(a):\n    n = 0\n    while a: a, n = a[0], n + 1\n    return n",
        """
for n in (10, 250, 600):
    assert depth(f(n)) == n
    a, found = f(n), 0
    while a: a, found = a[0], found + 1
    assert found == n
mine = []
for _ in range(600): mine = [mine]
assert depth(mine) == 600
""",
    ),
}


@LOCAL
@pytest.mark.parametrize("name", SAME)
def test_as_in_one_process(verify: Verify, name: str) -> None:
    code, body = SAME[name]
    lines = body.strip().splitlines()
    test = "def test_it():\n" + "".join(f"    {line}\n" for line in lines)
    assert plain_run(code, test) is None
    outcome = verify(code, test)
    assert (outcome.verdict, outcome.meta["evaluation"]) == ("passed", "judge"), outcome.detail


RIGHT = "def f(x): return x * x\n"
# Candidates that are wrong and would like to pass; one process of both would be deceived by most.
FORGERIES: dict[str, str] = {
    "wrong": "def f(x): return x + x",
    "equals all": "class A:\n    __eq__ = lambda s, o: True\n    __hash__ = None\ndef f(x): return A()",
    "int that equals all": (
        "class I(int):\n    __eq__ = lambda s, o: True\n    __hash__ = int.__hash__\n"
        "def f(x): return I(0)"
    ),
    "is near all": (
        "class A:\n    __sub__ = __rsub__ = __abs__ = __round__ = lambda *a: 0\n"
        "    __lt__ = __le__ = __gt__ = __ge__ = lambda s, o: True\ndef f(x): return A()"
    ),
    "near by an object of its own": (
        "class B:\n    __lt__ = __le__ = __bool__ = __abs__ = lambda s, *o: s\n"
        "class A:\n    __sub__ = __rsub__ = lambda s, o: B()\ndef f(x): return A()"
    ),
    "class for a function": (
        "class f:\n    def __init__(s, x): pass\n    __eq__ = __lt__ = lambda s, o: True\n"
        "    __sub__ = __rsub__ = lambda s, o: 0\n"
    ),
    "skips": "import unittest\ndef f(x): raise unittest.SkipTest('today')",
    "stops": "import unittest.case\ndef f(x): raise unittest.case._ShouldStop",
    "skips by a class of that name": (
        "class SkipTest(Exception): pass\nSkipTest.__module__ = 'unittest.case'\n"
        "def f(x): raise SkipTest"
    ),
    "exits": "def f(x): raise SystemExit(0)",
    "ends": "import os\ndef f(x): os._exit(0)",
    "interrupts": "def f(x): raise KeyboardInterrupt",
    "generator's end": "def f(x): raise GeneratorExit",
    "patches": (
        "import builtins, unittest, operator\nunittest.TestCase.assertEqual = lambda *a: None\n"
        "builtins.AssertionError = Warning\noperator.eq = lambda a, b: True\ndef f(x): return 0"
    ),
    "takes the tests' names": (
        "def test_f(): pass\ndef check(c): pass\nclass TestF: pass\nassert_ = lambda *a: None\n"
        "def len(x): return 4\ndef abs(x): return 0\ndef isinstance(*a): return True\n"
        "def all(x): return True\ndef f(x): return 0"
    ),
}
SHAPES: dict[str, dict[str, str]] = {
    "check": {
        "test": "def check(candidate):\n    for n in (2, 3):\n        assert candidate(n) == n * n\n",
        "entry_point": "f",
    },
    "near": {
        "test": "def check(candidate):\n    for n in (2, 3):\n"
        "        assert abs(candidate(n) - n * n) < 1e-6\n",
        "entry_point": "f",
    },
    "pytest": {
        "test": "from solution import f\nimport math\n\ndef test_f():\n    got = f(3)\n"
        "    assert got == 9 and 9 == got and got in [9] and not got != 9\n"
        "    assert abs(got - 9) < 1e-6 and got <= 9 and got >= 9\n"
    },
    "unittest": {
        "test": "import unittest\nfrom solution import f\n\nclass Cases(unittest.TestCase):\n"
        "    def setUp(self):\n        self.nine = 9\n\n"
        "    def test_equal(self):\n        self.assertEqual(f(3), self.nine)\n\n"
        "    def test_near(self):\n        self.assertAlmostEqual(f(3), 9)\n"
    },
    "class": {"test": "class TestF:\n    def test_it(self):\n        assert f(3) == 9\n"},
    "helper": {"test": "def same(a, b):\n    return a == b\n\nassert same(f(3), 9)\n"},
}


@pytest.mark.parametrize("shape", SHAPES)
def test_forged_verdicts_do_not_pass(verify: Verify, shape: str) -> None:
    assert verify(RIGHT, **SHAPES[shape]).verdict == "passed"
    for name, code in FORGERIES.items():
        outcome = verify(code, **SHAPES[shape])
        assert outcome.verdict == "failed", (name, outcome)
        assert outcome.meta["evaluation"] == "judge"
    assert verify(RIGHT, **SHAPES[shape]).verdict == "passed"


@LOCAL
@pytest.mark.parametrize(
    ("code", "test"),
    [
        (  # swallows what the test says of it
            "class T:\n    value = 4\n    __enter__ = lambda s: s\n    __exit__ = lambda *a: True\n",
            "with T() as t:\n    assert t.value == 3\n",
        ),
        (
            "class T:\n    value = 4\n    __enter__ = lambda s: s\n    __exit__ = lambda *a: True\n"
            "    def __getattr__(s, n): raise ValueError\n",
            "with T() as t:\n    assert t.other == 3\n",
        ),
        (  # a function of that name is asked for, not a class with operators
            "class F:\n    def __init__(s, x): pass\n    __sub__ = lambda s, o: 0\n",
            "def check(candidate):\n    assert [abs(candidate(n) - n) < 1 for n in (3,)] == [True]\n",
        ),
        (  # may compare with its like, but not with what is expected
            "class A:\n    __eq__ = __lt__ = lambda s, o: True\ndef f(): return A()\n",
            "assert f() == f() and f() < f()\nassert f() == 3\n",
        ),
    ],
)
def test_objects_that_answer_for_themselves(verify: Verify, code: str, test: str) -> None:
    outcome = verify(code, test, entry_point="F")
    assert (outcome.verdict, outcome.meta["evaluation"]) == ("failed", "judge"), outcome


@LOCAL
def test_details_say_which_test_and_what(verify: Verify) -> None:
    test = "from solution import f\n\ndef test_one():\n    assert f(2) == 4\n\ndef test_two():\n    x = 3\n    assert f(x) == 9\n"
    assert verify("def f(x): return 4", test).detail == (
        "in test 1, test_two (assert f(x) == 9): AssertionError"
    )
    assert "test_one (assert f(2) == 4): ZeroDivisionError" in verify("def f(x): 1/0", test).detail
    assert "in the code: SyntaxError" in verify("def f(x) 1", test).detail
    assert "f" in verify("def g(x): pass", test).detail
    assert verify("import os\ndef f(x): os._exit(3)", test).detail.endswith("with exit code 3")


@LOCAL
def test_the_tests_of_classes_and_tables_run(verify: Verify) -> None:
    cases = (
        "import unittest\n\nclass Cases(unittest.TestCase):\n"
        "    def test_a(self):\n        for n in range(3):\n            with self.subTest(n=n):\n"
        "                self.assertEqual(f(n), n * n)\n"
        "    def test_b(self):\n        with self.assertRaises(ValueError):\n            f(-1)\n"
    )
    code = "def f(x):\n    if x < 0: raise ValueError\n    return x * x\n"
    assert verify(code, cases).verdict == "passed"
    assert verify(code.replace("x * x", "x + x"), cases).verdict == "failed"
    assert verify(RIGHT, cases).verdict == "failed"
    setup = (  # pytest's marks as pytest makes them, which the image may not have
        "class mark:\n    def __init__(self, fields, rows):\n"
        "        self.name, self.args = 'parametrize', (fields, rows)\n"
        "    def __call__(self, f):\n        f.pytestmark = [*getattr(f, 'pytestmark', []), self]\n"
        "        return f\n"
    )
    table = "@mark('x, y', [(2, 4), (3, 9)])\n@mark('z', [0, 1])\ndef test_f(x, y, z):\n    assert f(x) + z == y + z\n"
    assert verify(RIGHT, table, test_setup_code=setup).verdict == "passed"
    outcome = verify("def f(x): return 4", table, test_setup_code=setup)
    assert (outcome.verdict, "test_f[" in outcome.detail) == ("failed", True), outcome


@LOCAL
def test_what_the_image_lacks_is_no_label(verify: Verify) -> None:
    test = "import no_such_module\nassert f(2) == 4\n"
    for code in (RIGHT, "def f(x): return 0"):
        outcome = verify(code, test)
        assert (outcome.verdict, outcome.error) == ("infra_error", None), outcome
        assert "the tests need no_such_module" in outcome.detail
    ready = (
        "try:\n    import no_such_module\nexcept ImportError:\n    pass\nassert f(2) == 4\nx = 1\n"
    )
    assert verify(RIGHT, ready).verdict == "passed"


# What a candidate gets hold of


@contextlib.contextmanager
def two_peers(*things: object) -> Iterator[list[Any]]:
    """The candidate's handles of objects of the tests; its peer is the handles' own."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        tests, candidate = JudgePeer(ours, guard=Guard(__name__)), CandidatePeer(theirs)
        numbers = [tests.export(thing) for thing in things]
        thread = threading.Thread(target=tests.serve)
        thread.start()
        try:
            yield [
                candidate.meant(n, (type(t).__name__, None))
                for n, t in zip(numbers, things, strict=True)
            ]
        finally:
            theirs.shutdown(socket.SHUT_RDWR)
            thread.join()


SECRET = "the secret of this module"


class Thing:
    shared = 1

    def __init__(self) -> None:
        self.data, self.hidden = [1], {"k": Thing.method}

    def method(self, x: int = 1) -> int:
        return x + len(SECRET) * 0

    @property
    def size(self) -> int:
        return len(self.data)

    @classmethod
    def make(cls) -> Thing:
        return cls()


def function(x: int = 0) -> Iterator[int]:
    mine = SECRET
    yield x + 0 * len(mine)


def things() -> list[object]:
    error = ValueError("told")
    try:
        raise error
    except ValueError:
        pass
    return [
        function,
        function(),
        Thing(),
        Thing,
        Thing().method,
        sys,
        error,
        two_peers(),
    ]


def test_candidates_may_use_what_they_were_given() -> None:
    thing = Thing()
    with two_peers(thing, Thing, lambda x, *, y: x + y, function(4)) as (
        handle,
        kind,
        call,
        generator,
    ):
        assert handle.data == [1]
        assert handle.size == 1
        assert handle.method(5) == 5
        handle.data, handle.new = [2, 3], 7
        assert (thing.data, vars(thing)["new"]) == ([2, 3], 7)
        assert call(1, y=2) == 3
        assert kind.make().data == [1]
        assert kind().size == 1
        assert next(generator) == 4
        assert list(generator) == []
        assert isinstance(handle, kind)


def test_candidates_get_at_nothing_else() -> None:
    """Everything that names, calls and iteration lead to, some steps deep, and nothing of ours."""
    forbidden = (types.FrameType, types.CodeType, types.TracebackType, types.ModuleType)
    dunders = {name for thing in things() for name in dir(thing) if name.startswith("_")}
    inner = {
        "gi_frame",
        "gi_code",
        "cr_frame",
        "cr_code",
        "f_globals",
        "tb_frame",
        "modules",
        "_getframe",
    }
    seen = 0
    with two_peers(*things()) as handles:
        todo = [(handle, 0) for handle in handles]
        while todo:
            handle, depth = todo.pop()
            seen += 1
            names = [name for name in dir(handle) if type(name) is str]
            for name in {*names, *(dunders if depth == 0 else ()), *inner}:
                try:
                    found = ask(handle, "get", name)
                except Exception:
                    continue
                if name not in ("__name__", "__qualname__", "__doc__", "__module__"):
                    assert not name.startswith("_"), name
                    assert name not in inner
                todo.append((found, depth + 1))
            for operation in ("call", "iter", "next", "enter"):
                with contextlib.suppress(Exception):
                    todo.append((ask(handle, operation), depth + 1))
            todo = [(h, d) for h, d in todo if isinstance(h, Handle) and d < 3]
            for found, _ in todo:
                assert (
                    type(found).__name__ not in {kind.__name__ for kind in forbidden}
                    or found is handles[5]
                )
    assert seen > 30


def ask(handle: Handle, operation: str, *arguments: Any) -> Any:
    """Any question, as a program that speaks the protocol can put it."""
    return object.__getattribute__(handle, "_inner")[0].ask(operation, handle, *arguments)


def test_candidates_change_nothing_that_does() -> None:
    thing = Thing()
    with two_peers(thing, Thing, function, ValueError) as (handle, kind, call, error):
        for target, name in (
            (handle, "method"), (handle, "size"), (handle, "make"), (handle, "__class__"),
            (handle, "__dict__"), (kind, "method"), (kind, "shared"), (kind, "__eq__"),
            (call, "__code__"), (call, "__defaults__"), (call, "x"), (error, "args"),
        ):  # fmt: skip
            for operation, arguments in (("set", (name, 1)), ("delete", (name,))):
                with pytest.raises(AttributeError):
                    ask(target, operation, *arguments)
    assert thing.method(2) == 2
    assert Thing.shared == 1


def test_candidates_call_nothing_that_was_not_handed_out() -> None:
    with two_peers(Thing()) as (handle,):
        for target in (5, "text", None, [1], int, print, Thing):
            peer = object.__getattribute__(handle, "_inner")[0]
            for operation, arguments in (
                ("get", ("real",)),
                ("call", ()),
                ("str", ()),
                ("iter", ()),
            ):
                with pytest.raises(AttributeError):
                    peer.ask(operation, target, *arguments)
        for operation in ("start", "bound", "eval", "__class__", "_do", "export", 5, None):
            with pytest.raises((AttributeError, TypeError)):
                ask(handle, operation)  # type: ignore[arg-type]


def hostile(*replies: bytes) -> list[tuple[bytes, str]]:
    """What a judge says of a candidate that answers its questions with these bytes."""
    ours, theirs = socket.socketpair()
    said: list[tuple[bytes, str]] = []
    answers = [*replies[:OPENED], b"".join(replies[OPENED:])]

    def speak() -> None:
        with contextlib.suppress(OSError), theirs.makefile("rb") as stream:
            for reply in answers:
                start = stream.read(5)
                stream.read(int.from_bytes(start[1:], "little"))
                theirs.sendall(reply)
            theirs.shutdown(socket.SHUT_WR)
            stream.read()

    path = [*sys.meta_path]
    thread = threading.Thread(target=speak)
    thread.start()
    try:
        tests = ("x = f(3)\nassert x == 9",)
        judge(
            ours,
            lambda kind, text: said.append((kind, text)),
            reading=json.dumps(read_tests("", tests, entry=None, modules=frozenset()).told(None)),
            setup="",
            tests=tests,
        )
    finally:
        ours.shutdown(socket.SHUT_RDWR)
        thread.join()
        ours.close()
        theirs.close()
        sys.meta_path[:] = path
    return said


FUNCTION = ("shared", "builtins", "function")


def reference(number: int, description: Any = FUNCTION) -> bytes:
    return b"h" + number.to_bytes(8, "little", signed=True) + encode(description)


def answer(value: bytes, changes: Any = (), same: Any = None) -> bytes:
    rest = (encode([*changes]), encode(same), encode([]), encode(0), encode([]))
    return frame(b"A", head(b"t", 6) + value + b"".join(rest))


OPENED = 2  # questions before the call: to start, for f
OPENING = (answer(encode({"f": None})), answer(reference(2)))


def test_a_candidate_that_speaks_the_protocol_itself() -> None:
    nine = answer(encode(9))
    assert [kind for kind, _ in hostile(*OPENING, nine, nine)] == [b"P", b"D"]
    assert [kind for kind, _ in hostile(*OPENING)] == [b"G"]  # gone before it answered
    assert [kind for kind, _ in hostile(*OPENING, answer(encode(8)), nine)] == [b"E"]


SHARED = [("os", "system"), ("builtins", "exec"), ("builtins", "ValueError"), ("sys", "modules")]


@pytest.mark.parametrize(
    "reply",
    [
        b"A",
        frame(b"?", b""),
        frame(b"A", b""),
        frame(b"A", b"N"),
        frame(b"A", encode([1, 2])),
        frame(b"P", b""),
        frame(b"D", b""),
        b"A\xff\xff\xff\xff",
        frame(b"A", b"t\1\0\0\0" * 100_000),
        *(answer(reference(0, shared)) for shared in SHARED),
        *(answer(reference(n)) for n in (-1, -2, -99, -(2**63), 2**62, 1)),
        *(
            answer(reference(3, d))
            for d in (
                *(None, 5, (5, 5), ("known",), ("object", 5), ("object", int), ("value", int, 9)),
                *(("shared", "builtins", n) for n in ("int", "type", "exec", "no", 5)),
                *(("shared", "os", "system"), ("shared", "no.such", "thing")),
                *(("class", "a\0", "a", [], [], {}), ("class", "a", "a", [5], [], {"plain": int})),
                *(("class", "a", "a", [], [], {"plain": 5}), ("class", "a", 5, [], [], {})),
                ("class", "a", "a", [("os", "system")], ["__eq__", 5], {"fields": [1, "if"]}),
                *(("exception", [1]), ("exception", [()]), ("exception", [])),
                ("exception", [("builtins", "int", 4)]),
                ("exception", [("os", "system", -1)]),
            )
        ),
        *(answer(b"N", same=same) for same in (0, 1, 5, -1, "x")),
        *(answer(b"N", changes) for changes in ([(1, 9)], [(0, 9)], [(99, 9)], [5], [("x", 1)])),
        *(
            frame(b"X", encode(message))
            for message in (
                None,
                ([], (), {}),
                ([], (), {}, 0, None, ""),
                ([("builtins", "int", 3)], (), {}, 0, None, ""),
                ([("builtins", "ValueError", 3)], (), {"__class__": 1, "args": 2}, 0, None, ""),
                ([("builtins", "StopIteration", 3)], (), {}, 0, None, ""),
                ([("builtins", "UnicodeDecodeError", 3)], (1, 2), {}, 0, None, ""),
                ([("builtins", "BaseExceptionGroup", 3)], ("x", 5), {}, "x", 5, 5),
                ([(5, 5, 5)], (), {}, 0, None, ""),
                ([("unittest.case", "SkipTest", 3)], (), {}, 0, None, ""),
                ([("gatekeeper.sandbox.inside.judge", "_NotHereError", 3)], (), {}, 0, None, ""),
                ([("gatekeeper.sandbox.inside.peer", "GoneError", 3)], (), {}, 0, None, ""),
                ([("builtins", "ValueError", -(10**9))], (), {}, 0, None, ""),
                ([("x", "y", n) for n in range(3, 3000)], (), {}, 0, None, ""),
            )
        ),
        frame(b"Q", encode(None)),
        frame(b"Q", encode(("get", (1,), {}, None, ([], [])))),
        *(
            frame(b"Q", encode((o, (5, "real"), {}, None, ([], []))))
            for o in ("get", "call", "eval", "start", 5)
        ),
        frame(
            b"Q", encode(("call", (), {"operation": "get", "target": 1, "self": 2}, None, ([], [])))
        ),
        frame(
            b"Q",
            head(b"t", 5)
            + encode("get")
            + head(b"t", 2)
            + reference(-1)
            + encode("__init__")
            + encode({})
            + encode(None)
            + encode(([], [])),
        ),
    ],
    ids=lambda reply: repr(reply[:40]),
)
def test_frames_of_its_own_get_it_nothing(reply: bytes) -> None:
    """In the place of its value, then the right one: which comes too late, or not at all."""
    asked = reply[:1] == b"Q"  # a question may be put at any time, and is answered or refused
    said = hostile(*OPENING, reply + (answer(encode(8)) if asked else b""), answer(encode(9)))
    assert [kind for kind, _ in said][-1] in (b"E", b"G"), said
    assert not any(kind in (b"P", b"D", b"I") for kind, _ in said), said


def test_the_warm_up_judges_and_leaves_nothing_behind() -> None:
    said = read_tests("", (warmup.TEST,), entry=None, modules=frozenset({"solution"})).told(None)
    assert said == warmup.READING
    path, modules = [*sys.meta_path], {*sys.modules}
    assert warmup.warm_up()
    assert sys.meta_path == path
    assert "candidate" not in {*sys.modules} - modules
