"""Forgeries and misjudged honest programs that a fourth review of the judge found."""

# ruff: noqa: E501 - programs within strings are as wide as they are
from __future__ import annotations

from typing import Any

from attacks.program import Program, attack, pair, shape

__all__ = ["FOURTH_FINDINGS"]

FOURTH_FINDINGS: list[Program] = []
SQUARE = "def f(x):\n    return x * x\n"
ZERO = "def f(x):\n    return 0\n"


def forged(name: str, lie: str, honest: str, test: str, **task: Any) -> None:
    FOURTH_FINDINGS.extend(pair("forged", f"fourth: {name}", lie, honest, test=test, **task))


def right(name: str, code: str, test: str, **task: Any) -> None:
    FOURTH_FINDINGS.append(shape(f"fourth: {name}", code, test=test, **task))


# --- a test that the candidate gets, by whatever way, and leaves out ---

LEAVES_OUT = "def wrap(*tests):\n    made = [lambda *a: None for test in tests]\n    return made[0] if len(made) == 1 else made\n"
WRAPS = "def wrap(*tests):\n    return tests[0] if len(tests) == 1 else tests\n"
for name, again in {
    "an expression": "(test_f := wrap(test_f))",
    "an annotated name": "test_f: object = wrap(test_f)",
    "a tuple": "test_f, wrapped = wrap(test_f), True",
    "several at once": "test_f, test_g = wrap(test_f, test_g)",
    "a loop": "for test_f in [wrap(test_f)]:\n    pass",
    "a comprehension": "test_f = [wrap(test) for test in [test_f]][0]",
    "a map": "(test_f,) = map(wrap, [test_f])",
    "globals().update": "globals().update(test_f=wrap(test_f))",
}.items():
    forged(
        f"a test that is bound again by {name}",
        LEAVES_OUT + ZERO,
        WRAPS + SQUARE,
        f"from solution import f, wrap\n\ndef test_f():\n    assert f(3) == 9\ndef test_g():\n    assert f(2) == 4 or f(0) == 0\n\n{again}\n\ndef test_0():\n    assert f(0) == 0\n",
    )
CASE = """
import unittest
from solution import f, wrap
{before}
class {name}:
    def test_f(self):
        assert f(3) == 9
{after}
class TestZero(unittest.TestCase):
    def test_0(self):
        self.assertEqual(f(0), 0)
"""
EMPTIES = "def wrap(kind):\n    return object\n"
for name, kind, before, after, judged in (
    ("TestCase, bound again", "TestSquare(unittest.TestCase)", "", "TestSquare = wrap(TestSquare)", True),
    ("class, bound again", "TestSquare", "", "TestSquare = wrap(TestSquare)", True),
    ("class in a list", "TestSquare", "", "[TestSquare] = map(wrap, [TestSquare])", True),
    ("TestCase of another name, decorated", "SquareCase(unittest.TestCase)", "@wrap", "", False),
):  # fmt: skip
    forged(
        f"a {name}",
        EMPTIES + ZERO,
        WRAPS + SQUARE,
        CASE.format(name=kind, before=before, after=after),
        **({} if judged else {"verdicts": ["infra_error"], "right": ["infra_error"]}),
    )
for name in ("setUp", "tearDown"):
    forged(
        f"a {name} that the candidate decorates",
        LEAVES_OUT + ZERO,
        WRAPS + SQUARE,
        f"""
        import unittest
        from solution import f, wrap

        class TestF(unittest.TestCase):
            @wrap
            def {name}(self):
                self.assertEqual(f(3), 9)
            def test_0(self):
                self.assertEqual(f(0), 0)
        """,
    )
right(
    "functions that are named as tests, and are none (not pytest's)",
    "def retry(times):\n    def decorate(function):\n        def run(*given):\n            for left in reversed(range(times)):\n                try:\n                    return function(*given)\n                except ValueError:\n                    if not left:\n                        raise\n        return run\n    return decorate\ndef each(function, items):\n    return [function(item) for item in items]\n",
    """
    import unittest
    from solution import each, retry

    def test_even(n):
        return n % 2 == 0

    class TestRetry(unittest.TestCase):
        def test_retry(self):
            tried = []
            @retry(3)
            def test_function():
                tried.append(1)
                raise ValueError
            with self.assertRaises(ValueError):
                test_function()
            self.assertEqual(tried, [1, 1, 1])
        def test_each(self):
            self.assertEqual(each(test_even, [1, 2]), [False, True])
            self.assertEqual(each(self.test_retry.__name__.count, "r"), [2])
    """,
)

right(
    "a class with failing tests, for a runner of tests",
    "def run(kind):\n    failed = []\n    for name in dir(kind):\n        if name.startswith('test'):\n            try:\n                getattr(kind(), name)()\n            except ValueError:\n                failed.append(name)\n    return failed\n",
    """
    from solution import run

    class Sample:
        def test_good(self):
            pass
        def test_bad(self):
            raise ValueError

    def test_run():
        assert run(Sample) == ["test_bad"]
        assert getattr(Sample(), "test_good")() is None
    """,
)

# --- a coroutine of the tests that the candidate closes, or cancels ---

GATHER = "import asyncio\nasync def gather(*made):\n    return await asyncio.gather(*made)\nasync def f(x):\n    return x * x\n"
for name, gather in {
    "closes": "for one in made: one.close()",
    "cancels": "for one in made:\n        task = asyncio.ensure_future(one)\n        await asyncio.sleep(0)\n        task.cancel()",
    "forgets": "globals().update(kept=made)",
}.items():
    forged(
        f"a coroutine of the tests that the candidate {name}",
        f"import asyncio\nasync def gather(*made):\n    {gather}\n    return [0] * len(made)\nasync def f(x):\n    await asyncio.sleep(5)\n",
        GATHER,
        """
        import asyncio
        from solution import f, gather

        async def one(x):
            got = await f(x)
            assert got == x * x
            return 0

        def test_gather():
            assert asyncio.run(gather(one(2), one(3))) == [0, 0]
        """,
    )
right(
    "coroutines of the tests that are to be cancelled",
    GATHER
    + "async def race(*made):\n    tasks = [asyncio.ensure_future(one) for one in made]\n    done, rest = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)\n    for task in rest: task.cancel()\n    return done.pop().result()\nasync def limited(made, seconds):\n    return await asyncio.wait_for(made, seconds)\nasync def twice(function, x):\n    return await function(x), await function(x)\n",
    """
    import asyncio, unittest
    from solution import gather, limited, race, twice

    class TestTasks(unittest.IsolatedAsyncioTestCase):
        async def test_race(self):
            async def fast():
                return 1
            async def slow():
                await asyncio.sleep(9)
                self.fail("it is too late")
            self.assertEqual(await race(fast(), slow()), 1)
        async def test_limited(self):
            seen = []
            async def slow():
                try:
                    await asyncio.sleep(9)
                    assert False, "it is too late"
                except asyncio.CancelledError:
                    seen.append(1)
                    raise
            with self.assertRaises(asyncio.TimeoutError):
                await limited(slow(), 0.05)
            self.assertEqual(seen, [1])
        async def test_all(self):
            async def one(x):
                await asyncio.sleep(0.01)
                assert x > 0
                return x
            self.assertEqual(await gather(one(1), one(2)), [1, 2])
            self.assertEqual(await twice(one, 3), (3, 3))
    """,
)

# --- a test that skips itself: because of the candidate, or before it has asked it anything ---

NOTHING = "def f(x):\n    return None if x else 0\n"
for name, test in {
    "a test": """
        def test_f(self):
            got = f(3)
            if got is None:
                self.skipTest("not there")
            self.assertEqual(got, 9)
    """,
    "a test, after setUp": """
        def setUp(self):
            self.got = f(3)
        def test_f(self):
            if self.got is None:
                self.skipTest("not there")
            self.assertEqual(self.got, 9)
    """,
    "a class of tests": """
        @classmethod
        def setUpClass(cls):
            cls.got = f(3)
            if cls.got is None:
                raise unittest.SkipTest("not there")
        def test_f(self):
            self.assertEqual(self.got, 9)
    """,
    "a test, after the class": """
        @classmethod
        def setUpClass(cls):
            cls.got = f(3)
        def test_f(self):
            if self.got is None:
                self.skipTest("not there")
            self.assertEqual(self.got, 9)
    """,
}.items():
    forged(
        f"skipped because of the candidate: {name}",
        NOTHING,
        SQUARE,
        f"import unittest\nfrom solution import f\n\nclass TestZero(unittest.TestCase):\n    def test_0(self):\n        self.assertEqual(f(0), 0)\n\nclass TestF(unittest.TestCase):{test}",
    )
forged(
    "skipped for another reason",
    ZERO,
    SQUARE,
    """
    import sys, unittest
    from solution import f

    class TestF(unittest.TestCase):
        def test_0(self):
            self.assertEqual(f(0), 0)
        def test_1_later(self):
            if sys.version_info < (9, 0):
                self.skipTest("needs Python 9")
            self.assertEqual(f(2), 5)
        def test_f(self):
            self.assertEqual(f(3), 9)

    @unittest.skip("not now")
    class TestLater(unittest.TestCase):
        def test_later(self):
            self.assertEqual(f(2), 5)

    class TestNine(unittest.TestCase):
        @classmethod
        def setUpClass(cls):
            if sys.version_info < (9, 0):
                raise unittest.SkipTest("needs Python 9")
        def test_nine(self):
            self.assertEqual(f(2), 5)
    """,
)
PYTEST = "import pytest\nfrom solution import *\n\ndef test_0():\n    assert f(0) == 0\n"
TIMER = "class Timer:\n    def __enter__(self):\n        return self\n    def __exit__(self, *error):\n        return %s\n"
for name, lie, honest, test in (
    ("expected to fail because of the candidate", NOTHING, SQUARE, "def test_f():\n    got = f(3)\n    if got is None:\n        pytest.xfail('not there')\n    assert got == 9\n"),
    ("a skip of a fixture", NOTHING, SQUARE, "@pytest.fixture\ndef got():\n    made = f(3)\n    if made is None:\n        pytest.skip('not there')\n    return made\n\ndef test_f(got):\n    assert got == 9\n"),
    ("a skip that the candidate swallows", TIMER % "True" + NOTHING, TIMER % "False" + SQUARE, "def test_f():\n    with Timer():\n        got = f(3)\n        if got is None:\n            pytest.skip('not there')\n        assert got == 9\n"),
    ("a skip for another reason", ZERO, SQUARE, "def test_later():\n    pytest.importorskip('nothing_of_that_name')\n    assert f(2) == 5\n\n@pytest.mark.skip\ndef test_not():\n    assert f(2) == 5\n\n@pytest.mark.xfail\ndef test_wrong():\n    assert f(2) == 5\n\ndef test_f():\n    assert f(3) == 9\n"),
    ("what a fixture asserts at its end", ZERO, SQUARE, "@pytest.fixture\ndef setup():\n    yield 3\n    assert f(3) == 9\n\ndef test_with(setup):\n    assert f(0) == 0\n"),
):  # fmt: skip
    forged(f"pytest: {name}", lie, honest, PYTEST + "\n" + test, needs=("pytest",))

# --- a function of the candidate that an ExitStack calls as `__exit__` ---

for name, lie in {
    "an assertion": "def quiet(*error):\n    return True\n" + ZERO,
    "an error before it": "def quiet(*error):\n    return True\ndef f(x):\n    raise ValueError\n",
    "an assertion, with another error": "def quiet(*error):\n    if error[0]:\n        raise KeyError\n"
    + ZERO,
}.items():
    forged(
        f"a function that swallows {name}",
        lie,
        "def quiet(*error):\n    return error[0] is KeyError\n" + SQUARE,
        """
        import contextlib, unittest
        from solution import f, quiet

        class TestF(unittest.TestCase):
            def test_quiet(self):
                with contextlib.suppress(KeyError), contextlib.ExitStack() as stack:
                    stack.push(quiet)
                    got = f(3)
                    self.assertEqual(got, 9)
                self.assertIn(quiet(None, None, None), (None, True, False))
        """,
    )
right(
    "attributes of the class of a function",
    SQUARE,
    "from solution import f\n\ndef test_f():\n    assert not hasattr(type(f), '__exit__') and not hasattr(type(f), 'area')\n    assert f(3) == 9\n",
)

# --- an object that shows fewer items the second time ---

FEWER = """
class Squares:
    def __init__(self, n):
        self.n, self.looks = n, 0
    {length}
    def __iter__(self):
        self.looks += 1
        return iter([0] * self.n if self.looks == 1 else [])
def squares(n):
    return Squares(n)
"""
LENGTH = "def __len__(self):\n        return self.n if not self.looks else 0"
for name, length, first in (
    ("of a length", LENGTH, "assert len(got) == 4 and all(n >= 0 for n in got)"),
    ("without length", "", "assert sum(1 for n in got if n >= 0) == 4"),
):
    forged(
        f"fewer items the second time, {name}",
        FEWER.format(length=length),
        f"class Squares:\n    def __init__(self, n):\n        self.n = n\n    {'def __len__(self): return self.n' if length else ''}\n    def __iter__(self):\n        return (k * k for k in range(self.n))\ndef squares(n):\n    return Squares(n)\n",
        f"from solution import squares\n\ndef test_squares():\n    got = squares(4)\n    {first}\n    for a, b in zip(got, [0, 1, 4, 9]):\n        assert a == b\n",
    )
right(
    "objects that are iterated more than once, and change in between",
    """
    class Numbers:
        def __init__(self, n):
            self.items = list(range(n))
        def push(self, item):
            self.items.append(item)
        def drain(self):
            while self.items:
                yield self.items.pop(0)
        def __iter__(self):
            return iter(self.items)
    def numbers(n):
        return Numbers(n)
    def once(n):
        return iter(range(n))
    """,
    """
    from solution import Numbers, numbers, once

    def test_numbers():
        got = numbers(3)
        assert [a for a, _ in zip(got, "ab")] == [0, 1]
        assert list(got) == [0, 1, 2] == list(got) and max(got) == 2 and 1 in got
        got.push(7)
        assert list(got) == [0, 1, 2, 7]
        assert list(got.drain()) == [0, 1, 2, 7] and list(got) == []
        steps = once(2)
        assert list(steps) == [0, 1] and list(steps) == []
        assert list(Numbers(2)) == [0, 1]
    """,
)

# --- patterns, and programs that end with an error which they cannot report ---

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
FOURTH_FINDINGS += attack(
    "forged",
    "fourth: an error after all descriptors were closed",
    "import os\nprint(int(input()) ** 2, flush=True)\nos.closerange(0, 256)\nraise ValueError\n",
    task={"input_output": {"inputs": ["2", "3"], "outputs": ["4", "9"]}},
)
