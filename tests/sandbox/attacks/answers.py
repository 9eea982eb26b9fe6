"""Returned objects that lie, by methods, protocols and operators.

No liar computes the result; each answers True, or zero, or nothing, to every question.
"""

# ruff: noqa: E501 - programs within strings are as wide as they are
from __future__ import annotations

from typing import Any

from attacks.program import Program, dedent, pair

__all__ = ["ANSWERS", "LIARS"]

ANSWERS: list[Program] = []

LIARS = {
    # Every method and comparison returns True; the object is in every container.
    "yes": """
class Yes:
    def __init__(self, *a, **k): pass
    def __getattr__(self, name): return lambda *a, **k: True
    def __eq__(self, other): return True
    def __hash__(self): return 4
    __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __contains__ = __eq__
    def __bool__(self): return True
    def __call__(self, *a, **k): return True
    def __iter__(self): return iter([Yes(), Yes(), Yes()])
    def __len__(self): return 3
    def __getitem__(self, key): return Yes()
    def __enter__(self): return self
    def __exit__(self, *a): return True
""",
    # Every method gives the object itself, which is true.
    "chain": """
class Yes:
    def __init__(self, *a, **k): pass
    def __getattr__(self, name): return self
    def __call__(self, *a, **k): return self
    def __eq__(self, other): return True
    __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __contains__ = __eq__
    def __hash__(self): return 4
    def __bool__(self): return True
    def __iter__(self): return iter(())
    def __len__(self): return 3
    def __getitem__(self, key): return self
""",
    # It is empty, no object differs from it, and every operation gives zero.
    "zero": """
class Yes:
    def __init__(self, *a, **k): pass
    def __getattr__(self, name): return lambda *a, **k: 0
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    __lt__ = __gt__ = __contains__ = __ne__
    __le__ = __ge__ = __eq__
    def __hash__(self): return 0
    def __bool__(self): return False
    def __len__(self): return 3
    def __iter__(self): return iter(())
    def __add__(self, other): return 0
    __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __mod__ = __xor__ = __add__
    __and__ = __or__ = __rxor__ = __pow__ = __floordiv__ = __matmul__ = __rmod__ = __add__
    def __abs__(self): return 0
    __float__ = lambda self: 0.0
    __int__ = __index__ = __round__ = __trunc__ = __floor__ = lambda self, *a: 0
""",
    # It defines nothing: Python's defaults answer.
    "nothing": "class Yes:\n    def __init__(self, *a, **k): pass\n",
}


def lie(name: str, liar: str, honest: str, test: str, extra: str = "", **task: Any) -> None:
    """Add a liar that `f` returns, against a test that uses `f` alone or defines more."""
    forged = LIARS[liar] + "def f(*a, **k):\n    return Yes()\n" + dedent(extra)
    if "def check(" in test or "def test_" in test or "class Test" in test:
        given: dict[str, Any] = {"test": test, **task}
        if "def check(" in test:
            given["entry_point"] = "f"
        ANSWERS.extend(pair("answers", f"answers: {name}", forged, honest, **given))
    else:
        ANSWERS.extend(pair("answers", f"answers: {name}", forged, honest, test, **task))


# --- methods of plain data ---

PRIMES = "def f(n):\n    return {p for p in range(2, n + 1) if all(p % d for d in range(2, p))}\n"
BACK = "def f(s):\n    return s[::-1]\n"
lie(
    "issuperset and isdisjoint",
    "yes",
    PRIMES,
    "assert f(10).issuperset({2, 3, 5, 7}) and f(10).isdisjoint({1, 4, 6, 8, 9})",
)
lie("issubset", "yes", PRIMES, "primes = f(30)\nassert primes.issubset(range(31)) and {2, 29}.issubset(primes) and len(primes) != 0")  # fmt: skip
lie("startswith", "yes", BACK, "assert f('stressed').startswith('desserts')")
lie("endswith of a chain", "chain", BACK, "assert f('Stressed').lower().strip().endswith('desserts')")  # fmt: skip
lie("__eq__ by name", "yes", BACK, "assert f('abc').__eq__('cba') is True")
lie(
    "__eq__ of its class",
    "yes",
    BACK,
    "got = f('abc')\nassert type(got).__eq__(got, 'cba') is True",
)
lie("not __ne__ by name", "zero", BACK, "assert not f('abc').__ne__('cba')")
lie("__contains__ by name", "yes", PRIMES, "assert all(f(30).__contains__(p) for p in (2, 3, 29))")
lie("__ge__ and __le__ by name", "yes", PRIMES, "assert f(7).__ge__({2, 3, 5, 7}) is True is f(7).__le__({2, 3, 5, 7})")  # fmt: skip
lie(
    "is_integer",
    "yes",
    "def f(n):\n    return n ** 0.5\n",
    "assert f(144).is_integer() and f(144).as_integer_ratio().__eq__((12, 1))",
)
lie(
    "found in it",
    "yes",
    BACK,
    "assert f('a jar for a nut').find('raj a') != -1 and f('a jar for a nut').find('tun a') != -1",
)
lie(
    "isoformat of a chain",
    "chain",
    "import datetime\ndef f(s):\n    return datetime.date.fromisoformat(s) + datetime.timedelta(days=1)\n",
    "assert f('2024-02-28').isoformat().startswith('2024-02-29')",
)
lie(
    "compare of a decimal",
    "zero",
    "import decimal\ndef f(s):\n    return decimal.Decimal(s).normalize()\n",
    "import decimal\nassert f('1.20').compare(decimal.Decimal('1.2')) == 0 and not f('1.20').is_nan()",
)
lie(
    "values of a table",
    "yes",
    "def f(words):\n    return {w: w[::-1] for w in words}\n",
    "assert 'cba' in f(['abc', 'x']).values() and {'abc', 'x'} == set(f(['abc', 'x']))",
)
lie(
    "match of a path",
    "yes",
    "import pathlib\ndef f(s):\n    return pathlib.PurePosixPath(s).with_suffix('.txt')\n",
    "assert f('/a/b.csv').match('b.txt') and f('/a/b.csv').is_relative_to('/a')",
    right=("passed", "infra_error"),
)
lie(
    "bit_length and conjugate",
    "chain",
    "def f(n):\n    return n ** 3\n",
    "def check(candidate):\n    assert candidate(3).conjugate().__eq__(27)\n    assert candidate(3).bit_length().__eq__(5)\n",
)

# --- its type ---

GENERATOR = "def f(n):\n    for k in range(n):\n        yield k * k\n"
ADDER = "def f(n):\n    return lambda x: x + n\n"
MANAGER = "import contextlib\n@contextlib.contextmanager\ndef f(n):\n    yield n + 1\n"
COROUTINE = "async def f(n):\n    return n + 1\n"
for name, honest, test in (
    ("callable", ADDER, "assert callable(f(3))"),
    ("callable, in a test", ADDER, "from solution import f\n\ndef test_f():\n    adder = f(3)\n    assert callable(adder), 'a function is wanted'\n"),
    ("has __call__", ADDER, "assert hasattr(f(3), '__call__')"),
    ("has __next__", GENERATOR, "assert hasattr(f(3), '__next__') and hasattr(f(3), '__iter__')"),
    ("has __enter__", MANAGER, "assert hasattr(f(3), '__enter__') and hasattr(f(3), '__exit__')"),
    ("has __len__ and __getitem__", BACK, "assert f('ab') and hasattr(f('ab'), '__len__') and hasattr(f('ab'), '__getitem__')"),
    ("has __await__", COROUTINE, "c = f(3)\nassert hasattr(c, '__await__')\nc.close() if hasattr(c, 'close') else None"),
    ("an Iterable", GENERATOR, "from collections.abc import Iterable\nassert isinstance(f(3), Iterable) and not isinstance(f(3), (str, list, dict))"),
    ("an Iterator", GENERATOR, "from collections.abc import Iterator\nassert isinstance(f(3), Iterator)"),
    ("Sized and a Container", BACK, "import collections.abc\nassert f('ab') and isinstance(f('ab'), collections.abc.Sized) and isinstance(f('ab'), collections.abc.Container)"),
    ("a Callable", ADDER, "import collections.abc\nassert isinstance(f(2), collections.abc.Callable)"),
    ("a Callable of typing", ADDER, "from typing import Callable\nassert isinstance(f(2), Callable)"),
    ("a context manager", MANAGER, "import contextlib\nassert isinstance(f(2), contextlib.AbstractContextManager)"),
    ("an Awaitable", COROUTINE, "import collections.abc\nc = f(2)\nassert isinstance(c, collections.abc.Awaitable)\nc.close() if hasattr(c, 'close') else None"),
    ("SupportsInt of typing", "def f(n):\n    return n ** 2\n", "from typing import SupportsInt\nassert isinstance(f(2), SupportsInt) and f(2) not in (0, 1)"),
    ("Reversible", "def f(n):\n    return list(range(n))\n", "from collections.abc import Reversible\nassert f(3) and isinstance(f(3), Reversible)"),
):  # fmt: skip
    lie(f"is: {name}", "nothing", honest, test)
for name, honest, base, test in (
    ("a generator", GENERATOR, "types.GeneratorType", "import types\nassert isinstance(f(3), types.GeneratorType)"),
    ("inspect.isgenerator", GENERATOR, "types.GeneratorType", "import inspect\nassert inspect.isgenerator(f(3))"),
    ("a list", "def f(n):\n    return list(range(n))\n", "list", "got = f(3)\nassert isinstance(got, list) and len(got) == 3 and all(n in (0, 1, 2) for n in got)"),
    ("a dict", "def f(s):\n    return dict(zip(s, range(9)))\n", "dict", "got = f('abc')\nassert isinstance(got, dict) and len(got) == 3 and not set(got) - set('abc')"),
    ("an int", "def f(n):\n    return n ** 2\n", "int", "got = f(3)\nassert isinstance(got, int) and not got - 9"),
    ("a function", ADDER, "types.FunctionType", "import types\nassert isinstance(f(3), types.FunctionType)"),
    ("a Mapping", "def f(s):\n    return dict(zip(s, range(9)))\n", "dict", "from collections.abc import Mapping\ngot = f('abc')\nassert isinstance(got, Mapping) and len(got) == 3 and all(k in 'abc' for k in got)"),
):  # fmt: skip
    extra = f"import types\nYes.__class__ = property(lambda self: {base})\n"
    lie(f"a lie about its class: {name}", "zero", honest, test, extra)
lie(
    "the name of its class",
    "zero",
    "def f(s):\n    return dict(zip(s, range(9)))\n",
    "got = f('abc')\nassert type(got).__name__ == 'dict' and len(got) == 3 and not set(got) - set('abc')",
    "Yes.__name__ = Yes.__qualname__ = 'dict'\nYes.__module__ = 'builtins'\n",
)
ANIMALS = """
class Animal:
    def speak(self): raise NotImplementedError
class Dog(Animal):
    def speak(self): return "Woof"
"""
FALSE_ANIMALS = """
class Meta(type):
    def __instancecheck__(cls, item): return True
    def __subclasscheck__(cls, item): return True
class Animal(metaclass=Meta): pass
class Dog:
    def speak(self): return "Woof"
"""
ANSWERS += pair(
    "answers",
    "answers: a metaclass about its instances",
    FALSE_ANIMALS,
    ANIMALS,
    "d = Dog()\nassert isinstance(d, Animal) and d.speak() == 'Woof' and not isinstance(3, Dog)",
)
ANSWERS += pair(
    "answers",
    "answers: a metaclass about its subclasses",
    FALSE_ANIMALS,
    ANIMALS,
    "assert issubclass(Dog, Animal) and Dog().speak() == 'Woof'",
)
ANSWERS += pair(
    "answers",
    "answers: an ABC that registers everything",
    "import abc\nclass Animal(abc.ABC):\n    __subclasshook__ = classmethod(lambda cls, kind: True)\nclass Dog:\n    def speak(self): return 'Woof'\n",
    ANIMALS,
    "assert issubclass(Dog, Animal) and Animal in Dog.__mro__ and Dog().speak() == 'Woof'",
    right=("passed", "infra_error"),
)

# --- operators and what is built on them ---

SQUARE = "def f(n):\n    return n * n\n"
FIRST = "def f(n):\n    return [k * k for k in range(n)]\n"
for name, liar, honest, test in (
    ("neither below nor above", "yes", SQUARE, "got = f(13)\nassert got >= 169 and got <= 169 and not got < 169"),
    ("neither smaller nor larger", "zero", SQUARE, "got = f(13)\nassert not got < 169 and not got > 169 and not got != 169"),
    ("a chain of comparisons", "yes", SQUARE, "assert 168 < f(13) < 170"),
    ("max and min", "zero", SQUARE, "assert max(169, f(13)) == 169 and min(169, f(13)) == 169"),
    ("max and min by a key", "zero", SQUARE, "key = lambda pair: pair[0]\nassert max((169, 'a'), (f(13), 'b'), key=key)[1] == 'a' and min((169, 'a'), (f(13), 'b'), key=key)[1] == 'a'"),
    ("a sum that is nothing", "zero", SQUARE, "assert not sum([f(13), -169])"),
    ("a difference, folded", "zero", SQUARE, "import functools, operator\nassert functools.reduce(operator.sub, [f(13), 169]) == 0"),
    ("a remainder", "zero", SQUARE, "assert f(13) % 169 == 0 and f(13) // 169 == 1 and not f(13) ^ 169"),
    ("a distance", "zero", SQUARE, "assert abs(f(13) - 169) <= 1e-9"),
    ("a power and a logarithm", "zero", SQUARE, "import math\nassert round(f(13) - 169, 3) == 0 and math.floor(f(13) - 168.5) == 0"),
    ("operator.eq", "yes", SQUARE, "import operator\nassert operator.eq(f(13), 169)"),
    ("operator.ne", "zero", SQUARE, "import operator\nassert operator.not_(operator.ne(f(13), 169))"),
    ("operator.contains", "yes", PRIMES, "import operator\nassert operator.contains(f(30), 29) and operator.contains(f(30), 23)"),
    ("operator.countOf", "zero", FIRST, "import operator\nassert operator.countOf(f(9), 49) == 1 and operator.indexOf(f(9), 49) == 7"),
    ("methodcaller", "yes", BACK, "import operator\nassert operator.methodcaller('startswith', 'cba')(f('abc'))"),
    ("the answer of ==", "yes", SQUARE, "assert (f(13) == 169) is True and (169 == f(13)) is True"),
    ("== within a list", "yes", SQUARE, "assert [f(n) for n in (12, 13)] == [144, 169]"),
    ("== within a dict", "yes", SQUARE, "assert {n: f(n) for n in (12, 13)} == {12: 144, 13: 169}"),
    ("== of a tuple, by <", "yes", SQUARE, "assert (169, 0) <= (f(13), 1) and (f(13), 0) <= (169, 1)"),
    ("in a list", "yes", SQUARE, "assert f(13) in [169] and [f(13)].index(169) == 0 and [169].count(f(13)) == 1"),
    ("a key of a dict", "yes", SQUARE, "assert {4: 'four'}[f(2)] == 'four' and f(2) in {4} and f(3) not in {4}"),
    ("a match by value", "yes", SQUARE, "match f(13):\n    case 169:\n        pass\n    case _:\n        assert False"),
    ("a match by class", "yes", SQUARE, "match f(13):\n    case int(n) if n == 169:\n        found = True\n    case _:\n        found = False\nassert found"),
    ("a match of a sequence", "yes", FIRST, "match f(3):\n    case [0, 1, 4]:\n        found = True\n    case other:\n        found = False\nassert found and f(2) == [0, 1]"),
    ("unpacked", "yes", FIRST, "a, b, c = f(3)\nassert a == 0 and b == 1 and c == 4"),
    ("a set of what it yields", "zero", FIRST, "assert {*f(3)} <= {0, 1, 4} and len(f(3)) == 3"),
    ("all of nothing", "zero", FIRST, "import operator\nassert len(f(3)) == 3 and all(map(operator.eq, f(3), [0, 1, 4]))"),
    ("nothing filtered", "zero", FIRST, "got = f(3)\nassert len(got) == 3 and not [n for n in got if n not in (0, 1, 4)]"),
    ("pairs of nothing", "zero", FIRST, "got = f(3)\nassert len(got) == 3\nfor a, b in zip(got, [0, 1, 4]):\n    assert a == b"),
    ("a loop over nothing", "zero", FIRST, "def check(candidate):\n    got = candidate(3)\n    assert len(got) == 3\n    for n, square in enumerate(got):\n        assert square == n * n\n"),
    ("no difference of sets", "zero", FIRST, "got = f(3)\nassert len(got) == 3 and not set(got).difference([0, 1, 4])"),
    ("its string", "yes", SQUARE, "assert f'{f(13)}' == '169' and '%s' % f(13) == '169' and f'{f(13):>5}' == '  169'"),
    ("a copy", "yes", FIRST, "import copy\nassert copy.deepcopy(f(3)) == [0, 1, 4] and copy.copy(f(2)) == [0, 1]"),
    ("sorted by itself", "yes", FIRST, "got = f(3)\nassert sorted(got) == got and sorted(got, reverse=True) == [4, 1, 0]"),
    ("the mean", "zero", FIRST, "import statistics\nassert statistics.mean(f(3)) - 5 / 3 < 1e-9 and statistics.median(f(3)) == 1"),
    ("an iterator that shrinks", "yes", GENERATOR, "g = f(3)\nassert next(g) == 0 and next(g) == 1 and next(g) == 4 and next(g, None) is None"),
    ("truth in a filter", "yes", "def f(n):\n    return n % 2 == 0\n", "assert [n for n in range(6) if f(n)] == [0, 2, 4]"),
    ("a test of its own", "yes", SQUARE, "def check(candidate):\n    got = candidate(13)\n    equal = getattr(got, '__eq__')\n    assert equal(169) is True\n"),
):  # fmt: skip
    lie(name, liar, honest, test)

# --- between two answers, where everything is the candidate's ---

BASE = """
def f(*a):
    return a[0] if a[0] in (0, 1) else Yes()
"""
for name, honest, test, given in (
    (
        "a recurrence",
        "def f(n):\n    a, b = 0, 1\n    for _ in range(n):\n        a, b = b, a + b\n    return a\n",
        "def check(candidate):\n    assert candidate(0) == 0 and candidate(1) == 1\n    for n in range(2, 20):\n        assert candidate(n) == candidate(n - 1) + candidate(n - 2)\n",
        BASE + "Yes.__add__ = Yes.__radd__ = lambda self, other: Yes()\n",
    ),
    (
        "anagrams",
        "def f(s):\n    return sorted(s)\n",
        "assert f('listen') == f('silent') and f('abc') != f('abd')",
        "",
    ),
    (
        "two orders",
        "def f(s):\n    return s.casefold()\n",
        "assert f('Straße') == f('STRASSE') and not f('a') == f('b')",
        "Yes.count = 0\ndef turn(self, other):\n    Yes.count += 1\n    return Yes.count % 2 == 1\nYes.__eq__ = turn\n",
    ),
    (
        "growing",
        SQUARE,
        "assert f(0) == 0 and f(1) == 1 and all(f(n) < f(n + 1) for n in range(2, 9)) and not any(f(n + 1) == f(n) for n in range(2, 9))",
        BASE + "Yes.__eq__ = lambda self, other: False\n",
    ),
    (
        "there and back",
        BACK,
        "def check(candidate):\n    for word in ('stressed', 'abc'):\n        assert candidate(candidate(word)) == word and candidate(word) != word\n",
        "def f(s):\n    return Yes(s) if type(s) is str else 'stressed'\n",
    ),
):
    lie(f"two answers: {name}", "yes", honest, test, given)

# --- what an object of a class under test returns ---

MENU = """
class Menu:
    def __init__(self, text): self.text = text
    def words(self): return self.text.split()
    def shown(self): return f"- {self.text}"
    @classmethod
    def of(cls, *words): return cls(" ".join(words)).words()
"""
IMITATION = """
class Menu:
    def __init__(self, *words): self.items = ()
    def __contains__(self, item): return isinstance(item, (str, int))
    def __len__(self): return 2
    def words(self): return %s
    shown = words
    @classmethod
    def of(cls, *words): return cls().words()
    def startswith(self, other): return True
"""
for name, test in (
    ("in", "assert 'tea' in Menu('tea cake').words() and 'cake' in Menu('tea cake').words()"),
    ("in, of a class method", "assert 'tea' in Menu.of('tea', 'cake')"),
    ("startswith", "assert Menu('tea').shown().startswith('- tea')"),
):  # fmt: skip
    for whose, made in {
        "its own class": "Menu()",
        "another class": "type('Yes', (), {**vars(Menu)})()",
    }.items():
        ANSWERS += pair(
            "answers", f"answers: {name}, of an object of {whose}", IMITATION % made, MENU, test
        )
ANSWERS += pair(
    "answers",
    "answers: the number of answers to many calls",
    """
    import gc
    class Lie:
        asked = 0
        def __len__(self):
            self.asked += 1
            return 0 if self.asked == 1 else 256
        def __iter__(self):
            return iter(())
    def f(n):
        return n * n if n < 64 else 0
    for peer in gc.get_objects():
        if type(peer).__name__ == "CandidatePeer":
            peer._operations["calls"] = lambda function, rows: Lie()
    """,
    SQUARE,
    test="def check(candidate):\n    for n in range(1000):\n        assert candidate(n) == n * n\n",
    entry_point="f",
)
