"""How tests use the result of calling a name: as an object of a class, or as data."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from gatekeeper.sandbox.inside.nodes import walk

__all__ = ["ABOUT", "dotted", "is_class", "is_scalar", "makes", "name_of", "taken_as_data"]


def name_of(node: ast.AST) -> str:
    """The name that a node uses or defines; empty if it has none."""
    return getattr(node, "id", None) or getattr(node, "name", None) or ""


def dotted(node: ast.AST) -> str:
    """As `ast.unparse`, but faster for a name such as `os.path.exists`."""
    names, base = [], node
    while isinstance(base, ast.Attribute):
        names.append(base.attr)
        base = base.value
    if not isinstance(base, ast.Name):
        return ast.unparse(node)
    return ".".join([base.id, *reversed(names)])


def is_class(name: str, nodes: Sequence[ast.AST]) -> bool:
    """Whether a name is meant as a class: the tests use its result as an object, not as data.

    By convention it begins with a capital letter. In `abs(Area(2) - 12.6)` it is a function, so the
    methods of a class that a candidate puts there decide nothing.
    """
    if not name[:1].isupper():
        return False
    return not any(taken_as_data(node, name) for node in nodes)


def makes(node: ast.AST, name: str) -> bool:
    """Whether a node is a call `name(…)`."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name


ABOUT = ast.In | ast.NotIn | ast.Is | ast.IsNot  # comparisons that an object may be part of
_NUMBERS = frozenset({"abs", "round", "int", "float", "bool", "len"})


def taken_as_data(node: ast.AST, name: str, data: Callable[[ast.AST], bool] | None = None) -> bool:
    """Whether the result of `name(…)` is compared with data, or used in arithmetic."""
    if isinstance(node, ast.Compare) and not isinstance(node.ops[0], ABOUT):
        sides = [node.left, *node.comparators]
        mine = [side for side in sides if _gives(side, name)]
        return bool(mine) and any((data or is_data)(side) for side in sides if side not in mine)
    if isinstance(node, ast.Call) and name_of(node.func) in _NUMBERS:
        return any(isinstance(a, ast.BinOp) and _gives(a, name) for a in node.args)
    return False


def _gives(node: ast.AST, name: str) -> bool:
    """`name(…)`, or arithmetic of that and data."""
    if isinstance(node, ast.BinOp):
        sides = (node.left, node.right)
        return any(_gives(s, name) for s in sides) and any(is_data(s) for s in sides)
    return makes(node, name)


def is_data(node: ast.AST) -> bool:
    """A literal, or arithmetic of literals."""
    if isinstance(node, ast.Constant):
        return node.value is not None
    inner = (ast.List, ast.Tuple, ast.Dict, ast.Set, ast.UnaryOp, ast.BinOp)
    return isinstance(node, inner) and not any(
        isinstance(part, ast.Name | ast.Call) for part in walk(node)
    )


def is_scalar(node: ast.AST) -> bool:
    """Whether a node is data, but not a list, tuple, dict or set."""
    return is_data(node) and not isinstance(node, ast.List | ast.Tuple | ast.Dict | ast.Set)
