"""Finds tests that set names of their own which a candidate may choose.

`globals().update(f())` may replace a function that asserts, or what it expects; so may
`setattr(self, name, value)` in a class of tests.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from gatekeeper.sandbox.inside.assertions import asserts, called
from gatekeeper.sandbox.inside.nodes import walk
from gatekeeper.sandbox.usage import dotted, is_data

__all__ = ["sets_names"]

_CHOSEN = "{} may set any name of the tests"
_GLOBAL = frozenset({"globals()", "vars()", "locals()"})
_OWN = frozenset({"self.__dict__", "vars(self)"})
_SETTING = (ast.Call, ast.Subscript)


def sets_names(nodes: Sequence[ast.AST]) -> str:
    """The problem with names that are set so; empty if there are none. `nodes` are the tests'."""
    setting = [node for node in nodes if isinstance(node, _SETTING) and _may_set(node)]
    if not setting:  # as in most tests
        return ""
    kinds = [node for node in nodes if isinstance(node, ast.ClassDef)]
    tests = [kind for kind in kinds if any(map(asserts, walk(kind)))]
    bases = {dotted(base) for kind in tests for base in kind.bases}
    tests += [kind for kind in kinds if kind.name in bases]
    inside = {id(node) for kind in tests for node in walk(kind)}
    listed = {name for node in nodes if isinstance(node, ast.For) for name in _listed(node)}

    def holds(node: ast.AST) -> bool:
        """Whether a node is a dict of such names."""
        if not isinstance(node, ast.Call | ast.Attribute):
            return False
        return (name := dotted(node)) in _GLOBAL or (name in _OWN and id(node) in inside)

    for node in setting:
        found = False
        if isinstance(node, ast.Subscript):
            found = holds(node.value) and not isinstance(node.slice, ast.Constant)
        elif isinstance(node.func, ast.Attribute) and holds(node.func.value):
            given = [*node.args, *(k.value for k in node.keywords if k.arg is None)]
            found = not all(map(is_data, given))
        elif called(node) == "setattr" and id(node) in inside and len(node.args) > 1:
            target, name = node.args[:2]
            written = isinstance(name, ast.Constant) or getattr(name, "id", "") in listed
            found = dotted(target) == "self" and not written
        if found:
            return _CHOSEN.format(ast.unparse(node))
    return ""


def _may_set(node: ast.Call | ast.Subscript) -> bool:
    """Whether a node may set names: an assigned item, `….update(…)`, or `setattr(…)`."""
    if isinstance(node, ast.Subscript):
        return isinstance(node.ctx, ast.Store)
    return called(node) in ("update", "setattr")


def _listed(loop: ast.For) -> Iterator[str]:
    """The variable of a loop that goes through texts of the tests: `for name, n in [("a", 1)]`."""
    target, rows = loop.target, getattr(loop.iter, "elts", [])
    if isinstance(target, ast.Tuple):
        target = target.elts[0]
        rows = [row.elts[0] if getattr(row, "elts", None) else row for row in rows]
    if isinstance(target, ast.Name) and rows and all(isinstance(r, ast.Constant) for r in rows):
        yield target.id
