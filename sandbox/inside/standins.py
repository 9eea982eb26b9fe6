"""Stand-ins in the tests' process for the candidate's objects, and which answers are accepted.

Plain data is here by value, and the tests judge it themselves. Every other object is a stand-in
that asks the candidate's process. A candidate can give any answer, so only these may decide a test:

- *Values.* The result of a call, an attribute, iteration or a conversion: the candidate had to find
  it without knowing what is expected.
- *Kinds.* Class, special methods, signature: as read from the object's class (`facts.py`), never
  from its own answers. A stand-in has the special methods that the class has, and no other.
- *Comparisons of its own objects.* `==`, `<` and `in` between two of the candidate's objects are
  computed by it, which gives it no information. An object that also equals `stranger` is refused.

Never: whether an object equals or exceeds data of the tests. Whether it contains such data, only if
the tests made the object themselves of a class under test. An operator (`Money(3) + 2`) gets data
of the tests only if they made the object so, or got it from one that they made; the result must be
an object again, and is not converted to a number. An object may imitate a value, so the methods by
which text, numbers and collections compare themselves (`COMPARING`) are not called on one that a
function returned, and get no data on one that an object of a class under test returned.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from gatekeeper.sandbox.inside import signatures
from gatekeeper.sandbox.inside.operations import ORDERINGS
from gatekeeper.sandbox.inside.peer import Peer

__all__ = [
    "REFUSED",
    "Inner",
    "Kind",
    "Remote",
    "RemoteClass",
    "Trust",
    "Value",
    "ask",
    "believed",
    "given",
    "has",
    "inner",
    "is_stand_in",
    "kind_of",
    "mark",
    "theirs",
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
REFUSED = "{}: the candidate's object must not answer a question about data of the tests"


class Trust:
    """The origin of an object.

    RETURNED by a function; INSTANCE of a class under test, made by the tests or returned by such an
    object; INFORMED: made by an operator from such an object and data of the tests, so that it may
    know the expected value.
    """

    RETURNED, INSTANCE, INFORMED = range(3)


class Inner(NamedTuple):
    """The data of a stand-in.

    Attributes
    ----------
    peer, number
        The peer to ask, and the object's number there.
    trust
        Its `Trust`; None if that is not yet known.
    made
        Whether the tests made it themselves, of a class under test.
    """

    peer: Any
    number: int
    trust: int | None = None
    made: bool = False


class Kind:
    """The data of a class of stand-ins about the class that it stands for (`facts.py`)."""

    __slots__ = ("ancestors", "evasive", "hashable", "inner", "plain", "shown", "special", "tested")

    def __init__(self, inner: Inner | None, special: frozenset[str], *, shown: type) -> None:
        self.inner = inner  # None: a class of the standard library, which both sides have
        self.special = special  # names of the special methods that it defines or inherits
        self.shown = shown  # the value of `__class__`
        self.ancestors: frozenset[type] = frozenset()
        self.plain: type | None = None  # the plain type that it extends, such as list
        self.hashable = True
        self.evasive = False  # whether it has `__getattr__`, and so maybe every attribute
        self.tested = False  # whether the tests use it as a class: see `Trust`


def kind_of(item: type) -> Kind:
    found: Kind = type.__getattribute__(item, "__gatekeeper__")
    return found


def is_stand_in(item: object) -> bool:
    """Whether an object, or a class, stands for one of the candidate's."""
    # Not `isinstance`, which would use the `__class__` that a stand-in shows.
    return issubclass(type(item), (Remote, RemoteClass))


def inner(item: Any) -> Inner:
    if issubclass(type(item), RemoteClass):
        known = kind_of(item).inner
        assert known is not None
        return known
    found: Inner = object.__getattribute__(item, "__dict__")["gatekeeper"]
    return found


def mark(item: Any, trust: int, *, made: bool = False) -> None:
    """Set the origin of an object, unless it is known."""
    if issubclass(type(item), Remote) and (known := inner(item)).trust is None:
        known = known._replace(trust=trust, made=made)
        object.__getattribute__(item, "__dict__")["gatekeeper"] = known


def theirs(peer: Peer, item: object) -> bool:
    """Whether an object is the candidate's, so that a question about it gives no information."""
    kind = type(item)
    if issubclass(kind, RemoteClass):
        return True
    return issubclass(kind, Remote) and not issubclass(kind, Value) and inner(item).peer is peer


class RemoteClass(type):
    """Stands for a class of the candidate; its instances stand for instances of that class."""

    def __call__(cls, /, *arguments: Any, **keywords: Any) -> Any:
        peer = inner(cls).peer
        made = peer.ask("call", cls, *arguments, **keywords)
        if kind_of(cls).tested:
            peer.evidence = True
            mark(made, Trust.INSTANCE, made=True)
        return made

    def __getattr__(cls, name: str) -> Any:
        peer = inner(cls).peer
        if name == "__signature__":
            return signatures.signature(peer.ask("signature", cls))
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
        ask(cls, "set", name, value)

    def __delattr__(cls, name: str) -> None:
        ask(cls, "delete", name)

    def __subclasscheck__(cls, other: type) -> bool:
        return other is cls or (isinstance(other, RemoteClass) and cls in kind_of(other).ancestors)

    def __instancecheck__(cls, item: object) -> bool:
        return cls.__subclasscheck__(type(item))

    def __dir__(cls) -> Any:
        return ask(cls, "dir")

    def __iter__(cls) -> Iterator[Any]:
        return iter(ask(cls, "iter"))

    def __len__(cls) -> int:
        return int(ask(cls, "len"))

    def __bool__(cls) -> bool:
        return True

    def __getitem__(cls, key: Any) -> Any:
        return ask(cls, "getitem", key)

    def __contains__(cls, item: Any) -> bool:
        return any(item is found or item == found for found in cls)


class Remote:
    """Stands for an object of the candidate. Subclasses have the special methods of its class."""

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
            return signatures.code(ask(self, "code"))
        if name == "__signature__":
            return signatures.signature(ask(self, "signature"))
        return object.__getattribute__(self, name)

    def __setattr__(self, name: str, value: Any) -> None:
        ask(self, "set", name, value)

    def __delattr__(self, name: str) -> None:
        ask(self, "delete", name)

    def __eq__(self, other: object) -> Any:
        known, kind = inner(self), type(self)
        if self is other:
            return True
        if theirs(known.peer, other):
            defined = has(kind, "__eq__") or has(type(other), "__eq__")
            return defined and believed(self, "eq", other)
        if kind_of(kind).plain:
            return bool(known.peer.ask("plain", self) == other)
        return NotImplemented

    def __ne__(self, other: object) -> Any:
        peer = inner(self).peer
        if has(type(self), "__ne__") and theirs(peer, other):
            return peer.ask("ne", self, other) is True
        equal = Remote.__eq__(self, other)
        return equal if equal is NotImplemented else not equal

    def __hash__(self) -> int:
        if not kind_of(type(self)).hashable:
            raise TypeError(f"unhashable type: {type(self).__name__!r}")
        if has(type(self), "__hash__"):
            return int(ask(self, "hash"))
        return object.__hash__(self)

    def __str__(self) -> str:
        return str(ask(self, "str"))

    def __repr__(self) -> str:
        return str(ask(self, "repr"))

    def __format__(self, specification: str) -> str:
        return str(ask(self, "format", specification))

    def __dir__(self) -> Any:
        return ask(self, "dir")

    def __copy__(self) -> Any:
        return given(self, ask(self, "copy"))

    def __deepcopy__(self, _memory: Any) -> Any:
        return given(self, ask(self, "deepcopy"))


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
        if inner(self).trust == Trust.INSTANCE and has(type(self), "__hash__"):
            return int(ask(self, "hash"))
        return int(_plain(self).__hash__(self))


def _alike(item: Value, operation: str, other: object) -> Any:
    """`==` and `!=` of a value; the candidate's own only between objects of classes under test.

    A value that a function returned stays as it arrived: it must not differ at each use.
    """
    name = f"__{operation}__"
    defined = has(type(item), "__eq__") or has(type(item), name)
    both = isinstance(other, Value) and Trust.INSTANCE == inner(item).trust == inner(other).trust
    if defined and both:
        equal = believed(item, "eq", other)
        return equal if operation == "eq" else not equal
    return getattr(_plain(item), name)(item, other)


def _plain(item: Value) -> Any:
    return kind_of(type(item)).plain


def _special(name: str) -> bool:
    return name[:2] == "__" and name[-2:] == "__"


def has(kind: type, name: str) -> bool:
    """Whether the candidate's class defines that special method, itself or by inheritance."""
    return isinstance(kind, RemoteClass) and name in kind_of(kind).special


def ask(item: Any, operation: str, /, *arguments: Any, **keywords: Any) -> Any:
    return inner(item).peer.ask(operation, item, *arguments, **keywords)


def given(giver: Any, item: Any) -> Any:
    """A result of an object, with the origin of that object."""
    trust = inner(giver).trust
    for part in item if type(item) in (list, tuple) else (item,):
        mark(part, Trust.RETURNED if trust is None else trust)
    return item


def _attribute(item: Any, name: str) -> Any:
    known = inner(item)
    if known.number == known.peer.ROOT:  # the candidate's module
        return known.peer.ask("get", item, name)
    if name == "_as_parameter_":  # ctypes reads an address from it
        raise AttributeError(REFUSED.format(name))
    if not _special(name) and known.trust != Trust.INSTANCE and _evades(item):
        raise AttributeError(f"{name}: an object that has every attribute proves nothing")
    if name in ("send", "throw") and kind_of(type(item)).shown in _GENERATORS:
        return functools.partial(ask, item, name)
    found = known.peer.ask("get", item, name)
    found = given(item, found)
    if name in COMPARING and not known.made and isinstance(found, Remote):
        if known.trust != Trust.INSTANCE:
            raise AttributeError(REFUSED.format(name))
        return functools.partial(_without_data, name, found)
    return found


def _without_data(name: str, method: Any, /, *arguments: Any, **keywords: Any) -> Any:
    """Call a method that gets no data of the tests: only functions, or the candidate's objects."""
    peer = inner(method).peer
    for argument in (*arguments, *keywords.values()):
        if not (theirs(peer, argument) or callable(argument)):
            raise TypeError(REFUSED.format(name))
    return method(*arguments, **keywords)


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


def believed(item: Any, operation: str, other: Any) -> bool:
    """Whether the object answers True about `other`, but not about `stranger`, too."""
    peer = inner(item).peer
    if peer.ask(operation, item, other) is not True:
        return False
    try:
        return peer.ask(operation, item, peer.stranger) is not True
    except Exception:  # an honest object may raise for an object of another type
        return True
