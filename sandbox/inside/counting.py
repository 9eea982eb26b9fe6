"""How many of its assertions a run of a test program has reached.

A test that asserts nothing would pass every candidate: without a count there is no verdict.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import functools
import inspect
import sys
import types
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from gatekeeper.sandbox.inside.assertions import (
    LEAVING,
    TRIES,
    asserts,
    asserts_itself,
    called,
    decides,
    swallows,
    up_to_last,
)
from gatekeeper.sandbox.inside.guard import EXCUSED, RAISED, RefusedError, is_failure, parts
from gatekeeper.sandbox.inside.kinds import of_tests
from gatekeeper.sandbox.inside.nodes import walk
from gatekeeper.sandbox.inside.private import formatted
from gatekeeper.sandbox.inside.wrapped import derived, mentions, reachable, wrapped

__all__ = ["COUNTER", "Count", "as_written", "counted"]

_GENERATOR = inspect.CO_GENERATOR | inspect.CO_ASYNC_GENERATOR
COUNTER = "__gatekeeper_asserts__"  # the name under which a test program finds its `Count`


class Count:
    """Counts which assertions of the tests have run.

    Parameters
    ----------
    frames
        Frames of generators and coroutines, with whether they came to an assertion, themselves or
        in what they called; a coroutine to the end of its last one.

    Attributes
    ----------
    reached
        How often the first assertion of a block has ended, or begun where it may end the block.
    bodies
        For each test function that the candidate may get: whether its body ran to its end the last
        time. A decorator may call it often, but must call it.
    codes
        The code of all that was running when one was reached, by id: its hash takes long.
    """

    def __init__(self, frames: dict[types.FrameType, bool] | None = None) -> None:
        self._frames = {} if frames is None else frames
        self.reached = 0
        self.bodies: dict[str, bool] = {}
        self.codes: dict[int, types.CodeType] = {}
        self._wrapped: set[str] = set()  # those that a decorator of the candidate's gets
        self._failed: BaseException | None = None

    def __call__(self) -> None:
        self.reached += 1
        caller: types.FrameType | None = sys._getframe(1)
        while caller is not None:
            code = caller.f_code
            self.codes[id(code)] = code
            if code.co_flags & _GENERATOR:
                self._came(caller)
            caller = caller.f_back

    @contextlib.contextmanager
    def whole(self) -> Iterator[None]:
        """Around the part of a coroutine that has its assertions."""
        frame = sys._getframe(2)
        yield
        self._came(frame)

    def _came(self, frame: types.FrameType) -> None:
        if frame in self._frames:
            self._frames[frame] = True

    def body(self, function: Any) -> Any:
        """The test, which a decorator of the candidate's gets, wrapped as `seen` does."""
        self._wrapped.add(function.__qualname__)
        return self._noting(function)

    def seen(self, function: Any) -> Any:
        """The function, wrapped so that its end is recorded."""
        made = self._noting(function)
        _WRITTEN[made] = function
        return made

    def _noting(self, function: Any) -> Any:
        name = function.__qualname__
        self.bodies[name] = False
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def noted(*arguments: Any, **keywords: Any) -> Any:
                with self._running(function, arguments, keywords):
                    return await function(*arguments, **keywords)
        elif inspect.isasyncgenfunction(function):

            @functools.wraps(function)
            async def noted(*arguments: Any, **keywords: Any) -> Any:
                with self._running(function, arguments, keywords):
                    async for item in function(*arguments, **keywords):
                        yield item
        elif inspect.isgeneratorfunction(function):

            @functools.wraps(function)
            def noted(*arguments: Any, **keywords: Any) -> Any:
                with self._running(function, arguments, keywords):
                    return (yield from function(*arguments, **keywords))
        else:

            @functools.wraps(function)
            def noted(*arguments: Any, **keywords: Any) -> Any:
                with self._running(function, arguments, keywords):
                    return function(*arguments, **keywords)

            if name.rpartition(".")[2].lower().startswith(("setup", "teardown")):
                # pytest gives a setup as many arguments as its code says.
                few: dict[int, Any] = {0: lambda: noted(), 1: lambda a: noted(a)}
                few[2] = lambda a, b: noted(a, b)
                given = few.get(function.__code__.co_argcount, noted)
                return given if given is noted else functools.wraps(function)(given)

        return noted

    @contextlib.contextmanager
    def _running(
        self, function: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]
    ) -> Iterator[None]:
        """Record whether the body of a test ends: of a method, with an object of the tests.

        An assertion that fails in it is marked: a decorator may run the test again.
        """
        name = function.__qualname__
        self.bodies[name] = False
        method = function.__code__.co_varnames[:1] == ("self",)
        owner = arguments[0] if arguments else keywords.get("self")
        if method and not of_tests(owner, function.__module__):
            raise AssertionError(f"{name}: the candidate called it with an object of its own")
        try:
            yield
        except AssertionError as error:
            vars(error)[EXCUSED] = name
            raise
        self.bodies[name] = True

    def caught(self, kinds: Any) -> tuple[Any, ...]:
        """The candidate's classes of an `except`: none where an assertion of the tests failed.

        `TooSmall = AssertionError` would else catch the `assert False` of a test that expects it.
        """
        if _failed(sys.exc_info()[1]):
            return ()
        return kinds if isinstance(kinds, tuple) else (kinds,)

    @contextlib.contextmanager
    def kept(self) -> Iterator[None]:
        """Record an assertion that fails where a class of the candidate's may swallow it."""
        try:
            yield
        except BaseException as error:
            if _failed(error):
                self._failed = error
            raise

    def keeping(self, function: Any) -> Any:
        """The function, which runs within `kept`; anything else as it is."""
        if isinstance(function, type) or not callable(function):
            return function

        def run(*arguments: Any, **keywords: Any) -> Any:
            with self.kept():
                return function(*arguments, **keywords)

        return run

    def template(self, item: Any, *known: str) -> Any:
        """An item that is formatted: no text of the candidate's that reads what is private.

        `known` are the names of such attributes in texts of the tests.
        """
        if issubclass(type(item), str) and (found := {*formatted(item)} - {*known}):
            raise RefusedError(f"a text of the candidate's reads {min(found)} when it is formatted")
        return item

    def check(self, handed: Collection[str] = ()) -> None:
        """Raises AssertionError if an assertion failed, or the candidate left out a test.

        `handed` has the qualified names of the functions that it was handed.
        """
        if self._failed is not None:
            raise self._failed
        for name, ended in self.bodies.items():
            if not ended and (name in self._wrapped or name in handed):
                raise AssertionError(f"{name}: the candidate got it, and it was not run to its end")


_WRITTEN: dict[types.FunctionType, Any] = {}  # by the functions that `Count.seen` makes of them


def as_written(item: Any) -> Any:
    """The function of the tests that `Count.seen` has wrapped; anything else as it is."""
    return _WRITTEN.get(item, item) if type(item) is types.FunctionType else item


def _failed(error: BaseException | None) -> bool:
    """Whether an error is a failed assertion of the tests, not an exception of the candidate."""
    if error is None:
        return False
    return any(is_failure(part) and RAISED not in vars(part) for part in parts(error))


def counted(
    nodes: Sequence[ast.AST], theirs: frozenset[str], helpers: Collection[str] = ()
) -> None:
    """Make a program count. `nodes` are all its nodes, `theirs` the candidate's names,
    `helpers` those of functions of the tests that assert.

    A call of the counter is put behind the first statement of a block that asserts by itself: a
    candidate could keep the statement from ending, in a thread or task that the tests do not wait
    for. A run that reaches a later one has passed there. The end of test functions that the
    candidate may get is recorded, and exceptions of `theirs` catch no assertion; nor does any class
    that the program does not name itself.
    """
    found: dict[type, list[Any]] = {}
    for node in nodes:
        found.setdefault(type(node), []).append(node)
    theirs = derived(found.get(ast.Assign, ()), theirs)
    tests = reachable(nodes)
    left_out = [*wrapped(nodes, theirs)] if tests else []
    for test in tests:
        test.decorator_list.append(_method("body" if test in left_out else "seen", test))
    for node in nodes:
        if isinstance(node, ast.Lambda):
            if any(map(asserts, walk(node.body))):
                both = ast.Tuple([node.body, _counting(node.body)], ast.Load())
                first = ast.Subscript(both, ast.Constant(0), ast.Load())
                node.body = ast.fix_missing_locations(ast.copy_location(first, node.body))
        elif isinstance(node, _BLOCKS) and not swallows(node):
            for field in ("body", "orelse", "finalbody"):
                expected = isinstance(node, TRIES) and field == "body"
                _count_in(getattr(node, field, []), expected)
    for node in found.get(ast.AsyncFunctionDef, ()):
        _enclose(node, helpers)
    named = functools.cache(lambda: _names_assertions(nodes))

    def unknown(kind: ast.expr) -> bool:
        """Whether a class of exceptions may be one that only the candidate chose."""
        known = isinstance(kind, ast.Constant) or hasattr(builtins, getattr(kind, "id", ""))
        return not known and (mentions([kind], theirs) or not named())

    expecting = {
        id(node)
        for node in found.get(ast.Call, ())
        if called(node) in _EXPECTS and any(map(unknown, _given(node)[:1]))
    }
    _keep_private(found)
    for kind in (ast.Call, ast.ExceptHandler, ast.With, ast.AsyncWith):
        for node in found.get(kind, ()):
            if kind is not ast.Call or id(node) in expecting:
                _keep(node, theirs, unknown, expecting)


_BLOCKS = (ast.mod, ast.stmt, ast.excepthandler, ast.match_case)  # nodes that contain statements
_CATCHES_ALL = frozenset({"AssertionError", "Exception", "BaseException"})
_EXPECTS = frozenset({"suppress", "raises", "assertRaises", "assertRaisesRegex"})


def _counting(node: ast.expr | ast.stmt) -> ast.Call:
    """A call of the counter, with the position of a node."""
    name = ast.copy_location(ast.Name(COUNTER, ast.Load()), node)
    return ast.copy_location(ast.Call(name, [], []), node)


def _method(name: str, node: ast.expr | ast.stmt) -> ast.expr:
    """A method of the counter, with the position of a node."""
    found = ast.Attribute(ast.Name(COUNTER, ast.Load()), name, ast.Load())
    return ast.fix_missing_locations(ast.copy_location(found, node))


def _names_assertions(nodes: Sequence[ast.AST]) -> bool:
    """Whether a program holds a class that catches assertions as a value, such as a default.

    Not where it only catches, raises, extends, annotates or compares.
    """
    names = {id(n) for n in nodes if isinstance(n, ast.Name) and n.id in _CATCHES_ALL}
    for node in nodes if names else ():
        used = [getattr(node, field, None) for field in ("annotation", "returns")]
        if isinstance(node, ast.ExceptHandler):
            used.append(node.type)
        elif isinstance(node, ast.Raise):
            used.append(node.exc)
        elif isinstance(node, ast.ClassDef):
            used += node.bases
        elif called(node).lower().endswith(("raises", "suppress", "isinstance", "issubclass")):
            used += node.args  # type: ignore[attr-defined]
        names -= {id(inner) for part in used if part is not None for inner in walk(part)}
    return bool(names)


def _keep(
    node: ast.AST,
    theirs: frozenset[str],
    unknown: Callable[[ast.expr], bool],
    expecting: set[int],
) -> None:
    """Let no class of the candidate's catch a failed assertion: in `except`, or in `raises(…)`.

    `expecting` has the ids of the calls that expect an exception of such a class.
    """
    if isinstance(node, ast.ExceptHandler) and node.type is not None:
        kinds = node.type.elts if isinstance(node.type, ast.Tuple) else [node.type]
        if any(map(unknown, kinds)):
            place = node.type
            caught = [
                ast.Starred(ast.Call(_method("caught", k), [k], []), ast.Load())
                if unknown(k)
                else k
                for k in kinds
            ]
            node.type = ast.copy_location(ast.Tuple(caught, ast.Load()), place)
            ast.fix_missing_locations(node)
    elif isinstance(node, (ast.With, ast.AsyncWith)):
        calls = [i.context_expr for i in node.items if isinstance(i.context_expr, ast.Call)]
        kept = mentions([part for call in calls for part in _given(call)], theirs)
        if kept or (expecting and not expecting.isdisjoint(map(id, walk(node)))):
            item = ast.withitem(ast.Call(_method("kept", node), [], []))
            node.body = [ast.copy_location(ast.With([item], node.body), node.body[0])]
            ast.fix_missing_locations(node)
    elif isinstance(node, ast.Call):
        at = 2 if called(node) == "assertRaisesRegex" else 1  # of the function that is to raise
        if called(node) != "suppress" and len(node.args) > at:
            function = node.args[at]
            node.args[at] = ast.Call(_method("keeping", function), [function], [])
            ast.fix_missing_locations(ast.copy_location(node.args[at], function))


def _keep_private(found: Mapping[type, Sequence[Any]]) -> None:
    """Let no text of the candidate's read what is private, where the tests format it."""
    texts: list[tuple[ast.Attribute | list[ast.expr], ast.expr]] = []
    for node in found.get(ast.Attribute, ()):  # template().format, also where it is called later
        if node.attr in _FORMATS and not isinstance(node.value, ast.Constant):
            texts.append((node, node.value))
    for call in found.get(ast.Call, ()):  # str.format(template()), string.Formatter().vformat(…)
        by = ast.unparse(call.func.value) if isinstance(call.func, ast.Attribute) else ""
        if called(call) in _FORMATS and call.args and (by == "str" or "Formatter" in by):
            texts.append((call.args, call.args[0]))
    constants = found.get(ast.Constant, ()) if texts else ()
    known = {name for c in constants if type(c.value) is str for name in formatted(c.value)}
    for place, text in texts:
        names = [ast.Constant(name) for name in sorted(known)]
        made = ast.Call(_method("template", text), [text, *names], [])
        ast.fix_missing_locations(ast.copy_location(made, text))
        if isinstance(place, list):
            place[0] = made
        else:
            place.value = made


_FORMATS = frozenset({"format", "format_map", "vformat"})


def _given(call: Any) -> list[ast.expr]:
    """The arguments of a call."""
    return [*call.args, *(keyword.value for keyword in call.keywords)]


def _enclose(coroutine: ast.AsyncFunctionDef, helpers: Collection[str]) -> None:
    """Record where a coroutine has left the part of its body that asserts."""
    body = coroutine.body
    first = 0 if ast.get_docstring(coroutine) is None else 1
    last = up_to_last(body, helpers)
    if last > first:
        item = ast.withitem(ast.Call(_method("whole", coroutine), [], []))
        made = ast.copy_location(ast.With([item], body[first:last]), body[first])
        body[first:last] = [ast.fix_missing_locations(made)]


def _count_in(block: list[ast.stmt], expected: bool) -> None:
    """Count the first assertion of a block; `expected`: its tests handle some of its exceptions."""
    for number, statement in enumerate(block):
        if asserts_itself(statement) or decides(statement):
            # Behind these the run may not come, although it passed.
            leaves = any(isinstance(node, LEAVING) for node in walk(statement))
            at = number if expected or leaves or isinstance(statement, ast.Raise) else number + 1
            block.insert(at, ast.copy_location(ast.Expr(_counting(statement)), statement))
            return
