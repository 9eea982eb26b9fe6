"""Tests that skip themselves because of what the candidate told an earlier test."""

# ruff: noqa: E501 - programs within strings are as wide as they are
from __future__ import annotations

from attacks.program import Program, pair

__all__ = ["CARRIED"]

CARRIED: list[Program] = []
NOTHING = "def f(x):\n    return None if x else 0\n"
SQUARE = "def f(x):\n    return x * x\n"
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
    CARRIED += pair("forged", f"skipped because of {name}", NOTHING, SQUARE, test=test)
CARRIED += pair(
    "forged",
    "skipped when its class ends",
    NOTHING,
    SQUARE,
    test="import unittest\nfrom solution import f\n\nclass TestF(unittest.TestCase):\n    def test_f(self):\n        type(self).got = f(3)\n        self.assertEqual(f(0), 0)\n    @classmethod\n    def tearDownClass(cls):\n        if cls.got is None:\n            raise unittest.SkipTest('not there')\n        assert cls.got == 9\n",
)
CARRIED += pair(
    "forged",
    "skipped for another reason, after tests that leave nothing",
    NOTHING.replace("None if x else 0", "0"),
    SQUARE,
    test="""
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
