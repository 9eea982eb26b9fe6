"""Every assertion of unittest, and pytest's, against liars of all kinds."""

# ruff: noqa: E501 - programs within strings are as wide as they are
from __future__ import annotations

import textwrap

from attacks.answers import LIARS
from attacks.program import Program, pair
from attacks.returned import PARROT

__all__ = ["CASES"]

CASES: list[Program] = []

FORGERS = {
    **{name: code + "def f(*a, **k):\n    return Yes()\n" for name, code in LIARS.items()},
    "parrot": PARROT,
    # A set that takes the expected value from its arguments, and then equals it.
    "pupil": """
class Pupil:
    seen = ()
    def difference(self, other):
        Pupil.seen = list(other)
        return set()
    symmetric_difference = __xor__ = __rxor__ = __sub__ = difference
    def __iter__(self): return iter(Pupil.seen)
    def __len__(self): return len(Pupil.seen)
    def __contains__(self, item): return True
def f(*a):
    return Pupil()
""",
}
SQUARE = "def f(n):\n    return n * n\n"
BACK = "def f(s):\n    return s[::-1]\n"
FIRST = "def f(n):\n    return [k * k for k in range(n)]\n"
TUPLE = "def f(n):\n    return (n, n * n)\n"
SET = "def f(s):\n    return set(s.split())\n"
LENGTHS = "def f(s):\n    return {w: len(w) for w in s.split()}\n"
ROOT = "def f(n):\n    return n ** 0.5\n"
FRAME = "import unittest\nfrom solution import f\n\nclass TestF(unittest.TestCase):\n    def test_f(self):\n"

for name, liar, honest, body in (
    ("assertEqual", "yes", SQUARE, "self.assertEqual(f(13), 169)"),
    ("assertEqual, turned round", "yes", SQUARE, "self.assertEqual(169, f(13))\nself.assertNotEqual(0, f(13))"),
    ("assertTrue of ==", "chain", SQUARE, "self.assertTrue(f(13) == 169)\nself.assertIs(f(13) == 169, True)"),
    ("assertTrue of a method", "yes", BACK, "self.assertTrue(f('abc').startswith('cba'))"),
    ("assertFalse of a difference", "zero", SQUARE, "self.assertFalse(f(13) - 169)"),
    ("assertFalse of what is left", "zero", SET, "self.assertFalse(f('a b') ^ {'a', 'b'})"),
    ("assertAlmostEqual", "zero", ROOT, "self.assertAlmostEqual(f(2), 1.41421356)"),
    ("assertAlmostEqual with a delta", "zero", ROOT, "self.assertAlmostEqual(f(2), 1.4142, delta=1e-3)"),
    ("assertAlmostEqual, tried again", "parrot", ROOT, "for attempt in range(3):\n    try:\n        self.assertAlmostEqual(f(2), 1.41421356)\n        break\n    except TypeError:\n        continue\nself.assertAlmostEqual(f(2), 1.41421356)"),
    ("assertGreaterEqual and LessEqual", "yes", SQUARE, "got = f(13)\nself.assertGreaterEqual(got, 169)\nself.assertLessEqual(got, 169)"),
    ("assertGreater and Less", "yes", SQUARE, "got = f(13)\nself.assertGreater(got, 168)\nself.assertLess(got, 170)"),
    ("assertIn", "yes", FIRST, "self.assertIn(49, f(9))\nself.assertNotIn(50, list(f(9)))"),
    ("assertIn, turned round", "yes", SQUARE, "self.assertIn(f(13), [168, 169])\nself.assertNotIn(f(13), [0, 1])"),
    ("assertNotIn", "zero", FIRST, "got = f(9)\nself.assertEqual(len(got), 9) if len(got) != 3 else None\nself.assertNotIn(50, got)\nself.assertFalse({49, 64} - set(got))"),
    ("assertIsInstance", "nothing", BACK, "from collections.abc import Sized\nself.assertIsInstance(f('abc'), Sized)\nself.assertTrue(f('abc'))"),
    ("assertIsInstance of a lie", "zero", FIRST, "got = f(3)\nself.assertIsInstance(got, list)\nself.assertEqual(len(got), 3)\nself.assertFalse([n for n in got if n not in (0, 1, 4)])"),
    ("assertIsNone", "yes", "def f(n):\n    return None if n > 2 else n\n", "self.assertIsNone(f(3))\nself.assertTrue(f(1))"),
    ("assertIs", "yes", "def f(n):\n    return n > 3\n", "self.assertIs(f(4), True)\nself.assertIs(f(3), False)"),
    ("assertListEqual", "yes", FIRST, "self.assertListEqual(f(3), [0, 1, 4])"),
    ("assertTupleEqual", "yes", TUPLE, "self.assertTupleEqual(f(3), (3, 9))"),
    ("assertSequenceEqual", "zero", FIRST, "self.assertSequenceEqual(f(3), [0, 1, 4])"),
    ("assertSequenceEqual, all equal", "yes", FIRST, "self.assertSequenceEqual(f(3), (0, 1, 4))"),
    ("assertSetEqual", "zero", SET, "self.assertSetEqual(f('a b'), {'a', 'b'})"),
    ("assertSetEqual, learnt", "parrot", SET, "self.assertSetEqual(f('a b c'), {'a', 'b', 'c'})"),
    ("assertSetEqual of a pupil", "pupil", SET, "self.assertSetEqual(f('a b c'), {'a', 'b', 'c'})"),
    ("assertCountEqual of a pupil", "pupil", SET, "wanted = {'a', 'b', 'c'}\ngot = f('a b c')\nself.assertFalse(got.symmetric_difference(wanted))\nself.assertCountEqual(got, wanted)"),
    ("assertDictEqual", "yes", LENGTHS, "self.assertDictEqual(f('the dog'), {'the': 3, 'dog': 3})"),
    ("assertCountEqual", "yes", FIRST, "self.assertCountEqual(f(3), [4, 1, 0])"),
    ("assertCountEqual of nothing", "zero", FIRST, "self.assertCountEqual(f(3), [4, 0, 1])"),
    ("assertMultiLineEqual", "yes", "def f(s):\n    return s.replace(' ', '\\n')\n", "self.assertMultiLineEqual(f('a b'), 'a\\nb')"),
    ("assertRegex", "yes", BACK, "self.assertRegex(f('321-abc'), r'^cba-\\d+$')\nself.assertNotRegex(f('abc'), 'abc')"),
    ("assertRegex with its own pattern", "chain", "import re\ndef f(n):\n    return re.compile('[a-z]{%d}' % n)\n", "self.assertTrue(f(3).fullmatch('abc'))\nself.assertTrue(f(2).match('ab'))"),
    ("assertRaises with its own class", "yes", "class E(ValueError):\n    code = 42\ndef f(n):\n    raise E('bad')\n", "with self.assertRaises(ValueError) as caught:\n    f(3)\nself.assertEqual(caught.exception.code, 42)\nself.assertEqual(str(caught.exception), 'bad')"),
    ("assertRaisesRegex", "yes", "def f(n):\n    raise ValueError('code 42')\n", "with self.assertRaisesRegex(ValueError, r'code \\d+'):\n    f(3)"),
    ("assertRaises of what it returns", "yes", "def f(n):\n    def inner():\n        raise KeyError(n)\n    return inner\n", "self.assertRaises(KeyError, f(3))\nself.assertRaises(KeyError, f(4))"),
    ("enterContext", "yes", "import contextlib\n@contextlib.contextmanager\ndef f(n):\n    yield n * n\n", "got = self.enterContext(f(13))\nself.assertEqual(got, 169)"),
    ("addTypeEqualityFunc", "yes", SQUARE, "self.addTypeEqualityFunc(type(f(13)), lambda a, b, msg=None: self.assertTrue(abs(a - b) < 1))\nself.assertEqual(f(13), 169)"),
    ("a subTest that hides it", "yes", SQUARE, "for n in range(3):\n    with self.subTest(n=f(n)):\n        self.assertEqual(f(n), n * n)"),
    ("a message that it makes", "yes", SQUARE, "got = f(13)\nself.assertEqual(got, 169, f'got {got!r} {got}')"),
    ("doCleanups", "zero", SQUARE, "got = []\nself.addCleanup(got.append, f(2))\nself.doCleanups()\nself.assertEqual(got, [4])"),
):  # fmt: skip
    test = FRAME + textwrap.indent(body, " " * 8) + "\n"
    CASES += pair("cases", f"lied to unittest: {name}", FORGERS[liar], honest, test=test)

# What a liar raises while the assertion's message is made, or while it is compared.
RAISERS = {
    "__repr__": "__repr__ = __str__ = __format__ = boom",
    "__eq__": "__eq__ = __ne__ = boom\n    __hash__ = object.__hash__",
    "__bool__": "__bool__ = __len__ = boom",
    "__iter__": "__iter__ = __getitem__ = boom",
    "__getattr__": "__getattr__ = boom",
    "__del__": "__del__ = boom",
}
for hook, body in RAISERS.items():
    for error in ("unittest.SkipTest('no')", "SystemExit(0)", "StopIteration", "KeyboardInterrupt"):
        if (hook, error) not in {
            ("__repr__", "unittest.SkipTest('no')"),
            ("__repr__", "SystemExit(0)"),
            ("__eq__", "unittest.SkipTest('no')"),
            ("__bool__", "StopIteration"),
            ("__iter__", "KeyboardInterrupt"),
            ("__getattr__", "unittest.SkipTest('no')"),
            ("__del__", "SystemExit(0)"),
        }:
            continue
        forged = f"import unittest\ndef boom(*a):\n    raise {error}\nclass Boom:\n    {body}\ndef f(n):\n    return Boom()\n"
        test = (
            FRAME
            + "        got = f(3)\n        self.assertTrue(got)\n        self.assertEqual(list(got), [0, 1, 4], f'{got}')\n"
        )
        CASES += pair("cases", f"lied to unittest: {hook} raises {error}", forged, FIRST, test=test)

# --- pytest's, where the package is there ---

TOP = "import pytest\nfrom solution import f\n\ndef test_f():\n"
for name, liar, honest, body in (
    ("approx", "yes", ROOT, "assert f(2) == pytest.approx(1.41421356)"),
    ("approx, turned round", "zero", ROOT, "assert pytest.approx(1.41421356) == f(2)"),
    ("approx of a list", "yes", "def f(n):\n    return [k ** 0.5 for k in range(n)]\n", "assert f(3) == pytest.approx([0, 1, 1.41421356])"),
    ("approx of a dict", "yes", "def f(n):\n    return {k: k ** 0.5 for k in range(n)}\n", "assert f(3) == pytest.approx({0: 0, 1: 1, 2: 1.41421356})"),
    ("not approx", "zero", ROOT, "assert not f(2) != pytest.approx(1.41421356)"),
    ("approx, tried again", "parrot", ROOT, "for attempt in range(3):\n    try:\n        assert abs(f(2) - 1.41421356) < 1e-6\n    except TypeError:\n        continue\nassert f(2) == pytest.approx(1.41421356)"),
    ("raises and match", "yes", "def f(n):\n    raise ValueError(f'bad: {n}')\n", "with pytest.raises(ValueError, match=r'bad: \\d'):\n    f(3)"),
    ("raises and its value", "yes", "class E(ValueError):\n    def __init__(self, n):\n        super().__init__(n)\n        self.n = n\ndef f(n):\n    raise E(n)\n", "with pytest.raises(ValueError) as caught:\n    f(3)\nassert caught.value.n == 3"),
):  # fmt: skip
    test = TOP + textwrap.indent(body, " " * 4) + "\n"
    CASES += pair(
        "cases", f"lied to pytest: {name}", FORGERS[liar], honest, test=test, needs=("pytest",)
    )
for name, error in {
    "skip": "pytest.skip('no')",
    "xfail": "pytest.xfail('no')",
    "exit": "pytest.exit('bye', returncode=0)",
    "importorskip": "pytest.importorskip('nothing_of_that_name')",
    "the outcome itself": "(_ for _ in ()).throw(pytest.skip.Exception('no'))",
}.items():
    forged = (
        f"try:\n    import pytest\nexcept ImportError:\n    pytest = None\ndef f(n):\n    {error}\n"
    )
    test = TOP + "    assert f(13) == 169\n"
    CASES += pair("cases", f"lied to pytest: the candidate's {name}", forged, SQUARE, test=test, needs=("pytest",))  # fmt: skip
CASES += pair(
    "cases",
    "lied to pytest: parametrized, with a liar for all",
    FORGERS["yes"],
    SQUARE,
    test="import pytest\nfrom solution import f\n\n@pytest.mark.parametrize('n, square', [(2, 4), pytest.param(13, 169, id='big')], ids=str)\ndef test_f(n, square):\n    assert f(n) == square\n",
    needs=("pytest",),
)
CASES += pair(
    "cases",
    "lied to pytest: a fixture that is the liar",
    FORGERS["zero"],
    SQUARE,
    test="import pytest\nfrom solution import f\n\n@pytest.fixture\ndef got():\n    return f(13)\n\ndef test_f(got):\n    assert not got - 169\n    assert got % 13 == 0\n",
    needs=("pytest",),
)
CASES += pair(
    "cases",
    "lied to pytest: a fixture that the candidate decorates",
    "def f(function):\n    return lambda *a, **k: None\n",
    "def f(function):\n    return function\n",
    test="import pytest\nfrom solution import f\n\n@pytest.fixture\ndef n():\n    return 13\n\n@f\ndef test_f(n):\n    assert n == 13 and f(len)('abc') == 3\n",
    needs=("pytest",),
)
