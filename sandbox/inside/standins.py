"""What stands in the tests' process for the candidate's objects, and what is believed of them.

Plain data is here by value, and the tests judge it themselves. Everything else is a stand-in that
asks the candidate's process. A candidate can answer what it likes, so of an answer only this much
may decide a test:

- *Values.* What a call, an attribute, iteration or a conversion yields: the candidate had to find
  it without knowing what is expected.
- *Kinds.* Class, special methods, signature: as read from the object's class (`facts.py`), never
  by the object itself. A stand-in has the special methods that the class has, and no other.
- *Objects among themselves.* `==`, `<` and `in` between two of the candidate's objects are asked
  of it, which tells it nothing. One that says yes of a stranger, too, is not believed.

Never: whether an object equals or exceeds data of the tests, or, of one that a function returned,
contains it. Data goes into an operator (`Money(3) + 2`) only of an object that the tests made
themselves of a class under test, and what comes out must be an object again, whose number is then
not asked for. Methods by which
text, numbers and collections compare themselves with other data (`COMPARING`) are not asked of an
object that a function returned: such an object poses as a value.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import types
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from gatekeeper.sandbox.inside.peer import (
    BINARY,
    BITWISE,
    CONVERSIONS,
    INPLACE,
    ORDERINGS,
    UNARY,
    Peer,
)

__all__ = [
    "FORWARDERS",
    "Inner",
    "Kind",
    "Remote",
    "RemoteClass",
    "Trust",
    "Value",
    "inner",
    "is_stand_in",
    "kind_of",
    "mark",
]

COMPARING = frozenset(
    """
    startswith endswith isalnum isalpha isascii isdecimal isdigit isidentifier islower
    isnumeric isprintable isspace istitle isupper isdisjoint issubset issuperset
    is_integer is_nan is_finite is_infinite is_zero is_signed is_normal is_subnormal
    is_qnan is_snan is_canonical equals all any allclose array_equal difference
    symmetric_difference intersection union count index
    """.split()  # noqa: SIM905
)
_READABLE = frozenset(  # special attributes that are data, or functions
    f"__{name}__"
    for name in """
    doc name qualname module dict wrapped annotations defaults kwdefaults func self
    members slots version author all abstractmethods match_args
    """.split()  # noqa: SIM905
)
_HIDDEN = frozenset({"__reduce__", "__reduce_ex__", "__getstate__"})
_COMPARED = {"__eq__": "eq", "__ne__": "ne", **{f"__{o}__": o for o in ORDERINGS}}
_GENERATORS = (types.GeneratorType, types.CoroutineType)
_REFUSED = "{}: an object of the candidate's cannot answer for data of the tests"


class Trust:
    """Where an object comes from.

    RETURNED by a function; INSTANCE of a class under test, made by the tests, or given by such an
    object; INFORMED: made by an operator of such an object and data of the tests, so that it may
    know what is expected.
    """

    RETURNED, INSTANCE, INFORMED = range(3)


class Inner(NamedTuple):
    """What a stand-in knows: who to ask, the object's number there, and its `Trust`."""

    peer: Any
    number: int
    trust: int | None = None  # None: not yet known


class Kind:
    """What a class of stand-ins knows of the class that it stands for (`facts.py`)."""

    __slots__ = ("ancestors", "evasive", "hashable", "inner", "plain", "shown", "special", "tested")

    def __init__(self, inner: Inner | None, special: frozenset[str], *, shown: type) -> None:
        self.inner = inner  # None: a class of the standard library, which both sides have
        self.special = special  # names of the special methods that it defines or inherits
        self.shown = shown  # what `__class__` is
        self.ancestors: frozenset[type] = frozenset()
        self.plain: type | None = None  # the plain type that it extends, such as list
        self.hashable = True
        self.evasive = False  # it has `__getattr__`, and so perhaps every attribute
        self.tested = False  # the tests use it as a class: see `Trust`


def kind_of(item: type) -> Kind:
    found: Kind = type.__getattribute__(item, "__gatekeeper__")
    return found


def is_stand_in(item: object) -> bool:
    """Whether an object, or a class, stands for one of the candidate's."""
    # `isinstance` would look for the `__class__` that a stand-in shows.
    return issubclass(type(item), (Remote, RemoteClass))


def inner(item: Any) -> Inner:
    if issubclass(type(item), RemoteClass):
        known = kind_of(item).inner
        assert known is not None
        return known
    found: Inner = object.__getattribute__(item, "__dict__")["gatekeeper"]
    return found


def mark(item: Any, trust: int) -> None:
    """Say where an object comes from, unless that is known."""
    if issubclass(type(item), Remote) and (known := inner(item)).trust is None:
        object.__getattribute__(item, "__dict__")["gatekeeper"] = known._replace(trust=trust)


def _theirs(peer: Peer, item: object) -> bool:
    """Whether that is the candidate's: to be asked about it tells it nothing."""
    kind = type(item)
    if issubclass(kind, RemoteClass):
        return True
    return issubclass(kind, Remote) and not issubclass(kind, Value) and inner(item).peer is peer


class RemoteClass(type):
    """Stands for a class of the candidate's; its instances are stand-ins of its instances."""

    def __call__(cls, /, *arguments: Any, **keywords: Any) -> Any:
        peer = inner(cls).peer
        made = peer.ask("call", cls, *arguments, **keywords)
        if kind_of(cls).tested:
            peer.evidence = True
            mark(made, Trust.INSTANCE)
        return made

    def __getattr__(cls, name: str) -> Any:
        peer = inner(cls).peer
        if name == "__signature__":
            return signature(peer.ask("signature", cls))
        if _special(name) and name not in _READABLE:
            raise AttributeError(f"type object {cls.__name__!r} has no attribute {name!r}")
        found = peer.ask("get", cls, name)
        if kind_of(cls).tested:
            mark(found, Trust.INSTANCE)
        return found

    @property
    def __mro__(cls) -> tuple[type, ...]:
        return tuple(c for c in type.__getattribute__(cls, "mro")() if c not in (Remote, Value))

    @property
    def __bases__(cls) -> tuple[type, ...]:  # type: ignore[override]
        found: tuple[type, ...] = type.__dict__["__bases__"].__get__(cls)
        return tuple(base for base in found if base not in (Remote, Value)) or (object,)

    def __setattr__(cls, name: str, value: Any) -> None:
        _ask(cls, "set", name, value)

    def __delattr__(cls, name: str) -> None:
        _ask(cls, "delete", name)

    def __subclasscheck__(cls, other: type) -> bool:
        return other is cls or (isinstance(other, RemoteClass) and cls in kind_of(other).ancestors)

    def __instancecheck__(cls, item: object) -> bool:
        return cls.__subclasscheck__(type(item))

    def __dir__(cls) -> Any:
        return _ask(cls, "dir")

    def __iter__(cls) -> Iterator[Any]:
        return iter(_ask(cls, "iter"))

    def __len__(cls) -> int:
        return int(_ask(cls, "len"))

    def __bool__(cls) -> bool:
        return True

    def __getitem__(cls, key: Any) -> Any:
        return _ask(cls, "getitem", key)

    def __contains__(cls, item: Any) -> bool:
        return any(item is found or item == found for found in cls)


class Remote:
    """Stands for an object of the candidate's. Subclasses have the special methods it has."""

    def __getattribute__(self, name: str) -> Any:
        if not _special(name):
            return _attribute(self, name)
        if name == "__class__":
            return kind_of(type(self)).shown
        if name in _COMPARED:
            return _called_by_name(self, name)
        if name in _READABLE:
            return _attribute(self, name)
        if name in _HIDDEN:
            raise AttributeError(name)
        if name == "__code__":
            return _code(_ask(self, "code"))
        if name == "__signature__":
            return signature(_ask(self, "signature"))
        return object.__getattribute__(self, name)

    def __setattr__(self, name: str, value: Any) -> None:
        _ask(self, "set", name, value)

    def __delattr__(self, name: str) -> None:
        _ask(self, "delete", name)

    def __eq__(self, other: object) -> Any:
        known, kind = inner(self), type(self)
        if self is other:
            return True
        if _theirs(known.peer, other):
            defined = _has(kind, "__eq__") or _has(type(other), "__eq__")
            return defined and _believed(self, "eq", other)
        if kind_of(kind).plain:
            return bool(known.peer.ask("plain", self) == other)
        return NotImplemented

    def __ne__(self, other: object) -> Any:
        peer = inner(self).peer
        if _has(type(self), "__ne__") and _theirs(peer, other):
            return peer.ask("ne", self, other) is True
        equal = Remote.__eq__(self, other)
        return equal if equal is NotImplemented else not equal

    def __hash__(self) -> int:
        if not kind_of(type(self)).hashable:
            raise TypeError(f"unhashable type: {type(self).__name__!r}")
        if _has(type(self), "__hash__"):
            return int(_ask(self, "hash"))
        return object.__hash__(self)

    def __str__(self) -> str:
        return str(_ask(self, "str"))

    def __repr__(self) -> str:
        return str(_ask(self, "repr"))

    def __format__(self, specification: str) -> str:
        return str(_ask(self, "format", specification))

    def __dir__(self) -> Any:
        return _ask(self, "dir")

    def __copy__(self) -> Any:
        return _given(self, _ask(self, "copy"))

    def __deepcopy__(self, _memory: Any) -> Any:
        return _given(self, _ask(self, "deepcopy"))


class Value(Remote):
    """An instance of a candidate's subclass of text, a number, a tuple …: the value is here.

    All that the plain type can do is done here, with the value; only other attributes are asked.
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
        if inner(self).trust == Trust.INSTANCE and _has(type(self), "__hash__"):
            return int(_ask(self, "hash"))
        return int(_plain(self).__hash__(self))


def _alike(item: Value, operation: str, other: object) -> Any:
    """`==` and `!=` of a value: its own only between objects of classes under test.

    One that a function returned is what it was when it came: it must not be another each time.
    """
    name = f"__{operation}__"
    defined = _has(type(item), "__eq__") or _has(type(item), name)
    both = isinstance(other, Value) and Trust.INSTANCE == inner(item).trust == inner(other).trust
    if defined and both:
        equal = _believed(item, "eq", other)
        return equal if operation == "eq" else not equal
    return getattr(_plain(item), name)(item, other)


def _plain(item: Value) -> Any:
    return kind_of(type(item)).plain


def _special(name: str) -> bool:
    return name[:2] == "__" and name[-2:] == "__"


def _has(kind: type, name: str) -> bool:
    """Whether the candidate's class defines that special method, itself or by inheritance."""
    return isinstance(kind, RemoteClass) and name in kind_of(kind).special


def _ask(item: Any, operation: str, /, *arguments: Any, **keywords: Any) -> Any:
    return inner(item).peer.ask(operation, item, *arguments, **keywords)


def _given(giver: Any, item: Any) -> Any:
    """What an object gave comes from where the object comes from."""
    trust = inner(giver).trust
    for part in item if type(item) in (list, tuple) else (item,):
        mark(part, Trust.RETURNED if trust is None else trust)
    return item


def _attribute(item: Any, name: str) -> Any:
    known = inner(item)
    if known.number == known.peer.ROOT:  # the candidate's module
        return known.peer.ask("get", item, name)
    if name == "_as_parameter_":  # ctypes reads an address from it
        raise AttributeError(_REFUSED.format(name))
    if not _special(name) and known.trust != Trust.INSTANCE and _evades(item):
        raise AttributeError(f"{name}: an object that has every attribute is not believed")
    if name in ("send", "throw") and kind_of(type(item)).shown in _GENERATORS:
        return functools.partial(_ask, item, name)
    found = known.peer.ask("get", item, name)
    if name in COMPARING and known.trust != Trust.INSTANCE and isinstance(found, Remote):
        raise AttributeError(_REFUSED.format(name))
    return _given(item, found)


def _evades(item: Any) -> bool:
    """Whether an object has an attribute that nobody can know of."""
    if not kind_of(type(item)).evasive:
        return False
    peer = inner(item).peer
    try:
        found = peer.ask("get", item, peer.unheard_of)
    except Exception:
        return False
    return is_stand_in(found) or bool(found)


def _called_by_name(item: Any, name: str) -> Callable[[Any], bool]:
    """`x.__eq__(y)` decides as `x == y` does: NotImplemented would count as true."""
    import operator

    return lambda other: bool(getattr(operator, _COMPARED[name])(item, other))


def _believed(item: Any, operation: str, other: Any) -> bool:
    """A yes, unless the object says that of a stranger, too."""
    peer = inner(item).peer
    if peer.ask(operation, item, other) is not True:
        return False
    try:
        return peer.ask(operation, item, peer.stranger) is not True
    except Exception:  # as an honest object may, which knows nothing of strangers
        return True


def _ordering(name: str) -> Callable[[Any, Any], Any]:
    def compare(self: Any, other: Any) -> Any:
        return _believed(self, name, other) if _theirs(inner(self).peer, other) else NotImplemented

    return compare


def _operator(name: str, *, reflected: bool = False) -> Callable[..., Any]:
    """An arithmetic operator; see the rule at the head of this file."""

    def operate(self: Any, *others: Any) -> Any:
        peer, _, trust = inner(self)
        informed = not all(_theirs(peer, other) for other in others)
        if informed and trust in (None, Trust.RETURNED):
            raise TypeError(_REFUSED.format(name))
        sources = {inner(o).trust for o in (self, *others) if isinstance(o, Remote)}
        informed = informed or Trust.INFORMED in sources
        operands = (*others, self) if reflected else (self, *others)
        made = peer.ask(name, *operands)
        if not informed:
            return _given(self, made)
        if made is self:
            return made
        if not isinstance(made, Remote) or isinstance(made, Value):
            raise TypeError(_REFUSED.format(name))
        mark(made, Trust.INFORMED)
        return made

    return operate


def _number(name: str) -> Callable[..., Any]:
    """A conversion to plain data that an informed object is not asked for."""

    def convert(self: Any, *arguments: Any) -> Any:
        trust = inner(self).trust
        if trust == Trust.INFORMED or (arguments and trust != Trust.INSTANCE):
            raise TypeError(_REFUSED.format(name))
        return _given(self, _ask(self, name, *arguments))

    return convert


def _plainly(name: str) -> Callable[..., Any]:
    return lambda self, /, *arguments, **keywords: _given(
        self, _ask(self, name, *arguments, **keywords)
    )


def _contains(self: Any, item: object) -> bool:
    known = inner(self)
    if _theirs(known.peer, item) or known.trust == Trust.INSTANCE:
        return _believed(self, "contains", item)
    if kind_of(type(self)).plain:
        return item in known.peer.ask("plain", self)
    return any(item is found or item == found for found in self)


def _exit(self: Any, kind: Any, error: Any, trace: Any) -> bool:
    swallowed = _ask(self, "exit", kind, error, None)
    return bool(swallowed) and bool(inner(self).peer.guard.swallows(error, trace))


async def _aexit(self: Any, kind: Any, error: Any, trace: Any) -> bool:
    swallowed = _ask(self, "aexit", kind, error, None)
    return bool(swallowed) and bool(inner(self).peer.guard.swallows(error, trace))


def _bound(self: Any, owner: Any, kind: Any = None) -> Any:
    """A function that is found in a class of the tests is a method of its objects."""
    return self if owner is None else types.MethodType(self, owner)


def _iterate(self: Any) -> Iterator[Any]:
    found = _given(self, _ask(self, "iter"))
    steps = found if isinstance(found, Remote) else iter(found)
    if _has(type(self), "__len__") and inner(self).trust != Trust.INSTANCE:
        return _as_many(self, steps)
    return steps


def _as_many(container: Any, steps: Iterator[Any]) -> Iterator[Any]:
    """The steps; a container that says how long it is must yield as many."""
    count = 0
    with contextlib.suppress(StopIteration):
        while True:
            item = next(steps)
            count += 1
            yield item
    if count != _ask(container, "len"):
        raise TypeError(f"it has {_ask(container, 'len')} items and yields {count}")


def _await(self: Any) -> Any:
    yield from ()
    return _given(self, _ask(self, "await"))


def _asynchronous(name: str) -> Callable[..., Any]:
    async def run(self: Any) -> Any:
        return _given(self, _ask(self, name))

    return run


FORWARDERS: dict[str, Any] = {
    **{f"__{o}__": _operator(o) for o in (*BINARY, *BITWISE, *INPLACE, "divmod")},
    **{f"__r{o}__": _operator(o, reflected=True) for o in (*BINARY, *BITWISE, "divmod")},
    **{f"__{o}__": _operator(o) for o in UNARY if o != "abs"},
    **{f"__{o}__": _ordering(o) for o in ORDERINGS},
    **{
        f"__{o}__": _number(o)
        for o in (*CONVERSIONS, "abs")
        if o not in ("str", "repr", "format", "hash")
    },
    **{f"__{o}__": _plainly(o) for o in ("call", "next", "reversed", "enter", "aiter")},
    **{f"__{o}__": _plainly(o) for o in ("getitem", "setitem", "delitem")},
    "__get__": _bound,
    "__iter__": _iterate,
    "__await__": _await,
    "__anext__": _asynchronous("anext"),
    "__aenter__": _asynchronous("aenter"),
    "__contains__": _contains,
    "__exit__": _exit,
    "__aexit__": _aexit,
}
"""The special methods of stand-ins, by name; a class of them has those of what it stands for."""


def _code(found: Any) -> Any:
    if found is None:
        raise AttributeError("__code__")
    count, positional, keyword, flags, names, name, line = found
    return types.SimpleNamespace(
        co_argcount=count,
        co_posonlyargcount=positional,
        co_kwonlyargcount=keyword,
        co_flags=flags,
        co_varnames=names,
        co_name=name,
        co_firstlineno=line,
    )


def signature(found: Any) -> Any:
    inspect = importlib.import_module("inspect")
    *rows, (_, _, _, returned) = found

    def optional(value: tuple[Any, ...]) -> Any:
        return value[0] if value else inspect.Parameter.empty

    return inspect.Signature(
        [
            inspect.Parameter(
                name,
                inspect._ParameterKind(kind),
                default=optional(default),
                annotation=optional(annotation),
            )
            for name, kind, default, annotation in rows
        ],
        return_annotation=optional(returned),
    )
