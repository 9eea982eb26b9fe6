"""Tests that the host can judge: `assert f(...) == <literal>` and similar ones.

Such a test is split. The call goes to the sandbox; the expected value stays here.
"""

from __future__ import annotations

import ast
import builtins
import operator
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from gatekeeper.io.syntax import dedent, parse_python

__all__ = ["LiteralTest", "parse"]


def _is_in(item: Any, container: Any) -> bool:
    if isinstance(container, range) and not isinstance(item, int):
        # `in` would compare all elements one by one, and a range may have 10**18.
        return isinstance(item, float) and item.is_integer() and int(item) in container
    return operator.contains(container, item)


def _is_not_in(item: Any, container: Any) -> bool:
    return not _is_in(item, container)


_OPERATORS: dict[type[ast.cmpop], Callable[[Any, Any], object]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
    ast.In: _is_in,
    ast.NotIn: _is_not_in,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


@dataclass(frozen=True, slots=True)
class LiteralTest:
    """`call`, which uses `names`, is evaluated in the sandbox; `holds` judges its decoded value.

    It can be pickled, because another process reads long tests.
    """

    source: str
    call: str
    names: frozenset[str]
    holds: Callable[[object], bool]  # may raise what the comparison raises


def parse(test: str, helpers: frozenset[str] = frozenset()) -> LiteralTest | None:
    """The test, split, or None if that is not possible.

    Parameters
    ----------
    test
        A statement.
    helpers
        Names that are not the candidate's. A test that calls one of them gets the value of a
        helper, which the candidate could deceive with an object of its own: the parent cannot
        judge such a test.

    Raises
    ------
    SyntaxError
        `test` is not valid Python.
    ValueError
        `test` has no statement.
    """
    test = dedent(test).strip()
    match parse_python(test).body:
        case []:
            raise ValueError("it contains no statement")
        case [ast.Assert(test=condition)]:
            cut = _cut(condition, helpers)
        case _:
            return None
    if cut is None:
        return None
    call, holds = cut
    if test.isascii() and "\n" not in test:  # columns are bytes; get_source_segment is slow
        source = test[call.col_offset : call.end_col_offset]
    else:
        source = ast.get_source_segment(test, call) or ""
    names = frozenset(node.id for node in ast.walk(call) if isinstance(node, ast.Name))
    return LiteralTest(test, source, names, holds) if source else None


def _cut(
    condition: ast.expr, helpers: frozenset[str]
) -> tuple[ast.expr, Callable[[object], bool]] | None:
    match condition:
        case ast.UnaryOp(op=ast.Not(), operand=inner):
            cut = _cut(inner, helpers)
            if cut is None:
                return None
            call, holds = cut
            return call, partial(_is_not, holds)
        case ast.Compare(
            left=ast.Call(func=ast.Name(id="abs"), args=[ast.BinOp(a, ast.Sub(), b)], keywords=[]),
            ops=[ast.Lt() | ast.LtE() as op],
            comparators=[bound],
        ):
            compare, tolerance = _OPERATORS[type(op)], _literal(bound)
            for call, other in ((a, b), (b, a)):
                if _asks_candidate(call, helpers) and tolerance and (near := _literal(other)):
                    return call, partial(_within, compare, near[0], tolerance[0])
            return None
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            compare = _OPERATORS[type(op)]
            singleton = isinstance(op, ast.Is | ast.IsNot)
            for call, other, swapped in ((left, right, False), (right, left, True)):
                expected = _literal(other)
                if expected is None or (singleton and not _is_singleton(expected[0])):
                    continue
                if swapped and isinstance(op, ast.In | ast.NotIn):
                    continue  # a generator, or an object of a class: only the judge can look
                # One bit is easily guessed: for a yes or no, only the candidate's own function is
                # called, never a built-in function that it might have replaced.
                value = isinstance(op, ast.Eq) and not isinstance(expected[0], bool)
                if _asks_candidate(call, helpers) or (value and _asks_builtin(call, helpers)):
                    return call, partial(_against, compare, expected[0], swapped)
            return None
        case _:
            return (condition, bool) if _asks_candidate(condition, helpers) else None


def _is_singleton(value: object) -> bool:
    return value is None or value is True or value is False


def _against(
    compare: Callable[[Any, Any], object], expected: object, swapped: bool, value: object
) -> bool:
    return bool(compare(expected, value) if swapped else compare(value, expected))


def _within(compare: Callable[[Any, Any], object], near: Any, tolerance: Any, value: Any) -> bool:
    return bool(compare(abs(value - near), tolerance))


def _is_not(holds: Callable[[object], bool], value: object) -> bool:
    return not holds(value)


def _literal(node: ast.expr) -> tuple[object] | None:
    """The value, in a tuple so that None is a value too."""
    try:
        return (ast.literal_eval(node),)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None


def _asks_candidate(node: ast.expr, helpers: frozenset[str]) -> bool:
    """Whether a node is a call of a function that can only be the candidate's."""
    match node:
        case ast.Call(func=ast.Name(id=name)):
            return name not in helpers and not hasattr(builtins, name)
        case _:
            return False


def _asks_builtin(node: ast.expr, helpers: frozenset[str]) -> bool:
    """Whether a node is a call of a built-in function that depends on the candidate.

    The function gets a value of the candidate's, as in `int(f(3))`, or the candidate replaces it.

    Its arguments contain no part of the expected value, so the candidate cannot deceive it.
    """
    match node:
        case ast.Call(func=ast.Name(id=name), args=args, keywords=keywords):
            inner = [*args, *(k.value for k in keywords)]
            return name not in helpers and all(
                _literal(a) is not None or _asks_candidate(a, helpers) for a in inner
            )
        case _:
            return False
