"""Tests that are no functions or classes `Test…` at the top of their program, beside one that is.

A wrong candidate would pass if these did not run.
"""

# ruff: noqa: E501 - programs within strings are as wide as they are
from __future__ import annotations

from attacks.program import SQUARE, ZERO, Topic

__all__ = ["MADE_TESTS"]

MADE_TESTS = Topic("made")

HEAD = "import abc, functools, types, unittest\nfrom solution import f\n\ndef test_0():\n    assert f(0) == 0\n\ndef verify():\n    assert f(3) == 9\n\ndef make(n, wanted):\n    def test(*given):\n        assert f(n) == wanted\n    return test\n\ndef suite(base, n):\n    class Suite(base):\n        def test_f(self):\n            assert f(n) == n * n\n    return Suite\n\n"
SQUARES = "class Squares({}):\n    {}def test_f(self):\n        self.assertEqual(f(3), 9)\n"
FOR_ONE = "def test_one():\n            verify()\n"
for name, test in {
    "a function, in the names of the program": "for i, (n, wanted) in enumerate([(2, 4), (3, 9)]):\n    globals()[f'test_it_{i}'] = make(n, wanted)\n",
    "a function, in their module": "import sys\nfor n in range(4):\n    setattr(sys.modules[__name__], f'test_it_{n}', make(n, n * n))\n",
    "a function, in a loop": f"for n in (3,):\n    if n:\n        {FOR_ONE}",
    "a function, where an import fails": f"try:\n    import nothing\nexcept ImportError:\n    if True:\n        {FOR_ONE}",
    "a function, for one case": f"match 3:\n    case 3:\n        {FOR_ONE}",
    "a function, at last": f"try:\n    pass\nfinally:\n    if True:\n        {FOR_ONE}",
    "a function, by another one": "def define():\n    global test_it\n    def test_it():\n        verify()\ndefine()\n",
    "a function, with its type": "test_it: object = lambda: verify()\n",
    "a function, in an expression": "(test_it := verify)\n",
    "a function, by its name": "testit = verify\n",
    "a function, bound in a loop": "for n in (3,):\n    test_it = make(n, 9)\n",
    "a function, of a loop": "for test_it in (make(3, 9),):\n    pass\n",
    "a function, bound by another one": "def define():\n    global test_it\n    test_it = make(3, 9)\ndefine()\n",
    "a function, with the name of a variable": "def other():\n    test_it = 3\nglobals()['test_it'] = make(3, 9)\n",
    "a partial function": "globals()['test_it'] = functools.partial(lambda n: verify(), 3)\n",
    "a function with a cache": "globals()['test_it'] = functools.lru_cache(verify)\n",
    "methods, by a decorator": "def add(*rows):\n    def added(cls):\n        for i, row in enumerate(rows):\n            setattr(cls, f'test_{i}', make(*row))\n        return cls\n    return added\n@add((2, 4), (3, 9))\nclass TestF(unittest.TestCase):\n    pass\n",
    "a class, by type": "TestF = type('TestF', (unittest.TestCase,), {f'test_{n}': make(n, n * n) for n in range(4)})\n",
    "a class, by new_class": "TestF = types.new_class('TestF', (), {}, lambda names: names.update(test_f=make(3, 9)))\n",
    "methods, by a metaclass": "class Meta(type):\n    def __new__(meta, name, bases, names):\n        for n in (2, 3):\n            names[f'test_{n}'] = make(n, n * n)\n        return super().__new__(meta, name, bases, names)\nclass TestF(metaclass=Meta):\n    pass\n",
    "a class, by its metaclass": "TestF = abc.ABCMeta('TestF', (unittest.TestCase,), {'test_f': make(3, 9)})\n",
    "a class, that takes the name of its method": "class TestF(unittest.TestCase):\n    def __init__(self, name):\n        super().__init__(name)\n    def test_f(self):\n        verify()\n",
    "a class, by a function": "TestF = suite(object, 3)\n",
    "a class, by a function, with any name": "Squares = suite(unittest.TestCase, 3)\n",
    "a class, of a base with any name": "class Base(unittest.TestCase):\n    pass\n" + SQUARES.format("Base", ""),
    "a class, of a base by another name": "from unittest import TestCase as Case\n" + SQUARES.format("Case", ""),
    "a class, with coroutines": "from unittest import IsolatedAsyncioTestCase as Case\n" + SQUARES.format("Case", "async "),
}.items():  # fmt: skip
    MADE_TESTS.forged(name, ZERO, SQUARE, HEAD + test)
ALONE = "import unittest\nfrom solution import f\n\nclass {}:\n    def {}(kind, *given, **names):\n        for n in (2, 3):\n            def test(self, n=n):\n                assert f(n) == n * n\n            setattr(kind, f'test_{{n}}', test)\nclass TestF({}):\n    pass\n"
MADE_TESTS.forged(
    "methods, all by a metaclass",
    ZERO,
    SQUARE,
    ALONE.format("Meta(type)", "__init__", "unittest.TestCase, metaclass=Meta"),
)
MADE_TESTS.forged(
    "methods, all by a base", ZERO, SQUARE, ALONE.format("Base", "__init_subclass__", "Base")
)
for name, test in {
    "of a base with any name": "class Base(unittest.TestCase):\n    pass\n@keep\n" + SQUARES.format("Base", ""),
    "of a base by another name": "from unittest import TestCase as Case\n@keep\n" + SQUARES.format("Case", ""),
}.items():  # fmt: skip
    MADE_TESTS.forged(
        f"a class that the candidate decorates, {name}",
        ZERO + "def keep(kind):\n    return object()\n",
        SQUARE + "def keep(kind):\n    return kind\n",
        HEAD.replace("import f", "import f, keep") + test,
        verdicts=("infra_error",),
        right=("infra_error",),
    )
MADE_TESTS.forged(
    "a class of data, which it gets",
    "def f(pair):\n    return pair.n\n",
    "def f(pair):\n    return pair.n + pair.m\n",
    "from dataclasses import make_dataclass\nfrom solution import f\n\nPair = make_dataclass('Pair', [('n', int), ('m', int)])\n\ndef test_f():\n    assert f(Pair(1, 2)) == 3\n",
)
MADE_TESTS.right(
    "what is no test",
    SQUARE,
    "import dataclasses, unittest\nfrom collections import namedtuple\nfrom unittest import TestSuite\nfrom unittest.mock import Mock\nfrom solution import f\n\ntest_case, test_mock = unittest.TestCase(), Mock()\n\nclass TestError(Exception):\n    pass\n\nclass Case(unittest.TestCase):\n    def test_f(self):\n        self.assertEqual(f(3), 9)\n\nTestRow = namedtuple('TestRow', 'n square')\nTestPair = dataclasses.make_dataclass('TestPair', ['n', 'square'])\nTestAgain = Case\n\ndef test_once():\n    test_mock.assert_not_called()\nfor test_again in (test_once,):\n    pass\n\ndef test_rows():\n    for test_row in (TestRow(2, 4), TestPair(3, 9)):\n        assert f(test_row.n) == test_row.square\n    def test_inner():\n        assert False\n",
)
