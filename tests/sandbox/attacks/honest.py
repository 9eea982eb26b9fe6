"""Honest programs: right by their tests in a plain run, so right in the sandbox."""

# ruff: noqa: E501 - programs within strings are as wide as they are
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from attacks.program import SQUARES, Program, dedent

__all__ = ["HONEST"]

HONEST: list[Program] = []


def honest(
    name: str,
    code: str,
    *tests: str,
    evaluation: str | None = None,
    setup: str = "",
    unless: Mapping[str, str] | None = None,
    **task: Any,
) -> None:
    given = {"tests": [dedent(test).strip() for test in tests], **task} if tests else task
    if setup:
        given["test_setup_code"] = dedent(setup)
    if "test" in given:
        given["test"] = dedent(given["test"])
    program = Program(name, "honest", dedent(code), given, ("passed",), evaluation)
    HONEST.append(replace(program, unless=unless or {}))


SQUARE = "def f(x):\n    return x * x\n"
for shape, task in SQUARES.items():
    code = SQUARE if shape != "stdin" else "print(int(input()) ** 2)\n"
    HONEST.append(Program(f"squares [{shape}]", "honest", code, task, ("passed",)))

# --- MBPP's shape ---

honest(
    "plain data",
    """
    def split(text, sep=","):
        out = {}
        for n, part in enumerate(text.split(sep)):
            out.setdefault(len(part), []).append((n, part))
        return out
    """,
    "assert split('a,bb,c') == {1: [(0, 'a'), (2, 'c')], 2: [(1, 'bb')]}",
    "assert split('a-b', sep='-') == {1: [(0, 'a'), (1, 'b')]}, 'with a separator'",
    "assert split('') == {0: [(0, '')]}",
    evaluation="literal",
)
honest(
    "a tree built by the setup",
    """
    class Node:
        def __init__(self, data):
            self.data, self.left, self.right = data, None, None

    def height(root):
        return 0 if root is None else 1 + max(height(root.left), height(root.right))

    def is_balanced(root):
        if root is None:
            return True
        if abs(height(root.left) - height(root.right)) > 1:
            return False
        return is_balanced(root.left) and is_balanced(root.right)
    """,
    "assert is_balanced(root) == False",
    "assert is_balanced(root1) == True",
    setup="""
    root = Node(1)
    root.left = Node(2)
    root.left.left = Node(3)
    root.left.left.left = Node(4)
    root1 = Node(1)
    root1.left = Node(2)
    root1.right = Node(3)
    """,
)
honest(
    "a linked list the test walks",
    """
    class ListNode:
        def __init__(self, val, next=None):
            self.val = val
            self.next = next

    def reverse(head):
        last = None
        while head:
            head.next, last, head = last, head, head.next
        return last
    """,
    test="""
    from solution import ListNode, reverse

    def test_reverse():
        head = None
        for n in (3, 2, 1):
            head = ListNode(n, head)
        head, seen = reverse(head), []
        while head is not None:
            seen.append(head.val)
            head = head.next
        assert seen == [3, 2, 1]
        assert reverse(None) is None
    """,
    evaluation="judge",
)
honest(
    "named sum",
    "def sum(a, b):\n    return a + b\n",
    "assert sum(10, 15) == 25",
    "assert sum(1, -1) == 0",
)
honest(
    "named max, in a loop",
    "def max(items):\n    best = items[0]\n    for item in items:\n        best = item if item > best else best\n    return best\n",
    test="def check(candidate):\n    for n in range(1, 5):\n        assert candidate(list(range(n))) == n - 1\n",
    entry_point="max",
)
honest(
    "recursion and a cache",
    """
    import functools, sys
    sys.setrecursionlimit(5000)

    @functools.lru_cache(maxsize=None)
    def fib(n):
        return n if n < 2 else fib(n - 1) + fib(n - 2)

    def depth(n):
        return 0 if n == 0 else 1 + depth(n - 1)
    """,
    "assert fib(90) == 2880067194370816120",
    "assert depth(2000) == 2000",
    evaluation="literal",
)
honest(
    "state kept between tests",
    "counter = [0]\ndef next_id():\n    counter[0] += 1\n    return counter[0]\n",
    "assert next_id() == 1",
    "assert next_id() == 2",
    "assert next_id() == 3",
)
honest(
    "helpers in the setup",
    "def roots(a, b, c):\n    d = (b * b - 4 * a * c) ** 0.5\n    return ((-b - d) / (2 * a), (-b + d) / (2 * a))\n",
    "assert close(roots(1, -3, 2), (1.0, 2.0))",
    "assert close(roots(2, 0, -1), (-0.7071067811865476, 0.7071067811865476))",
    setup="import math\ndef close(a, b):\n    return all(math.isclose(x, y) for x, y in zip(a, b))\n",
)
honest(
    "comparisons of all kinds",
    "def f(x):\n    return x * x\ndef g(x):\n    return [x, None]\n",
    "assert f(2) == 4 and f(3) == 9",
    "assert f(2) < 5 <= f(3)",
    "assert 4 == f(2) != 5",
    "assert f(2) in (3, 4) and 5 in g(5) and 6 not in g(5)",
    "assert not f(0)",
    "assert g(1)[1] is None and g(1)[0] is not None",
    "assert f(f(2)) == 2 ** 4",
    "assert f(2) if f(1) else False",
    "assert len(g(3)) == 2 and sorted([f(2), f(1)]) == [1, 4]",
    "assert isinstance(g(1), list) and type(f(2)) is int and type(f(2)).__name__ == 'int'",
)
honest(
    "equal, as Python sees it",
    """
    import collections, decimal, enum, fractions
    class Level(enum.IntEnum):
        LOW = 1
    class Text(str):
        pass
    Pair = collections.namedtuple("Pair", "a b")
    VALUES = {
        "bool": True, "float": 4.0, "decimal": decimal.Decimal(4), "fraction": fractions.Fraction(8, 2),
        "enum": Level.LOW, "pair": Pair(1, 2), "counter": collections.Counter("aab"),
        "default": collections.defaultdict(int, a=1), "ordered": collections.OrderedDict(b=1, a=2),
        "frozen": frozenset({1, 2}), "keys": {1: 2, 3: 4}.keys(), "bytes": bytearray(b"ab"),
        "complex": 4 + 0j, "text": Text("abc"), "zero": -0.0, "lone": "\\ud83d", "emoji": "\\U0001f600",
    }
    def f(name):
        return VALUES[name]
    """,
    "assert f('bool') == 1",
    "assert f('float') == 4",
    "assert f('decimal') == 4",
    "assert f('fraction') == 4",
    "assert f('enum') == 1",
    "assert f('pair') == (1, 2)",
    "assert f('counter') == {'a': 2, 'b': 1}",
    "assert f('default') == {'a': 1}",
    "assert f('ordered') == {'a': 2, 'b': 1}",
    "assert f('frozen') == {1, 2}",
    "assert f('keys') == {1, 3}",
    "assert f('bytes') == b'ab'",
    "assert f('complex') == 4",
    "assert f('text') == 'abc'",
    "assert f('zero') == 0",
    "assert f('lone') == '\\ud83d'",
    "assert f('emoji') == '😀'",
)
honest(
    "large results",
    "def f(n):\n    return list(range(n))\ndef g(n):\n    return 10 ** n\n",
    # Only once: sending it to the judge takes a slow machine a quarter of the two seconds.
    "assert len(found := f(100000)) == 100000 and found[-1] == 99999",
    "assert g(5000) == 10 ** 5000",
    "assert f(300) == " + repr(list(range(300))),
)

# --- objects ---

honest(
    "operators",
    """
    class Vector:
        def __init__(self, x, y): self.x, self.y = x, y
        def __add__(self, other): return Vector(self.x + other.x, self.y + other.y)
        def __sub__(self, other): return Vector(self.x - other.x, self.y - other.y)
        def __mul__(self, k): return Vector(self.x * k, self.y * k)
        __rmul__ = __mul__
        def __neg__(self): return Vector(-self.x, -self.y)
        def __matmul__(self, other): return self.x * other.x + self.y * other.y
        def __abs__(self): return (self.x ** 2 + self.y ** 2) ** 0.5
        def __eq__(self, other): return isinstance(other, Vector) and (self.x, self.y) == (other.x, other.y)
        def __hash__(self): return hash((self.x, self.y))
        def __lt__(self, other): return abs(self) < abs(other)
        def __bool__(self): return self.x != 0 or self.y != 0
        def __len__(self): return 2
        def __getitem__(self, n): return (self.x, self.y)[n]
        def __iter__(self): return iter((self.x, self.y))
        def __contains__(self, k): return k in (self.x, self.y)
        def __repr__(self): return f"Vector({self.x}, {self.y})"
        def __iadd__(self, other):
            self.x += other.x
            self.y += other.y
            return self
        def __call__(self, k): return self * k
    """,
    "assert Vector(1, 2) + Vector(3, 4) == Vector(4, 6)",
    "assert Vector(1, 2) * 3 == Vector(3, 6) and 3 * Vector(1, 2) == Vector(3, 6)",
    "assert Vector(1, 2) - Vector(1, 1) != Vector(1, 1)",
    "assert abs(Vector(3, 4)) == 5.0 and Vector(1, 2) @ Vector(3, 4) == 11",
    "assert repr(Vector(1, 2)) == 'Vector(1, 2)' and str(-Vector(1, 2)) == 'Vector(-1, -2)'",
    "assert list(Vector(1, 2)) == [1, 2] and Vector(1, 2)[1] == 2 and len(Vector(5, 5)) == 2",
    "assert 2 in Vector(1, 2) and 3 not in Vector(1, 2)",
    "assert not Vector(0, 0) and bool(Vector(0, 1)) is True",
    "assert sorted([Vector(3, 4), Vector(1, 0)])[0] == Vector(1, 0)",
    "assert len({Vector(1, 2), Vector(1, 2), Vector(2, 1)}) == 2",
    "v = Vector(1, 2)\nv += Vector(1, 1)\nassert (v.x, v.y) == (2, 3)\nx, y = v(2)\nassert (x, y) == (4, 6)",
    "assert f'{Vector(1, 2)!r}' == 'Vector(1, 2)' and max(Vector(1, 1), Vector(2, 2)).x == 2",
    evaluation="judge",
)
honest(
    "dataclasses",
    """
    from dataclasses import dataclass, field, replace
    @dataclass(order=True)
    class Point:
        x: int
        y: int = 0
        tags: list = field(default_factory=list, compare=False)
    def mirror(p):
        return replace(p, x=-p.x)
    """,
    "assert Point(1, 2) == Point(1, 2) and Point(1) < Point(2)",
    "assert mirror(Point(3, 4)) == Point(-3, 4)",
    "p = Point(1, tags=['a'])\nassert p.tags == ['a'] and Point(1).tags == []",
    "assert repr(mirror(Point(1))) == 'Point(x=-1, y=0, tags=[])'",
)
honest(
    "named tuples and enums",
    """
    import enum
    from typing import NamedTuple
    class Color(enum.Enum):
        RED = "r"
        BLUE = "b"
    class Dot(NamedTuple):
        x: int
        color: Color
    def paint(x):
        return Dot(x, Color.RED)
    """,
    "assert paint(3).x == 3 and paint(3)[0] == 3",
    "assert paint(3).color.value == 'r' and paint(3).color.name == 'RED'",
    "assert Color('b') == Color.BLUE and Color.RED != Color.BLUE",
    "x, color = paint(4)\nassert x == 4 and color == Color.RED",
)
honest(
    "standard library's values",
    """
    import collections, datetime, decimal, fractions
    def count(text): return collections.Counter(text)
    def group(pairs):
        out = collections.defaultdict(list)
        for key, value in pairs:
            out[key].append(value)
        return out
    def last(items, n): return collections.deque(items, maxlen=n)
    def ordered(items): return collections.OrderedDict((k, None) for k in items)
    def third(): return fractions.Fraction(1, 3)
    def price(): return decimal.Decimal("0.10")
    def leap(year): return datetime.date(year, 2, 28) + datetime.timedelta(days=1)
    """,
    "import collections, datetime, decimal, fractions",
    "assert count('aab') == collections.Counter('aab') and count('aab').most_common(1) == [('a', 2)]",
    "assert group([(1, 2), (1, 3)]) == {1: [2, 3]} and dict(group([(1, 2)])) == {1: [2]}",
    "assert list(last(range(5), 2)) == [3, 4] and last([1], 3) == collections.deque([1])",
    "assert list(ordered('ba')) == ['b', 'a']",
    "assert third() == fractions.Fraction(1, 3) and third() + third() == fractions.Fraction(2, 3)",
    "assert price() == decimal.Decimal('0.1') and str(price()) == '0.10'",
    "assert leap(2024) == datetime.date(2024, 2, 29) and leap(2024).isoformat() == '2024-02-29'",
    "assert (leap(2023) - datetime.date(2023, 2, 28)).days == 1",
)
honest(
    "a class of LeetCode's",
    """
    from collections import OrderedDict
    class LRUCache:
        def __init__(self, capacity):
            self.capacity, self.items = capacity, OrderedDict()
        def get(self, key):
            if key not in self.items:
                return -1
            self.items.move_to_end(key)
            return self.items[key]
        def put(self, key, value):
            self.items[key] = value
            self.items.move_to_end(key)
            if len(self.items) > self.capacity:
                self.items.popitem(last=False)
    """,
    test="""
    def check(candidate):
        cache = candidate(2)
        cache.put(1, 1)
        cache.put(2, 2)
        assert cache.get(1) == 1
        cache.put(3, 3)
        assert cache.get(2) == -1
        assert [cache.get(n) for n in (1, 3)] == [1, 3]
        assert cache.capacity == 2
    """,
    entry_point="LRUCache",
    evaluation="judge",
)
honest(
    "inheritance, properties, static methods",
    """
    import abc, math
    class Shape(abc.ABC):
        count = 0
        def __init__(self): Shape.count += 1
        @property
        @abc.abstractmethod
        def area(self): ...
        @classmethod
        def unit(cls): return cls(1)
        @staticmethod
        def describe(): return "a shape"
    class Circle(Shape):
        def __init__(self, r):
            super().__init__()
            self._r = r
        @property
        def r(self): return self._r
        @r.setter
        def r(self, value):
            if value < 0:
                raise ValueError("negative radius")
            self._r = value
        @property
        def area(self): return math.pi * self._r ** 2
    """,
    test="""
    import math
    from shapes import Circle, Shape

    def test_circle():
        c = Circle.unit()
        assert isinstance(c, Circle) and isinstance(c, Shape) and issubclass(Circle, Shape)
        assert math.isclose(c.area, math.pi) and Circle.describe() == "a shape"
        c.r = 2
        assert c.r == 2 and abs(c.area - 12.566370614) < 1e-6
        try:
            c.r = -1
        except ValueError as error:
            assert "negative" in str(error)
        else:
            assert False
        assert Shape.count == 1 and hasattr(c, "r") and not hasattr(c, "q")
        assert getattr(c, "q", 5) == 5 and callable(c.describe)
        assert type(c).__name__ == "Circle"

    def test_abstract():
        try:
            Shape()
        except TypeError:
            return
        raise AssertionError("abstract")
    """,
)

# --- iterators, functions, callbacks ---

honest(
    "generators",
    """
    def squares(n):
        for k in range(n):
            yield k * k
    def forever():
        n = 0
        while True:
            n += 1
            yield n
    def echo():
        got = None
        while True:
            got = yield got
    """,
    "assert list(squares(4)) == [0, 1, 4, 9] and sum(squares(3)) == 5",
    "g = squares(2)\nassert next(g) == 0 and next(g) == 1 and next(g, None) is None",
    "g = forever()\nassert [next(g) for _ in range(3)] == [1, 2, 3]",
    "import itertools\nassert list(itertools.islice(forever(), 4)) == [1, 2, 3, 4]",
    "assert [a + b for a, b in zip(squares(3), forever())] == [1, 3, 7]",
    "e = echo()\nnext(e)\nassert e.send(5) == 5\ne.close()",
    "assert all(n >= 0 for n in squares(5)) and 4 in squares(4) and dict(enumerate(squares(2))) == {0: 0, 1: 1}",
)
honest(
    "iterators",
    """
    class Countdown:
        def __init__(self, n): self.n = n
        def __iter__(self): return self
        def __next__(self):
            if self.n == 0:
                raise StopIteration
            self.n -= 1
            return self.n
    def doubled(items): return map(lambda n: 2 * n, items)
    def pairs(items): return zip(items, items[1:])
    def back(items): return reversed(items)
    """,
    "assert list(Countdown(3)) == [2, 1, 0]",
    "assert list(doubled([1, 2])) == [2, 4] and tuple(pairs('abc')) == (('a', 'b'), ('b', 'c'))",
    "assert ''.join(back('abc')) == 'cba' and sorted(doubled({3, 1})) == [2, 6]",
    "total = 0\nfor n in Countdown(4):\n    total += n\nassert total == 6",
)
honest(
    "arguments changed in place",
    """
    def sort(items):
        for i in range(len(items)):
            for j in range(len(items) - 1 - i):
                if items[j] > items[j + 1]:
                    items[j], items[j + 1] = items[j + 1], items[j]
    def nest(grid):
        grid[0][0] = 7
        grid.append([8])
    def zero(grid):
        for row in grid:
            row[0] = 0
    def fill(table, seen, raw):
        table["a"] = [1]
        seen.add(3)
        raw[0] = 65
    """,
    test="""
    def check(candidate):
        import random
        rng = random.Random(4)
        for n in range(6):
            items = [rng.randrange(9) for _ in range(n)]
            wanted = sorted(items)
            assert candidate(items) is None
            assert items == wanted
    """,
    entry_point="sort",
)
honest(
    "nested arguments changed in place",
    HONEST[-1].code,
    "grid = [[1, 2], [3]]\nnest(grid)\nassert grid == [[7, 2], [3], [8]]",
    "grid = [[1, 2], [3]]\nrow = grid[0]\nzero(grid)\nassert grid == [[0, 2], [0]] and row == [0, 2]",
    "t, s, r = {}, {1}, bytearray(b'xy')\nfill(t, s, r)\nassert t == {'a': [1]} and s == {1, 3} and r == b'Ay'",
    "items = [3, 1, 2]\nsort(items)\nassert items == [1, 2, 3]",
)
honest(
    "callbacks",
    """
    def group_by(items, key):
        out = {}
        for item in items:
            out.setdefault(key(item), []).append(item)
        return out
    def first(items, predicate, default=None):
        return next((item for item in items if predicate(item)), default)
    def fold(step, items, start):
        for item in items:
            start = step(start, item)
        return start
    def each(items, visit):
        for n, item in enumerate(items):
            visit(n, item)
    """,
    "assert group_by([1, 2, 3, 4], lambda n: n % 2) == {1: [1, 3], 0: [2, 4]}",
    "assert first('abc', str.isupper) is None and first([1, 5], lambda n: n > 2) == 5",
    "assert fold(lambda a, b: a * b, [1, 2, 3, 4], 1) == 24",
    "seen = []\neach('ab', lambda n, c: seen.append((n, c)))\nassert seen == [(0, 'a'), (1, 'b')]",
    "assert group_by(['a', 'bb', 'c'], len) == {1: ['a', 'c'], 2: ['bb']}",
)
honest(
    "a callback that raises",
    """
    def retry(function, times):
        for n in range(times):
            try:
                return function()
            except ValueError:
                if n == times - 1:
                    raise
    """,
    test="""
    def check(candidate):
        calls = []

        def flaky():
            calls.append(1)
            if len(calls) < 3:
                raise ValueError("not yet")
            return "done"

        assert candidate(flaky, 5) == "done"
        assert len(calls) == 3

        def broken():
            raise KeyError("k")

        try:
            candidate(broken, 2)
        except KeyError as error:
            assert error.args == ("k",)
        else:
            raise AssertionError
    """,
    entry_point="retry",
)
honest(
    "functions that return functions",
    """
    import functools
    def make_counter(start=0):
        def count():
            nonlocal start
            start += 1
            return start
        return count
    def compose(*functions):
        return lambda x: functools.reduce(lambda v, f: f(v), functions, x)
    def curry(f, *args):
        return functools.partial(f, *args)
    """,
    "c, d = make_counter(), make_counter(5)\nassert [c(), c(), d()] == [1, 2, 6]",
    "assert compose(lambda n: n + 1, lambda n: n * 2)(3) == 8 and compose()(4) == 4",
    "assert curry(pow, 2)(5) == 32 and curry(max, 1, 7)(3) == 7",
)
honest(
    "decorators",
    """
    import functools
    def memoize(function):
        cache = {}
        @functools.wraps(function)
        def wrapper(*args):
            if args not in cache:
                cache[args] = function(*args)
            return cache[args]
        wrapper.cache = cache
        return wrapper
    """,
    test="""
    def check(candidate):
        calls = []

        @candidate
        def slow(n):
            calls.append(n)
            return n + 1

        assert [slow(1), slow(1), slow(2)] == [2, 2, 3]
        assert calls == [1, 2]
        assert slow.__name__ == "slow"
    """,
    entry_point="memoize",
)
honest(
    "context managers",
    """
    import contextlib
    log = []
    @contextlib.contextmanager
    def section(name):
        log.append("in " + name)
        try:
            yield name.upper()
        finally:
            log.append("out " + name)
    class Ignore:
        def __init__(self, *kinds): self.kinds = kinds
        def __enter__(self): return self
        def __exit__(self, kind, error, trace): return kind is not None and issubclass(kind, self.kinds)
    """,
    "with section('a') as name:\n    assert name == 'A'\nassert log == ['in a', 'out a']",
    "with Ignore(KeyError):\n    {}['x']",
    "try:\n    with Ignore(KeyError):\n        int('x')\nexcept ValueError:\n    pass\nelse:\n    assert False",
)
honest(
    "coroutines",
    """
    import asyncio
    async def fetch(n):
        await asyncio.sleep(0.001)
        return n * n
    async def total(items):
        return sum(await asyncio.gather(*(fetch(n) for n in items)))
    """,
    test="""
    import asyncio

    def check(candidate):
        assert asyncio.run(candidate([1, 2, 3])) == 14

        async def main():
            return await candidate([2]) + await candidate([3])

        assert asyncio.run(main()) == 13
    """,
    entry_point="total",
)
honest(
    "what a test hands over",
    """
    def lines(stream): return [line.strip() for line in stream]
    def pull(items): return [n for n in items]
    def cost(items): return sum(item.price * item.count for item in items)
    """,
    "import io\nassert lines(io.StringIO('a\\nb\\n')) == ['a', 'b']",
    "assert pull(iter([1, 2])) == [1, 2] and pull(n for n in range(3)) == [0, 1, 2] and pull(range(2)) == [0, 1]",
    "import types\nassert cost([types.SimpleNamespace(price=2, count=3)]) == 6",
    "class Item:\n    def __init__(self, price, count):\n        self.price, self.count = price, count\nassert cost([Item(2, 1), Item(3, 4)]) == 14",
)

# --- exceptions ---

honest(
    "exceptions",
    """
    import decimal, json
    class InsufficientFunds(Exception):
        def __init__(self, needed):
            super().__init__(f"needs {needed} more")
            self.needed = needed
    class Account:
        def __init__(self, balance=0): self.balance = balance
        def withdraw(self, amount):
            if amount <= 0:
                raise ValueError("amount must be positive")
            if amount > self.balance:
                raise InsufficientFunds(amount - self.balance)
            self.balance -= amount
            return self.balance
    def parse(text): return json.loads(text)
    def ratio(a, b): return a / b
    def lookup(table, key): return table[key]
    """,
    test="""
    from json import JSONDecodeError
    from bank import Account, InsufficientFunds, lookup, parse, ratio

    def raises(kind, function, *args):
        try:
            function(*args)
        except kind as error:
            return error
        raise AssertionError(f"{kind} was not raised")

    def test_builtin():
        assert "positive" in str(raises(ValueError, Account(5).withdraw, 0))
        raises(ZeroDivisionError, ratio, 1, 0)
        raises(ArithmeticError, ratio, 1, 0)
        assert raises(KeyError, lookup, {}, "k").args[0] == "k"
        raises(LookupError, lookup, [], 3)
        raises(TypeError, ratio, "a", 1)

    def test_standard_library():
        assert raises(JSONDecodeError, parse, "{").pos == 1
        raises(ValueError, parse, "{")

    def test_custom():
        account = Account(10)
        error = raises(InsufficientFunds, account.withdraw, 15)
        assert error.needed == 5 and str(error) == "needs 5 more"
        assert isinstance(error, Exception) and not isinstance(error, ValueError)
        assert account.balance == 10 and account.withdraw(4) == 6
    """,
    evaluation="judge",
)
honest(
    "an exception as the answer",
    "def f(x):\n    if x < 0:\n        raise ValueError('negative')\n    return x ** 0.5\n",
    "assert f(4) == 2",
    "try:\n    f(-1)\n    assert False\nexcept ValueError:\n    pass",
    "import unittest\nwith unittest.TestCase().assertRaises(ValueError):\n    f(-2)",
)

# --- what programs do besides ---

honest(
    "threads",
    """
    import threading
    from concurrent.futures import ThreadPoolExecutor
    def f(n):
        lock, total = threading.Lock(), [0]
        def work():
            for _ in range(1000):
                with lock:
                    total[0] += 1
        threads = [threading.Thread(target=work) for _ in range(n)]
        for t in threads: t.start()
        for t in threads: t.join()
        with ThreadPoolExecutor(4) as pool:
            return total[0] + sum(pool.map(abs, range(-n, 0)))
    """,
    "assert f(4) == 4010",
)
honest(
    "multiprocessing",
    """
    import multiprocessing
    def square(n): return n * n
    def f(n):
        with multiprocessing.get_context("fork").Pool(2) as pool:
            return pool.map(square, range(n))
    """,
    "assert f(4) == [0, 1, 4, 9]",
    unless={"landlock": "its locks need /dev/shm, which all programs share"},
)
honest(
    "a subprocess",
    "import subprocess, sys\ndef f(x):\n    return int(subprocess.run([sys.executable, '-c', f'print({x} ** 2)'], capture_output=True, check=True).stdout)\n",
    "assert f(12) == 144",
)
honest(
    "temporary files",
    """
    import json, os, pathlib, tempfile
    def f(data):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "data.json"
            path.write_text(json.dumps(data))
            return json.loads(path.read_text())
    def g(text):
        with open("notes.txt", "w") as file:
            file.write(text)
        with open("notes.txt") as file:
            found = file.read()
        os.remove("notes.txt")
        return found
    """,
    "assert f({'a': [1]}) == {'a': [1]}",
    "assert g('hello') == 'hello'",
)
honest(
    "a file forgotten",
    "open('forgotten.txt', 'w').write('x' * 1000)\n" + SQUARE,
    "assert f(3) == 9",
)
honest(
    "noise",
    """
    import sys, warnings, logging
    print("OK", "FAILED", "Traceback (most recent call last):")
    warnings.warn("noise")
    logging.warning("noise")
    def f(x):
        print("thinking about", x, "\\x00\\xff\\x1b[2J", flush=True)
        sys.stderr.write("AssertionError\\n" * 100)
        return x * x
    """,
    "assert f(3) == 9",
    "assert f(4) == 16",
)
honest(
    "main guard and demonstration",
    SQUARE
    + "if __name__ == '__main__':\n    n = input('n? ')\n    print(f(int(n)))\n    raise SystemExit(1)\n",
    "assert f(3) == 9",
)
honest(
    "__future__ import after a docstring",
    '"""Squares."""\nfrom __future__ import annotations\n\ndef f(x: Unknown | None) -> Missing[x]:\n    return x * x\n',
    "assert f(3) == 9",
    setup="import math\n",
)
honest(
    "random with a seed, time, os",
    """
    import os, random, time
    def f(seed):
        random.seed(seed)
        started = time.time()
        time.sleep(0.01)
        assert time.time() >= started and os.getcwd() and os.environ is not None
        return random.randint(1, 100)
    """,
    test="import random\n\ndef check(candidate):\n    for seed in range(3):\n        assert candidate(seed) == random.Random(seed).randint(1, 100)\n",
    entry_point="f",
)
honest(
    "modern syntax",
    """
    import re
    from typing import Generic, TypeVar
    T = TypeVar("T")
    class Stack(Generic[T]):
        __slots__ = ("items",)
        def __init__(self): self.items: list[T] = []
        def push(self, item: T) -> None: self.items.append(item)
        def pop(self) -> T: return self.items.pop()
        def __len__(self) -> int: return len(self.items)
    def f(value, /, *rest, key=None, **more):
        match value:
            case {"op": "add", "args": [a, b]}:
                return a + b
            case [first, *_] if (m := re.match(r"\\d+", first)):
                return int(m.group())
            case str() as text:
                return f"{text!r:>8}|{len(rest)}|{key}|{sorted(more)}"
            case _:
                return None
    """,
    "assert f({'op': 'add', 'args': [1, 2]}) == 3",
    "assert f(['12ab']) == 12 and f(3.5) is None",
    "assert f('x', 1, 2, key=3, z=1, y=2) == \"     'x'|2|3|['y', 'z']\"",
    "s = Stack()\ns.push(4)\nassert len(s) == 1 and s.pop() == 4 and len(s) == 0",
)
honest(
    "unicode",
    "# -*- coding: latin-1 -*-\ndef größe(s):\n    return {'é': len(s), '数': s[::-1]}\n",
    "assert größe('añ😀') == {'é': 3, '数': '😀ña'}",
)
honest("CRLF", "def f(x):\r\n    y = '''a\r\nb'''\r\n    return x * x\r\n", "assert f(3) == 9")
honest("a byte order mark", "\ufeffdef f(x):\n    return x * x\n", "assert f(3) == 9")
honest(
    "tabs and form feeds",
    "def f(x):\n\tif x:\n\t\treturn x * x\n\t\n\x0c\nclass A:\n\tpass\n",
    "assert f(3) == 9",
)
honest(
    "a fence around it",
    "Here is the code:\n```python\ndef f(x):\n    return x * x\n```\nDone.\n",
    "assert f(3) == 9",
)

# --- floats, properties, HumanEval ---

honest(
    "tolerances",
    "import math\ndef area(r):\n    return math.pi * r ** 2\ndef root(x):\n    return math.sqrt(x)\n",
    "assert abs(area(2) - 12.566370614359172) < 1e-9",
    "import math\nassert math.isclose(root(2), 1.41421356, rel_tol=1e-6) and math.isinf(area(math.inf))",
    "assert round(area(1), 4) == 3.1416 and math.isnan(root(float('nan')))",
)
honest(
    "a property against brute force",
    "def primes(n):\n    sieve = [True] * (n + 1)\n    out = []\n    for p in range(2, n + 1):\n        if sieve[p]:\n            out.append(p)\n            sieve[p * p :: p] = [False] * len(sieve[p * p :: p])\n    return out\n",
    test="""
    import random

    def slow(n):
        return [p for p in range(2, n + 1) if all(p % d for d in range(2, p))]

    def check(candidate):
        rng = random.Random(0)
        for _ in range(20):
            n = rng.randrange(60)
            assert candidate(n) == slow(n), f"primes({n})"
        assert len(candidate(1000)) == 168
    """,
    entry_point="primes",
    evaluation="judge",
)
honest(
    "HumanEval: the rest of a prompt",
    "    return [n for n in numbers if n % 2 == 0]\n",
    prompt='from typing import List\n\n\ndef evens(numbers: List[int]) -> List[int]:\n    """ Even numbers.\n    >>> evens([1, 2])\n    [2]\n    """\n',
    test="METADATA = {'author': 'x'}\n\n\ndef check(candidate):\n    assert candidate([1, 2, 4]) == [2, 4]\n    assert candidate([]) == [], 'empty'\n    assert True\n",
    entry_point="evens",
)
honest(
    "HumanEval: a helper in the prompt",
    "    low, high = -10.0, 10.0\n    while high - low > 1e-12:\n        middle = (low + high) / 2\n        if poly(xs, low) * poly(xs, middle) <= 0:\n            high = middle\n        else:\n            low = middle\n    return low\n",
    prompt="def poly(xs, x):\n    return sum(c * x ** n for n, c in enumerate(xs))\n\ndef find_zero(xs):\n",
    test="def check(candidate):\n    for xs in ([1, 2], [-6, 11, -6, 1]):\n        assert abs(poly(xs, candidate(xs))) < 1e-4\n",
    entry_point="find_zero",
)
honest(
    "HumanEval: the function rewritten, its helper left in the prompt",
    "def find_zero(xs):\n    low, high = -10.0, 10.0\n    while high - low > 1e-12:\n        middle = (low + high) / 2\n        if poly(xs, low) * poly(xs, middle) <= 0:\n            high = middle\n        else:\n            low = middle\n    return low\n",
    prompt="import math\n\ndef poly(xs, x):\n    return sum(c * math.pow(x, n) for n, c in enumerate(xs))\n\ndef find_zero(xs):\n    ''' A root of the polynomial. '''\n",
    test="def check(candidate):\n    for xs in ([1, 2], [-6, 11, -6, 1]):\n        assert abs(poly(xs, candidate(xs))) < 1e-4\n",
    entry_point="find_zero",
)
TREE = """
class TreeNode:
    def __init__(self, val=0, left=None, right=None):
        self.val = val
        self.left = left
        self.right = right


def {name}(given):
"""
honest(
    "a class of the prompt's, returned",
    "    if not given:\n        return None\n    middle = len(given) // 2\n    return TreeNode(given[middle], build(given[:middle]), build(given[middle + 1:]))\n",
    prompt=TREE.format(name="build"),
    test="def check(candidate):\n    root = candidate([1, 2, 3])\n    assert root.val == 2 and root.left.val == 1 and root.right.val == 3\n    assert root.left.left is None and candidate([]) is None\n    assert isinstance(root.val, int)\n",
    entry_point="build",
)
honest(
    "a class of the prompt's, handed over",
    "    if given is None:\n        return None\n    given.left, given.right = mirror(given.right), mirror(given.left)\n    return given\n",
    prompt=TREE.format(name="mirror"),
    test="def check(candidate):\n    root = TreeNode(1, TreeNode(2, TreeNode(3)), TreeNode(4))\n    got = candidate(root)\n    assert got.val == 1 and got.left.val == 4 and got.right.val == 2 and got.right.right.val == 3\n    assert got.left.left is None and candidate(None) is None\n",
    entry_point="mirror",
)
honest(
    "a class of the test's, changed",
    "def insert(head, node):\n    node.next = head\n    node.count += 1\n    return node\n",
    test="""
    from solution import insert

    class Node:
        def __init__(self, val):
            self.val, self.next, self.count = val, None, 0

    def test_insert():
        first, second = Node(1), Node(2)
        head = insert(insert(None, first), second)
        assert head is second and head.next is first and first.next is None
        assert [first.count, second.count] == [1, 1]
    """,
)
honest(
    "a star import and a whole import",
    SQUARE,
    test="""
    import solution
    from solution import *

    def test_both():
        assert f(3) == 9 and solution.f(4) == 16
    """,
)
honest(
    "a TestCase",
    SQUARE
    + "def g(x):\n    if x < 0:\n        raise ValueError('negative')\n    return [x, {'k': x / 3}]\n",
    test="""
    import unittest
    from solution import f, g

    class TestBoth(unittest.TestCase):
        def setUp(self):
            self.n = 3

        def test_equal(self):
            self.assertEqual(f(self.n), 9)
            self.assertListEqual(g(3), [3, {"k": 1.0}])
            self.assertAlmostEqual(g(1)[1]["k"], 0.3333333, places=6)
            self.assertIn(3, g(3))
            self.assertIsInstance(f(2), int)

        def test_raises(self):
            with self.assertRaises(ValueError):
                g(-1)
            self.assertRaisesRegex(ValueError, "neg", g, -1)

    if __name__ == "__main__":
        unittest.main()
    """,
)
honest(
    "a test class",
    SQUARE,
    test="""
    from my_solution import f

    class TestSquares:
        numbers = [1, 2]

        def test_all(self):
            assert [f(n) for n in self.numbers] == [1, 4]
    """,
)
honest(
    "named check",
    "def check(n):\n    return n % 2 == 0\n",
    "assert check(2) == True",
    "assert check(3) == False",
)
honest(
    "named candidate and test_*",
    "def candidate(x):\n    return x + 1\ndef test_helper(x):\n    return candidate(x)\ndef f(x):\n    return test_helper(x)\n",
    test="from solution import f\n\ndef test_it():\n    assert f(1) == 2\n    assert f(-1) == 0\n",
)

# --- standard input and output ---


def stdio(name: str, code: str, *cases: tuple[str, str]) -> None:
    inputs, outputs = ([case[n] for case in cases] for n in (0, 1))
    honest(f"stdin: {name}", code, input_output={"inputs": inputs, "outputs": outputs})


stdio(
    "input()",
    "n = int(input())\nprint(sum(map(int, input().split())))\n",
    ("3\n1 2 3\n", "6\n"),
    ("1\n5", "5"),
)
stdio(
    "sys.stdin.read, trailing blanks",
    "import sys\nfor line in sys.stdin.read().split():\n    print(line[::-1], end=' \\n')\nprint()\n",
    ("ab cd\n", "ba\ndc\n"),
    ("x", "x"),
)
stdio(
    "a main function and exit",
    "import sys\ndef main():\n    for line in sys.stdin:\n        print(int(line) ** 2)\n    sys.exit(0)\nif __name__ == '__main__':\n    main()\n",
    ("2\n3\n", "4\n9\n"),
    ("5\n", "25\n"),
)
stdio(
    "buffers",
    "import os, sys\ndata = sys.stdin.buffer.read()\nsys.stdout.buffer.write(data.upper())\nsys.stdout.flush()\nprint('end', file=sys.stderr)\n",
    ("é\n", "é\n"),
    ("abc\n" * 2000, "ABC\n" * 2000),
)
SOLUTION = """
class Solution:
    def twoSum(self, nums: List[int], target: int) -> List[int]:
        seen = {}
        for n, x in enumerate(nums):
            if target - x in seen:
                return [seen[target - x], n]
            seen[x] = n
"""
honest(
    "stdin: LiveCodeBench",
    "print(int(input()) ** 2)\n",
    tests=[{"input": f"{n}\n", "output": f"{n * n}\n", "testtype": "stdin"} for n in (3, 4)],
)
honest(
    "LeetCode's class Solution",
    "from typing import List\n" + SOLUTION,
    input_output={
        "fn_name": "twoSum",
        "inputs": [[[2, 7, 11, 15], 9], [[3, 2, 4], 6]],
        "outputs": [[0, 1], [1, 2]],
    },
)
honest(
    "LiveCodeBench's functional tests",
    "from typing import *\n" + SOLUTION,
    tests=[{"input": "[2, 7, 11, 15]\n9", "output": "[0, 1]", "testtype": "functional"}],
    fn_name="twoSum",
)
