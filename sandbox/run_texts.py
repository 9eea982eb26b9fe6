"""Finds tests that run, by name, what a candidate gave: a text, a pickle, what a text names.

It would run in the process of the tests. Such tests get the same answer for every candidate; what
no name shows is stopped there when it runs (`inside/texts.py`).
"""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Iterator, Sequence

from gatekeeper.io.syntax import parse_python
from gatekeeper.sandbox.inside.nodes import walk
from gatekeeper.sandbox.meanings import TEXTS, Names
from gatekeeper.sandbox.usage import is_data

__all__ = ["constant_programs", "imports_all", "passed_on", "runs"]

_PICKLES = frozenset({"pickle", "_pickle", "marshal", "dill", "cloudpickle", "shelve", "copyreg"})
_UNPICKLES = frozenset({"load", "loads", "Unpickler", "open"})
_RUNS = frozenset(  # functions that run a text, or what a text names, by what they mean
    {
        *(f"builtins.{name}" for name in TEXTS),
        *("os.system", "os.popen", "os.posix_spawn", "os.posix_spawnp", "importlib.__import__"),
        *(f"os.{run}{how}" for run in ("exec", "spawn") for how in ("l", "le", "lp", "lpe")),
        *(f"os.{run}{how}" for run in ("exec", "spawn") for how in ("v", "ve", "vp", "vpe")),
        *("asyncio.create_subprocess_shell", "asyncio.create_subprocess_exec"),
        *(f"jinja2.{loader}" for loader in ("DictLoader", "FunctionLoader")),  # see `texts.py`
        *("logging.config.dictConfig", "logging.config.fileConfig", "logging.config.listen"),
        *("logging.config.DictConfigurator", "logging.config.dictConfigClass"),
    }
)
_LAST = _UNPICKLES.union(name.rpartition(".")[2] for name in _RUNS)
_RUN = "{} would run what the candidate gave in the process of the tests"


def runs(node: ast.Call, names: Names) -> str:
    """The problem with a call that runs what the candidate gave; empty if it does not."""
    full = names.meaning(node.func)
    owner, _, name = full.rpartition(".")
    given = [*node.args, *(keyword.value for keyword in node.keywords)] or [ast.Constant(None)]
    if full in _RUNS:
        shown = given[:1] if owner == "builtins" else given
        if not all(isinstance(item, ast.Constant) or is_data(item) for item in shown):
            return _RUN.format(name)
    if full == "getattr" and names.of_library(given[0]) in (
        "builtins",
        "os",
        "logging.config",
        *_PICKLES,
    ):
        known = (isinstance(i, ast.Constant) and i.value not in _LAST for i in given[1:])
        return "" if all(known) else _RUN.format(name)
    if owner in _PICKLES:
        own = [a for a in given if isinstance(a, ast.Call)]
        own = [a for a in own if names.meaning(a.func).partition(".")[0] in _PICKLES]
        if names.classes or (name in _UNPICKLES and not own):
            return f"{full} runs or copies what the candidate gave"
    parses = names.examples and name in ("get_doctest", "get_examples")
    return _RUN.format(name) if parses and not isinstance(given[0], ast.Constant) else ""


def imports_all(node: ast.ImportFrom) -> str:
    """The problem with `from pickle import *`, which hides the names; empty for other imports."""
    every = node.module in _PICKLES and any(alias.name == "*" for alias in node.names)
    return _RUN.format(f"{node.module}.*") if every else ""


def constant_programs(nodes: Sequence[ast.AST], names: Names) -> Iterator[ast.AST]:
    """The nodes of constant texts that the tests run."""
    for node in nodes:
        if isinstance(node, ast.Call) and names.meaning(node.func) in _RUNS and node.args:
            text = getattr(node.args[0], "value", None)
            if isinstance(text, str):
                with contextlib.suppress(SyntaxError, ValueError, RecursionError, MemoryError):
                    yield from walk(parse_python(text))


def passed_on(nodes: Sequence[ast.AST], names: Names) -> str:
    """The problem with a function that runs texts, where it is not called, as in `map(eval, …)`."""
    direct = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
    for node in nodes:
        if isinstance(node, ast.Name):
            known = node.id in TEXTS or node.id in names.imported
        else:
            known = isinstance(node, ast.Attribute) and node.attr in _LAST
        if known and id(node) not in direct:
            owner, _, name = names.meaning(node).rpartition(".")
            if f"{owner}.{name}" in _RUNS or (owner in _PICKLES and name in _UNPICKLES):
                return _RUN.format(name)
    return ""
