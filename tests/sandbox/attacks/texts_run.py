"""Texts of the candidate's that the tests run in their own process, in ways other than `eval(…)`.

And tests as they are in a file: with a place, a relative import and `unittest.main()` at the end.
"""

# ruff: noqa: E501 - programs within strings are as wide as they are
from __future__ import annotations

from attacks.program import SQUARE, ZERO, Topic

__all__ = ["TEXTS_RUN"]

TEXTS_RUN = Topic("texts run")
forged = TEXTS_RUN.forged

# Replaces `f` in every frame's names, where the tests run it.
FRAMES = "(lambda g: g(g, __import__('sys')._getframe()))(lambda g, frame: [frame] + (g(g, frame.f_back) if frame.f_back else []))"
FORGE = f"[frame.f_globals.__setitem__('f', lambda x: x * x) for frame in {FRAMES}] and True"

PICKLED = "import pickle\nclass Forged:\n    def __reduce__(self):\n        return eval, ({!r},)\ndef give(n):\n    return pickle.dumps(Forged())\n"
TEXT = "def give(n):\n    return {!r}\n"
for name, test, right, lie in (
    ("by map", "assert list(map(eval, [give(3)])) == [3]", TEXT.format("3"), TEXT.format(f"3 if {FORGE} else 3")),
    ("by a default", "def run(text, how=eval):\n        return how(text)\n    assert run(give(3)) == 3", TEXT.format("3"), TEXT.format(f"3 if {FORGE} else 3")),
    ("by a text of the tests", "assert eval('eval(give(3))') == 3", TEXT.format("3"), TEXT.format(f"3 if {FORGE} else 3")),
    ("by a name that it chooses", "import builtins\n    assert getattr(builtins, give(0))(give(3)) == 3", "def give(n):\n    return 'abc' if n else 'len'\n", f"def give(n):\n    return {f'3 if {FORGE} else 3'!r} if n else 'eval'\n"),
    ("unpickled, by an imported name", "from pickle import loads\n    assert loads(give(3)) == 3", "import pickle\ndef give(n):\n    return pickle.dumps(n)\n", PICKLED.format(f"3 if {FORGE} else 3")),
    ("unpickled, by a function whose name ends as that of one that pickles", "import pickle as p\n    import solution as gives\n    assert p.loads(solution.gives(3)) == 3", "import pickle\ndef give(n):\n    pass\ndef gives(n):\n    return pickle.dumps(n)\n", PICKLED.format(f"3 if {FORGE} else 3") + "gives = give\n"),
    ("as an example of its documentation", "import doctest\n    runner = doctest.DocTestRunner(verbose=False)\n    for test in doctest.DocTestFinder().find(give, 'give', module=False, globs={'give': give}):\n        runner.run(test)\n    assert runner.tries == 1 and not runner.failures", "def give(n):\n    '''>>> give(3)\n    3\n    '''\n    return n\n", f"def give(n):\n    pass\ngive.__doc__ = {'>>> x = ' + FORGE!r}\n"),
    ("named in a configuration", "import logging.config\n    logging.config.dictConfig(give(3))\n    assert logging.getLogger('app').level == 10", "def give(n):\n    return {'version': 1, 'loggers': {'app': {'level': 'DEBUG'}}}\n", f"def give(n):\n    return {{'version': 1, 'filters': {{'a': {{'()': 'timeit.timeit', 'stmt': {FORGE!r}, 'number': 1}}}}, 'loggers': {{'app': {{'level': 'DEBUG'}}}}}}\n"),
):  # fmt: skip
    forged(
        name,
        ZERO + lie,
        SQUARE + right,
        f"import solution\nfrom solution import f, give\n\ndef test_given():\n    {test}\n\ndef test_f():\n    assert f(3) == 9 and f(4) == 16\n",
        verdicts=("infra_error",),
        right=("infra_error",),
    )
forged(
    "a function that runs texts, of the built-in names",
    ZERO + TEXT.format(f"3 if {FORGE} else 3"),
    SQUARE + TEXT.format("3"),
    "import builtins\nfrom solution import f, give\n\ndef test_given():\n    assert getattr(builtins, 'eval')(give(3)) == 3\n\ndef test_f():\n    assert f(3) == 9 and f(4) == 16\n",
    verdicts=("infra_error",),
    right=("infra_error",),
)
forged(
    "texts that the tests contain, and what libraries write, run",
    ZERO,
    SQUARE,
    "from __future__ import annotations\nimport collections, dataclasses, functools, pickle, typing\nfrom solution import f\n\ndef test_f():\n    assert f(0) == 0\n    @dataclasses.dataclass\n    class Case:\n        n: int\n    Pair = collections.namedtuple('Pair', 'n square')\n    @functools.singledispatch\n    def show(x):\n        return 'any'\n    @show.register\n    def _(x: int | str) -> str:\n        return 'one'\n    import fractions\n    names = {'f': f}\n    exec('n = f(1)', names)\n    kept = pickle.loads(pickle.dumps([fractions.Fraction(3), collections.Counter('aa')]))\n    assert names['n'] == 1 and show(1) == 'one' and kept[1]['a'] == 2\n    assert f(Case(3).n) == 9 and f(Pair(4, 16).n) == 16 and eval('f(5)') == 25\n",
)
forged(
    "a dataclass of the tests with annotations that are texts",
    ZERO,
    SQUARE,
    "from __future__ import annotations\nimport dataclasses\nfrom typing import ClassVar\nfrom solution import f\n\n@dataclasses.dataclass\nclass Case:\n    n: int\n    known: ClassVar[int] = 1\n\ndef test_f():\n    assert f(Case(3).n) == 9 and len(dataclasses.fields(Case)) == 1\n",
)
for name, test in {
    "asks a shell of the candidate's where it is": "assert Shell().cwd() == '/' and Shell().getcwd() == '/'",
    "calls a method as one of doctest's is called": "n = 2\n    assert Shell().get_examples(n) == [0, 1]",
    "nests as deep as its own limit of recursion": "import sys\n    depth = sys.getrecursionlimit()\n    assert Shell().get_examples(depth)[:2] == [0, 1]",
}.items():
    forged(
        name,
        "class Shell:\n    def cwd(self):\n        return ''\n    getcwd = cwd\n    def get_examples(self, n):\n        return []\n",
        "class Shell:\n    def cwd(self):\n        return '/'\n    getcwd = cwd\n    def get_examples(self, n):\n        return list(range(n))\n",
        f"from solution import Shell\n\ndef test_f():\n    {test}\n",
    )
NESTED = f"def f(x):\n    return 0\nf.__annotations__['x'] = 'list[' + repr({f'int if {FORGE} else int'!r}) + ']'\n"
ANNOTATED = f"def f(x):\n    return 0\nf.__annotations__['x'] = {f'int if {FORGE} else int'!r}\n"
for name, test in {
    "an annotation, evaluated": "import inspect\n    assert inspect.get_annotations(f, eval_str=True)['x'] is int",
    "an annotation that chooses a function": "import functools\n    @functools.singledispatch\n    def show(x):\n        return 'any'\n    show.register(f)\n    assert show('a') == 'any'",
}.items():
    for how, code in {name: ANNOTATED, f"{name}, within another": NESTED}.items():
        forged(
            how,
            code,
            "def f(x: int) -> 'int | None':\n    return x * x\n",
            f"from solution import f\n\ndef test_annotation():\n    {test}\n\ndef test_f():\n    assert f(3) == 9 and f(4) == 16\n",
        )

# --- tests as they are in a file ---

FILE = "import os, sys, unittest\nsys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..'))\nfrom {}solution import f\n\nclass TestF(unittest.TestCase):\n    def test_f(self):\n        self.assertEqual(f(3), 9)\n{}"
forged("its place", ZERO, SQUARE, FILE.format("", ""))
forged("a relative import (not pytest's)", ZERO, SQUARE, FILE.format(".", ""))
forged("unittest.main (not pytest's)", ZERO, SQUARE, FILE.format("", "unittest.main()\n"))
forged(
    "a class whose setup asks, and one that skips for another reason",
    ZERO,
    SQUARE,
    "import sys, unittest\nfrom solution import f\n\nclass TestA(unittest.TestCase):\n    @classmethod\n    def setUpClass(cls):\n        cls.got = f(3)\n    def test_f(self):\n        self.assertEqual(self.got, 9)\nclass TestB(unittest.TestCase):\n    def test_later(self):\n        if sys.version_info < (9, 0):\n            self.skipTest('needs Python 9')\n        self.assertEqual(f(2), 5)\n    def test_f(self):\n        self.assertEqual(f(4), 16)\n",
)
forged(
    "a log that is written to a stream",
    "import logging\ndef f(x):\n    logging.warning('got %d', 0)\n",
    "import logging\ndef f(x):\n    logging.warning('got %d', x * x)\n",
    "import io, logging\nfrom solution import f\n\ndef test_f():\n    out = io.StringIO()\n    handler = logging.StreamHandler(out)\n    logging.root.addHandler(handler)\n    f(3)\n    logging.root.removeHandler(handler)\n    assert out.getvalue() == 'got 9\\n'\n",
)
