"""Finds tests that set names of their own which a candidate may choose.

`globals().update(f())` may replace a function that asserts, or what it expects; so may
`setattr(self, name, value)` in a class of tests.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterator, Sequence

from gatekeeper.sandbox.given import Given
from gatekeeper.sandbox.inside.assertions import asserts, called
from gatekeeper.sandbox.inside.nodes import names_test, walk
from gatekeeper.sandbox.usage import dotted

__all__ = ["sets_names"]

_CHOSEN = "{} may set any name of the tests"
_MODULE = "sys.modules[__name__]"
_GLOBAL = frozenset({"globals()", "vars()", "locals()", f"{_MODULE}.__dict__", f"vars({_MODULE})"})
_OWN = frozenset({"self", "cls", "type(self)", "self.__class__"})  # in a class of tests
_ADDS = frozenset({"update", "setdefault", "__setitem__", "__ior__"})  # methods of a dict
_SETS = frozenset({"setattr", "__setattr__"})


def sets_names(nodes: Sequence[ast.AST], theirs: Collection[str]) -> str:
    """The problem with names that are set so; empty if there are none.

    `nodes` are the tests', `theirs` the names of the candidate's and of its modules.
    """
    setting = [node for node in nodes if _may_set(node)]
    if not setting:  # as in most tests
        return ""
    kinds = [node for node in nodes if isinstance(node, ast.ClassDef)]
    tests = [kind for kind in kinds if names_test(kind) or any(map(asserts, walk(kind)))]
    bases = {dotted(base) for kind in tests for base in kind.bases}
    tests += [kind for kind in kinds if kind.name in bases]
    inside = {id(node) for kind in tests for node in walk(kind)}
    short = {
        target.id: dotted(node.value)
        for node in nodes
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    objects = {_MODULE, *(kind.name for kind in tests)}

    def is_one(node: ast.AST | None, known: Collection[str], own: Collection[str]) -> bool:
        """Whether a node is one of these, or of the latter in a class of tests."""
        names = {dotted(node)} if node is not None else set()
        names |= {short[name] for name in names if name in short}
        return not names.isdisjoint(known) or (id(node) in inside and not names.isdisjoint(own))

    chosen = [
        (node, name)
        for node in setting
        for name in _chosen(
            node,
            lambda node: is_one(node, _GLOBAL, {"self.__dict__", "vars(self)"}),
            lambda node: is_one(node, objects, _OWN),
        )
        if name is not None
    ]
    given = Given(nodes, theirs) if chosen else ()
    for node, name in chosen:
        if name in given:
            return _CHOSEN.format(ast.unparse(node))
    return ""


def _chosen(
    node: ast.AST, is_dict: Callable[[ast.AST | None], bool], is_object: Callable[..., bool]
) -> Iterator[ast.AST | None]:
    """The names that a node sets in a dict of names, or of an object; or what has them."""
    if isinstance(node, ast.Subscript):
        yield node.slice if is_dict(node.value) else None
    elif isinstance(node, ast.AugAssign):
        yield node.value if is_dict(node.target) else None
    elif isinstance(node, ast.Call):
        name, of = called(node), getattr(node.func, "value", None)
        arguments: list[ast.AST | None] = [*node.args]
        first, *others = arguments or [None]
        items = [keyword.value for keyword in node.keywords if keyword.arg is None]
        if name in _SETS:
            yield from others[:1] if is_object(first) else ()
            yield first if is_object(of) else None
        elif name == "dict" and is_dict(first):  # `mock.patch.dict(globals(), …)`
            yield from map(_keys, [*others, *items])
        elif name in _ADDS and is_dict(of):
            yield _keys(first)
            yield from map(_keys, items)


def _keys(node: ast.AST | None) -> ast.AST | None:
    """What has the names of a dict: only the keys, where it is written."""
    if not isinstance(node, ast.Dict):
        return node
    keys = [key for key in node.keys if key is not None]
    return ast.Tuple([*keys]) if len(keys) == len(node.keys) else node


def _may_set(node: ast.AST) -> bool:
    """Whether a node may set names: an item, `|=`, `….update(…)`, `setattr(…)`, `patch.dict(…)`."""
    if isinstance(node, ast.Subscript):
        return isinstance(node.ctx, ast.Store)
    return isinstance(node, ast.AugAssign) or called(node) in {*_ADDS, *_SETS, "dict"}
