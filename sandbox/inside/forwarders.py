"""The special methods of stand-ins: operators, conversions, containers, iteration, `with`.

A class of stand-ins has those of the class that it stands for. The head of `standins.py` says which
of their answers are accepted, and which data of the tests they may send.
"""

from __future__ import annotations

import contextlib
import functools
import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from gatekeeper.sandbox.inside.facts import exact
from gatekeeper.sandbox.inside.guard import is_failure
from gatekeeper.sandbox.inside.kinds import (
    Trust,
    ask,
    decides,
    first,
    given,
    has,
    inner,
    is_alias,
    is_instance,
    is_stand_in,
    kind_of,
    mark,
    refusal,
    theirs,
)
from gatekeeper.sandbox.inside.library_values import WRITERS
from gatekeeper.sandbox.inside.operations import (
    BINARY,
    BITWISE,
    CONVERSIONS,
    INPLACE,
    OPERATIONS,
    ORDERINGS,
    UNARY,
)
from gatekeeper.sandbox.inside.standins import (
    Remote,
    Value,
    as_many,
    believed,
    counted,
    counting,
)
from gatekeeper.sandbox.inside.tasks import Waiting

__all__ = ["FORWARDERS", "VALUES", "refused", "truth"]


_SAMPLES: dict[type, Any] = {type(item): item for item in (1, 1.5, 1j, True, "a", b"a", None)}
_SAMPLES |= {kind: kind() for kind in (list, tuple, dict, set, frozenset)}


_REFUSED = "{}: the candidate's object must not answer a question about data of the tests"
_DIVISIONS = frozenset({"truediv", "floordiv", "mod", "divmod"})


def refused(
    peer: Any, name: str, operation: str, *operands: Any, **keywords: Any
) -> AssertionError:
    """What to raise for an operation that must not get data of the tests.

    No other error, which a test may expect: where the object raises one for other data of these
    types, that is raised.
    """
    _tried(peer, operation, *operands, **keywords)
    return refusal(peer, _REFUSED.format(name))


def _tried(peer: Any, operation: str, *operands: Any, **keywords: Any) -> None:
    """Raise what the object raises for other data of the types of these operands."""

    def other(item: Any) -> Any:
        if is_stand_in(item) or (operation in _DIVISIONS and type(item) is int and item == 0):
            return item
        return _SAMPLES.get(type(item), peer.stranger)

    peer.ask(operation, *map(other, operands), **{n: other(o) for n, o in keywords.items()})


def _ordering(name: str) -> Callable[[Any, Any], Any]:
    def compare(self: Any, other: Any) -> Any:
        if theirs(inner(self).peer, other):
            return believed(self, name, other)
        if type(other) in _SAMPLES or type(other) in WRITERS:
            raise refused(inner(self).peer, name, name, self, other)
        return NotImplemented  # the class of the other one may know what to do

    return compare


def _operator(name: str, *, reflected: bool = False) -> Callable[..., Any]:
    """An arithmetic operator; see the rule at the head of this file."""

    def operate(self: Any, *others: Any) -> Any:
        peer = inner(self).peer
        operands = (*others, self) if reflected else (self, *others)
        informed = not all(theirs(peer, other) for other in others)
        if informed and not _may_be_informed(self):
            raise refused(peer, name, name, *operands)
        sources = {inner(o).trust for o in (self, *others) if isinstance(o, Remote)}
        informed = informed or Trust.INFORMED in sources
        value = _value_of(self, others) if informed else None  # before it knows the data
        made = peer.ask(name, *operands)
        if not informed:
            return given(self, made)
        if made is self or (value is not None and _is_plainly(name, operands, self, value, made)):
            return made
        parts = made if name == "divmod" and type(made) is tuple and len(made) == 2 else (made,)
        for part in parts:
            if not isinstance(part, Remote) or isinstance(part, Value):
                raise refusal(peer, _REFUSED.format(name))
            mark(part, Trust.INFORMED)
        return made

    return operate


def _value_of(item: Any, others: Sequence[Any]) -> Any:
    """The value of an object that extends `list`, `dict` or `set`, for an operator with data.

    None if the tests did not make the object.
    """
    plain = kind_of(type(item)).plain
    if plain is None or any(map(is_stand_in, others)) or not decides(item):
        return None
    value = inner(item).peer.ask("plain", item)
    return value if type(value) is plain else None


def _is_plainly(name: str, operands: Sequence[Any], item: Any, value: Any, made: Any) -> bool:
    """Whether a result is what the value of an object gives, so that the object decided nothing."""
    plain = [value if operand is item else operand for operand in operands]
    with contextlib.suppress(Exception):
        found = OPERATIONS[name](*plain)
        return type(made) is type(found) and bool(made == found)
    return False


def _may_be_informed(item: Any) -> bool:
    """Whether an operator may give an object data of the tests.

    One that the tests did not make gets some only where they apply operators to objects of its
    class that they made: else they take it for data, as `(next_run() - noon).seconds` does.
    """
    kind = kind_of(type(item))
    operated = kind.operated or any(kind_of(base).operated for base in kind.ancestors)
    return operated or inner(item).trust == Trust.INFORMED or decides(item)


def _number(name: str) -> Callable[..., Any]:
    """A conversion to plain data; refused for an informed object."""

    def convert(self: Any, *arguments: Any) -> Any:
        trust = inner(self).trust
        if trust == Trust.INFORMED or (arguments and trust != Trust.INSTANCE):
            raise refusal(inner(self).peer, _REFUSED.format(name))
        return given(self, ask(self, name, *arguments))

    return convert


def _plainly(name: str) -> Callable[..., Any]:
    return lambda self, /, *arguments, **keywords: given(
        self, ask(self, name, *arguments, **keywords)
    )


def _contains(self: Any, item: object) -> bool:
    known = inner(self)
    if theirs(known.peer, item) or (known.own and decides(self)):
        return believed(self, "contains", item)
    if kind_of(type(self)).plain:
        value = known.peer.looks.value(self)
        return item in (as_many(self, value, _length(self)) if counted(self) else value)
    shows = has(type(self), "__iter__") or (not known.back and has(type(self), "__getitem__"))
    if shows and any(item is found or item == found for found in self):
        return True
    if known.back:
        answer = believed(self, "contains", item)
        return answer if shows and not answer else decides(self) and answer
    if not shows:
        raise refused(known.peer, "contains", "contains", self, item)
    return False


@contextlib.contextmanager
def _not_instead_of(error: BaseException | None) -> Iterator[None]:
    """Let the candidate raise no other error in the place of a failed assertion."""
    try:
        yield
    except BaseException:
        if not is_failure(error):
            raise


def _enter(self: Any) -> Any:
    found = given(self, ask(self, "enter"))
    known = inner(self)
    known.peer.entered.enter(known.number, lambda: ask(self, "outputs"))
    return found


def _exit(self: Any, kind: Any, error: Any, trace: Any, operation: str = "exit") -> bool:
    swallowed, known = False, inner(self)
    try:
        with _not_instead_of(error):
            swallowed = bool(ask(self, operation, kind, error, None))
    finally:
        known.peer.entered.leave(known.number)
    return swallowed and bool(known.peer.guard.swallows(error, trace))


def _call(self: Any, /, *arguments: Any, **keywords: Any) -> Any:
    if len(arguments) == 3 and type(arguments[2]) is types.TracebackType:
        return _exit(self, *arguments, "call")  # as `ExitStack.push` calls a function
    found = ask(self, "call", *arguments, **keywords)
    if inner(self).made and is_alias(self):
        inner(self).peer.evidence = True
        mark(found, Trust.INSTANCE, made=True, sure=inner(self).sure)
    return given(self, found)


async def _aenter(self: Any) -> Any:
    found, known = await _asynchronous("aenter")(self), inner(self)
    known.peer.entered.enter(known.number, lambda: ask(self, "outputs"))
    return self if first(found) is self else found


async def _aexit(self: Any, kind: Any, error: Any, trace: Any) -> bool:
    swallowed, known = False, inner(self)
    try:
        with _not_instead_of(error):
            waiting = Waiting(functools.partial(ask, self), "aexit", kind, error, None)
            swallowed = bool(await waiting)
    finally:
        known.peer.entered.leave(known.number)
    return swallowed and bool(inner(self).peer.guard.swallows(error, trace))


_BINDING = (types.FunctionType, type(functools.lru_cache(len)))


def _get(self: Any, owner: Any, kind: Any = None) -> Any:
    """A descriptor in a class of the tests; a function becomes a method of its objects."""
    if kind_of(type(self)).shown in _BINDING:
        return self if owner is None else types.MethodType(self, owner)
    found = _described("get")(self, owner, kind)
    return self if owner is None and first(found) is self else found


def _described(name: str) -> Callable[..., Any]:
    def ask_descriptor(self: Any, owner: Any, *arguments: Any) -> Any:
        inner(self).peer.guard.described[id(owner)] = owner
        return given(self, ask(self, f"descriptor_{name}", owner, *arguments))

    return ask_descriptor


def _length(self: Any) -> int:
    known = inner(self)
    if known.trust == Trust.INFORMED:
        raise refusal(known.peer, _REFUSED.format("len"))
    return int(known.peer.looks.length(self) if counted(self) else ask(self, "len"))


def truth(self: Any) -> bool:
    """The truth of an object that can be iterated, and has no `__bool__`: it need not be empty."""
    if has(type(self), "__len__"):
        return _length(self) != 0
    inner(self).peer.looks.answered("bool", [self], True)
    return True


def _iterate(self: Any) -> Iterator[Any]:
    found = given(self, ask(self, "iter"))
    steps: Iterator[Any] = found if isinstance(found, Remote) else iter(found)
    if counted(self):
        steps = counting(self, steps, _length(self))
    shown: Iterator[Any] = inner(self).peer.looks.steps(steps, self)
    return shown


def _getitem(self: Any, key: Any) -> Any:
    try:
        found = given(self, ask(self, "getitem", key))
        if type(key) is slice and kind_of(type(self)).plain is list and counted(self):
            found = as_many(self, found, len(range(_length(self))[key]))
        inner(self).peer.looks.item(self, key, found)
        return found
    except IndexError:
        # Without `__iter__` this ends an iteration, which must yield as many as the length.
        ends = type(key) is int and counted(self) and not has(type(self), "__iter__")
        if ends and 0 <= key < _length(self):
            lacks = f"it has {_length(self)} items, but none at {key}"
            raise refusal(inner(self).peer, lacks) from None
        raise


def _reversed(self: Any) -> Any:
    found = given(self, ask(self, "reversed"))
    steps = counting(self, iter(found), _length(self)) if counted(self) else found
    return inner(self).peer.looks.backwards(steps, self)


def _await(self: Any) -> Any:
    found = yield from Waiting(functools.partial(ask, self), "await").__await__()
    return given(self, found)


def _asynchronous(name: str) -> Callable[..., Any]:
    async def run(self: Any) -> Any:
        return given(self, await Waiting(functools.partial(ask, self), name))

    return run


FORWARDERS: dict[str, Any] = {
    **{f"__{o}__": _operator(o) for o in (*BINARY, *BITWISE, *INPLACE, "divmod")},
    **{f"__r{o}__": _operator(o, reflected=True) for o in (*BINARY, *BITWISE, "divmod")},
    **{f"__{o}__": _operator(o) for o in UNARY if o != "abs"},
    **{f"__{o}__": _ordering(o) for o in ORDERINGS},
    **{
        f"__{o}__": _number(o)
        for o in (*CONVERSIONS, "abs")
        if o not in ("str", "repr", "format", "hash", "len")
    },
    **{f"__{o}__": _plainly(o) for o in ("next", "aiter")},
    "__enter__": _enter,
    "__call__": _call,
    **{f"__{o}__": _plainly(o) for o in ("setitem", "delitem")},
    "__getitem__": _getitem,
    "__len__": _length,
    "__get__": _get,
    **{f"__{o}__": _described(o) for o in ("set", "delete", "set_name")},
    "__iter__": _iterate,
    "__reversed__": _reversed,
    "__await__": _await,
    "__anext__": _asynchronous("anext"),
    "__aenter__": _aenter,
    "__contains__": _contains,
    "__exit__": _exit,
    "__aexit__": _aexit,
}
"""The special methods of stand-ins, by name; a class has those of the class it stands for."""


def _of_values(name: str, *, reflected: bool = False) -> Callable[..., Any]:
    """An operation between values of classes under test is theirs; any other that of plain data.

    But a TypeError that it raises for such data, which a test may expect; and plain data must not
    raise one in its place. A tuple of numbers, such as a vector, may also be scaled by a number.
    """
    special = f"__r{name}__" if reflected else f"__{name}__"

    def operate(self: Any, *others: Any) -> Any:
        operands = (*others, self) if reflected else (self, *others)
        peer = inner(self).peer
        if all(isinstance(o, Value) and is_instance(o) for o in operands):
            if name in ORDERINGS:
                return believed(self, name, *others)
            return given(self, ask(operands[0], name, *operands[1:]))
        plain: Any = kind_of(type(self)).plain
        if plain is tuple and {*map(type, others)} <= _SCALARS and is_instance(self):
            made = peer.ask(name, *operands)
            if isinstance(made, Remote):
                mark(made, Trust.INFORMED)
                return made
        elif name == "contains" and not hasattr(plain, special):
            return _contains(self, *others)
        else:
            try:
                _tried(peer, name, *operands)
            except TypeError:
                raise
            except Exception:  # of another value
                pass
            if not all(isinstance(o, Value) or type(o) in _SAMPLES for o in others):
                return getattr(plain, special, _unknown)(self, *others)
            with contextlib.suppress(TypeError):
                return OPERATIONS[name](*(exact(o) if is_stand_in(o) else o for o in operands))
        raise refused(peer, name, name, *operands)

    return operate


def _unknown(*_: Any) -> Any:
    """The class of the other operand may know what to do."""
    return NotImplemented


_SCALARS = frozenset({int, float})
VALUES: dict[str, Any] = {
    **{f"__{o}__": _of_values(o) for o in ORDERINGS},
    **{f"__{o}__": _of_values(o) for o in (*BINARY, *BITWISE, "divmod", "neg", "pos", "invert")},
    **{f"__r{o}__": _of_values(o, reflected=True) for o in (*BINARY, *BITWISE)},
    "__contains__": _of_values("contains"),
}
"""The same of values: instances of a subclass of text, a number, a tuple …"""
