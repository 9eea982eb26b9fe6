"""Tests that skip themselves: because of the candidate, or for another reason."""

# ruff: noqa: E501 - programs within strings are as wide as they are
from __future__ import annotations

from attacks.program import SQUARE, ZERO, Topic

__all__ = ["SKIPPED_TESTS"]

SKIPPED_TESTS = Topic("skipped")
forged = SKIPPED_TESTS.forged

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

# --- because of what the candidate told an earlier test ---

TESTS = """
import functools, unittest
from solution import f
{ahead}
class TestF(unittest.TestCase):
    told = {{}}
    def test_0(self):
        {keep}
        self.assertEqual(f(0), 0)
    def test_1(self):
        if {got} is None:
            self.skipTest("not there")
        self.assertEqual({got}, 9)
"""
for name, ahead, keep, got in (
    ("a class", "", "type(self).got = f(3)", "self.got"),
    ("a class, by its name", "", "TestF.got = f(3)", "self.got"),
    ("a dict of a class", "", "self.told['got'] = f(3)", "self.told['got']"),
    ("a list", "told = []", "told.append(f(3))", "told[0]"),
    ("a global name", "told = 0", "global told; told = f(3)", "told"),
    ("a cache", "@functools.lru_cache\ndef told():\n    return f(3)", "told()", "told()"),
):
    test = TESTS.format(ahead=ahead, keep=keep, got=got)
    forged(f"because of {name}", NOTHING, SQUARE, test)
forged(
    "when its class ends",
    NOTHING,
    SQUARE,
    "import unittest\nfrom solution import f\n\nclass TestF(unittest.TestCase):\n    def test_f(self):\n        type(self).got = f(3)\n        self.assertEqual(f(0), 0)\n    @classmethod\n    def tearDownClass(cls):\n        if cls.got is None:\n            raise unittest.SkipTest('not there')\n        assert cls.got == 9\n",
)
forged(
    "for another reason, after tests that leave nothing",
    NOTHING.replace("None if x else 0", "0"),
    SQUARE,
    """
    import sys, unittest
    from solution import f

    class Item:
        pass

    class TestF(unittest.TestCase):
        @classmethod
        def setUpClass(cls):
            cls.three = 3
        def setUp(self):
            self.seen = []
        def test_0(self):
            item, rows = Item(), {}
            item.price = rows["price"] = f(0)
            self.seen.append(f(0))
            self.assertEqual(f(0), 0)
        def test_1(self):
            if sys.version_info < (9, 0):
                self.skipTest("needs Python 9")
            self.assertEqual(f(2), 5)
        def test_2(self):
            self.assertEqual(f(self.three), 9)
    """,
)
