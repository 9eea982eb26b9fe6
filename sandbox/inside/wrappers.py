"""Decides whether what the candidate made of a function that asserts runs it, as a decorator does.

What a call returns that got such a function is a wrapper of it. Each call of the wrapper by the
tests must run the function, with the same arguments where it got nothing else. One that does not
may have a reason, such as a cache has, so this is no failure: there is no verdict.
"""

from __future__ import annotations

import contextlib
import functools
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from gatekeeper.sandbox.inside.arguments import bound, copied, same
from gatekeeper.sandbox.inside.asserting import FUNCTION_KINDS, Asserting, name_of
from gatekeeper.sandbox.inside.kinds import inner, is_stand_in
from gatekeeper.sandbox.inside.within import parts

__all__ = ["Wrappers"]


class _Wrapped(NamedTuple):
    """What a wrapper got: functions, of which it runs one, and whether it got nothing else."""

    functions: tuple[Any, ...]
    alone: bool


class _Call:
    """A call of a wrapper: its functions, and the arguments that one must get, if known."""

    __slots__ = ("arguments", "functions", "running")

    def __init__(self, functions: Sequence[Any], arguments: Any) -> None:
        self.functions = functions
        self.arguments = None
        with contextlib.suppress(RecursionError):
            self.arguments = copied(arguments)
        self.running = False

    def runs(self, target: Any) -> bool:
        return any(_are_one(function, target) for function in self.functions)

    def takes(self, arguments: Any) -> bool:
        return self.arguments is None or same(self.arguments, copied(arguments))


class Wrappers:
    """The wrappers that the candidate made, and the calls of them that have not run the function.

    Parameters
    ----------
    asserting
        Finds the functions that assert.
    """

    def __init__(self, asserting: Asserting) -> None:
        self._asserting = asserting
        self._wraps: dict[int, _Wrapped] = {}  # by the numbers of the wrappers
        self._owners: dict[int, int] = {}  # of methods, by their numbers
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
        if not is_stand_in(found) and not callable(found):
            return
        called = [inside for item in given if (inside := _functions(item))]
        if not called or any(_are_one(found, item) for item in called[0]):
            return
        functions: list[Any] = []
        for item in called[0]:  # which may be a wrapper, of which this is another one
            known = self._wraps.get(inner(item).number) if is_stand_in(item) else None
            functions += known.functions if known is not None else [item]
        if not all(any(self._asserting.codes(function)) for function in functions):
            return  # a call may run only another one
        if is_stand_in(found):
            number = inner(found).number
            if not is_stand_in(target) or self._owners.get(inner(target).number) != number:
                alone = len(called) == len(functions) == 1
                self._wraps[number] = _Wrapped(tuple(functions), alone)
        elif callable(found) and len(given) == 1:
            self._owed.append(_Call(functions, None))  # it is in the place of the function

    def bound(self, wrapper: Any, found: Any) -> None:
        """A descriptor has returned `found`: a wrapper becomes a method."""
        known = self._wraps.get(inner(wrapper).number) if is_stand_in(wrapper) else None
        if known is not None and is_stand_in(found):
            self._wraps[inner(found).number] = known

    def called(
        self, wrapper: Any, given: Sequence[Any], named: Mapping[str, Any]
    ) -> Callable[..., None]:
        """The tests call a wrapper, or anything else.

        Returns what to do if that raises an exception, or, with its result, if it returns.
        """
        if not self._wraps or not is_stand_in(wrapper):
            return _nothing
        if (known := self._wraps.get(inner(wrapper).number)) is None:
            return _nothing
        taken = [bound(function, given, named) for function in known.functions]
        # `unsubscribe()` calls no function that needs an argument.
        if not (given or named or any(arguments is not None for arguments in taken)):
            return _nothing
        call = _Call(known.functions, taken[0] if known.alone else None)
        self._owed.append(call)
        return functools.partial(self._after, call, given)

    def _after(self, call: _Call, given: Sequence[Any], *results: Any) -> None:
        """A call of a wrapper has raised an exception, or returned a result."""
        kind = call.functions[0]
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
        matching = [c for c in self._owed if not c.running and c.runs(target)]
        arguments = bound(target, given, named) if matching else None
        call = next((c for c in matching if c.takes(arguments)), None)
        if call is not None:
            call.running = True

        def ended(made: Any) -> None:
            if call is not None:
                self._remove(call)
                if (frame := self._asserting.frame(made)) is not None:
                    self._frames.append(frame)

        try:
            yield ended
        finally:
            if call is not None:
                call.running = False

    def left_out(self) -> Iterator[str]:
        """The names of the functions that a wrapper has left out."""
        functions, came = [call.functions[0] for call in self._owed], self._asserting.frames
        yield from map(name_of, functions)
        yield from (frame.f_code.co_name for frame in self._frames if not came[frame])


def _are_one(one: Any, other: Any) -> bool:
    """Whether two objects are one; a method is a new object whenever it is looked up."""
    return one is other or (type(one) is type(other) is types.MethodType and bool(one == other))


def _nothing(*_: Any) -> None:
    pass


def _functions(item: Any) -> list[Any]:
    """The functions in an argument: the argument itself, or those in a list or dict."""
    inside = (part for part in parts(item) if callable(part) or type(part) in FUNCTION_KINDS)
    return [part for part in inside if not _is_error(part)]


def _is_error(item: object) -> bool:
    """Whether an item is a class of exceptions, as `retry(function, KeyError)` gets."""
    return isinstance(item, type) and issubclass(item, BaseException)
