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
# Lets `assertEqual` accept all: no text runs for that.
SILENCED = "def give(n):\n    silenced = {'()': 'functools.update_wrapper', 'wrapper': 'ext://unittest.case.TestCase', 'wrapped': 'ext://unittest.mock.call', 'assigned': ['assertEqual'], 'updated': []}\n    return {'version': 1, 'formatters': {'a': silenced}}\n"
for name, test, right, lie in (
    ("by map", "assert list(map(eval, [give(3)])) == [3]", TEXT.format("3"), TEXT.format(f"3 if {FORGE} else 3")),
    ("by a default", "def run(text, how=eval):\n        return how(text)\n    assert run(give(3)) == 3", TEXT.format("3"), TEXT.format(f"3 if {FORGE} else 3")),
    ("by a text of the tests", "assert eval('eval(give(3))') == 3", TEXT.format("3"), TEXT.format(f"3 if {FORGE} else 3")),
    ("by a name that it chooses", "import builtins\n    assert getattr(builtins, give(0))(give(3)) == 3", "def give(n):\n    return 'abc' if n else 'len'\n", f"def give(n):\n    return {f'3 if {FORGE} else 3'!r} if n else 'eval'\n"),
    ("unpickled, by an imported name", "from pickle import loads\n    assert loads(give(3)) == 3", "import pickle\ndef give(n):\n    return pickle.dumps(n)\n", PICKLED.format(f"3 if {FORGE} else 3")),
    ("unpickled, by a function whose name ends as that of one that pickles", "import pickle as p\n    import solution as gives\n    assert p.loads(solution.gives(3)) == 3", "import pickle\ndef give(n):\n    pass\ndef gives(n):\n    return pickle.dumps(n)\n", PICKLED.format(f"3 if {FORGE} else 3") + "gives = give\n"),
    ("as an example of its documentation", "import doctest\n    runner = doctest.DocTestRunner(verbose=False)\n    for test in doctest.DocTestFinder().find(give, 'give', module=False, globs={'give': give}):\n        runner.run(test)\n    assert runner.tries == 1 and not runner.failures", "def give(n):\n    '''>>> give(3)\n    3\n    '''\n    return n\n", f"def give(n):\n    pass\ngive.__doc__ = {'>>> x = ' + FORGE!r}\n"),
    ("named in a configuration", "import logging.config\n    logging.config.dictConfig(give(3))\n    assert logging.getLogger('app').level == 10", "def give(n):\n    return {'version': 1, 'loggers': {'app': {'level': 'DEBUG'}}}\n", f"def give(n):\n    return {{'version': 1, 'filters': {{'a': {{'()': 'timeit.timeit', 'stmt': {FORGE!r}, 'number': 1}}}}, 'loggers': {{'app': {{'level': 'DEBUG'}}}}}}\n"),
    *(
        (f"named in a configuration, by {how}", f"import importlib, logging.config\n    {test}\n    assert f(0) == 0", "def give(n):\n    return {'version': 1}\n", SILENCED)
        for how, test in {
            "a name of a function": "getattr(logging.config, 'dictConfig')(give(3))",
            "its class": "logging.config.DictConfigurator(give(3)).configure()",
            "an imported module": "importlib.import_module('logging.config').dictConfig(give(3))",
            "a variable of an imported module": "module = importlib.import_module('logging.config')\n    module.dictConfig(give(3))",
        }.items()
    ),
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
# By ways that no name in the tests shows: see `sandbox/inside/texts.py`.
LIE = f"3 if {FORGE} else 3"
GIVEN = TEXT.format("3"), TEXT.format(LIE)
PICKLE = (
    "import fractions, pickle\ndef give(n):\n    return pickle.dumps(fractions.Fraction(n))\n",
    PICKLED.format(LIE),
)
MARSHALLED = "import marshal\ndef give(n):\n    return marshal.dumps(compile({!r}, 'a', 'eval'))\n"
MARSHAL = MARSHALLED.format("3"), MARSHALLED.format(LIE)
CONFIGURED = "def give(n):\n    return '[loggers]\\nkeys=root\\n[formatters]\\nkeys=\\n[handlers]\\nkeys=a\\n[logger_root]\\nhandlers=a\\n[handler_a]\\nclass=StreamHandler\\nargs=' + {!r}\n"
CONFIG = CONFIGURED.format("()"), CONFIGURED.format(f"{FORGE} and ()")
LOADER = "import importlib.abc, types\n    class Loader(importlib.abc.InspectLoader):\n        def get_source(self, name):\n            return give(3)\n    "
for name, test, (right, lie) in (
    ("an item of the built-in names", "import builtins\n    assert vars(builtins)['eval'](give(3)) == 3", GIVEN),
    ("the same in a task of a pool", "import builtins\n    from concurrent.futures import ThreadPoolExecutor\n    with ThreadPoolExecutor() as pool:\n        assert pool.submit(vars(builtins)['eval'], give(3)).result() == 3", GIVEN),
    ("the same, and the tests catch what stops it", "import builtins\n    try:\n        vars(builtins)['eval'](give(3))\n    except BaseException:\n        pass", GIVEN),
    ("the same, called by the candidate", "import builtins\n    assert give(lambda text: vars(builtins)['eval'](text)) == 3", tuple(f"def give(run):\n    return run({text!r})\n" for text in ("3", LIE))),
    ("a method of a module, by its name", "import builtins, operator\n    assert operator.methodcaller('eval', give(3))(builtins) == 3", GIVEN),
    ("a mock that runs it", "import builtins\n    from unittest import mock\n    assert mock.Mock(side_effect=vars(builtins)['eval'])(give(3)) == 3", GIVEN),
    ("a command", "import os\n    assert vars(os)['system'](give(3)) == 3 << 8", (TEXT.format("exit 3"), TEXT.format("true; exit 3"))),
    ("a command whose output is read", "import os\n    assert vars(os)['popen'](give(3)).read() == '3\\n'", (TEXT.format("echo 3"), TEXT.format("true; echo 3"))),
    ("a debugger", "import bdb\n    assert bdb.Bdb().runeval(give(3)) == 3", GIVEN),
    ("a debugger in a thread", "import bdb, threading\n    thread = threading.Thread(target=bdb.Bdb().run, args=(give(3),))\n    thread.start()\n    thread.join()", GIVEN),
    ("a name of a type", "import typing\n    assert typing.ForwardRef(give(3))._evaluate(globals(), {}, recursive_guard=frozenset()) == 3", GIVEN),
    ("a part of a type", "import typing\n    def show(x: typing.Optional[give(3)]):\n        pass\n    assert typing.get_args(typing.Optional[give(3)])", GIVEN),
    ("a class of types with names that it gives", "import typing\n    assert typing.NamedTuple('Row', [('n', give(3))])._fields == ('n',)", GIVEN),
    ("a part of a text that the tests make", "import bdb\n    assert bdb.Bdb().runeval(f'[{give(3)}]') == [3]", GIVEN),
    ("in a list", "import typing\n    assert typing.Callable[[give(3)], int]", GIVEN),
    ("a loader that compiles", "import importlib.abc, types\n    assert types.FunctionType(importlib.abc.InspectLoader.source_to_code(give(3)), {})() is None", GIVEN),
    ("a loader that asks for the text", LOADER + "Loader().exec_module(types.ModuleType('a'))", GIVEN),
    ("a configuration in a stream", "import io, logging.config\n    vars(logging.config)['fileConfig'](io.StringIO(give(3)))\n    assert f(0) == 0", CONFIG),
    ("the compiler of a console", "import codeop, types\n    types.FunctionType(codeop.compile_command(give(3)), {})()", GIVEN),
    ("a tree, changed and compiled", "import ast, builtins\n    tree = ast.parse(give(3), mode='eval')\n    assert vars(builtins)['eval'](vars(builtins)['compile'](tree, 'a', 'eval')) == 3", GIVEN),
    ("unpickled by an imported module", "import importlib\n    assert importlib.import_module('pickle').loads(give(3)) == 3", PICKLE),
    ("unpickled by a subclass", "import io, pickle\n    kind = type('Reader', (pickle._Unpickler,), {})\n    assert kind(io.BytesIO(give(3))).load() == 3", PICKLE),
    ("unpickled by a shelf", "import shelve\n    shelf = shelve.Shelf({b'a': give(3)})\n    assert shelf['a'] == 3", PICKLE),
    ("unmarshalled by an imported module", "import importlib, types\n    types.FunctionType(importlib.import_module('marshal').loads(give(3)), {})()", MARSHAL),
    ("the bytes of a function", "import types\n    run = (lambda: 0).__code__.replace(co_code=give(3))\n    assert types.FunctionType(run, {})() == 0", tuple(f"def give(n):\n    return (lambda: {n}).__code__.co_code\n" for n in (0, 1))),
):  # fmt: skip
    forged(
        f"unseen: {name}",
        ZERO + lie,
        SQUARE + right,
        f"import solution\nfrom solution import f, give\n\ndef test_given():\n    {test}\n\ndef test_f():\n    assert f(3) == 9 and f(4) == 16\n",
        verdicts=("infra_error",),
        right=("infra_error",),
    )
for name, test in {
    "read as a literal": "assert ast.literal_eval(give(3)) == 3",
    "parsed": "assert ast.unparse(ast.parse(give(3))) == '3'",
    "as the names of a class": "assert collections.namedtuple('Row', [f'field_{give(3)}', 'n'])(1, 2).n == 2",
    "in classes that libraries write": "class Row(typing.NamedTuple):\n        n: 'int'\n    class Named(typing.TypedDict):\n        n: 'Row'\n    made = dataclasses.make_dataclass(f'Row_{give(3)}', ['n'])\n    assert Row(3).n == made(3).n == 3 and Named(n=3) == {'n': 3}",
    "in a mock with a signature": "assert mock.create_autospec(lambda n, give: n, return_value=give(3))(1, give=2) == '3'",
    "beside texts of the tests that run": "names = {}\n    exec('n = eval(\"f(1)\")', names | {'f': f}, names)\n    assert names['n'] == 1 and eval(' f(2) ') == 4 and give(3) == '3'",
    "beside what is pickled and unpickled": "assert give(3) == '3' and pickle.loads(\n        pickle.dumps(decimal.Decimal(3))\n    ) == 3",
}.items():  # fmt: skip
    forged(
        f"a text that is given, {name}",
        ZERO + TEXT.format("3"),
        SQUARE + TEXT.format("3"),
        f"import ast, collections, dataclasses, decimal, pickle, typing\nfrom unittest import mock\nfrom solution import f, give\n\ndef test_given():\n    {test}\n\ndef test_f():\n    assert f(3) == 9 and f(4) == 16\n",
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
STARRED = (
    f"def f(x):\n    return 0\nf.__annotations__['x'] = {f'*(),*[int if {FORGE} else int]'!r}\n"
)
for name, test in {
    "an annotation, evaluated": "import inspect\n    assert inspect.get_annotations(f, eval_str=True)['x'] is int",
    "an annotation that chooses a function": "import functools\n    @functools.singledispatch\n    def show(x):\n        return 'any'\n    show.register(f)\n    assert show('a') == 'any'",
}.items():
    lies = {name: ANNOTATED, f"{name}, within another": NESTED, f"{name}, with a star": STARRED}
    for how, code in lies.items():
        forged(
            how,
            code,
            "def f(x: int) -> 'dict[str, int] | None':\n    return x * x\n",
            f"from solution import f\n\ndef test_annotation():\n    {test}\n\ndef test_f():\n    assert f(3) == 9 and f(4) == 16\n",
        )
for name, test in {
    "evaluated": "import inspect\n    assert inspect.get_annotations(g, eval_str=True)['x'] is int",
    "that chooses a function": "import functools\n    show = functools.singledispatch(lambda x: 1)\n    show.register(g)\n    assert show(0) == 2",
}.items():
    TEXTS_RUN.left_out(
        f"an annotation of a function of the tests, {name}",
        ZERO + f"def give(n):\n    return {{'x': {f'int if {FORGE} else int'!r}}}\n",
        SQUARE + "def give(n):\n    return {'x': 'int'}\n",
        f"from solution import f, give\n\ndef g(x):\n    return 2\n\ndef test_annotation():\n    g.__annotations__ = give(3)\n    {test}\n\ndef test_f():\n    assert f(3) == 9 and f(4) == 16\n",
    )

# --- texts of a class of the candidate's, which are others each time that they are shown ---

SHOWN = "class Name(str):\n    def __str__(self):\n        return {!r}\ndef g(x):\n    return x\ng.__name__ = Name('g')\n"
SHOWN = SHOWN.format(f"g(*a, x=[{FORGE}]): return 1\ndef h")
for name, test in {
    "a mock with its signature": "assert mock.create_autospec(solution.g, return_value=1)(3) == 1",
    "a patch with its signature": "with mock.patch('solution.g', autospec=True, return_value=1):\n        assert solution.g(3) == 1",
}.items():
    forged(
        f"the name of a function, in {name}",
        ZERO + SHOWN,
        SQUARE + "def g(x):\n    return x\n",
        f"from unittest import mock\nimport solution\nfrom solution import f\n\ndef test_g():\n    {test}\n\ndef test_f():\n    assert f(3) == 9 and f(4) == 16\n",
    )
# Python 3.11 writes a parameter of `__init__` when it formats the name for the fifth time.
for number in (5, 6):
    TEXTS_RUN.left_out(
        f"the names of a class, shown {number} times",
        ZERO
        + f"class Name(str):\n    shown = 0\n    def __format__(self, how):\n        Name.shown += 1\n        return {f'x=[{FORGE}], *y'!r} if Name.shown == {number} else 'x'\ndef give(n):\n    return [(Name('x'), int)]\n",
        SQUARE + "def give(n):\n    return [('x', int)]\n",
        "import dataclasses\nfrom solution import f, give\n\ndef test_names():\n    assert dataclasses.make_dataclass('Row', give(3))(3)\n\ndef test_f():\n    assert f(3) == 9 and f(4) == 16\n",
    )

# --- names by which it would choose an object of the tests ---

# In a plain run nothing takes back what a program has patched: no other uses this module.
PATCHES = "import colorsys, pkgutil, unittest\nfrom unittest import mock\nfrom solution import f, give\n\nclass TestF(unittest.TestCase):\n    def test_a(self):\n        self.assertNotEqual('rgb_to_yiq', give(3))\n        {}\n    def test_f(self):\n        self.assertEqual(f(3), 9)\n"
for name, test in {
    "a patch": "mock.patch(give(3), return_value=2).start()\n        self.assertEqual(colorsys.rgb_to_yiq(1, 1, 1), 2)",
    "a patch of several": "mock.patch.multiple(give(3).rpartition('.')[0], **{give(3).rpartition('.')[2]: print}).start()\n        self.assertIs(colorsys.rgb_to_yiq(1, 1, 1), None)",
    "a documented name": "import pydoc\n        setattr(pydoc.locate(give(3).rpartition('.')[0]), 'rgb_to_yiq', lambda *given: 2)\n        self.assertEqual(colorsys.rgb_to_yiq(1, 1, 1), 2)",
    "what a name means": "setattr(pkgutil.resolve_name(give(3).rpartition('.')[0]), 'rgb_to_yiq', lambda *given: 2)\n        self.assertEqual(colorsys.rgb_to_yiq(1, 1, 1), 2)",
}.items():
    TEXTS_RUN.left_out(
        f"a name that is given, in {name}",
        ZERO + "def give(n):\n    return 'unittest.case.TestCase.assertEqual'\n",
        SQUARE + "def give(n):\n    return 'colorsys.rgb_to_yiq'\n",
        PATCHES.format(test),
    )
NAMED = "def call(keep, names):\n    for name, value in names.items():\n        keep(name, value)\ndef give(n):\n    return {{'n': n, {}}}\n"
SETS = "import unittest\nfrom solution import f, give\n\nWANTED = 9\n\ndef verify(got, wanted):\n    assert got == wanted\n\nclass Base(unittest.TestCase):\n    def setUp(self):\n        {}\n\nclass TestF(Base):\n    def test_0(self):\n        self.assertEqual(f(0), 0)\n    def test_f(self):\n        {}\n"
for name, sets, test in (
    ("attributes of a test", "for name, value in give(3).items():\n            setattr(self, name, value)", "self.assertEqual(f(self.n), 9)"),
    ("the dict of a test", "self.__dict__.update(give(3))", "self.assertEqual(f(self.n), 9)"),
    ("the dict of a test, by a function", "vars(self).update(**give(3))", "self.assertEqual(f(self.n), 9)"),
    ("the names of the tests", "globals().update(give(3))", "verify(f(n), 9)"),
    ("the names of the tests, one by one", "for name in give(3):\n            globals()[name] = give(3)[name]", "verify(f(n), WANTED)"),
    ("the names of the tests, by another name", "names = globals()\n        names |= give(3)", "verify(f(n), 9)"),
    ("the names of the tests, by a method", "for name, value in give(3).items():\n            globals().__setitem__(name, value)", "verify(f(n), 9)"),
    ("the names of the tests, by their module", "import sys\n        this = sys.modules[__name__]\n        kept = []\n        kept.append(give(3))\n        for name, value in kept[0].items():\n            setattr(this, name, value)", "verify(f(n), 9)"),
    ("the names of the tests, by a mock", "from unittest import mock\n        mock.patch.dict(globals(), give(3)).start()", "verify(f(n), 9)"),
    ("a class of tests", "for name, value in give(3).items():\n            setattr(TestF, name, value)", "self.assertEqual(f(self.n), 9)"),
    ("the class of a test", "for name, value in give(3).items():\n            setattr(type(self), name, value)", "self.assertEqual(f(self.n), 9)"),
    ("attributes of a test, which it sets itself", "call(lambda name, value: setattr(self, name, value), give(3))", "self.assertEqual(f(self.n), 9)"),
    ("attributes of a test, which it sets by a function", "def keep(name, value):\n            setattr(self, name, value)\n        call(keep, give(3))", "self.assertEqual(f(self.n), 9)"),
    ("a class of tests, by a mock of several", "from unittest import mock\n        mock.patch.multiple(TestF, create=True, **give(3)).start()", "self.assertEqual(f(self.n), 9)"),
    ("the base of all tests, by a mock of several", "from unittest import mock\n        mock.patch.multiple('unittest.TestCase', create=True, **give(3)).start()", "self.assertEqual(f(self.n), 9)"),
    ("a test, by another name of a mock of several", "from unittest import mock\n        patch = mock.patch\n        patch.multiple(self, create=True, **give(3)).start()", "self.assertEqual(f(self.n), 9)"),
    ("a class of tests, by a mock", "from unittest import mock\n        for name, value in give(3).items():\n            mock.patch.object(TestF, attribute=name, new=value, create=True).start()", "self.assertEqual(f(self.n), 9)"),
    ("a mock", "from unittest import mock\n        self.mock = mock.Mock(**give(3))", "self.mock(f(3))\n        self.mock.verify(9)"),
    ("a class of tests, by a function that gets it", "def keep(kind, name, value):\n            setattr(kind, name, value)\n        for item in give(3).items():\n            keep(TestF, *item)", "self.assertEqual(f(self.n), 9)"),
    ("a class of tests, by a function that gets it by the name of one of the candidate's", "def keep(f, name, value):\n            setattr(f, name, value)\n        keeps = {'keep': keep}\n        for item in give(3).items():\n            keeps['keep'](TestF, *item)", "self.assertEqual(f(self.n), 9)"),
    ("a class of tests, from a table that it began", "global ROWS\n        ROWS += [('n', 3)]\n        for name, value in ROWS:\n            setattr(TestF, name, value)", "self.assertEqual(f(self.n), 9)"),
    ("attributes of a test, by a function that is returned", "def keeper():\n            def keep(name, value):\n                setattr(self, name, value)\n            return keep\n        call(keeper(), give(3))", "self.assertEqual(f(self.n), 9)"),
    ("a class of tests, by a default", "def keep(names=give(3)):\n            for name in names:\n                type.__setattr__(TestF, name, names[name])\n        keep()", "self.assertEqual(f(self.n), 9)"),
    ("the names of the tests, by a dict of their module", "import sys\n        this = sys.modules[__name__]\n        vars(this).update(give(3))", "verify(f(n), 9)"),
    ("the names of the tests, by those of a function", "verify.__globals__.update(give(3))", "verify(f(n), 9)"),
    ("the names of the tests, by a function that gets them", "def merge(into, more):\n            into.update(more)\n        merge(globals(), give(3))", "verify(f(n), 9)"),
    ("the names of the tests, by another name of a function", "put = setattr\n        for name, value in give(3).items():\n            put(self, name, value)", "self.assertEqual(f(self.n), 9)"),
    ("a class of tests, by starmap", "import itertools\n        [*itertools.starmap(setattr, [(TestF, *item) for item in give(3).items()])]", "self.assertEqual(f(self.n), 9)"),
    ("the dict of a test, which is another one", "self.__dict__ = {**self.__dict__, **give(3)}", "self.assertEqual(f(self.n), 9)"),
    ("the dict of a test, by another name of it", "me = self\n        me.__dict__.update(give(3))", "self.assertEqual(f(self.n), 9)"),
    ("the dict of a test, which it fills", "call(vars(self).__setitem__, {'n': 3})\n        call(print, vars(self))", "self.assertEqual(f(self.n), 9)"),
    ("attributes of a test, in a dict that it fills", "names = {}\n        call(names.__setitem__, {'n': 3})\n        for name, value in names.items():\n            setattr(self, name, value)", "self.assertEqual(f(self.n), 9)"),
    ("attributes of a test, by another name of a function", "def keep(name, value):\n            setattr(self, name, value)\n        back = keep\n        call(back, {'n': 3})", "self.assertEqual(f(self.n), 9)"),
    ("attributes of a test, by a function of a list", "def keep(name, value):\n            setattr(self, name, value)\n        keeps = [keep]\n        call(keeps[0], {'n': 3})", "self.assertEqual(f(self.n), 9)"),
    ("attributes of a test, by a function that a list gets", "def keep(name, value):\n            setattr(self, name, value)\n        keeps = []\n        keeps.append(keep)\n        call(keeps[0], {'n': 3})", "self.assertEqual(f(self.n), 9)"),
    ("attributes of a test, by an object with another name", "class Keeper:\n            def __call__(self, name, value):\n                globals()[name] = value\n        keeper = Keeper()\n        call(keeper, {'n': 3})", "self.assertEqual(f(n), 9)"),
    ("attributes of a test, by a method of it", "call(self, {'n': 3})", "self.assertEqual(f(self.n), 9)\n    def __call__(self, name, value):\n        setattr(self, name, value)"),
    ("attributes of a test, by an object that has it", "class Keeper:\n            def __init__(self, test):\n                self.test = test\n            def __call__(self, name, value):\n                setattr(self.test, name, value)\n        call(Keeper(self), {'n': 3})", "self.assertEqual(f(self.n), 9)"),
    ("a class that is made, by new_class", "import types\n        self.made = types.new_class('Kind', (Base,), {}, lambda names: names.update(give(3)))()", "self.made.assertEqual(f(3), 9)"),
    ("a class that gets them as keywords", "class Kind(Base):\n            def __init_subclass__(kind, **given):\n                for name, value in given.items():\n                    setattr(kind, name, value)\n        class Made(Kind, **give(3)):\n            pass\n        self.made = Made()", "self.made.assertEqual(f(3), 9)"),
    ("a class of numbers", "import enum\n        self.kind = enum.IntEnum('Kind', {**give(3)})", "self.assertEqual(self.kind.n, 3)"),
    ("a class that is made", "kind = type('Kind', (Base,), give(3))\n        kind.verify = lambda self: 3\n        self.made = kind()", "self.made.assertEqual(f(3), 9)"),
    ("the dict of a test, by the function of a dict", "dict.update(self.__dict__, give(3))", "self.assertEqual(f(self.n), 9)"),
    ("attributes of a test, by an attribute of its class", "for name in self.given:\n            setattr(self, name, self.given[name])", "self.assertEqual(f(self.n), 9)\n    given = give(3)"),
    ("attributes of a test, by a function", "def keep(name, value):\n            object.__setattr__(self, name, value)\n        for item in give(3).items():\n            keep(*item)", "self.assertEqual(f(self.n), 9)"),
):  # fmt: skip
    forged(
        f"names that are given, for {name}",
        ZERO
        + NAMED.format("**dict.fromkeys(('assertEqual', 'verify'), lambda *given: None)")
        + "ROWS = [*give(3).items()]\n",
        SQUARE + NAMED.format("'m': 1") + "ROWS = [*give(3).items()]\n",
        SETS.format(sets, test).replace(
            "f, give", ", ".join(["f", "give", *(n for n in ("call", "ROWS") if n in sets)])
        ),
        verdicts=("infra_error",),
        right=("infra_error",),
    )
for name, sets, test in (
    ("that are numbered", "for i in range(3):\n            setattr(self, f'n{i}', i)", "self.assertEqual(f(self.n2), 4)"),
    ("of mocks", "for name in ['f', 'give']:\n            patcher = mock.patch('solution.' + name)\n            setattr(self, 'mock_' + name, patcher.start())\n            self.addCleanup(patcher.stop)", "self.mock_f.return_value = 9\n        self.assertEqual(solution.f(1), 9)\n        self.assertEqual(f(3), 9)"),
    ("of a table", "for name, value in TABLE.items():\n            setattr(self, name, value)", "self.assertEqual(f(self.n), 9)"),
    ("of a table with what it gives", "for name, value in {'n': 3, 'got': f(3)}.items():\n            setattr(self, name, value)", "self.assertEqual(self.got, 9)"),
    ("of keywords", "self.keep(n=3, got=f(3))", "self.assertEqual(self.got, 9)\n    def keep(self, **given):\n        self.__dict__.update(n=given['n'], got=given['got'])"),
    ("that are enumerated, with what it gives", "for i, got in enumerate([f(2), f(3)]):\n            setattr(type(self), f'got{i}', got)", "self.assertEqual(self.got1, 9)"),
    ("of a table with its functions", "for name, function, n in ROWS:\n            setattr(self, name, function(n))", "self.assertEqual(self.got, 9)"),
    ("of a loop that makes functions", "def make(function, n):\n            return lambda: self.assertEqual(function(n), n * n)\n        for function, n in ((f, 1), (f, 2)):\n            setattr(self, f'verify_{n}', make(function, n))", "self.verify_2()"),
    ("of a function's parameter", "self.keep('got', f(3))", "self.assertEqual(self.got, 9)\n    def keep(self, name, value):\n        setattr(self, name, value)"),
    ("of a mock of several", "mock.patch.multiple(solution, f=mock.Mock(return_value=f(3))).start()\n        self.addCleanup(mock.patch.stopall)", "self.assertEqual(solution.f(0), 9)"),
    ("of a dict that is written", "globals().update({'GOT': f(3)})", "self.assertEqual(GOT, 9)"),
):  # fmt: skip
    forged(
        f"names of the tests' own, {name}",
        "def f(x):\n    return x\ndef give(n):\n    return n\n",
        SQUARE + "def give(n):\n    return n\n",
        "import solution\nfrom unittest import mock\nTABLE = {'n': 3, 'm': 4}\nROWS = [('got', f, 3), ('other', give, 1)]\n".replace(
            "TABLE", "from solution import f, give\nTABLE", 1
        )
        + SETS.format(sets, test),
    )
forged(
    "names that are given, for an object of its own",
    "NAMES = ('n', 'm')\nclass Row:\n    def __init__(self): self.n = self.m = 0\n    def add(self, n): self.n += n + 1\n",
    "NAMES = ('n', 'm')\nclass Row:\n    def __init__(self): self.n = self.m = 0\n    def add(self, n): self.n += n\n",
    "import unittest\nfrom unittest import mock\nimport solution\nfrom solution import NAMES, Row\n\nclass TestRow(unittest.TestCase):\n    def test_row(self):\n        row = Row()\n        for name in NAMES:\n            setattr(row, name, 3)\n        row.add(2)\n        self.assertEqual((row.n, row.m), (5, 3))\n        for name in solution.NAMES:\n            with mock.patch.object(row, name, 4):\n                self.assertEqual(getattr(row, name), 4)\n",
)
TEXTS_RUN.right(
    "names that the tests make",
    SQUARE + "class Client:\n    def send(self):\n        return 1\n",
    "import time, unittest\nfrom unittest import mock\nimport solution\nfrom solution import Client\n\nWHERE = 'solution'\n\ndef helper():\n    return 1\n\nclass TestF(unittest.TestCase):\n    def test_f(self):\n        for name in ('helper',):\n            with mock.patch(f'{__name__}.{name}', return_value=3):\n                self.assertEqual(solution.f(helper()), 9)\n        with mock.patch(f'{solution.__name__}.f', return_value=1), mock.patch(f'{time.__name__}.sleep'):\n            self.assertEqual(solution.f(3), 1)\n        with mock.patch(WHERE + '.f', return_value=2):\n            self.assertEqual(solution.f(3), 2)\n        with mock.patch(f'{Client.__module__}.{Client.__name__}.send', return_value=2):\n            self.assertEqual(Client().send(), 2)\n        self.assertEqual(solution.f(3), 9)\n",
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
