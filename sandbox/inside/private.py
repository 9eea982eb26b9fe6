"""Finds private attributes in texts: in tests, and in texts that the candidate gave them.

Of the tests, those that they expect of a candidate: they read, and never make them.
"""

from __future__ import annotations

import _string  # type: ignore[import-not-found]  # what `string.Formatter` uses
import ast
import contextlib
from collections.abc import Iterator, Sequence

from gatekeeper.sandbox.inside.nodes import walk

__all__ = ["formatted", "only_read"]

_NAMES = frozenset({"__class__", "__name__", "__qualname__", "__module__"})
_FRAMES = frozenset({"gi_frame", "cr_frame", "ag_frame", "tb_frame"})


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


def formatted(text: str) -> Iterator[str]:
    """The attributes that a text reads by being formatted, and that lead to what is private.

    `"{user.__init__.__globals__[WANTED]}".format(user=user)` is the value that a test expects.
    """
    with contextlib.suppress(ValueError):
        for _, field, specification, _ in _string.formatter_parser(text):
            if field is None:
                continue
            _, parts = _string.formatter_field_name_split(field)
            names = {name for is_attribute, name in parts if is_attribute} - _NAMES
            yield from (name for name in names if name[:1] == "_" or name in _FRAMES)
            yield from formatted(specification)
