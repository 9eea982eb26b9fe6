"""Which variables of the tests may have what the candidate gave them.

By their names alone, wherever they are bound: an item that is put into a list counts for the list,
an argument for the parameters of the function that gets it.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping, Sequence

from gatekeeper.sandbox.inside.assertions import called
from gatekeeper.sandbox.inside.nodes import FUNCTIONS, walk
from gatekeeper.sandbox.usage import dotted

__all__ = ["Given"]

_OWN = frozenset({"self", "cls"})


class Given:
    """The names, of variables and attributes, that have something of the candidate's.

    Parameters
    ----------
    nodes
        All nodes of the tests.
    theirs
        Names of the candidate's, and of its modules.
    """

    def __init__(self, nodes: Sequence[ast.AST], theirs: Collection[str]) -> None:
        functions = {node.name: node for node in nodes if isinstance(node, FUNCTIONS)}
        passed: dict[str, list[str]] = {}
        for target, value in (pair for node in nodes for pair in _bindings(node, functions)):
            targets = [*_bound(target)]
            for name in _used(value):
                passed.setdefault(name, []).extend(targets)
        self._names, todo = set[str](), [name.partition(".")[0] for name in theirs]
        while todo:
            name = todo.pop()
            if name not in self._names:
                self._names.add(name)
                todo += passed.get(name, ())

    def __contains__(self, value: object) -> bool:
        """Whether an expression has one of the names."""
        return isinstance(value, ast.AST) and not self._names.isdisjoint(_used(value))


def _used(value: ast.AST) -> set[str]:
    """The names of variables and attributes in an expression."""
    return {dotted(part) for part in walk(value) if isinstance(part, ast.Name | ast.Attribute)}


_Functions = Mapping[str, ast.FunctionDef | ast.AsyncFunctionDef]


def _bindings(node: ast.AST, functions: _Functions) -> Iterator[tuple[ast.AST, ast.AST]]:
    """What a node binds, and to which value."""
    if isinstance(node, ast.Assign):
        for target in node.targets:
            yield target, node.value
            yield from _handed(node.value, target, functions)
    elif isinstance(node, ast.AugAssign | ast.NamedExpr | ast.AnnAssign) and node.value:
        yield node.target, node.value
    elif isinstance(node, ast.For | ast.AsyncFor | ast.comprehension):
        yield from _of_loop(node.target, node.iter)
    elif isinstance(node, ast.withitem) and node.optional_vars:
        yield node.optional_vars, node.context_expr
    elif isinstance(node, FUNCTIONS):
        returned = (part for part in walk(node) if isinstance(part, ast.Return | ast.Yield))
        yield from ((ast.Name(node.name), part.value) for part in returned if part.value)
        yield from ((node.args, decorator) for decorator in node.decorator_list)
    elif isinstance(node, ast.Call):
        function = functions.get(called(node))
        for value in (*node.args, *(keyword.value for keyword in node.keywords)):
            yield from _handed(value, node, functions)
            if function is not None:
                yield function.args, value
            elif isinstance(node.func, ast.Attribute):  # `names.append(value)`
                yield node.func.value, value


def _handed(
    value: ast.AST, place: ast.AST, functions: _Functions
) -> Iterator[tuple[ast.AST, ast.AST]]:
    """The parameters of functions that are handed over in a value; the place gives them values."""
    for part in walk(value):
        if isinstance(part, ast.Lambda):
            yield part.args, place
        elif isinstance(part, ast.Name | ast.Attribute):
            function = functions.get(dotted(part).rpartition(".")[2])
            if function is not None:
                yield function.args, place


def _of_loop(target: ast.AST, source: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
    """The variables of a loop: each with its own part of the rows, where these are written."""
    rows = [source]
    if isinstance(source, ast.List | ast.Tuple):
        rows = [*source.elts]
    elif called(source) == "items" and isinstance(table := source.func.value, ast.Dict):  # type: ignore[attr-defined]
        pairs = zip(table.keys, table.values, strict=True)
        rows = [ast.Tuple([key or value, value]) for key, value in pairs]
    elif called(source) == "enumerate" and isinstance(target, ast.Tuple):
        target, rows = target.elts[-1], source.args[:1]  # type: ignore[attr-defined]
    for row in rows:
        if isinstance(target, ast.Tuple) and isinstance(row, ast.Tuple) and rows != [source]:
            yield from zip(target.elts, row.elts, strict=False)
        else:
            yield target, row


def _bound(target: ast.AST) -> Iterator[str]:
    """The names that a target binds."""
    if isinstance(target, ast.arguments):
        names = (part.arg for part in walk(target) if isinstance(part, ast.arg))
        yield from (name for name in names if name not in _OWN)
    elif isinstance(target, ast.Subscript | ast.Starred):
        yield from _bound(target.value)
    elif isinstance(target, ast.Tuple | ast.List):
        for part in target.elts:
            yield from _bound(part)
    elif isinstance(target, ast.Name | ast.Attribute) and dotted(target) not in _OWN:
        yield dotted(target)
