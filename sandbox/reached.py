"""Which assertions of a test program a run reaches."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from gatekeeper.sandbox.inside.counting import asserts, swallows
from gatekeeper.sandbox.usage import name_of

__all__ = ["Reached"]


class Reached:
    """The assertions that a run reaches: those of top-level code, of tests, and what they call."""

    def __init__(
        self, trees: Sequence[ast.Module], nodes: Sequence[ast.AST], entry: str | None
    ) -> None:
        self.functions: dict[str, list[ast.AST]] = {}
        for node in nodes:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
                self.functions.setdefault(getattr(node, "name", ""), []).append(node)
        body = [node for tree in trees for node in tree.body]
        self._collected = _collected([node for node in nodes if isinstance(node, ast.ClassDef)])
        guards = [node for node in body if _is_main_guard(node)]
        roots = [node for node in body if node not in guards]
        self.nodes = self._follow(roots, entry)
        self.main = False
        if guards and not any(map(asserts, self.nodes)):
            self.nodes = self._follow(body, entry)
            self.main = any(map(asserts, self.nodes))

    def _follow(self, roots: Sequence[ast.AST], entry: str | None) -> list[ast.AST]:
        found: list[ast.AST] = []
        seen: set[int] = set()
        todo: list[tuple[ast.AST, bool]] = [(root, True) for root in roots]
        while todo:
            node, top = todo.pop()
            if top and isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                run = node.name.startswith(("test", "runTest"))
                run = run or (node.name == "check" and entry is not None)
                todo += [(decorator, False) for decorator in node.decorator_list]
                if not run or id(node) in seen:
                    continue
            elif top and isinstance(node, ast.ClassDef):
                functions = ast.FunctionDef | ast.AsyncFunctionDef
                collected = node.name in self._collected
                todo += [
                    (item, True)
                    for item in node.body
                    if collected or not isinstance(item, functions)
                ]
                for item in node.body if collected else ():
                    name = getattr(item, "name", "")
                    if name.lower().startswith(("setup", "teardown", "asyncsetup")):
                        todo.append((item, False))
                continue
            if id(node) in seen:
                continue
            seen.add(id(node))
            found.append(node)
            name = name_of(node) or getattr(node, "attr", None) or getattr(node, "arg", None) or ""
            todo += [(function, False) for function in self.functions.get(name, ())]
            if swallows(node):
                body = node.body  # type: ignore[attr-defined]
                seen |= {id(n) for statement in body for n in ast.walk(statement)}
            todo += [(child, False) for child in ast.iter_child_nodes(node)]
        return found


def _collected(classes: Sequence[ast.ClassDef]) -> set[str]:
    """Names of the classes whose tests are run: in their own name, or by inheritance."""
    bases = {node.name: " ".join(map(ast.unparse, node.bases)) for node in classes}
    found = {n for n, base in bases.items() if n.startswith("Test") or "Test" in base}
    while more := {n for n in bases if any(n in bases[f].split() for f in found)} - found:
        found |= more
    return found


def _is_main_guard(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and any(
        isinstance(part, ast.Name) and part.id == "__name__" for part in ast.walk(node.test)
    )
