"""Finds parts of a test that work only in the candidate's process.

It reads the tests before anything runs; docs/sandbox.md lists the shapes. No verdict on such tests
would be reliable, so there is none.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from gatekeeper.sandbox.chosen_names import sets_names
from gatekeeper.sandbox.comparisons import unreliable
from gatekeeper.sandbox.given import Given
from gatekeeper.sandbox.inside.assertions import called
from gatekeeper.sandbox.inside.nodes import FUNCTIONS, names_test
from gatekeeper.sandbox.inside.surroundings import REPLACEABLE
from gatekeeper.sandbox.inside.wrapped import lists_cases, mentions, wrapped
from gatekeeper.sandbox.meanings import Names, bound, imported
from gatekeeper.sandbox.run_texts import constant_programs, imports_all, passed_on, runs
from gatekeeper.sandbox.usage import dotted, is_class, name_of

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
    "multiprocessing": "starts processes of its own",
    **dict.fromkeys(
        ("polars", "sympy", "torch", "tensorflow"),
        "has data that cannot be sent between processes",
    ),
    **dict.fromkeys(("timeit", "cProfile", "resource"), "measures another process"),
    **dict.fromkeys(
        """
        freezegun time_machine responses requests_mock httpretty respx aioresponses pyfakefs vcr
        """.split(),  # noqa: SIM905
        "replaces parts of its own process",
    ),
    **dict.fromkeys(("code", "pdb", "profile", "pty", "runpy", "trace"), "runs texts"),
}
_REPLACING = frozenset({"freezer", "requests_mock", "httpx_mock"})  # fixtures of plugins
_FOLLOWED = {*(("sys", name) for name in ("argv", "stdin", "stdout", "stderr")), ("os", "environ")}
_PATCHES = (".patch", ".patch.object", ".patch.multiple")
_OPTIONS = frozenset({"target", "spec", "create", "spec_set", "autospec", "new_callable"})
# Modules that the sandbox itself uses meanwhile: of them, only what is followed may be replaced.
_OURS = frozenset(
    """
    __main__ _thread abc ast asyncio atexit builtins codecs collections contextlib copy dataclasses
    enum functools gc importlib inspect io itertools logging math operator pickle pytest re signal
    struct sys threading types typing unittest warnings weakref
    """.split()  # noqa: SIM905
)
_INNARDS = {  # functions that look at, or change, the process that they run in -> their modules
    **dict.fromkeys(("getsource", "getsourcelines", "currentframe", "stack"), "inspect"),
    "getattr_static": "inspect",
    **dict.fromkeys(("settrace", "setrecursionlimit", "_getframe"), "sys"),
    "get_type_hints": "typing",
    "ProcessPoolExecutor": "concurrent.futures",
    **dict.fromkeys(("active_count", "enumerate"), "threading"),
    **dict.fromkeys(("getstate", "setstate"), "random"),
    **dict.fromkeys(("getsignal", "raise_signal"), "signal"),
    "kill": "os",
    "register": "atexit",
    **dict.fromkeys(("run", "Popen", "call", "check_call", "check_output"), "subprocess"),
    **dict.fromkeys(("getoutput", "getstatusoutput"), "subprocess"),
    **dict.fromkeys(("gca", "gcf", "get_fignums", "fignum_exists"), "matplotlib.pyplot"),
    **dict.fromkeys(("testmod", "testfile", "run_docstring_examples", "DocTestFinder"), "doctest"),
    **dict.fromkeys(("DocTestSuite", "DocFileSuite", "DocTest", "Example"), "doctest"),
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
    known = Names(
        theirs=frozenset(theirs),
        modules=modules,
        raised=frozenset(n for n in theirs if n in raised or n.endswith(errors)),
        paths=any(isinstance(n, (ast.Name, ast.alias)) and name_of(n) in _PATHS for n in nodes),
        examples=any("doctest" in (name_of(n), getattr(n, "module", "")) for n in nodes),
        classes=any(is_class(name, nodes) for name in theirs),
        imported=imported(nodes),
        bound=frozenset(bound(nodes)),
    )
    nodes = [*nodes, *constant_programs(nodes, known)]
    for node in nodes:
        if isinstance(node, _SHARING) and (found := _shared_state(node, known)):
            return found
    found = passed_on(nodes, known) or sets_names(nodes, known) or unreliable(nodes, known)
    return found or _ended(nodes, known)


def _decorated(nodes: Sequence[ast.AST], theirs: set[str]) -> Iterator[str]:
    """Problems with test classes that the candidate decorates, and so could replace.

    (The judge looks inside decorated functions.)
    """
    for node in nodes:
        if isinstance(node, ast.ClassDef) and names_test(node):
            for decorator in node.decorator_list:
                if mentions([decorator], theirs) and not lists_cases(decorator, theirs):
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
    for node in nodes:
        for keyword in getattr(node, "keywords", ()) if called(node) == "fixture" else ():
            written = isinstance(keyword.value, (ast.List, ast.Tuple))
            if keyword.arg == "params" and not written and mentions([keyword.value], theirs):
                yield f"params={ast.unparse(keyword.value)} could leave out some runs"
    for test in wrapped(nodes, frozenset(theirs)):
        if id(test) in several:
            yield f"the candidate decorates {test.name}, and could leave out some of its runs"


_SHARING = (
    *(ast.Import, ast.ImportFrom, ast.ClassDef, ast.Attribute, ast.arg, ast.Call, ast.Subscript),
    ast.Compare,
)


def _shared_state(node: ast.AST, names: Names) -> str:
    """State that tests and candidate can share only in one process."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        return _needed(node, names.modules)
    if isinstance(node, ast.ClassDef):
        for base in node.bases:
            name = dotted(base)
            if name in names.theirs and name not in names.raised:
                return f"{node.name} extends {name}, a class of the candidate's"
    if isinstance(node, ast.Attribute):
        owner = names.meaning(node.value)
        if owner in names.modules and node.attr in ("__all__", "__doc__"):
            return f"{owner}.{node.attr} is not shown"
        if owner == _INNARDS.get(node.attr) or node.attr == "__subclasses__":
            return f"{owner}.{node.attr} is about the candidate's process"
        known = (owner, node.attr) in _FOLLOWED or node.attr in REPLACEABLE.get(owner, ())
        if isinstance(node.ctx, ast.Store) and owner in sys.stdlib_module_names and not known:
            return f"{owner}.{node.attr} would have to change in the candidate's process"
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
        return _of_modules(node.value, names)
    if isinstance(node, ast.Compare):
        return _types([node.left, *node.comparators], names)
    if isinstance(node, ast.arg) and node.arg in _FILES:
        return f"{node.arg}: tests and candidate would share files"
    if isinstance(node, ast.arg) and node.arg in _REPLACING:
        return f"{node.arg}: it replaces parts of the tests' process"
    if not isinstance(node, ast.Call) or name_of(node.func) in names.theirs:
        return ""  # the candidate's function of that name runs in its own process
    return _called(node, names)


def _ended(nodes: Sequence[ast.AST], names: Names) -> str:
    """The problem with an object of both sides that the tests delete; empty if there is none.

    Each side keeps what the other may ask it for, so weak references do not end.
    """
    targets = (part for node in nodes if isinstance(node, ast.Delete) for part in node.targets)
    deleted = {*map(name_of, targets)}
    made = {
        name_of(target)
        for node in nodes
        if isinstance(node, ast.Assign) and called(node.value)[:1].isupper()
        for target in node.targets
    } & deleted
    if not made - {""}:
        return ""
    given = Given(nodes, names.theirs | names.modules)
    calls = [node for node in nodes if isinstance(node, ast.Call) and given.makes(node.func)]
    handed = {name_of(argument) for call in calls for argument in call.args}
    for name in sorted(made):
        if name in handed or given.makes(ast.Name(name)):
            return f"del {name}: an object that both sides have does not end"
    return ""


def _needed(node: ast.Import | ast.ImportFrom, modules: frozenset[str]) -> str:
    """The problem with what an import needs; empty if none."""
    roots = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
    module = getattr(node, "module", None) or ""
    for root in (*roots, module):
        why = _SAME_PROCESS.get(root.partition(".")[0])
        if why and root.partition(".")[0] not in modules:
            return f"{root} {why}"
    for alias in node.names if module else ():
        if _INNARDS.get(alias.name) == module:
            return f"{alias.name} is about the candidate's process"
    return imports_all(node) if isinstance(node, ast.ImportFrom) else ""


def _called(node: ast.Call, names: Names) -> str:
    """The problem with what is called; empty if none."""
    function = node.func
    owner, _, name = names.meaning(function).rpartition(".")
    full = f"{owner}.{name}"
    if isinstance(function, ast.Name) and function.id in _FILES:
        return f"{function.id}: tests and candidate would share files"
    on_files = owner in ("os", "os.path", "shutil") and name in _FILE_CALLS
    on_paths = isinstance(function, ast.Attribute) and names.paths and name in _PATH_CALLS
    if on_files or on_paths or owner.startswith("tempfile"):
        return f"{full}: tests and candidate would share files"
    if found := runs(node, names):
        return found
    if isinstance(function, ast.Name) and _INNARDS.get(name) == owner:
        return f"{name} is about the candidate's process"
    if name in ("dict", "setitem"):  # of `patch`, of `monkeypatch`
        return "".join(_of_modules(item, names) for item in node.args[:1])
    if name in ("update", "setdefault") and isinstance(function, ast.Attribute):
        return _of_modules(function.value, names)
    if name in ("setattr", "delattr") or full.endswith(_PATCHES):
        return _replaced(node, full, names)
    if name == "issubclass" and len(node.args) == 2 and _is_hidden(node.args, names):
        return f"{ast.unparse(node)}: of a class, such bases are not shown"
    return _types(node.args, names) if name in ("assertIs", "assertEqual") else ""


def _types(sides: Sequence[ast.AST], names: Names) -> str:
    """The problem with a class that is compared with one of a package; empty if none is."""
    asked = any(isinstance(side, ast.Call) and name_of(side.func) == "type" for side in sides)
    for side in sides if asked else ():
        if _of_package(side, names):
            return f"type(…) is {ast.unparse(side)}: isinstance finds the class of a package"
    return ""


def _is_hidden(asked: Sequence[ast.AST], names: Names) -> bool:
    """Whether a class does not show that it extends another: one of a package, or of Python's."""
    kind, base = asked
    if _of_package(base, names):
        return True
    if dotted(kind) not in names.theirs or dotted(base) in names.bound | names.theirs:
        return False
    module, _, name = names.meaning(base).rpartition(".")
    if module:
        return module in sys.stdlib_module_names - {"abc", "enum", "numbers", "typing"}
    return name in ("list", "dict", "set", "bytearray", "type")


def _of_package(node: ast.AST, names: Names) -> bool:
    """Whether a node is something of a package, whose objects are not sent by value."""
    if not isinstance(node, ast.Name | ast.Attribute):
        return False
    first, found = dotted(node).partition(".")[0], names.meaning(node)
    if first in names.bound | names.theirs or "." not in found:
        return False
    known = {*sys.stdlib_module_names, *names.modules, "builtins", "numpy", "pandas"}
    return found.partition(".")[0] not in known


def _of_modules(node: ast.AST, names: Names) -> str:
    """The problem with a change of `sys.modules`; empty if a node is anything else."""
    known = "sys.modules" in (names.meaning(node), getattr(node, "value", ""))
    return "sys.modules would have to change in the candidate's process" if known else ""


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


def _follows(owner: str, name: object, *, noticed: bool = True) -> bool:
    """Whether the candidate's process follows a change of an attribute of a module or a class.

    `noticed`: by `patch` or `monkeypatch`, not by `setattr` itself.
    """
    if name in REPLACEABLE.get(owner, ()) or (owner, name) in _FOLLOWED:
        return True
    return noticed and (owner.partition(".")[0] not in _OURS or (owner, name) == ("sys", "exit"))


def _replaced(node: ast.Call, full: str, names: Names) -> str:
    """The problem with what a mock or `setattr` replaces for both processes; empty if none."""
    keywords = {keyword.arg: keyword.value for keyword in node.keywords}
    target = node.args[0] if node.args else keywords.get("target", node)
    text = getattr(target, "value", None)
    setting = called(node) == "setattr" and isinstance(node.func, ast.Attribute)
    noticed = setting or full.endswith(_PATCHES)
    if full.endswith("patch.multiple"):
        owner = text if isinstance(text, str) else names.of_library(target)
        replaced: list[Any] = [name for name in keywords if name not in _OPTIONS]
    elif isinstance(text, str):  # `patch("os.getcwd")`, `monkeypatch.setattr("os.getcwd", …)`
        owner, _, name = text.rpartition(".")
        replaced = [] if "/" in text else [name]  # as `client.patch("/users/1.json")` has it
    elif full.endswith(".patch"):
        return ""
    else:
        named = [*node.args[1:2], *(keywords[key] for key in ("attribute",) if key in keywords)]
        owner = names.of_library(target) if isinstance(target, ast.Name | ast.Attribute) else ""
        replaced = [getattr(name, "value", None) for name in named]
    for name in replaced if owner.partition(".")[0] not in {"", *names.modules} else ():
        if not _follows(owner, name, noticed=noticed):
            return f"{owner}.{name} would have to change in the candidate's process"
    return ""
