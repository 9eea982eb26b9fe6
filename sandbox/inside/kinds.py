"""What the tests' process knows of a stand-in: its class, its origin, and whom to ask about it.

`standins.py` has the objects themselves, and which of their answers are accepted.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

from gatekeeper.sandbox.inside import signatures
from gatekeeper.sandbox.inside.facts import FORWARDED, UNNAMED
from gatekeeper.sandbox.inside.peer import Peer

__all__ = [
    "ENUM",
    "GIVEN",
    "READABLE",
    "Inner",
    "Kind",
    "RemoteClass",
    "Trust",
    "ask",
    "decides",
    "first",
    "given",
    "given_back",
    "has",
    "inner",
    "is_alias",
    "is_instance",
    "is_stand_in",
    "kind_of",
    "mark",
    "of_tests",
    "real",
    "refusal",
    "special",
    "theirs",
]

READABLE = frozenset(  # special attributes that are data, or functions
    f"__{name}__"
    for name in """
    doc name qualname module dict wrapped annotations defaults kwdefaults func self
    members slots version author all abstractmethods isabstractmethod match_args
    origin args metadata
    """.split()  # noqa: SIM905
)


_ALIASES = frozenset({"GenericAlias", "_GenericAlias"})
GIVEN = "{}: the tests got this class, or its object, from the candidate: it must not decide"
ENUM = "__gatekeeper_enum__"  # an attribute of classes: `Enum`, where they extend it


class Trust:
    """The origin of an object.

    RETURNED by a function; INSTANCE of a class under test, made by the tests or returned by such an
    object; INFORMED: made by an operator from such an object and data of the tests, so that it may
    know the expected value; MODULE: the candidate's code.
    """

    RETURNED, INSTANCE, INFORMED, MODULE = range(4)


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
    sure
        Whether nothing but the name of that class gave it to the tests: `f("a")("b")` may make one,
        too, where `f` should return a function.
    back
        Whether the tests got the object, which they made, back: `top()` may return its own object,
        too, where it should return a list.
    """

    peer: Any
    number: int
    trust: int | None = None
    made: bool = False
    sure: bool = True
    back: bool = False

    @property
    def own(self) -> bool:
        """Whether the tests made the object, and have it from there."""
        return self.made and not self.back


class Kind:
    """The data of a class of stand-ins about the class that it stands for (`facts.py`)."""

    __slots__ = (
        *("ancestors", "data", "evasive", "hashable", "inner", "named", "operated", "packages"),
        *("plain", "protocol", "shown", "special", "tested", "value"),
    )

    def __init__(self, inner: Inner | None, special: frozenset[str], *, shown: type) -> None:
        self.inner = inner  # None: a class of the standard library, which both sides have
        self.special = special  # names of the special methods that it defines or inherits
        self.shown = shown  # the value of `__class__`
        self.ancestors: frozenset[type] = frozenset()
        self.packages = frozenset[str]()  # names of those of which it shows a class
        self.plain: type | None = None  # the plain type that it extends, such as list
        self.value = False  # whether its objects have their value here (`standins.Value`)
        self.hashable = True
        self.protocol: tuple[str, ...] = ()  # names of what makes any object one of its own
        self.data = False  # whether some of these are no methods
        self.evasive = False  # whether it has `__getattr__`, and so maybe every attribute
        self.named = False  # whether the tests know it by its name
        self.tested = False  # whether the tests use it as a class: see `Trust`
        self.operated = False  # whether they apply operators to objects that they make of it


def kind_of(item: type) -> Kind:
    found: Kind = type.__getattribute__(item, "__gatekeeper__")
    return found


def is_stand_in(item: object) -> bool:
    """Whether an object, or a class, stands for one of the candidate's."""
    # Not `isinstance`, which would use the `__class__` that a stand-in shows.
    kind = type(item)
    return issubclass(kind, RemoteClass) or issubclass(type(kind), RemoteClass)


def inner(item: Any) -> Inner:
    if issubclass(type(item), RemoteClass):
        known = kind_of(item).inner
        assert known is not None
        return known
    found: Inner = object.__getattribute__(item, "__dict__")["gatekeeper"]
    return found


def mark(item: Any, trust: int, *, made: bool = False, sure: bool = True) -> None:
    """Set the origin of an object, unless it is known."""
    stands_in = issubclass(type(type(item)), RemoteClass)
    if stands_in and (known := inner(item)).trust is None:
        known = known._replace(trust=trust, made=made, sure=sure)
        object.__getattribute__(item, "__dict__")["gatekeeper"] = known


def decides(item: Any) -> bool:
    """Whether an object may answer about data of the tests: they made it, of a class under test.

    Where it is not sure that they mean this object, tests that pass say nothing.
    """
    known = inner(item)
    return known.made and _surely(item, known.sure and not known.back)


def is_instance(item: Any) -> bool:
    """Whether an object is one of a class under test, or was returned by such an object."""
    known = inner(item)
    return known.trust == Trust.INSTANCE and _surely(item, known.sure)


def _surely(item: Any, sure: bool) -> bool:
    if not sure:
        inner(item).peer.decisions.doubt(GIVEN.format(type(item).__name__))
    return True


def given_back(item: Any) -> Any:
    """What stands for an object where the candidate gives it to the tests.

    Of one that they made another stand-in, so that the first one stays what they made.
    """
    if issubclass(type(item), type) or not is_stand_in(item):
        return item
    known = inner(item)
    if not known.made or kind_of(type(item)).value:
        return item
    if known.number not in known.peer.given_back:
        other = object.__new__(type(item))
        object.__getattribute__(other, "__dict__")["gatekeeper"] = known._replace(back=True)
        known.peer.given_back[known.number] = other
    return known.peer.given_back[known.number]


def first(item: Any) -> Any:
    """What stands for an object since the tests made it."""
    if issubclass(type(item), type) or not is_stand_in(item) or not inner(item).back:
        return item
    return inner(item).peer.known(inner(item).number)


def refusal(peer: Any, why: str) -> AssertionError:
    """What to raise where an object must not answer.

    A test may expect an error there (`raises(Exception)`), but another one: then there is no
    verdict.
    """
    peer.decisions.doubt(f"{why}, and the tests caught the refusal")
    return AssertionError(why)


def theirs(peer: Peer, item: object) -> bool:
    """Whether an object is the candidate's, so that a question about it gives no information."""
    kind = type(item)
    if issubclass(kind, RemoteClass):
        return True
    if not issubclass(type(kind), RemoteClass) or kind_of(kind).value:
        return False
    return inner(item).peer is peer


def has(kind: type, name: str) -> bool:
    """Whether the candidate's class defines that special method, itself or by inheritance."""
    return isinstance(kind, RemoteClass) and name in kind_of(kind).special


def ask(item: Any, operation: str, /, *arguments: Any, **keywords: Any) -> Any:
    return inner(item).peer.ask(operation, item, *arguments, **keywords)


def given(giver: Any, item: Any) -> Any:
    """A result of an object, with the origin of that object."""
    known = inner(giver)
    trust = Trust.RETURNED if known.trust is None else known.trust
    for part in item if type(item) in (list, tuple) else (item,):
        mark(part, trust, sure=known.sure)
    return item


def is_alias(item: Any) -> bool:
    """Whether an object stands for a class with parameters, such as `Stack[int]`."""
    if issubclass(type(item), type) or not is_stand_in(item):
        return False
    kind = kind_of(type(item))
    return kind.inner is None and kind.shown.__name__ in _ALIASES


def real(item: Any) -> Any:
    """The object of Python's own that an item stands for, by its name; else the item itself.

    Only to compare it by `is`, as the candidate may claim any name.
    """
    if not is_stand_in(item):
        return item
    item = first(item)
    kind = kind_of(item if issubclass(type(item), RemoteClass) else type(item))
    if (kind.inner is None) is issubclass(type(item), RemoteClass):
        return item
    known = inner(item)
    if known.number not in known.peer.named:
        # Not by the peer's own `ask`: that it is another object is no answer.
        known.peer.named[known.number] = _found(Peer.ask(known.peer, "named", item), item)
    found = known.peer.named[known.number]
    if found is not item:
        known.peer.evidence = True
    return found


def _found(names: Any, item: Any) -> Any:
    match names:
        case (str(module), str(name)) if module.partition(".")[0] in sys.stdlib_module_names:
            found: Any = UNNAMED.get((module, name)) or sys.modules.get(module, item)
            for part in name.split(".") if name and (module, name) not in UNNAMED else ():
                found = getattr(found, part, item)
            return found
    return item


def special(name: str) -> bool:
    return name[:2] == "__" and name[-2:] == "__"


class RemoteClass(type):
    """Stands for a class of the candidate; its instances stand for instances of that class."""

    def __call__(cls, /, *arguments: Any, **keywords: Any) -> Any:
        peer = inner(cls).peer
        made = first(peer.ask("call", cls, *arguments, **keywords))
        if kind_of(cls).tested:
            peer.evidence = True
            mark(made, Trust.INSTANCE, made=True, sure=peer.decisions.is_sure(cls))
        return made

    def __getattr__(cls, name: str) -> Any:
        if kind_of(cls).inner is None:  # a class of Python's own
            raise AttributeError(f"type object {cls.__name__!r} has no attribute {name!r}")
        peer = inner(cls).peer
        if name == "__signature__":
            return signatures.signature(peer.ask("signature", cls))
        if special(name) and name not in READABLE:
            raise AttributeError(f"type object {cls.__name__!r} has no attribute {name!r}")
        found = peer.ask("get", cls, name)
        if kind_of(cls).tested:
            mark(found, Trust.INSTANCE, sure=peer.decisions.is_sure(cls))
            if isinstance(found, RemoteClass) and name[:1].isupper():  # a class in a class
                kind_of(found).tested = kind_of(found).named = True
                kind_of(found).operated = kind_of(cls).operated
        return found

    def mro(cls) -> list[type]:
        """With `Enum` where it extends that: it is no base here, as its metaclass differs."""
        found = type.mro(cls)
        ours = {*map(id, found)}
        return [*found[:-1], *(e for e in vars(cls).get(ENUM, ()) if id(e) not in ours), object]

    @property
    def __mro__(cls) -> tuple[type, ...]:
        return tuple(c for c in type.__getattribute__(cls, "mro")() if not _ours(c))

    @property
    def __bases__(cls) -> tuple[type, ...]:  # type: ignore[override]
        found: tuple[type, ...] = type.__dict__["__bases__"].__get__(cls)
        return tuple(base for base in found if not _ours(base)) or (object,)

    @property
    def __annotations__(cls) -> Any:  # type: ignore[override]
        return signatures.readable(ask(cls, "get", "__annotations__"))

    def __eq__(cls, other: object) -> Any:
        return True if cls is other or real(cls) is other else NotImplemented

    __hash__ = type.__hash__

    def __setattr__(cls, name: str, value: Any) -> None:
        if name in FORWARDED and not has(cls, name):  # which its objects do not get here
            guard = inner(cls).peer.guard
            guard.missing = guard.missing or f"the tests give {cls.__name__} its {name}"
        ask(cls, "set", name, value)

    def __delattr__(cls, name: str) -> None:
        ask(cls, "delete", name)

    def __subclasscheck__(cls, other: type) -> bool:
        if kind_of(cls).data:
            raise TypeError("Protocols with non-method members don't support issubclass()")
        return _extends(other, cls) or _has_all(other, cls)

    def __instancecheck__(cls, item: object) -> bool:
        shown = type(item) if is_stand_in(item) else item.__class__  # that a mock has by its `spec`
        return _extends(shown, cls) or _has_all(item, cls)

    def __dir__(cls) -> Any:
        return ask(cls, "dir")

    def __iter__(cls) -> Iterator[Any]:
        found: Iterator[Any] = iter(ask(cls, "iter"))
        if kind_of(cls).named and inner(cls).peer.decisions.is_sure(cls):
            return found
        items = list(itertools.islice(found, len(cls) + 1))
        if len(items) != len(cls):  # a class in the place of a list, which may contain anything
            raise refusal(inner(cls).peer, f"a class of {len(cls)} items, and others")
        return iter(items)

    def __len__(cls) -> int:
        return int(ask(cls, "len"))

    def __bool__(cls) -> bool:
        return True

    def __getitem__(cls, key: Any) -> Any:
        found = ask(cls, "getitem", key)
        if kind_of(cls).tested and is_alias(found):  # `Stack[int]`, which makes objects as it does
            sure = inner(cls).peer.decisions.is_sure(cls)
            mark(found, Trust.INSTANCE, made=True, sure=sure)
        return found

    def __contains__(cls, item: Any) -> bool:
        return any(item is found or item == found for found in cls)


def _extends(kind: type, base: RemoteClass) -> bool:
    """Whether a class is a base, or extends it."""
    return kind is base or (isinstance(kind, RemoteClass) and base in kind_of(kind).ancestors)


def _has_all(item: object, kind: RemoteClass) -> bool:
    """Whether an object has all members of a protocol; False for no protocol.

    One in the place of another class may be one that has no members but those of all objects.
    """
    names = kind_of(kind).protocol
    if not (names and all(hasattr(item, name) for name in names)):
        return False
    peer = inner(kind).peer
    if not (theirs(peer, item) or peer.decisions.is_sure(kind)):
        peer.decisions.doubt(GIVEN.format(kind.__name__))
    return True


def _ours(kind: type) -> bool:
    """Whether a class is `Remote` or `Value`, which the tests do not see."""
    return not issubclass(type(kind), RemoteClass) and kind.__module__ == _STANDINS


_STANDINS = f"{__name__.rpartition('.')[0]}.standins"


def of_tests(item: Any, module: str) -> bool:
    """Whether an object is of a class that the tests define, in their module."""
    return not is_stand_in(item) and any(b.__module__ == module for b in type(item).__mro__)
