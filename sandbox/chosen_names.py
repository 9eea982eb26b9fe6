"""Finds tests that set names of their own which a candidate may choose.

`globals().update(f())` may replace a function that asserts, or what it expects; so may
`setattr(self, name, value)` in a class of tests, and `mock.patch.multiple(TestCase, **f())`. Names
that are set in an object of the candidate's replace nothing here. `given.py` follows the dict of
the names, and `setattr`, as it follows what the candidate gave: `names = globals()`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence

from gatekeeper.sandbox.given import Given
from gatekeeper.sandbox.inside.assertions import asserts, called
from gatekeeper.sandbox.inside.nodes import names_test, walk
from gatekeeper.sandbox.meanings import Names
from gatekeeper.sandbox.usage import dotted

__all__ = ["sets_names"]

_CHOSEN = "{} may set any name of the tests"
_DICTS = frozenset({"globals", "locals", "vars", "__dict__", "__globals__"})  # names of the tests'
_GLOBAL = frozenset({"globals()", "vars()", "locals()"})
_OF_TEST = frozenset({"self.__dict__", "vars(self)"})  # in a class of tests
_OWN = frozenset({"self", "cls", "type(self)", "self.__class__"})
_ADDS = frozenset(  # of a dict, of `patch`, of `monkeypatch`
    """
    update setdefault pop __setitem__ __delitem__ __ior__ dict setitem delitem
    """.split()  # noqa: SIM905
)
# Functions that set a name of an object -> how many arguments they get besides that.
_SETS = {"setattr": 2, "__setattr__": 2, "delattr": 1, "__delattr__": 1}
# What makes classes of the names that it gets.
_MAKERS = frozenset({"new_class", "Enum", "IntEnum", "StrEnum", "Flag", "IntFlag"})
_MAKES = frozenset(f"{'types' if name == 'new_class' else 'enum'}.{name}" for name in _MAKERS)
_CALLED = frozenset({*_ADDS, *_SETS, *_MAKERS, "make_dataclass", "object", "type"})
_NAMED = ("target", "attribute", "name", "value")  # what they, and mocks, may get by name

# An object, or nothing, and what has the name that is set in it, or all names.
_Pair = tuple[ast.AST | None, ast.AST | None]


def sets_names(nodes: Sequence[ast.AST], names: Names) -> str:
    """The problem with names that are set so; empty if there are none.

    Parameters
    ----------
    nodes
        All nodes of the tests.
    names
        What the names in them mean.
    """
    others = [node for node in nodes if not isinstance(node, ast.ExceptHandler)]
    setters = Given(others, [*_SETS]) if any(map(_hands_setter, nodes)) else None
    setting = [node for node in nodes if _may_set(node) or _is_short(node, setters)]
    if not setting:  # as in most tests
        return ""
    dicts = Given(others, _DICTS)
    kinds = [node for node in nodes if isinstance(node, ast.ClassDef)]
    tests = [kind for kind in kinds if names_test(kind) or any(map(asserts, walk(kind)))]
    bases = {dotted(base) for kind in tests for base in kind.bases}
    tests += [kind for kind in kinds if kind.name in bases]
    in_tests = {id(node) for kind in tests for node in walk(kind)}
    in_others = {id(node) for kind in kinds for node in walk(kind)} - in_tests

    def hands_dict(node: ast.AST) -> bool:
        """Whether a node is a call that gets such a dict, surely of the tests."""
        texts = {id(part): dotted(part) for part in getattr(node, "args", ())}
        own = (key in in_tests and text in _OF_TEST for key, text in texts.items())
        return any(own) or not _GLOBAL.isdisjoint(texts.values())

    filled = [node for node in setting if hands_dict(node)]
    chosen = [
        (node, target, name)
        for node in setting
        for target, name in _chosen(node, dicts, names.meaning)
        if name is not None
    ]
    if not (chosen or filled):
        return ""
    given = Given(nodes, names.theirs | names.modules)

    def is_apart(target: ast.AST | None) -> bool:
        """Whether an object is the candidate's, or of a class that has no tests."""
        text = getattr(target, "value", None)
        if isinstance(text, str):  # `mock.patch.multiple("solution", …)`
            return text.partition(".")[0] in names.modules
        own = id(target) in in_others and dotted(target) in _OWN  # type: ignore[arg-type]
        return own or given.makes(target)

    for node in filled:
        if given.makes(node):
            return _CHOSEN.format(ast.unparse(node))
    for node, target, name in chosen:
        if name in given and not is_apart(target):
            return _CHOSEN.format(ast.unparse(node))
    return ""


def _chosen(
    node: ast.AST,
    dicts: Given,
    meaning: Callable[[ast.AST], str],
) -> Iterator[_Pair]:
    """The names that a node sets in a dict of names, or in an object.

    `dicts` has what may be the dict of the global names, or of an object.
    """
    if isinstance(node, ast.Subscript):
        yield _owner(node.value), node.slice if node.value in dicts else None
    elif isinstance(node, ast.AugAssign):
        yield _owner(node.target), node.value if node.target in dicts else None
    elif isinstance(node, ast.Assign):
        yield from ((_owner(target), node.value) for target in node.targets if _owner(target))
    elif isinstance(node, ast.ClassDef):
        yield from ((None, keyword.value) for keyword in node.keywords if keyword.arg is None)
    elif isinstance(node, ast.Call):
        name, of, full = called(node), getattr(node.func, "value", None), f".{meaning(node.func)}"
        keywords = {keyword.arg: keyword.value for keyword in node.keywords}
        more = [_keys(keyword.value) for keyword in node.keywords if keyword.arg is None]
        arguments: list[ast.AST] = [*node.args]
        arguments += (keywords[key] for key in _NAMED if key in keywords)
        first, others = next(iter(arguments), None), arguments[1:]
        starred = any(isinstance(argument, ast.Starred) for argument in arguments)
        at = next((n for n, part in enumerate(node.args) if _is_setter(part)), None)
        if at is not None:  # `addCleanup(setattr, …)`
            rest = node.args[at + 1 :]
            yield next(iter(rest), None), rest[1] if len(rest) > 1 else ast.Tuple([*rest])
        for part in node.args:  # `map(globals().__setitem__, …)`
            if isinstance(part, ast.Attribute) and part.attr in _ADDS and part.value in dicts:
                yield _owner(part.value), ast.Tuple([*node.args])
        if name in _SETS:
            # Fewer are those of a method, or of `monkeypatch.setattr("a.b", value)`.
            if starred or len(arguments) > _SETS[name]:
                yield first, others[0] if others else first
            elif name[:2] == "__":
                yield of, first
        elif full.endswith((".patch.object", ".patch.multiple")):
            yield first, others[0] if others and name == "object" else None
            yield from ((first, names) for names in more)
        elif name in _ADDS and (of in dicts or first in dicts):
            for changed, added in ((of, arguments), (first, others)):
                if changed in dicts:
                    names = [_keys(added[0])] if added else []
                    yield from ((_owner(changed), part) for part in (*names, *more))
        elif full.startswith(".unittest.mock.") or name == "configure_mock":
            yield from ((None, names) for names in more)
        elif full == ".type" and len(arguments) == 3:
            yield None, _keys(others[1])
        elif name == "make_dataclass":
            yield None, keywords.get("namespace")
        elif full[1:] in _MAKES and len(arguments) + len(node.keywords) > 1:
            yield None, node
        elif isinstance(node.func, ast.Name) and not _may_set(node):
            yield None, node  # `put = setattr`


def _keys(node: ast.AST | None) -> ast.AST | None:
    """What has the names of a dict: only the keys, where it is written."""
    if isinstance(node, ast.DictComp):
        return node.key
    if not isinstance(node, ast.Dict):
        return node
    keys = [key for key in node.keys if key is not None]
    return ast.Tuple([*keys]) if len(keys) == len(node.keys) else node


def _owner(node: ast.AST | None) -> ast.AST | None:
    """The object of which a node is the dict, as it is written."""
    if isinstance(node, ast.Attribute) and node.attr == "__dict__":
        return node.value
    return node.args[0] if isinstance(node, ast.Call) and node.args else None


def _is_setter(node: ast.AST) -> bool:
    """Whether a node is a function that sets names."""
    return getattr(node, "attr", getattr(node, "id", "")) in _SETS


def _hands_setter(node: ast.AST) -> bool:
    """Whether such a function is used as a value."""
    if isinstance(node, ast.Call):
        return any(map(_is_setter, node.args))
    return isinstance(node, ast.Assign) and any(map(_is_setter, walk(node.value)))


def _is_short(node: ast.AST, setters: Given | None) -> bool:
    """Whether a node calls a variable that may be such a function."""
    short = isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    return short and setters is not None and node.func in setters  # type: ignore[attr-defined]


def _may_set(node: ast.AST) -> bool:
    """Whether a node may set names: an item, `|=`, `….update(…)`, `setattr(…)`, `Mock(**…)`."""
    if isinstance(node, ast.Subscript):
        return not isinstance(node.ctx, ast.Load)
    if isinstance(node, ast.Call):
        more = any(keyword.arg is None for keyword in node.keywords)
        attributes = {getattr(part, "attr", "") for part in node.args}
        handed = any(_is_setter(part) or dotted(part) in _GLOBAL | _OF_TEST for part in node.args)
        handed = handed or not _ADDS.isdisjoint(attributes)
        return more or handed or called(node) in _CALLED
    if isinstance(node, ast.ClassDef):
        return any(keyword.arg is None for keyword in node.keywords)
    if isinstance(node, ast.Assign):
        return any(getattr(target, "attr", "") == "__dict__" for target in node.targets)
    return isinstance(node, ast.AugAssign)
