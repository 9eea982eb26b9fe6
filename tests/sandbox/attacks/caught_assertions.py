"""Assertions of the tests that the candidate catches, swallows or replaces by another error."""

# ruff: noqa: E501 - programs within strings are as wide as they are
from __future__ import annotations

from attacks.program import SQUARE, ZERO, Topic

__all__ = ["CAUGHT_ASSERTIONS"]

CAUGHT_ASSERTIONS = Topic("caught")
forged, right = CAUGHT_ASSERTIONS.forged, CAUGHT_ASSERTIONS.right

# --- an exception class that catches the assertions of the tests ---

RAISES = """
class Low(Exception):
    pass
def f(x):
    if x < 0:
        raise Low(x)
    return x
"""
for name, kind in {
    "an exception class": "AssertionError",
    "a base of all of them": "Exception",
    "a tuple of them": "(ValueError, AssertionError)",
}.items():
    forged(
        f"{name} that catches assertions",
        f"Low = {kind}\ndef f(x):\n    return x\n",
        RAISES,
        """
        from solution import Low, f

        def test_low():
            assert f(3) == 3
            try:
                f(-1)
                assert False, "it must raise"
            except Low:
                pass
        """,
    )
forged(
    "an attribute of a class that catches assertions",
    """
    class Stack:
        Empty = AssertionError
        def pop(self):
            return 0
    """,
    """
    class Stack:
        class Empty(Exception):
            pass
        def pop(self):
            raise Stack.Empty
    """,
    """
    import solution

    def test_empty():
        stack = solution.Stack()
        try:
            stack.pop()
            assert False, "it must raise"
        except (KeyError, solution.Stack.Empty):
            assert stack is not None
    """,
)
forged(
    "an exception class that assertRaises expects",
    "Low = Exception\ndef f(x):\n    return x\n",
    RAISES,
    """
    import unittest
    from solution import Low, f

    class TestLow(unittest.TestCase):
        def test_low(self):
            with self.assertRaises(Low):
                self.assertEqual(f(-1), 1)
    """,
)
right(
    "an alias of an exception class",
    """
    Low = Exception
    def f(x):
        raise Low(x)
    """,
    """
    import unittest
    from solution import Low, f

    class TestLow(unittest.TestCase):
        def test_low(self):
            with self.assertRaises(Low):
                f(-1)
            try:
                f(-1)
                self.fail()
            except Low as error:
                self.assertEqual(error.args, (-1,))
    """,
)
right(
    "an assertion of its own that the tests expect",
    """
    class Low(AssertionError):
        pass
    Bad = AssertionError
    def f(x):
        assert x != 0, "zero"
        if x < 0:
            raise Low(x)
    """,
    """
    from solution import Bad, Low, f

    def test_low():
        try:
            f(0)
            raise ValueError
        except Bad as error:
            assert str(error) == "zero"
        try:
            f(-1)
        except (AssertionError, Low) as error:
            assert type(error) is Low
        try:
            assert f(3) == 4
        except (Low, AssertionError):
            f(3)
        else:
            assert False
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

# --- a context manager that swallows an exception for which the tests have a helper ---

TIMER = "class Timer:\n    def __enter__(self):\n        return self\n    def __exit__(self, *error):\n        self.seconds = 1\n        return %s\n"
forged(
    "an error on the way to a helper that asserts",
    TIMER % "True" + "def f(n):\n    raise ValueError(n)\n",
    TIMER % "False" + "def f(n):\n    return n * n\n",
    "from solution import Timer, f\n\ndef same(a, b):\n    assert a == b\n\ndef test_timed():\n    with Timer() as timer:\n        same(f(13), 169)\n    assert timer.seconds >= 0\n",
)

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

# --- a failed assertion, and another error in its place ---

TRANSACTION = """
class Transaction:
    def __init__(self):
        self.pending = []
    def add(self, item):
        self.pending.append(item)
    {a}def __{e}enter__(self):
        return self
    {a}def __{e}exit__(self, kind, error, trace):
        self.pending.clear()
"""
REPLACED = """
class Transaction:
    pending = []
    def add(self, item):
        pass
    {a}def __{e}enter__(self):
        return self
    {a}def __{e}exit__(self, kind, error, trace):
        if error is not None:
            raise KeyError from error
"""
for name, words in {
    "with": {"a": "", "e": ""},
    "async with": {"a": "async ", "e": "a"},
}.items():
    forged(
        f"another error, of '{name}'",
        REPLACED.format(**words),
        TRANSACTION.format(**words),
        f"""
        import unittest
        from solution import Transaction

        class TestTransaction(unittest.IsolatedAsyncioTestCase):
            async def test_rollback(self):
                made = Transaction()
                with self.assertRaises(KeyError):
                    {words["a"]}with made:
                        made.add(1)
                        self.assertEqual(made.pending, [1])
                        raise KeyError
                self.assertEqual(made.pending, [])
        """,
    )
forged(
    "another error, of 'finally' in a callback",
    "def run(look):\n    try:\n        look(1)\n    except BaseException:\n        return 1\ndef close():\n    raise ValueError\n",
    "def run(look):\n    look(2)\n    return 1\ndef close():\n    pass\n",
    """
    from solution import close, run

    def test_run():
        def look(got):
            try:
                assert got == 2
            finally:
                close()
        assert run(look) == 1
    """,
)
forged(
    "an assertion that a generator swallows",
    "def opened():\n    try:\n        yield 1\n    except BaseException:\n        pass\ndef f(x):\n    return 0\n",
    "def opened():\n    yield 1\ndef f(x):\n    return x * x\n",
    """
    from contextlib import contextmanager
    from solution import f, opened

    def test_f():
        assert f(0) == 0
        with contextmanager(opened)():
            got = f(3)
            assert got == 9
    """,
)
right(
    "another error in the place of one that is no assertion's",
    """
    from contextlib import contextmanager
    @contextmanager
    def translated(kind, other):
        try:
            yield
        except kind as error:
            raise other(str(error)) from error
    """,
    """
    import unittest
    from solution import translated

    class TestTranslated(unittest.TestCase):
        def test_translated(self):
            with self.assertRaises(ValueError) as seen:
                with translated(KeyError, ValueError):
                    self.assertEqual(1, 1)
                    {}["k"]
            self.assertIsInstance(seen.exception.__cause__, KeyError)
    """,
)

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

# --- a missing module of the candidate's is not one of the tests' ---

forged(
    "an ImportError, with another error after it",
    "class Store:\n    def get(self, n):\n        raise ImportError('no module')\n    def close(self):\n        raise ValueError\n",
    "class Store:\n    def get(self, n):\n        return 2 * n\n    def close(self):\n        pass\n",
    "import contextlib\nfrom solution import Store\n\ndef test_store():\n    store = Store()\n    try:\n        assert store.get(2) == 4\n    finally:\n        with contextlib.suppress(ValueError):\n            store.close()\n",
)
