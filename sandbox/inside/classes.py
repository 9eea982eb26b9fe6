"""Makes the classes of stand-ins: for the candidate's classes, and for those of Python itself."""

from __future__ import annotations

import collections.abc
import contextlib
import enum
import functools
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from gatekeeper.sandbox.inside import packages, signatures
from gatekeeper.sandbox.inside.facts import IMMUTABLE, UNNAMED
from gatekeeper.sandbox.inside.forwarders import FORWARDERS, VALUES, truth
from gatekeeper.sandbox.inside.kinds import (
    ENUM,
    Inner,
    Kind,
    RemoteClass,
    inner,
    is_stand_in,
    kind_of,
)
from gatekeeper.sandbox.inside.library_values import WRITERS
from gatekeeper.sandbox.inside.operations import importable
from gatekeeper.sandbox.inside.standins import Remote, Value

__all__ = ["candidate_class", "count_by_value", "error_class", "instance", "library_class"]

_DICTS = frozenset({dict, OrderedDict, defaultdict, Counter})
_PLAIN = frozenset({*IMMUTABLE, list, *_DICTS, set, bytearray, bool, type(None)})
_ABSTRACT = frozenset({"abc", "collections.abc", "numbers"})  # of which a class is registered
_NOT_SHOWN = frozenset({"enum", "typing", "unittest.case", "unittest.mock"})
_PATTERNS = {list: collections.abc.Sequence, **dict.fromkeys(_DICTS, collections.abc.Mapping)}
_CONTAINERS = frozenset({list, tuple, *_DICTS, set, frozenset})
_SENT = (*(_PLAIN - _CONTAINERS), *WRITERS)


def instance(kind: Any, known: Inner) -> Any:
    """An object of such a class."""
    made = object.__new__(kind)
    object.__getattribute__(made, "__dict__")["gatekeeper"] = known
    return made


def candidate_class(
    known: Inner, name: str, qualified: str, bases: list[Any], special: list[Any], more: Any
) -> Any:
    """The class that stands for one of the candidate's, as `facts.py` describes it there.

    Raises ValueError if the description cannot be true.
    """
    ancestors: set[type] = set()
    abstract: list[Any] = []
    for base in bases:
        if isinstance(base, RemoteClass):
            ancestors |= {base, *kind_of(base).ancestors}
        elif isinstance(base, tuple):
            abstract.append(base)
    plain = more.get("plain")
    if plain is not None and plain not in _PLAIN:
        raise ValueError(f"no plain type: {plain!r:.80}")
    value = plain in IMMUTABLE
    if value:
        roots: list[type] = [Value, plain]
    else:
        roots = [base for base in bases if isinstance(base, RemoteClass)] or [Remote]
    names = frozenset(n for n in special if type(n) is str)
    kept = dir(plain) if value else ()  # operations of plain data, but for those of `VALUES`
    namespace = {n: FORWARDERS[n] for n in names & FORWARDERS.keys() - kept}
    namespace |= {n: VALUES[n] for n in names & VALUES.keys() if value}
    if not value and "__iter__" in names:
        namespace.setdefault("__bool__", truth)
    if any(module == "enum" for module, _ in abstract):
        namespace[ENUM] = (enum.Enum,)
    made = _new_class(name, tuple(roots), namespace)
    kind = Kind(known, names, shown=made)
    kind.ancestors, kind.plain, kind.value = frozenset(ancestors), plain, value
    kind.hashable = not more.get("unhashable")
    kind.evasive = bool(more.get("getattr"))
    if type(more.get("protocol")) is list:
        kind.protocol = tuple(n for n in more["protocol"] if type(n) is str)
        kind.data = bool(more.get("data"))
    type.__setattr__(made, "__gatekeeper__", kind)
    type.__setattr__(made, "__qualname__", qualified)
    if type(more.get("doc")) is str:
        type.__setattr__(made, "__doc__", more["doc"])
    if type(more.get("match_args")) is tuple:
        type.__setattr__(made, "__match_args__", more["match_args"])
    if type(more.get("fields")) is list:
        for attribute, value in signatures.dataclass_attributes(more["fields"]).items():
            type.__setattr__(made, attribute, value)
    if plain is not None and not value:
        # `isinstance(x, list)` reads `__class__`.
        if plain in _PATTERNS:  # `match` looks at flags that this sets
            _PATTERNS[plain].register(made)
        kind.shown = _new_class(name, (made, plain), {})
        type.__setattr__(kind.shown, "__gatekeeper__", kind)
    extended = [*_of_python(abstract)] if plain is None else []
    _show(kind, roots, extended, made, more.get("package"))
    for module, abc in abstract:
        if module in _ABSTRACT:
            importable(module, abc).register(made)
    if type(more.get("abstract")) is list:  # so that `inspect.isabstract` is true
        type.__setattr__(made, "__abstractmethods__", frozenset(more["abstract"]))
    return made


def _of_python(named: Iterable[tuple[Any, Any]]) -> Iterator[type]:
    """Classes of Python's own that a class extends, such as `threading.Thread`."""
    for module, name in named:
        with contextlib.suppress(ValueError):
            base = importable(module, name) if module not in _ABSTRACT | _NOT_SHOWN else None
            if isinstance(base, type) and packages.found(base, sent=_SENT):
                yield base


def _show(kind: Kind, roots: list[type], extended: list[type], made: type, named: Any) -> None:
    """Let a class show the class of a package that it is, or one that extends such classes.

    It may be one that this process has not imported. `extended` are those of Python's own.
    """
    known = type(named) is tuple and packages.loaded(*named[:2])
    if known:
        shown = packages.found(known, sent=_SENT)
        real = [shown] if shown else []
    else:
        above = [kind_of(root).shown for root in roots if isinstance(root, RemoteClass)]
        real = [base for base in (*above, *extended) if not isinstance(base, RemoteClass)]
    if real:
        modules = [base.__module__ for one in real for base in one.__mro__]
        brought = filter(packages.is_of_package, modules)
        kind.packages = frozenset(module.partition(".")[0] for module in brought)
        kind.shown = real[0] if known else packages.extension(made, made.__name__, real)


_LIBRARY: dict[tuple[str, str], Any] = {}


def library_class(module: str, name: str) -> Any:
    """The class that stands for instances of a class of Python's own. Raises ValueError."""
    made = _LIBRARY.get((module, name))
    if made is None:
        real = UNNAMED.get((module, name)) or importable(module, name)
        # Containers that are too deep are not sent (`codec.py`); other data is always sent. Its
        # methods run here: they would ask an object that claims such a class for each key.
        plain = not isinstance(real, type) or issubclass(real, _SENT)
        if plain or real is type:
            raise ValueError(f"{module}.{name}")
        special = frozenset(
            n for base in real.__mro__[:-1] for n, item in vars(base).items() if item is not None
        )
        namespace = {n: FORWARDERS[n] for n in special & FORWARDERS.keys()}
        made = _new_class(real.__name__, (Remote,), namespace)
        type.__setattr__(made, "__gatekeeper__", Kind(None, special, shown=real))
        _LIBRARY[module, name] = made
    return made


@functools.cache
def error_class(special: frozenset[str]) -> Any:
    """The class of what stands for exceptions that have these special methods."""
    made = _new_class("BaseException", (Remote,), {n: FORWARDERS[n] for n in special})
    type.__setattr__(made, "__gatekeeper__", Kind(None, special, shown=BaseException))
    return made


def count_by_value() -> None:
    """Let `Counter`, in this process, take the value of an object that extends it.

    Its own methods would ask the object for each key of the tests.
    """

    def by_value(method: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
        def operate(self: Any, other: Any) -> Any:
            extends = is_stand_in(other) and kind_of(type(other)).plain is Counter
            return method(self, inner(other).peer.looks.value(other) if extends else other)

        return operate

    for name in ("eq", "ne", "lt", "le", "gt", "ge", "add", "sub", "or", "and"):
        setattr(Counter, f"__{name}__", by_value(vars(Counter)[f"__{name}__"]))


def _new_class(name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> Any:
    return type.__new__(RemoteClass, name, bases, {"__module__": "candidate", **namespace})


for _name in ("function", "method", "module", "generator"):
    library_class("builtins", _name)  # before the fork: it takes its time
