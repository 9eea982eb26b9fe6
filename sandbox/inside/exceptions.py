"""The candidate's classes of exceptions, in the process of the tests.

The candidate makes their instances and is asked for what they are, as with other objects
(`standins.py`); but they are real exceptions here, which can be raised, caught and extended.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from typing import Any

from gatekeeper.sandbox.inside.classes import error_class, instance
from gatekeeper.sandbox.inside.facts import SCALARS
from gatekeeper.sandbox.inside.forwarders import FORWARDERS
from gatekeeper.sandbox.inside.guard import Guard
from gatekeeper.sandbox.inside.kinds import Inner, Trust, ask, mark
from gatekeeper.sandbox.inside.references import EXCEPTION, original
from gatekeeper.sandbox.inside.standins import believed

__all__ = ["added", "maker", "under_test", "unraised"]

_TESTED = "__gatekeeper_tested__"  # an attribute of classes under test


def maker(peer: Any) -> Callable[..., Any]:
    """How to make such a class of a name, bases and attributes; `peer` is asked about it.

    And of what it adds to its bases: the names of special methods.
    """

    class Meta(type):
        def __call__(cls, /, *arguments: Any, **keywords: Any) -> Any:
            if not _stands_in(cls):  # a class of the tests that extends one
                return super().__call__(*arguments, **keywords)
            made = peer.ask("call", cls, *arguments, **keywords)
            if vars(cls).get(_TESTED) and (known := original(made)) is not None:
                mark(known, Trust.INSTANCE, made=True, sure=peer.decisions.is_sure(cls))
            return made

        def __getattr__(cls, attribute: str) -> Any:
            if attribute.startswith("__"):
                raise AttributeError(attribute)
            return peer.ask("get", cls, attribute)

    namespace = {**EXCEPTION, **_SPECIAL, "__init__": _init(peer)}

    def make(name: str, bases: Any, asked: dict[str, Any], added: Any) -> Any:
        names = added.get("special", ()) if type(added) is dict else ()
        special = {n for n in names if type(n) is str}
        if "__len__" in special:  # which Python would use for its truth
            special.add("__bool__")
        more = {n: method for n, method in _FORWARDED.items() if n in special}
        return Meta(name, bases, {**namespace, **asked, **more})

    return make


def under_test(kind: Any) -> None:
    """Let objects that the tests make of a class of the candidate's decide what they contain."""
    if _stands_in(kind):
        type.__setattr__(kind, _TESTED, True)


def unraised(kind: Any, known: Inner) -> Any:
    """What stands for an exception of such a class, but cannot be raised; it has its methods."""
    names = (n for n, method in _FORWARDED.items() if getattr(kind, n, None) is method)
    return instance(error_class(frozenset(names)), known)


def added(kind: Any) -> dict[str, Any]:
    """What a class of the tests that extends such a class adds, for the candidate to see."""
    if _stands_in(kind) or not any(map(_stands_in, kind.__mro__)):
        return {}
    return {
        name: item
        for name, item in vars(kind).items()
        if (name[:1] != "_" and type(item) in SCALARS)
        or (type(item) is types.FunctionType and (name[:1] != "_" or name == "__str__"))
    }


def _stands_in(kind: type) -> bool:
    return vars(kind).get("__getattr__") is EXCEPTION["__getattr__"]


def _init(peer: Any) -> Callable[..., None]:
    def init(error: BaseException, *arguments: Any, **keywords: Any) -> None:
        """What `super().__init__` does: the candidate makes an exception of such a class."""
        made = peer.ask("call", type(error), *arguments, **keywords)
        before = {**vars(error)}
        vars(error).update(vars(made))
        error.args = made.args
        if (known := original(error)) is not None:
            peer.stands_for(known, error)
            for name in before.keys() - vars(made).keys():
                setattr(error, name, before[name])

    return init


def _eq(error: BaseException, other: object) -> Any:
    mine, theirs = original(error), original(other)
    if error is other or mine is None or theirs is None:
        return NotImplemented
    return believed(mine, "eq", theirs)


def _hash(error: BaseException) -> int:
    known = original(error)
    return object.__hash__(error) if known is None else int(ask(known, "hash"))


def _repr(error: BaseException) -> str:
    known = original(error)
    return BaseException.__repr__(error) if known is None else str(ask(known, "repr"))


def _set(error: BaseException, name: str, value: Any) -> None:
    if name[:1] != "_" and (known := original(error)) is not None:
        ask(known, "set", name, value)
        value = ask(known, "get", name)  # a property may have made another one
    BaseException.__setattr__(error, name, value)


_SPECIAL = {"__eq__": _eq, "__hash__": _hash, "__repr__": _repr, "__setattr__": _set}


def _forwarded(name: str) -> Callable[..., Any]:
    """A special method of such an exception, which that of its original answers."""
    forward = FORWARDERS[name]
    return lambda error, /, *arguments: forward(original(error), *arguments)


def _bool(error: BaseException) -> bool:
    """Its truth, for the tests: code of libraries takes each exception for one."""
    known, caller = original(error), sys._getframe(1).f_code
    return caller.co_filename not in Guard.files or bool(ask(known, "bool"))


# Conversions, and methods of containers: what an exception says of itself.
_FORWARDED = {
    f"__{name}__": _forwarded(f"__{name}__")
    for name in ("int", "float", "index", "len", "iter", "reversed", "contains", "getitem")
} | {"__bool__": _bool}
