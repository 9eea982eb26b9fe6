"""Decides which objects of the tests assert something if they are called, awaited or exhausted.

By their syntax: a function asserts if it has an assertion that may hold, or calls a function of the
tests that has one. A method, a partial function, a class or a wrapper does if what it holds does.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import types
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from gatekeeper.sandbox.inside.assertions import TRIES, proves, up_to_last
from gatekeeper.sandbox.inside.guard import Guard
from gatekeeper.sandbox.inside.kinds import is_stand_in
from gatekeeper.sandbox.inside.nodes import FUNCTIONS, children, walk

__all__ = ["FUNCTION_KINDS", "Asserting", "name_of"]

_HOLDERS: dict[type, str] = {  # what holds a function -> the attribute that is the function
    types.MethodType: "__func__",
    staticmethod: "__func__",
    classmethod: "__func__",
    functools.partial: "func",
    property: "fget",
    functools.cached_property: "func",
    type(functools.lru_cache(len)): "__wrapped__",
}
FUNCTION_KINDS = {types.FunctionType, *_HOLDERS}
_FRAMES = {  # what runs the body of a function later -> the name of its frame
    types.GeneratorType: "gi_frame",
    types.CoroutineType: "cr_frame",
    types.AsyncGeneratorType: "ag_frame",
}
_NAMES = {ast.Lambda: "<lambda>", ast.GeneratorExp: "<genexpr>"}
_FUNCTIONS = (*FUNCTIONS, *_NAMES)


class Asserting:
    """The functions of the tests that assert something if they run.

    Parameters
    ----------
    programs
        The tests.

    Attributes
    ----------
    frames
        Frames of generators and coroutines, with whether they came to an assertion (`Count`).
    """

    def __init__(self, programs: Sequence[str]) -> None:
        self._programs = programs
        # Not their ids, which later ones could have again.
        self.frames: dict[types.FrameType, bool] = {}

    def codes(self, item: Any, *, surely: bool = False) -> Iterator[types.CodeType]:
        """The code of those that a call of an object of the tests may run.

        Of a class, those of its methods. `surely`: not of those that only call a method of the name
        of one that asserts.
        """
        todo, seen = [item], set[int]()
        while todo:
            part = todo.pop()
            if id(part) in seen or is_stand_in(part):
                continue
            seen.add(id(part))
            if isinstance(part, type):
                inside = (m for kind in part.__mro__ for m in vars(kind).items())
                # The tests themselves run whatever the candidate does.
                inside = (m for name, m in inside if not name.startswith("test"))
                todo += [m for m in inside if type(m) in FUNCTION_KINDS]
            elif type(part) is types.FunctionType:
                if self._asserts(part.__code__, surely=surely):
                    yield part.__code__
                todo += _held(part)
            elif (name := _HOLDERS.get(type(part))) is not None:
                todo.append(function := getattr(part, name))
                if _is_assertion(function):
                    yield function.__code__
            else:
                todo += [vars(kind).get("__call__") for kind in type(part).__mro__]

    def frame(self, made: Any) -> types.FrameType | None:
        """The frame of a generator or coroutine that has an assertion to come to; else None."""
        name = _FRAMES.get(type(made))
        frame = None if name is None else getattr(made, name)
        if frame is None or not self._asserts(frame.f_code, surely=True):
            return None
        if name != "cr_frame" and _key(frame.f_code) not in self._by_itself:
            return None  # it may give the functions that assert to others
        if frame.f_lineno > self._last_lines.get(_key(frame.f_code), frame.f_lineno):
            return None  # it is past them, as a task may be that the tests have started
        self.frames.setdefault(frame, False)
        return frame  # type: ignore[no-any-return]

    def not_run(self, came: Iterable[types.CodeType]) -> Iterator[str]:
        """The names of all functions that assert, but for those that came to an assertion."""
        ran = {_key(code) for code in came}
        return (key[0] for key in self._proving if key not in ran)

    def _asserts(self, code: types.CodeType, *, surely: bool) -> bool:
        if code.co_filename not in Guard.files:
            return False
        found = self._proving.get(_key(code))
        return found is not None and (found or not surely)

    @functools.cached_property
    def _proving(self) -> dict[tuple[str, int], bool]:
        """Names and first lines of the functions that assert something if they run.

        Each with whether that is sure: it calls no method that may be another one.
        """
        functions = [*map(_Function, self._functions)]
        sure = _asserting(functions, "id")
        return {f.key: f in sure for f in _asserting(functions, "id", "attr")}

    @functools.cached_property
    def _last_lines(self) -> dict[tuple[str, int], int]:
        """Of coroutines: the last line of the last of their statements that asserts."""
        names = {name for name, _ in self._proving}
        return {
            _Function(node).key: node.body[up_to_last(node.body, names) - 1].end_lineno or 0
            for node in self._functions
            if isinstance(node, ast.AsyncFunctionDef)
        }

    @functools.cached_property
    def _by_itself(self) -> set[tuple[str, int]]:
        """Those of which the functions within assert nothing, unless they call these."""
        functions = [_Function(node, within=False) for node in self._functions]
        return {function.key for function in _asserting(functions, "id")}

    @functools.cached_property
    def _functions(self) -> list[Any]:
        nodes = [node for program in self._programs for node in walk(ast.parse(program))]
        return [node for node in nodes if isinstance(node, _FUNCTIONS)]


class _Function:
    """A function of the tests, and what its syntax says.

    Attributes
    ----------
    key
        Its name and first line.
    asserts
        Whether it asserts something itself.
    called
        What it calls.
    """

    def __init__(self, node: Any, *, within: bool = True) -> None:
        lines = [node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))]
        self.key = getattr(node, "name", _NAMES.get(type(node), "")), min(lines)
        nodes = walk(node) if within else _own(node)
        if isinstance(node, ast.AsyncFunctionDef):  # the error of a `try` may be a cancellation
            nodes = [part for part in nodes if not isinstance(part, TRIES)]
        self.asserts = any(map(proves, nodes))
        self.called = [part.func for part in nodes if isinstance(part, ast.Call)]


def _asserting(functions: Sequence[_Function], *kinds: str) -> set[_Function]:
    """Those of the functions that assert something, themselves or by another one that they call.

    `kinds` are the fields of what they call that may have the name of that one.
    """
    found = {function for function in functions if function.asserts}
    while True:
        names = {function.key[0] for function in found}
        more = {
            function
            for function in functions
            if any(getattr(node, kind, None) in names for node in function.called for kind in kinds)
        }
        if more <= found:
            return found
        found |= more


def _is_assertion(function: Any) -> bool:
    """Whether a function is one of unittest, such as that of `self.assertEqual`."""
    if type(function) is not types.FunctionType:
        return False
    return function.__name__.startswith("assert") and function.__module__ == "unittest.case"


def _own(function: ast.AST) -> list[ast.AST]:
    """The nodes of a function, without the functions within."""
    found = [function]
    for node in found:  # the list grows during the loop
        found += [part for part in children(node) if not isinstance(part, _FUNCTIONS)]
    return found


def _key(code: types.CodeType) -> tuple[str, int]:
    return code.co_name, code.co_firstlineno


def name_of(item: Any) -> str:
    """The name of a function of the tests, or of an object's class, for a message."""
    return str(getattr(item, "__qualname__", type(item).__qualname__))


def _held(function: Any) -> Iterator[Any]:
    """The functions that a function of the tests has in its closure, such as one that it wraps."""
    yield vars(function).get("__wrapped__")
    for cell in getattr(function, "__closure__", None) or ():
        with contextlib.suppress(ValueError):  # it is empty
            if type(cell.cell_contents) in FUNCTION_KINDS:
                yield cell.cell_contents
