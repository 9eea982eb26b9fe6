# ruff: noqa: E501  (programs in tables)
"""The judge's path: verdicts on honest candidates, and on those that answer for themselves."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest
from sandboxes import open_sandbox

from gatekeeper.sandbox.inside import warmup
from gatekeeper.sandbox.reading import read_tests
from gatekeeper.types import Generation, Outcome

Verify = Callable[..., Outcome]

LOCAL = pytest.mark.parametrize("backend", ["namespaces"], indirect=True, scope="session")

RIGHT = "def f(x): return x * x\n"
# Wrong candidates that try to pass; most would deceive tests in the same process.
FORGERIES: dict[str, str] = {
    "wrong": "def f(x): return x + x",
    "equals all": "class A:\n    __eq__ = lambda s, o: True\n    __hash__ = None\ndef f(x): return A()",
    "int that equals all": (
        "class I(int):\n    __eq__ = lambda s, o: True\n    __hash__ = int.__hash__\n"
        "def f(x): return I(0)"
    ),
    "is near all": (
        "class A:\n    __sub__ = __rsub__ = __abs__ = __round__ = lambda *a: 0\n"
        "    __lt__ = __le__ = __gt__ = __ge__ = lambda s, o: True\ndef f(x): return A()"
    ),
    "near by an object of its own": (
        "class B:\n    __lt__ = __le__ = __bool__ = __abs__ = lambda s, *o: s\n"
        "class A:\n    __sub__ = __rsub__ = lambda s, o: B()\ndef f(x): return A()"
    ),
    "class for a function": (
        "class f:\n    def __init__(s, x): pass\n    __eq__ = __lt__ = lambda s, o: True\n"
        "    __sub__ = __rsub__ = lambda s, o: 0\n"
    ),
    "skips": "import unittest\ndef f(x): raise unittest.SkipTest('today')",
    "stops": "import unittest.case\ndef f(x): raise unittest.case._ShouldStop",
    "skips by a class of that name": (
        "class SkipTest(Exception): pass\nSkipTest.__module__ = 'unittest.case'\n"
        "def f(x): raise SkipTest"
    ),
    "exits": "def f(x): raise SystemExit(0)",
    "ends": "import os\ndef f(x): os._exit(0)",
    "interrupts": "def f(x): raise KeyboardInterrupt",
    "generator's end": "def f(x): raise GeneratorExit",
    "patches": (
        "import builtins, unittest, operator\nunittest.TestCase.assertEqual = lambda *a: None\n"
        "builtins.AssertionError = Warning\noperator.eq = lambda a, b: True\ndef f(x): return 0"
    ),
    "takes the tests' names": (
        "def test_f(): pass\ndef check(c): pass\nclass TestF: pass\nassert_ = lambda *a: None\n"
        "def len(x): return 4\ndef abs(x): return 0\ndef isinstance(*a): return True\n"
        "def all(x): return True\ndef f(x): return 0"
    ),
}
SHAPES: dict[str, dict[str, str]] = {
    "check": {
        "test": "def check(candidate):\n    for n in (2, 3):\n        assert candidate(n) == n * n\n",
        "entry_point": "f",
    },
    "near": {
        "test": "def check(candidate):\n    for n in (2, 3):\n"
        "        assert abs(candidate(n) - n * n) < 1e-6\n",
        "entry_point": "f",
    },
    "pytest": {
        "test": "from solution import f\nimport math\n\ndef test_f():\n    got = f(3)\n"
        "    assert got == 9 and 9 == got and got in [9] and not got != 9\n"
        "    assert abs(got - 9) < 1e-6 and got <= 9 and got >= 9\n"
    },
    "unittest": {
        "test": "import unittest\nfrom solution import f\n\nclass Cases(unittest.TestCase):\n"
        "    def setUp(self):\n        self.nine = 9\n\n"
        "    def test_equal(self):\n        self.assertEqual(f(3), self.nine)\n\n"
        "    def test_near(self):\n        self.assertAlmostEqual(f(3), 9)\n"
    },
    "class": {"test": "class TestF:\n    def test_it(self):\n        assert f(3) == 9\n"},
    "helper": {"test": "def same(a, b):\n    return a == b\n\nassert same(f(3), 9)\n"},
}


@pytest.mark.parametrize("shape", SHAPES)
def test_forged_verdicts_do_not_pass(verify: Verify, shape: str) -> None:
    assert verify(RIGHT, **SHAPES[shape]).verdict == "passed"
    for name, code in FORGERIES.items():
        outcome = verify(code, **SHAPES[shape])
        assert outcome.verdict == "failed", (name, outcome)
        assert outcome.meta["evaluation"] == "judge"
    assert verify(RIGHT, **SHAPES[shape]).verdict == "passed"


@LOCAL
@pytest.mark.parametrize(
    ("code", "test"),
    [
        (  # swallows the test's failure
            "class T:\n    value = 4\n    __enter__ = lambda s: s\n    __exit__ = lambda *a: True\n",
            "with T() as t:\n    assert t.value == 3\n",
        ),
        (
            "class T:\n    value = 4\n    __enter__ = lambda s: s\n    __exit__ = lambda *a: True\n"
            "    def __getattr__(s, n): raise ValueError\n",
            "with T() as t:\n    assert t.other == 3\n",
        ),
        (  # a function of that name is asked for, not a class with operators
            "class F:\n    def __init__(s, x): pass\n    __sub__ = lambda s, o: 0\n",
            "def check(candidate):\n    assert [abs(candidate(n) - n) < 1 for n in (3,)] == [True]\n",
        ),
        (  # may compare with its like, but not with what is expected
            "class A:\n    __eq__ = __lt__ = lambda s, o: True\ndef f(): return A()\n",
            "assert f() == f() and f() < f()\nassert f() == 3\n",
        ),
    ],
)
def test_objects_that_answer_for_themselves(verify: Verify, code: str, test: str) -> None:
    outcome = verify(code, test, entry_point="F")
    assert (outcome.verdict, outcome.meta["evaluation"]) == ("failed", "judge"), outcome


@LOCAL
def test_details_say_which_test_and_what(verify: Verify) -> None:
    test = "from solution import f\n\ndef test_one():\n    assert f(2) == 4\n\ndef test_two():\n    x = 3\n    assert f(x) == 9\n"
    assert verify("def f(x): return 4", test).detail == (
        "in test 1, test_two (assert f(x) == 9): AssertionError"
    )
    assert "test_one (assert f(2) == 4): ZeroDivisionError" in verify("def f(x): 1/0", test).detail
    assert "in the code: SyntaxError" in verify("def f(x) 1", test).detail
    assert "f" in verify("def g(x): pass", test).detail
    assert verify("import os\ndef f(x): os._exit(3)", test).detail.endswith("with exit code 3")


@LOCAL
def test_the_tests_of_classes_and_tables_run(verify: Verify) -> None:
    cases = (
        "import unittest\n\nclass Cases(unittest.TestCase):\n"
        "    def test_a(self):\n        for n in range(3):\n            with self.subTest(n=n):\n"
        "                self.assertEqual(f(n), n * n)\n"
        "    def test_b(self):\n        with self.assertRaises(ValueError):\n            f(-1)\n"
    )
    code = "def f(x):\n    if x < 0: raise ValueError\n    return x * x\n"
    assert verify(code, cases).verdict == "passed"
    assert verify(code.replace("x * x", "x + x"), cases).verdict == "failed"
    assert verify(RIGHT, cases).verdict == "failed"
    setup = (  # pytest's marks as pytest makes them, which the image may not have
        "class mark:\n    def __init__(self, fields, rows):\n"
        "        self.name, self.args = 'parametrize', (fields, rows)\n"
        "    def __call__(self, f):\n        f.pytestmark = [*getattr(f, 'pytestmark', []), self]\n"
        "        return f\n"
    )
    table = "@mark('x, y', [(2, 4), (3, 9)])\n@mark('z', [0, 1])\ndef test_f(x, y, z):\n    assert f(x) + z == y + z\n"
    assert verify(RIGHT, table, test_setup_code=setup).verdict == "passed"
    outcome = verify("def f(x): return 4", table, test_setup_code=setup)
    assert (outcome.verdict, "test_f[" in outcome.detail) == ("failed", True), outcome


@LOCAL
def test_a_missing_package_is_no_label(verify: Verify) -> None:
    test = "import no_such_module\nassert f(2) == 4\n"
    for code in (RIGHT, "def f(x): return 0"):
        outcome = verify(code, test)
        assert (outcome.verdict, outcome.error) == ("infra_error", None), outcome
        assert "the tests need no_such_module" in outcome.detail
    ready = (
        "try:\n    import no_such_module\nexcept ImportError:\n    pass\nassert f(2) == 4\nx = 1\n"
    )
    assert verify(RIGHT, ready).verdict == "passed"


def test_tests_that_do_not_compile_are_no_label(verify: Verify) -> None:
    outcome = verify(RIGHT, "assert f(2) == 4\nx = 1\nreturn\n")
    assert (outcome.verdict, outcome.error) == ("infra_error", None), outcome
    assert "'return' outside function" in outcome.detail


@pytest.mark.parametrize(
    "body",
    [
        "error = ThreadPoolExecutor(2).submit(f, -1).exception()\n"
        "assert isinstance(error, ValueError)",
        "found = []\n"
        "for done in as_completed([pool.submit(f, n) for n in (-1, 2)]):\n"
        "    try:\n        found.append(done.result())\n    except ValueError:\n        pass\n"
        "assert found == [4]",
        "async def run(n):\n    return f(n)\n"
        "async def main():\n    return await asyncio.gather(run(-1), run(3), return_exceptions=True)\n"
        "error, value = asyncio.run(main())\nassert isinstance(error, ValueError) and value == 9",
        "async def main():\n"
        "    try:\n        await asyncio.to_thread(f, -3)\n    except ValueError:\n        return 1\n"
        "assert asyncio.run(main()) == 1",
        "thread = threading.Thread(target=[].pop)\nthread.start()\nthread.join()\nassert f(3) == 9",
        "thread = threading.Thread(target=time.sleep, args=(60,), daemon=True)\n"
        "thread.start()\nassert f(3) == 9",
    ],
    ids=["exception", "as-completed", "gather", "to-thread", "own-error", "daemon"],
)
def test_errors_that_the_tests_caught_are_no_failure(verify: Verify, body: str) -> None:
    code = "def f(x):\n    if x < 0:\n        raise ValueError('negative')\n    return x * x\n"
    start = "import asyncio, threading, time\nfrom concurrent.futures import *\n"
    program = f"{start}pool = ThreadPoolExecutor(2)\n{body}\n"
    assert verify(code, program).verdict == "passed"


def test_the_warm_up_judges_and_leaves_nothing_behind() -> None:
    said = read_tests("", (warmup.TEST,), entry=None, modules=frozenset({"solution"})).for_judge(
        None
    )
    assert said == warmup.READING
    path, hook, modules = [*sys.meta_path], sys.unraisablehook, {*sys.modules}
    try:
        assert warmup.warm_up()
        assert sys.unraisablehook is sys.__unraisablehook__
    finally:
        sys.unraisablehook = hook
    assert sys.meta_path == path
    assert "candidate" not in {*sys.modules} - modules


@pytest.mark.parametrize("in_process", [False, True])
def test_a_function_under_test_may_be_called_check(
    generation: Callable[..., Generation], in_process: bool
) -> None:
    task = {
        "test": "def check(candidate):\n    for n in (2, 3):\n        assert candidate(n) == n * n\n",
        "entry_point": "check",
    }
    codes = {
        "def check(n):\n    return n * n\n": "passed",
        "def check(n):\n    return n\n": "failed",
        "def other(n):\n    return n * n\n": "failed",
    }
    with open_sandbox("namespaces", timeout=10, workers=1, in_process=in_process) as sandbox:
        found = [sandbox.verify(generation(code), task) for code in codes]
    assert [outcome.verdict for outcome in found] == list(codes.values()), found
    assert "name 'check' is not defined" in found[-1].detail
