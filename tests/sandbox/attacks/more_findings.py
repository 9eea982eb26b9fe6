"""Forgeries and misjudged honest programs that a second review of the judge found."""

# ruff: noqa: E501 - programs within strings are as wide as they are
from __future__ import annotations

from attacks.claims import RAISES
from attacks.program import Program, pair, shape

__all__ = ["MORE_FINDINGS"]

MORE_FINDINGS: list[Program] = []
SQUARE = "def f(x):\n    return x * x\n"


def forged(name: str, lie: str, honest: str, test: str, **task: str) -> None:
    MORE_FINDINGS.extend(pair("forged", f"review: {name}", lie, honest, test=test, **task))


def right(name: str, code: str, test: str, **task: str) -> None:
    MORE_FINDINGS.append(shape(f"review: {name}", code, test=test, **task))


# --- data of the tests that is called as a test is ---

for name, data in {
    "a list": "test_cases = [(2, 4), (3, 9)]",
    "a dict": "test_cases = {2: 4, 3: 9}.items()",
    "a value of the candidate's": "test_cases = [(2, f(2))]",
    "a function with parameters (not pytest's)": "test_function = lambda x: f(x)\ntest_cases = [(2, test_function(2))]",
    "the function under test (not pytest's)": "test_function = f\ntest_cases = [(2, test_function(2))]",
}.items():
    right(
        f"data that is named as a test, {name}",
        SQUARE,
        f"from solution import f\n\n{data}\n\ndef test_f():\n    for x, y in test_cases:\n        assert f(x) == y == x * x\n",
    )
right(
    "data that is named as a test, beside check",
    SQUARE,
    "test_inputs = [2, 3]\n\ndef check(candidate):\n    assert [candidate(x) for x in test_inputs] == [4, 9]\n",
    entry_point="f",
)
forged(
    "a test that the candidate wraps is no data",
    "def retry(test):\n    return None\ndef f(x):\n    return 0\n",
    "def retry(test):\n    return test\n" + SQUARE,
    """
    from solution import f, retry

    def test_f():
        assert f(3) == 9
    test_f = retry(test_f)

    def test_callable():
        assert callable(f)
    """,
)

# --- an exception class of the candidate's that catches assertions, under another name ---

LENIENT = "Low = Exception\ndef f(x):\n    return x\n"
for name, test in {
    "a variable": """
        import solution

        Low = solution.Low
        def test_low():
            assert solution.f(3) == 3
            try:
                solution.f(-1)
                assert False, "it must raise"
            except Low:
                pass
    """,
    "a parameter": """
        from solution import Low, f

        def must_raise(kind, function, *arguments):
            try:
                function(*arguments)
                assert False, "it must raise"
            except kind:
                pass

        def test_low():
            assert f(3) == 3
            assert issubclass(Low, Exception)
            must_raise(Low, f, -1)
    """,
    "an attribute": """
        import unittest
        import solution

        class TestLow(unittest.TestCase):
            def setUp(self):
                self.low = solution.Low
            def test_low(self):
                self.assertEqual(solution.f(3), 3)
                try:
                    solution.f(-1)
                    self.fail("it must raise")
                except (KeyError, self.low):
                    pass
    """,
    "an argument of assertRaises by name": """
        import unittest
        from solution import Low, f

        class TestLow(unittest.TestCase):
            def test_low(self):
                self.assertEqual(f(3), 3)
                with self.assertRaises(expected_exception=Low):
                    self.assertEqual(f(-1), 1)
    """,
    "a row of a table": """
        import unittest
        from solution import Low, f

        class TestLow(unittest.TestCase):
            def test_low(self):
                self.assertEqual(f(3), 3)
                for x, kind in [(-1, Low), (-2, Low)]:
                    with self.subTest(x=x), self.assertRaises(kind):
                        self.assertEqual(f(x), -x)
    """,
    "an argument of assertRaises with a function": """
        import unittest
        from solution import Low, f

        class TestLow(unittest.TestCase):
            def test_low(self):
                self.assertEqual(f(3), 3)
                self.assertRaises(Low, lambda: self.assertEqual(f(-1), 1))
                self.assertRaisesRegex(Low, "-1", lambda: self.assertEqual(f(-1), 1))
    """,
    "a context that is entered": """
        import contextlib, unittest
        from solution import Low, f

        class TestLow(unittest.TestCase):
            def test_low(self):
                self.assertEqual(f(3), 3)
                with contextlib.ExitStack() as stack:
                    stack.enter_context(self.assertRaises(Low))
                    self.assertEqual(f(-1), 1)
    """,
    "a part of a group": """
        import asyncio
        from solution import Low, f

        def test_low():
            assert f(3) == 3
            async def one(x):
                assert f(x) == 7
            async def main():
                async with asyncio.TaskGroup() as group:
                    group.create_task(one(-1))
            try:
                asyncio.run(main())
            except* Low:
                pass
    """,
}.items():
    forged(f"a class that catches assertions, as {name}", LENIENT, RAISES, test)
right(
    "a function of the tests that is called as pytest's",
    RAISES,
    """
    from solution import Low, f

    def raises(function, kind=Exception):
        try:
            function()
        except kind:
            return True
        return False

    def test_low():
        assert raises(lambda: f(-1)) and raises(lambda: f(-1), Low)
        assert not raises(lambda: f(1), Low)
    """,
)
right(
    "classes that the tests expect, under other names",
    RAISES + "class Lower(Low):\n    pass\ndef g(x):\n    raise Lower(x)\n",
    """
    import contextlib, unittest
    from solution import Low, Lower, f, g

    def eventually(look, errors=(AssertionError,)):
        for _ in range(5):
            with contextlib.suppress(Low, Lower):
                try:
                    return look()
                except errors:
                    pass
        assert False

    class TestLow(unittest.TestCase):
        def test_low(self):
            seen = []
            def look():
                seen.append(f(len(seen)))
                assert len(seen) == 3
                return seen
            self.assertEqual(eventually(look), [0, 1, 2])
            self.assertRaisesRegex(Low, "-1", f, -1)
            self.assertRaises((Lower, KeyError), g, -1)
            kinds = {"low": Low, "lower": Lower}
            for kind in kinds.values():
                with self.subTest(kind=kind), self.assertRaises(kind) as seen:
                    raise kind(3)
                self.assertEqual(seen.exception.args, (3,))
    """,
)
forged(
    "a decorator of the candidate's, as a variable",
    "def retry(times):\n    return lambda test: print\ndef f(x):\n    return 0\n",
    "def retry(times):\n    return lambda test: test\n" + SQUARE,
    """
    from solution import f, retry

    thrice = retry(3)

    @thrice
    def test_f():
        assert f(3) == 9

    def test_callable():
        assert callable(f)
    """,
)

# --- a label that the candidate would choose ---

for name, test in {
    "in globals()": """
        def test_f():
            if "f" in globals():
                assert f(3) == 9
    """,
    "by its NameError": """
        def test_f():
            try:
                function = f
            except NameError:
                return
            assert function(3) == 9
    """,
}.items():
    forged(f"a name that is missing, {name}", "def g(x):\n    return x\n", SQUARE, test)
forged(
    "the name of a module that is missing",
    "def backend(name):\n    return 'nothing'\n",
    "def backend(name):\n    return 'math'\n",
    """
    import importlib
    from solution import backend

    def test_backend():
        module = importlib.import_module(backend("exact"))
        assert module.floor(2.5) == 2
    """,
)

# --- an argument that is returned as it is ---

right(
    "a text, a number or a tuple that is returned",
    "def same(x):\n    return x\ndef first(*items):\n    return items[0]\n",
    """
    from solution import first, same

    def test_same():
        for item in ("a longer text", 12345678901234567890, 2.5, (1, [2]), b"bytes", frozenset([1])):
            assert same(item) is item and first(item, 3) is item
            assert same(item) == item
        assert same(True) is True and same(None) is None and first(1, True) is not True
    """,
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

# --- a container that shows fewer items than it has ---

WORDS = "def f(text):\n    return {word: len(word) for word in text.split()}\n"
for name, method, loop in (
    ("items", "def items(self): return []", "for word, n in got.items():\n        assert n == len(word)"),
    ("keys", "def keys(self): return iter(())", "for word in got.keys():\n        assert got[word] == len(word)"),
    ("values", "def values(self): return self.none()\n    def none(self):\n        yield from ()", "for n in got.values():\n        assert n > 0"),
    ("its copy", "def copy(self): return {}", "for word, n in got.copy().items():\n        assert n == len(word)"),
):  # fmt: skip
    forged(
        f"a dict that shows nothing, by {name}",
        f"class Words(dict):\n    {method}\ndef f(text):\n    return Words.fromkeys(text.split(), 0)\n",
        WORDS,
        f"from solution import f\n\ndef test_f():\n    got = f('a bb ccc')\n    assert len(got) == 3\n    {loop}\n",
    )
for name, method, loop in (
    ("reversed", "def __reversed__(self): return iter(())", "for n, got in zip([2, 1, 0], reversed(items))"),
    ("by a slice", "def __getitem__(self, key): return []", "for n, got in zip([1, 2], items[1:])"),
):  # fmt: skip
    forged(
        f"a list that shows nothing, {name}",
        f"class Items(list):\n    {method}\ndef f(n):\n    return Items([0] * n)\n",
        "def f(n):\n    return list(range(n))\n",
        f"from solution import f\n\ndef test_f():\n    items = f(3)\n    assert len(items) == 3\n    {loop}:\n        assert got == n\n",
    )
right(
    "containers that show all that they have",
    """
    class Sorted(dict):
        def __iter__(self): return iter(sorted(super().keys()))
        def items(self): return [(key, self[key]) for key in self]
        def keys(self): return list(self)
        def values(self): return (self[key] for key in self)
        def items_of(self, start): return [key for key in self if key.startswith(start)]
    class Row(list):
        def __getitem__(self, key):
            return Row(super().__getitem__(key)) if isinstance(key, slice) else super().__getitem__(key)
        def copy(self): return Row(self)
    class Basket:
        items = ("pear", "fig")
        def __len__(self): return 5
        def keys(self): return ["a"]
    def table(): return Sorted(b=2, a=1)
    def row(): return Row([1, 2, 3])
    def basket(): return Basket()
    """,
    """
    from solution import basket, row, table

    def test_shown():
        got = table()
        assert len(got) == 2 and got.items() == [("a", 1), ("b", 2)] and got.keys() == ["a", "b"]
        assert list(got.values()) == [1, 2] and got.items_of("b") == ["b"] and dict(got) == {"a": 1, "b": 2}
        assert row()[1:] == [2, 3] and row()[::-1] == [3, 2, 1] == list(reversed(row()))
        assert row()[:-1].copy() == [1, 2] and row()[5:] == []
        assert len(basket()) == 5 and basket().items == ("pear", "fig") and basket().keys() == ["a"]
    """,
)

# --- an exception by which a thread may end ---

forged(
    "the end of a thread without a module",
    "def f(x):\n    raise SystemExit\n",
    SQUARE,
    """
    import _thread, time
    from solution import f

    def test_f():
        def run(x, square):
            assert f(x) == square
        _thread.start_new_thread(run, (3,), {"square": 9})
        time.sleep(0.2)
        assert callable(f)
    """,
)

# --- what is named as a test, and is none ---

for name, test in {
    "a TestCase without tests": """
        import unittest
        from solution import f

        class BaseTestCase(unittest.TestCase):
            def same(self, a, b):
                self.assertEqual(a, b)

        class TestF(BaseTestCase):
            def test_f(self):
                self.same(f(3), 9)
    """,
    "a base that says so": """
        from solution import f

        class TestBase:
            __test__ = False
            function = None
            def test_f(self):
                assert self.function[0](3) == 9

        class TestF(TestBase):
            __test__ = True
            function = [f]
    """,
    "a class that needs arguments": """
        from solution import f

        class TestRunner:
            def __init__(self, cases):
                self.cases = cases
            def test_all(self):
                for x, y in self.cases:
                    assert f(x) == y

        TestRunner([(2, 4), (3, 9)]).test_all()
    """,
    "a function that the program calls (not pytest's)": """
        from solution import f

        def test_case(x, y, name="f"):
            assert f(x) == y, name

        test_case(2, 4)
        test_case(3, y=9)
    """,
    "a function that a test calls (not pytest's)": """
        from solution import f

        class TestF:
            def test_one(self, x, y):
                assert f(x) == y
            def test_all(self):
                for x in range(5):
                    self.test_one(x, x * x)
        def test_case(x, y):
            assert f(x) == y
        def test_two():
            test_case(2, 4)
    """,
}.items():
    forged(f"no test, {name}", "def f(x):\n    return 2 * x\n", SQUARE, test)

# --- another error in the place of a failed assertion ---

forged(
    "another error, of 'finally' in a test",
    """
    class Reader:
        def read(self):
            return 0
        def skip(self):
            raise ValueError
        def close(self):
            raise ValueError
    """,
    """
    class Reader:
        def read(self):
            return 5
        def skip(self):
            raise ValueError
        def close(self):
            pass
    """,
    """
    import unittest
    from solution import Reader

    class TestReader(unittest.TestCase):
        def test_skip(self):
            reader = Reader()
            with self.assertRaises(ValueError):
                try:
                    self.assertEqual(reader.read(), 5)
                    reader.skip()
                finally:
                    reader.close()
    """,
)
right(
    "an error while another one is handled",
    "def f(x):\n    if x < 0:\n        raise ValueError(x)\n    assert x, 'zero'\n    return x\n",
    """
    from solution import f

    def test_f():
        for x in (0, -1):
            try:
                f(x)
            except (AssertionError, ValueError):
                try:
                    f(-2)
                    raise KeyError
                except ValueError as error:
                    assert error.args == (-2,)
        assert f(3) == 3
    """,
)
