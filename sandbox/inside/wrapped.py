"""Finds the test functions that a candidate gets, as a decorator does, and so may leave out."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

from gatekeeper.sandbox.inside.nodes import FUNCTIONS, children, names_test, walk

__all__ = ["derived", "lists_cases", "mentions", "reachable", "wrapped"]

ANY = ""  # of `setattr(Tests, name, …)`: any name
_RUN = re.compile(  # names of functions that a run of the tests calls
    "(test|check).*|runtest|(async)?(setup|teardown)(_?(class|module|method|function))?"
)
# With these a program may find any function.
_FINDS = frozenset({"globals", "locals", "vars", "getattr", "setattr", "__dict__", "dir"})


def mentions(nodes: Iterable[ast.AST], names: Collection[str]) -> bool:
    return any(isinstance(n, ast.Name) and n.id in names for node in nodes for n in walk(node))


def derived(nodes: Iterable[ast.AST], theirs: frozenset[str]) -> frozenset[str]:
    """These names, and those of what is taken or made of them: `Low = solution.Low`."""
    for node in nodes:
        if not isinstance(node, ast.Assign):
            continue
        made: Any = node.value
        while isinstance(made, (ast.Attribute, ast.Subscript, ast.Call)):
            made = made.func if isinstance(made, ast.Call) else made.value
        if getattr(made, "id", None) in theirs:
            theirs |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return theirs


def wrapped(nodes: Sequence[ast.AST], theirs: frozenset[str]) -> Iterator[Any]:
    """The definitions of tests that something of the candidate's decorates, or binds again.

    Also by a function of the tests, or a variable, that uses something of the candidate's.
    """
    tests = _tests(nodes)
    rebound = {name for node in nodes for name in _bound_again(node)}
    found = [t for t in tests if t.decorator_list or t.name in rebound or ANY in rebound]
    if not found:
        return
    users = _users(nodes, theirs)
    again = {n for node in nodes if mentions([node], users) for n in _bound_again(node)}
    for test in found:
        decorators = [d for d in test.decorator_list if not lists_cases(d, users)]
        if mentions(decorators, users) or test.name in again or ANY in again:
            yield test


def lists_cases(decorator: Any, names: Collection[str]) -> bool:
    """Whether a decorator is pytest's `parametrize` with as many cases as the tests write.

    Then objects of the candidate's, of these names, are only data of it.
    """
    arguments: list[Any] = getattr(decorator, "args", [])
    if len(arguments) < 2 or not ast.unparse(decorator.func).endswith("mark.parametrize"):
        return False
    rows = arguments[1]
    written = isinstance(rows, (ast.List, ast.Tuple)) and not any(
        isinstance(row, ast.Starred) for row in rows.elts
    )
    marks = [k.value for k in walk(rows) if isinstance(k, ast.keyword) and k.arg == "marks"]
    others = [decorator.func, arguments[0], *(k.value for k in decorator.keywords), *marks]
    return written and not mentions(others, names)


def reachable(nodes: Sequence[ast.AST]) -> list[Any]:
    """The definitions of tests that something may get: decorated, or named but for a call.

    With those of the classes that are so named.
    """
    if not (tests := _tests(nodes)):
        return tests
    called = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
    named = {
        getattr(node, "id", None) or getattr(node, "attr", None) or getattr(node, "value", None)
        for node in nodes
        if isinstance(node, (ast.Name, ast.Attribute, ast.Constant)) and id(node) not in called
    }
    classes = [node for node in nodes if isinstance(node, ast.ClassDef) and node.name in named]
    inside = {id(part) for kind in classes for part in kind.body}
    finds = bool(_FINDS & {getattr(node, "id", getattr(node, "attr", "")) for node in nodes})
    return [t for t in tests if t.decorator_list or finds or t.name in named or id(t) in inside]


def _tests(nodes: Sequence[ast.AST]) -> list[Any]:
    """The definitions of functions that a run of the tests calls by their names.

    In classes only of tests, and in those that others extend.
    """
    kinds = [node for node in nodes if isinstance(node, ast.ClassDef)]
    extended = {getattr(base, "id", "") for kind in kinds for base in kind.bases}
    found: list[Any] = []
    todo: list[ast.AST] = [node for node in nodes if isinstance(node, ast.Module)]
    while todo:
        for node in children(todo.pop()):
            if isinstance(node, FUNCTIONS):  # one within it is no test
                found += [node] if _RUN.fullmatch(node.name.lower()) else []
            elif isinstance(node, ast.ClassDef):
                todo += [node] if node.name in extended or names_test(node) else []
            elif not isinstance(node, ast.expr):
                todo.append(node)
    return found


def _bound_again(node: ast.AST) -> Iterator[str]:
    """Names to which an assignment, or `setattr`, binds the result of a call."""
    if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
        for target in node.targets:
            key = getattr(target, "slice", None)
            name = getattr(target, "id", None) or getattr(target, "attr", None)
            if name or isinstance(getattr(key, "value", None), str):
                yield name or key.value  # type: ignore[union-attr]
    elif (
        isinstance(node, ast.Call)
        and getattr(node.func, "id", "") == "setattr"
        and any(isinstance(value, ast.Call) for value in node.args[2:])
    ):
        name = getattr(node.args[1], "value", ANY)
        yield name if isinstance(name, str) else ANY


def _users(nodes: Sequence[ast.AST], names: frozenset[str]) -> frozenset[str]:
    """These names, and those of the functions, classes and variables of the tests that use them."""
    made = [n for n in nodes if isinstance(n, (*FUNCTIONS, ast.ClassDef, ast.Assign))]
    while True:
        more = {
            name
            for node in made
            if mentions([node], names)
            for name in (
                (getattr(target, "id", "") for target in node.targets)
                if isinstance(node, ast.Assign)
                else (node.name,)
            )
        } - names
        if not more - {""}:
            return names
        names |= more
