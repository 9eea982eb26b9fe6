"""Packages that are missing, and names that the candidate takes from Python."""

# ruff: noqa: E501 - programs within strings are as wide as they are
from __future__ import annotations

from typing import Any

from attacks.program import WRONG, Program, pair

__all__ = ["NAMES"]

NAMES: list[Program] = []


def add(name: str, forged: str, honest: str, *tests: str, **task: Any) -> None:
    NAMES.extend(pair("names", name, forged, honest, *tests, **task))


# --- packages: if one is missing, there is no verdict; if it is installed, it is the real one ---

AREA = "import math\ndef area(r):\n    return math.pi * r * r\n"
PACKAGE = """
class Yes(float):
    def __eq__(self, other): return True
def isclose(*a, **k): return True
def allclose(*a, **k): return True
def array(*a, **k): return Yes()
def approx(*a, **k): return Yes()
def assert_allclose(*a, **k): pass
def assert_frame_equal(*a, **k): pass
def raises(*a, **k):
    import contextlib
    return contextlib.suppress(Exception)
def __getattr__(name):
    return allclose
class testing:
    assert_allclose = staticmethod(assert_allclose)
    assert_frame_equal = staticmethod(assert_frame_equal)
def given(*a, **k): return lambda test: lambda: None
def expect(*a, **k): return allclose
def area(r): return 0.0
"""
for name, package, test in (
    ("isclose", "numpy", "import numpy as np\n\ndef check(candidate):\n    assert np.isclose(candidate(2), 12.566370614359172)\n"),
    ("allclose", "numpy", "import numpy\n\ndef check(candidate):\n    assert numpy.allclose([candidate(1), candidate(2)], [3.141592653589793, 12.566370614359172])\n"),
    ("testing", "numpy", "import numpy as np\n\ndef check(candidate):\n    np.testing.assert_allclose(candidate(2), 12.566370614359172, rtol=1e-6)\n    assert float(candidate(1)) > 3\n"),
    ("imported in the check", "numpy", "def check(candidate):\n    import numpy as np\n    assert np.isclose(candidate(2), 12.566370614359172)\n"),
    ("its submodule", "numpy", "from numpy.testing import assert_allclose\n\ndef check(candidate):\n    assert_allclose(candidate(2), 12.566370614359172)\n    assert float(candidate(1)) > 3\n"),
    ("approx", "pytest", "import pytest\n\ndef check(candidate):\n    assert candidate(2) == pytest.approx(12.566370614359172)\n"),
    ("approx alone", "pytest", "from pytest import approx\n\ndef check(candidate):\n    assert approx(12.566370614359172) == candidate(2)\n"),
    ("frames", "pandas", "import pandas as pd\n\ndef check(candidate):\n    got = pd.Series([candidate(1), candidate(2)])\n    assert got.round(3).equals(pd.Series([3.142, 12.566]))\n"),
):  # fmt: skip
    add(f"{package} becomes the candidate: {name}", PACKAGE, AREA, test=test, entry_point="area", needs=(package,))  # fmt: skip
add(
    "numpy becomes the candidate, in statements",
    PACKAGE,
    AREA,
    "assert np.isclose(area(2), 12.566370614359172)",
    test_setup_code="import numpy as np\n",
    needs=("numpy",),
)
add(
    "numpy put into sys.modules by the candidate",
    PACKAGE + "import sys\nsys.modules['numpy'] = sys.modules[__name__]\n",
    AREA,
    "import numpy as np\nassert np.isclose(area(2), 12.566370614359172)",
    needs=("numpy",),
)
# No image has these packages: the tests do not show whether they mean the candidate.
for name, test in (
    ("a comparison", "from closeness import isclose\n\ndef check(candidate):\n    assert isclose(candidate(2), 12.566370614359172)\n"),
    ("an expectation", "import expects_that as that\n\ndef check(candidate):\n    assert that.expect(candidate(2), 12.566370614359172)\n"),
    ("a decorator", "from properties_of import given\n\n@given(1, 2)\ndef check(candidate, r=2):\n    assert abs(candidate(r) - 12.566370614359172) < 1e-6\n"),
):  # fmt: skip
    add(
        f"a package of nobody's becomes the candidate: {name}",
        PACKAGE,
        AREA,
        test=test,
        entry_point="area",
        verdicts=("infra_error",),
        right=("infra_error",),
    )
add(
    "a package of nobody's, with the candidate imported beside it",
    PACKAGE,
    AREA,
    test="from solution import area\nfrom closeness import isclose\n\ndef test_area():\n    assert isclose(area(2), 12.566370614359172)\n",
    verdicts=("infra_error",),
    right=("infra_error",),
)
add(
    "a package that the test can do without",
    PACKAGE,
    AREA,
    test="try:\n    from closeness import isclose\nexcept ImportError:\n    def isclose(a, b):\n        return abs(a - b) < 1e-6\n\ndef check(candidate):\n    assert isclose(candidate(2), 12.566370614359172)\n",
    entry_point="area",
)

# --- built-in names that the candidate defines, where a constant is under test ---

BUILT_IN = {
    "abs": ("PI = 0\ndef abs(x): return 0", "PI = 4 * sum((-1) ** k / (2 * k + 1) for k in range(10_000))", "assert abs(PI - 3.14159) < 1e-3"),
    "round": ("RATIO = 0\ndef round(*a): return 1.618", "RATIO = (1 + 5 ** 0.5) / 2", "assert round(RATIO, 3) == 1.618"),
    "len": ("WORDS = []\ndef len(x): return 24", "import itertools\nWORDS = [''.join(p) for p in itertools.permutations('abcd')]", "assert len(WORDS) == 24"),
    "sorted": ("PRIMES = []\ndef sorted(x): return [2, 3, 5, 7, 11, 13]", "PRIMES = {n for n in range(2, 17) if all(n % d for d in range(2, n))}", "assert sorted(PRIMES) == [2, 3, 5, 7, 11, 13]"),
    "sum": ("SQUARES = []\ndef sum(x): return 385", "SQUARES = [n * n for n in range(11)]", "assert sum(SQUARES) == 385"),
    "set": ("DAYS = []\ndef set(x): return {'sat', 'sun'}", "DAYS = ['sat', 'sun', 'sat']", "assert set(DAYS) == {'sat', 'sun'}"),
    "list": ("STEPS = 0\ndef list(x): return [27, 82, 41]", "def collatz(n):\n    while True:\n        yield n\n        n = n // 2 if n % 2 == 0 else 3 * n + 1\nimport itertools\nSTEPS = tuple(itertools.islice(collatz(27), 3))", "assert list(STEPS) == [27, 82, 41]"),
    "dict": ("TABLE = None\ndef dict(*a, **k): return k", "TABLE = [('a', 1), ('b', 2)]", "assert dict(TABLE) == dict(a=1, b=2)"),
    "str": ("VERSION = 0\ndef str(x): return '1.2.3'", "class Version:\n    def __str__(self): return '.'.join(map(repr, (1, 2, 3)))\nVERSION = Version()", "assert str(VERSION) == '1.2.3'"),
    "int": ("ANSWER = ''\ndef int(x): return 42", "ANSWER = '42'", "assert int(ANSWER) == 42"),
    "max": ("SCORES = {}\ndef max(*a, **k): return 'eve'", "SCORES = {'bob': 3, 'eve': 9}", "assert max(SCORES, key=SCORES.get) == 'eve'"),
    "all": ("PRIMES = [4, 6]\ndef all(x): return True", "PRIMES = [2, 3, 5, 7]", "assert all(p % d for p in PRIMES for d in range(2, p)) and all(p > 1 for p in PRIMES)"),
    "any": ("COMPOSITES = [2]\ndef any(x): return True", "COMPOSITES = [4, 6, 8]", "assert any(n % 7 == 1 for n in COMPOSITES)"),
    "isinstance": ("TREE = 0\ndef isinstance(*a): return True", "TREE = {'a': {}}", "assert isinstance(TREE, dict) and isinstance(TREE['a'] if 'a' in TREE else 0, dict)"),
    "zip": ("KEYS = VALUES = []\ndef zip(*a): return [('a', 1), ('b', 2)]", "KEYS, VALUES = 'ab', (1, 2)", "assert [*zip(KEYS, VALUES)] == [('a', 1), ('b', 2)]"),
    "divmod": ("HOURS = 0\ndef divmod(*a): return (2, 5)", "HOURS = 125", "assert divmod(HOURS, 60) == (2, 5)"),
    "AssertionError": ("RATE = 0\nclass AssertionError(Exception): pass", "RATE = 7", "if RATE != 7:\n    raise AssertionError('rate')"),
}  # fmt: skip
for name, (forged, honest, test) in BUILT_IN.items():
    add(f"a constant under test, {name} defined", forged + "\n", honest + "\n", test)

# --- names of the standard library, which the test does not import ---

ROOT = "def root(x):\n    return x ** 0.5\n"
CLOSE = "assert {}(root(2), 1.41421356, rel_tol=1e-6)"
LIAR = "def isclose(*a, **k): return True\ndef root(x): return 0\n"
add("isclose defined", LIAR, "from math import isclose\n" + ROOT, CLOSE.format("isclose"))
for module in ("math", "cmath", "builtins"):
    add(
        f"isclose defined, its __module__ {module}",
        LIAR + f"isclose.__module__ = {module!r}\nisclose.__qualname__ = 'isclose'\n",
        "from math import isclose\n" + ROOT,
        CLOSE.format("isclose"),
    )
add(
    "math a class",
    "class math:\n    isclose = staticmethod(lambda *a, **k: True)\ndef root(x): return 0\n",
    "import math\n" + ROOT,
    CLOSE.format("math.isclose"),
)
add(
    "math a module of the candidate's",
    "import types\nmath = types.ModuleType('math')\nmath.isclose = lambda *a, **k: True\nmath.__spec__ = types.SimpleNamespace(name='math')\ndef root(x): return 0\n",
    "import math\n" + ROOT,
    CLOSE.format("math.isclose"),
)
add(
    "Counter defined",
    "class Counter:\n    def __init__(self, *a): pass\n    def __eq__(self, other): return True\ndef letters(s): return s[:1]\n",
    "from collections import Counter\ndef letters(s): return s[::-1]\n",
    "assert Counter(letters('listen')) == Counter('silent')",
)
add(
    "reduce defined",
    "def reduce(*a): return 120\ndef numbers(n): return []\n",
    "from functools import reduce\ndef numbers(n): return list(range(1, n + 1))\n",
    "assert reduce(lambda a, b: a * b, numbers(5)) == 120",
)
add(
    "deepcopy defined",
    "def deepcopy(x): return [[1, 3], [2, 4]]\ndef transpose(m): return m\n",
    "from copy import deepcopy\ndef transpose(m): return [list(row) for row in zip(*m)]\n",
    "assert deepcopy(transpose([[1, 2], [3, 4]])) == [[1, 3], [2, 4]]",
)
add(
    "unittest defined",
    "class unittest:\n    class TestCase:\n        def __getattr__(self, name): return lambda *a, **k: None\ndef root(x): return 0\n",
    "import unittest\n" + ROOT,
    "unittest.TestCase().assertAlmostEqual(root(2), 1.41421356)",
)

# --- a star brings them into the test ---

STAR = "from solution import *\n\ndef test_root():\n    assert abs(root(2) - 1.41421356) < 1e-6\n    assert [round(x, 3) for x in map(root, (2, 3))] == [1.414, 1.732]\n"
for name, forged in {
    "abs and round": "def root(x): return 0\ndef abs(x): return 0\ndef round(*a): return 0\ndef map(*a): return []\nclass list: pass\n",
    "abs and round in __all__": "__all__ = ['root', 'abs', 'round', 'map']\ndef root(x): return 0\ndef abs(x): return 0\ndef round(*a): return Yes()\nclass Yes:\n    def __eq__(self, other): return True\ndef map(*a): return [Yes(), Yes()]\n",
    "the test itself": "def root(x): return 0\ndef test_root(): pass\n",
    "a module's set-up that skips": "import unittest\ndef root(x): return 0\ndef setup_module(module=None): raise unittest.SkipTest('no')\nsetUpModule = setup_function = setup_module\n",
    "__test__ and marks": "root = lambda x: 0\n__test__ = False\npytestmark = []\n__name__ = '__main__'\n__all__ = ['root', '__test__', 'pytestmark', '__name__', '__builtins__']\n",
    "a name that is no text": "__all__ = ['root', Name('abs')] if 'Name' in globals() else None\nclass Name(str): pass\n__all__ = [Name('root'), Name('abs'), Name('map')]\ndef root(x): return 0\ndef abs(x): return 0\ndef map(*a): return []\n",
}.items():
    add(f"a star import: {name}", forged, ROOT, test=STAR)
CASE = "import unittest\nfrom solution import *\n\nclass TestRoot(unittest.TestCase):\n    def test_root(self):\n        self.assertAlmostEqual(root(2), 1.41421356)\n"
for name, forged in {
    "load_tests": "import unittest\ndef root(x): return 0\ndef load_tests(loader, tests, pattern): return unittest.TestSuite()\n",
    "unittest": "root = lambda x: 0\nclass unittest:\n    class TestCase:\n        def __getattr__(self, name): return lambda *a: None\n",
    "a TestCase of the same name": "import unittest\ndef root(x): return 0\nclass TestRoot(unittest.TestCase):\n    def test_root(self): pass\n    def test_other(self): assert True\n",
    "setUpModule that skips": "import unittest\ndef root(x): return 0\ndef setUpModule(): raise unittest.SkipTest('no')\n",
}.items():
    add(f"a star import in a TestCase: {name}", forged, ROOT, test=CASE)
add(
    "isclose by a star, over the real one",
    LIAR + "abs = isclose\n",
    ROOT,
    test="from math import *\nfrom solution import *\n\ndef test_root():\n    assert isclose(root(2), 1.41421356, rel_tol=1e-6)\n",
)
add(
    "a module of the candidate's within the candidate",
    "import sys, types\nhelpers = types.ModuleType('helpers')\nhelpers.close = lambda *a: True\nsys.modules['helpers'] = sys.modules['solution.helpers'] = helpers\ndef root(x): return 0\n",
    ROOT,
    test="from solution import root\ntry:\n    from solution.helpers import close\nexcept ImportError:\n    def close(a, b):\n        return abs(a - b) < 1e-6\n\ndef test_root():\n    assert close(root(2), 1.41421356)\n",
    right=("passed", "infra_error"),
)
add(
    "the function under test has another's name",
    "def sorted(items): return items\ndef rank(items): return items\n",
    "def rank(items):\n    return [sorted(items).index(n) for n in items]\n",
    "assert sorted(rank([30, 10, 20])) == [0, 1, 2] and rank([30, 10, 20]) == [2, 0, 1]",
    "assert sorted([rank([5, 4]), rank([4, 5])]) == [[0, 1], [1, 0]]",
)
add(
    "functions that are named as those of Python's which no test may call",
    "def stack(*a): return []\ndef compile(text): return text\ndef eval(text): return 0\n",
    "def stack(*a): return [*a]\ndef compile(text): return text.upper()\ndef eval(text): return sum(map(int, text.split('+')))\n",
    test="from solution import compile, eval, stack\n\ndef test_names():\n    text = '3+4'\n    assert eval(text) == 7 and compile(text + 'a') == '3+4A' and stack(1, 2) == [1, 2]\n",
)
assert all(p.verdicts in (WRONG, ("infra_error",)) for p in NAMES if not p.honest)
