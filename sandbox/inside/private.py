"""Finds the private attributes that the tests expect of a candidate: they read, and never make."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from gatekeeper.sandbox.inside.nodes import walk

__all__ = ["only_read"]


def only_read(programs: Sequence[str]) -> frozenset[str]:
    """Names of attributes that programs read and do not make: `assert item._price == 3`.

    A name that may be made, as in `self._area = …` or `vars(self).setdefault("_area", …)`, is none,
    nor is one with a default, as in `getattr(self, "_area", 0)`.
    """
    read: set[str] = set()
    made: set[str] = set()
    for program in programs:
        try:
            nodes = walk(ast.parse(program))
        except SyntaxError:
            return frozenset()
        looked = {id(name) for node in nodes for name in _looked_for(node)}
        for node in nodes:
            if isinstance(node, ast.Attribute):
                (read if isinstance(node.ctx, ast.Load) else made).add(node.attr)
            elif isinstance(node, ast.Constant) and type(node.value) is str:
                (read if id(node) in looked else made).add(node.value)
            else:  # of a definition, an argument or a variable, which may be an attribute
                for field in ("name", "arg", "id"):
                    made.add(str(getattr(node, field, None)))
    hidden = tuple(name for name in made if name[:2] == "__")  # `__area` is `_Shape__area`
    return frozenset(name for name in read - made if not name.endswith(hidden))


def _looked_for(node: ast.AST) -> Iterator[ast.AST | None]:
    """The names of attributes that a node only looks for, which are text."""
    if isinstance(node, ast.Call):
        called = getattr(node.func, "attr", getattr(node.func, "id", ""))
        if called in ("hasattr", "getattr") and len(node.args) == 2:
            yield node.args[1]
        elif called.startswith("assert"):
            yield from _compared(node.args)
    elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
        yield node.slice
    elif isinstance(node, ast.Compare):
        if isinstance(node.ops[0], (ast.In, ast.NotIn)):
            yield node.left
        yield from _compared([node.left, *node.comparators])


def _compared(operands: Sequence[ast.expr]) -> Iterator[ast.AST | None]:
    """The keys of dicts to which the attributes of an object are compared."""
    for operand in operands:
        if isinstance(operand, ast.Dict):
            yield from operand.keys
