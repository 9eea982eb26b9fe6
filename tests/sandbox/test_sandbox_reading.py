"""Static analysis of tests: whose a name is, which modules they need, which allow no verdict.

It does not depend on the candidate.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

import pytest

from gatekeeper.sandbox.reading import Reading, read_tests
from gatekeeper.sandbox.usage import dotted


def read(*tests: str, setup: str = "", entry: str | None = None) -> Reading:
    return read_tests(setup, tests, entry=entry, modules=frozenset({"solution"}))


@pytest.mark.parametrize(
    ("tests", "asked"),
    [
        (["assert sum(10, 15) == 25"], {"sum"}),  # no other can be meant
        (["assert sorted(f(3)) == [1]"], set()),
        (["assert abs(PI_EST - 3.14) < 1e-3"], set()),  # only the constant is a candidate's
        (["assert gcd(12, 18) == 6", "assert lcm(4, 6) == 12"], {"gcd", "lcm"}),
        (["assert count('aab') == {'a': 2}", "assert words('a') == ['a']"], {"count"}),
        (["assert isclose(f(2), 4.0)"], set()),  # it can only say yes or no
        (["assert Counter(f('a')) == Counter('a')"], set()),  # looks at what f gave
        (["assert reduce(add, [f(1), f(2)]) == 3"], set()),
        (["assert deepcopy(f([1])) == [1]"], set()),
        (["assert len(sum([1])) == 1 and max([1]) == 1"], set()),  # which? the task has to say
    ],
)
def test_a_common_name_is_the_candidates_only_if_no_other_is(
    tests: Sequence[str], asked: set[str]
) -> None:
    assert read(*tests).asked == asked


def test_the_entry_point_of_a_task_is_under_test() -> None:
    assert read("assert len(sum([1])) == 1", entry="sum").asked == {"sum"}
    reading = read("from text_tools import shout\nassert shout('a') == 'A'", entry="shout")
    assert "text_tools" in reading.modules
    assert "text_tools" not in reading.needs


def test_a_module_is_the_real_one_or_is_needed() -> None:
    reading = read("assert np.isclose(f(2), 4.0)", "assert math.isclose(f(2), 4.0)")
    assert dict(reading.real) == {"np": "numpy", "math": "math"}
    assert "numpy" in reading.needs
    reading = read("import numpy as np\nfrom solution import f\nassert np.all(f(2) == 4)")
    assert (reading.needs, reading.alone) == ({"numpy"}, False)
    assert read("from shapes import Circle\nassert Circle(1).area == 3").alone
    ready = "try:\n    import missing\nexcept ImportError:\n    missing = None\nassert f(1) == 1"
    assert read(ready).needs == set()
    assert read("def test_f(data):\n    assert f(data) == 1\n").needs == {"pytest"}
    patched = (
        "from unittest import mock\nwith mock.patch('requests.get'), mock.patch('solution.g'):\n"
    )
    assert read(f"{patched}    assert f() == 1\n").needs == {"requests", "unittest"}
    assert read("assert code(3) == 3").theirs == {"code"}  # a function, though a module's name


@pytest.mark.parametrize(
    ("test", "is_class"),
    [
        ("s = Stack()\ns.push(1)\nassert s.pop() == 1", True),
        ("assert Vector(1, 2) * 3 == Vector(3, 6)", True),
        ("assert abs(Vector(3, 4)) == 5", True),
        ("assert 3 in Bag([3])", True),
        ("assert Area(2) == 12", False),
        ("assert abs(Area(2) - 12.6) < 0.1", False),
        ("assert not Vector(0, 0)", True),  # the question for truth contains no expected value
        ("assert stack().pop() == 1", False),
    ],
)
def test_a_name_is_used_as_a_class(test: str, is_class: bool) -> None:
    assert bool(read(test).classes) is is_class


@pytest.mark.parametrize(
    "test",
    [
        "def run():\n    assert f(2) == 4\n",
        "f(2) == 4",
        "print(f(2))",
        "class Helper:\n    def test_f(self):\n        assert f(2) == 4\n",
        "try:\n    assert f(2) == 4\nexcept AssertionError:\n    pass\n",
        "import contextlib\nwith contextlib.suppress(Exception):\n    assert f(2) == 4\n",
        "assert True",
        "assert 1 + 1 == 2",
    ],
)
def test_tests_that_assert_nothing_about_a_candidate(test: str) -> None:
    assert read(test).void


@pytest.mark.parametrize(
    "test",
    [
        "assert f(2) == 4",
        "from solution import f\ndef test_f():\n    run(f)\ndef run(f):\n    assert f(2) == 4\n",
        "class TestF:\n    def setup_method(self):\n        self.n = 2\n    def test_f(self):\n"
        "        assert f(self.n) == 4\n",
        "import unittest\nclass Squares(unittest.TestCase):\n    def runTest(self):\n"
        "        self.assertEqual(f(2), 4)\n",
        "import functools\ndef check_one(n, m):\n    assert f(n) == m\n"
        "test_two = functools.partial(check_one, 2, 4)\n",
        "try:\n    f(-1)\nexcept ValueError:\n    pass\nelse:\n    assert False\n",
        "if f(2) != 4:\n    raise AssertionError('no')\n",
        "try:\n    assert f(2) == 4\nexcept AssertionError:\n    raise\n",
    ],
)
def test_tests_that_assert_something(test: str) -> None:
    assert not read(test).void
    assert not read(test).problem


def test_a_main_guard_runs_where_nothing_else_asserts() -> None:
    guarded = "def run():\n    assert f(2) == 4\nif __name__ == '__main__':\n    run()\n"
    assert read(guarded).main
    assert not read(f"assert f(1) == 1\n{guarded}").main


@pytest.mark.parametrize(
    ("test", "words"),
    [
        ("def test_f(tmp_path):\n    assert f(tmp_path) == 1\nimport pytest", "share files"),
        ("import os\nassert f() == 1 and os.path.exists('x')", "share files"),
        ("class Dog(Animal):\n    pass\nassert Dog().legs == 4", "extends Animal"),
        (
            "import solution as s\nclass Dog(s.Animal):\n    pass\nassert Dog().legs == 4",
            "extends s.Animal",
        ),
        ("m = Money(5)\nassert m.amount == 5 and m == 5", "compared with data"),
        (
            "import solution\nm = solution.Money(5)\nassert m.amount == 5 and m == 5",
            "an object of solution.Money is compared with data",
        ),
        (
            "from unittest import mock\nwith mock.patch('gc.collect'):\n    assert f() == 1",
            "gc.collect",
        ),
        ("import inspect\nassert 'def' in inspect.getsource(f)", "getsource"),
        ("assert eval(f('1 2')) == 3", "eval would run"),
        ("import pickle\nassert pickle.loads(f()) == 3", "pickle.loads"),
        ("import subprocess\nassert subprocess.run(f()) == 1", "subprocess.run"),
        ("from subprocess import Popen\nassert Popen(f()).wait() == 1", "Popen"),
        ("import polars as pl\nassert f().equals(pl.DataFrame())", "polars"),
        ("import sympy\nassert f('x**2') == 2 * sympy.Symbol('x')", "sympy"),
        ("import matplotlib.pyplot as plt\nf()\nassert plt.gca().get_title() == 'a'", "pyplot.gca"),
        ("from a import Base\nassert issubclass(Shape, Base) and Shape(1).x == 1", "Base"),
        ("from a import Base\nassert type(f()) is Base", "isinstance finds"),
        (
            "import a, unittest\nclass TestF(unittest.TestCase):\n    def test_f(self):\n"
            "        self.assertEqual(type(f()), a.Base)",
            "isinstance finds",
        ),
        ("@f\nclass TestF:\n    def test_it(self):\n        assert g() == 1\n", "decorates TestF"),
        ("assert [*map(eval, f())] == [3]", "eval would run"),
        ("run = eval\nassert run(f()) == 3", "eval would run"),
        ("import builtins as b\nassert b.eval(f()) == 3", "eval would run"),
        ("assert f() == eval('exec(f())')", "exec would run"),
        ("import os\nassert getattr(os, f())('x') == 0", "getattr would run"),
        ("from os import system as run\nassert run(f()) == 0", "system would run"),
        ("import pickle as p\nassert p.loads(f()) == 3", "pickle.loads"),
        ("from pickle import loads\nassert loads(f()) == 3", "pickle.loads"),
        ("from pickle import *\nassert loads(f()) == 3", "pickle.* would run"),
        ("import pickle\nassert pickle.loads(fs()) == 3", "pickle.loads"),
        ("import pickle\nassert pickle.Unpickler(f()).load() == 3", "pickle.Unpickler"),
        ("import pickle\nassert [*map(pickle.loads, f())] == [3]", "loads would run"),
        ("import doctest\nassert doctest.DocTestFinder().find(f)", "DocTestFinder"),
        ("from inspect import getsource as text\nassert text(f)", "getsource"),
        ("from os.path import exists\nassert exists(f())", "share files"),
        ("import unittest.mock as m\nwith m.patch('re.match'):\n    assert f() == 1", "re.match"),
        (
            "import re\nfrom unittest.mock import patch\nwith patch.object(re, 'match'):\n"
            "    assert f() == 1",
            "re.match would have to change",
        ),
        ("def test_f(m):\n    m.setattr('re.match', str)\n    assert f() == 1", "re.match"),
        ("import sys\nold = sys.stdout\nf()\nassert sys.stdout is old", "sys.stdout"),
        ("import sys\nbefore = list(sys.path)\nf()\nassert sys.path == before", "sys.path"),
        ("import sys\nf()\nassert 'sqlite3' not in sys.modules", "sys.modules"),
        ("import logging\nf()\nassert logging.root.level == 10", "logging.root.level"),
        (
            "import io, logging\nout = io.StringIO()\nf(out)\nlogging.getLogger('a').info('x')\n"
            "assert out.getvalue() == 'x'",
            "handlers that the candidate adds",
        ),
        ("import solution\nassert issubclass(solution.Row, dict)", "such bases"),
        ("from freezegun import freeze_time\nassert f() == 1", "freezegun replaces parts"),
        ("from solution import typed\nwith typed('a'):\n    assert input() == 'a'", "input"),
        (
            "import random, solution\n"
            "with solution.seeded(3):\n    n = random.random()\nassert n < 1",
            "random.random",
        ),
        (
            "import logging\nfrom solution import logs\nlog = logging.getLogger('a')\n"
            "with logs('a') as out:\n    log.info('x')\nassert out == ['x']",
            "log.info",
        ),
        (
            "import time\nfrom solution import frozen\n"
            "with frozen(5):\n    assert time.time() == 5",
            "time.time",
        ),
        ("import pytest\ndef test_f(requests_mock):\n    assert f() == 1", "requests_mock"),
        (
            "from solution import Cache\ncache, row = Cache(), None\nclass Row: pass\nrow = Row()\n"
            "cache.put(row)\ndel row\nassert cache.size == 0",
            "del row",
        ),
        (
            "from solution import Node\ntop = Node()\nn = Node(top)\ndel top\nassert n.top is None",
            "del",
        ),
        ("import solution\nassert solution.__doc__ and solution.f() == 1", "__doc__ is not shown"),
        ("import queue\nfrom solution import Jobs\nassert issubclass(Jobs, queue.Queue)", "bases"),
        ("import os\nsetattr(os, 'getcwd', str)\nassert f() == 1", "os.getcwd"),
        (
            "from unittest.mock import patch\nwith patch.multiple('re', match=str):\n"
            "    assert f() == 1",
            "re.match would have to change",
        ),
        ("import sys\nsys.modules['a'] = 1\nassert f() == 1", "sys.modules would have"),
        ("import sys\nsys.modules.update(a=1)\nassert f() == 1", "sys.modules would have"),
        (
            "from unittest.mock import patch\nwith patch.dict('sys.modules', {'a': 1}):\n"
            "    assert f() == 1",
            "sys.modules would have",
        ),
        ("import doctest\nassert doctest.DocTestParser().get_examples(f())", "get_examples"),
        (
            "from jinja2 import DictLoader, Environment\na = Environment(loader=DictLoader(f()))\n"
            "assert a.get_template('a').render() == 'b'",
            "DictLoader would run",
        ),
        ("import os\nbefore = os.getcwd()\nf()\nassert os.getcwd() == before", "os.getcwd"),
        ("globals().update(f())\nassert g == 1", "any name"),
        ("for name in f():\n    globals()[name] = 1\nassert g == 1", "any name"),
        ("map(globals().__setitem__, f(), f())\nassert g == 1", "any name"),
        ("import os\nf()\nassert os.environ[f.name] == 'high'", "os.environ"),
        ("import os\nf()\nassert os.getenv(f'{f.name}_A') == 'high'", "os.getenv"),
        ("from os import environ\nf()\nassert dict(environ) == {}", "environ"),
        ("import os\nkept = dict(os.environ)\nf()\nassert kept == {'A': 1}", "os.environ"),
        ("import logging\nf()\nassert logging.getLogger('a').level == 10", "level of a logger"),
        (
            "import logging, unittest\nclass TestF(unittest.TestCase):\n    def test_f(self):\n"
            "        f()\n        self.log = logging.getLogger('a')\n"
            "        self.assertEqual(len(self.log.handlers), 1)",
            "handlers of a logger",
        ),
        ("assert int(Money(2) * 3) == 6", "an object of Money"),
        ("money = Money(2)\nassert money.amount and int(1 + money) == 3", "an object of Money"),
        ("money = Money(2)\nmore = 2 * money + 1\nassert float(more) == 5.0", "an object of Money"),
        ("assert Modulo(5) + 4 == 2", "an object of Modulo"),
        ("import solution\nassert 'x' in vars(solution.Shape)", "solution.Shape is not shown"),
        ("assert Shape.__dict__['x'] == 1 and Shape(1).x == 1", "__dict__ is not shown"),
        ("assert type(Shape) is Meta", "Shape is not shown"),
        ("import enum\nassert isinstance(Level(1), (int, enum.IntEnum))", "IntEnum is not shown"),
        ("from inspect import getattr_static\nassert getattr_static(Shape, 'x') == 1", "static"),
        (
            "import unittest\nclass TestF(unittest.TestCase):\n    def test_f(self):\n"
            "        self.assertEqual(Modulo(5) * 4, 6)",
            "an object of Modulo",
        ),
        ("import threading\nf()\nassert threading.active_count() == 1", "active_count"),
        ("import os, signal\nos.kill(os.getpid(), signal.SIGUSR1)\nassert f() == 1", "os.kill"),
        ("import builtins\np = builtins.print\nf()\nassert builtins.print is p", "builtins.print"),
        ("import json\nn = id(json.dumps)\nf()\nassert n == id(json.dumps)", "json.dumps"),
        ("from sys import modules\nn = len(modules)\nf()\nassert len(modules) == n", "sys.modules"),
        ("import sys\na = set(sys.modules)\nf()\nb = set(sys.modules) - a\nassert not b", "sys"),
        (
            "from locale import localeconv\na = localeconv()\nf()\nassert a == localeconv()",
            "localeconv",
        ),
        ("import decimal\nf()\nassert decimal.getcontext().prec == 28", "getcontext"),
        ("from decimal import *\nwith localcontext() as c:\n    f()\n    assert c.flags", "flags"),
    ],
)
def test_tests_that_need_one_process(test: str, words: str) -> None:
    assert words in read(test).problem


@pytest.mark.parametrize(
    "test",
    [
        "from unittest import mock\nwith mock.patch('builtins.input', return_value='3'):\n"
        "    assert f() == 3",
        "from unittest import mock\nimport solution\n"
        "with mock.patch('solution.fetch', return_value=3):\n    assert solution.f() == 3",
        "from unittest import mock\nimport solution as s\nwith mock.patch.multiple(s, g=len):\n"
        "    assert s.f() == 3",
        "from django.conf import settings\nfrom solution import client\n"
        "assert client.patch('/a.json') == client.patch(settings.URL, 1)",
        "m = Money(5)\nassert m.amount == 5 and m != 5 and not m == 6",
        "assert '%s' % Money(2) == '2' and int(Money(2)) == 2",
        "assert abs(Area(2) - 12.6) < 0.1 and Area(1) - 3.14 < 0.01",
        "import logging\nlogging.getLogger('a').setLevel(10)\nassert f() == logging.getLogger('a')",
        "assert vars(Shape(1)) == {'x': 1} and type(Shape(1)) is Shape and Shape.__doc__",
        "from solution import Flag\nassert isinstance(Flag(3), Flag) and Flag(3).x == 3",
        "log = logger()\nassert log.level == 10 and len(log.handlers) == 1",
        "s = Stack()\ns.push(1)\nassert s == [1]",  # it may extend `list`
        "data = [3]\ndata.append(f(1))\nassert data == [3, 1]",
        "import pickle\nassert pickle.loads(pickle.dumps(f(3))) == [0, 1, 4]",
        "from pickle import dumps, loads\nassert loads(dumps(f(3))) == [0, 1, 4]",
        "names = {}\nexec('x = 3', names)\nassert f(names['x']) == 9",
        "from re import compile\nassert compile(f()).match('a')",
        "import os, sys\nsys.path.insert(0, os.getcwd())\nassert f() == 1",
        "globals().update({'g': 1}, h=2)\nglobals()['i'] = f\nassert f() == 1",
        "class A:\n    def __init__(self, **m):\n        vars(self).update(m)\nassert f() == 1",
        "def a(n):\n    return lambda self: self.assertEqual(f(n), n)\nimport unittest\n"
        "TestF = type('TestF', (unittest.TestCase,), {f'test_{n}': a(n) for n in (1, 2)})",
        "import solution, unittest\nclass TestF(unittest.TestCase):\n    def test_f(self):\n"
        "        self.addCleanup(setattr, solution, 'n', solution.n)\n"
        "        self.assertEqual(f(1), 1)",
        "ROWS = {'a': 1}\ndef test(name):\n    assert f(ROWS[name]) == 1\n"
        "for name in ROWS:\n    globals()[f'test_{name}'] = test(name)\nassert f() == 1",
        "class A:\n    pass\na = A()\nvars(a)['n'] = f(1)\na.__dict__.update(m=f(2))\n"
        "assert a.n == 1",
        "import os\nassert 'LEVEL' not in os.environ\nf()\nassert os.environ['LEVEL'] == 'high'",
        "import os\nkept = dict(os.environ)\nassert f() == os.environ.get('LEVEL', 'low')",
        "import os\nos.environ['LEVEL'] = 'high'\nif os.getenv('CI') != 'y':\n    assert f() == 1",
        "import sys\nsys.modules.pop('solution', None)\nassert f() == 1",
        "import importlib, solution\nimportlib.reload(solution)\nassert f() == 1",
        "import sys\nsys.argv[1:] = ['a']\nsys.argv = ['f', 'b']\nassert f() == 1",
        "class Example:\n    def setattr(self, name):\n        return f(name)\n"
        "assert Example().setattr('a') == 1",
        "def test_f(m):\n    m.setattr('solution.g', str)\n    assert f() == 1",
        "from unittest import mock\nwith mock.patch('os.getcwd'), mock.patch('sys.exit'):\n"
        "    assert f() == 1",
        "import os, requests\ndef test_f(m):\n    m.setattr(os.path, 'exists', str)\n"
        "    m.setattr(requests.Session, 'get', str)\n    assert f() == 1",
        "import subprocess\nfrom unittest import mock\nwith mock.patch.object(subprocess, 'run'):\n"
        "    assert f() == 1",
        "import pandas as pd\nassert type(f()) is pd.DataFrame and f().equals(pd.DataFrame())",
        "import matplotlib.pyplot as plt\nassert isinstance(f(), plt.Axes)\nplt.close('all')",
        "import time\nn = time.time()\nf()\nassert time.time() - n < 1 and time.time() >= n",
        "import math, os\na = os.path.join('a', 'b')\nassert f(a) == os.path.join('a', 'b')\n"
        "b = math.pi\nassert f(b) == math.pi",
        "import io\na, b = io.StringIO(), io.StringIO()\nf(a, b)\n"
        "assert a.getvalue() == b.getvalue()",
        "from unittest import mock\nm = mock.Mock()\nf(m.a)\nassert m.mock_calls == [mock.call()]",
        "import sys\nm = sys.modules.get('json')\nassert m is None or f(m) == 1",
        "from decimal import localcontext\nwith localcontext() as c:\n    c.prec = 5\n"
        "    assert f() == 1",
        "import enum\nclass E(enum.Enum):\n    A = 1\nassert type(f()) is E and f() is not E.A",
        "class Mine(BaseError):\n    pass\ntry:\n    f(Mine)\nexcept Mine:\n    pass\n"
        "else:\n    assert False",
        "import sys\nfrom solution import mute\nold = sys.stdout\n"
        "with mute():\n    print(3)\nassert sys.stdout is old",
        "import sys\nfrom solution import f\nif 'a' in sys.modules:\n    del sys.path[0]\n"
        "assert f() == 1",
        "import io, logging\nout = io.StringIO()\nlog = logging.getLogger('a')\n"
        "log.addHandler(logging.StreamHandler(out))\nf(log)\nlog.info('x')\nassert out.getvalue()",
        "from abc import ABC\nimport solution\nassert issubclass(solution.Shape, (ABC, Exception))",
        "import solution\nassert issubclass(solution.BadError, ValueError)",
        "import solution\nassert issubclass(solution.Name, str)",
        "import sys\nfrom solution import f\nassert f() == sys.modules[__name__].__name__",
        "import weakref\nfrom solution import f\nclass Row: pass\nrow = Row()\n"
        "seen = weakref.ref(row)\ndel row\nassert f(3) == 9 and seen() is None",
        "import solution\nassert solution.f.__doc__ and solution.__version__ == '1'",
        "import time\nfrom solution import timer\n"
        "with timer() as t:\n    time.sleep(0.1)\nassert t.seconds > time.time() - time.time()",
    ],
)
def test_similar_tests_that_can_be_judged(test: str) -> None:
    assert not read(test).problem


@pytest.mark.parametrize(
    "text", ["a", "a.b", "os.path.exists", "(a + b).c", "f().g", "a[0].b", "1"]
)
def test_a_dotted_name_is_written_as_python_writes_it(text: str) -> None:
    assert dotted(ast.parse(text, mode="eval").body) == text
