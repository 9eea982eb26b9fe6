"""Facts that the candidate's process reports about its objects: their type, not their answers.

Types, attributes and flags are read without running a line of the candidate's code. A hostile
candidate controls this process and can report anything; the tests' side accepts only facts that the
candidate could also cause honestly: that an object has a certain class (`standins.py`).
"""

from __future__ import annotations

import collections
import enum
import functools
import inspect
import itertools
import sys
import types
from collections.abc import Callable
from typing import Any

from gatekeeper.sandbox.inside import packages
from gatekeeper.sandbox.inside.operations import OPERATIONS as _COMMON
from gatekeeper.sandbox.inside.operations import imported, special

__all__ = [
    "FORWARDED",
    "IMMUTABLE",
    "OPERATIONS",
    "SCALARS",
    "UNNAMED",
    "class_facts",
    "exact",
    "function_facts",
    "handle_facts",
    "member",
    "object_facts",
    "parameters",
    "standard",
]

# Special methods whose presence decides which operations an object supports.
FORWARDED = frozenset(
    f"__{name}__"
    for name in """
    call len iter next reversed contains getitem setitem delitem enter exit await aiter
    anext aenter aexit bool int float complex index round floor ceil trunc bytes fspath
    hash str repr format eq ne lt le gt ge neg pos invert abs divmod rdivmod add sub mul
    truediv floordiv mod pow matmul lshift rshift and or xor radd rsub rmul rtruediv
    rfloordiv rmod rpow rmatmul rlshift rrshift rand ror rxor iadd isub imul itruediv
    ifloordiv imod ipow imatmul ilshift irshift iand ior ixor get set delete set_name
    """.split()  # noqa: SIM905
)
IMMUTABLE: dict[type, Callable[[Any], Any]] = {  # base -> makes the same value of exactly this type
    str: lambda v: str.__getitem__(v, slice(None)),
    int: lambda v: int.__add__(v, 0),
    float: lambda v: float.__mul__(v, 1.0),
    complex: lambda v: complex.__mul__(v, 1.0),
    bytes: lambda v: bytes.__getitem__(v, slice(None)),
    tuple: lambda v: tuple(tuple.__iter__(v)),
    frozenset: lambda v: frozenset(frozenset.__iter__(v)),
}


_MUTABLE: dict[type, Callable[[Any], Any]] = {
    list: lambda v: list(list.__iter__(v)),
    collections.OrderedDict: lambda v: collections.OrderedDict(collections.OrderedDict.items(v)),
    collections.defaultdict: lambda v: collections.defaultdict(None, dict.items(v)),
    collections.Counter: lambda v: collections.Counter(dict(dict.items(v))),
    dict: lambda v: dict(dict.items(v)),
    set: lambda v: set(set.__iter__(v)),
    bytearray: lambda v: bytearray(memoryview(v)),
}
_MAKERS = {**IMMUTABLE, **_MUTABLE}


UNNAMED = {  # classes of C that the standard library has under another name, or none
    (kind.__module__, kind.__qualname__): kind
    for kind in (
        *(kind for kind in vars(types).values() if isinstance(kind, type)),
        *map(type, map(iter, ([], (), {}, set(), "", b"", range(0), {}.values(), {}.items()))),
        *map(type, (iter(bytearray()), reversed([]), reversed({}))),
        type({}.keys()),
    )
}


def exact(item: Any) -> Any:
    """An instance of a subclass of a plain type, as that type; None for other objects."""
    return next((_MAKERS[base](item) for base in type(item).__mro__ if base in _MAKERS), None)


def object_facts(item: Any) -> tuple[Any, ...]:
    """The description of an object, from its class alone."""
    kind = type(item)
    if standard(kind):
        return "shared", kind.__module__, kind.__qualname__
    if any(base in IMMUTABLE for base in kind.__mro__):
        return "value", kind, exact(item)
    return "object", kind


@functools.lru_cache(maxsize=100)
def handle_facts(kind: Any) -> tuple[Any, ...]:
    """(special methods, fields of a dataclass or None) of objects of the tests."""
    special = tuple(
        name
        for name in sorted(FORWARDED)
        if (found := _first(kind, name)) is not None and found is not vars(object).get(name)
    )
    fields = _first(kind, "__dataclass_fields__")
    return special, tuple(fields) if type(fields) is dict else None


def standard(kind: type) -> bool:
    """Whether a class is Python's own, so that every process finds it under its name."""
    module, name = kind.__module__, kind.__qualname__
    if type(module) is not str or module.partition(".")[0] not in sys.stdlib_module_names:
        return False
    return UNNAMED.get((module, name), getattr(sys.modules.get(module), name, None)) is kind


def class_facts(kind: type) -> tuple[Any, ...]:
    """("class", name, qualified name, bases, special methods, more) of a candidate's class."""
    bases: list[Any] = []
    for base in kind.__bases__:
        if base is object:
            continue
        if standard(base) and base.__module__ != "builtins":
            bases.append((base.__module__, base.__qualname__))
        else:
            bases.append(base)
    above = type.mro(kind)[:-1]
    ours = list(itertools.takewhile(lambda base: base not in IMMUTABLE, above))
    defined = {name for base in ours for name, item in vars(base).items() if item is not None}
    for value in above[len(ours) :][:1]:  # the bases behind it, such as `Flag` behind `int`
        behind = (base for base in above[len(ours) + 1 :] if base not in value.__mro__)
        defined |= {name for base in behind for name in vars(base) if not hasattr(value, name)}
    more: dict[str, Any] = {}
    if any(name in defined for name in ("__getattr__", "__getattribute__")):
        more["getattr"] = True
    if _first(kind, "__hash__") is None:
        more["unhashable"] = True
    if (package := packages.named(kind)) is not None:
        more["package"] = package
    typing: Any = sys.modules.get("typing")
    if typing and type(kind) is typing._ProtocolMeta and vars(kind).get("_is_runtime_protocol"):
        members = {name: _first(kind, name) for name in typing._get_protocol_attrs(kind)}
        more["protocol"] = sorted(members)
        methods = (callable(item) or type(item) is classmethod for item in members.values())
        more["data"] = not all(methods)
    plain = next((base for base in type.mro(kind) if base in IMMUTABLE or base in _MUTABLE), None)
    if plain is not None:
        more["plain"] = plain
    if names := getattr(kind, "__abstractmethods__", None):
        more["abstract"] = [name for name in names if type(name) is str]
    if type(kind.__doc__) is str:
        more["doc"] = kind.__doc__
    fields = _first(kind, "__dataclass_fields__")
    if type(fields) is dict:
        more["fields"] = [name for name in fields if type(name) is str]
    match_args = _first(kind, "__match_args__")
    if type(match_args) is tuple and all(type(name) is str for name in match_args):
        more["match_args"] = match_args
    return "class", kind.__name__, kind.__qualname__, bases, sorted(defined & FORWARDED), more


def _first(kind: type, name: str) -> Any:
    """The attribute of a class by its name, its own or an inherited one."""
    found = (vars(base)[name] for base in type.mro(kind) if name in vars(base))
    return next(found, None)


def _code(function: Any) -> tuple[Any, ...] | None:
    """The attributes that `inspect` reads of a function's code, without the code."""
    code = getattr(function, "__code__", None)
    if not inspect.iscode(code):
        return None
    counts = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount)
    return *counts, code.co_flags, code.co_varnames, code.co_name, code.co_firstlineno


def _signature(function: Any) -> list[tuple[Any, ...]]:
    """(name, kind, default, annotation) of each parameter, then of the return value."""
    found = inspect.signature(function)
    empty = inspect.Signature.empty

    def optional(value: Any) -> tuple[Any, ...]:
        return () if value is empty else (value,)

    parameters = [
        (p.name, int(p.kind), optional(p.default), optional(p.annotation))
        for p in found.parameters.values()
    ]
    return [*parameters, ("", -1, (), optional(found.return_annotation))]


def function_facts(function: Any, annotation: Callable[[Any], Any]) -> tuple[Any, ...]:
    """The name of a function of the tests, its documentation, signature, and if it is `async`.

    Not its defaults: `lambda got, wanted=4: …` has an expected value there. `annotation` replaces
    each annotation.
    """
    try:
        rows = _signature(function)
        signature = [
            (name, kind, default and (...,), tuple(map(annotation, more)))
            for name, kind, default, more in rows
        ]
    except Exception:  # as of a mock that claims one
        signature = None
    awaited = inspect.iscoroutinefunction(function)
    names = (getattr(function, name, "") for name in ("__name__", "__qualname__"))
    return *names, function.__doc__, signature, awaited


def parameters(kind: Any, annotation: Callable[[Any], Any]) -> Any:
    """The signature of a class of the tests, as `function_facts` has a function's."""
    return function_facts(kind, annotation)[3] if isinstance(kind, type) else None


SCALARS = frozenset({int, float, bool, str, type(None)})


def _calls(function: Any, rows: list[tuple[Any, ...]]) -> tuple[tuple[bool, Any], ...]:
    """(whether it failed, value or exception) of one call after the other.

    Up to the first call that fails, or returns anything but a number or text: that may be large.
    """
    found: list[tuple[bool, Any]] = []
    for arguments in rows:
        try:
            value = function(*arguments)
        except Exception as error:
            found.append((True, error))
            break
        found.append((False, value))
        if type(value) not in SCALARS:
            break
    return tuple(found)


def member(item: Any) -> tuple[str, str] | None:
    """Module and name of a member of an enum of Python's own; None of anything else."""
    kind = type(item)
    if not (issubclass(kind, enum.Enum) and standard(kind)):
        return None
    known = kind.__members__.get(item.name) is item  # not of `re.I | re.M`
    return (kind.__module__, f"{kind.__qualname__}.{item.name}") if known else None


def _named(item: Any) -> tuple[str, str] | None:
    """Module and name of what is Python's own."""
    if not issubclass(type(item), type):  # on Python 3.10 `list[int]` says that it is a class
        return imported(item)
    return (item.__module__, item.__qualname__) if standard(item) else None


OPERATIONS: dict[str, Callable[..., Any]] = {
    **_COMMON,
    **{
        f"descriptor_{name}": lambda target, *arguments, _name=f"__{name}__": special(
            target, _name
        )(*arguments)
        for name in ("get", "set", "delete", "set_name")
    },
    "calls": _calls,
    "plain": exact,
    "named": _named,
    "view": lambda method: method(),
    "code": _code,
    "signature": _signature,
}
"""The operations that tests may request on a candidate's object, by name."""
