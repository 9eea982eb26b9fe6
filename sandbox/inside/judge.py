"""The process of the tests: runs them against a candidate that lives in another process.

The candidate's functions and classes appear in the tests' namespace as handles. Answers, frames
on the socket to the host:

    P  the next test passed
    E  a test failed, or the candidate's code did; text
    I  the tests cannot be run here at all, whatever the candidate does; text
    M  memory ran out; text
    G  the candidate's process ended, or broke off the conversation; text
    D  done: all tests passed
"""

from __future__ import annotations

import ast
import builtins
import importlib.machinery
import importlib.util
import io
import socket
import sys
import types
import unittest
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from gatekeeper.sandbox.inside.remote import GoneError, Guard, Handle, Peer, Trust, mark

__all__ = ["ROOT", "describe", "judge"]

ROOT = 1  # the id of the candidate's module: what it exports first
MODULE, TEST_FILE = "tests", "test.py"
MAX_TEXT = 500  # characters of an exception's message


def describe(error: BaseException) -> str:
    """`Type: message`, whatever the exception does when it is asked."""
    try:
        text = str(error)
    except BaseException:  # a hostile __str__ hurts only its own message
        text = "(no message)"
    name = type(error).__name__
    return (f"{name}: {text}" if text else name)[:MAX_TEXT]


class _Names(dict[str, Any]):
    """The tests' global names: their own, then the candidate's, then the built-in ones."""

    def __init__(
        self,
        peer: Peer,
        module: Handle,
        bound: dict[str, str | None],
        *,
        asked: str | None,
        entry: str | None,
    ) -> None:
        super().__init__(__name__=MODULE, __builtins__=builtins)
        self._peer, self._module, self._asked, self._entry = peer, module, asked, entry
        self._bound = dict(bound)  # the candidate's names, with the modules of what it imported

    def __missing__(self, name: str) -> Any:
        if name not in self._bound or (hasattr(builtins, name) and name != self._asked):
            raise KeyError(name)
        if name in sys.stdlib_module_names and name != self._asked:
            return importlib.import_module(name)
        found = self.find(name)
        if isinstance(found, Handle):  # other values may change: ask again next time
            self[name] = found
        return found

    def __contains__(self, name: object) -> bool:
        return name in self._bound or super().__contains__(name)

    def find(self, name: str) -> Any:
        """The candidate's object of that name; the real one where it imported that from Python.

        Raises AttributeError.
        """
        origin = self._bound.get(name)
        if origin in sys.stdlib_module_names and name != self._asked:
            real = getattr(importlib.import_module(str(origin)), name, None)
            if real is not None:
                return real
        found = getattr(self._module, name)
        # By convention a class: its instances are meant to have operators (`Trust`).
        named_so = name[:1].isupper() and name != self._entry and isinstance(found, Handle)
        if named_so and self._peer.ask("isinstance", found, type) is True:
            mark(found, Trust.CLASS)
        return found


class _Importer:
    """`from solution import f`: a module that does not exist, and may be the candidate."""

    def __init__(self, names: _Names, modules: frozenset[str]) -> None:
        self._names, self.modules = names, modules

    def find_spec(
        self, name: str, path: object = None, target: object = None
    ) -> importlib.machinery.ModuleSpec | None:
        loader: Any = self  # of the right shape; the base class takes too long to import
        return importlib.machinery.ModuleSpec(name, loader) if name in self.modules else None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        module = types.ModuleType(spec.name)
        module.__getattr__ = self._names.find  # type: ignore[method-assign]
        return module

    def exec_module(self, module: types.ModuleType) -> None:
        pass


def judge(
    connection: socket.socket,
    send: Callable[[bytes, str], None],
    *,
    setup: str,
    tests: Sequence[str],
    asked: str | None,
    modules: frozenset[str],
    entry: str | None,
) -> None:
    """Run the tests in their order; the first that does not hold ends the run.

    `asked` is the name of the function under test, which alone may have a built-in function's
    name; `modules` are what the tests may import the candidate as; `entry` is what a `check`
    function gets.
    """
    where, test = "in the code", ""
    guard = Guard(MODULE)
    peer = Peer(connection, guard=guard)
    try:
        module = peer.handle(ROOT, ("module", None))
        names = _Names(peer, module, peer.ask("start", module), asked=asked, entry=entry)
        importer = _Importer(names, modules)
        sys.meta_path.append(importer)
        where = "in the setup code"
        _execute(setup, "setup.py", names, importer, guard)
        for number, test in enumerate(tests, 1):
            where = f"in test {number}"
            _execute(test, TEST_FILE, names, importer, guard)
            for case, run in _functions(names, entry):
                where = f"in test {number}, {case}"
                run()
            if peer.gone:
                raise GoneError
            send(b"P", "")
        send(b"D", "")
    except _NotHereError as error:
        send(b"I", f"{where}: {error}")
    except MemoryError:
        send(b"M", f"{where}: out of memory")
    except GoneError:
        send(b"G", where)
    except BaseException as error:
        if peer.gone:
            send(b"G", where)
        else:
            send(b"E", f"{where}{_line(error, test)}: {describe(error)}")


def _line(error: BaseException, test: str) -> str:
    """The line of the test that raised it, where that can be told."""
    trace, number = error.__traceback__, 0
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == TEST_FILE:
            number = trace.tb_lineno
        trace = trace.tb_next
    lines = test.splitlines()
    return f" ({lines[number - 1].strip()[:MAX_TEXT]})" if 0 < number <= len(lines) else ""


class _NotHereError(Exception):
    """The tests need what this image has not."""


def _execute(source: str, file: str, names: _Names, importer: _Importer, guard: Guard) -> None:
    program = ast.parse(source)
    missing = {m for m in _needed(program) if importlib.util.find_spec(m) is None}
    if len(missing) == 1 and not _free(program):
        importer.modules |= missing  # where else should they have the candidate from?
    elif missing:
        named = ", ".join(sorted(missing))
        raise _NotHereError(f"the tests need {named}, which is not here: see `requirements`")
    guard.asserting = frozenset(
        line for node in ast.walk(program) if _asserts(node) for line in _lines(node)
    )
    exec(compile(program, file, "exec", dont_inherit=True), names)


def _asserts(node: Any) -> bool:
    """Whether that is an `assert`, or a call such as `self.assertEqual(…)`."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.attr.startswith("assert")
    return isinstance(node, ast.Assert)


def _lines(node: Any) -> range:
    return range(node.lineno, (node.end_lineno or node.lineno) + 1)


def _needed(program: ast.AST) -> Iterator[str]:
    """Top-level modules that are imported, except where the code is ready to do without."""
    for node in ast.iter_child_nodes(program):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]
        elif not isinstance(node, ast.Try):
            yield from _needed(node)


def _free(program: ast.AST) -> bool:
    """Whether the tests use names that they neither define nor import: the candidate's."""
    used: set[str] = set()
    bound = set(dir(builtins))
    for node in ast.walk(program):
        if isinstance(node, ast.Name):
            (used if isinstance(node.ctx, ast.Load) else bound).add(node.id)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            bound.add(node.name)
        elif isinstance(node, ast.arg):
            bound.add(node.arg)
        elif isinstance(node, ast.alias):
            bound.add((node.asname or node.name).partition(".")[0])
        elif isinstance(node, ast.ExceptHandler) and node.name:
            bound.add(node.name)
    return bool(used - bound)


def _functions(names: _Names, entry: str | None) -> Iterator[tuple[str, Callable[[], Any]]]:
    """What a test text defines to be run: `check(candidate)`, `test_*`, unittest's cases."""
    own = {name: item for name, item in names.items() if not isinstance(item, Handle)}
    check = own.pop("check", None)
    if entry is not None and isinstance(check, types.FunctionType):
        names.pop("check")
        if entry not in names:
            raise NameError(f"name {entry!r} is not defined")
        yield "check", lambda: check(names[entry])
    for name, item in own.items():
        if isinstance(item, types.FunctionType) and name.startswith("test"):
            names.pop(name)
            for case, arguments in _cases(item):
                yield f"{name}{case}", lambda f=item, a=arguments: f(**a)  # type: ignore[misc]
        elif isinstance(item, type) and issubclass(item, unittest.TestCase):
            names.pop(name)
            yield name, lambda kind=item: _unittest(kind)  # type: ignore[misc]
        elif isinstance(item, type) and name.startswith("Test"):
            names.pop(name)
            for method in [m for m in vars(item) if m.startswith("test")]:
                yield f"{name}.{method}", getattr(item(), method)


def _cases(function: types.FunctionType) -> Iterator[tuple[str, dict[str, Any]]]:
    """The calls that `pytest.mark.parametrize` asks for, else one without arguments."""
    cases: list[dict[str, Any]] = [{}]
    for mark_ in getattr(function, "pytestmark", []):
        if mark_.name != "parametrize":
            continue
        fields, rows = mark_.args[:2]
        fields = [f.strip() for f in fields.split(",")] if isinstance(fields, str) else fields
        made = []
        for row in rows:
            values = getattr(row, "values", row)
            values = [values] if len(fields) == 1 and values is row else values
            made += [{**case, **dict(zip(fields, values, strict=True))} for case in cases]
        cases = made
    for number, case in enumerate(cases):
        yield (f"[{number}]" if case else ""), case


def _unittest(kind: type[unittest.TestCase]) -> None:
    suite = unittest.defaultTestLoader.loadTestsFromTestCase(kind)
    result = unittest.TextTestRunner(io.StringIO()).run(suite)
    for test, trace in (*result.errors, *result.failures):
        raise AssertionError(f"{test}: {trace.strip().splitlines()[-1]}")
    left_out = (*result.skipped, *result.expectedFailures, *result.unexpectedSuccesses)
    if left_out or not result.testsRun:
        raise AssertionError(f"{result.testsRun} tests ran, {len(left_out)} did not count")
