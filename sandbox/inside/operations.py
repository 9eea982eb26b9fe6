"""Operations that one side may request on the other's objects, and objects that both sides have."""

from __future__ import annotations

import functools
import importlib
import math
import operator
import os
import sys
import types
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from typing import Any

__all__ = [
    "BINARY",
    "BITWISE",
    "CONVERSIONS",
    "INPLACE",
    "KEEPS",
    "MUTABLE",
    "NAMED",
    "OPERATIONS",
    "ORDERINGS",
    "UNARY",
    "WRITES",
    "alias",
    "importable",
    "imported",
    "is_private",
    "special",
]

MUTABLE = (
    *(list, dict, set, bytearray),
    *(deque, Counter, OrderedDict, defaultdict),
)
BINARY = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul")
INPLACE = tuple(f"i{name}" for name in (*BINARY, "lshift", "rshift", "and", "or", "xor"))
KEEPS = frozenset({"enter", *INPLACE})  # these give the object itself, by convention
BITWISE = ("lshift", "rshift", "and", "or", "xor")
ORDERINGS = ("lt", "le", "gt", "ge")
UNARY = ("neg", "pos", "invert", "abs")
WRITES = ("set", "delete", "own", "disown")  # of attributes
CONVERSIONS: dict[str, Callable[..., Any]] = {
    "bool": bool,
    "int": int,
    "float": float,
    "complex": complex,
    "str": str,
    "repr": repr,
    "len": len,
    "hash": hash,
    "format": format,
    "index": operator.index,
    "round": round,
    "floor": math.floor,
    "ceil": math.ceil,
    "trunc": math.trunc,
    "bytes": bytes,
    "fspath": os.fspath,
}


def is_private(name: object) -> bool:
    return type(name) is str and name[:1] == "_" != name[1:2]


def special(target: Any, name: str) -> Any:
    """A special method, bound as a `with` statement binds it.

    `type(target).__exit__(target)` passes a mock one argument too many: what its class has is
    bound already.
    """
    for base in type(target).__mro__:
        if name in vars(base):
            found = vars(base)[name]
            bind = getattr(type(found), "__get__", None)
            return found if bind is None else bind(found, target, type(target))
    return getattr(type(target), name)  # an error


def _reflected(operate: Callable[..., Any]) -> Callable[[Any, Any], Any]:
    return lambda target, other: operate(other, target)


def _copy(name: str) -> Callable[[Any], Any]:
    return lambda item: getattr(importlib.import_module("copy"), name)(item)


OPERATIONS: dict[str, Callable[..., Any]] = {
    **{name: getattr(operator, f"__{name}__") for name in (*BINARY, *BITWISE, *INPLACE, *UNARY)},
    **{name: getattr(operator, name) for name in (*ORDERINGS, "eq", "ne")},
    **{f"r{name}": _reflected(getattr(operator, f"__{name}__")) for name in (*BINARY, *BITWISE)},
    "rdivmod": _reflected(divmod),
    **CONVERSIONS,
    "call": lambda target, /, *arguments, **keywords: target(*arguments, **keywords),
    "get": getattr,
    "set": setattr,
    "delete": delattr,
    "own": lambda target, name, value: target.__dict__.__setitem__(name, value),
    "disown": lambda target, name: target.__dict__.__delitem__(name),
    "contains": operator.contains,
    "getitem": operator.getitem,
    "setitem": operator.setitem,
    "delitem": operator.delitem,
    "iter": iter,
    "next": next,
    "send": lambda target, value: target.send(value),
    "throw": lambda target, *error: target.throw(*error[:2]),  # a traceback stays where it is
    "reversed": reversed,
    "divmod": divmod,
    "isinstance": isinstance,
    "issubclass": issubclass,
    "dir": dir,
    "copy": _copy("copy"),
    "deepcopy": _copy("deepcopy"),
    "aiter": lambda o: special(o, "__aiter__")(),
    "enter": lambda o: special(o, "__enter__")(),
    "exit": lambda o, *error: special(o, "__exit__")(*error),
}
"""The operations that one side may request on an object of the other, by name."""

# Of data alone: `type` would make classes in the process of the tests, or show theirs.
_DATA = (bool, int, float, complex, str, bytes, bytearray, list, tuple, dict, set, frozenset, range)
_BUILT_IN = (*_DATA, slice, object, type(None))
_OF_LIBRARY = (OrderedDict, Counter, defaultdict, deque, Decimal, Fraction)
_TIMES = (date, datetime, time, timedelta, timezone)
NAMED: dict[tuple[str, str], Any] = {
    **{(k.__module__, k.__name__): k for k in (*_BUILT_IN, *_OF_LIBRARY, *_TIMES)},
    ("builtins", "NotImplemented"): NotImplemented,
}
"""What a candidate may name, by module and name: types of data, and one constant."""
_NOISY = {"antigravity", "this", "idlelib", "turtle", "turtledemo", "test"}  # act when imported


def importable(module: str, name: str) -> Any:
    """The object of the standard library of that name, or the module. Raises ValueError."""
    root = module.partition(".")[0]
    if root not in sys.stdlib_module_names - _NOISY or "__main__" in module:
        raise ValueError(f"{module}.{name}")
    try:
        found = importlib.import_module(module)
        return operator.attrgetter(name)(found) if name else found
    except (ImportError, AttributeError):
        raise ValueError(f"{module}.{name}") from None


def alias(item: Any) -> tuple[Any, ...] | None:
    """A function and arguments that make a type with parameters, as `Optional[int]`; else None."""
    kind = type(item)
    if kind is types.UnionType:
        return functools.reduce, (operator.or_, item.__args__)
    of_typing = kind.__module__ == "typing" and kind.__name__.endswith("Alias")
    if kind is not types.GenericAlias and not (of_typing and hasattr(item, "__args__")):
        return None
    made: tuple[Any, ...] = item.__reduce__()
    return made


def imported(item: Any) -> tuple[str, str] | None:
    """Module and name by which every process finds what the standard library has; "": a module."""
    if type(item) is types.ModuleType:
        root = str(item.__name__).partition(".")[0]
        return (item.__name__, "") if root in sys.stdlib_module_names else None
    module, name = getattr(item, "__module__", None), getattr(item, "__qualname__", None)
    if isinstance(item, types.MethodDescriptorType):
        module, name = item.__objclass__.__module__, item.__qualname__
    if type(module) is not str or type(name) is not str:
        return None
    if module.partition(".")[0] not in sys.stdlib_module_names:
        return None
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return (module, name) if found is item else None
