"""The tests that a program defines: `check(candidate)`, test functions, classes, unittest's.

Where pytest's own marks and fixtures are used, pytest itself runs the tests.
"""

from __future__ import annotations

import ast
import functools
import inspect
import sys
import types
import unittest
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from gatekeeper.sandbox.inside.counting import COUNTER, as_written
from gatekeeper.sandbox.inside.frameworks import (
    Skips,
    TestsModule,
    finish,
    run_pytest,
    run_unittest,
)
from gatekeeper.sandbox.inside.kinds import is_stand_in
from gatekeeper.sandbox.inside.nodes import FUNCTIONS, walk

__all__ = ["check", "items", "wants_fixtures"]


def items(
    program: ast.Module,
    nodes: Sequence[ast.AST],
    names: dict[str, Any],
    before: Mapping[str, Any],
    candidate: tuple[str, Any] | None,
    asked: Callable[[], int],
) -> Iterator[tuple[str, Callable[[], Any]]]:
    """The tests to run after a test program was executed, each with its name.

    Parameters
    ----------
    program, nodes
        The program, whose definitions count in this order; and all its nodes, as written.
    names, before
        Its global names, and those that there were before it ran.
    candidate
        The name of a function that checks its argument, and the argument; None if the program has
        no such function.
    asked
        How often the candidate was asked something so far, which may be why a test skips itself.
    """
    if candidate is not None:
        check = names[candidate[0]]
        yield "check", functools.partial(finish, check, candidate[1])
    by_pytest = _uses_pytest(program, nodes)
    wanting = _wanting(program) if by_pytest else ()
    tests = _tests(program, names, before, wanting)
    skips = Skips(asked, nodes)
    if tests and by_pytest:
        yield "pytest", functools.partial(run_pytest, names, nodes, skips)
        return
    module = TestsModule(names)
    for setup in ("setUpModule", "setup_module"):
        _call_if_there(names, setup, module)
    for name, item in tests.items():
        if not isinstance(item, type):
            for case, arguments in _cases(item):
                yield f"{name}{case}", functools.partial(_function, names, item, arguments)
        elif issubclass(item, unittest.TestCase):
            yield name, functools.partial(run_unittest, item, skips)
        else:
            yield from _methods(name, item)
    for teardown in ("tearDownModule", "teardown_module"):
        _call_if_there(names, teardown, module)
    unittest.case.doModuleCleanups()  # which Python 3.10 does not export


def check(
    program: ast.Module, candidate: Callable[[str], Any], facts: Mapping[str, Any]
) -> tuple[str, Any] | None:
    """`check`, if a program defines it, and the candidate's function that it gets.

    Parameters
    ----------
    program
        The tests.
    candidate
        Finds an object of the candidate by name, even if the tests define one of that name: the
        function under test may itself be called `check`.
    facts
        `Reading.for_judge` of sandbox/reading.py.

    Raises
    ------
    NameError
        The candidate does not define the function under test.
    """
    entry = facts["entry"]
    if not entry:
        return None
    functions = [n for n in program.body if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
    if "check" not in [function.name for function in functions]:
        return None
    try:
        return "check", candidate(entry)
    except (AttributeError, KeyError):
        raise NameError(f"name {entry!r} is not defined") from None


def _function(names: dict[str, Any], function: Any, arguments: dict[str, Any]) -> None:
    _call_if_there(names, "setup_function", function)
    try:
        finish(function, **arguments)
    finally:
        _call_if_there(names, "teardown_function", function)


def _defined(program: ast.Module) -> dict[str, bool]:
    """Names of tests that a program binds at its top level, and whether only by assignments."""
    names: dict[str, bool] = {}
    for node in _top_level(program.body):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            bound = [node.name] if node.name.startswith("test") else []
        elif isinstance(node, ast.ClassDef):
            bases = " ".join(ast.unparse(base) for base in node.bases)
            bound = [node.name] if node.name.startswith("Test") or "TestCase" in bases else []
        elif isinstance(node, ast.Assign | ast.AnnAssign | ast.Expr):  # `(test_f := …)`
            parts = (n for n in walk(node) if isinstance(n, ast.Name))
            bound = [n.id for n in parts if isinstance(n.ctx, ast.Store) and n.id[:5] == "test_"]
        else:
            bound = []
        for name in bound:
            names.setdefault(name, not isinstance(node, (*FUNCTIONS, ast.ClassDef)))
    return names


def _tests(
    program: ast.Module,
    names: dict[str, Any],
    before: Mapping[str, Any],
    wanting: Collection[str],
) -> dict[str, Any]:
    """The tests among the global names that a program has bound, in the order of these names.

    However they came there: in a loop, by `globals()[f"test_{n}"] = …`, by `Squares = suite(3)`, or
    as a class whose base is one of tests.
    """
    defined, found = _defined(program), dict[str, Any]()
    for name, item in [*dict.items(names)]:
        written, theirs = defined.get(name) is False, is_stand_in(item)
        if not written and not (theirs and name in defined):
            known = theirs or before.get(name) is item or any(item is one for one in found.values())
            if known or not _is_test(name, item) or _is_imported(item, names["__name__"]):
                continue
        given = [""] if isinstance(item, type) and issubclass(item, unittest.TestCase) else []
        if name in wanting or not _helps(item, *given, assigned=not written):
            found[name] = item
    return found


def _is_test(name: str, item: Any) -> bool:
    """Whether pytest or unittest takes an object of the tests for one, by its name and kind."""
    if isinstance(item, type):
        test = name.startswith("Test") and not issubclass(item, BaseException)
        return test or issubclass(item, unittest.TestCase)
    return name.startswith("test") and _is_function(item)


def _is_function(item: Any) -> bool:
    """Whether an object is a function, or a partial or wrapped one."""
    while type(item) is not types.FunctionType:
        if is_stand_in(item) or item is None:
            return False
        if isinstance(item, functools.partial):
            item = item.func
        else:
            item = getattr(item, "__dict__", {}).get("__wrapped__")
    return True


def _is_imported(item: Any, own: str) -> bool:
    """Whether an object is that of another module; `own` is the name of the tests' one.

    Not by `__module__` alone: `types.new_class` makes classes of the module `types`.
    """
    module, name = getattr(item, "__module__", own), getattr(item, "__qualname__", "")
    return module != own and getattr(sys.modules.get(module), name, None) is item


def _helps(item: Any, *own: Any, assigned: bool = False) -> bool:
    """Whether an object is named as a test, but is none: data, a base, or what needs arguments.

    `own` has the arguments that it gets, as a method does.
    """
    if getattr(item, "__test__", True) is False:
        return True
    if is_stand_in(item) and not assigned:  # the candidate decorated it: its parameters say nothing
        return False
    known = assigned or isinstance(item, (types.FunctionType, type))
    if not known or hasattr(item, "pytestmark"):
        return False  # a decorator made it, or gives it arguments
    try:
        inspect.signature(as_written(item), follow_wrapped=False).bind(*own)
    except TypeError:
        return True
    except ValueError:  # it says nothing of its parameters, as what `lru_cache` makes
        return is_stand_in(item)
    return False


def _top_level(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    for node in body:
        yield node
        if isinstance(node, ast.If | ast.Try | ast.With):
            yield from _top_level(node.body)
            yield from _top_level(getattr(node, "orelse", []))


def _uses_pytest(program: ast.Module, nodes: Sequence[ast.AST]) -> bool:
    for node in nodes:
        modules: list[str] = []
        if isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            modules = [node.module or ""]
        for module in modules:
            if module.partition(".")[0] == "pytest":
                return True
    return wants_fixtures(program)


def wants_fixtures(program: ast.Module) -> bool:
    return bool(_wanting(program))


def _wanting(program: ast.Module) -> set[str]:
    """Tests that take arguments which only pytest could give them, as nothing else names them."""
    functions = [(node, 0) for node in program.body]
    for node in program.body:
        if isinstance(node, ast.ClassDef) and node.name.startswith("Test"):
            functions += [(inner, 1) for inner in node.body]
    wanting = set()
    for node, own in functions:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not _decorated(node):
            required = len(node.args.args) - len(node.args.defaults) - own
            if node.name.startswith("test") and required > 0:
                wanting.add(node.name)
    used = walk(program) if wanting else ()
    return wanting - {getattr(node, "id", getattr(node, "attr", "")) for node in used}


def _decorated(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether the tests decorate a function, and not only `counted`."""
    owners = (getattr(decorator, "value", None) for decorator in function.decorator_list)
    return any(getattr(owner, "id", "") != COUNTER for owner in owners)


def _methods(name: str, kind: type) -> Iterator[tuple[str, Callable[[], Any]]]:
    """The test methods of a class as pytest finds them, inherited and nested ones too."""
    _call_if_there(kind, "setup_class")
    found = {n: None for base in reversed(kind.__mro__) for n in vars(base)}
    for inner in found:
        item = inspect.getattr_static(kind, inner)
        if isinstance(item, type) and inner.startswith("Test"):
            yield from _methods(f"{name}.{inner}", item)
        elif inner.startswith("test") and callable(getattr(kind, inner)):
            if isinstance(item, types.FunctionType) and _helps(item, None):
                continue
            for case, arguments in _cases(item):
                yield f"{name}.{inner}{case}", functools.partial(_method, kind, inner, arguments)
    _call_if_there(kind, "teardown_class")


def _method(kind: type, name: str, arguments: dict[str, Any]) -> None:
    made = kind()
    method = getattr(made, name)
    _call_if_there(made, "setup_method", method)
    try:
        finish(method, **arguments)
    finally:
        _call_if_there(made, "teardown_method", method)


def _call_if_there(target: Any, name: str, *arguments: Any) -> None:
    function = dict.get(target, name) if isinstance(target, dict) else getattr(target, name, None)
    if function is not None:
        function(*arguments[: len(inspect.signature(function).parameters)])


def _cases(function: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """The calls that `pytest.mark.parametrize` asks for, else one without arguments."""
    cases: list[dict[str, Any]] = [{}]
    for mark in getattr(function, "pytestmark", []):
        if mark.name != "parametrize":
            continue
        fields, rows = mark.args[:2]
        fields = [f.strip() for f in fields.split(",")] if isinstance(fields, str) else fields
        made = []
        for row in rows:
            values = getattr(row, "values", row)
            values = [values] if len(fields) == 1 and values is row else values
            made += [{**case, **dict(zip(fields, values, strict=True))} for case in cases]
        cases = made
    for number, case in enumerate(cases):
        yield (f"[{number}]" if case else ""), case
