"""Which assertions of a test program a run reaches."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from gatekeeper.sandbox.inside.assertions import asserts, swallows
from gatekeeper.sandbox.inside.nodes import FUNCTIONS, children, walk
from gatekeeper.sandbox.usage import name_of

__all__ = ["Reached"]


class Reached:
    """Whether a run reaches an assertion: in top-level code, in tests, or in what they call.

    Parameters
    ----------
    trees, nodes
        The programs, and all their nodes.
    entry
        The name under test, if the task states it; then a function `check` is run.

    Attributes
    ----------
    asserts
        Whether the run reaches an assertion.
    main
        Whether it does so only through code under `if __name__ == "__main__"`.
    """

    def __init__(
        self, trees: Sequence[ast.Module], nodes: Sequence[ast.AST], entry: str | None
    ) -> None:
        self._functions: dict[str, list[ast.AST]] = {}
        for node in nodes:
            if isinstance(node, (*FUNCTIONS, ast.Lambda)):
                self._functions.setdefault(getattr(node, "name", ""), []).append(node)
        self._classes = {node.name: node for node in nodes if isinstance(node, ast.ClassDef)}
        body = [node for tree in trees for node in tree.body]
        self._collected = _collected([node for node in nodes if isinstance(node, ast.ClassDef)])
        guards = [node for node in body if _is_main_guard(node)]
        self.asserts = self._follow([node for node in body if node not in guards], entry)
        self.main = bool(guards) and not self.asserts and self._follow(body, entry)
        self.asserts = self.asserts or self.main

    def _follow(self, roots: Sequence[ast.AST], entry: str | None) -> bool:
        """Whether the code that these nodes run contains an assertion."""
        seen: set[int] = set()
        todo: list[tuple[ast.AST, bool]] = [(root, True) for root in roots]
        while todo:
            node, top = todo.pop()
            if top and isinstance(node, FUNCTIONS):
                run = node.name.startswith(("test", "runTest"))
                run = run or (node.name == "check" and entry is not None)
                todo += [(decorator, False) for decorator in node.decorator_list]
                if not run or id(node) in seen:
                    continue
            elif top and isinstance(node, ast.ClassDef):
                collected = node.name in self._collected
                todo += [(decorator, False) for decorator in node.decorator_list]
                todo += [(function, False) for function in self._makers(node)]
                todo += [
                    (item, True)
                    for item in node.body
                    if collected or not isinstance(item, FUNCTIONS)
                ]
                for item in node.body if collected else ():
                    name = getattr(item, "name", "")
                    if name.lower().startswith(("setup", "teardown", "asyncsetup")):
                        todo.append((item, False))
                continue
            if id(node) in seen:
                continue
            if asserts(node):
                return True
            seen.add(id(node))
            name = name_of(node) or getattr(node, "attr", None) or getattr(node, "arg", None) or ""
            todo += [(function, False) for function in self._functions.get(name, ())]
            if swallows(node):
                body = node.body  # type: ignore[attr-defined]
                seen |= {id(n) for statement in body for n in walk(statement)}
            todo += [(child, False) for child in children(node)]
        return False

    def _makers(self, kind: ast.ClassDef) -> Iterator[ast.AST]:
        """The functions that a class runs when it is made: of its bases, or of a metaclass."""
        above = [*kind.bases, *(keyword.value for keyword in kind.keywords)]
        known = (self._classes[n] for n in map(ast.unparse, above) if n in self._classes)
        for node in (node for owner in known for node in owner.body):
            if isinstance(node, FUNCTIONS) and node.name in _MAKING:
                yield node


_MAKING = frozenset({"__new__", "__init__", "__prepare__", "__init_subclass__"})


def _collected(classes: Sequence[ast.ClassDef]) -> set[str]:
    """Names of the classes whose tests run: by their own name, or as the base of another."""
    bases = {node.name: " ".join(map(ast.unparse, node.bases)) for node in classes}
    found = {n for n, base in bases.items() if n.startswith("Test") or "Test" in base}
    while more := {n for n in bases if any(n in bases[f].split() for f in found)} - found:
        found |= more
    return found


def _is_main_guard(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and any(
        isinstance(part, ast.Name) and part.id == "__name__" for part in walk(node.test)
    )
