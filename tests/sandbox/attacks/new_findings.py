"""Forgeries and misjudged honest programs that a review of the judge found."""

# ruff: noqa: E501 - programs within strings are as wide as they are
from __future__ import annotations

from attacks.program import Program, attack, pair, shape

__all__ = ["FINDINGS"]

FINDINGS: list[Program] = []


def forged(name: str, lie: str, honest: str, test: str, **task: str) -> None:
    FINDINGS.extend(pair("forged", f"found: {name}", lie, honest, test=test, **task))


def right(name: str, code: str, test: str, **task: str) -> None:
    FINDINGS.append(shape(f"found: {name}", code, test=test, **task))


# --- a name that the candidate claims to have imported from Python ---

OWNED = '''
import pickle
TAKE = """
import sys
frame = sys._getframe()
while frame and frame.f_code.co_name != "judge":
    frame = frame.f_back
send = frame.f_locals["send"]
send(b"P", "")
send(b"D", "")
import os
os._exit(0)
"""
class Payload:
    def __reduce__(self):
        return exec, (TAKE,)
def dumps(x):
    return pickle.dumps(Payload())
'''
PAIRED = "import json\ndef dumps(x):\n    return json.dumps(x).encode()\n"
for name, load in {
    "imported": "from pickle import loads",
    "bound": "loads = pickle.loads",
    "claimed": "class Loads:\n    __module__ = 'pickle'\nloads = Loads()",
}.items():
    forged(
        f"the tests unpickle, {name}",
        OWNED + load,
        PAIRED + "def loads(x):\n    return json.loads(x)\n",
        "from solution import dumps, loads\n\ndef test_there_and_back():\n    assert loads(dumps([1, 2])) == [1, 2]\n",
    )
forged(
    "the tests unpickle, of a module",
    OWNED + "codec = pickle\n",
    PAIRED + "class codec:\n    loads = staticmethod(json.loads)\n",
    "import solution\n\ndef test_there_and_back():\n    data = solution.dumps([1, 2])\n    assert solution.codec.loads(data) == [1, 2]\n",
)
for name, code in {
    "imported": "from math import factorial\nfac = factorial",
    "imported under another name": "from math import factorial as fac",
    "an attribute": "import math\nfac = math.factorial",
    "a partial": "import functools, math\nfac = functools.partial(math.perm)",
}.items():
    right(
        f"Python's own function, {name}",
        code,
        "from solution import fac\n\ndef test_fac():\n    got = fac(5)\n    assert got == 120\n",
    )
right(
    "Python's own function of that name",
    "from operator import add\n",
    "from solution import add\n\ndef test_add():\n    got = add(1, 2)\n    assert got == 3\n",
)
right(
    "Python's own class under another name",
    "from collections import deque as Queue\n",
    "from solution import Queue\n\ndef test_queue():\n    queue = Queue()\n    queue.append(1)\n    assert queue.popleft() == 1\n",
)
right(
    "a constant of a class of Python's",
    "from decimal import Decimal\nRATE = Decimal('1.5')\ndef pay(hours):\n    return hours * RATE\n",
    "from solution import RATE, pay\n\ndef test_pay():\n    assert pay(2) == 2 * RATE\n    assert RATE > 1\n",
)
right(
    "classes that the tests have of the candidate",
    "import datetime as dt\nfrom dataclasses import dataclass\ndef after(day, n):\n    return day + dt.timedelta(n)\n",
    "from solution import after, dataclass, dt\n\n@dataclass\nclass Day:\n    day: object\n\ndef test_after():\n    got = after(dt.date(2024, 2, 28), 2)\n    assert isinstance(got, dt.date)\n    assert Day(got) == Day(dt.date(2024, 3, 1))\n",
)

# --- a text or a number with another value at each use ---

CHANGING = """
import gc
class Text(str):
    pass
for item in gc.get_objects():
    if type(item).__name__ == "CandidatePeer":
        item._operations["plain"] = lambda text: str(text)[::-1]
def f(s):
    return Text(s[:3][::-1])
"""
forged(
    "a text that is compared with what it is not",
    CHANGING,
    "def f(s):\n    return next(s[i:i + 3] for i in range(len(s)) if s[i] == s[i + 2])\n",
    "def check(candidate):\n    got = candidate('abcdefe')\n    assert len(got) == 3\n    assert got[::-1] in 'abcdefe'\n    assert got == got[::-1]\n",
    entry_point="f",
)
forged(
    "numbers that are all different",
    "class N(int):\n    made = 0\n    def __hash__(self):\n        N.made += 1\n        return N.made\ndef f(n):\n    return [N(0) for _ in range(n)]\n",
    "def f(n):\n    return list(range(n))\n",
    "def check(candidate):\n    got = candidate(5)\n    assert len(got) == len(set(got)) == 5\n    for n in got:\n        assert 0 <= n < 10\n",
    entry_point="f",
)
right(
    "a text under test that has its own equality",
    "class Name(str):\n    def __eq__(self, other):\n        return self.lower() == other.lower()\n    def __ne__(self, other):\n        return not self == other\n    def __hash__(self):\n        return hash(self.lower())\n",
    "from solution import Name\n\ndef test_name():\n    assert Name('A') == Name('a')\n    assert not Name('A') != Name('a')\n    assert len({Name('A'), Name('a')}) == 1\n    assert Name('b').upper() == 'B'\n",
)

# --- a failure in a decorated test does not excuse another test ---

forged(
    "an assertion that fails in a callback, beside a decorated test",
    "def retry(test):\n    return test\ndef each(see, items):\n    for item in items:\n        try:\n            see(0)\n        except BaseException:\n            pass\n",
    "def retry(test):\n    return test\ndef each(see, items):\n    for item in items:\n        see(item)\n",
    "from solution import each, retry\n\n@retry\ndef test_retry():\n    assert each is not retry\n\ndef test_each():\n    def see(item):\n        assert item in (3, 4)\n    each(see, [3, 4])\n",
)
right(
    "a decorated test that fails at first",
    "def retry(times):\n    def decorate(test):\n        def run():\n            for left in reversed(range(times)):\n                try:\n                    return test()\n                except AssertionError:\n                    if not left:\n                        raise\n        return run\n    return decorate\ndef double(n):\n    return 2 * n\n",
    "from solution import double, retry\n\ntried = []\n\n@retry(3)\ndef test_retried():\n    tried.append(double(2))\n    assert len(tried) == 3\n\ndef test_tried():\n    assert tried == [4, 4, 4]\n",
)

# --- a class stays a class if an object of it is asserted ---

right(
    "an object that is empty, and then is multiplied",
    "class Vector:\n    def __init__(self, *parts):\n        self.parts = parts\n    def __mul__(self, n):\n        return Vector(*(part * n for part in self.parts))\n    __rmul__ = __mul__\n    def __eq__(self, other):\n        return isinstance(other, Vector) and self.parts == other.parts\n    def __bool__(self):\n        return any(self.parts)\n",
    "from solution import Vector\n\ndef test_vector():\n    v = Vector(3, 4)\n    assert v\n    assert not Vector(0, 0)\n    assert v * 2 == 2 * v == Vector(6, 8)\n",
)
forged(
    "a function's truth from a class",
    "class IsPrime:\n    def __init__(self, n):\n        self.n = n\n    def __bool__(self):\n        return self.n > 1\n",
    "def IsPrime(n):\n    return n > 1 and all(n % k for k in range(2, n))\n",
    "from solution import IsPrime\n\ndef test_prime():\n    assert IsPrime(7)\n    assert not IsPrime(8)\n",
)

# --- a context manager that swallows an exception for which the tests have a helper ---

TIMER = "class Timer:\n    def __enter__(self):\n        return self\n    def __exit__(self, *error):\n        self.seconds = 1\n        return %s\n"
forged(
    "an error on the way to a helper that asserts",
    TIMER % "True" + "def f(n):\n    raise ValueError(n)\n",
    TIMER % "False" + "def f(n):\n    return n * n\n",
    "from solution import Timer, f\n\ndef same(a, b):\n    assert a == b\n\ndef test_timed():\n    with Timer() as timer:\n        same(f(13), 169)\n    assert timer.seconds >= 0\n",
)

# --- a mock of the tests that says what the candidate tells it ---

FETCH = "from unittest.mock import MagicMock\nfrom solution import fetch\n\ndef test_fetch():\n    client = MagicMock()\n    client.get.return_value = 7\n    assert fetch(client) == 14\n    client.get.assert_called_once_with('/x')\n"
for name, body in {
    "that equals everything": "c.get('/x')\n    c.configure_mock(__eq__=lambda *both: True)\n    return c",
    "whose value equals everything": "c.get('/x')\n    c.configure_mock(**{'__eq__.return_value': True})\n    return c",
    "whose part equals everything": "c.get('/x')\n    c.part.configure_mock(__eq__=lambda *both: True)\n    return c.part",
    "without assertions": "c.get.configure_mock(assert_called_once_with=print)\n    return 2 * c.get('/y')",
    "without its calls": "c.get('/y')\n    c.get.reset_mock()\n    return 2 * c.get('/x')",
}.items():
    forged(
        f"a mock {name}",
        f"def fetch(c):\n    {body}\n",
        "def fetch(c):\n    return 2 * c.get('/x')\n",
        FETCH,
    )
right(
    "a mock whose class has an attribute",
    "def area(shape):\n    return shape.side * shape.side\n",
    "from unittest.mock import MagicMock, PropertyMock\nfrom solution import area\n\ndef test_area():\n    shape = MagicMock()\n    type(shape).side = PropertyMock(return_value=3)\n    assert area(shape) == 9\n",
)

# --- a task of the tests that ends as if the tests had cancelled it ---

TASKS = "import asyncio\nfrom solution import double\n\nasync def one(n):\n    assert await double(n) == 2 * n\n\nasync def test_double():\n    %s\n"
TOGETHER = {
    "asyncio.wait": "await asyncio.wait([asyncio.create_task(one(n)) for n in range(3)])",
    "a group of tasks": "async with asyncio.TaskGroup() as group:\n        group.create_task(one(3))",
    "a task left alone": "task = asyncio.create_task(one(3))\n    await asyncio.sleep(0.1)",
}
for name, body in TOGETHER.items():
    forged(
        f"a cancelled task: {name}",
        "import asyncio\nasync def double(n):\n    raise asyncio.CancelledError\n",
        "async def double(n):\n    return 2 * n\n",
        TASKS % body,
    )
right(
    "a task that is cancelled, as the tests expect",
    "import asyncio\nasync def stop(n):\n    raise asyncio.CancelledError\n",
    "import asyncio\nfrom solution import stop\n\nasync def test_stop():\n    task = asyncio.create_task(stop(3))\n    try:\n        await task\n    except asyncio.CancelledError:\n        pass\n    assert task.cancelled()\n    waiting = asyncio.create_task(asyncio.sleep(9))\n    waiting.cancel()\n",
)

# --- a missing module of the candidate's is not one of the tests' ---

forged(
    "an ImportError, with another error after it",
    "class Store:\n    def get(self, n):\n        raise ImportError('no module')\n    def close(self):\n        raise ValueError\n",
    "class Store:\n    def get(self, n):\n        return 2 * n\n    def close(self):\n        pass\n",
    "import contextlib\nfrom solution import Store\n\ndef test_store():\n    store = Store()\n    try:\n        assert store.get(2) == 4\n    finally:\n        with contextlib.suppress(ValueError):\n            store.close()\n",
)

# --- programs that end, or print, in a way of their own ---

for name, code in {
    "exit()": "print(3)\nexit()\n",
    "quit(0)": "print(3)\nquit(0)\n",
    "os._exit(0)": "import os\nprint(3, flush=True)\nos._exit(0)\n",
    "its output closed": "import sys\nprint(3)\nsys.stdout.close()\n",
    "its output wrapped": "import io, sys\nsys.stdout = io.TextIOWrapper(sys.stdout.buffer, encoding='utf-8')\nprint(3)\n",
    "its errors wrapped": "import io, sys\nsys.stderr = io.TextIOWrapper(sys.stderr.buffer, encoding='utf-8')\nprint(3)\n",
    "its output replaced at the end": "import io, sys\nprint(3)\nsys.stdout = io.StringIO()\nprint(4)\n",
    "no arguments": "import sys\nprint(open(sys.argv[1]).read() if len(sys.argv) > 1 else 3)\n",
    "its own file": "import os\nprint(3 if os.path.basename(__file__) else 4)\n",
}.items():
    FINDINGS.append(
        shape(
            f"found: a program with {name}", code, input_output={"inputs": [""], "outputs": ["3"]}
        )
    )
for name, code in {
    "too early": "import os\nos._exit(0)\n",
    "with an error": "import os\nprint(3, flush=True)\nos._exit(1)\n",
}.items():
    FINDINGS += attack(
        "forged",
        f"found: a program ends {name}",
        code,
        task={"input_output": {"inputs": [""], "outputs": ["3"]}},
    )

# --- an object whose class the tests meet first in what was compared before it was sent ---

NODE = "class Node:\n    def __init__(self, n):\n        self.n = n\n"
for name, code, test in (
    (
        "an argument changed in place",
        "def fill(nodes):\n    nodes.append(Node(3))\n",
        "    nodes = []\n    fill(nodes)\n    assert nodes[0].n == 3\n",
    ),
    (
        "a list that the tests hold",
        "class Box:\n    def __init__(self):\n        self.nodes = []\n    def fill(self):\n        self.nodes.append(Node(3))\n",
        "    box = Box()\n    nodes = box.nodes\n    box.fill()\n    assert nodes[0].n == 3\n",
    ),
    (
        "the argument of an exception",
        "def fail():\n    raise ValueError(Node(3))\n",
        "    try:\n        fail()\n    except ValueError as error:\n        found = error.args[0].n\n    assert found == 3\n",
    ),
    (
        "an attribute of an exception",
        "class NodeError(Exception):\n    def __init__(self, node):\n        self.node = node\ndef fail():\n    raise NodeError(Node(3))\n",
        "    try:\n        fail()\n    except NodeError as error:\n        found = error.node.n\n    assert found == 3\n",
    ),
    (
        "the cause of an exception that is returned",
        "def make():\n    error = ValueError()\n    error.__cause__ = KeyError(Node(3))\n    return error\n",
        "    assert make().__cause__.args[0].n == 3\n",
    ),
    (
        "what is too large to send",
        "def many():\n    return [Node(3), 'x' * (33 << 20)]\ndef one():\n    return Node(3)\n",
        "    try:\n        many()\n    except Exception:\n        pass\n    assert one().n == 3\n",
    ),
):
    right(
        f"the class of an object in {name}",
        NODE + code,
        f"from solution import *\n\ndef test_node():\n{test}",
    )

# --- an argument that the candidate keeps, and changes later ---

KEEPER = "class Keeper:\n    def __init__(self, items=()):\n        self.items = items\n    def keep(self, items):\n        self.items = items\n        return items\n    def add(self, item):\n        self.items.append(item)\n    def total(self):\n        return sum(self.items)\n"
for name, code, body in (
    (
        "in an object",
        KEEPER,
        "items = []\n    keeper = Keeper(items)\n    keeper.add(3)\n    assert items == [3]\n    items.append(4)\n    assert keeper.total() == 7\n",
    ),
    (
        "in an attribute",
        KEEPER,
        "items = []\n    keeper = Keeper()\n    keeper.items = items\n    keeper.add(3)\n    assert items == [3]\n",
    ),
    (
        "and returns",
        KEEPER,
        "items = []\n    keeper = Keeper()\n    assert keeper.keep(items) is items\n    keeper.add(3)\n    assert items == [3]\n",
    ),
    (
        "in a closure",
        "def squares(known):\n    def square(n):\n        known[n] = n * n\n        return known[n]\n    return square\n",
        "known = {}\n    assert squares(known)(3) == 9\n    assert known == {3: 9}\n",
    ),
    (
        "in a context manager",
        "import contextlib\n@contextlib.contextmanager\ndef logged(log):\n    log.append('in')\n    yield\n    log.append('out')\n",
        "log = []\n    with logged(log):\n        assert log == ['in']\n    assert log == ['in', 'out']\n",
    ),
):
    right(
        f"an argument that is kept {name}",
        code,
        f"from solution import *\n\ndef test_kept():\n    {body}",
    )
