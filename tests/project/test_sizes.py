"""Limits on the length of files, the methods of classes and the parameters of functions."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDERS = ("gatekeeper", "adapters", "sandbox", "tools", "examples", "benchmarks")
LINES, METHODS, PARAMETERS = 410, 28, 7  # "about" 400 lines and 25 methods

# What users call as they call a constructor: each parameter is a setting that they name.
CONSTRUCTORS = {"adapters/inspect_ai/scorer.py:_gated"}


def sources() -> Iterator[tuple[str, str]]:
    """Path from the root, and text, of every file of ours that is not a test."""
    for folder in FOLDERS:
        for file in sorted((ROOT / folder).rglob("*.py")):
            if not any(parent.is_symlink() for parent in file.parents):
                yield str(file.relative_to(ROOT)), file.read_text()


def test_no_file_is_long() -> None:
    lines = {path: text.count("\n") for path, text in sources()}
    assert len(lines) > 200
    assert not {path for path, count in lines.items() if count > LINES}


def test_no_class_has_many_methods() -> None:
    functions = ast.FunctionDef | ast.AsyncFunctionDef
    methods = {
        f"{path}:{node.name}": sum(isinstance(item, functions) for item in node.body)
        for path, text in sources()
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.ClassDef)
    }
    assert len(methods) > 200
    assert not {name: count for name, count in methods.items() if count > METHODS}


def test_no_function_takes_many_parameters() -> None:
    """Constructors apart, in which users name each one."""
    counts = {}
    for path, text in sources():
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                names = [a.arg for a in (*node.args.posonlyargs, *node.args.args)]
                own = len(names) - (names[:1] in (["self"], ["cls"])) + len(node.args.kwonlyargs)
                if node.name != "__init__":
                    counts[f"{path}:{node.name}"] = own
    assert len(counts) > 1000
    assert {name for name, count in counts.items() if count > PARAMETERS} == CONSTRUCTORS
