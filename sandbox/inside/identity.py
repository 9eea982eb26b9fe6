"""Lets tests compare what both processes have by a name, such as `math.sqrt`, by `is`.

A candidate that gives it to the tests gives a stand-in, so that it stays what runs in its process.
But it is the object of that name (`kinds.real`) where the tests ask for that: the candidate has to
know the name, as it has to know a value. So is an object of the tests' that they got back.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from gatekeeper.sandbox.inside.assertions import called

__all__ = ["REAL", "compared"]

REAL = "__gatekeeper_real__"  # the name under which a test program finds `kinds.real`
_ASKS = frozenset({"assertIs", "assertIsNot", "id"})


def compared(nodes: Sequence[ast.AST]) -> None:
    """Change a program so that it compares such objects by `is`; `nodes` are all of it."""
    for node in nodes:
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Is | ast.IsNot):
            sides = [node.left, *node.comparators]
            if not any(isinstance(side, ast.Constant) for side in sides):
                node.left, *node.comparators = map(_real, sides)
        elif isinstance(node, ast.Call) and called(node) in _ASKS:
            node.args[:2] = map(_real, node.args[:2])


def _real(side: ast.expr) -> ast.expr:
    made = ast.Call(ast.Name(REAL, ast.Load()), [side], [])
    return ast.fix_missing_locations(ast.copy_location(made, side))
