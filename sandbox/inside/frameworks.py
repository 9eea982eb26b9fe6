"""Runs tests as unittest and as pytest do, and finds those that skipped themselves."""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import io
import types
import unittest
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from gatekeeper.sandbox.inside.state import leaves_state

__all__ = ["Skips", "finish", "run_pytest", "run_unittest"]


def finish(function: Callable[..., Any], *arguments: Any, **keywords: Any) -> None:
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
        self._asked, self._nodes = asked, nodes
        self._before = self._mark = asked()
        self.names: list[str] = []  # tests that did

    def begin(self) -> None:
        """A test begins, or has its fixtures."""
        self._before += self._asked() - self._mark
        self._mark = self._asked()

    def end(self) -> None:
        """A test has ended."""
        if not self._related:
            self.forget()

    @functools.cached_property
    def _related(self) -> bool:
        """Whether what a test has asked may be why a later one skips itself."""
        return leaves_state(self._nodes)

    def forget(self) -> None:
        """What was asked since a test began is no cause for another to skip itself."""
        self._mark = self._asked()

    def note(self, name: str, *, alone: bool = False) -> None:
        """A test skips itself; `alone`: what ran before it is not the cause."""
        if self._asked() > self._mark or (self._before and not alone):
            self.names.append(name)

    def check(self, *, all_marked: bool = False) -> None:
        """Raises AssertionError if a test did so; `all_marked`: none ran, by marks."""
        if all_marked and self._before:
            raise AssertionError("all tests are skipped, after the candidate was asked")
        if self.names:
            raise AssertionError(f"{self.names[0]}: it asked the candidate, and skipped itself")


def run_unittest(kind: type[unittest.TestCase], skips: Skips) -> None:
    # Not in a class of its own: `TestA.made` must find what `setUpClass` has put into `cls`.
    base: Any = unittest.TestCase
    base._callTestMethod = lambda self, test: finish(test)

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
    return any(getattr(item, "__unittest_skip__", False) for item in (type(test), method))


def run_pytest(names: dict[str, Any], skips: Skips) -> None:
    """Let pytest collect and run the objects of these names."""
    pytest = importlib.import_module("pytest")
    module = types.ModuleType("tests")
    module.__dict__.update(names)
    reports: list[Any] = []

    class Module(pytest.Module):  # type: ignore[misc, name-defined]
        def _getobj(self) -> types.ModuleType:
            return module

    class Plugin:
        def pytest_collection(self, session: Any) -> bool:
            root = Module.from_parent(session, path=Path("/tests.py"))
            session.items = list(session.genitems(root))
            session.testscollected = len(session.items)
            skips.forget()  # pytest itself has looked at the candidate's objects
            return True

        def pytest_runtest_logstart(self) -> None:
            skips.begin()

        def pytest_runtest_call(self) -> None:
            skips.begin()

        def pytest_runtest_makereport(self, item: Any, call: Any) -> None:
            error = call.excinfo.value if call.excinfo is not None else None
            if isinstance(error, (pytest.skip.Exception, pytest.xfail.Exception)):
                skips.note(item.name, alone=call.when == "setup")  # maybe by a mark

        def pytest_runtest_logfinish(self) -> None:
            skips.end()

        def pytest_runtest_logreport(self, report: Any) -> None:
            reports.append(report)

        def pytest_collectreport(self, report: Any) -> None:
            if report.failed:
                reports.append(report)

    options = ["-s", "-c", "/dev/null", "--rootdir=/", "--assert=plain", "--noconftest"]
    options += ["-p", "no:cacheprovider", "-p", "no:terminal"]
    code = pytest.main(options, plugins=[Plugin()])
    for report in reports:
        if report.failed:
            where = getattr(report, "nodeid", "").rpartition("::")[2]
            crash = getattr(report.longrepr, "reprcrash", None)
            why = getattr(crash, "message", str(report.longrepr)).strip().splitlines()[0]
            raise AssertionError(f"{where}: {why}")
    skips.check()
    if code not in (0, 5):  # 5: pytest found no test
        raise AssertionError(f"pytest was interrupted: {code!r}")
    if not any(report.passed and report.when == "call" for report in reports):
        raise AssertionError("no test ran")
