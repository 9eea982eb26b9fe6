"""Runs tests as unittest and as pytest do, and finds those that skipped themselves."""

from __future__ import annotations

import ast
import contextlib
import functools
import importlib
import inspect
import io
import sys
import types
import unittest
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

from gatekeeper.sandbox.inside.state import leaves_state

__all__ = [
    "Skips",
    "TestsModule",
    "finish",
    "run_pytest",
    "run_unittest",
    "with_modules",
    "without_main",
]


def finish(function: Callable[..., Any], /, *arguments: Any, **keywords: Any) -> None:
    """Call a test, and run its result to the end, if that is a coroutine or a generator."""
    made = function(*arguments, **keywords)
    if made is None:
        return
    if inspect.iscoroutine(made):
        importlib.import_module("asyncio").run(made)
    elif inspect.isasyncgen(made):
        importlib.import_module("asyncio").run(_exhausted(made))
    elif inspect.isgenerator(made):
        for _ in made:
            pass


async def _exhausted(generator: Any) -> None:
    async for _ in generator:
        pass


class Skips:
    """Whether a test that skips itself may do so because of the candidate.

    It may if it has asked the candidate something before, or if something has that ran before the
    tests. Else it tells nothing: `if sys.version_info < (3, 12): self.skipTest(…)`.

    Parameters
    ----------
    asked
        How often the candidate was asked something so far.
    nodes
        Of the program.
    """

    def __init__(self, asked: Callable[[], int], nodes: Sequence[ast.AST]) -> None:
        self.asked, self._nodes = asked, nodes
        self._before = self._mark = asked()
        self.names: list[str] = []  # tests that did

    def begin(self) -> None:
        """A test begins, or has its fixtures."""
        self._before += self.asked() - self._mark
        self._mark = self.asked()

    def end(self) -> None:
        """A test has ended."""
        if not self._related:
            self.forget()

    @functools.cached_property
    def _related(self) -> bool:
        """Whether what a test has asked may be why a later one skips itself."""
        return leaves_state(self._nodes)

    @contextlib.contextmanager
    def group(self) -> Iterator[None]:
        """Around the tests of a class: what `setUpClass` has asked is no cause for others."""
        before = self._before
        yield
        if not self._related:
            self._before = before
            self.forget()

    def forget(self) -> None:
        """What was asked since a test began is no cause for another to skip itself."""
        self._mark = self.asked()

    @property
    def asking(self) -> bool:
        """Whether the candidate was asked anything since a test began."""
        return self.asked() > self._mark

    def note(self, name: str, *, alone: bool = False) -> None:
        """A test skips itself; `alone`: what ran before it is not the cause."""
        if self.asking or (self._before and not alone):
            self.names.append(name)

    def check(self, *, all_marked: bool = False) -> None:
        """Raises AssertionError if a test did so; `all_marked`: none ran, by marks."""
        if all_marked and self._before:
            raise AssertionError("all tests are skipped, after the candidate was asked")
        if self.names:
            raise AssertionError(f"{self.names[0]}: it asked the candidate, and skipped itself")


def run_unittest(kind: type[unittest.TestCase], skips: Skips) -> None:
    _finish_coroutines()

    class Result(unittest.TextTestResult):
        def startTest(self, test: Any) -> None:  # noqa: N802
            skips.begin()
            super().startTest(test)

        def addSkip(self, test: Any, reason: str) -> None:  # noqa: N802
            if not _is_skipped(test):
                skips.note(str(test))
            super().addSkip(test, reason)

        def stopTest(self, test: Any) -> None:  # noqa: N802
            skips.end()
            super().stopTest(test)

    suite = unittest.defaultTestLoader.loadTestsFromTestCase(kind)
    number = suite.countTestCases()  # `testsRun` of Python 3.12.1 lacks those that are skipped
    kept: Any = Result
    with skips.group():
        result = unittest.TextTestRunner(io.StringIO(), resultclass=kept).run(suite)
    for test, trace in (*result.errors, *result.failures):
        raise AssertionError(f"{test}: {trace.strip().splitlines()[-1]}")
    for test in result.unexpectedSuccesses:
        raise AssertionError(f"{test}: it was to fail, and did not")
    marked = sum(_is_skipped(test) for test, _ in result.skipped)
    skips.check(all_marked=0 < number == marked)


def _is_skipped(test: Any) -> bool:
    """Whether a test is marked to be skipped before it runs; not a class that skips itself."""
    method = getattr(test, getattr(test, "_testMethodName", ""), None)
    return _is_marked(method, type(test), ("skip",))


def _is_marked(
    method: Any, kind: Any, marks: Sequence[str] = ("skip", "expecting_failure")
) -> bool:
    """Whether a method, or its class, has one of these marks of unittest."""
    return any(
        getattr(item, f"__unittest_{mark}__", False) for item in (method, kind) for mark in marks
    )


def run_pytest(names: dict[str, Any], nodes: Sequence[ast.AST], skips: Skips) -> None:
    """Let pytest collect and run the objects of a program's global names; `nodes` are its nodes.

    Raises
    ------
    AssertionError
        A test failed.
    ModuleNotFoundError
        A test needs a fixture of a plugin that is not there.
    """
    pytest = importlib.import_module("pytest")
    _finish_coroutines()
    module = TestsModule(names)
    reports: list[Any] = []
    problems: list[Exception] = []
    # What is set up for several tests may be why a later one skips itself.
    shared = any(str(getattr(node, "name", "")).lower() in _SETUPS for node in nodes)
    texts = {node.value for node in nodes if isinstance(node, ast.Constant)}
    marks: set[int] = set()

    class Module(pytest.Module):  # type: ignore[misc, name-defined]
        def _getobj(self) -> types.ModuleType:
            return module

    class Plugin:
        def pytest_collection(self, session: Any) -> bool:
            root = Module.from_parent(session, path=Path("/tests.py"))
            items = list(session.genitems(root))
            for item in items:
                problems.extend(_problems(item, texts))
                marks.update(map(id, item.iter_markers()))
            session.items = [] if problems else items
            session.testscollected = len(session.items)
            skips.forget()  # pytest itself has looked at the candidate's objects
            return True

        def pytest_runtest_logstart(self) -> None:
            skips.begin()

        def pytest_runtest_call(self, item: Any) -> None:
            if not skips.asking:
                marks.update(map(id, item.iter_markers()))
            if shared:
                skips.begin()

        def pytest_pyfunc_call(self, pyfuncitem: Any) -> bool:
            needed = pyfuncitem._fixtureinfo.argnames
            finish(pyfuncitem.obj, **{name: pyfuncitem.funcargs[name] for name in needed})
            return True

        def pytest_runtest_makereport(self, item: Any, call: Any) -> None:
            if call.excinfo is None:
                return
            if isinstance(call.excinfo.value, (pytest.skip.Exception, pytest.xfail.Exception)):
                if not _is_marked(item.obj, item.cls):
                    skips.note(item.name, alone=call.when == "setup")  # maybe by a mark
            elif not marks.issuperset(map(id, item.iter_markers("xfail"))):
                skips.note(item.name)  # as `request.applymarker` makes it one that may fail

        def pytest_keyboard_interrupt(self) -> None:
            problems.append(AssertionError("pytest was interrupted"))  # also by its `exit`

        def pytest_runtest_logfinish(self) -> None:
            skips.end()

        def pytest_runtest_logreport(self, report: Any) -> None:
            reports.append(report)

        def pytest_collectreport(self, report: Any) -> None:
            if report.failed:
                reports.append(report)

    options = ["-s", "-c", "/dev/null", "--rootdir=/", "--assert=plain", "--noconftest"]
    # Two of these would make warnings of the errors that `Unseen` looks for.
    left_out = ("cacheprovider", "terminalreporter", "threadexception", "unraisableexception")
    options += [option for name in left_out for option in ("-p", f"no:{name}")]
    code = pytest.main(options, plugins=[Plugin()])
    for problem in problems:
        raise problem
    for report in reports:
        if report.failed:
            where = getattr(report, "nodeid", "").rpartition("::")[2]
            crash = getattr(report.longrepr, "reprcrash", None)
            why = getattr(crash, "message", str(report.longrepr)).strip().splitlines()[0]
            raise AssertionError(f"{where}: {why}")
    skips.check()
    if code not in (0, 5):  # 5: pytest found no test
        raise AssertionError(f"pytest was interrupted: {code!r}")
    if skips.asked() and not any(report.passed and report.when == "call" for report in reports):
        raise AssertionError("no test ran")


class TestsModule(types.ModuleType):
    """The module of the tests: its attributes are their own global names, not the candidate's.

    `dataclasses` and pytest read its `__dict__`, and a setup adds attributes.
    """

    def __init__(self, names: dict[str, Any]) -> None:
        super().__init__("tests")
        object.__setattr__(self, "_names", names)

    @property
    def __dict__(self) -> Any:  # type: ignore[override]
        return self._names

    def __getattr__(self, name: str) -> Any:
        if not dict.__contains__(self._names, name):
            raise AttributeError(name)
        return self._names[name]

    def __setattr__(self, name: str, value: Any) -> None:
        self._names[name] = value


_SETUPS = frozenset({"setupclass", "setup_class", "setupmodule", "setup_module"})


def _problems(item: Any, texts: Collection[Any]) -> Iterator[Exception]:
    """Why a test that pytest found cannot be run, or must not; `texts` has those of the program."""
    info = getattr(item, "_fixtureinfo", None)
    given = getattr(item, "callspec", None)
    known = {"request", *getattr(info, "name2fixturedefs", ()), *getattr(given, "params", ())}
    for name in getattr(info, "names_closure", ()):
        if name not in known:
            yield ModuleNotFoundError(f"there is no fixture {name!r}", name=name)
    for mark in item.iter_markers():
        conditions = (*mark.args, mark.kwargs.get("condition"))
        if mark.name in ("skipif", "xfail") and any(
            isinstance(text, str) and text not in texts for text in conditions
        ):  # which pytest would run
            yield AssertionError(f"{item.name}: {mark.name} of a text that the tests do not have")


def without_main(text: str) -> None:
    """Let `unittest.main()` in a program run and end nothing: its tests are found without it."""
    if "unittest" in text and "main(" in text:
        known: Any = unittest.main

        def main(*arguments: Any, exit: bool = True, **keywords: Any) -> Any:
            return None if exit else known(*arguments, exit=False, **keywords)

        unittest.main = main  # type: ignore[assignment]


def with_modules(text: str) -> None:
    """Let `make_dataclass` make classes of the module that calls it, as Python 3.12 does."""
    if "make_dataclass" in text and sys.version_info < (3, 12):
        dataclasses: Any = importlib.import_module("dataclasses")
        known = dataclasses.make_dataclass

        def make(*arguments: Any, **keywords: Any) -> Any:
            made = known(*arguments, **keywords)
            made.__module__ = sys._getframe(1).f_globals.get("__name__", made.__module__)
            return made

        dataclasses.make_dataclass = make


def _finish_coroutines() -> None:
    """Let every test method of unittest run as `finish` does.

    Not in a class of its own: `TestA.made` must find what `setUpClass` has put into `cls`.
    """
    base: Any = unittest.TestCase
    base._callTestMethod = lambda self, test: finish(test)
