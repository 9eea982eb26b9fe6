"""Handles of the tests' objects, in the candidate's process.

A handle behaves as the object would: each operation on it is requested from the tests' process,
whose `Guard` decides. A candidate may change its own handles: the tests do not rely on this side.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Generator, Iterator, Mapping, MutableMapping
from typing import Any

from gatekeeper.sandbox.inside import signatures
from gatekeeper.sandbox.inside.operations import (
    BINARY,
    BITWISE,
    CONVERSIONS,
    ORDERINGS,
    UNARY,
    is_private,
)
from gatekeeper.sandbox.inside.packages import brought
from gatekeeper.sandbox.inside.peer import Peer
from gatekeeper.sandbox.inside.tasks import Waiting

__all__ = [
    "FUNCTION",
    "Attributes",
    "Handle",
    "HandleClass",
    "class_handle",
    "function_handle",
    "handle_kind",
    "inner",
]


def inner(handle: Any) -> tuple[Any, int]:
    found: tuple[Any, int]
    if issubclass(type(handle), HandleClass):
        found = type.__getattribute__(handle, "__dict__")[_OF_CLASS]
    else:
        found = object.__getattribute__(handle, "__gatekeeper__")
    return found


def _ask(handle: Any, operation: str, /, *arguments: Any, **keywords: Any) -> Any:
    return inner(handle)[0].ask(operation, handle, *arguments, **keywords)


def function_handle(
    handle: Any, name: str, qualified: str, doc: Any, found: Any, awaited: bool
) -> Any:
    """A function of the tests, as one that decorators and `inspect` can examine."""

    def call(*arguments: Any, **keywords: Any) -> Any:
        arguments, named = _without_defaults(arguments, keywords)
        if named.get("exc_info", qualified == "Logger.exception") is True and logs():
            named["exc_info"] = sys.exc_info()[1] or True  # which is handled on this side
        return handle(*arguments, **named)

    def logs() -> bool:
        return qualified.startswith("Logger.") and _ask(handle, "get", "__module__") == "logging"

    async def wait(*arguments: Any, **keywords: Any) -> Any:
        return await call(*arguments, **keywords)

    made: Any = wait if awaited else call
    if found is not None:
        signature = signatures.signature(found)
        made = signatures.shaped(signature, call, awaited=awaited)
        made.__signature__, made.__annotations__ = signature, signatures.annotated(signature)
    made.__name__, made.__qualname__, made.__doc__, made.__module__ = name, qualified, doc, "tests"
    return made


def _without_defaults(
    arguments: tuple[Any, ...], keywords: Mapping[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of a call without those that are defaults: `...`, in the signature."""
    while arguments and arguments[-1] is ...:
        arguments = arguments[:-1]
    return arguments, {name: value for name, value in keywords.items() if value is not ...}


class _Copy:
    """`__copy__`, which `copy` takes from a class; `tee` from an iterator, which has none."""

    def __get__(self, item: Any, kind: Any = None) -> Any:
        if item is not None and any("__next__" in vars(base) for base in kind.__mro__):
            raise AttributeError("__copy__")
        return (lambda item: _ask(item, "copy")) if item is None else lambda: _ask(item, "copy")


class Handle:
    """Stands for an object of the tests."""

    __slots__ = ("__gatekeeper__", "__weakref__")

    def __init__(self, peer: Peer, number: int) -> None:
        object.__setattr__(self, "__gatekeeper__", (peer, number))

    def __getattr__(self, name: str) -> Any:
        private = _private(self)
        if name in private:
            return private[name]
        found = _ask(self, "get", name)
        return Attributes(self, {**found, **private}) if name == "__dict__" else found

    def __setattr__(self, name: str, value: Any) -> None:
        _write(self, "set", name, value)

    def __delattr__(self, name: str) -> None:
        _delete(self, "delete", name)

    __copy__ = _Copy()

    def __deepcopy__(self, _memory: Any) -> Any:
        return _ask(self, "deepcopy")

    def __dir__(self) -> Any:
        return _ask(self, "dir")


def _private(handle: Any) -> dict[str, Any]:
    """The private attributes that the candidate keeps on an object, which stay on this side.

    So the tests cannot take them for their own, nor the candidate the tests' for its own.
    """
    peer, number = inner(handle)
    found: dict[str, Any] = peer.private.get(number, {})
    return found


# What describes a function, which stays here, too: libraries write it to a mock in its place.
_DESCRIBING = frozenset({"__signature__", "__wrapped__", "__doc__", "__annotations__"})


def _write(handle: Any, operation: str, name: str, value: Any) -> None:
    describes = name in _DESCRIBING and not isinstance(handle, HandleClass)
    if not describes:
        _ask(handle, operation, name, value)
    if describes or is_private(name):
        peer, number = inner(handle)
        peer.private.setdefault(number, {})[name] = value


def _delete(handle: Any, operation: str, name: str) -> None:
    if is_private(name) and name not in _private(handle):
        raise AttributeError(name)
    _ask(handle, operation, name)
    _private(handle).pop(name, None)


class Attributes(dict[str, Any]):
    """The attributes of an object of the tests, as `vars` shows them; it gets what is added."""

    pop, popitem, clear = MutableMapping.pop, MutableMapping.popitem, MutableMapping.clear
    setdefault, update = MutableMapping.setdefault, MutableMapping.update

    def __init__(self, handle: Any, found: dict[str, Any]) -> None:
        super().__init__(found)
        self._handle = handle

    def __setitem__(self, name: str, value: Any) -> None:
        _write(self._handle, "own", name, value)
        super().__setitem__(name, value)

    def __delitem__(self, name: str) -> None:
        super().__delitem__(name)
        _delete(self._handle, "disown", name)

    def __ior__(self, more: Any) -> Any:  # type: ignore[misc]
        self.update(more)
        return self

    def __reduce__(self) -> Any:
        return dict, (dict(self),)


class _Special:
    """Special methods of handles: a handle has those that the class of the object has."""

    def __iter__(self) -> Iterator[Any]:
        found: Iterator[Any] = _ask(self, "iter")
        return found if isinstance(found, Handle) else iter(found)

    def __exit__(self, kind: Any, error: Any, trace: Any) -> Any:
        return _ask(self, "exit", kind, error, None)

    def __await__(self) -> Generator[Any, None, Any]:
        return Waiting(functools.partial(_ask, self), "await").__await__()

    async def __anext__(self) -> Any:
        return await Waiting(functools.partial(_ask, self), "anext")

    async def __aenter__(self) -> Any:
        return await Waiting(functools.partial(_ask, self), "aenter")

    async def __aexit__(self, kind: Any, error: Any, trace: Any) -> Any:
        return await Waiting(functools.partial(_ask, self), "aexit", kind, error, None)


def _operation(name: str) -> Callable[..., Any]:
    def ask(self: Any, /, *others: Any, **keywords: Any) -> Any:
        return _ask(self, name, *others, **keywords)

    return ask


for _name in (*BINARY, *BITWISE, "divmod"):
    setattr(_Special, f"__{_name}__", _operation(_name))
    setattr(_Special, f"__r{_name}__", _operation(f"r{_name}"))
for _name in (*ORDERINGS, *UNARY, *CONVERSIONS, "eq", "ne", "call", "contains", "getitem"):
    setattr(_Special, f"__{_name}__", _operation(_name))
for _name in ("setitem", "delitem", "next", "reversed", "enter", "aiter"):
    setattr(_Special, f"__{_name}__", _operation(_name))


@functools.lru_cache(maxsize=1000)
def handle_kind(
    name: str, special: tuple[str, ...], fields: tuple[str, ...] | None, claimed: Any = None
) -> type[Handle]:
    """A class of handles for the objects of a class of Python's own, or of a package.

    The first ones are as of `facts.handle_facts`.

    `claimed` is as of `offered.claimed`.
    """
    namespace: dict[str, Any] = {n: vars(_Special)[n] for n in special if n in vars(_Special)}
    if name == "PropertyMock":  # of a class of the candidate's
        namespace |= {"__get__": lambda mock, *_: mock(), "__set__": lambda mock, _, new: mock(new)}
    if fields is not None:
        namespace |= signatures.dataclass_attributes(fields)
    shown: Any = brought(*claimed) if type(claimed) is tuple else claimed
    if shown is not None:
        namespace["__class__"] = property(lambda _: shown)
        if hasattr(shown, _FUTURE):  # asyncio looks into its own futures, and awaits others
            namespace[_FUTURE] = None
    return type(name, (Handle,), {"__slots__": (), **namespace})


class HandleClass(type):
    """Stands for a class that the tests define; the handles of its objects are of this class.

    So `type(event)` is the class that the tests have handed over, and makes other such objects.
    """

    def __new__(cls, name: str, *_: Any) -> Any:
        raise TypeError(f"{name} would extend a class of the tests")

    def handle(cls, peer: Peer, number: int) -> Any:
        """The handle of one of its objects: a call would make one there."""
        made: Any = object.__new__(cls)  # type: ignore[arg-type]
        Handle.__init__(made, peer, number)
        return made

    def __call__(cls, /, *arguments: Any, **keywords: Any) -> Any:
        arguments, named = _without_defaults(arguments, keywords)
        return _ask(cls, "call", *arguments, **named)

    @property
    def __signature__(cls) -> Any:
        if (found := _ask(cls, "parameters")) is None:
            raise AttributeError("__signature__")
        return signatures.signature(found)

    # Only objects of the tests are instances of their classes; a mock may be one by its own word.
    def __instancecheck__(cls, item: object) -> bool:
        if type.__instancecheck__(cls, item):
            return True
        return isinstance(item, Handle) and _ask(item, "isinstance", cls) is True

    def __subclasscheck__(cls, item: type) -> bool:
        if type.__subclasscheck__(cls, item):
            return True
        return isinstance(item, HandleClass) and _ask(item, "issubclass", cls) is True

    def __bool__(cls) -> bool:
        return True

    __getattr__: Any = Handle.__getattr__
    __setattr__: Any = Handle.__setattr__
    __delattr__: Any = Handle.__delattr__
    __dir__: Any = Handle.__dir__


for _name in ("iter", "len", "contains", "getitem", "reversed"):  # as an Enum has them
    setattr(HandleClass, f"__{_name}__", vars(_Special)[f"__{_name}__"])
_OF_CLASS = "__gatekeeper_class__"


class _Init:
    """`__init__` of a class of the tests, as what makes objects by their parameters examines it."""

    def __get__(self, item: Any, kind: Any = None) -> Any:
        def init(self: Any, /, *arguments: Any, **keywords: Any) -> None:
            raise TypeError("an object of the tests is made already")

        found = kind.__signature__
        own = next(iter(inspect.signature(init).parameters.values()))
        init.__annotations__ = signatures.annotated(found)
        init.__signature__ = found.replace(parameters=[own, *found.parameters.values()])  # type: ignore[attr-defined]
        return init


def class_handle(
    peer: Peer,
    number: int,
    names: tuple[str, str, str | None],
    bases: list[Any],
    special: tuple[str, ...],
    fields: tuple[str, ...] | None,
) -> Any:
    """The class that stands for one of the tests', which extends `bases` of theirs.

    `names` are its name, its qualified name and its documentation.
    """
    name, qualified, doc = names
    namespace: dict[str, Any] = {n: vars(_Special)[n] for n in special if n in vars(_Special)}
    if fields is not None:
        namespace |= signatures.dataclass_attributes(fields)
    namespace |= {"__slots__": (), "__doc__": doc, "__module__": "tests"}
    namespace |= {"__qualname__": qualified, "__init__": _Init(), _OF_CLASS: (peer, number)}
    return type.__new__(HandleClass, name, tuple(bases) or (Handle,), namespace)


_FUTURE = "_asyncio_future_blocking"
FUNCTION = handle_kind("function", ("__call__",), None)
