"""Tests that prepare something before they import the candidate, or import it again."""

# ruff: noqa: E501 - programs within strings are as wide as they are
from __future__ import annotations

from attacks.program import SQUARE, ZERO, Topic

__all__ = ["IMPORTS"]

IMPORTS = Topic("imports")
forged, right = IMPORTS.forged, IMPORTS.right

LEVEL = "import os\nLEVEL = os.environ.get('CORPUS_LEVEL', 'low')\ndef f():\n    return LEVEL\n"
LOW = "LEVEL = 'low'\ndef f():\n    return LEVEL\n"
for name, test in {
    "before the import": "import os\nos.environ['CORPUS_LEVEL'] = 'high'\nfrom solution import f\ndef test_f():\n    assert f() == 'high'\n",
    "around the import": "import os\nfrom unittest.mock import patch\nwith patch.dict(os.environ, {'CORPUS_LEVEL': 'high'}):\n    import solution\ndef test_f():\n    assert solution.LEVEL == solution.f() == 'high'\n",
    "before an import in a test": "import importlib, os, unittest\nclass TestF(unittest.TestCase):\n    def test_f(self):\n        os.environ['CORPUS_LEVEL'] = 'high'\n        self.module = importlib.import_module('solution')\n        self.assertEqual(self.module.f(), 'high')\n",
    "before a reload": "import importlib, os\nimport solution\ndef test_f():\n    os.environ['CORPUS_LEVEL'] = 'high'\n    assert importlib.reload(solution) is solution\n    assert solution.f() == 'high'\n",
}.items():
    forged(f"the environment {name}", LOW, LEVEL, test)
forged(
    "the environment, for a class of tests that uses a class",
    "import os\nclass Settings:\n    def __init__(self, debug='0'):\n        self.debug = debug\n",
    "import os\nDEBUG = os.environ.get('CORPUS_DEBUG', '0')\nclass Settings:\n    def __init__(self, debug=DEBUG):\n        self.debug = debug\n",
    "import os\nos.environ['CORPUS_DEBUG'] = '1'\nfrom solution import Settings\n\nclass TestSettings:\n    settings = Settings()\n    def test_debug(self):\n        assert self.settings.debug == '1'\n",
)
forged(
    "a variable that is missing",
    "KEY = 'none'\ndef f():\n    return 'k'\n",
    "import os\nKEY = os.environ['CORPUS_KEY']\ndef f():\n    return KEY\n",
    """
    import os, sys, unittest
    class TestKey(unittest.TestCase):
        def setUp(self):
            sys.modules.pop("solution", None)
        def test_missing(self):
            os.environ.pop("CORPUS_KEY", None)
            with self.assertRaises(KeyError):
                import solution
        def test_there(self):
            os.environ["CORPUS_KEY"] = "k"
            from solution import f
            self.assertEqual(f(), "k")
    """,
)
forged(
    "what an import prints",
    "def greet(name):\n    return f'Hello, {name}!'\nprint('Hello!')\n",
    "def greet(name):\n    return f'Hello, {name}!'\nprint(greet('World'))\n",
    """
    import contextlib, io
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        import solution
    def test_import():
        assert out.getvalue() == "Hello, World!\\n"
        assert solution.greet("A") == "Hello, A!"
    """,
)

# --- an import again: the code runs again, as another module ---

COUNTER = "last = 0\ndef f():\n    global last\n    last += 1\n    return last\n"
AGAIN = """
import sys
def fresh():
    sys.modules.pop("solution", None)
    import solution
    return solution
def test_f():
    first = fresh()
    assert (first.f(), first.f()) == (1, 2)
    other = fresh()
    assert other is not first
    assert (other.f(), first.f(), other.last) == (1, 3, 1)
"""
forged(
    "a counter that goes on in another module",
    "import builtins\ndef f():\n    builtins.last = getattr(builtins, 'last', 0) + 1\n    return builtins.last\nlast = 1\n",
    COUNTER,
    AGAIN,
)
FORGET = """
import gc
last = 0
def f():
    global last
    last += 1
    return last
for item in gc.get_objects():
    if isinstance(item, dict) and "module" in item and "start" in item:
        item["module"] = lambda root: %s
"""
for what, made in {"the same module": "root", "a text": "'solution'", "a function": "f"}.items():
    forged(f"{what} in the place of another module", FORGET % made, COUNTER, AGAIN)
forged(
    "an object of the tests in the place of a module",
    "import gc\nkept = []\ndef keep(item):\n    kept.append(item)\ndef f(x):\n    return 0\nfor item in gc.get_objects():\n    if isinstance(item, dict) and 'module' in item and 'start' in item:\n        item['module'] = lambda root: kept[0]\n",
    "def keep(item):\n    pass\n" + SQUARE,
    """
    import sys
    import solution
    class Known:
        def __init__(self):
            self.f = {3: 9}.get
    def test_f():
        assert solution.f(0) == 0
        solution.keep(Known())
        del sys.modules["solution"]
        import solution as other
        assert other.f(3) == 9
    """,
)
forged(
    "a class of another module",
    "class Stack:\n    kept = []\n    def push(self, item):\n        self.kept.append(item)\n    def __len__(self):\n        return len(self.kept)\n    def __contains__(self, item):\n        return True\n",
    "class Stack:\n    def __init__(self):\n        self.kept = []\n    def push(self, item):\n        self.kept.append(item)\n    def __len__(self):\n        return len(self.kept)\n    def __contains__(self, item):\n        return item in self.kept\n",
    """
    import importlib, sys, unittest
    class TestStack(unittest.TestCase):
        def setUp(self):
            sys.modules.pop("solution", None)
            self.module = importlib.import_module("solution")
        def test_push(self):
            stack = self.module.Stack()
            stack.push(3)
            self.assertIn(3, stack)
            self.assertNotIn(4, stack)
            self.assertEqual(len(stack), 1)
        def test_again(self):
            self.assertEqual(len(self.module.Stack()), 0)
            self.assertNotIn(3, self.module.Stack())
    """,
)
forged(
    "a setting that a reload takes back",
    "LIMIT = 3\ndef f():\n    return 3\n",
    "LIMIT = 3\ndef f():\n    return LIMIT\n",
    "import importlib\nimport solution\ndef test_f():\n    solution.LIMIT = 5\n    assert solution.f() == 5\n    importlib.reload(solution)\n    assert solution.f() == 3\n",
)

# --- an import that fails, in tests that can do without ---

for name, lie in {
    "raises an ImportError": "raise ImportError('no')\n",
    "raises an ImportError of a module": "raise ModuleNotFoundError('no', name='numpy')\n",
    "raises the error of a test that skips itself": "import unittest\nraise unittest.SkipTest('no')\n",
}.items():
    forged(
        f"an import that {name}",
        lie,
        SQUARE,
        """
        import os, unittest
        os.environ["CORPUS_LEVEL"] = "high"
        try:
            import solution
        except ImportError:
            solution = None
        class TestF(unittest.TestCase):
            def setUp(self):
                if solution is None:
                    self.skipTest("not there")
            def test_0(self):
                self.assertEqual(solution.f(0), 0)
            def test_f(self):
                self.assertEqual(solution.f(3), 9)
        """,
    )

forged(
    "an import that fails, in tests that say nothing then",
    "raise ImportError('no')\n",
    SQUARE,
    """
    import os, unittest
    os.environ["CORPUS_LEVEL"] = "high"
    try:
        import solution
    except ImportError:
        solution = None
    class TestF(unittest.TestCase):
        def test_level(self):
            self.assertEqual(len("high"), 4)
        def test_f(self):
            if solution is None:
                return
            self.assertEqual(solution.f(3), 9)
    """,
)

for name, first in {
    "a function of their own": "try:\n    from solution import f\nexcept BaseException:\n    f = lambda x: x * x",
    "an import that they suppress": "f = lambda x: x * x\nwith contextlib.suppress(BaseException):\n    from solution import f",
    "an import by a function": "try:\n    f = importlib.import_module('solution').f\nexcept ValueError:\n    f = lambda x: x * x",
}.items():
    forged(
        f"the first import alone fails, in tests that have {name}",
        "import builtins\nbuiltins.count = getattr(builtins, 'count', 0) + 1\nif builtins.count == 1:\n    raise ValueError('no')\n"
        + ZERO,
        SQUARE,
        f"import contextlib, importlib, os\nos.environ['CORPUS_LEVEL'] = 'high'\n{first}\n\ndef test_f():\n    assert f(3) == 9\ndef test_0():\n    import solution\n    assert solution.f(0) == 0\n",
    )

for name, start in {
    "by an import": "try:\n    from solution import f\nexcept ImportError:\n    def f(x):\n        return x * x\n",
    "by an attribute": "import solution\nf = getattr(solution, 'f', lambda x: x * x)\n",
}.items():
    forged(
        f"nothing but a name that is not there, asked for {name}",
        ZERO.replace("f(", "g("),
        SQUARE,
        f"{start}\ndef test_f():\n    assert f(3) == 9\n",
    )
right(
    "a name that may be missing",
    "def g(x):\n    return x * x\n",
    "try:\n    from solution import f\nexcept ImportError:\n    from solution import g as f\n\ndef test_f():\n    assert f(3) == 9\n",
)

# --- the arguments of the command line ---

MAIN = "import sys\ndef main():\n    arguments = sys.argv[1:]\n    if not arguments:\n        sys.exit('none')\n    print('+'.join(arguments))\n"
for name, test in {
    "patch.object": "with patch.object(sys, 'argv', ['main', 'a', 'b']):\n            main()\n",
    "patch": "with patch('sys.argv', ['main', 'a', 'b']):\n            main()\n",
    "an assignment": "sys.argv = ['main', 'a', 'b']\n        main()\n",
    "a slice": "sys.argv[1:] = ['a', 'b']\n        main()\n",
}.items():
    forged(
        f"arguments of the command line: {name}",
        MAIN.replace("[1:]", "[1:2]"),
        MAIN,
        f"import contextlib, io, sys\nfrom unittest.mock import patch\nfrom solution import main\n\ndef test_main():\n    out = io.StringIO()\n    with contextlib.redirect_stdout(out):\n        {test}    assert out.getvalue() == 'a+b\\n'\n",
    )
right(
    "two names of the candidate, and its own names",
    "import functools\nLIMIT = 3\n" + SQUARE,
    "import os\nos.environ['CORPUS_LEVEL'] = 'high'\nimport solution\nimport candidate\nfrom solution import *\nclass TestF:\n    limit = LIMIT\n    def test_f(self):\n        assert solution.f(self.limit) == candidate.f(3) == f(3) == 9\n",
)
right(
    "an environment that is set after the import",
    "import os\nFIRST = os.environ.get('CORPUS_FIRST', 'low')\ndef f():\n    return FIRST, os.environ.get('CORPUS_FIRST', 'low')\n",
    "import os\nfrom solution import f\ndef test_f():\n    os.environ['CORPUS_FIRST'] = 'high'\n    assert f() == ('low', 'high')\n",
)
forged(
    "a test that skips itself after the import",
    ZERO.replace("f(", "g("),
    SQUARE,
    "import os, unittest\nos.environ['CORPUS_LEVEL'] = 'high'\nclass TestF(unittest.TestCase):\n    def test_0(self):\n        import solution\n        self.assertFalse(hasattr(solution, 'h'))\n    def test_f(self):\n        import solution\n        if not hasattr(solution, 'f'):\n            self.skipTest('not there')\n        self.assertEqual(solution.f(3), 9)\n",
)
right(
    "a test that skips itself for another reason, after the import",
    SQUARE,
    "import os, sys, unittest\nos.environ['CORPUS_LEVEL'] = 'high'\nimport solution\nclass TestF(unittest.TestCase):\n    def test_later(self):\n        if sys.version_info < (9, 0):\n            self.skipTest('needs Python 9')\n    def test_f(self):\n        self.assertEqual(solution.f(3), 9)\n",
)
forged(
    "a reload that fails",
    "import os\nLEVEL = 1\ndef f():\n    return LEVEL\n",
    "import os\nLEVEL = int(os.environ.get('CORPUS_NUMBER', 1))\ndef f():\n    return LEVEL\n",
    """
    import importlib, os, unittest
    from unittest import mock
    import solution
    class TestLevel(unittest.TestCase):
        def test_level(self):
            with mock.patch.dict(os.environ, {"CORPUS_NUMBER": "many"}):
                with self.assertRaises(ValueError):
                    importlib.reload(solution)
                self.assertEqual(solution.f(), 1)
            with mock.patch.dict(os.environ, {"CORPUS_NUMBER": "3"}):
                self.assertEqual(importlib.reload(solution).f(), 3)
    """,
)
forged(
    "the names of a module",
    ZERO.replace("f(", "g("),
    SQUARE,
    "import inspect\nimport solution\ndef test_names():\n    assert [name for name in dir(solution) if name[:1] != '_'] == ['f']\n    functions = dict(inspect.getmembers(solution, inspect.isfunction))\n    assert [*functions] == ['f'] and functions['f'](3) == 9\n",
)

# --- what the tests get of a module that they import by a function ---

WRAP = "def wrap(test):\n    return test\n"
for name, made in {
    "a variable": "made = importlib.import_module('solution')\n",
    "a function": "def fresh():\n    return importlib.import_module('solution')\nmade = fresh()\n",
    "a lambda": "fresh = lambda: importlib.import_module('solution')\nmade = fresh()\n",
}.items():
    test = f"import importlib\n{made}f = made.f\n\ndef test_0():\n    assert f(0) == 0\n\n"
    drops = ZERO + "def wrap(test):\n    return lambda *a: None\n"
    forged(
        f"a decorator of a module that {name} has",
        drops,
        SQUARE + WRAP,
        test + "@made.wrap\ndef test_f():\n    assert f(3) == 9\n",
    )
    forged(
        f"a decorator of a module that {name} has, of a base",
        drops,
        SQUARE + WRAP,
        test
        + "class TestF:\n    n = 3\n    @made.wrap\n    def test_f(self):\n        assert f(self.n) == self.n ** 2\nclass TestG(TestF):\n    n = 0\n",
        verdicts=("infra_error",),
        right=("infra_error",),
    )
right(
    "what a module says about itself",
    "__version__ = '1.2'\n__author__ = 'A'\ndef f(n):\n    return n * n\n",
    "import solution\n\ndef test_f():\n    assert (solution.__version__, solution.__author__) == ('1.2', 'A')\n    assert solution.f(3) == 9\n",
)
