"""Classes of the tests of which the candidate got only objects: `type(event)`.

With other objects of such a class it could find out what those of the tests hide, and its functions
would tell it what they know, where they got an object of the candidate's for their own.
"""

from __future__ import annotations

import enum
import types
from collections.abc import Iterable, Iterator, Sequence
from inspect import getattr_static
from typing import Any

from gatekeeper.sandbox.inside import facts
from gatekeeper.sandbox.inside.operations import is_private
from gatekeeper.sandbox.inside.within import parts

__all__ = ["ClassOf", "Shown", "class_description"]

_BOUND = (classmethod, staticmethod)
_HOLDERS = ("__func__", "fget", "func", "__wrapped__")  # where a function may be that a class has


class Shown:
    """The classes of the tests that they did not hand over themselves.

    Parameters
    ----------
    files
        File names of the tests' own code.
    """

    def __init__(self, files: frozenset[str]) -> None:
        self._files = files
        self._kinds: dict[int, type] = {}  # by id
        self._used: dict[int, int] = {}  # by id: how often it was referred to

    def __contains__(self, item: object) -> bool:
        return id(item) in self._kinds

    def add(self, kind: type) -> None:
        self._kinds[id(kind)] = kind

    def use(self, item: object, times: int = 1) -> None:
        """The candidate refers to an item, so it may get it from where it has put it."""
        if item in self:
            self._used[id(item)] = self._used.get(id(item), 0) + times

    def hand_over(self, item: object) -> bool:
        """The tests send an item; whether it was only shown until now."""
        if item not in self:
            return False
        if not self._used.get(id(item)):
            del self._kinds[id(item)]
        return True

    def among(self, operation: str, target: Any, given: Sequence[Any]) -> Iterator[type]:
        """Those that the candidate uses by an operation: a function may call what it is given."""
        if self._kinds:
            items = [target, *(parts(given) if operation == "call" else ())]
            yield from (item for item in items if item in self)

    def allows(
        self, operation: str, kind: type, arguments: Sequence[Any], objects: Iterable[object]
    ) -> bool:
        """Whether the candidate may do that with a class of which it got `objects`."""
        if operation == "call":
            return not (any(map(_hides, objects)) or any(map(_is_hidden, self._uses(kind))))
        if operation == "getitem":  # `Box[int]` makes objects, too
            return hasattr(type(kind), "__getitem__")
        if operation != "get":
            return True
        name = arguments[0]
        found = getattr_static(kind, name, None)
        if isinstance(kind, enum.EnumMeta) and name in kind.__members__:
            return True
        return isinstance(found, _BOUND) or not hasattr(type(found), "__get__")

    def _uses(self, kind: type) -> Iterator[str]:
        """The attributes that the functions of a class use, and that are no methods of it.

        Its objects may get them later.
        """
        members = {n: value for base in reversed(kind.__mro__) for n, value in vars(base).items()}
        todo = [value for base in kind.__mro__ for value in vars(base).values()]
        for item in todo:  # the list grows during the loop
            if isinstance(item, types.CodeType) and item.co_filename in self._files:
                yield from (name for name in item.co_names if not _is_method(members.get(name)))
                todo += item.co_consts
            elif isinstance(item, types.FunctionType):
                todo += (item.__code__, getattr(item, "__wrapped__", None))
            elif type(item).__module__ in ("builtins", "functools"):
                held = (getattr(item, name, None) for name in _HOLDERS)
                todo += [one for one in held if one is not None]


class ClassOf:
    """A class of the tests, in the description of one of its objects: it is not handed over."""

    __slots__ = ("kind",)

    def __init__(self, kind: type) -> None:
        self.kind = kind


def class_description(kind: Any, module: str) -> tuple[Any, ...]:
    """The description of a class of the tests, which they define in that module."""
    bases = [ClassOf(base) for base in kind.__bases__ if base.__module__ == module]
    names = kind.__name__, kind.__qualname__, kind.__doc__ if type(kind.__doc__) is str else None
    return "class", (names, bases, *facts.handle_facts(kind))


def _is_hidden(name: str) -> bool:
    """Whether an attribute of that name is private; `_value_` is one that Python reserves."""
    return is_private(name) and name[-1:] != "_"


def _hides(item: object) -> bool:
    """Whether an object has private attributes."""
    slots = (vars(base).get("__slots__", ()) for base in type(item).__mro__)
    names = [name for own in slots for name in ([own] if isinstance(own, str) else own)]
    mangled = any(name[:2] == "__" != name[-2:] for name in names)
    return mangled or any(map(_is_hidden, (*names, *getattr(item, "__dict__", ()))))


def _is_method(item: object) -> bool:
    return callable(item) or hasattr(type(item), "__get__")
