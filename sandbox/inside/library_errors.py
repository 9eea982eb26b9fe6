"""Exceptions of packages that both sides have, such as pydantic's `ValidationError`.

Tests catch them by the class that they import themselves. So the class that stands for the other
side's extends it; all else about such an exception is asked of the other side, which made it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

from gatekeeper.sandbox.inside import packages

__all__ = ["made", "public", "shared"]

_EXTENDABLE = 1 << 10  # Py_TPFLAGS_BASETYPE


def shared(module: str, name: str) -> type[Exception] | None:
    """The class of an exception of a package, if this process has it.

    Not one beside `Exception`, such as trio's `Cancelled`: libraries act on these.
    """
    found = packages.loaded(module, name)
    if type(found) is not type or not issubclass(found, Exception):
        return None
    return found if found.__flags__ & _EXTENDABLE else None


class _Asked:
    """An attribute that is asked of the other side, unless the exception has it itself."""

    def __init__(self, name: str, ask: Callable[[Any, str], Any]) -> None:
        self._name, self._ask = name, ask

    def __get__(self, error: Any, kind: type) -> Any:
        if error is None:  # one of the class, which asks as well
            raise AttributeError(self._name)
        return self._ask(error, self._name)


def public(kind: type, ask: Callable[[Any, str], Any]) -> dict[str, Any]:
    """A namespace that hides the public attributes of such a class, and asks for them instead."""
    above = [vars(base) for base in kind.__mro__ if base.__module__ != "builtins"]
    return {name: _Asked(name, ask) for names in above for name in names if name[:1] != "_"}


def made(kind: type[BaseException], arguments: Sequence[Any]) -> BaseException | None:
    """An exception of a class, without its `__init__`; None if nothing known makes one."""
    plain = next(base for base in kind.__mro__ if base.__module__ == "builtins")
    # Not of what is written in another language, which has a `__new__` of its own: pydantic's gets
    # what is not in `args`.
    for make, given in ((plain, arguments), (kind, arguments), (kind, ("", []))):
        with contextlib.suppress(TypeError):
            return make.__new__(kind, *given)
    return None
