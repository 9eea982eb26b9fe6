"""Tests that assert nothing, or whose failures are swallowed.

Where no candidate can make the tests assert anything, both programs of a pair cannot be judged.
"""

# ruff: noqa: E501 - programs within strings are as wide as they are
from __future__ import annotations

import re
from typing import Any

from attacks.program import WRONG, Program, dedent, pair

__all__ = ["ASSERTING"]

ASSERTING: list[Program] = []

SQUARE = "def f(n):\n    return n * n\n"
NOTHING = "def f(*a, **k):\n    return None\n"


def add(name: str, forged: str, honest: str, *tests: str, **task: Any) -> None:
    if tests and ("def " in tests[0] or "class " in tests[0]):
        task["test"], tests = dedent(tests[0]), ()
        if re.search(r"^(async )?def check\(", task["test"], re.MULTILINE):
            task.setdefault("entry_point", "f")
    ASSERTING.extend(pair("asserting", f"asserted: {name}", forged, honest, *tests, **task))


# --- shapes of tests that do not run by themselves ---

SHAPES = {
    "an async test": """
        from solution import f

        async def test_f():
            assert f(13) == 169
    """,
    "an async method": """
        from solution import f

        class TestF:
            async def test_f(self):
                assert f(13) == 169
    """,
    "an async check": """
        async def check(candidate):
            assert candidate(13) == 169
            assert candidate(2) == 4
    """,
    "an async TestCase": """
        import unittest
        from solution import f

        class TestF(unittest.IsolatedAsyncioTestCase):
            async def asyncSetUp(self):
                self.n = 13

            async def test_f(self):
                self.assertEqual(f(self.n), 169)
    """,
    "inherited methods": """
        from solution import f

        class Base:
            n = 0

            def test_f(self):
                assert f(self.n) == self.n ** 2

        class TestThirteen(Base):
            n = 13
    """,
    "an inherited TestCase": """
        import unittest
        from solution import f

        class Base:
            def test_f(self):
                self.assertEqual(f(self.n), self.n ** 2)

        class TestThirteen(Base, unittest.TestCase):
            n = 13
    """,
    "a nested class": """
        from solution import f

        class TestOuter:
            class TestInner:
                def test_f(self):
                    assert f(13) == 169
    """,
    "nested twice, inherited": """
        from solution import f

        class Cases:
            class TestInner:
                def test_f(self):
                    assert f(13) == 169

        class TestOuter(Cases):
            pass
    """,
    "a partial": """
        import functools
        from solution import f

        def run(n, square):
            assert f(n) == square

        test_two = functools.partial(run, 2, 4)
        test_three = functools.partial(run, 13, square=169)
    """,
    "a test made by a function": """
        from solution import f

        def make(n):
            def test():
                assert f(n) == n * n
            return test

        test_two, test_thirteen = make(2), make(13)
    """,
    "a lambda": """
        from solution import f

        def verify(n, square):
            assert f(n) == square

        test_f = lambda: verify(13, 169)
    """,
    "static and class methods": """
        from solution import f

        class TestF:
            @staticmethod
            def test_static():
                assert f(13) == 169

            @classmethod
            def test_class(cls):
                assert f(2) == 4
    """,
    "a decorator of the test's": """
        import functools
        from solution import f

        def twice(function):
            @functools.wraps(function)
            def inner(*a, **k):
                function(*a, **k)
                return function(*a, **k)
            return inner

        @twice
        def test_f():
            assert f(13) == 169
    """,
    "a TestCase with subtests": """
        import unittest
        from solution import f

        class TestF(unittest.TestCase):
            def test_f(self):
                for n in range(5):
                    with self.subTest(n=n):
                        self.assertEqual(f(n), n * n)
    """,
    "runTest": """
        import unittest
        from solution import f

        class SquareTest(unittest.TestCase):
            def runTest(self):
                self.assertEqual(f(13), 169)
    """,
    "a test that defines its own check": """
        from solution import f

        def test_f():
            def check(n):
                assert f(n) == n * n
            list(map(check, range(5)))
    """,
    "an async test that gathers": """
        import asyncio
        from solution import f

        async def one(n):
            await asyncio.sleep(0)
            assert f(n) == n * n

        async def test_f():
            await asyncio.gather(*(one(n) for n in range(5)))
    """,
    "a thread that asserts": """
        from concurrent.futures import ThreadPoolExecutor
        from solution import f

        def one(n):
            assert f(n) == n * n

        def test_f():
            with ThreadPoolExecutor(2) as pool:
                list(pool.map(one, range(5)))
    """,
}
for name, test in SHAPES.items():
    add(name, NOTHING, SQUARE, test)

# The judge may run these or not, but must not pass a wrong candidate.
EITHER = ("passed", "infra_error")
for name, test in {
    "under a main guard": "from solution import f\n\ndef run():\n    assert f(13) == 169\n\nif __name__ == '__main__':\n    run()\n",
    "a TestCase's main under a guard": "import unittest\nfrom solution import f\n\nclass SquareCase(unittest.TestCase):\n    def test_f(self):\n        self.assertEqual(f(13), 169)\n\nif __name__ == '__main__':\n    unittest.main()\n",
    "an assertion that the test catches": "from solution import f\n\ndef test_f():\n    try:\n        assert f(13) == 169\n    except AssertionError:\n        print('wrong')\n",
    "an assertion that the test suppresses": "import contextlib\nfrom solution import f\n\ndef test_f():\n    with contextlib.suppress(Exception):\n        assert f(13) == 169\n",
}.items():
    add(name, NOTHING, SQUARE, test, verdicts=(*WRONG, "infra_error"), right=EITHER)
add(
    "a generator test",  # pytest refuses it; the judge has it run to its end
    NOTHING,
    SQUARE,
    "from solution import f\n\ndef test_f():\n    for n in range(5):\n        yield\n        assert f(n) == n * n\n",
)
# No candidate can fail these: the tests assert nothing about it.
IDLE: dict[str, dict[str, Any]] = {
    "a function that nobody calls": {
        "test": "from solution import f\n\ndef verify():\n    assert f(13) == 169\n"
    },
    "constants": {"tests": ["assert True", "assert 1 + 1 == 2"]},
    "printed only": {"tests": ["print(f(13) == 169)"]},
    "compared and dropped": {"test": "from solution import f\n\ndef test_f():\n    f(13) == 169\n"},
    "a return in the finally clause": {
        "test": "from solution import f\n\ndef test_f():\n    try:\n        assert f(13) == 169\n    finally:\n        return\n"
    },
    "a loop over nothing": {
        "test": "from solution import f\n\nCASES = []\n\ndef test_f():\n    for n, square in CASES:\n        assert f(n) == square\n"
    },
    "behind a return": {
        "test": "def check(candidate):\n    return\n    assert candidate(13) == 169\n",
        "entry_point": "f",
    },
}
for name, task in IDLE.items():  # fmt: skip
    add(name, NOTHING, SQUARE, verdicts=("infra_error",), right=("infra_error",), **task)

# --- the candidate decides whether an assertion is reached: that is its own failure ---

for name, forged, honest, test in (
    ("a callback that is never called", NOTHING, "def f(items, visit):\n    for item in items:\n        visit(item * item)\n", "def check(candidate):\n    wanted = [1, 4, 9]\n    def visit(got):\n        assert got == wanted.pop(0)\n    candidate([1, 2, 3], visit)\n"),
    ("a callback whose failure is dropped", "def f(items, visit):\n    for item in items:\n        try:\n            visit(item)\n        except BaseException:\n            pass\n", "def f(items, visit):\n    for item in items:\n        visit(item * item)\n", "def check(candidate):\n    wanted = [4, 9, 16]\n    def visit(got):\n        assert got == wanted.pop(0)\n    candidate([2, 3, 4], visit)\n    assert wanted == []\n"),
    ("a callback in a thread that dies of it", "import threading\ndef f(items, visit):\n    for item in items:\n        t = threading.Thread(target=visit, args=(item,))\n        t.start()\n        t.join()\n", "def f(items, visit):\n    for item in items:\n        visit(item * item)\n", "def check(candidate):\n    wanted = [4, 9, 16]\n    def visit(got):\n        assert got == wanted.pop(0)\n    candidate([2, 3, 4], visit)\n    assert wanted == []\n"),
    ("an emitter that never emits", "class f:\n    def on(self, *a): pass\n    def emit(self, *a): pass\n", "class f:\n    def __init__(self): self.heard = {}\n    def on(self, name, call): self.heard.setdefault(name, []).append(call)\n    def emit(self, name, *a):\n        for call in self.heard.get(name, ()): call(*a)\n", "import unittest\nfrom solution import f\n\nclass TestEmitter(unittest.TestCase):\n    def test_emit(self):\n        emitter = f()\n        emitter.on('x', lambda value: self.assertEqual(value, 4))\n        emitter.emit('x', 4)\n"),
    ("results that are not there", NOTHING.replace("None", "[]"), "def f(n):\n    return [k * k for k in range(n)]\n", "def check(candidate):\n    for n, square in enumerate(candidate(5)):\n        assert square == n * n\n"),
    ("a condition of the candidate's", NOTHING, "def f(n):\n    return {'ok': True, 'value': n * n}\n", "def check(candidate):\n    got = candidate(13)\n    if got and got['ok']:\n        assert got['value'] == 169\n"),
    ("not supported, says the candidate", "def f(n):\n    raise NotImplementedError\n", SQUARE, "def check(candidate):\n    try:\n        got = candidate(13)\n    except NotImplementedError:\n        return\n    assert got == 169\n"),
    ("not supported, and the test skips", "def f(n):\n    raise OSError('no display')\n", SQUARE, "import unittest\nfrom solution import f\n\nclass TestF(unittest.TestCase):\n    def test_f(self):\n        try:\n            got = f(13)\n        except OSError:\n            self.skipTest('needs a display')\n        self.assertEqual(got, 169)\n"),
    ("skipped unless the candidate has it", "def f(n):\n    return 0\n", SQUARE + "VERSION = 2\n", "import unittest\nimport solution\n\nclass TestF(unittest.TestCase):\n    @unittest.skipUnless(hasattr(solution, 'VERSION'), 'old')\n    def test_f(self):\n        self.assertEqual(solution.f(13), 169)\n"),
    ("a filter that lets nothing through", "def f(n):\n    return (n, 0)\n", "def f(n):\n    return (0, n * n)\n", "def check(candidate):\n    for square in [s for code, s in map(candidate, [13, 13]) if code == 0]:\n        assert square == 169\n"),
    ("StopIteration in a generator of cases", "def f(n):\n    raise StopIteration\n", SQUARE, "def check(candidate):\n    def cases():\n        for n in range(5):\n            yield n, candidate(n)\n    for n, got in cases():\n        assert got == n * n\n"),
    ("StopIteration from a map", "def f(n):\n    raise StopIteration\n", SQUARE, "from solution import f\n\ndef test_f():\n    got = list(map(f, range(5)))\n    for n, square in enumerate(got):\n        assert square == n * n\n"),
    ("an iterator that ends a loop early", "class f:\n    def __init__(self, n): self.n = n\n    def __len__(self): return self.n\n    def __iter__(self): return self\n    def __next__(self): raise StopIteration\n", "class f:\n    def __init__(self, n): self.n, self.k = n, -1\n    def __len__(self): return self.n\n    def __iter__(self): return self\n    def __next__(self):\n        self.k += 1\n        if self.k == self.n: raise StopIteration\n        return self.k ** 2\n", "def check(candidate):\n    squares = candidate(5)\n    assert len(squares) == 5\n    for n, square in enumerate(squares):\n        assert square == n * n\n"),
    ("an iterator that raises GeneratorExit", "def f(n):\n    yield 0\n    raise GeneratorExit\n", "def f(n):\n    for k in range(n):\n        yield k * k\n", "def check(candidate):\n    def squares():\n        yield from candidate(5)\n    for n, square in enumerate(squares()):\n        assert square == n * n\n    assert n == 4\n"),
    ("an async iterator that ends early", "class f:\n    def __init__(self, n): pass\n    def __aiter__(self): return self\n    async def __anext__(self): raise StopAsyncIteration\n", "async def f(n):\n    for k in range(n):\n        yield k * k\n", "import asyncio\n\nasync def run(candidate):\n    n = 0\n    async for square in candidate(5):\n        assert square == n * n\n        n += 1\n\ndef check(candidate):\n    asyncio.run(run(candidate))\n"),
    ("cancelled by the candidate", "import asyncio\nasync def f(n):\n    raise asyncio.CancelledError\n", "async def f(n):\n    return n * n\n", "import asyncio\n\nasync def run(candidate):\n    assert await candidate(13) == 169\n\ndef check(candidate):\n    asyncio.run(run(candidate))\n"),
):  # fmt: skip
    add(name, forged, honest, test)

# --- failures outside the tests: of a thread, a future, a task, a callback ---

RUN = "from solution import f\n\ndef run(n):\n    assert f(n) == n * n\n\ndef test_f():\n"
COLLECTS = "from solution import f\n\ndef test_f():\n    wrong = []\n    def run(n):\n        if f(n) != n * n:\n            wrong.append(n)\n"
THREADS = "    threads = [threading.Thread(target=run, args=(n,)) for n in (3, 13)]\n    for t in threads:\n        t.start()\n    for t in threads:\n        t.join()\n"
BESIDE = {
    "a thread": "import threading\n" + RUN + THREADS,
    "a thread that nobody joins": "import threading\n"
    + RUN
    + "    threading.Timer(0.05, run, (13,)).start()\n",
    "a thread without a module": "import _thread, time\n"
    + RUN
    + "    _thread.start_new_thread(run, (13,))\n    time.sleep(0.1)\n",
    "a map that nobody reads": "from concurrent.futures import ThreadPoolExecutor\n"
    + RUN
    + "    with ThreadPoolExecutor(2) as pool:\n        pool.map(run, [3, 13])\n",
    "futures that are only waited for": "from concurrent import futures\n"
    + RUN
    + "    pool = futures.ThreadPoolExecutor(2)\n    done, _ = futures.wait([pool.submit(run, n) for n in (3, 13)])\n    assert len(done) == 2\n",
    "a task": "import asyncio\n"
    + RUN
    + "    async def alone(n):\n        run(n)\n    async def main():\n        await asyncio.wait([asyncio.create_task(alone(n)) for n in (3, 13)])\n    asyncio.run(main())\n",
    "a callback of a loop": "import asyncio\n"
    + RUN
    + "    async def main():\n        asyncio.get_running_loop().call_soon(run, 13)\n        await asyncio.sleep(0.01)\n    asyncio.run(main())\n",
    "a weak reference": "import weakref\n"
    + RUN
    + "    class Key:\n        pass\n    key = Key()\n    reference = weakref.ref(key, lambda _: run(13))\n    del key\n",
}
for name, test in BESIDE.items():
    add(f"in {name}", NOTHING, SQUARE, test)
    add(f"an exception in {name}", "def f(n):\n    raise ValueError\n", SQUARE, test)
for name, start in {
    "a thread": "import threading\n" + COLLECTS + THREADS,
    "a future": "from concurrent.futures import ThreadPoolExecutor\n"
    + COLLECTS
    + "    with ThreadPoolExecutor(2) as pool:\n        for n in (3, 13):\n            pool.submit(run, n)\n",
}.items():
    for error in ("ValueError", "SystemExit"):
        add(
            f"{error} in {name} that collects",
            f"def f(n):\n    raise {error}\n",
            SQUARE,
            start + "    assert wrong == []\n",
        )

# --- context managers of the candidate ---

QUIET = """
class f:
    total = 0
    def __init__(self, *a): pass
    def __getattr__(self, name): raise KeyError(name)
    def __enter__(self): return self
    def __exit__(self, *a): return True
    async def __aenter__(self): return self
    async def __aexit__(self, *a): return True
"""
LEDGER = """
class f:
    def __init__(self, *a): self.items = {"total": sum(a)}
    @property
    def total(self): return self.items["total"]
    def __enter__(self): return self
    def __exit__(self, *a): return False
    async def __aenter__(self): return self
    async def __aexit__(self, *a): return False
"""
for name, test in {
    "before the assertion": "    with candidate(1, 2) as ledger:\n        total = ledger.items['total']\n        assert total == 3\n",
    "an error of the test's own": "    with candidate(1, 2) as ledger:\n        if ledger.total != 3:\n            raise ValueError('not 3')\n        assert ledger.total >= 0\n",
    "in a helper": "    def verify(ledger):\n        assert ledger.total == 3\n    with candidate(1, 2) as ledger:\n        verify(ledger)\n",
    "on an exit stack": "    import contextlib\n    with contextlib.ExitStack() as stack:\n        ledger = stack.enter_context(candidate(1, 2))\n        assert ledger.total == 3\n",
    "pushed on an exit stack": "    import contextlib\n    with contextlib.ExitStack() as stack:\n        ledger = candidate(1, 2)\n        stack.push(ledger.__exit__)\n        assert ledger.total == 3\n",
    "two of them": "    with candidate(5) as one, candidate(1, 2) as two:\n        assert one.total == 5 and two.total == 3\n",
    "with more after it": "    with candidate(1, 2) as ledger:\n        found = ledger.items\n        assert found == {'total': 3}\n    assert ledger.total is not None\n",
    "in a loop": "    for n in range(3):\n        with candidate(n, 2) as ledger:\n            if ledger.total != n + 2:\n                break\n    else:\n        n = -1\n    assert n == -1 or ledger.items is None\n",
    "with unittest's fail": "    import unittest\n    case = unittest.TestCase()\n    with candidate(1, 2) as ledger:\n        if ledger.total != 3:\n            case.fail('not 3')\n        case.assertEqual(ledger.items, {'total': 3})\n",
    "by name": "    ledger = candidate(1, 2)\n    ledger.__enter__()\n    try:\n        assert ledger.total == 3\n    except AssertionError as error:\n        if not ledger.__exit__(AssertionError, error, None):\n            raise\n",
    "async": "    import asyncio\n    async def run():\n        async with candidate(1, 2) as ledger:\n            assert ledger.total == 3\n    asyncio.run(run())\n",
}.items():
    add(f"swallowed: {name}", QUIET, LEDGER, f"def check(candidate):\n{test}")
add(
    "swallowed: by a suppress that is returned",
    "import contextlib\ndef f():\n    return contextlib.suppress(BaseException)\n",
    "import contextlib\n@contextlib.contextmanager\ndef f():\n    yield [3]\n",
    "def check(candidate):\n    with candidate() as found:\n        assert found == [3]\n",
)
add(
    "swallowed: by what a generator does after its yield",
    "import contextlib\n@contextlib.contextmanager\ndef f():\n    try:\n        yield []\n    except BaseException:\n        pass\n",
    "import contextlib\n@contextlib.contextmanager\ndef f():\n    yield [3]\n",
    "from solution import f\n\ndef test_f():\n    with f() as found:\n        assert found == [3]\n",
)

# --- decorators of the candidate on the test's functions ---

RETRY = """
import functools
def f(times=3):
    def decorate(function):
        @functools.wraps(function)
        def inner(*a, **k):
            for n in range(times - 1):
                try:
                    return function(*a, **k)
                except ValueError:
                    pass
            return function(*a, **k)
        return inner
    return decorate
"""
TRIED = """
from solution import f

calls = []

@f(times=3)
def test_retry():
    calls.append(1)
    if len(calls) < 3:
        raise ValueError("again")
    assert len(calls) == 3

def test_other():
    assert f(2)(lambda n: n + 1)(4) == 5
"""
for name, inner in {
    "gone": "return None",
    "an object": "return type('Gone', (), {'__call__': lambda self, *a: None})()",
    "a function that does nothing": "return lambda *a, **k: None",
    "a class": "return type('TestNothing', (), {})",
    "never calls it but once": "return lambda *a, **k: (a and function(*a, **k))",
    "drops what it raises": "def inner(*a, **k):\n            try:\n                return function(*a, **k)\n            except BaseException:\n                return 5\n        return inner",
}.items():
    forged = f"def f(times=3):\n    def decorate(function):\n        if function.__name__ == '<lambda>':\n            return function\n        {inner}\n    return decorate\n"
    add(f"a decorator: {name}", forged, RETRY, TRIED)
add(
    "a decorator: of a TestCase's method",
    "def f(function):\n    return lambda self, *a: None\n",
    "import functools\ndef f(function):\n    @functools.wraps(function)\n    def inner(*a, **k):\n        inner.calls = getattr(inner, 'calls', 0) + 1\n        return function(*a, **k)\n    return inner\n",
    "import unittest\nfrom solution import f\n\nclass TestCount(unittest.TestCase):\n    @f\n    def test_it(self):\n        self.assertEqual(type(self).test_it.calls, 1)\n",
)
add(
    "a decorator: marks what it wraps as skipped",
    "def f(n):\n    return 0\nf.__dict__.update(__unittest_skip__=True, __unittest_skip_why__='no', __test__=False, pytestmark=[])\n",
    SQUARE,
    "import functools, unittest\nfrom solution import f\n\nclass TestF(unittest.TestCase):\n    @functools.wraps(f)\n    def test_f(self):\n        self.assertEqual(f(13), 169)\n",
)
add(
    "a decorator: of the check",
    "def f(function):\n    return lambda n: 4\n",
    "def f(function):\n    return lambda n: function(function(n))\n",
    "def check(candidate):\n    @candidate\n    def add_two(n):\n        return n + 2\n    assert add_two(0) == 4 and add_two(5) == 9\n",
)
