"""Functions of the tests that assert something, and that the candidate wraps, as a decorator does.

A wrapper that leaves out the function leaves out its assertions. It may have a reason, such as a
cache has, so this is no failure: there is no verdict.
"""

from __future__ import annotations

import ast
import collections
import contextlib
import functools
import inspect
import types
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from gatekeeper.sandbox.inside.assertions import proves
from gatekeeper.sandbox.inside.kinds import inner, is_stand_in
from gatekeeper.sandbox.inside.nodes import FUNCTIONS, walk
from gatekeeper.sandbox.inside.places import is_placed

__all__ = ["Wrappers"]

_HOLDERS: dict[type, str] = {  # what holds a function -> the attribute that is the function
    types.MethodType: "__func__",
    staticmethod: "__func__",
    classmethod: "__func__",
    functools.partial: "func",
    type(functools.lru_cache(len)): "__wrapped__",
}
_KINDS = {types.FunctionType, *_HOLDERS}
_FRAMES = {  # what runs the body of a function later -> the name of its frame
    types.GeneratorType: "gi_frame",
    types.CoroutineType: "cr_frame",
    types.AsyncGeneratorType: "ag_frame",
}


class _Call:
    """A call of a wrapper: the function, and the arguments that it must get, if known."""

    __slots__ = ("arguments", "function", "running")

    def __init__(self, function: Any, arguments: Any) -> None:
        self.function = function
        self.arguments = None
        with contextlib.suppress(RecursionError):
            self.arguments = _copied(arguments)
        self.running = False

    def takes(self, arguments: Any) -> bool:
        return self.arguments is None or _same(self.arguments, _copied(arguments))


class Wrappers:
    """The wrappers that the candidate made, and the calls of them that have not run the function.

    Parameters
    ----------
    programs
        The tests.
    """

    def __init__(self, programs: Sequence[str]) -> None:
        self._programs = programs
        # Functions, by the numbers of their wrappers; and whether these got nothing else to call.
        self._wraps: dict[int, tuple[Any, bool]] = {}
        self._owners: dict[int, int] = {}  # of methods, by their numbers
        self._ended: dict[int, Any] = {}  # functions that have run to their end, by id
        self._owed: list[_Call] = []  # calls of wrappers that have not run their function
        self._frames: list[types.FrameType] = []  # which must come to an assertion

    def got(self, item: Any, found: Any) -> None:
        """An attribute of an item is `found`, which may be a method."""
        if is_stand_in(item) and is_stand_in(found):
            self._owners[inner(found).number] = inner(item).number

    def made(self, target: Any, given: Sequence[Any], found: Any) -> None:
        """A call of `target` has returned `found`: maybe a wrapper of the first argument.

        What follows the first may be called only sometimes, such as a handler of errors. A method
        that returns its own object, as `add(step).add(step)` does, made no wrapper.
        """
        called = [item for item in given if callable(item) or type(item) in _KINDS]
        functions = [item for item in called if not _is_error(item)]
        if not functions:
            return
        function = functions[0]
        if is_stand_in(function):  # itself a wrapper, of which this is another one
            function, _ = self._wraps.get(inner(function).number, (None, False))
        if function is None or _are_one(found, functions[0]) or not self._proves(function):
            return
        if is_stand_in(found):
            number = inner(found).number
            if not is_stand_in(target) or self._owners.get(inner(target).number) != number:
                self._wraps[number] = function, len(functions) == 1
        elif callable(found) and (len(given) == 1 or id(function) not in self._ended):
            self._owed.append(_Call(function, None))  # it is in the place of the function

    def bound(self, wrapper: Any, found: Any) -> None:
        """A descriptor has returned `found`: a wrapper becomes a method, or gives its value."""
        if not is_stand_in(wrapper) or (known := self._wraps.get(inner(wrapper).number)) is None:
            return
        if is_stand_in(found):
            self._wraps[inner(found).number] = known
        elif id(known[0]) not in self._ended:
            self._owed.append(_Call(known[0], None))

    def called(
        self, wrapper: Any, given: Sequence[Any], named: Mapping[str, Any]
    ) -> Callable[..., None]:
        """The tests call a wrapper, or anything else.

        Returns what to do if that raises an exception, or, with its result, if it returns.
        """
        if not self._wraps or not is_stand_in(wrapper):
            return _nothing
        function, alone = self._wraps.get(inner(wrapper).number, (None, False))
        arguments = None if function is None else _bound(function, given, named)
        # `unsubscribe()` calls no function that needs an argument.
        if function is None or (arguments is None and not (given or named)):
            return _nothing
        call = _Call(function, arguments if alone else None)
        self._owed.append(call)
        return functools.partial(self._after, call, given)

    def _after(self, call: _Call, given: Sequence[Any], *results: Any) -> None:
        """A call of a wrapper has raised an exception, or returned a result."""
        kind = call.function
        right = not results or (isinstance(kind, type) and issubclass(type(results[0]), kind))
        # `before(hook)(function)` calls no hook.
        decorates = [type(item) for item in given] == [types.FunctionType]
        if right or (decorates and is_stand_in(results[0]) and callable(results[0])):
            self._remove(call)

    def _remove(self, call: _Call) -> None:
        with contextlib.suppress(ValueError):
            self._owed.remove(call)

    @contextlib.contextmanager
    def running(
        self, target: Any, given: Sequence[Any], named: Mapping[str, Any]
    ) -> Iterator[Callable[[Any], None]]:
        """The candidate calls an object of the tests; yields what takes the result.

        The arguments count as they are before, as a function may change them.
        """
        matching = [c for c in self._owed if not c.running and _are_one(c.function, target)]
        arguments = _bound(target, given, named) if matching else None
        call = next((c for c in matching if c.takes(arguments)), None)
        if call is not None:
            call.running = True

        def ended(made: Any) -> None:
            self._ended[id(target)] = target
            if call is not None:
                self._remove(call)
                if (frame := _FRAMES.get(type(made))) is not None:
                    self._frames.append(getattr(made, frame))

        try:
            yield ended
        finally:
            if call is not None:
                call.running = False

    def left_out(self, reached: Collection[types.FrameType]) -> str:
        """The name of a function that a wrapper has left out; empty if there is none.

        `reached` are the frames that came to an assertion.
        """
        functions = [call.function for call in self._owed]
        names = [str(getattr(f, "__qualname__", type(f).__qualname__)) for f in functions]
        names += [frame.f_code.co_name for frame in self._frames if frame not in reached]
        return next(iter(names), "")

    def _proves(self, item: Any) -> bool:
        """Whether a call of an object of the tests asserts something, itself or by what it holds.

        A class does if any of its methods does.
        """
        todo, seen = [item], set[int]()
        while todo:
            part = todo.pop()
            if id(part) in seen or is_stand_in(part):
                continue
            seen.add(id(part))
            if isinstance(part, type):
                todo += [m for m in vars(part).values() if type(m) in _KINDS]
            elif type(part) is types.FunctionType:
                if (part.__code__.co_name, part.__code__.co_firstlineno) in self._proving:
                    return True
                todo += _held(part)
            elif (name := _HOLDERS.get(type(part))) is not None:
                todo.append(getattr(part, name))
            else:
                todo += [vars(kind).get("__call__") for kind in type(part).__mro__]
        return False

    @functools.cached_property
    def _proving(self) -> set[tuple[str, int]]:
        """Names and first lines of the functions that assert something if they run."""
        nodes = [node for program in self._programs for node in walk(ast.parse(program))]
        functions: list[Any] = [n for n in nodes if isinstance(n, (*FUNCTIONS, ast.Lambda))]
        found: list[Any] = []
        while more := [f for f in functions if f not in found and _asserts(f, found)]:
            found += more
        return {
            (
                getattr(node, "name", "<lambda>"),
                min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))]),
            )
            for node in found
        }


def _asserts(function: Any, others: Sequence[Any]) -> bool:
    """Whether a function asserts something, itself or by one of the others."""
    names = {getattr(other, "name", "") for other in others}
    if any(map(proves, walk(function))):
        return True
    return any(
        getattr(node.func, "id", getattr(node.func, "attr", None)) in names
        for node in walk(function)
        if isinstance(node, ast.Call)
    )


def _are_one(one: Any, other: Any) -> bool:
    """Whether two objects are one; a method is a new object whenever it is looked up."""
    return one is other or (type(one) is type(other) is types.MethodType and bool(one == other))


def _nothing(*_: Any) -> None:
    pass


def _held(function: Any) -> Iterator[Any]:
    """The functions that a function of the tests has in its closure, such as one that it wraps."""
    for cell in getattr(function, "__closure__", None) or ():
        with contextlib.suppress(ValueError):  # it is empty
            if type(cell.cell_contents) in _KINDS:
                yield cell.cell_contents


def _copied(item: Any) -> Any:
    """What an item is now: its kind and a copy of its contents, where these may change."""
    kind = type(item)
    if issubclass(kind, tuple):
        return tuple(map(_copied, tuple.__iter__(item)))
    if not is_placed(item):
        return item
    if issubclass(kind, dict):
        return kind, {name: _copied(value) for name, value in item.items()}
    if kind in (list, collections.deque):
        return kind, tuple(map(_copied, item))
    if kind in (set, bytearray):
        return kind, item.copy()
    return kind, (item.shape, item.dtype, item.tobytes())


def _is_error(item: object) -> bool:
    """Whether an item is a class of exceptions, as `retry(function, KeyError)` gets."""
    return isinstance(item, type) and issubclass(item, BaseException)


def _bound(function: Any, given: Sequence[Any], named: Mapping[str, Any]) -> Any:
    """The arguments of a call by their names; None if the function does not take them."""
    try:
        found = inspect.signature(function).bind(*given, **named)
    except (TypeError, ValueError):
        return None
    found.apply_defaults()
    return found.arguments


def _same(one: Any, other: Any) -> bool:
    """Whether two arguments are one, or equal data."""
    if one is other:
        return True
    if type(one) is not type(other) or is_stand_in(one):
        return False
    if type(one) is dict:
        return len(one) == len(other) and all(n in other and _same(one[n], other[n]) for n in one)
    if type(one) is tuple:
        return len(one) == len(other) and all(map(_same, one, other))
    return bool(one == other) or (one != one and other != other)  # nan
