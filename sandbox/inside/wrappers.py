"""Functions of the tests that assert something, and that the candidate wraps, as a decorator does.

A wrapper that leaves out the function leaves out its assertions. It may have a reason, such as a
cache has, so this is no failure: there is no verdict.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import inspect
import types
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from gatekeeper.sandbox.inside.assertions import proves
from gatekeeper.sandbox.inside.kinds import inner, is_stand_in
from gatekeeper.sandbox.inside.nodes import FUNCTIONS, walk

__all__ = ["Wrappers"]

_FUNCTIONS = (types.FunctionType, types.MethodType)
_FRAMES = {  # what runs the body of a function later -> the name of its frame
    types.GeneratorType: "gi_frame",
    types.CoroutineType: "cr_frame",
    types.AsyncGeneratorType: "ag_frame",
}


class _Call:
    """A call of a wrapper: the function, and the arguments that it must get, if known."""

    __slots__ = ("arguments", "function")

    def __init__(self, function: Any, arguments: Any) -> None:
        self.function, self.arguments = function, arguments

    def takes(self, arguments: Any) -> bool:
        return self.arguments is None or _same(self.arguments, arguments)


class Wrappers:
    """The wrappers that the candidate made, and the calls of them that have not run the function.

    Parameters
    ----------
    programs
        The tests.
    """

    def __init__(self, programs: Sequence[str]) -> None:
        self._programs = programs
        self._wraps: dict[int, Any] = {}  # functions, by the numbers of their wrappers
        self._ended: dict[Any, None] = {}  # functions that have run to their end
        self._owed: list[_Call] = []  # calls of wrappers that have not run their function
        self._frames: list[types.FrameType] = []  # which must come to an assertion

    def made(self, given: Sequence[Any], found: Any) -> None:
        """A call with these arguments has returned `found`: maybe a wrapper of one of them."""
        if not any(isinstance(item, _FUNCTIONS) for item in given):
            return
        functions = [item for item in given if callable(item) and not _is_error(item)]
        function = functions[0]
        itself = isinstance(found, _FUNCTIONS) and found == function
        if len(functions) > 1 or itself or not self._proves(function):
            return
        if is_stand_in(found):
            self._wraps[inner(found).number] = function
        elif callable(found) and function not in self._ended:  # in the place of the function
            self._owed.append(_Call(function, None))

    def bound(self, wrapper: Any, found: Any) -> None:
        """A descriptor has returned `found`, as a wrapper becomes a method."""
        if is_stand_in(found) and (function := self._wraps.get(inner(wrapper).number)) is not None:
            self._wraps[inner(found).number] = function

    def called(
        self, wrapper: Any, given: Sequence[Any], named: Mapping[str, Any]
    ) -> Callable[[], None]:
        """The tests call a wrapper, or anything else; what to do if that raises an exception."""
        function = None
        if self._wraps and is_stand_in(wrapper):
            function = self._wraps.get(inner(wrapper).number)
        arguments = None if function is None else _bound(function, given, named)
        # `unsubscribe()` calls no function that needs an argument.
        if function is None or (arguments is None and not (given or named)):
            return _nothing
        call = _Call(function, arguments)
        self._owed.append(call)
        return functools.partial(self._remove, call)

    def _remove(self, call: _Call) -> None:
        with contextlib.suppress(ValueError):
            self._owed.remove(call)

    def ended(self, target: Any, given: Sequence[Any], named: Mapping[str, Any], made: Any) -> None:
        """The candidate has called a function of the tests, and it has returned `made`."""
        if not isinstance(target, _FUNCTIONS):
            return
        self._ended[target] = None
        arguments = _bound(target, given, named) if self._owed else None
        for call in self._owed:
            if call.function == target and call.takes(arguments):
                self._remove(call)
                if (frame := _FRAMES.get(type(made))) is not None:
                    self._frames.append(getattr(made, frame))
                return

    def left_out(self, reached: Collection[types.FrameType]) -> str:
        """The name of a function that a wrapper has left out; empty if there is none.

        `reached` are the frames that came to an assertion.
        """
        names = [str(call.function.__qualname__) for call in self._owed]
        names += [frame.f_code.co_name for frame in self._frames if frame not in reached]
        return next(iter(names), "")

    def _proves(self, function: Any) -> bool:
        code = getattr(inspect.unwrap(function), "__code__", None)
        return code is not None and (code.co_name, code.co_firstlineno) in self._proving

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


def _nothing() -> None:
    pass


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
    if isinstance(one, dict):
        return len(one) == len(other) and all(n in other and _same(one[n], other[n]) for n in one)
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(_same, one, other))
    return bool(one == other) or (one != one and other != other)  # nan
