"""Walks syntax trees: as `ast.walk` does, in the same order, in half of its time.

Every test is walked more than once, each time by a new process without caches.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

__all__ = ["FUNCTIONS", "children", "in_classes", "names_test", "walk"]

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)  # definitions


def children(node: ast.AST) -> list[ast.AST]:
    """The child nodes of a node, as `ast.iter_child_nodes` yields them."""
    found: list[ast.AST] = []
    for name in node._fields:
        value = getattr(node, name, None)
        if type(value) is list:
            found += [item for item in value if isinstance(item, ast.AST)]
        elif isinstance(value, ast.AST):
            found.append(value)
    return found


def walk(root: ast.AST) -> list[ast.AST]:
    """A node and all below it, the upper ones first."""
    found = [root]
    for node in found:  # the list grows during the loop
        found += children(node)
    return found


def names_test(kind: ast.ClassDef) -> bool:
    """Whether a class is one of tests, by its name and those of its bases, or of its methods.

    One without a base is a test only by its name.
    """
    names = (kind.name, *map(ast.unparse, kind.bases))
    methods = (part for part in kind.body if kind.bases and isinstance(part, FUNCTIONS))
    return any("Test" in name for name in names) or any(m.name[:4] == "test" for m in methods)


def in_classes(nodes: Sequence[ast.AST]) -> Iterator[str]:
    """Names that the bodies of classes use themselves, not in the functions within."""
    todo: list[ast.AST] = [
        part for node in nodes if isinstance(node, ast.ClassDef) for part in node.body
    ]
    while todo:
        node = todo.pop()
        if isinstance(node, ast.Name):
            yield node.id
        inside: list[ast.AST] = []
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            inside = [*node.body]
        elif isinstance(node, ast.Lambda):
            inside = [node.body]
        todo += [part for part in children(node) if part not in inside]
