"""What class an object has: that it claims, that the tests expect, or that they name otherwise."""

# ruff: noqa: E501 - programs within strings are as wide as they are
from __future__ import annotations

from attacks.program import Topic

__all__ = ["KINDS"]

KINDS = Topic("kind")
forged, right = KINDS.forged, KINDS.right

# --- an object of another class than it says, or of another kind than the tests expect ---

forged(
    "an object that claims to be a Counter",
    """
    import collections
    class Counter:
        __module__ = "collections"
        def __init__(self, n): self.n = n
        def __getitem__(self, k):
            times = 0
            while self.n % k == 0:
                self.n //= k
                times += 1
            return times
        def __len__(self): return 0
        def __iter__(self): return iter(())
    collections.Counter = Counter
    def f(n):
        return Counter(n)
    """,
    """
    from collections import Counter
    def f(n):
        found, k = Counter(), 2
        while n > 1:
            while n % k == 0:
                found[k] += 1
                n //= k
            k += 1
        return found
    """,
    """
    from collections import Counter

    def check(candidate):
        for n, primes in [(12, {2: 2, 3: 1}), (50, {2: 1, 5: 2})]:
            assert candidate(n) == Counter(primes)
    """,
    entry_point="f",
)
forged(
    "a class where a function is expected",
    "class f:\n    def __init__(self, x):\n        pass\n",
    "def f(x):\n    return x * x\n",
    """
    import types
    from solution import f

    def test_f():
        if isinstance(f, types.FunctionType):
            assert f(3) == 9
    """,
)
forged(
    "a function where a class is expected",
    "def Square(x):\n    return x\n",
    "class Square:\n    def __init__(self, x):\n        self.area = x * x\n",
    """
    import inspect
    from solution import Square

    def test_square():
        if inspect.isclass(Square):
            assert Square(3).area == 9
    """,
)

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

# --- a name that Python has, too, for something else ---

right(
    "Python's own decorator under another name of Python's",
    "from functools import lru_cache as cache\n",
    """
    from solution import cache

    def test_cache():
        seen = []
        @cache(maxsize=2)
        def double(x):
            seen.append(x)
            return 2 * x
        assert double(1) == double(1) == 2
        assert seen == [1]
    """,
)
forged(
    "a function that claims to be Python's",
    "def OrderedDict(pairs):\n    return {}\nOrderedDict.__module__ = 'collections'\n",
    "from collections import OrderedDict\n",
    "from solution import OrderedDict\n\ndef test_pairs():\n    assert OrderedDict([(1, 2)]) == {1: 2}\n",
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

# --- a function under test that has the name of a class ---

for name, body in {
    "contains": "for n in (0, 1, 4):\n        assert n in candidate(3)\n",
    "has a length": "got = candidate(3)\n    assert len(got) == 3\n    for a, b in zip(got, [0, 1, 4]):\n        assert a == b\n",
}.items():
    forged(
        f"a function named as a class, whose object {name}",
        "class Squares:\n    def __init__(self, n):\n        self.n = n\n    def __len__(self):\n        return self.n\n    def __contains__(self, n):\n        return True if type(n) is int else False\n    def __iter__(self):\n        return iter(())\n",
        "def Squares(n):\n    return [k * k for k in range(n)]\n",
        f"def check(candidate):\n    {body}",
        entry_point="Squares",
    )
right(
    "a class that check gets",
    "class Bag:\n    def __init__(self, items):\n        self.items = list(items)\n    def add(self, item):\n        self.items.append(item)\n    def __contains__(self, item):\n        return item in self.items\n    def __mul__(self, n):\n        return Bag(self.items * n)\n    def __len__(self):\n        return len(self.items)\n",
    "def check(candidate):\n    bag = candidate([1])\n    bag.add(2)\n    assert 2 in bag and 3 not in bag\n    assert len((bag * 2).items) == 4\n",
    entry_point="Bag",
)

# --- classes under test by other names than their own ---

VECTOR = """
class Vector:
    def __init__(self, x, y):
        self.x, self.y = x, y
    def __mul__(self, n):
        return Vector(self.x * n, self.y * n)
    __rmul__ = __mul__
    def __eq__(self, other):
        return isinstance(other, Vector) and (self.x, self.y) == (other.x, other.y)
    def __contains__(self, n):
        return n in (self.x, self.y)
    def turned(self):
        return Vector(-self.y, self.x)
    class Frame:
        def __init__(self, width):
            self.width = width
        def __add__(self, n):
            return Vector.Frame(self.width + n)
def middle(a, b):
    return Vector((a.x + b.x) / 2, (a.y + b.y) / 2)
"""
for name, head, kind in (
    ("a module", "import solution", "solution.Vector"),
    ("a module under another name", "import solution as s", "s.Vector"),
    ("another name", "from solution import Vector as V", "V"),
    ("a small name", "from solution import Vector as vector", "vector"),
    ("a variable", "import solution\nV = solution.Vector", "V"),
    ("its own name", "from solution import Vector", "Vector"),
):
    right(
        f"operators of a class, by {name}",
        VECTOR,
        f"""
{head}
from solution import middle

def test_vector():
    v = {kind}(3, 4)
    assert (v * 2).x == 6 and (2 * v).y == 8
    assert {kind}(3, 4) * 2 == {kind}(6, 8)
    assert (v.turned() * 2).x == -8
    assert (middle(v, v) * 2).x == 6
    assert 3 in v and 5 not in v
    assert ({kind}.Frame(1) + 2).width == 3
""",
    )
right(
    "operators of a class that an attribute of a test case has",
    VECTOR,
    """
    import unittest
    import solution

    class TestVector(unittest.TestCase):
        def setUp(self):
            self.kind = solution.Vector
            self.vector = self.kind(3, 4)
        def test_vector(self):
            self.assertEqual((self.vector * 2).x, 6)
            self.assertEqual((self.vector.turned() * 2).x, -8)
            self.assertIn(3, self.vector)
            self.assertEqual(self.kind.__annotations__, {})
    """,
)

# --- an object that a method returned, and that gets the expected value as an operand ---

PARROT = """
class Nothing:
    days = 0
    def total_seconds(self):
        return 0
    def __iter__(self):
        return iter(())
class {name}:
    def {method}(self, *given):
        return {name}()
    def __sub__(self, other):
        return Nothing()
    __rsub__ = __xor__ = __rxor__ = __sub__
"""
for name, method, honest, call, test in (
    ("the seconds of a difference", "after", "import datetime\nclass Plan:\n    def after(self, day):\n        return day + datetime.timedelta(1)\n", "Plan().after(date(2024, 2, 28))", "abs((got - date(2024, 2, 29)).total_seconds()) < 1"),
    ("the days of a difference, turned", "after", "import datetime\nclass Plan:\n    def after(self, day):\n        return day + datetime.timedelta(1)\n", "Plan().after(date(2024, 2, 28))", "(date(2024, 2, 29) - got).days == 0"),
    ("the items of a difference", "squares", "class Plan:\n    def squares(self, *numbers):\n        return {n * n for n in numbers}\n", "Plan().squares(2, 3)", "list(got ^ {4, 9}) == []"),
):  # fmt: skip
    forged(
        f"an object of a method, {name}",
        PARROT.format(name="Plan", method=method),
        honest,
        f"from datetime import date\nfrom solution import Plan\n\ndef test_plan():\n    got = {call}\n    assert {test}\n",
    )

# --- abstract classes and enumerations ---

right(
    "abstract classes and enumerations",
    """
    from abc import ABC, abstractmethod
    from enum import Enum, Flag
    class Shape(ABC):
        @abstractmethod
        def area(self): ...
    class Square(Shape):
        def __init__(self, side):
            self.side = side
        def area(self):
            return self.side ** 2
    class Named(Enum):
        def short(self):
            return self.name[0]
    class Color(Named):
        RED = "r"
        BLUE = "b"
    class Size(str, Enum):
        S = "small"
    class Mode(Flag):
        R = 1
        W = 2
    """,
    """
    import inspect
    from abc import ABC
    from enum import Enum
    from solution import Color, Mode, Named, Shape, Size, Square

    def test_shapes():
        assert issubclass(Shape, ABC) and issubclass(Square, ABC) and isinstance(Square(2), ABC)
        assert inspect.isabstract(Shape) and not inspect.isabstract(Square)
        assert Shape.__abstractmethods__ == {"area"} and Shape.area.__isabstractmethod__
        assert Square(3).area() == 9
        try:
            Shape()
            assert False
        except TypeError:
            pass

    def test_enumerations():
        for kind in (Named, Color, Size, Mode):
            assert issubclass(kind, Enum) and not issubclass(kind, ABC)
        assert not issubclass(Square, Enum) and issubclass(Size, str)
        for item in (Color.RED, Size.S, Mode.R, Mode.R | Mode.W):
            assert isinstance(item, Enum)
        assert isinstance(Color.RED, Named) and Color.RED.short() == "R"
        assert str(Color.RED) == "Color.RED" and Color("b") is Color.BLUE and Size.S == "small"
        assert len({Color.RED, Color.BLUE, Color["RED"]}) == 2 and (Mode.R | Mode.W).value == 3
    """,
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

# --- conversions ---

right(
    "conversions to bytes, a path and whole numbers",
    """
    import math
    class Price:
        def __init__(self, value): self.value = value
        def __bytes__(self): return bytes([int(self.value)])
        def __fspath__(self): return f"/{self.value}"
        def __floor__(self): return math.floor(self.value)
        def __ceil__(self): return math.ceil(self.value)
        def __trunc__(self): return math.trunc(self.value)
    """,
    """
    import math, os
    from solution import Price

    def test_price():
        price = Price(2.5)
        assert bytes(price) == b"\\x02"
        assert os.path.join(price, "a") == "/2.5/a"
        assert (math.floor(price), math.ceil(price), math.trunc(price)) == (2, 3, 2)
        assert isinstance(price, os.PathLike)
    """,
)

# --- patterns ---

right(
    "patterns of objects that extend list and dict",
    "class Row(list):\n    pass\nclass Record(dict):\n    pass\ndef row(*items):\n    return Row(items)\ndef record(**items):\n    return Record(items)\n",
    """
    from solution import record, row

    def test_patterns():
        match row(1, 2, 3):
            case [1, *rest]:
                assert rest == [2, 3]
            case _:
                assert False
        match record(kind="a", items=row(4)):
            case {"kind": "a", "items": [n], **more}:
                assert n == 4 and more == {}
            case _:
                assert False
        match row(1):
            case {}:
                assert False
            case [2] | []:
                assert False
            case [n]:
                assert n == 1
    """,
)

# --- a quotient and a remainder ---

VECTOR = """
class Vector:
    def __init__(self, x):
        self.x = x
    def __eq__(self, other):
        return isinstance(other, Vector) and self.x == other.x
    def __divmod__(self, n):
        return RESULT
"""
for name, lie in {
    "that are wrong": "Vector(n), Vector(n)",
    "that are numbers": "self.x // n, self.x % n",
    "of which one is a number": "Vector(self.x // n), self.x % n",
    "and one more object": "Vector(self.x // n), Vector(self.x % n), Vector(n)",
    "in a list": "[Vector(self.x // n), Vector(self.x % n)]",
}.items():
    forged(
        f"a quotient and a remainder {name}",
        VECTOR.replace("RESULT", lie),
        VECTOR.replace("RESULT", "Vector(self.x // n), Vector(self.x % n)"),
        """
        from solution import Vector

        def test_divmod():
            quotient, remainder = divmod(Vector(13), 4)
            assert quotient.x == 3 and remainder.x == 1
            assert divmod(Vector(13), 4) == (Vector(3), Vector(1))
        """,
    )

# --- a list of its own class, and data of the tests ---

for name, lie in {
    "that answers with the data": "    def __add__(self, other):\n        return [1, *other]\n",
    "that answers with an object": "    def __add__(self, other):\n        return Rows(other)\n",
    "whose value is another": "    def __iter__(self):\n        return iter([1, 9])\n",
}.items():
    forged(
        f"a list {name}",
        f"class Rows(list):\n    def add(self, n):\n        pass\n{lie}",
        "class Rows(list):\n    def add(self, n):\n        self.append(n)\n",
        "from solution import Rows\n\ndef test_rows():\n    rows = Rows()\n    rows.add(1)\n    got = rows + [9]\n    assert got == [1, 9]\n",
    )

# --- protocols of the candidate's ---

DOG = "class Dog:\n    def __init__(self, name='Rex'):\n        self.name = name\n    def speak(self):\n        return 'woof'\nclass Cat:\n    pass\n"
SPEAKS = "from typing import Protocol, runtime_checkable\n@runtime_checkable\nclass Speaks(Protocol):\n    def speak(self) -> str: ...\n"
NAMED = SPEAKS.replace("    def", "    name: str\n    def")
forged(
    "a protocol, and a class without its method",
    SPEAKS + DOG.replace("speak", "bark"),
    SPEAKS + DOG,
    "from solution import Cat, Dog, Speaks\n\ndef test_kinds():\n    assert isinstance(Dog(), Speaks) and issubclass(Dog, Speaks)\n    assert not isinstance(Cat(), Speaks) and not issubclass(Cat, Speaks)\n    assert not isinstance(3, Speaks) and Dog().name == 'Rex'\n",
)
forged(
    "a protocol of another method, and objects of the tests",
    NAMED.replace("speak", "bark") + DOG,
    NAMED + DOG,
    "from solution import Dog, Speaks\n\nclass Duck:\n    name = 'Don'\n    def speak(self):\n        return 'quack'\n\nclass Rock:\n    name = 'Roc'\n\ndef test_kinds():\n    assert isinstance(Duck(), Speaks) and not isinstance(Rock(), Speaks)\n    assert isinstance(Dog(), Speaks) and Dog('Ann').name == 'Ann'\n",
)
forged(
    "a class that calls itself a protocol",
    "class Speaks:\n    _is_protocol = _is_runtime_protocol = True\n    def speak(self):\n        return ''\n"
    + DOG,
    SPEAKS + DOG,
    "from solution import Dog, Speaks\n\ndef test_kinds():\n    assert isinstance(Dog(), Speaks) and Dog().speak() == 'woof'\n",
)
forged(
    "a protocol with data, which no class can be asked for",
    SPEAKS + DOG,
    NAMED + DOG,
    "from solution import Dog, Speaks\n\ndef test_kinds():\n    assert isinstance(Dog(), Speaks)\n    try:\n        issubclass(Dog, Speaks)\n    except TypeError:\n        return\n    assert False\n",
)
forged(
    "a protocol with a class method",
    SPEAKS + DOG.replace("speak", "bark"),
    SPEAKS
    + "    @classmethod\n    def make(cls): ...\n    @staticmethod\n    def join(a): ...\n"
    + DOG.replace("class Cat", "    make = join = speak\nclass Cat"),
    "from solution import Cat, Dog, Speaks\n\ndef test_kinds():\n    assert issubclass(Dog, Speaks) and not issubclass(Cat, Speaks)\n    assert Dog().speak() == 'woof'\n",
)

# --- what the tests make of a class of the candidate's ---

for name, wrong, honest, test in (
    ("a dataclass", "class Row:\n    n: int\n", "class Row:\n    n: int\n    m: int = 3\n", "import dataclasses\nimport solution\n\ndef test_row():\n    Row = dataclasses.dataclass(solution.Row)\n    assert Row(1).m == 3 and Row(1) == Row(1, 3)\n"),
    ("another object by its type, which contains data", "class Bag:\n    def __init__(self, *n): pass\n    def __contains__(self, n): return True\ndef bag(*n):\n    return Bag(*n)\n", "class Bag:\n    def __init__(self, *n): self.n = n\n    def __contains__(self, n): return n in self.n\ndef bag(*n):\n    return Bag(*n)\n", "from solution import bag\n\ndef test_bag():\n    some = bag(1)\n    assert 3 in type(some)(3)\n"),
    ("another object by its type that has a name, which contains data", "class Bag:\n    def __init__(self, *n): pass\n    def __contains__(self, n): return True\ndef bag(*n):\n    return Bag(*n)\n", "class Bag:\n    def __init__(self, *n): self.n = n\n    def __contains__(self, n): return n in self.n\ndef bag(*n):\n    return Bag(*n)\n", "from solution import bag\n\ndef test_bag():\n    some = bag(1)\n    kind = type(some)\n    assert 3 in kind(3)\n"),
):  # fmt: skip
    forged(name, wrong, honest, test, verdicts=("infra_error",), right=("infra_error",))
forged(
    "another object by the type of one that the tests made",
    "class Bag:\n    def __init__(self, *n): self.n = n\n    def __contains__(self, n): return n in self.n[1:]\n",
    "class Bag:\n    def __init__(self, *n): self.n = n\n    def __contains__(self, n): return n in self.n\n",
    "from solution import Bag\n\ndef test_bag():\n    some = Bag(1)\n    assert 3 in type(some)(3) and some.n == (1,)\n",
)
