"""Docstrings of the API reference: public names are described, with their parameters."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
API = ROOT / "docs" / "reference" / "api"
CONTRACTS = ("gatekeeper.protocols", "gatekeeper.log.protocol", "gatekeeper.io.providers")
FOLDERS = {"gatekeeper.adapters": "adapters", "gatekeeper.sandbox": "sandbox"}
SECTION = re.compile(r"^ *Parameters\n *-{10}$", re.MULTILINE)


def file_of(name: str) -> Path | None:
    """The file of a module or package; None for another name."""
    top = next((top for top in FOLDERS if name == top or name.startswith(f"{top}.")), "")
    path = ROOT / FOLDERS.get(top, "") / name.removeprefix(top).strip(".").replace(".", "/")
    return next((f for f in (path.with_suffix(".py"), path / "__init__.py") if f.is_file()), None)


def modules() -> set[Path]:
    """The files of the modules that the API reference names, or names something of."""
    pages = "".join(page.read_text() for page in API.glob("*.md"))
    names = [*re.findall(r"^::: (\S+)", pages, re.MULTILINE), *CONTRACTS]
    found = {file_of(name) or file_of(name.rpartition(".")[0]) for name in names}
    return {file for file in found if file is not None}


def public(tree: ast.Module) -> Iterator[ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef]:
    """The functions and classes of `__all__`."""
    listed: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            listed = set(ast.literal_eval(node.value))
    for node in tree.body:
        described = isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        if described and node.name in listed:
            yield node


def parameters(node: ast.AST) -> int:
    """How many a function has, or the constructor of a class, `self` left out."""
    if isinstance(node, ast.ClassDef):
        own = [m for m in node.body if isinstance(m, ast.FunctionDef) and m.name == "__init__"]
        return parameters(own[0]) if own else 0
    assert isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    names = [a.arg for a in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
    return len(names) - (names[:1] in (["self"], ["cls"]))


def test_public_names_are_described() -> None:
    """With a Parameters section from three parameters on, or the name of what has one."""
    seen, bare, without = 0, [], []
    for file in sorted(modules()):
        for node in public(ast.parse(file.read_text())):
            text, name = ast.get_docstring(node), f"{file.relative_to(ROOT)}:{node.name}"
            seen += 1
            if not text:
                bare.append(name)
            elif parameters(node) > 2 and not SECTION.search(text) and "Parameters " not in text:
                without.append(name)
    assert seen > 150
    assert not bare
    assert not without


def test_contracts_are_described_method_by_method() -> None:
    methods, bare = 0, []
    for module in CONTRACTS:
        file = file_of(module)
        assert file is not None
        for node in public(ast.parse(file.read_text())):
            if not isinstance(node, ast.ClassDef):
                continue
            for item in node.body:
                if isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef):
                    methods += 1
                    if not ast.get_docstring(item):
                        bare.append(f"{module}.{node.name}.{item.name}")
    assert methods > 20
    assert not bare
