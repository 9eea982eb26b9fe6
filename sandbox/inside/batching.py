"""Asks for many calls of a long loop at once: each question costs a change of process.

    for n in range(100_000):
        assert f(n) == n % 7

Only where it makes no difference: a loop over a `range` whose body always makes one call of a
function that is not built in, with arguments that depend on the loop's variable and on nothing
that the body changes, and that sees nothing that the candidate may change, itself or by an object
of the tests. The first calls are made one by one, so short loops stay as they are.
tests/sandbox/test_sandbox_batching.py compares both ways; benchmarks/sandbox.py measures the gain.
"""

from __future__ import annotations

import ast
import builtins
import functools
import itertools
import types
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from gatekeeper.sandbox.inside.facts import SCALARS
from gatekeeper.sandbox.inside.kinds import Trust, mark
from gatekeeper.sandbox.inside.nodes import walk
from gatekeeper.sandbox.inside.places import is_placed
from gatekeeper.sandbox.inside.standins import Remote

__all__ = ["BATCHER", "Batcher", "batched"]

BATCHER, _NEXT = "__gatekeeper_calls__", "__gatekeeper_next__"  # names in the test program
FIRST = 64  # calls that are made one by one
CHUNK = 256  # calls per question after those
_NONE: tuple[tuple[bool, Any], ...] = ()
_SINGLE = frozenset({*SCALARS, bytes})
_DATA = frozenset({*_SINGLE, tuple, list, dict, set, frozenset})
_FIXED = frozenset({type, types.FunctionType, types.BuiltinFunctionType, types.ModuleType})
_PLAIN = (ast.Name, ast.Constant, ast.BinOp, ast.UnaryOp, ast.Tuple, ast.List)
_PLAIN_PARTS = (ast.operator, ast.unaryop, ast.expr_context)
_BRANCHES = (
    *(ast.If, ast.Try, ast.With, ast.For, ast.While, ast.Match, ast.IfExp, ast.BoolOp, ast.Lambda),
    *(ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.ListComp, ast.SetComp, ast.DictComp),
    *(ast.GeneratorExp, ast.Break, ast.Continue, ast.Return, ast.Yield, ast.YieldFrom, ast.Await),
    *(ast.Global, ast.Nonlocal, ast.Delete, ast.NamedExpr, ast.AsyncFor, ast.AsyncWith, ast.Raise),
)


class Batcher:
    """The iterable of a changed loop: its numbers, each with a function for the call's value.

    Parameters
    ----------
    peer
        The tests' end of the connection.
    """

    def __init__(self, peer: Any) -> None:
        self._peer = peer

    def __call__(
        self,
        numbers: Iterable[Any],
        function: Callable[[], Any],
        arguments: Callable[[Any], tuple[Any, ...]],
        names: Callable[[], tuple[tuple[Any, ...], tuple[Any, ...]]],
    ) -> Iterator[tuple[Any, Callable[[], Any]]]:
        def alone(n: Any) -> Any:
            return function()(*arguments(n))

        steps = iter(numbers)
        for n in itertools.islice(steps, FIRST):
            yield n, functools.partial(alone, n)
        worth_it = True
        while worth_it and (chunk := list(itertools.islice(steps, CHUNK))):
            target, results = function(), _NONE
            if isinstance(target, Remote) and self._independent(*names()):
                # As a tuple: an object could say another length each time, and skip calls.
                results = tuple(self._peer.ask("calls", target, [arguments(n) for n in chunk]))
            for n, (failed, value) in zip(chunk, results, strict=False):
                yield n, functools.partial(self._result, failed, value)
            for n in chunk[len(results) :]:
                yield n, functools.partial(alone, n)
            worth_it = len(results) == len(chunk)
        for n in steps:
            yield n, functools.partial(alone, n)

    def _independent(self, given: Iterable[Any], seen: Iterable[Any]) -> bool:
        """Whether no call changes what the body sees, and the changes of arguments are shared."""
        if self._peer.has_objects:  # it may call them
            return False
        lends = self._peer.lends
        return all(map(self._is_fixed, seen)) and all(map(lends, filter(is_placed, given)))

    def _is_fixed(self, item: Any) -> bool:
        """Whether the candidate cannot change an item, nor what is in it."""
        kind = type(item)
        if kind not in _DATA and kind not in _FIXED:
            return False
        if not self._peer.lends_any or getattr(builtins, getattr(item, "__name__", ""), 0) is item:
            return True
        parts = itertools.chain(item, item.values()) if kind is dict else item
        whole = kind in _SINGLE or (kind in _DATA and _SINGLE.issuperset(map(type, parts)))
        return whole and not self._peer.lends(item)

    def _result(self, failed: bool, value: Any) -> Any:
        if failed:
            raise self._peer.received("call", value)
        mark(value, Trust.RETURNED)
        return value


def batched(nodes: Iterable[ast.AST]) -> None:
    """Change the loops of a program that allow it; `nodes` are all of it."""
    for node in nodes:
        if isinstance(node, ast.For) and (call := _the_call(node)):
            _change(node, call)


def _change(loop: ast.For, call: ast.Call) -> None:
    assert isinstance(loop.target, ast.Name)
    nothing = ast.arguments([], [], None, [], [], None, [])
    number = ast.arguments([], [ast.arg(loop.target.id)], None, [], [], None, [])
    inside = set(map(id, walk(call)))
    body = [n for s in loop.body for n in walk(s) if isinstance(n, ast.Name)]
    changed = {loop.target.id, *(n.id for n in body if isinstance(n.ctx, ast.Store))}
    given = {n.id for a in call.args for n in walk(a) if isinstance(n, ast.Name)} - changed
    outside = {n.id for n in body if id(n) not in inside} - changed
    seen = {name for name in outside if not name.startswith("__gatekeeper")}
    names = ast.Tuple([_values(given), _values(seen)], ast.Load())
    made = ast.Call(
        ast.Name(BATCHER, ast.Load()),
        [
            loop.iter,
            ast.Lambda(nothing, call.func),
            ast.Lambda(number, ast.Tuple([*call.args], ast.Load())),
            ast.Lambda(nothing, names),
        ],
        [],
    )
    loop.target = ast.Tuple([loop.target, ast.Name(_NEXT, ast.Store())], ast.Store())
    loop.iter = made
    call.func, call.args = ast.Name(_NEXT, ast.Load()), []
    for new in (loop.target, loop.iter, call):
        for part in walk(new):
            ast.copy_location(part, loop if new is not call else call)
    ast.fix_missing_locations(loop)


def _values(names: Iterable[str]) -> ast.Tuple:
    return ast.Tuple([ast.Name(name, ast.Load()) for name in names], ast.Load())


def _the_call(loop: ast.For) -> ast.Call | None:
    """The one call of the loop's body that can be made in advance; None if there is none."""
    over = loop.iter
    is_range = isinstance(over, ast.Call) and isinstance(over.func, ast.Name)
    if not (is_range and over.func.id == "range" and isinstance(loop.target, ast.Name)):  # type: ignore[attr-defined]
        return None
    nodes = [node for statement in loop.body for node in walk(statement)]
    if any(isinstance(node, _BRANCHES) for node in nodes):
        return None
    messages = any(isinstance(s, ast.Assert) and s.msg for s in loop.body)
    calls = [node for node in nodes if isinstance(node, ast.Call) and not _is_own(node)]
    changed = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    if len(calls) != 1 or messages or changed & {loop.target.id}:
        return None
    (call,) = calls
    base = call.func.value if isinstance(call.func, ast.Attribute) else call.func
    if call.keywords or not isinstance(base, ast.Name) or base.id in changed:
        return None
    parts = [part for argument in call.args for part in walk(argument)]
    if not all(isinstance(part, (*_PLAIN, *_PLAIN_PARTS)) for part in parts):
        return None
    used = {part.id for part in parts if isinstance(part, ast.Name)}
    chained = any(isinstance(n, ast.Compare) and len(n.ops) > 1 for n in nodes)
    return None if used & changed or chained else call


def _is_own(call: ast.Call) -> bool:
    """Whether a call is of a built-in function, or of one of ours."""
    name = getattr(call.func, "id", "")
    return hasattr(builtins, name) or name.startswith("__gatekeeper")
