"""Which variables of the tests may have what the candidate gave them.

By their names alone, wherever they are bound: an item that is put into a list counts for the list,
an argument for the parameter of the function that gets it. What the candidate gets, it may fill, or
call with anything: a list of the tests, a function, an object with its methods. Tables that are
written, and nothing but iterated over, count column by column.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence

from gatekeeper.sandbox.inside.assertions import called
from gatekeeper.sandbox.inside.nodes import FUNCTIONS, walk

__all__ = ["Given"]

_OWN = frozenset({"self", "cls"})
_AS_WRITTEN = frozenset({"staticmethod", "classmethod"})  # decorators that pass all arguments on
_LOOPS = (ast.For, ast.AsyncFor, ast.comprehension)
_LOOKS = frozenset({"setattr", "getattr", "hasattr", "delattr", "vars", "type", "isinstance"})
_DISPLAYS = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp)
_CONTAINERS = frozenset({"list", "dict", "set", "deque", "defaultdict", "OrderedDict", "Counter"})
_RETURNS = (ast.Return, ast.Yield, ast.YieldFrom)

_Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
_Functions = Mapping[str, Sequence[_Function]]
_Pair = tuple[ast.AST, ast.AST]  # what is bound, and to which value


class Given:
    """The names, of variables and attributes, that have something of the candidate's.

    Parameters
    ----------
    nodes
        All nodes of the tests.
    theirs
        Names of the candidate's, and of its modules.
    """

    def __init__(self, nodes: Sequence[ast.AST], theirs: Collection[str]) -> None:
        functions: dict[str, list[_Function]] = {}
        for node in nodes:
            if isinstance(node, FUNCTIONS):
                functions.setdefault(node.name, []).append(node)
            elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Lambda):
                for name in (name for target in node.targets for name in _bound(target)):
                    functions.setdefault(name, []).append(node.value)
        pairs = [pair for node in nodes for pair in _bindings(node, functions)]
        pairs += _filled(nodes, pairs, functions)
        loops = _Loops(nodes, pairs, theirs)
        for node in nodes:
            if isinstance(node, _LOOPS):
                pairs += loops.bind(node.target, node.iter)
        passed: dict[str, list[str]] = {}
        for target, value in pairs:
            targets = [*_bound(target)]
            for name in _used(value):
                passed.setdefault(name, []).extend(targets)
        todo = [name.partition(".")[0] for name in theirs]
        # Whose exception it is, is not known.
        todo += [n.name for n in nodes if isinstance(n, ast.ExceptHandler) and n.name]
        self._names = set[str]()
        while todo:
            name = todo.pop()
            if name not in self._names:
                self._names.add(name)
                todo += passed.get(name, ())
        # A fixture may be an argument.
        pairs += [(node, node) for node in nodes if isinstance(node, ast.arg)]
        self._made = _made(pairs, theirs)

    def makes(self, value: ast.AST | None) -> bool:
        """Whether an object is the candidate's, whatever else has its names."""
        return value is not None and _root(value) in self._made

    def __contains__(self, value: object) -> bool:
        """Whether an expression has one of the names."""
        return isinstance(value, ast.AST) and not self._names.isdisjoint(_used(value))


def _made(pairs: Sequence[_Pair], theirs: Collection[str]) -> set[str]:
    """The candidate's names, and those that are bound only to what comes from such a one."""
    roots: dict[str, set[str]] = {name: set() for name in theirs}
    for target, value in pairs:
        if isinstance(getattr(target, "ctx", None), ast.Load):
            continue  # what is put into an object, as `stack.push(value)` does
        for name in _bound(target):
            roots.setdefault(name, set()).add(_root(value) if isinstance(target, ast.Name) else "")
    while others := {name for name, found in roots.items() if not found <= roots.keys()}:
        roots = {name: found for name, found in roots.items() if name not in others}
    return {*roots}


def _root(value: ast.AST) -> str:
    """The name at the beginning of `a.b(…)[…]`; empty if there is none."""
    while isinstance(value, ast.Attribute | ast.Subscript | ast.Call):
        value = value.func if isinstance(value, ast.Call) else value.value
    return getattr(value, "id", "")


class _Loops:
    """What the variables of loops are bound to.

    Parameters
    ----------
    nodes
        All nodes of the tests.
    pairs
        What else is bound.
    theirs
        Names of the candidate's.
    """

    def __init__(
        self, nodes: Sequence[ast.AST], pairs: Sequence[_Pair], theirs: Collection[str]
    ) -> None:
        self._known = {"enumerate", "zip"}.difference(theirs)
        loops = [node for node in nodes if isinstance(node, _LOOPS)]
        bound = Counter(name for target, _ in pairs for name in _bound(target))
        bound.update(name for loop in loops for name in _bound(loop.target))
        bound.update(theirs)  # which `rows += […]` only extends
        bound.update(node.arg for node in nodes if isinstance(node, ast.arg))
        named = Counter(name for node in nodes for name in _named(node))
        iterated = Counter(name for loop in loops for name in self._sources(loop.iter))
        self._tables = {
            target.id: value
            for target, value in pairs
            if isinstance(target, ast.Name)
            if bound[target.id] == 1 and named[target.id] == 1 + iterated[target.id]
        }

    def bind(self, target: ast.AST, source: ast.AST) -> Iterator[_Pair]:
        """Each variable of a loop with its own part of the rows, where these are written."""
        name, parts = self._iterates(source)
        table = self._tables.get(getattr(parts[0], "id", ""), parts[0])
        if not name and isinstance(table, ast.List | ast.Tuple | ast.Set):
            for row in table.elts:
                yield from _pairs(target, row)
        elif name == "items" and isinstance(table, ast.Dict):
            for key, value in zip(table.keys, table.values, strict=True):
                yield from _pairs(target, ast.Tuple([key or value, value]))
        elif name == "enumerate" and isinstance(target, ast.Tuple):
            yield from self.bind(target.elts[-1], parts[0])  # before it is a number
        elif name == "zip" and isinstance(target, ast.Tuple) and len(target.elts) == len(parts):
            for one, part in zip(target.elts, parts, strict=True):
                yield from self.bind(one, part)
        else:
            yield target, source

    def _iterates(self, source: ast.AST) -> tuple[str, Sequence[ast.AST]]:
        """How a loop goes over which parts: `items` of a dict, `enumerate`, `zip`; else empty."""
        name, function = called(source), getattr(source, "func", None)
        if name == "items" and isinstance(function, ast.Attribute):
            return name, [function.value]
        if name in self._known and isinstance(function, ast.Name) and source.args:  # type: ignore[attr-defined]
            return name, source.args[:1] if name == "enumerate" else source.args  # type: ignore[attr-defined]
        return "", [source]

    def _sources(self, source: ast.AST) -> Iterator[str]:
        """The names of what a loop goes over."""
        name, parts = self._iterates(source)
        for part in parts:
            if isinstance(part, ast.Name):
                yield part.id
            elif name in self._known:
                yield from self._sources(part)


def _named(node: ast.AST) -> Iterator[str]:
    """The name of a variable or attribute; nothing for other nodes."""
    if isinstance(node, ast.Name):
        yield node.id
    elif isinstance(node, ast.Attribute):
        yield node.attr


def _used(value: ast.AST) -> set[str]:
    """The names of variables and attributes in an expression."""
    return {name for part in walk(value) for name in _named(part)}


def _bindings(node: ast.AST, functions: _Functions) -> Iterator[_Pair]:
    """What a node binds, but for a loop, and to which value."""
    if isinstance(node, ast.Assign):
        for target in node.targets:
            yield from _pairs(target, node.value)
            for place in (target, *(ast.Name(f"{name}()") for name in _bound(target))):
                yield from _handed(node.value, place, functions)
    elif isinstance(node, ast.AugAssign | ast.NamedExpr | ast.AnnAssign) and node.value:
        yield node.target, node.value
    elif isinstance(node, ast.withitem) and node.optional_vars:
        yield node.optional_vars, node.context_expr
    elif isinstance(node, ast.Match):
        captured = (part for case in node.cases for part in walk(case.pattern))
        names = (getattr(p, "name", None) or getattr(p, "rest", None) for p in captured)
        yield from ((ast.Name(name, ast.Store()), node.subject) for name in names if name)
    elif isinstance(node, ast.Lambda):
        yield from _defaults(node.args)
    elif isinstance(node, ast.ClassDef):  # whoever has an object calls its methods
        objects = [f"{node.name}()", "self()"]
        for method in node.body:
            if isinstance(method, FUNCTIONS):
                yield from ((method.args, ast.Name(name)) for name in objects)
        yield from ((ast.Name(f"{_root(base)}()"), ast.Name(objects[0])) for base in node.bases)
    elif isinstance(node, FUNCTIONS):
        yield from _defaults(node.args)
        for part in walk(node):
            if isinstance(part, _RETURNS) and part.value:
                yield ast.Name(node.name), part.value
                yield from _handed(part.value, ast.Name(f"{node.name}()"), functions)
        yield from ((node.args, decorator) for decorator in node.decorator_list)
    elif isinstance(node, ast.Call):
        for function in functions.get(called(node), ()):
            yield from _given_to(function, node)
        looked = getattr(node.func, "id", "") in _LOOKS  # which keeps nothing of its object
        for value in (*node.args[looked:], *(keyword.value for keyword in node.keywords)):
            yield from _handed(value, node, functions)
            if isinstance(node.func, ast.Attribute | ast.Subscript):
                yield node.func.value, value  # `names.append(value)`, `functions[0](value)`
                for name in _bound(node.func.value):
                    yield from _handed(value, ast.Name(f"{name}()"), functions)


def _defaults(parameters: ast.arguments) -> Iterator[_Pair]:
    """Parameters with their defaults."""
    backwards = reversed([*parameters.posonlyargs, *parameters.args])
    yield from zip(backwards, reversed(parameters.defaults), strict=False)
    named = zip(parameters.kwonlyargs, parameters.kw_defaults, strict=True)
    yield from ((parameter, value) for parameter, value in named if value is not None)


def _given_to(function: _Function, call: ast.Call) -> Iterator[_Pair]:
    """Each parameter of a function with its argument; all with all where that is not clear."""
    decorators = {*map(ast.unparse, getattr(function, "decorator_list", ()))}
    parameters = function.args
    names = [*parameters.posonlyargs, *parameters.args]
    is_method = isinstance(call.func, ast.Attribute) and "staticmethod" not in decorators
    clear = decorators <= _AS_WRITTEN and not any(map(_spreads, (*call.args, *call.keywords)))
    if is_method:  # not `Case.keep(self, …)`
        clear = clear and names[:1] != [] and names[0].arg in _OWN
        clear = clear and not any(getattr(value, "id", "") in _OWN for value in call.args)
        names = names[1:]
    rest = parameters.vararg or parameters
    positions = [*names, *[rest] * (len(call.args) - len(names))]
    by_name = {part.arg: part for part in (*names, *parameters.kwonlyargs)}
    for place, value in zip(positions, call.args, strict=False):
        yield place if clear else parameters, value
    for keyword in call.keywords:
        place = by_name.get(keyword.arg or "", parameters.kwarg or parameters)
        yield place if clear else parameters, keyword.value


def _spreads(argument: ast.AST) -> bool:
    """Whether an argument is `*values` or `**values`."""
    if isinstance(argument, ast.keyword):
        return argument.arg is None
    return isinstance(argument, ast.Starred)


def _handed(value: ast.AST, place: ast.AST, functions: _Functions) -> Iterator[_Pair]:
    """The parameters of functions that are handed over in a value; the place gives them values.

    Of one that is called there, what it returns is handed over; so are the methods of an object.
    """
    inside = walk(value)
    called_here = {id(part.func) for part in inside if isinstance(part, ast.Call)}
    owners = {id(part.value) for part in inside if isinstance(part, ast.Attribute)}
    for part in inside:
        if isinstance(part, ast.Lambda):
            yield part.args, place
        for name in _named(part):
            if name not in _OWN or id(part) not in owners:
                yield ast.Name(f"{name}()"), place
            if id(part) not in called_here:
                yield from ((function.args, place) for function in functions.get(name, ()))


def _filled(
    nodes: Sequence[ast.AST], pairs: Sequence[_Pair], functions: _Functions
) -> Iterator[_Pair]:
    """Lists and dicts of the tests with the functions that get them, or a method of them."""
    shared = {
        name
        for target, value in pairs
        if isinstance(value, _DISPLAYS) or called(value) in _CONTAINERS
        for name in _bound(target)
    }
    for node in nodes if shared else ():
        if isinstance(node, ast.Call):
            values = [*node.args, *(keyword.value for keyword in node.keywords)]
            whole = [value for value in values if isinstance(value, ast.Name | ast.Attribute)]
            for name in shared & {name for value in whole for name in _used(value)}:
                yield ast.Name(name), node.func
                for function in functions.get(called(node), ()):
                    parts = (part.arg for part in walk(function.args) if isinstance(part, ast.arg))
                    yield ast.Name(name), ast.Tuple([*map(ast.Name, parts)])


def _pairs(target: ast.AST, value: ast.AST) -> Iterator[_Pair]:
    """The parts of a target with those of a value, where both are written."""
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        parts = [*target.elts, *value.elts]
        if len(target.elts) == len(value.elts) and not any(map(_spreads, parts)):
            for one, part in zip(target.elts, value.elts, strict=True):
                yield from _pairs(one, part)
            return
    yield target, value


def _bound(target: ast.AST) -> Iterator[str]:
    """The names that a target binds."""
    if isinstance(target, ast.arguments | ast.arg):
        names = (part.arg for part in walk(target) if isinstance(part, ast.arg))
        yield from (name for name in names if name not in _OWN)
    elif isinstance(target, ast.Subscript | ast.Starred):
        yield from _bound(target.value)
    elif isinstance(target, ast.Tuple | ast.List):
        for part in target.elts:
            yield from _bound(part)
    else:
        yield from (name for name in _named(target) if name not in _OWN)
