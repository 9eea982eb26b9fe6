"""How tests use the result of calling a name: as an object of a class, or as data."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Sequence

from gatekeeper.sandbox.inside.nodes import walk

__all__ = [
    "ABOUT",
    "dotted",
    "is_class",
    "is_data",
    "is_scalar",
    "made_by",
    "makes",
    "name_of",
    "operates",
    "taken_as_data",
    "uses_object",
]


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


def is_class(
    name: str, nodes: Sequence[ast.AST], known: Collection[str] = (), *, shown: bool = False
) -> bool:
    """Whether a name is meant as a class: the tests use its result as an object, not as data.

    By convention it begins with a capital letter. In `abs(Area(2) - 12.6)` it is a function, so the
    methods of a class that a candidate puts there decide nothing.

    Parameters
    ----------
    name, nodes
        The name of the candidate's, and the tests.
    known
        The names by which the tests know it, such as `solution.Area`; empty: only by its own.
    shown
        Whether an attribute or an operator must show that it is a class.
    """
    if not name.rpartition(".")[2][:1].isupper():
        return False
    names = known or (name,)
    if any(taken_as_data(node, known) for node in nodes for known in names):
        return False
    return not shown or any(uses_object(nodes, known) or operates(nodes, known) for known in names)


def makes(node: ast.AST, name: str) -> bool:
    """Whether a node is a call `name(…)`, where the name may be a dotted one."""
    if not isinstance(node, ast.Call):
        return False
    if isinstance(node.func, ast.Name):
        return node.func.id == name
    return "." in name and dotted(node.func) == name


def made_by(nodes: Sequence[ast.AST], name: str) -> set[str]:
    """Variables that are bound to the result of a call `name(…)`, some of them attributes."""
    return {
        dotted(target)
        for node in nodes
        if isinstance(node, ast.Assign) and makes(node.value, name)
        for target in node.targets
        if isinstance(target, ast.Name | ast.Attribute)
    }


def uses_object(nodes: Sequence[ast.AST], name: str) -> bool:
    """Whether tests use attributes of `name`, or of what a call of it returns."""
    known = {*made_by(nodes, name), name}
    return any(_is_one(n.value, name, known) for n in nodes if isinstance(n, ast.Attribute))


def operates(nodes: Sequence[ast.AST], name: str) -> bool:
    """Whether tests apply arithmetic operators to what a call `name(…)` of theirs returns."""
    known = made_by(nodes, name)
    for node in nodes:
        sides: list[ast.AST] = []
        if isinstance(node, ast.BinOp):
            sides = [node.left, node.right]
        elif isinstance(node, ast.AugAssign):
            sides = [node.target, node.value]
        if any(_is_one(side, name, known) for side in sides):
            return True
    return False


def _is_one(node: ast.AST, name: str, known: Collection[str]) -> bool:
    """Whether a node is a call `name(…)`, or one of the names that are known."""
    if makes(node, name):
        return True
    return isinstance(node, ast.Name | ast.Attribute) and dotted(node) in known


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
