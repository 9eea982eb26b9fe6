"""The candidate's side of the connection: its own objects, and handles of the tests' objects."""

from __future__ import annotations

import contextlib
import socket
import types
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from gatekeeper.sandbox.inside import facts, outputs, surroundings
from gatekeeper.sandbox.inside.handles import (
    FUNCTION,
    Attributes,
    Handle,
    HandleClass,
    class_handle,
    function_handle,
    handle_kind,
    inner,
)
from gatekeeper.sandbox.inside.operations import NAMED
from gatekeeper.sandbox.inside.packages import brought
from gatekeeper.sandbox.inside.peer import Peer
from gatekeeper.sandbox.inside.references import LIMIT, original, reference
from gatekeeper.sandbox.inside.tasks import Tasks, as_coroutine
from gatekeeper.sandbox.inside.wire import Parts

__all__ = ["CandidatePeer"]


class CandidatePeer(Peer):
    """The candidate's end of the connection.

    Parameters
    ----------
    connection
        The stream to the tests' process.
    more
        Operations that only this side has, by name.
    """

    PARITY = 1

    def __init__(
        self, connection: socket.socket, *, more: Mapping[str, Callable[..., Any]] | None = None
    ) -> None:
        super().__init__(connection)
        self._tasks = Tasks()
        # Beside `facts.OPERATIONS`, of which a copy would take part of a millisecond of each run.
        self._more = {**self._tasks.operations, **self._tasks.turns, **(more or {})}
        self._more["outputs"] = lambda _: outputs.replaced(asked=True)
        self._functions: dict[int, int] = {}  # numbers of functions of the tests, by id
        self._described: dict[int, None] = {}  # numbers of the classes that the tests know
        self.private: dict[int, dict[str, Any]] = {}  # attributes, by the numbers of their objects
        self._printing: dict[int, surroundings.Printed] = {}  # by id: while questions are answered

    def _stand_in(self, number: int, description: Any) -> Any:
        name, about, *more = description
        if more:
            return self._error(about, *more)
        if isinstance(about, HandleClass):
            return about.handle(self, number)
        if name == "class":
            return class_handle(self, number, *about)
        if name in ("function", "method"):
            made = function_handle(FUNCTION(self, number), *about)
            self._functions[id(made)] = number
            return made
        if type(about) is list:
            return self.exception_class([tuple(c) for c in about])
        handle = handle_kind(name, *about)(self, number)
        return as_coroutine(handle) if name == "coroutine" else handle

    def _original(self, number: int, kind: Any) -> Any:
        return Handle(self, number)

    def _added(self, kind: type[BaseException]) -> dict[str, Any]:
        if kind.__module__ == "builtins":
            return {}
        special = facts.FORWARDED.intersection(n for n, i in vars(kind).items() if i is not None)
        return {"special": [*special]} if special else {}

    def _number_of(self, item: Any) -> int | None:
        if isinstance(item, BaseException):
            item = original(item)
        if type(item) is types.FunctionType:
            return self._functions.get(id(item))
        return inner(item)[1] if isinstance(item, (Handle, HandleClass)) else None

    def _describe(self, item: Any) -> Any:
        if issubclass(type(item), type):  # on Python 3.10 `list[int]` says that it is a class
            if issubclass(item, BaseException):
                return "exception", self.exception_chain(item)
            number = self.export(item)
            if number in self._described:
                return ("known",)
            self._described[number] = None
            return facts.class_facts(item)
        if isinstance(item, BaseException):
            return "error", *self._error_parts(item)
        return facts.object_facts(item)

    def _encode(
        self, item: object, limit: int = LIMIT, *, sent: bool = False, **more: Any
    ) -> bytes:
        with self._lock:
            known, kept = len(self._described), False
            try:
                written = super()._encode(item, limit, sent=sent, **more)
                kept = sent
            finally:
                # The tests do not know the classes of what was only compared, or was too large.
                while not kept and len(self._described) > known:
                    self._described.popitem()
            return written

    def _instance(self, item: Any) -> Parts | None:
        if (names := facts.member(item)) is not None:
            return reference(0), (names,)
        if type(item) is Attributes or facts.standard(type(item)) or facts.exact(item) is None:
            return None
        return self.refer(item)

    def meant(self, number: int, description: Any) -> Any:
        if number == 0 and callable(description[0]):  # what makes a type, as `Optional[int]`
            make, arguments = description
            return make(*arguments)
        return super().meant(number, description)

    def _shared(self, module: str, name: str) -> Any:
        return NAMED.get((module, name)) or brought(module, name)

    def _perform(self, operation: str, target: Any, /, *arguments: Any, **keywords: Any) -> Any:
        perform = self._more.get(operation) or facts.OPERATIONS[operation]
        return perform(target, *arguments, **keywords)

    def _surroundings(self) -> Any:
        found = [text for printed in [*self._printing.values()] for text in printed.take()]
        own = outputs.replaced()
        return [*found, ("outputs", own)] if own else found or None

    def _surrounded(self, around: Any) -> contextlib.AbstractContextManager[list[Any]]:
        return self._applied(around) if around else super()._surrounded(around)

    @contextlib.contextmanager
    def _applied(self, around: dict[str, Any]) -> Iterator[list[Any]]:
        within = self._tasks.running() if "loop" in around else contextlib.nullcontext()
        with within, surroundings.applied(around) as printed:
            self._printing[id(printed)] = printed
            try:
                yield printed
            finally:
                del self._printing[id(printed)]
