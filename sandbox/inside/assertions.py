"""Which parts of a test program are assertions, by its syntax alone."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from gatekeeper.sandbox.inside.nodes import children, walk

__all__ = [
    "LEAVING",
    "TRIES",
    "asserts",
    "asserts_itself",
    "called",
    "decides",
    "lines",
    "proves",
    "swallows",
    "up_to_last",
]

TRIES: tuple[Any, ...] = (ast.Try, getattr(ast, "TryStar", ast.Try))
LEAVING = (ast.Return, ast.Break, ast.Continue)
_FAILING = {"assertTrue": False, "assertFalse": True}  # with such a constant they fail
_ASSERTING = (ast.Assert, ast.Raise, ast.Call)  # nodes that may assert, themselves or by a helper
_INNER = (ast.stmt, ast.excepthandler, ast.match_case, ast.Lambda)  # nodes that are counted alone


def asserts(node: ast.AST) -> bool:
    """Whether a node is an assertion: an `assert`, or a call such as `self.assertEqual(…)`."""
    if isinstance(node, ast.Assert):
        return True
    if isinstance(node, ast.Raise):
        raised = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
        return isinstance(raised, ast.Name) and raised.id == "AssertionError"
    if not isinstance(node, ast.Call):
        return False
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    return name.startswith("assert") or name in ("fail", "failUnless", "raises", "warns")


def lines(nodes: Sequence[ast.AST], helpers: Collection[str]) -> Iterator[int]:
    """Lines that assert, and those of a `with` before one: errors there must not be swallowed."""

    def tests(node: ast.AST) -> bool:
        return asserts(node) or called(node) in helpers

    for node in nodes:
        if isinstance(node, _ASSERTING) and tests(node):
            yield from range(node.lineno, node.end_lineno + 1)  # type: ignore[operator]
        elif isinstance(node, ast.With | ast.AsyncWith):
            inside = [part.lineno for part in walk(node) if tests(part)]  # type: ignore[attr-defined]
            yield from range(node.lineno, max(inside, default=0))


def swallows(node: ast.AST) -> bool:
    """Whether an assertion that fails inside this node would be swallowed."""
    if isinstance(node, ast.With):
        managers = (item.context_expr for item in node.items)
        calls = [m for m in managers if isinstance(m, ast.Call)]
        return any(ast.unparse(c.func).endswith("suppress") and _broad(*c.args) for c in calls)
    if not isinstance(node, TRIES):
        return False
    # In `finally` these drop the exception.
    if any(isinstance(inner, LEAVING) for part in node.finalbody for inner in walk(part)):
        return True
    for handler in node.handlers:
        inside = [n for n in walk(handler) if isinstance(n, ast.Raise) or asserts(n)]
        kinds = (handler.type,) if handler.type is not None else ()
        if not inside and _broad(*kinds) and not _notes(handler):
            return True
    return False


def _broad(*kinds: ast.expr) -> bool:
    """Whether these exceptions include a failed assertion; without any, all are caught."""
    names = {ast.unparse(kind) for kind in kinds}
    names |= {ast.unparse(e) for kind in kinds if isinstance(kind, ast.Tuple) for e in kind.elts}
    return not kinds or bool(names & {"AssertionError", "Exception", "BaseException"})


def _notes(handler: ast.excepthandler) -> bool:
    """Whether a handler does more than continue: it may keep the exception for a later check."""
    quiet = (ast.Pass, ast.Continue, ast.Break)
    return not all(
        isinstance(n, quiet) or (isinstance(n, ast.Expr) and "print" in ast.unparse(n))
        for n in getattr(handler, "body", ())
    )


def decides(statement: ast.AST) -> bool:
    """Whether a branch of a statement can only fail: then not reaching it is the assertion."""
    if not isinstance(statement, (ast.If, ast.Match, *TRIES)):
        return False
    parts = [statement, *getattr(statement, "cases", ()), *getattr(statement, "handlers", ())]
    blocks = (getattr(part, name, ()) for part in parts for name in ("body", "orelse"))
    return any(_fails(inner) for block in blocks for inner in block)


def _fails(part: ast.AST) -> bool:
    """Whether a statement, or the body of a lambda, is an assertion that can only fail."""
    if isinstance(part, ast.Assert):
        return _constant(part.test) is False
    call = part.value if isinstance(part, ast.Expr) else part
    if isinstance(call, ast.Raise):
        return asserts(call)
    if not isinstance(call, ast.Call):
        return False
    name = getattr(call.func, "attr", "")
    if name in _FAILING and call.args:
        return _constant(call.args[0]) is _FAILING[name]
    return name == "fail"


def _constant(node: ast.AST) -> bool | None:
    """Whether a constant, or `not` before one, is true; None for anything else."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        inside = _constant(node.operand)
        return None if inside is None else not inside
    return bool(node.value) if isinstance(node, ast.Constant) else None


def proves(node: ast.AST) -> bool:
    """Whether a statement, or the body of a lambda or generator, asserts what may hold."""
    if isinstance(node, ast.Lambda):
        return asserts_itself(node.body) and not _fails(node.body)
    if isinstance(node, ast.GeneratorExp):
        return asserts_itself(node.elt)
    if not isinstance(node, ast.stmt) or _fails(node):
        return False
    return asserts_itself(node) or decides(node)


def asserts_itself(statement: ast.AST) -> bool:
    """Whether a statement asserts something, without the statements inside it."""
    todo = [statement]
    while todo:
        node = todo.pop()
        if asserts(node):
            return True
        todo += [n for n in children(node) if not isinstance(n, _INNER)]
    return False


def called(node: ast.AST) -> str:
    """The name of the function or method that a node calls; else empty."""
    function = node.func if isinstance(node, ast.Call) else None
    return str(getattr(function, "attr", None) or getattr(function, "id", ""))


def up_to_last(body: Sequence[ast.stmt], helpers: Collection[str]) -> int:
    """The number of statements up to the last that asserts, itself or by a helper; of all, if none.

    `helpers` are the names of functions that assert.
    """
    for number in range(len(body), 0, -1):
        if any(asserts(node) or called(node) in helpers for node in walk(body[number - 1])):
            return number
    return len(body)
