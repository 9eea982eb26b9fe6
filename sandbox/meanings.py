"""What the names of a test program mean: the candidate's, Python's, or the tests' own."""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from gatekeeper.sandbox.inside.assertions import called
from gatekeeper.sandbox.inside.nodes import FUNCTIONS
from gatekeeper.sandbox.usage import dotted

__all__ = ["TEXTS", "Names", "bound", "imported", "imported_by"]

TEXTS = frozenset({"eval", "exec", "compile", "__import__"})  # built-in functions that run a text


@dataclass(frozen=True, slots=True)
class Names:
    """What is known of the names of a test program."""

    theirs: frozenset[str]  # the candidate's
    modules: frozenset[str]  # that are the candidate
    raised: frozenset[str]  # exceptions among the candidate's
    paths: bool  # whether the tests use pathlib
    examples: bool  # and doctest
    classes: bool  # whether there are classes among the candidate's
    imported: Mapping[str, str]  # what names of imports mean: `undo` -> "pickle.loads"
    bound: frozenset[str]  # the tests' own variables, functions and arguments

    def meaning(self, node: ast.AST) -> str:
        """The dotted name of a node, by the module that defines it."""
        if module := imported_by(node):
            return module
        if isinstance(node, ast.Attribute) and (module := imported_by(node.value)):
            return f"{module}.{node.attr}"
        first, dot, rest = dotted(node).partition(".")
        if first in self.imported:
            first = self.imported[first]
        elif first in TEXTS and not {first} & (self.bound | self.theirs):
            first = f"builtins.{first}"
        return first + dot + rest

    def of_library(self, node: ast.AST) -> str:
        """As `meaning`, if that is something of Python's, or of an imported package; else empty."""
        found = self.meaning(node)
        first, root = dotted(node).partition(".")[0], found.partition(".")[0]
        if first in self.imported:
            return "" if root in self.modules else found
        return found if first not in self.bound and root in sys.stdlib_module_names else ""


def imported(nodes: Sequence[ast.AST]) -> dict[str, str]:
    """What names mean that are imported, or bound once to something that is."""
    found: dict[str, str] = {}
    for node in nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                root = alias.name.partition(".")[0]
                found |= {alias.asname: alias.name} if alias.asname else {root: root}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {a.asname or a.name: f"{node.module}.{a.name}" for a in node.names}
        elif isinstance(node, ast.Assign) and (module := imported_by(node.value)):
            found |= {target.id: module for target in node.targets if isinstance(target, ast.Name)}
    times = Counter(bound(nodes))
    for node in nodes:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Name | ast.Attribute):
            first, dot, rest = dotted(node.value).partition(".")
            once = [t.id for t in node.targets if isinstance(t, ast.Name) and times[t.id] == 1]
            if first in found:  # `patch = mock.patch`
                found |= dict.fromkeys(once, found[first] + dot + rest)
    return found


def imported_by(node: ast.AST) -> str:
    """The module that `import_module("pickle")` gives; empty for any other node."""
    first: list[ast.expr] = getattr(node, "args", [])[:1] if called(node) == "import_module" else []
    names = (getattr(name, "value", None) for name in first)
    return next((name for name in names if isinstance(name, str)), "")


def bound(nodes: Sequence[ast.AST]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            yield node.name
