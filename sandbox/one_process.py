"""Finds parts of a test that work only in the candidate's process.

It reads the tests before anything runs; docs/sandbox.md lists the shapes. No verdict on such tests
would be reliable, so there is none.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gatekeeper.sandbox.inside.nodes import FUNCTIONS, names_test, walk
from gatekeeper.sandbox.inside.surroundings import REPLACEABLE
from gatekeeper.sandbox.inside.wrapped import wrapped
from gatekeeper.sandbox.usage import (
    ABOUT,
    dotted,
    is_class,
    is_scalar,
    made_by,
    name_of,
    taken_as_data,
    uses_object,
)

__all__ = ["problem_of"]

_FILES = frozenset({"open", "tmp_path", "tmpdir", "tmp_path_factory", "TemporaryDirectory"})
_PATHS = frozenset({"Path", "pathlib"})
_FILE_CALLS = frozenset(
    """
    exists isfile isdir remove unlink listdir mkdir makedirs rmdir chdir rename walk
    scandir read_text write_text read_bytes write_bytes
    """.split()  # noqa: SIM905
)
_PATH_CALLS = frozenset(
    """
    exists is_file is_dir iterdir read_text write_text read_bytes write_bytes touch unlink mkdir
    rmdir glob rglob
    """.split()  # noqa: SIM905
)
_SAME_PROCESS = {  # modules that look into objects which are in another process here
    **dict.fromkeys(("gc", "tracemalloc", "dis", "ctypes"), "looks into memory"),
    **dict.fromkeys(("subprocess", "multiprocessing"), "starts processes of its own"),
    **dict.fromkeys(
        ("pandas", "polars", "torch", "tensorflow"),
        "has data that cannot be sent between processes",
    ),
    **dict.fromkeys(("timeit", "cProfile", "resource"), "measures another process"),
}
_STREAMS = {("sys", "stdin"), ("sys", "stdout"), ("sys", "stderr"), ("os", "environ")}
_PICKLES = frozenset({"pickle", "marshal", "dill", "cloudpickle", "shelve", "copyreg"})
_RUNS = frozenset({"eval", "exec", "compile", "system", "popen", "__import__"})
_INNARDS = {  # functions that look at, or change, the process that they run in -> their modules
    **dict.fromkeys(("getsource", "getsourcelines", "currentframe", "stack"), "inspect"),
    **dict.fromkeys(("settrace", "setrecursionlimit", "_getframe"), "sys"),
    **dict.fromkeys(("getcontext", "setcontext", "localcontext"), "decimal"),
    "get_type_hints": "typing",
    "testmod": "doctest",
    "run_docstring_examples": "doctest",
}


def problem_of(nodes: Sequence[ast.AST], theirs: set[str], modules: frozenset[str]) -> str:
    """Why no verdict would be reliable with two processes; empty if one is.

    Parameters
    ----------
    nodes
        All nodes of the tests.
    theirs
        Names of the candidate's that the tests use, some of them dotted.
    modules
        Module names that mean the candidate.
    """
    for found in (*_decorated(nodes, theirs), *_repeated(nodes, theirs)):
        return found
    raised = _raised(nodes)
    errors = ("Error", "Exception", "Warning")  # how their names end
    known = _Names(
        theirs=frozenset(theirs),
        modules=modules,
        raised=frozenset(n for n in theirs if n in raised or n.endswith(errors)),
        paths=any(isinstance(n, (ast.Name, ast.alias)) and name_of(n) in _PATHS for n in nodes),
        classes=any(is_class(name, nodes) for name in theirs),
    )
    for node in nodes:
        if isinstance(node, _SHARING) and (found := _shared_state(node, known)):
            return found
    return _classes_as_data(nodes, theirs)


def _decorated(nodes: Sequence[ast.AST], theirs: set[str]) -> Iterator[str]:
    """Problems with test classes that the candidate decorates, and so could replace.

    (The judge looks inside decorated functions.)
    """
    for node in nodes:
        if isinstance(node, ast.ClassDef) and names_test(node):
            for decorator in node.decorator_list:
                if theirs & {n.id for n in walk(decorator) if isinstance(n, ast.Name)}:
                    yield f"{ast.unparse(decorator)!r} of the candidate's decorates {node.name}"


def _repeated(nodes: Sequence[ast.AST], theirs: set[str]) -> Iterator[str]:
    """Problems with tests that run several times, and that the candidate decorates.

    (The judge sees that such a test ran to its end, but not in which of its runs.)
    """
    kinds = [node for node in nodes if isinstance(node, ast.ClassDef)]
    extended = {getattr(base, "id", "") for kind in kinds for base in kind.bases}
    several = {id(part) for kind in kinds if kind.name in extended for part in kind.body}
    several |= {
        id(node)
        for node in nodes
        if isinstance(node, FUNCTIONS)
        and any("parametrize" in ast.unparse(decorator) for decorator in node.decorator_list)
    }
    for test in wrapped(nodes, frozenset(theirs)):
        if id(test) in several:
            yield f"the candidate decorates {test.name}, and could leave out some of its runs"


@dataclass(frozen=True, slots=True)
class _Names:
    """What is known of the names of a test program."""

    theirs: frozenset[str]  # the candidate's
    modules: frozenset[str]  # that are the candidate
    raised: frozenset[str]  # exceptions among the candidate's
    paths: bool  # whether the tests use pathlib
    classes: bool  # whether there are classes among the candidate's


_SHARING = (ast.Import, ast.ImportFrom, ast.ClassDef, ast.Attribute, ast.arg, ast.Call)


def _shared_state(node: ast.AST, names: _Names) -> str:
    """State that tests and candidate can share only in one process."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        roots = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        for root in (*roots, getattr(node, "module", None) or ""):
            if why := _SAME_PROCESS.get(root.partition(".")[0]):
                return f"{root} {why}"
    if isinstance(node, ast.ClassDef):
        for base in node.bases:
            name = dotted(base)
            if name in names.theirs and name not in names.raised:
                return f"{node.name} extends {name}, a class of the candidate's"
    if isinstance(node, ast.Attribute):
        owner = dotted(node.value)
        if owner == _INNARDS.get(node.attr) or node.attr == "__subclasses__":
            return f"{owner}.{node.attr} is about the candidate's process"
        known = (owner, node.attr) in _STREAMS or node.attr in REPLACEABLE.get(owner, ())
        if isinstance(node.ctx, ast.Store) and owner in sys.stdlib_module_names and not known:
            return f"{owner}.{node.attr} would have to change in the candidate's process"
    if isinstance(node, ast.arg) and node.arg in _FILES:
        return f"{node.arg}: tests and candidate would share files"
    if not isinstance(node, ast.Call) or name_of(node.func) in names.theirs:
        return ""  # the candidate's function of that name runs in its own process
    function = node.func
    if isinstance(function, ast.Name) and function.id in _FILES:
        return f"{function.id}: tests and candidate would share files"
    owner = ""
    if isinstance(function, ast.Attribute):
        owner = dotted(function.value)
        on_files = owner in ("os", "os.path", "shutil") and function.attr in _FILE_CALLS
        on_paths = names.paths and function.attr in _PATH_CALLS
        if on_files or on_paths or owner.startswith("tempfile"):
            return f"{owner}.{function.attr}: tests and candidate would share files"
    name = name_of(function) or getattr(function, "attr", "")
    of_python = isinstance(function, ast.Name) or owner in ("os", "builtins", "importlib")
    if name in _RUNS and of_python and not all(isinstance(a, ast.Constant) for a in node.args):
        return f"{name} would run what the candidate gave in the process of the tests"
    if owner in _PICKLES:
        own = [a for a in node.args if isinstance(a, ast.Call) and dotted(a.func).endswith("s")]
        if names.classes or (name in ("load", "loads") and not own):
            return f"{dotted(function)} runs or copies what the candidate gave"
    if isinstance(function, ast.Name) and name in _INNARDS:
        return f"{name} is about the candidate's process"
    if name == "patch":
        return _patched(node, names.modules)
    if dotted(function).endswith(("patch.object", "monkeypatch.setattr")):
        return _patched_object(node, names.modules)
    return ""


def _raised(nodes: Sequence[ast.AST]) -> set[str]:
    """Names that the tests use as exceptions."""
    kinds: list[ast.AST | None] = []
    for node in nodes:
        if isinstance(node, ast.ExceptHandler):
            kinds += [node.type, *getattr(node.type, "elts", ())]
        elif isinstance(node, ast.Raise):
            kinds += [node.exc, getattr(node.exc, "func", None)]
        elif isinstance(node, ast.Call) and dotted(node.func).endswith(("raises", "Raises")):
            kinds += node.args
    return {kind.id for kind in kinds if isinstance(kind, ast.Name)}


def _patched_object(node: ast.Call, modules: frozenset[str]) -> str:
    """As `_patched`, for a call with the object and a name."""
    if len(node.args) < 2 or not isinstance(node.args[0], ast.Name):
        return ""
    module, name = node.args[0].id, getattr(node.args[1], "value", None)
    known = name in REPLACEABLE.get(module, ()) or (module, name) in _STREAMS
    if module in modules or known or module not in sys.stdlib_module_names:
        return ""
    return f"{module}.{name} would have to change in the candidate's process"


def _patched(node: ast.Call, modules: frozenset[str]) -> str:
    """The problem with a mock that replaces something in the candidate's process; empty if none."""
    if not node.args or not isinstance(node.args[0], ast.Constant):
        return ""
    target = str(node.args[0].value)
    module, _, name = target.rpartition(".")
    if module.partition(".")[0] in modules or name in REPLACEABLE.get(module, ()):
        return ""
    if (module, name) in _STREAMS:
        return ""
    return f"patch({target!r}) would have to change the candidate's process"


def _classes_as_data(nodes: Sequence[ast.AST], theirs: set[str]) -> str:
    """The problem with an object of a class under test that is compared with a number or text.

    The object's own methods would decide. (One that is compared with a list may extend `list`: then
    the judge has its value.)
    """
    negated = {id(node.operand) for node in nodes if isinstance(node, ast.UnaryOp)}
    for name in theirs:
        if not name.rpartition(".")[2][:1].isupper():
            continue
        made = made_by(nodes, name)
        used = uses_object(nodes, name)
        for node in nodes:
            if isinstance(node, ast.Compare) and (
                isinstance(node.ops[0], ast.NotEq) or id(node) in negated
            ):
                continue  # every object differs from data
            if used and taken_as_data(node, name, is_scalar):
                return f"an object of {name} is compared with data: its methods would decide"
            if isinstance(node, ast.Compare):
                sides = [node.left, *node.comparators]
                mine = [s for s in sides if isinstance(s, ast.Name) and s.id in made]
                others = [side for side in sides if side not in mine]
                if mine and not isinstance(node.ops[0], ABOUT) and any(map(is_scalar, others)):
                    return f"an object of {name} is compared with data: its methods would decide"
    return ""
