"""Reads tests before they run: what of them is the candidate's, and whether a verdict is sound.

Decided here, by the text of the tests alone, so that no candidate has a say in it:

- which names are the candidate's (`Reading.asked`, `real`): what the task states, else what only a
  candidate can define. A name of Python's or of a usual library is the candidate's only where its
  value is compared; a yes or no is believed of no such name.
- which modules the tests need (`needs`), and which are the candidate (`modules`).
- whether they can be judged with the candidate in another process (`problem`).
"""

from __future__ import annotations

import ast
import builtins
import collections
import functools
import itertools
import math
import symtable
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from gatekeeper.sandbox.inside.collect import asserts, swallows
from gatekeeper.sandbox.inside.surroundings import REPLACEABLE

__all__ = ["LIBRARY", "Reading", "read_tests"]

_LIBRARIES = {  # by the names that programs give them
    **{"np": "numpy", "pd": "pandas", "sp": "scipy", "nx": "networkx", "tf": "tensorflow"},
    **{"plt": "matplotlib.pyplot", "sns": "seaborn", "torch": "torch", "pytest": "pytest"},
}
LIBRARY: dict[str, str] = {  # what programs use without being about it -> module:name
    name: f"{module.__name__}:{name}"
    for module in (functools, itertools, collections, math)
    for name in vars(module)
    if not name.startswith("_")
} | {
    **{"deepcopy": "copy:deepcopy", "Decimal": "decimal:Decimal", "Fraction": "fractions:Fraction"},
    **{"dumps": "json:dumps", "loads": "json:loads"},
}
_BITS = frozenset({"isclose", "approx", "allclose", "raises", "isfinite", "isinf", "isnan"})
_FILES = frozenset({"open", "tmp_path", "tmpdir", "tmp_path_factory", "TemporaryDirectory"})
_PATHS = frozenset({"Path", "pathlib"})
_FILE_CALLS = frozenset(
    "exists isfile isdir remove unlink listdir mkdir makedirs rmdir chdir rename walk scandir "
    "read_text write_text read_bytes write_bytes".split()
)
_SAME_PROCESS = {  # modules that look into objects which are in another process here
    **dict.fromkeys(("gc", "tracemalloc", "dis", "ctypes"), "looks into memory"),
    **dict.fromkeys(("subprocess", "multiprocessing"), "starts processes of its own"),
    **dict.fromkeys(("pandas", "polars", "torch", "tensorflow"), "has data that does not travel"),
    **dict.fromkeys(("timeit", "cProfile", "resource"), "measures another process"),
}
_RUNS = frozenset({"eval", "exec", "compile", "system", "popen", "__import__"})
_PICKLES = frozenset({"pickle", "marshal", "dill", "cloudpickle", "shelve", "copyreg"})
_INNARDS = frozenset(
    "getsource getsourcelines currentframe stack settrace get_type_hints testmod assertLogs "
    "assertNoLogs assertWarns catch_warnings caplog recwarn warns __subclasses__".split()
)


@dataclass(frozen=True, slots=True)
class Reading:
    """What the tests of a task are about.

    Attributes
    ----------
    void
        Why the tests say nothing of a candidate, wherever it runs; empty where they do.
    problem
        Why no verdict would be sound with the candidate in another process; empty where one is.
    needs
        Top-level modules that the tests import, other than the candidate.
    modules
        Module names by which the tests import the candidate.
    asked
        Names of Python's or a library's that are under test here, and so the candidate's.
    real
        Names that the tests use without importing them -> what they mean, as "module:name".
    theirs
        Names that the tests use and the candidate defines.
    classes
        Names of the candidate's that the tests use as classes.
    alone
        Whether nothing but a module that is not there can be the candidate.
    main
        Whether what stands under `if __name__ == "__main__"` has to run: nothing else asserts.
    """

    void: str = ""
    problem: str = ""
    needs: frozenset[str] = frozenset()
    modules: frozenset[str] = frozenset()
    asked: frozenset[str] = frozenset()
    real: tuple[tuple[str, str], ...] = ()
    theirs: frozenset[str] = frozenset()
    classes: frozenset[str] = frozenset()
    alone: bool = False
    main: bool = False

    def told(self, entry: str | None) -> dict[str, Any]:
        """What the process of the tests has to know (sandbox/inside/judge.py)."""
        return {
            "asked": sorted(self.asked),
            "real": dict(self.real),
            "classes": sorted(self.classes),
            "theirs": sorted(self.theirs),
            "modules": sorted(self.modules),
            "module_name": "__main__" if self.main else "tests",
            "entry": entry or "",
        }


def read_tests(
    setup: str, tests: Sequence[str], *, entry: str | None, modules: frozenset[str]
) -> Reading:
    """Read a task's tests.

    Parameters
    ----------
    setup, tests
        Programs, run one after the other in one namespace. They can be parsed.
    entry
        The name under test, where the task states it.
    modules
        Module names that mean the candidate.
    """
    texts = [text for text in (setup, *tests) if text.strip()]
    trees = [ast.parse(text) for text in texts]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    modules = modules | _modules_of(nodes, entry)
    needs = frozenset(itertools.chain.from_iterable(map(_imported, trees))) - modules
    free = _free_names(texts)
    libraries = {n: _LIBRARIES[n] for n in free if n in _LIBRARIES and n != entry}
    standard = {n for n in free if n in sys.stdlib_module_names and _is_module(n, nodes)} - {entry}
    usual = {n for n in free if n in LIBRARY and n not in libraries}
    own = free - libraries.keys() - standard - usual - _builtin(free)
    imported = _names_from(nodes, modules)
    asked = {entry} if entry is not None else set()
    if entry is None:
        alone = not own and not imported
        asked |= {n for n in usual if not _helps(n, nodes, own | imported)}
        if alone and not asked:
            asked |= _the_only_call(nodes)
    real = {n: module for n, module in libraries.items()}
    real |= {n: n for n in standard}
    real |= {n: LIBRARY[n] for n in usual - asked}
    needs |= {module.partition(".")[0] for module in libraries.values()}
    theirs = own | imported | asked
    reached = _Reached(trees, entry)
    return Reading(
        void=_void(nodes, theirs, reached, entry),
        problem=_problem(trees, nodes, theirs, modules, needs),
        needs=needs,
        modules=modules,
        asked=frozenset(asked),
        real=tuple(sorted(real.items())),
        theirs=frozenset(theirs),
        classes=frozenset(n for n in theirs if _is_class(n, nodes)),
        alone=not (own or imported or entry),
        main=reached.main,
    )


# Names


def _builtin(names: set[str]) -> set[str]:
    return {name for name in names if hasattr(builtins, name)}


def _free_names(texts: Sequence[str]) -> set[str]:
    """Global names that the programs use and none of them binds."""
    used: set[str] = set()
    bound: set[str] = {"__name__", "__file__", "__doc__", "__builtins__"}
    for text in texts:
        tables = [symtable.symtable(text, "test.py", "exec")]
        top = tables[0]
        while tables:
            table = tables.pop()
            tables += table.get_children()
            for symbol in table.get_symbols():
                if table is top or symbol.is_global():
                    if symbol.is_assigned() or symbol.is_imported():
                        bound.add(symbol.get_name())
                    elif symbol.is_referenced():
                        used.add(symbol.get_name())
    return used - bound


def _modules_of(nodes: Sequence[ast.AST], entry: str | None) -> set[str]:
    """Modules that the tests import what is under test from."""
    return {
        node.module.partition(".")[0]
        for node in nodes
        if isinstance(node, ast.ImportFrom) and node.module and not node.level
        if entry is not None and entry in {alias.name for alias in node.names}
        if node.module.partition(".")[0] not in sys.stdlib_module_names
    }


def _names_from(nodes: Sequence[ast.AST], modules: frozenset[str]) -> set[str]:
    """Names that the tests import from the candidate, or as it."""
    found: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in modules:
            found |= {alias.asname or alias.name for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {
                (alias.asname or alias.name).partition(".")[0]
                for alias in node.names
                if alias.name.partition(".")[0] in modules
            }
    return found


def _imported(program: ast.AST) -> Iterator[str]:
    """Top-level modules that are imported, except where the code is ready to do without."""
    for node in ast.iter_child_nodes(program):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]
        elif not isinstance(node, ast.Try):
            yield from _imported(node)


def _is_module(name: str, nodes: Sequence[ast.AST]) -> bool:
    """Whether a name is only used for its attributes: a function may be called `code` or `copy`."""
    uses = [node for node in nodes if isinstance(node, ast.Name) and node.id == name]
    bases = [node.value for node in nodes if isinstance(node, ast.Attribute)]
    return len(uses) == sum(isinstance(base, ast.Name) and base.id == name for base in bases)


def _helps(name: str, nodes: Sequence[ast.AST], theirs: set[str]) -> bool:
    """Whether tests use a usual function to look at what the candidate gave, and not for itself.

    It gets a call of the candidate's as an argument, stands on both sides of a comparison, or can
    only say yes or no.
    """
    if name in _BITS:
        return True
    for node in nodes:
        if isinstance(node, ast.Compare):
            sides = [side for side in (node.left, *node.comparators) if _makes(side, name)]
            if len(sides) > 1:
                return True
        elif isinstance(node, ast.Call) and _makes(node, name):
            inside = [n for part in (*node.args, *node.keywords) for n in ast.walk(part)]
            called = {_name(n.func) for n in inside if isinstance(n, ast.Call)}
            if called & theirs:
                return True
    return False


def _the_only_call(nodes: Sequence[ast.AST]) -> set[str]:
    """A built-in name that must be what is tested: the tests call no other."""
    called = {
        node.func.id
        for node in nodes
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    called -= {"print"}
    return called if len(called) == 1 and all(hasattr(builtins, n) for n in called) else set()


# Classes


def _is_class(name: str, nodes: Sequence[ast.AST]) -> bool:
    """Whether a name is meant as a class: the tests use what it makes as an object, not as data.

    By convention it begins with a capital letter. `abs(Area(2) - 12.6)` takes the value of a
    function: a class that a candidate puts there is not given anything to answer for.
    """
    if not name[:1].isupper():
        return False
    return not any(_taken_as_data(node, name) for node in nodes)


def _makes(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name


_ABOUT = ast.In | ast.NotIn | ast.Is | ast.IsNot  # an object may be asked what it holds
_NUMBERS = frozenset({"abs", "round", "int", "float", "bool", "len"})


def _taken_as_data(
    node: ast.AST, name: str, is_data: Callable[[ast.AST], bool] | None = None
) -> bool:
    """Whether what `name(…)` makes is compared with data, asserted, or put into a number."""
    if isinstance(node, ast.Assert | ast.Return):
        inner = node.test if isinstance(node, ast.Assert) else None
        if isinstance(inner, ast.UnaryOp):
            inner = inner.operand
        return inner is not None and _makes(inner, name)
    if isinstance(node, ast.Compare) and not isinstance(node.ops[0], _ABOUT):
        sides = [node.left, *node.comparators]
        mine = [side for side in sides if _gives(side, name)]
        return bool(mine) and any((is_data or _is_data)(side) for side in sides if side not in mine)
    if isinstance(node, ast.Call) and _name(node.func) in _NUMBERS:
        return any(isinstance(a, ast.BinOp) and _gives(a, name) for a in node.args)
    return False


def _gives(node: ast.AST, name: str) -> bool:
    """`name(…)`, or arithmetic of that and data."""
    if isinstance(node, ast.BinOp):
        sides = (node.left, node.right)
        return any(_gives(s, name) for s in sides) and any(_is_data(s) for s in sides)
    return _makes(node, name)


def _is_data(node: ast.AST) -> bool:
    """A literal, or arithmetic of literals."""
    if isinstance(node, ast.Constant):
        return node.value is not None
    inner = (ast.List, ast.Tuple, ast.Dict, ast.Set, ast.UnaryOp, ast.BinOp)
    return isinstance(node, inner) and not any(
        isinstance(part, ast.Name | ast.Call) for part in ast.walk(node)
    )


def _is_scalar(node: ast.AST) -> bool:
    return _is_data(node) and not isinstance(node, ast.List | ast.Tuple | ast.Dict | ast.Set)


# Assertions that run


class _Reached:
    """The assertions that a run reaches: those of top-level code, of tests, and what they call."""

    def __init__(self, trees: Sequence[ast.Module], entry: str | None) -> None:
        self.functions: dict[str, list[ast.AST]] = {}
        for tree in trees:
            for node in ast.walk(tree):
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
                    self.functions.setdefault(getattr(node, "name", ""), []).append(node)
        body = [node for tree in trees for node in tree.body]
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
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and top:
                run = node.name.startswith(("test", "runTest"))
                run = run or (node.name == "check" and entry is not None)
                todo += [(decorator, False) for decorator in node.decorator_list]
                if not run or id(node) in seen:
                    continue
            elif isinstance(node, ast.ClassDef) and top:
                todo += [(item, self._is_collected(node)) for item in node.body]
                for item in node.body if self._is_collected(node) else ():
                    name = getattr(item, "name", "")
                    if name.lower().startswith(("setup", "teardown", "asyncsetup")):
                        todo.append((item, False))
                continue
            if id(node) in seen:
                continue
            seen.add(id(node))
            found.append(node)
            name = _name(node) or getattr(node, "attr", None) or getattr(node, "arg", None) or ""
            todo += [(function, False) for function in self.functions.get(name, ())]
            if swallows(node):
                quiet = {id(n) for statement in node.body for n in ast.walk(statement)}  # type: ignore[attr-defined]
                seen |= {n for n in quiet}
            todo += [(child, False) for child in ast.iter_child_nodes(node)]
        return found

    @staticmethod
    def _is_collected(node: ast.ClassDef) -> bool:
        bases = " ".join(ast.unparse(base) for base in node.bases)
        return node.name.startswith("Test") or "Test" in bases


def _is_main_guard(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and any(
        isinstance(part, ast.Name) and part.id == "__name__" for part in ast.walk(node.test)
    )


# What cannot be judged


def _void(nodes: Sequence[ast.AST], theirs: set[str], reached: _Reached, entry: str | None) -> str:
    if not any(map(asserts, reached.nodes)):
        return "no assertion of them would run"
    if entry is not None and any(getattr(node, "name", "") == "check" for node in nodes):
        return ""
    if not theirs & {node.id for node in nodes if isinstance(node, ast.Name)}:
        return "they use nothing that only a candidate defines: say what is tested, as entry_point"
    return ""


def _problem(
    trees: Sequence[ast.Module],
    nodes: Sequence[ast.AST],
    theirs: set[str],
    modules: frozenset[str],
    needs: frozenset[str],
) -> str:
    for tree in trees:
        for found in (*_decorated(tree, theirs), *_untold_arguments(tree, needs)):
            return found
    paths = any(isinstance(n, ast.Name | ast.alias) and _name(n) in _PATHS for n in nodes)
    classes = any(_is_class(name, nodes) for name in theirs)
    for node in nodes:
        if found := _shared_state(node, theirs, modules, paths=paths, classes=classes):
            return found
    return _classes_as_data(nodes, theirs)


def _name(node: ast.AST) -> str:
    return getattr(node, "id", None) or getattr(node, "name", None) or ""


def _decorated(tree: ast.Module, theirs: set[str]) -> Iterator[str]:
    """Classes of tests that the candidate would replace; of functions the judge looks inside."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and node.name.startswith("Test"):
            for decorator in node.decorator_list:
                if theirs & {n.id for n in ast.walk(decorator) if isinstance(n, ast.Name)}:
                    yield f"{ast.unparse(decorator)!r} of the candidate's decorates {node.name}"


def _untold_arguments(tree: ast.Module, needs: frozenset[str]) -> Iterator[str]:
    """Tests that want arguments which nobody gives them."""
    if "pytest" in needs:
        return
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not node.decorator_list:
            required = len(node.args.args) - len(node.args.defaults)
            if node.name.startswith("test") and required:
                yield f"{node.name} takes arguments that only pytest could give: import pytest"


def _shared_state(
    node: ast.AST, theirs: set[str], modules: frozenset[str], *, paths: bool, classes: bool
) -> str:
    """What tests and candidate can only share in one process."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        roots = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        for root in (*roots, getattr(node, "module", None) or ""):
            if why := _SAME_PROCESS.get(root.partition(".")[0]):
                return f"{root} {why}"
    if isinstance(node, ast.ClassDef):
        for base in node.bases:
            name = _name(base)
            if name in theirs and not name.endswith(("Error", "Exception", "Warning")):
                return f"{node.name} extends {name}, a class of the candidate's"
    if getattr(node, "attr", "") in _INNARDS or getattr(node, "arg", "") in _INNARDS:
        return f"{ast.unparse(node)} looks into the candidate's process"
    if isinstance(node, ast.arg) and node.arg in _FILES:
        return f"{node.arg}: tests and candidate would share files"
    if not isinstance(node, ast.Call):
        return ""
    function = node.func
    if isinstance(function, ast.Name) and function.id in _FILES:
        return f"{function.id}: tests and candidate would share files"
    if isinstance(function, ast.Attribute):
        owner = ast.unparse(function.value)
        on_files = paths or owner in ("os", "os.path", "shutil") or owner.startswith("tempfile")
        if on_files and function.attr in _FILE_CALLS or owner.startswith("tempfile"):
            return f"{owner}.{function.attr}: tests and candidate would share files"
    name = _name(function) or getattr(function, "attr", "")
    if name in _RUNS and not all(isinstance(a, ast.Constant) for a in node.args):
        return f"{name} would run what the candidate gave in the process of the tests"
    if isinstance(function, ast.Attribute) and ast.unparse(function.value) in _PICKLES:
        own = [a for a in node.args if isinstance(a, ast.Call) and ast.unparse(a.func).endswith("s")]
        if classes or (name in ("load", "loads") and not own):
            return f"{ast.unparse(function)} runs or copies what the candidate gave"
    if name in _INNARDS:
        return f"{name} looks into the candidate's process"
    return _patched(node, modules) if name == "patch" else ""


def _patched(node: ast.Call, modules: frozenset[str]) -> str:
    """A mock in the place of something that only the candidate's process could see."""
    if not node.args or not isinstance(node.args[0], ast.Constant):
        return ""
    target = str(node.args[0].value)
    module, _, name = target.rpartition(".")
    if module.partition(".")[0] in modules or name in REPLACEABLE.get(module, ()):
        return ""
    if target in ("sys.stdout", "sys.stdin", "os.environ"):
        return ""
    return f"patch({target!r}) would have to change the candidate's process"


def _classes_as_data(nodes: Sequence[ast.AST], theirs: set[str]) -> str:
    """An object of a class under test that is compared with a number or text.

    It would have to answer for itself. (One that is compared with a list may extend `list`: then
    the judge has its value.)
    """
    negated = {id(node.operand) for node in nodes if isinstance(node, ast.UnaryOp)}
    for name in theirs:
        if not name[:1].isupper():
            continue
        made = {
            target.id
            for node in nodes
            if isinstance(node, ast.Assign) and _makes(node.value, name)
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        attributes = [node for node in nodes if isinstance(node, ast.Attribute)]
        used = any(
            _makes(node.value, name)
            or (isinstance(node.value, ast.Name) and node.value.id in {*made, name})
            for node in attributes
        )
        for node in nodes:
            if isinstance(node, ast.Compare) and (
                isinstance(node.ops[0], ast.NotEq) or id(node) in negated
            ):
                continue  # that it differs is true of every object
            if used and _taken_as_data(node, name, _is_scalar):
                return f"an object of {name} is compared with data: it would answer for itself"
            if isinstance(node, ast.Compare):
                sides = [node.left, *node.comparators]
                mine = [s for s in sides if isinstance(s, ast.Name) and s.id in made]
                others = [side for side in sides if side not in mine]
                if mine and not isinstance(node.ops[0], _ABOUT) and any(map(_is_scalar, others)):
                    return f"an object of {name} is compared with data: it would answer for itself"
    return ""
