"""Finds whether a test may leave something to the tests behind it: then it may be why they skip."""

from __future__ import annotations

import ast
from collections.abc import Collection, Sequence

from gatekeeper.sandbox.inside.nodes import FUNCTIONS, walk

__all__ = ["leaves_state"]

_CHANGES = frozenset("append appendleft add extend insert put setdefault update".split())  # noqa: SIM905


def leaves_state(nodes: Sequence[ast.AST]) -> bool:
    """Whether a function of a program writes to what outlives it, or keeps what it returned.

    To a global name, a class or module, or a collection of the program or of a class.
    """
    lasting = {
        target.id
        for node in nodes
        if isinstance(node, (ast.Module, ast.ClassDef))
        for part in node.body
        if isinstance(part, (ast.Assign, ast.AnnAssign))
        for target in (part.targets if isinstance(part, ast.Assign) else [part.target])
        if isinstance(target, ast.Name)
    }
    return any(isinstance(node, FUNCTIONS) and _leaves(node, lasting) for node in nodes)


def _leaves(function: ast.FunctionDef | ast.AsyncFunctionDef, lasting: Collection[str]) -> bool:
    if any(
        "cache" in text or "scope=" in text for text in map(ast.unparse, function.decorator_list)
    ):
        return True
    inside = walk(function)
    stored = (n.id for n in inside if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))
    local = {*stored, *(n.arg for n in inside if isinstance(n, ast.arg))}
    for node in inside:
        stores = isinstance(getattr(node, "ctx", None), ast.Store)
        if isinstance(node, ast.Attribute) and stores:
            base = node.value  # `item.price = 3` stays in the test, `type(self).got = …` does not
            if isinstance(base, ast.Name):
                left = base.id not in local
            else:
                left = isinstance(base, ast.Call) or getattr(base, "attr", "") == "__class__"
        elif isinstance(node, ast.Subscript) and stores:
            left = _outlives(node.value, lasting, local)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            left = node.func.attr in _CHANGES and _outlives(node.func.value, lasting, local)
        else:
            left = isinstance(node, ast.Global)
        if left:
            return True
    return False


def _outlives(item: ast.expr, lasting: Collection[str], local: Collection[str]) -> bool:
    """Whether an expression is a variable of the program, or of a class."""
    if isinstance(item, ast.Name):
        return item.id in lasting and item.id not in local
    return isinstance(item, ast.Attribute) and item.attr in lasting
