"""Finds what the tests compare, and a candidate in another process would decide, or not show."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Collection, Iterator, Sequence

from gatekeeper.sandbox.given import Given
from gatekeeper.sandbox.inside.assertions import called
from gatekeeper.sandbox.inside.nodes import children, walk
from gatekeeper.sandbox.meanings import Names
from gatekeeper.sandbox.usage import (
    ABOUT,
    dotted,
    is_data,
    is_scalar,
    made_by,
    makes,
    name_of,
    taken_as_data,
    uses_object,
)

__all__ = ["unreliable"]

_PROCESS = frozenset(
    {
        *("os.getcwd", "getcwd", "Path.cwd", "pathlib.Path.cwd"),
        *("sys.getrecursionlimit", "getrecursionlimit"),
        *("decimal.getcontext", "getcontext"),
    }
)
# What a candidate changes for all, in its own process, and an assertion may look at.
_STATE = frozenset(
    """
    sys.path sys.modules sys.meta_path sys.excepthook sys.displayhook warnings.filters
    logging.root logging.root.level logging.root.handlers logging.root.filters
    """.split()  # noqa: SIM905
)
_CONTEXTS = frozenset(f"{m}{n}context" for m in ("", "decimal.") for n in ("get", "local"))
_STREAMS = frozenset({"sys.stdout", "sys.stderr"})
# Modules whose functions tell something of their process, and what the judge follows of it.
_FOLLOWED = _STREAMS | {"os.environ", "os.getenv"}
_TELL = frozenset("sys os signal locale socket threading warnings random builtins codecs".split())  # noqa: SIM905
_NAMES = ast.Name | ast.Attribute
_OF_ONE = frozenset({"get", "pop", "setdefault"})  # methods that give one item of a dict
_LOGS = frozenset({"debug", "info", "warning", "error", "critical", "exception", "log"})
_OF_BLOCK = ("input", "sys.stdin.", "warnings.warn", "random.", "np.random.")
_SHOWS = frozenset({"getvalue", "readouterr"})  # what was written to a stream
_HANDLES = frozenset({"addHandler", "basicConfig", "assertLogs", "assertNoLogs", "caplog"})
_ENVIRONMENT = frozenset({"os.getenv", "getenv", "os.environ", "environ"})
# What a candidate may change of a logger in its own process.
_OF_LOGGERS = frozenset(
    """
    level handlers filters propagate disabled getEffectiveLevel isEnabledFor hasHandlers
    """.split()  # noqa: SIM905
)
# What is not there of the candidate's classes: attributes, and classes that they extend.
_OF_CLASSES = frozenset({"__dict__", "__init__", "__dataclass_params__"})
_ENUMS = frozenset({"IntEnum", "StrEnum", "Flag", "IntFlag"})
_NUMBERS = frozenset({"int", "float"})
_DECIDES = "an object of {} is compared with data: its methods would decide"


def unreliable(nodes: Sequence[ast.AST], names: Names) -> str:
    """The problem with what the tests compare; empty if there is none.

    Parameters
    ----------
    nodes
        All nodes of the tests.
    names
        What the names in them mean.
    """
    theirs = names.theirs
    found = (
        _asks_process(nodes, theirs)
        or _looks_again(nodes, names)
        or _looks_into_classes(nodes, theirs)
    )
    return found or _asks_made(nodes, theirs) or _classes_as_data(nodes, theirs)


def _asks_process(nodes: Sequence[ast.AST], theirs: frozenset[str]) -> str:
    """The problem with tests that compare what a candidate may change in its own process."""
    found = {id(n): dotted(n.func) for n in nodes if isinstance(n, ast.Call)}
    asked = {number: name for number, name in found.items() if name in _PROCESS}
    if apart := _logs_by_others(nodes, found.values()) or _acts_in_managers(nodes, theirs):
        return apart
    if any(name.endswith("getLogger") for name in found.values()):
        loggers = _loggers(nodes)
        for node in nodes:
            if (
                isinstance(node, ast.Attribute)
                and node.attr in _OF_LOGGERS
                and (called(node.value) == "getLogger" or dotted(node.value) in loggers)
            ):
                asked[id(node)] = f"{node.attr} of a logger"
    contexts = {name for made in _CONTEXTS for name in made_by(nodes, made)}
    contexts |= {
        dotted(item.optional_vars)
        for node in nodes
        for item in getattr(node, "items", ())
        if item.optional_vars and dotted(getattr(item.context_expr, "func", item)) in _CONTEXTS
    }
    for node in nodes if contexts else ():
        if isinstance(node, ast.Attribute) and dotted(node.value) in contexts:
            asked[id(node)] = f"{node.attr} of a context"
    around = _environment(nodes) | _state(nodes, theirs)
    for node in nodes if asked or around else ():
        asserts = _asserts(node)
        if asserts or isinstance(node, ast.Compare):
            known = asked | around if asserts else asked  # `if os.environ.get("CI") == "1"`
            for name in (known[id(part)] for part in walk(node) if id(part) in known):
                return f"{name} is about the candidate's process"
    return ""


def _state(nodes: Sequence[ast.AST], theirs: frozenset[str]) -> dict[int, str]:
    """What the tests look at of their process, by ids of nodes.

    Of a stream only whether it is another one: the judge follows those that the candidate replaces
    within a `with` of its own (`inside/outputs.py`).
    """
    compared: list[ast.AST] = []
    if theirs.isdisjoint(_entered(nodes)):
        for node in nodes:
            if isinstance(node, ast.Compare):
                compared += [node.left, *node.comparators]
            elif called(node) in ("assertIs", "assertIsNot", "assertEqual"):
                compared += node.args  # type: ignore[attr-defined]
    taken = {id(node.value) for node in nodes if isinstance(node, ast.Subscript)}  # of them, one
    parts = [node for node in nodes if isinstance(node, ast.Attribute) and id(node) not in taken]
    found = {id(node): name for node in parts if (name := dotted(node)) in _STATE}
    return found | {id(node): name for node in compared if (name := dotted(node)) in _STREAMS}


def _looks_again(nodes: Sequence[ast.AST], names: Names) -> str:
    """The problem with tests that compare a part of their process with what it was before.

    A candidate changes such a part in its own process: `print = builtins.print`, `len(sys.path)`.
    """
    kept: dict[str, set[str]] = {}

    def about(value: ast.AST) -> set[str]:
        parts = [dotted(part) for part in walk(value) if isinstance(part, _NAMES)]
        return set(_parts(value, names)).union(*(kept[name] for name in parts if name in kept))

    for node in nodes:
        if isinstance(node, ast.Assign) and (found := about(node.value)):
            for target in node.targets:
                kept.setdefault(dotted(target), set()).update(found)
    given: Given | None = None
    for node in nodes:
        sides: list[ast.expr] = []
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
        elif called(node).startswith("assert"):
            sides = node.args[:2]  # type: ignore[attr-defined]
        elif isinstance(node, ast.Assert):
            sides = [node.test]
        compared = [about(side) for side in sides]
        again = [one & other for one, other in itertools.combinations(compared, 2)]
        again += [side & _STATE for side in compared if _asserts(node)]
        for name in set[str]().union(*again):
            given = given or Given(nodes, names.theirs | names.modules)
            if not any(side in given for side in sides):
                return f"{name} is about the candidate's process"
    return ""


def _parts(value: ast.AST, names: Names) -> Iterator[str]:
    """What an expression has of the process, by its dotted names."""
    inside = walk(value)
    used = {id(n.func) for n in inside if isinstance(n, ast.Call)}
    within = {id(n.value): n.attr for n in inside if isinstance(n, ast.Attribute)}
    items = [n for n in inside if isinstance(n, ast.Subscript)]
    within |= {id(n.value): "get" for n in items if not isinstance(n.slice, ast.Slice)}
    for node in inside:
        if not isinstance(node, _NAMES) or within.get(id(node)) in _OF_ONE:
            continue
        module, _, name = (meaning := names.of_library(node)).rpartition(".")
        if id(node) in within and (module not in _TELL or meaning == "os.path"):
            continue
        tells = id(node) not in used or (module in _TELL and name[:1].islower())
        if meaning and tells and meaning not in _FOLLOWED:
            yield meaning


def _acts_in_managers(nodes: Sequence[ast.AST], theirs: frozenset[str]) -> str:
    """The problem with tests that use their own process in a `with` of the candidate's.

    It may change that for the block: what is drawn, read, warned of or logged.
    """
    loggers = {"logging", *_loggers(nodes)}
    for node in nodes:
        if isinstance(node, ast.With | ast.AsyncWith) and not theirs.isdisjoint(_entered([node])):
            inside = [part for statement in node.body for part in walk(statement)]
            asserted = {id(part) for one in inside if _asserts(one) for part in walk(one)}
            for call in (part for part in inside if isinstance(part, ast.Call)):
                name = dotted(call.func)
                timed = id(call) in asserted and name.startswith("time.")
                if timed or name.startswith(_OF_BLOCK) or _logs(name, loggers):
                    return f"{name}: the candidate may change it for this block, in its own process"
    return ""


def _logs_by_others(nodes: Sequence[ast.AST], calls: Collection[str]) -> str:
    """The problem with tests that log, and look at a text that a handler of another has written."""
    named = {n.attr if isinstance(n, ast.Attribute) else name_of(n) for n in nodes}
    if named.isdisjoint(_SHOWS) or not named.isdisjoint(_HANDLES):
        return ""
    loggers = {"logging", *_loggers(nodes)}
    for name in calls:
        if _logs(name, loggers):
            return f"{name}: the handlers that the candidate adds are in its own process"
    return ""


def _loggers(nodes: Sequence[ast.AST]) -> set[str]:
    """The names of loggers that the tests get by a name."""
    return {*made_by(nodes, "getLogger"), *made_by(nodes, "logging.getLogger")}


def _logs(name: str, loggers: Collection[str]) -> bool:
    owner, _, last = name.rpartition(".")
    return last in _LOGS and (owner in loggers or "getLogger(" in owner)


def _entered(nodes: Sequence[ast.AST]) -> list[str]:
    """The functions and classes that make the context managers of `with` statements."""
    managers = (item.context_expr for node in nodes for item in getattr(node, "items", ()))
    return [dotted(getattr(manager, "func", manager)) for manager in managers]


def _asserts(node: ast.AST) -> bool:
    return isinstance(node, ast.Assert) or called(node).startswith("assert")


def _environment(nodes: Sequence[ast.AST]) -> dict[int, str]:
    """What the tests ask the environment for, but for variables that they name, by ids of nodes.

    Only these does the judge follow: see `inside/surroundings.py`.
    """
    imported = {alias.name for n in nodes if isinstance(n, ast.ImportFrom) for alias in n.names}
    found, named = dict[int, str](), set[int]()
    for node in nodes:
        if isinstance(node, ast.Name | ast.Attribute) and (name := dotted(node)) in _ENVIRONMENT:
            found |= {id(node): name} if "." in name or name in imported else {}
        sides: list[ast.AST] = []  # what is asked for, and of what
        if isinstance(node, ast.Subscript):
            sides = [node.slice, node.value]
        elif isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.In | ast.NotIn):
            sides = [node.left, node.comparators[0]]
        elif isinstance(node, ast.Call) and node.args:
            sides = [node.args[0], node.func, getattr(node.func, "value", node), *node.args[1:2]]
        if sides and isinstance(sides[0], ast.Constant):
            named |= {id(side) for side in sides}
    found = {number: name for number, name in found.items() if number not in named}
    kept = {  # `before = dict(os.environ)`
        dotted(target): "os.environ"
        for node in nodes
        if isinstance(node, ast.Assign) and not found.keys().isdisjoint(map(id, walk(node.value)))
        for target in node.targets
    }
    held = [n for n in nodes if kept and isinstance(n, ast.Name | ast.Attribute)]
    return found | {id(n): kept[dotted(n)] for n in held if dotted(n) in kept}


def _looks_into_classes(nodes: Sequence[ast.AST], theirs: frozenset[str]) -> str:
    """The problem with tests that look at what a stand-in of a class does not have."""
    classes = {name for name in theirs if name.rpartition(".")[2][:1].isupper()}
    for node in nodes:
        looked: list[str] = []
        if isinstance(node, ast.Attribute) and node.attr in _OF_CLASSES:
            looked = [node.attr] if dotted(node.value) in classes else []
        elif isinstance(node, ast.Call) and name_of(node.func) in ("vars", "type"):
            looked = [n for n in map(dotted, node.args) if n in classes and len(node.args) == 1]
        elif isinstance(node, ast.Call) and name_of(node.func) in ("isinstance", "issubclass"):
            named = {dotted(part) for item in node.args[1:] for part in walk(item)} - theirs
            looked = sorted(_ENUMS.intersection(n.rpartition(".")[2] for n in named))
        for name in looked:
            return f"{name} is not shown of the candidate's classes"
    return ""


def _asks_made(nodes: Sequence[ast.AST], theirs: frozenset[str]) -> str:
    """The problem with `3 in type(x)(3)`, where the candidate gave `x`.

    What a function returned may be of any class, whose objects would decide.
    """
    kept = {
        dotted(target): node.value
        for node in nodes
        if isinstance(node, ast.Assign) and _is_type(node.value)
        for target in node.targets
    }
    calls = [
        (node, kind)
        for node in nodes
        if isinstance(node, ast.Call)
        if _is_type(kind := kept.get(dotted(node.func), node.func))
    ]
    if not calls:
        return ""
    given = Given(nodes, theirs)
    classes = [name for name in theirs if name.rpartition(".")[2][:1].isupper()]
    tested = {name for kind in classes for name in made_by(nodes, kind)}
    made = {
        ast.unparse(call)
        for call, kind in calls
        if kind in given and tested.isdisjoint(map(dotted, children(kind)))
    }
    made |= {
        dotted(target)
        for node in nodes
        if isinstance(node, ast.Assign) and ast.unparse(node.value) in made
        for target in node.targets
    }
    for node in nodes:
        asked: list[ast.expr] = []
        if isinstance(node, ast.Compare) and isinstance(node.ops[-1], ast.In | ast.NotIn):
            asked = node.comparators[-1:]
        elif called(node) in ("assertIn", "assertNotIn"):
            asked = node.args[1:2]  # type: ignore[attr-defined]
        for name in made.intersection(map(ast.unparse, asked)):
            return _DECIDES.format(name)
    return ""


def _is_type(node: ast.AST) -> bool:
    """Whether a node is `type(x)` or `x.__class__`."""
    one = isinstance(node, ast.Call) and len(node.args) == 1
    return (one and called(node) == "type") or getattr(node, "attr", "") == "__class__"


def _classes_as_data(nodes: Sequence[ast.AST], theirs: frozenset[str]) -> str:
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
        mixed = {
            target.id
            for node in nodes
            if isinstance(node, ast.Assign) and _is_mixed(node.value, name, made)
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        for node in nodes:
            if isinstance(node, ast.Compare) and (
                isinstance(node.ops[0], ast.NotEq) or id(node) in negated
            ):
                continue  # every object differs from data
            if used and taken_as_data(node, name, is_scalar):
                return _DECIDES.format(name)
            if isinstance(node, ast.Compare):
                sides = [node.left, *node.comparators]
                mine = [s for s in sides if isinstance(s, ast.Name) and s.id in made]
                others = [side for side in sides if side not in mine]
                if mine and not isinstance(node.ops[0], ABOUT) and any(map(is_scalar, others)):
                    return _DECIDES.format(name)
            if any(
                _is_mixed(item, name, made) or getattr(item, "id", "") in mixed
                for item in _taken_as_number(node)
            ):
                return _DECIDES.format(name)
    return ""


def _is_mixed(node: ast.AST, name: str, made: Collection[str]) -> bool:
    """Whether a node is arithmetic of an object of a class and data: the object may know that."""
    if not isinstance(node, ast.BinOp):
        return False
    if isinstance(getattr(node.left, "value", None), str):  # which only shows it: "%s" % item
        return False
    sides = (node.left, node.right)
    return any(map(is_data, sides)) and any(
        makes(side, name)
        or _is_mixed(side, name, made)
        or (isinstance(side, ast.Name | ast.Attribute) and dotted(side) in made)
        for side in sides
    )


def _taken_as_number(node: ast.AST) -> list[ast.expr]:
    """What a node makes a number, or says to be equal to data."""
    if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Eq):
        sides = [node.left, *node.comparators]
    elif called(node) in ("assertEqual", "assertEquals"):
        sides = node.args[:2]  # type: ignore[attr-defined]
    else:
        return node.args if isinstance(node, ast.Call) and name_of(node.func) in _NUMBERS else []
    return sides if any(map(is_scalar, sides)) else []
