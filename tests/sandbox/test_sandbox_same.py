# ruff: noqa: E501  (programs in tables)
"""The judge's path: an honest test observes the same as in one process with the candidate.

Each program is run both ways.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable

import pytest

from gatekeeper.types import Outcome

LOCAL = pytest.mark.parametrize("backend", ["namespaces"], indirect=True, scope="session")


def plain_run(code: str, test: str) -> BaseException | None:
    """The error that the tests raise with candidate and tests in one process; None: none."""
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
    "contexts of decimal numbers": (
        "from decimal import Decimal\ndef f(a, b): return Decimal(a) / b",
        """
import decimal
from decimal import Decimal, localcontext
with localcontext() as context:
    context.prec, context.rounding = 3, decimal.ROUND_DOWN
    assert f(2, 3) == Decimal("0.666")
    context.traps[decimal.DivisionByZero] = False
    assert f(1, 0) == Decimal("Infinity")
assert len(str(f(2, 3))) == 30
decimal.setcontext(decimal.Context(prec=4))
assert f(2, 3) == Decimal("0.6667")
decimal.setcontext(decimal.DefaultContext)
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
def test_as_in_one_process(verify: Callable[..., Outcome], name: str) -> None:
    code, body = SAME[name]
    lines = body.strip().splitlines()
    test = "def test_it():\n" + "".join(f"    {line}\n" for line in lines)
    assert plain_run(code, test) is None
    outcome = verify(code, test)
    assert (outcome.verdict, outcome.meta["evaluation"]) == ("passed", "judge"), outcome.detail
