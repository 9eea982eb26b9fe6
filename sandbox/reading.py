"""Static analysis of tests: which names are the candidate's, and whether a verdict is reliable.

It reads only the text of the tests, so that no candidate influences it. It finds:

- which names are the candidate's (`Reading.asked`, `real`): those that the task states, else those
  that only a candidate can define. A name of Python or of a common library is the candidate's only
  if its value is compared; a boolean result of such a name proves nothing.
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
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from gatekeeper.io.syntax import free_names, parse_python
from gatekeeper.sandbox.inside.assertions import TRIES, called
from gatekeeper.sandbox.inside.collect import wants_fixtures
from gatekeeper.sandbox.inside.nodes import FUNCTIONS, children, walk
from gatekeeper.sandbox.meanings import imported_by
from gatekeeper.sandbox.one_process import problem_of
from gatekeeper.sandbox.reached import Reached
from gatekeeper.sandbox.usage import dotted, is_class, makes, name_of, operates

__all__ = ["RESERVED", "Reading", "imported", "parsed", "read_tests"]

_LIBRARIES = {  # by the names that programs give them
    "np": "numpy",
    "pd": "pandas",
    "sp": "scipy",
    "nx": "networkx",
    "tf": "tensorflow",
    "plt": "matplotlib.pyplot",
    "sns": "seaborn",
    "torch": "torch",
    "pytest": "pytest",
}
LIBRARY: dict[str, str] = {  # common names that are not under test -> module:name
    name: f"{module.__name__}:{name}"
    for module in (functools, itertools, collections, math)
    for name in vars(module)
    if not name.startswith("_")
} | {
    "deepcopy": "copy:deepcopy",
    "Decimal": "decimal:Decimal",
    "Fraction": "fractions:Fraction",
    "dumps": "json:dumps",
    "loads": "json:loads",
}
_BITS = frozenset({"isclose", "approx", "allclose", "raises", "isfinite", "isinf", "isnan"})
RESERVED = frozenset({*LIBRARY, *_LIBRARIES, *sys.stdlib_module_names, *_BITS})  # usual names


@dataclass(frozen=True, slots=True)
class Reading:
    """The result of the analysis of a task's tests.

    Attributes
    ----------
    void
        Why the tests test nothing about a candidate, wherever it runs; empty if they do.
    problem
        Why no verdict would be reliable with the candidate in another process; empty if one is.
    needs
        Top-level modules that the tests import, other than the candidate.
    modules
        Module names by which the tests import the candidate.
    asked
        Names of Python or of a library that are under test here, and so the candidate's.
    real
        Names that the tests use without importing them -> what they mean, as "module:name".
    theirs
        Names that the tests use and the candidate defines.
    classes
        Names of the candidate's that the tests use as classes.
    operated
        Names of the candidate's to whose objects, made by the tests, they apply operators.
    alone
        Whether only a module that cannot be imported here can be the candidate.
    main
        Whether code under `if __name__ == "__main__"` must run, because nothing else asserts.
    goes_on
        Whether the tests go on, at some place, where they could not import the candidate.
    """

    void: str = ""
    problem: str = ""
    needs: frozenset[str] = frozenset()
    modules: frozenset[str] = frozenset()
    asked: frozenset[str] = frozenset()
    real: tuple[tuple[str, str], ...] = ()
    theirs: frozenset[str] = frozenset()
    classes: frozenset[str] = frozenset()
    operated: frozenset[str] = frozenset()
    alone: bool = False
    main: bool = False
    goes_on: bool = False

    def for_judge(self, entry: str | None) -> dict[str, Any]:
        """The fields that the process of the tests needs (sandbox/inside/judge.py)."""
        return {
            "asked": sorted(self.asked),
            "real": dict(self.real),
            "classes": sorted(self.classes),
            "operated": sorted(self.operated),
            "theirs": sorted(self.theirs),
            "modules": sorted(self.modules),
            "module_name": "__main__" if self.main else "tests",
            "entry": entry or "",
            "goes_on": self.goes_on,
        }


@functools.lru_cache(maxsize=4)  # a test is read in several places
def parsed(text: str) -> tuple[ast.Module, Sequence[ast.AST]]:
    """A program of the tests, and all its nodes, which must not be changed.

    Raises
    ------
    SyntaxError, ValueError, RecursionError, MemoryError
        As `ast.parse`.
    """
    tree = parse_python(text)
    return tree, walk(tree)


@functools.lru_cache(maxsize=16)  # the candidates of a task come one after the other
def read_tests(
    setup: str, tests: tuple[str, ...], entry: str | None, modules: frozenset[str]
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
    programs = [parsed(text) for text in texts]
    trees = [tree for tree, _ in programs]
    # A comparison that is a statement has no result to be judged: the tests expect that it raises.
    unused = {id(n.value) for _, found in programs for n in found if isinstance(n, ast.Expr)}
    nodes = [
        node
        for _, found in programs
        for node in found
        if not (isinstance(node, ast.Compare) and id(node) in unused)
    ]
    modules = modules | _modules_of(nodes, entry)
    needs = frozenset(itertools.chain(*map(imported, trees), _patched(nodes))) - modules
    free = free_names(texts)
    libraries = {n: _LIBRARIES[n] for n in free if n in _LIBRARIES and n != entry}
    standard = {n for n in free if n in sys.stdlib_module_names and _is_module(n, nodes)} - {entry}
    usual = {n for n in free if n in LIBRARY and n not in libraries}
    own = free - libraries.keys() - standard - usual - _builtin(free)
    brought = _names_from(nodes, modules)
    asked = {entry} if entry is not None else set()
    if entry is None:
        alone = not own and not brought
        asked |= {n for n in usual if not _helps(n, nodes, own | brought)}
        if alone and not asked:
            asked |= _the_only_call(nodes)
    real = dict(libraries)
    real |= {n: n for n in standard}
    real |= {n: LIBRARY[n] for n in usual - asked}
    needs |= {module.partition(".")[0] for module in libraries.values()}
    if any(map(wants_fixtures, trees)):
        needs |= {"pytest"}
    theirs = own | brought | asked
    known = _known(nodes, theirs, modules)
    if entry is not None:
        known.setdefault(entry, set()).update([entry, *_given_to_check(nodes)])
    reached = Reached(trees, nodes, entry)
    return Reading(
        void=_void(nodes, theirs, modules, reached, entry),
        problem=problem_of(nodes, theirs.union(*known.values()), modules),
        needs=needs,
        modules=modules,
        asked=frozenset(asked),
        real=tuple(sorted(real.items())),
        theirs=frozenset(theirs),
        classes=frozenset(
            name
            for name, names in known.items()
            if is_class(name, nodes, names, shown="_" in name or (name == entry and len(names) > 1))
        ),
        operated=frozenset(
            name for name, names in known.items() if any(operates(nodes, n) for n in names)
        ),
        alone=not (own or brought or entry),
        main=reached.main,
        goes_on=_goes_on(nodes, modules),
    )


# Names


def _builtin(names: set[str]) -> set[str]:
    return {name for name in names if hasattr(builtins, name)}


def _modules_of(nodes: Sequence[ast.AST], entry: str | None) -> set[str]:
    """Modules from which the tests import the names under test."""
    return {
        node.module.partition(".")[0]
        for node in nodes
        if isinstance(node, ast.ImportFrom) and node.module and not node.level
        if entry is not None and entry in {alias.name for alias in node.names}
        if node.module.partition(".")[0] not in sys.stdlib_module_names
    }


def _names_from(nodes: Sequence[ast.AST], modules: frozenset[str]) -> set[str]:
    """Names that the tests import from the candidate, or that stand for it as a module."""
    found = {name for name in _modules_in(nodes, modules) if "." not in name}
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in modules:
            found |= {alias.asname or alias.name for alias in node.names}
    if any(imported_by(node) in modules for node in nodes):
        for node in nodes:  # what gives such a module, as `def fresh(): return import_module(…)`
            if isinstance(node, (*FUNCTIONS, ast.Assign)) and any(
                imported_by(inner) in modules for inner in walk(node)
            ):
                targets = node.targets if isinstance(node, ast.Assign) else [node]
                found |= {name for target in targets if (name := name_of(target))}
    return found


def _modules_in(nodes: Sequence[ast.AST], modules: frozenset[str]) -> Iterator[str]:
    """Names, some of them dotted, by which the tests know the candidate as a module."""
    for node in nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                if (root := alias.name.partition(".")[0]) in modules:
                    yield from {alias.asname or alias.name, alias.asname or root}
        elif isinstance(node, ast.Assign) and imported_by(node.value) in modules:
            yield from (dotted(t) for t in node.targets if isinstance(t, ast.Name | ast.Attribute))


def _goes_on(nodes: Sequence[ast.AST], modules: frozenset[str]) -> bool:
    for node in nodes:
        tried = isinstance(node, TRIES) and node.handlers
        if tried or "suppress" in [called(i.context_expr) for i in getattr(node, "items", ())]:
            inside = walk(node)
            if _names_from(inside, modules) or any(imported_by(n) in modules for n in inside):
                return True
    return False


def _known(
    nodes: Sequence[ast.AST], theirs: set[str], modules: frozenset[str]
) -> dict[str, set[str]]:
    """The candidate's names, each with those by which the tests know it: `solution.Vector`."""
    known = {name: {name} for name in theirs}
    aliases = {*_modules_in(nodes, modules)}
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in modules:
            for alias in node.names:
                known.setdefault(alias.name, set()).add(alias.asname or alias.name)
    for node in nodes if aliases else ():
        if isinstance(node, ast.Attribute) and (base := dotted(node.value)) in aliases:
            known.setdefault(node.attr, set()).add(f"{base}.{node.attr}")
    for node in nodes:  # `Vector = solution.Vector`
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Name | ast.Attribute):
            value = dotted(node.value)
            targets = {dotted(t) for t in node.targets if isinstance(t, ast.Name | ast.Attribute)}
            for names in known.values():
                if value in names:
                    names |= targets
    return known


def _given_to_check(nodes: Sequence[ast.AST]) -> set[str]:
    """The name of the argument of `check(candidate)`, which is the function under test."""
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef)]
    return {f.args.args[0].arg for f in functions if f.name == "check" and f.args.args}


def imported(program: ast.AST) -> Iterator[str]:
    """Top-level modules that are imported, except in a `try`, which can do without them."""
    for node in children(program):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]
        elif not isinstance(node, ast.Try | ast.expr):
            yield from imported(node)


def _patched(nodes: Sequence[ast.AST]) -> Iterator[str]:
    """Top-level modules of packages of which the tests patch something: `patch("requests.get")`."""
    for node in nodes:
        if called(node) == "patch" and (arguments := getattr(node, "args", ())):
            root, dot, _ = str(getattr(arguments[0], "value", "")).partition(".")
            if dot and root.isidentifier() and root not in {*sys.stdlib_module_names, "__main__"}:
                yield root


def _is_module(name: str, nodes: Sequence[ast.AST]) -> bool:
    """Whether a name is only used for its attributes: a function may be called `code` or `copy`."""
    uses = [node for node in nodes if isinstance(node, ast.Name) and node.id == name]
    bases = [node.value for node in nodes if isinstance(node, ast.Attribute)]
    return len(uses) == sum(isinstance(base, ast.Name) and base.id == name for base in bases)


def _helps(name: str, nodes: Sequence[ast.AST], theirs: set[str]) -> bool:
    """Whether tests use a common function to examine the candidate's value, not to test it.

    It gets a call of the candidate's as an argument, stands on both sides of a comparison, or
    returns only a boolean.
    """
    if name in _BITS:
        return True
    for node in nodes:
        if isinstance(node, ast.Compare):
            sides = [side for side in (node.left, *node.comparators) if makes(side, name)]
            if len(sides) > 1:
                return True
        elif isinstance(node, ast.Call) and makes(node, name):
            inside = [n for part in (*node.args, *node.keywords) for n in walk(part)]
            called = {name_of(n.func) for n in inside if isinstance(n, ast.Call)}
            if called & theirs:
                return True
    return False


def _the_only_call(nodes: Sequence[ast.AST]) -> set[str]:
    """A built-in name that must be under test, because the tests call no other; else empty."""
    called = {
        node.func.id
        for node in nodes
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    called -= {"print"}
    return called if len(called) == 1 and all(hasattr(builtins, n) for n in called) else set()


def _void(
    nodes: Sequence[ast.AST],
    theirs: set[str],
    modules: frozenset[str],
    reached: Reached,
    entry: str | None,
) -> str:
    if not reached.asserts:
        return "none of their assertions would run"
    if entry is not None and any(getattr(node, "name", "") == "check" for node in nodes):
        return ""
    used = theirs & {node.id for node in nodes if isinstance(node, ast.Name)}
    if not used and not any(imported_by(node) in modules for node in nodes):
        return "they use no name that only a candidate defines: give the tested name as entry_point"
    return ""
