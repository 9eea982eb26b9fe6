"""Stand-ins in the tests' process for the candidate's objects, and which answers are accepted.

Plain data is here by value, and the tests judge it themselves. Every other object is a stand-in
that asks the candidate's process. A candidate can give any answer, so only these may decide a test:

- *Values.* The result of a call, an attribute, iteration or a conversion: the candidate had to find
  it without knowing what is expected; and at each look the same (`looks.py`).
- *Kinds.* Class, special methods, signature: as read from the object's class (`facts.py`), never
  from its own answers. A stand-in has the special methods that the class has, and no other.
- *Comparisons of its own objects.* `==`, `<` and `in` between two of the candidate's objects are
  computed by it, which gives it no information. An object that also equals `stranger` is refused.

Never: whether an object equals or exceeds data of the tests. Whether it contains such data, only if
the tests made the object themselves of a class under test. An operator (`Money(3) + 2`) gets data
of the tests only if they made the object so, or apply operators to others that they made of its
class; the result must be an object again, and is not converted to a number. Where one gets none,
that is a failed assertion: a test may expect a TypeError. An attribute may imitate one of a
value, or of a mock: see `decisions.py`.
"""

from __future__ import annotations

import contextlib
import functools
import types
from collections.abc import Callable, Iterator
from typing import Any

from gatekeeper.sandbox.inside import signatures
from gatekeeper.sandbox.inside.kinds import (
    READABLE,
    Trust,
    ask,
    first,
    given,
    has,
    inner,
    is_instance,
    is_stand_in,
    kind_of,
    mark,
    real,
    refusal,
    special,
    theirs,
)
from gatekeeper.sandbox.inside.looks import DIFFERENT, VIEWS
from gatekeeper.sandbox.inside.operations import ORDERINGS

__all__ = ["Remote", "Value", "as_many", "believed", "counted", "counting"]

_NAMES = frozenset({"__name__", "__qualname__", "__module__"})
_HIDDEN = frozenset({"__reduce__", "__reduce_ex__", "__getstate__"})
_COMPARED = {"__eq__": "eq", "__ne__": "ne", **{f"__{o}__": o for o in ORDERINGS}}
_GENERATORS = (types.GeneratorType, types.CoroutineType)


class Remote:
    """Stands for an object of the candidate. Subclasses have the special methods of its class."""

    def __getattribute__(self, name: str) -> Any:
        if not special(name):
            return _attribute(self, name)
        if name == "__class__":
            return kind_of(type(self)).shown
        if name in _COMPARED:
            return _called_by_name(self, name)
        if name == "__annotations__":
            return signatures.readable(_attribute(self, name))
        if name in READABLE:
            found = _attribute(self, name)
            # Libraries write it into code, after they have checked it.
            return str.__str__(found) if name in _NAMES and isinstance(found, str) else found
        if name in _HIDDEN or (name == "__copy__" and has(type(self), "__next__")):
            raise AttributeError(name)  # `itertools.tee` would copy a generator
        if name == "__bool__" and not has(type(self), name):
            raise AttributeError(name)  # see `forwarders.truth`
        if name == "__code__":
            return signatures.code(ask(self, "code"))
        if name == "__signature__":
            return signatures.signature(ask(self, "signature"))
        if name[2:].partition("_")[0] in kind_of(type(self)).packages:  # as `__sklearn_tags__`
            return _attribute(self, name)
        return object.__getattribute__(self, name)

    def __setattr__(self, name: str, value: Any) -> None:
        ask(self, "set", name, value)

    def __delattr__(self, name: str) -> None:
        ask(self, "delete", name)

    def __eq__(self, other: object) -> Any:
        known, kind = inner(self), type(self)
        if first(self) is first(other):
            return True
        if theirs(known.peer, other):
            defined = has(kind, "__eq__") or has(type(other), "__eq__")
            return defined and believed(self, "eq", other)
        if kind_of(kind).plain:
            return bool(known.peer.looks.value(self) == other)
        return real(self) is other or _as_parts(self, other)

    def __ne__(self, other: object) -> Any:
        peer = inner(self).peer
        if has(type(self), "__ne__") and theirs(peer, other):
            if peer.ask("ne", self, other) is not True:
                return False
            if self is not other and has(type(self), "__eq__") and peer.ask("eq", self, other):
                raise refusal(peer, "an object that is both equal and not equal to another")
            return True
        equal = Remote.__eq__(self, other)
        return equal if equal is NotImplemented else not equal

    def __hash__(self) -> int:
        if not kind_of(type(self)).hashable:
            raise TypeError(f"unhashable type: {type(self).__name__!r}")
        if has(type(self), "__hash__"):
            return int(ask(self, "hash"))
        return object.__hash__(first(self))

    def __str__(self) -> str:
        return str(ask(self, "str"))

    def __repr__(self) -> str:
        return str(ask(self, "repr"))

    def __format__(self, specification: str) -> str:
        return str(ask(self, "format", specification))

    def __dir__(self) -> Any:
        return ask(self, "dir")

    def __copy__(self) -> Any:
        return _copied(self, "copy")

    def __deepcopy__(self, _memory: Any) -> Any:
        return _copied(self, "deepcopy")


def believed(item: Any, operation: str, other: Any) -> bool:
    """Whether the object answers True about `other`.

    One that answers True about `stranger`, too, fails the tests: its answer is neither yes, which
    would let `assert a == b` hold, nor no, which would let `assert a != b` hold. So do two objects
    of which each is the lesser one.

    Raises
    ------
    AssertionError
        The object answers True about `stranger`, or about the order of both.
    """
    peer = inner(item).peer
    if peer.ask(operation, item, other) is not True:
        return False
    answer = None
    with contextlib.suppress(Exception):  # an honest object may raise for one of another type
        answer = peer.ask(operation, item, peer.stranger)
    if answer is True:
        raise refusal(peer, f"an object that answers True about any other: {operation}")
    # Those of a class under test may count their comparisons.
    orders = operation in ORDERINGS and item is not other and not inner(item).made
    if orders and peer.ask(operation, other, item) is True:
        equal = peer.ask("eq", item, other) is True
        if operation in ("lt", "gt") or (has(type(item), "__eq__") and not equal):
            raise refusal(peer, f"two objects of which each comes first: {operation}")
        if not equal:
            peer.decisions.doubt(f"objects that have an order, and no equality: {operation}")
    return True


# Objects of Python's classes that stay where they are, but are compared by their parts, which are
# data: how to get these, and whether they equal data that the parts equal.
_PARTS: dict[str, tuple[Callable[[Any], Any], bool]] = {
    "types.SimpleNamespace": (vars, False),
    "re.Pattern": (lambda item: (item.pattern, item.flags), False),
    "array.array": (lambda item: (item.typecode, item.tolist()), False),
    "builtins.memoryview": (lambda item: item.tobytes(), True),
    "builtins.mappingproxy": (lambda item: item.copy(), True),
    "collections.ChainMap": (dict, True),
    **{
        f"{module}Alias": (lambda item: (item.__origin__, item.__args__), False)
        for module in ("types.Generic", "typing._Generic", "typing._CallableGeneric")
    },
    "typing._LiteralGenericAlias": (lambda item: set(item.__args__), False),
    "typing._UnionGenericAlias": (lambda item: set(item.__args__), False),
    "types.UnionType": (lambda item: set(item.__args__), False),
    "typing._AnnotatedAlias": (lambda item: (item.__origin__, item.__metadata__), False),
    **dict.fromkeys(("collections.UserDict", "collections.UserList"), (lambda i: i.data, True)),
}


def _as_parts(item: Remote, other: object) -> Any:
    """Whether an object of a class of Python's own equals data, or another one of that class."""
    kind = kind_of(type(item))
    name = f"{kind.shown.__module__}.{kind.shown.__qualname__}"
    if kind.inner is not None or name not in _PARTS:
        return NotImplemented
    parts, as_data = _PARTS[name]
    if type(other) is kind.shown:
        return bool(parts(item) == parts(other))
    return bool(parts(item) == other) if as_data else NotImplemented


def _copied(item: Remote, operation: str) -> Any:
    """A copy of an object; the tests made it, if they made the object."""
    found, known = ask(item, operation), inner(item)
    mark(found, known.trust or Trust.RETURNED, made=known.own, sure=known.sure)
    return found


class Value(Remote):
    """An instance of a candidate's subclass of text, a number, a tuple …, with its value.

    Operations of the plain type use the value here; only other attributes come from the candidate.
    """

    def __getattribute__(self, name: str) -> Any:
        if hasattr(kind_of(type(self)).plain, name) and name not in (
            "__class__",
            "__dict__",
            "__doc__",
        ):
            return object.__getattribute__(self, name)
        return Remote.__getattribute__(self, name)

    def __eq__(self, other: object) -> Any:
        return _alike(self, "eq", other)

    def __ne__(self, other: object) -> Any:
        return _alike(self, "ne", other)

    def __hash__(self) -> int:
        if not kind_of(type(self)).hashable:
            raise TypeError(f"unhashable type: {type(self).__name__!r}")
        if has(type(self), "__hash__") and is_instance(self):
            return int(ask(self, "hash"))
        return int(_plain(self).__hash__(self))


def _alike(item: Value, operation: str, other: object) -> Any:
    """`==` and `!=` of a value; the candidate's own only between objects of classes under test.

    A value that a function returned stays as it arrived: it must not differ at each use.
    """
    name = f"__{operation}__"
    defined = has(type(item), "__eq__") or has(type(item), name)
    if defined and isinstance(other, Value) and is_instance(item) and is_instance(other):
        equal = believed(item, "eq", other)
        return equal if operation == "eq" else not equal
    return getattr(_plain(item), name)(item, other)


def _plain(item: Value) -> Any:
    return kind_of(type(item)).plain


def _attribute(item: Any, name: str) -> Any:
    known = inner(item)
    if known.trust == Trust.MODULE:
        return known.peer.ask("get", item, name)
    if name == "_as_parameter_":  # ctypes reads an address from it
        raise AttributeError(name)
    sure = special(name) or (known.trust == Trust.INSTANCE and known.sure)
    if not sure and _evades(item) and not is_instance(item):
        raise refusal(known.peer, f"{name}: an object that has every attribute proves nothing")
    if name in ("send", "throw") and kind_of(type(item)).shown in _GENERATORS:
        return functools.partial(ask, item, name)
    found = known.peer.ask("get", item, name)
    found = given(item, found)
    if name in VIEWS and isinstance(found, Remote) and _is_mapping(item):
        return functools.partial(_showing, item, name, found)
    return found


def _is_mapping(item: Any) -> bool:
    """Whether an object that the tests did not make is a container which has keys, or an index."""
    return counted(item) and has(type(item), "__iter__") and has(type(item), "__getitem__")


def counted(item: Any) -> bool:
    """Whether an object has one length, and as many items: not one that the tests made.

    One that a method returned has, whatever its class: that may be the class of the method.
    """
    return has(type(item), "__len__") and not inner(item).own


def as_many(item: Any, found: Any, length: int) -> Any:
    """The items that a container shows: it must show as many as its length."""
    kind = type(found)
    if not (has(kind, "__len__") if is_stand_in(found) else hasattr(kind, "__len__")):
        return counting(item, iter(found), length)
    if len(found) != length:
        raise refusal(inner(item).peer, DIFFERENT.format(length, len(found)))
    return found


def counting(item: Any, steps: Iterator[Any], length: int) -> Iterator[Any]:
    """The steps of an iteration; raises AssertionError if there are not as many."""
    count = 0
    with contextlib.suppress(StopIteration):
        while count <= length:  # one that has more may be endless, and so contain everything
            step = next(steps)
            count += 1
            if count <= length:
                yield step
    if count != length:
        raise refusal(inner(item).peer, DIFFERENT.format(length, count))


def _showing(item: Any, name: str, method: Any, /, *arguments: Any, **keywords: Any) -> Any:
    """Call a method that shows all items of a container."""
    if arguments or keywords:
        return method(*arguments, **keywords)
    looks, found = inner(item).peer.looks, given(item, ask(method, "view"))
    if kind_of(type(item)).plain is not None:
        found = as_many(item, found, looks.length(item))
    looks.view(item, name, found)
    return found


def _evades(item: Any) -> bool:
    """Whether an object claims to have an attribute with a random name."""
    if not kind_of(type(item)).evasive:
        return False
    peer = inner(item).peer
    try:
        found = peer.ask("get", item, peer.unknown_name)
    except Exception:
        return False
    return is_stand_in(found) or bool(found)


def _called_by_name(item: Any, name: str) -> Callable[[Any], bool]:
    """A method such that `x.__eq__(y)` is `x == y`: NotImplemented would count as true."""
    import operator

    return lambda other: bool(getattr(operator, _COMPARED[name])(item, other))
