"""Objects that extend text, numbers or tuples, whose own operators raise errors, or should."""

# ruff: noqa: E501 - programs within strings are as wide as they are
from __future__ import annotations

from attacks.program import Topic

__all__ = ["VALUE_OPERATORS"]

VALUE_OPERATORS = Topic("values")
forged, right = VALUE_OPERATORS.forged, VALUE_OPERATORS.right

METERS = "class Meters(int):\n    @property\n    def value(self): return int(self)\n"
ONLY = "    def __{0}__(self, o):\n        if not isinstance(o, Meters): raise TypeError('no length')\n        return getattr(int, '__{0}__')(self, o)\n"
TEST = """
import unittest
from solution import Meters

class TestMeters(unittest.TestCase):
    def test_it(self):
        self.assertEqual(Meters(3).value, 3)
        with self.assertRaises(TypeError):
            {}
"""
for operator, asked in (
    ("add", "Meters(3) + 4"),
    ("add", "Meters(3) + 'a'"),
    ("radd", "'a' + Meters(3)"),
    ("lt", "Meters(3) < 'a'"),
    ("mul", "Meters(3) * 2.5"),
):
    lie = f"    def __{operator}__(self, o): return Meters(1)\n"
    forged(asked, METERS + lie, METERS + ONLY.format(operator), TEST.format(asked))
for method, asked in (
    ("len", "len(Meters(3))"),
    ("call", "Meters(3)()"),
    ("iter", "a, b = Meters(3)"),
    ("setitem", "Meters(3)[0] = 1"),
):
    lie = f"    def __{method}__(self, *o): return {'iter([1, 2])' if method == 'iter' else 1}\n"
    forged(asked, METERS + lie, METERS, TEST.format(asked))
right(
    "what these have of their own",
    """
    class Version(str):
        def parts(self): return [int(n) for n in self.split(".")]
        def __lt__(self, o): return self.parts() < Version(o).parts()
    class Digits(int):
        def __len__(self): return len(str(int(self)))
        def __iter__(self): return iter(str(int(self)))
        def __getitem__(self, n): return str(int(self))[n]
        def __contains__(self, n): return str(n) in str(int(self))
        def __call__(self, n): return Digits(int(self) + n)
        def __lshift__(self, n): return Digits(int(self) * 10 ** n)
    class Modulo(int):
        def __new__(cls, n): return super().__new__(cls, n % 7)
        def __add__(self, o):
            if not isinstance(o, Modulo): raise ValueError(o)
            return Modulo(int(self) + int(o))
    """,
    """
    from solution import Digits, Modulo, Version

    def test_it():
        assert Version("1.9") < Version("1.10") and not Version("1.10") < Version("1.9")
        assert [*sorted([Version("1.10"), Version("1.9")])] == ["1.9", "1.10"]
        many = Digits(307)
        assert len(many) == 3 and [*many] == ["3", "0", "7"] and many[0] == "3" and 0 in many
        assert many(2) == 309 and 1 not in many
        assert Modulo(5) + Modulo(4) == Modulo(2)
    """,
)
