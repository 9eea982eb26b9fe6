"""Runs of tests that the candidate leaves out, one of several, and what a class of tests keeps."""

# ruff: noqa: E501 - programs within strings are as wide as they are
from __future__ import annotations

from attacks.program import SQUARE, Topic

__all__ = ["RUNS"]

RUNS = Topic("run")
forged, right, left_out = RUNS.forged, RUNS.right, RUNS.left_out

left_out(
    "a coroutine that is closed, after one that has ended in the same place",
    "async def f(x):\n    return 0\nasync def run(made):\n    made.close()\n",
    "async def f(x):\n    return x * x\nasync def run(made):\n    await made\n",
    """
    import asyncio
    from solution import f, run

    async def look(x, square):
        assert await f(x) == square

    async def look_often():
        for x in (3, 4, 5):
            await look(0, 0)
            await run(look(x, x * x))

    def test_f():
        asyncio.run(look_often())
    """,
)
forged(
    "a test that is an asynchronous generator, and is not run",
    """
    def logged(test):
        async def run():
            test()
            return
            yield
        return run
    def f(x):
        return 0
    """,
    "def logged(test):\n    return test\n" + SQUARE,
    """
    import asyncio
    from solution import f, logged

    def finished(test):
        async def run():
            async for _ in test():
                pass
        return lambda: asyncio.run(run())

    @finished
    @logged
    async def test_f():
        assert f(3) == 9
        yield

    def test_zero():
        assert f(0) == 0
    """,
)
SKIPS_ONE = """
    def logged(test):
        runs = []
        def run(*arguments, **keywords):
            runs.append(1)
            return test(*arguments, **keywords) if len(runs) > 1 else None
        return run
    def f(x):
        return 0
"""
forged(
    "a test that runs in two classes, and only in one is run",
    SKIPS_ONE,
    "def logged(test):\n    return test\n" + SQUARE,
    """
    import unittest
    from solution import f, logged

    class Squares:
        @logged
        def test_f(self):
            self.assertEqual(f(self.x), self.x ** 2)

    class TestThree(Squares, unittest.TestCase):
        x = 3

    class TestZero(Squares, unittest.TestCase):
        x = 0
    """,
    verdicts=("infra_error",),
    right=("infra_error",),
)
for kind in ("object", "Exception"):
    forged(
        f"a test method with an object of the candidate's, which extends {kind}",
        f"class TestF({kind}):\n    got = 9\ndef logged(test):\n    return lambda self: test(TestF())\ndef f(x):\n    return 0\n",
        "def logged(test):\n    return test\n" + SQUARE,
        """
        from solution import f, logged

        class TestF:
            def setup_method(self):
                self.got = f(3)

            @logged
            def test_f(self):
                assert self.got == 9
        """,
    )
right(
    "what a class of tests has made of its own, by its name",
    SQUARE,
    """
    import unittest
    from solution import f

    class TestF(unittest.TestCase):
        @classmethod
        def setUpClass(cls):
            cls.got = f(3)

        def setUp(self):
            assert type(self) is TestF

        def test_f(self):
            self.assertEqual(TestF.got, 9)
    """,
)
right(
    "a test method of one class in another one, and a function that becomes one",
    SQUARE,
    """
    import unittest
    from solution import f

    class TestTwo(unittest.TestCase):
        x = 2
        def test_f(self):
            self.assertEqual(f(self.x), self.x ** 2)

    class TestThree(unittest.TestCase):
        x = 3
        test_f = TestTwo.test_f

    def check_again(self):
        self.assertEqual(f(self.x + 1), (self.x + 1) ** 2)

    TestThree.test_again = check_again
    """,
)
