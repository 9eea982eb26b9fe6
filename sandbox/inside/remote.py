"""Objects of another process as handles: how test code and candidate talk without sharing memory.

Both ends of a stream run a `Peer`. Plain data travels by value (`codec.py`); everything else
stays where it is and is stood for by a `Handle`, whose operations are asked of its owner. Frames:

    Q  a question: (operation, arguments, keyword arguments)
    A  its answer: (value, changed arguments, number of the argument that the value is)
    X  its answer: an exception; (classes, arguments, attributes)

While a peer waits for an answer it answers questions: callbacks. What an argument's list, dict or
set became is sent back, so that changing it in place is seen. What the side with the tests lets
the other do to its objects says `Guard`.

Every process is forked with this loaded, so it imports nothing that has to be put in order after
a fork: threading, random, asyncio.
"""

from __future__ import annotations

import _thread
import builtins
import contextlib
import importlib
import operator
import socket
import sys
import types
from collections.abc import Callable, Generator, Iterator, Mapping
from typing import Any

from gatekeeper.sandbox.inside.codec import Parts, decode, encode, frame

__all__ = ["GoneError", "Guard", "Handle", "Peer", "RefusedError", "Trust", "mark"]

LIMIT = 32 << 20  # bytes of one message
_UNBOUNDED = {"max_hashed": sys.maxsize, "max_items": sys.maxsize}  # bytes are limit enough
_MUTABLE = (list, dict, set, bytearray)


class GoneError(BaseException):
    """The other process ended. Not an Exception: no test should take it for the candidate's."""


class RefusedError(AttributeError):
    """The other side must not do this to an object of ours."""


class Trust:
    """What a handle of the tests' side may answer about plain data of theirs.

    An object that a *function* returned must not be asked "are you 3?", nor for the difference
    from 3: a lie would pass the test. One that the tests made themselves, by calling a class,
    is meant to have operators, and so is what they give. `TOLD` is what an operator made of
    another object and of plain data of ours: it may know what we expect, and answers nothing.
    """

    NONE, CLASS, INSTANCE, TOLD = range(4)


# What can be asked about objects, beside "call", "get", "set" and "delete".
_BINARY = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul")
_BITWISE = ("lshift", "rshift", "and", "or", "xor")
_COMPARISONS = ("lt", "le", "gt", "ge")
_UNARY = ("neg", "pos", "invert", "abs")
_CONVERSIONS: dict[str, Callable[..., Any]] = {
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
}
_OPERATIONS: dict[str, Callable[..., Any]] = {
    **{name: getattr(operator, f"__{name}__") for name in _BINARY + _BITWISE + _UNARY},
    **{name: getattr(operator, name) for name in (*_COMPARISONS, "eq", "ne")},
    **_CONVERSIONS,
    "contains": operator.contains,
    "getitem": operator.getitem,
    "setitem": operator.setitem,
    "delitem": operator.delitem,
    "iter": iter,
    "next": next,
    "reversed": reversed,
    "round": round,
    "divmod": divmod,
    "isinstance": isinstance,
    "issubclass": issubclass,
    "dir": dir,
    "enter": lambda o: type(o).__enter__(o),
    "exit": lambda o, *error: type(o).__exit__(o, *error),
}


class Guard:
    """What the side with the tests lets a candidate do to its objects; `None` guards nothing.

    Everything Python code reaches through an object (its function's globals, a generator's frame)
    hangs on attributes; so attributes are where the fence stands.
    """

    # Of the standard library's objects; all others can be called, iterated, indexed, and no more.
    _OPEN = frozenset(
        {
            *(("_io", "StringIO"), ("_io", "BytesIO"), ("random", "Random")),
            *(("re", "Match"), ("re", "Pattern"), ("types", "SimpleNamespace")),
        }
    )
    _GENERATOR = frozenset({"send", "throw", "close"})
    _NAMES = frozenset({"__name__", "__qualname__", "__doc__", "__module__"})

    def __init__(self, module: str) -> None:
        self._module = module  # name of the module that the tests run in
        self.asserting: frozenset[int] = frozenset()  # lines of the running test that assert

    def check(self, operation: str, target: Any, arguments: tuple[Any, ...]) -> None:
        """Raises RefusedError."""
        if operation not in ("get", "set", "delete"):
            return
        name = arguments[0]
        if type(name) is not str or not self._allows(operation, target, name):
            raise RefusedError(f"{name!r:.80} of the tests' {type(target).__name__} is not open")

    def _allows(self, operation: str, target: Any, name: str) -> bool:
        kind = target if isinstance(target, type) else type(target)
        if operation == "get" and name in self._NAMES:
            return isinstance(target, types.FunctionType | type)
        if name.startswith("_"):
            return False
        if isinstance(target, types.GeneratorType):
            return operation == "get" and name in self._GENERATOR
        own = kind.__module__ == self._module
        if operation == "get":
            named = (kind.__module__, kind.__qualname__)
            return own or named in self._OPEN or isinstance(target, BaseException)
        # Data of an instance may change; what it, or its class, does may not.
        if isinstance(target, type) or not (own or isinstance(target, types.SimpleNamespace)):
            return False
        does = next((vars(base)[name] for base in kind.__mro__ if name in vars(base)), None)
        descriptor = hasattr(type(does), "__get__")
        if descriptor and not isinstance(does, types.MemberDescriptorType):
            return False
        return not callable(getattr(target, name, None))

    def swallows(self, error: BaseException | None, trace: types.TracebackType | None) -> bool:
        """Whether a candidate's context manager may swallow that: not what an assertion raised."""
        lines = set()
        while trace is not None:
            if trace.tb_frame.f_globals.get("__name__") == self._module:
                lines.add(trace.tb_lineno)
            trace = trace.tb_next
        return not (isinstance(error, AssertionError) or lines & self.asserting)


class Peer:
    """One end of the conversation. `guard` is set on the side that has something to hide.

    `more` are operations that only this side can be asked for.
    """

    def __init__(
        self,
        connection: socket.socket,
        *,
        guard: Guard | None = None,
        more: Mapping[str, Callable[[Any], Any]] | None = None,
    ) -> None:
        self._stream = connection.makefile("rwb")
        self.guard = guard
        self._operations = {**_OPERATIONS, **(more or {})}
        self._lock = _thread.RLock()  # threads of a candidate take turns
        self._owned: list[object] = []  # what the other side has handles of; its index is its id
        self._ids: dict[int, int] = {}  # id() of an owned object -> its id
        self._handles: dict[int, Any] = {}  # id -> our handle of, or class for, their object
        self._types = dict(_HANDLES)
        self.gone = False

    def export(self, item: object) -> int:
        """The id, from 1, under which the other side may ask about an object of ours."""
        number = self._ids.get(id(item))
        if number is None:
            self._owned.append(item)
            number = self._ids[id(item)] = len(self._owned)
        return number

    def handle(self, number: int, description: Any) -> Any:
        """What stands here for the other side's object of that id."""
        if number < 0:  # one of ours comes home
            return self._owned[-number - 1]
        if number == 0:
            return self._shared(*description)
        known = self._handles.get(number)
        if known is None:
            name, classes = description
            if classes:
                return self._exception_class([tuple(c) for c in classes])
            kind = self._types.get(name)
            if kind is None:
                kind = self._types[name] = _handle_type(str(name))
            known = kind(self, number)
            if name == "coroutine":  # asyncio takes only real ones
                known = _wait_for(known)
            self._handles[number] = known
        return known

    def _shared(self, module: str, name: str) -> Any:
        """What both sides have: of the candidate's only a built-in type is taken at its word."""
        if module == "builtins" and name in _BUILTIN_TYPES:
            return _BUILTIN_TYPES[name]
        if self.guard is not None:
            raise ValueError(f"{module}.{name}")
        return operator.attrgetter(name)(importlib.import_module(module))

    def ask(self, operation: str, /, *arguments: Any, **keywords: Any) -> Any:
        """Have the other side do something; its exceptions are raised here."""
        with self._lock:
            self._send(b"Q", (operation, arguments, keywords))
            while True:
                kind, payload = self._receive()
                if kind == b"Q":
                    self._answer(payload)
                elif kind == b"A":
                    value, changes, same = payload
                    given = [*arguments, *keywords.values()]
                    for number, changed in changes:
                        _update(given[number], changed)
                    return value if same is None else given[same]
                else:
                    error = self._error(*payload)
                    # It would end a loop of ours as if there were no more to check.
                    if isinstance(error, StopIteration) and operation != "next":
                        raise RuntimeError(f"the candidate raised {error!r}") from error
                    raise error

    def serve(self) -> None:
        """Answer questions until the other side ends."""
        while True:
            try:
                kind, payload = self._receive()
            except GoneError:
                return
            if kind == b"Q":
                self._answer(payload)

    def _answer(self, question: Any) -> None:
        try:
            operation, arguments, keywords = question
            given = [*arguments, *keywords.values()]
            before = [self._trace(item) for item in given]
            value = self._do(operation, *arguments, **keywords)
            changes = [
                (number, item)
                for number, item in enumerate(given)
                if before[number] is not None and self._trace(item) != before[number]
            ]
            same = None
            if type(value) in _MUTABLE:
                same = next((i for i, item in enumerate(given) if item is value), None)
            self._send(b"A", (value if same is None else None, changes, same))
        except GoneError:
            raise
        except BaseException as error:
            self._send(b"X", self._describe(error))

    def _do(self, operation: str, target: Any, /, *arguments: Any, **keywords: Any) -> Any:
        if self.guard is not None:
            if id(target) not in self._ids:
                raise RefusedError("not an object of the tests")
            self.guard.check(operation, target, arguments)
        match operation:
            case "call":
                return target(*arguments, **keywords)
            case "get":
                return getattr(target, *arguments)
            case "set":
                return setattr(target, *arguments)
            case "delete":
                return delattr(target, *arguments)
            case "await":
                asyncio = importlib.import_module("asyncio")
                return asyncio.run(_wait_for(target))
        return self._operations[operation](target, *arguments)

    def _trace(self, item: object) -> bytes | None:
        """What a mutable argument is now; None for others."""
        if type(item) not in (*_MUTABLE, tuple):
            return None
        return encode(item, LIMIT, other=self._refer, **_UNBOUNDED)

    def _refer(self, item: Any) -> Parts:
        """How an object that stays here is written."""
        if isinstance(item, Handle):
            peer, number, _ = _inner(item)
            if peer is self:
                return _id(-number), (None,)
        name = next((n for n, kind in _BUILTIN_TYPES.items() if kind is item), None)
        if name is not None:
            return _global("builtins", name)
        if self.guard is not None and (found := _importable(item)):
            return _global(*found)
        classes = None
        if isinstance(item, type) and issubclass(item, BaseException):
            classes = self._chain(item)
        return _id(self.export(item)), ((type(item).__name__, classes),)

    def _chain(self, kind: type[BaseException]) -> list[tuple[str, str, int]]:
        """An exception's class and its bases: module, name, id (negative: the other side's)."""
        theirs = {id(made): -n for n, made in self._handles.items() if isinstance(made, type)}
        return [
            (str(c.__module__), str(c.__qualname__), theirs.get(id(c)) or self.export(c))
            for c in type.mro(kind)
            if issubclass(c, BaseException)
        ]

    def _exception_class(self, classes: list[tuple[str, str, int]]) -> type[BaseException]:
        """A class of ours to catch their exception by: the same where both sides have it."""
        module, name, number = classes[0]
        if number < 0:
            own = self._owned[-number - 1]
            if isinstance(own, type) and issubclass(own, BaseException):
                return own
        shared = getattr(sys.modules.get(module), name, None)
        # unittest's own say that a test is skipped: not for a candidate to say.
        standard = module.partition(".")[0] in sys.stdlib_module_names - {"unittest"}
        if standard and isinstance(shared, type) and issubclass(shared, BaseException):
            return shared
        made = self._handles.get(number)
        if made is None:
            base = self._exception_class(classes[1:]) if len(classes) > 1 else Exception
            plain = str(name).rpartition(".")[2]
            made = self._handles[number] = type(plain, (base,), {"__module__": "candidate"})
        return made

    def _describe(self, error: BaseException) -> Any:
        state = dict(vars(error))
        described = (self._chain(type(error)), error.args, state)
        try:
            encode(described, LIMIT, other=self._refer, **_UNBOUNDED)
        except BaseException:  # hostile arguments hurt only their own message
            return (self._chain(type(error)), (), {})
        return described

    def _error(self, classes: Any, arguments: Any, state: Any) -> BaseException:
        kind = self._exception_class([tuple(c) for c in classes])
        error = kind.__new__(kind, *arguments)  # not __init__, whose arguments nobody knows
        error.args = tuple(arguments)
        for name, value in state.items():
            if type(name) is str and not name.startswith("_"):
                with contextlib.suppress(AttributeError, TypeError):
                    setattr(error, name, value)
        return error

    def _send(self, kind: bytes, message: Any) -> None:
        payload = encode(message, LIMIT, other=self._refer, **_UNBOUNDED)
        try:
            self._stream.write(frame(kind, payload))
            self._stream.flush()
        except (OSError, ValueError):
            self.gone = True
            raise GoneError from None

    def _receive(self) -> tuple[bytes, Any]:
        try:
            start = self._stream.read(5)
            size = int.from_bytes(start[1:], "little")
            payload = self._stream.read(size) if size <= 2 * LIMIT else b""
            if len(start) < 5 or len(payload) < size:
                raise EOFError
            return start[:1], decode(payload, other=self.handle, **_UNBOUNDED)
        except (OSError, EOFError, ValueError):  # nothing but nonsense can be expected from it
            self.gone = True
            raise GoneError from None


async def _wait_for(item: Any) -> Any:
    return await item


def _id(number: int) -> bytes:
    return b"h" + number.to_bytes(8, "little", signed=True)


def _update(old: Any, new: Any) -> None:
    """Give a mutable object the contents of its changed copy, inner ones in place too."""
    if isinstance(old, list):
        if len(old) == len(new):
            for number, (mine, theirs) in enumerate(zip(old, new, strict=True)):
                if type(mine) is type(theirs) and isinstance(mine, _MUTABLE):
                    _update(mine, theirs)
                else:
                    old[number] = theirs
        else:
            old[:] = new
    elif isinstance(old, dict):
        kept = {k: v for k, v in old.items() if k in new}
        old.clear()
        for key, theirs in new.items():
            mine = kept.get(key)
            if type(mine) is type(theirs) and isinstance(mine, _MUTABLE):
                _update(mine, theirs)
                theirs = mine
            old[key] = theirs
    elif isinstance(old, tuple):
        for mine, theirs in zip(old, new, strict=True):
            if type(mine) is type(theirs) and isinstance(mine, (*_MUTABLE, tuple)):
                _update(mine, theirs)
    elif isinstance(old, set):
        old.intersection_update(new)
        old.update(new)
    else:
        old[:] = new


_BUILTIN_TYPES = {
    name: kind
    for name, kind in vars(builtins).items()
    if isinstance(kind, type) and not issubclass(kind, BaseException)
} | {"NoneType": type(None)}


def _importable(item: Any) -> tuple[str, str] | None:
    """Where a function or class of the standard library is found by every process."""
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


def _global(module: str, name: str) -> Parts:
    return _id(0), ((module, name),)


def _inner(handle: Any) -> tuple[Peer, int, int]:
    found: tuple[Peer, int, int] = object.__getattribute__(handle, "_inner")
    return found


class Handle:
    """Stands for an object of the other side."""

    __slots__ = ("__weakref__", "_inner")

    def __init__(self, peer: Peer, number: int, trust: int = Trust.NONE) -> None:
        object.__setattr__(self, "_inner", (peer, number, trust))

    def __call__(self, /, *arguments: Any, **keywords: Any) -> Any:
        made = _ask(self, "call", *arguments, **keywords)
        if _inner(self)[2] == Trust.CLASS:
            mark(made, Trust.INSTANCE)
        return made

    def __getattr__(self, name: str) -> Any:
        return _ask(self, "get", name)

    def __setattr__(self, name: str, value: Any) -> None:
        _ask(self, "set", name, value)

    def __delattr__(self, name: str) -> None:
        _ask(self, "delete", name)

    def __eq__(self, other: object) -> Any:
        asked = _both(self, other) or not _guarded(self)
        return _ask(self, "eq", other) if asked else NotImplemented

    def __ne__(self, other: object) -> Any:
        asked = _both(self, other) or not _guarded(self)
        return _ask(self, "ne", other) if asked else NotImplemented

    def __contains__(self, item: object) -> bool:
        if _both(self, item) or _inner(self)[2] == Trust.INSTANCE or not _guarded(self):
            return bool(_ask(self, "contains", item))
        return any(item is found or item == found for found in self)

    def __iter__(self) -> Iterator[Any]:
        found: Iterator[Any] = _ask(self, "iter")
        return found if isinstance(found, Handle) else iter(found)

    def __instancecheck__(self, item: object) -> bool:
        return _inner(self)[0].ask("isinstance", item, self) is True

    def __subclasscheck__(self, item: object) -> bool:
        return _inner(self)[0].ask("issubclass", item, self) is True

    def __enter__(self) -> Any:
        return _ask(self, "enter")

    def __exit__(self, kind: Any, error: Any, trace: Any) -> Any:
        swallowed = _ask(self, "exit", kind, error, None)
        guard = _inner(self)[0].guard
        return bool(swallowed) and (guard is None or guard.swallows(error, trace))

    def __await__(self) -> Generator[None, None, Any]:
        yield from ()
        return _ask(self, "await")

    def __dir__(self) -> Any:
        return _ask(self, "dir")


def _ask(handle: Any, operation: str, /, *arguments: Any, **keywords: Any) -> Any:
    peer, _, trust = _inner(handle)
    if trust == Trust.TOLD:
        raise TypeError(f"{operation}: an object of the candidate's cannot answer for data")
    return peer.ask(operation, handle, *arguments, **keywords)


def _guarded(handle: Any) -> bool:
    return _inner(handle)[0].guard is not None


def mark(made: Any, trust: int) -> None:
    """Say what a handle may answer about; what is known of it already stands."""
    if isinstance(made, Handle):
        peer, number, known = _inner(made)
        if known == Trust.NONE:
            object.__setattr__(made, "_inner", (peer, number, trust))


def _both(handle: Any, other: object) -> bool:
    """Whether both are the other side's, so that asking it to compare tells it nothing."""
    return isinstance(other, Handle) and _inner(other)[0] is _inner(handle)[0]


def _operator(name: str, *, reflected: bool = False) -> Callable[..., Any]:
    def ask(self: Any, *others: Any) -> Any:
        operands = (*others, self) if reflected else (self, *others)
        peer, _, trust = _inner(self)
        free = trust == Trust.INSTANCE or not _guarded(self)
        told = trust == Trust.TOLD or not all(_both(self, other) for other in others)
        if told and not free and name in _COMPARISONS:
            return NotImplemented
        made = peer.ask(name, *operands)
        if free:
            mark(made, trust)
        elif told and isinstance(made, Handle):
            mark(made, Trust.TOLD)
        elif told:
            raise TypeError(f"{name}: an object of the candidate's cannot answer for data")
        return made

    return ask


def _conversion(name: str) -> Callable[..., Any]:
    return lambda self, *arguments: _ask(self, name, *arguments)


for _name in (*_BINARY, *_BITWISE, "divmod"):
    setattr(Handle, f"__{_name}__", _operator(_name))
    setattr(Handle, f"__r{_name}__", _operator(_name, reflected=True))
for _name in (*_COMPARISONS, *_UNARY, "round"):
    setattr(Handle, f"__{_name}__", _operator(_name))
for _name in (*_CONVERSIONS, "getitem", "setitem", "delitem", "next", "reversed"):
    setattr(Handle, f"__{_name}__", _conversion(_name))


def _handle_type(name: str) -> type[Handle]:
    """A class of handles that has the name of what they stand for."""
    return type(name, (Handle,), {"__slots__": ()})


# Made before the fork: a class of so many methods takes its time.
_HANDLES = {name: _handle_type(name) for name in ("function", "method", "module", "type")}
