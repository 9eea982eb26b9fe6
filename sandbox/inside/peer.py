"""One end of the conversation between the process of the tests and that of the candidate.

Plain data travels by value (`codec.py`); everything else stays where it is and is referred to by a
number. Frames:

    Q  a question: (operation, arguments, keyword arguments, surroundings, (changed loans, all))
    A  its answer: (value, changed arguments, number of the argument that the value is, printed,
       number of the loan that the value is, changed loans)
    X  its answer: an exception; (classes, arguments, attributes, its number, its text, printed)

While a peer waits for an answer it answers questions: callbacks. What an argument's list, dict or
set became is sent back, so that changing it in place is seen. A list, dict or set that the tests
are given is a loan: what they do to it, as in `cart.items.append(x)`, goes along with the next
question, and what the candidate does to it with the answer. `surroundings` is what the tests
changed around them that a candidate sees in one process (`surroundings.py`), `printed` what it
wrote to streams that the tests replaced.

Every process is forked with this loaded, so it imports nothing that has to be put in order after
a fork: threading, random, asyncio.
"""

from __future__ import annotations

import _thread
import contextlib
import socket
import sys
import types
from collections.abc import Sequence
from typing import Any

from gatekeeper.sandbox.inside.codec import decode, encode
from gatekeeper.sandbox.inside.operations import BUILTIN_TYPES, MUTABLE, OPERATIONS, update
from gatekeeper.sandbox.inside.wire import Parts, frame

__all__ = ["LOANS", "GoneError", "Peer", "reference"]

LIMIT = 32 << 20  # bytes of one message
_UNBOUNDED = {"max_hashed": sys.maxsize, "max_items": sys.maxsize}  # bytes are limit enough
_CHUNKS = 1 << 12, 1 << 20  # bytes that are read at a time, at least and at most
LOANS = 32  # mutable values that the tests may still change


_BUILTIN_NAMES = {id(kind): name for name, kind in BUILTIN_TYPES.items()}  # types never end


class GoneError(BaseException):
    """The other process ended. Not an Exception: no test should take it for the candidate's."""


class Peer:
    """One end of a stream. Subclasses say what stands here for an object of the other side.

    Parameters
    ----------
    connection
        A stream socket; both of its ends are of the same version.
    """

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._received = bytearray()  # and not read yet
        self._lock = _thread.RLock()  # threads of a candidate take turns
        self._owned: list[object] = []  # what the other side refers to; its index + 1 is its number
        self._ids: dict[int, int] = {}  # id() of an owned object -> its number
        self._theirs: dict[int, Any] = {}  # number -> what stands here for their object
        self.gone = False

    # What the two sides do differently

    def _stand_in(self, number: int, description: Any) -> Any:
        """What stands here for the other side's object of that number."""
        raise NotImplementedError

    def _number_of(self, item: Any) -> int | None:
        """The number of their object that `item` stands for; None for other objects."""
        raise NotImplementedError

    def _describe(self, item: Any) -> Any:
        """What the other side is told about an object that stays here."""
        raise NotImplementedError

    def _instance(self, item: Any) -> Parts | None:
        """How an instance of a subclass of a plain type is written; None: by value."""
        raise NotImplementedError

    def _shared(self, module: str, name: str) -> Any:
        """An object that both sides have. Raises ValueError."""
        raise NotImplementedError

    def _perform(self, operation: str, target: Any, /, *arguments: Any, **keywords: Any) -> Any:
        """The value of an operation on an object of ours."""
        return OPERATIONS[operation](target, *arguments, **keywords)

    def _surroundings(self) -> Any:
        """What a question takes along."""
        return None

    def _surrounded(self, surroundings: Any) -> contextlib.AbstractContextManager[list[Any]]:
        """Around the answer to a question; gives what is printed meanwhile, by stream."""
        return contextlib.nullcontext([])

    def _heard(self, printed: list[Any]) -> None:
        """What the other side wrote while it answered."""

    def _lend(self, value: Any) -> int:
        """The number under which a mutable value may be changed from the other side; 0: none."""
        return 0

    def _borrow(self, number: int, value: Any) -> None:
        """Take note of a value that the other side has lent."""

    def _loans(self) -> tuple[list[tuple[int, Any]], list[int]]:
        """Of the values that were borrowed, those that are different now; and all still in use."""
        return [], []

    def _changed(self, loans: list[tuple[int, Any]]) -> None:
        """Give borrowed values the contents that the other side gave them."""

    def _lending(self, loans: Any) -> contextlib.AbstractContextManager[list[tuple[int, Any]]]:
        """Around the answer to a question: `_loans` of the other side, and what changes of them."""
        return contextlib.nullcontext([])

    # Objects

    def export(self, item: object) -> int:
        """The number, from 1, by which the other side may ask about an object of ours."""
        number = self._ids.get(id(item))
        if number is None:
            self._owned.append(item)
            number = self._ids[id(item)] = len(self._owned)
        return number

    def owns(self, item: object) -> bool:
        """Whether the other side was given that object of ours."""
        return id(item) in self._ids

    def meant(self, number: int, description: Any) -> Any:
        """What a reference means here. Raises ValueError where it means nothing."""
        if number < 0:  # one of ours comes home
            return self._owned[-number - 1]
        if number == 0:
            module, name = description
            return self._shared(str(module), str(name))
        known = self._theirs.get(number)
        if known is None:
            known = self._stand_in(number, description)
            self._theirs[number] = known
        return known

    def refer(self, item: Any) -> Parts:
        """How an object that stays here is written."""
        number = self._number_of(item)
        if number is not None:
            return reference(-number), (None,)
        if (name := _BUILTIN_NAMES.get(id(item))) is not None:
            return reference(0), (("builtins", name),)
        description = self._describe(item)
        return reference(self.export(item)), (description,)

    # Questions and answers

    def ask(self, operation: str, /, *arguments: Any, **keywords: Any) -> Any:
        """Have the other side do something; its exceptions are raised here."""
        with self._lock:
            self.begin(operation, *arguments, **keywords)
            return self.finish(operation, *arguments, **keywords)

    def begin(self, operation: str, /, *arguments: Any, **keywords: Any) -> None:
        """The first half of `ask`: what follows it runs while the other side works."""
        question = (operation, arguments, keywords, self._surroundings(), self._loans())
        self._send(b"Q", question)

    def finish(self, operation: str, /, *arguments: Any, **keywords: Any) -> Any:
        """The second half, of the same question; nothing else may be asked before it."""
        while True:
            kind, payload = self._receive()
            if kind == b"Q":
                self._answer(payload)
            elif kind == b"A":
                value, changes, same, printed, loan, loans = payload
                given = [*arguments, *keywords.values()]
                for number, changed in changes:
                    update(given[number], changed)
                if printed:
                    self._heard(printed)
                self._changed(loans)
                if loan:
                    self._borrow(loan, value)
                return value if same is None else given[same]
            else:
                *described, printed = payload
                if printed:
                    self._heard(printed)
                raise self.received(operation, self._error(*described))

    def received(self, operation: str, error: BaseException) -> BaseException:
        """What to raise for an exception of the other side's."""
        # It would end a loop of ours as if there were no more to check.
        if isinstance(error, StopIteration) and operation not in ("next", "send", "throw"):
            raised = RuntimeError(f"the candidate raised {error!r}")
            raised.__cause__ = error
            return raised
        return error

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
        printed: list[Any] = []
        try:
            operation, arguments, keywords, surroundings, loans = question
            # Arguments of many calls are made for them alone: nobody sees what becomes of them.
            given = [*arguments, *keywords.values()] if operation != "calls" else []
            before = [self._trace(item) for item in given]
            with self._lending(loans) as changed, self._surrounded(surroundings) as printed:
                value = self._perform(operation, *arguments, **keywords)
            changes = [
                (number, item)
                for number, item in enumerate(given)
                if before[number] is not None and self._trace(item) != before[number]
            ]
            same, loan = None, 0
            if type(value) in MUTABLE:
                same = next((i for i, item in enumerate(given) if item is value), None)
                loan = self._lend(value) if same is None else 0
            returned = value if same is None else None
            self._send(b"A", (returned, changes, same, printed, loan, changed))
        except GoneError:
            raise
        except BaseException as error:
            self._send(b"X", (*self._error_parts(error), printed))

    def _trace(self, item: object) -> bytes | None:
        """What a mutable argument is now; None for others."""
        if type(item) not in (*MUTABLE, tuple) and type(item).__module__ != "numpy":
            return None
        return self._encode(item)

    def _encode(self, item: object, limit: int = LIMIT) -> bytes:
        return encode(item, limit, other=self.refer, instance=self._instance, **_UNBOUNDED)

    def _send(self, kind: bytes, message: Any) -> None:
        payload = self._encode(message)
        try:
            self._connection.sendall(frame(kind, payload))
        except (OSError, ValueError):
            self.gone = True
            raise GoneError from None

    def _receive(self) -> tuple[bytes, Any]:
        try:
            start = self._read(5)
            size = int.from_bytes(start[1:], "little")
            if size > 2 * LIMIT:
                raise EOFError
            payload = self._read(size)
            return start[:1], decode(payload, other=self.meant, **_UNBOUNDED)
        except (OSError, EOFError, ValueError):  # nothing but nonsense can be expected from it
            self.gone = True
            raise GoneError from None

    def _read(self, size: int) -> bytes:
        """As many bytes of the stream. Raises EOFError."""
        # A file over the socket would do this, and take 0.2 ms of each task to be made.
        while (missing := size - len(self._received)) > 0:
            chunk = self._connection.recv(max(min(missing, _CHUNKS[1]), _CHUNKS[0]))
            if not chunk:
                raise EOFError
            self._received += chunk
        data = bytes(self._received[:size])
        del self._received[:size]
        return data

    # Exceptions

    def exception_chain(self, kind: type[BaseException]) -> list[tuple[str, str, int]]:
        """An exception's class and its bases: module, name, number (negative: the other side's)."""
        theirs = {id(made): -n for n, made in self._theirs.items() if isinstance(made, type)}
        return [
            (str(c.__module__), str(c.__qualname__), theirs.get(id(c)) or self.export(c))
            for c in type.mro(kind)
            if issubclass(c, BaseException)
        ]

    def exception_class(self, classes: Sequence[Sequence[Any]]) -> type[BaseException]:
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
        made = self._theirs.get(number)
        if not (isinstance(made, type) and issubclass(made, BaseException)):
            base = self.exception_class(classes[1:]) if len(classes) > 1 else Exception
            plain = str(name).rpartition(".")[2]
            made = self._theirs[number] = self._new_exception(plain, base)
        return made

    def _new_exception(self, name: str, base: type[BaseException]) -> type[BaseException]:
        """A class of ours for exceptions of theirs."""
        return type(name, (base,), {"__module__": "candidate"})

    def _error_parts(self, error: BaseException) -> Any:
        """(classes, arguments, attributes, number, text) of an exception of ours.

        The last two only where its class is no other side's to know: 0 and None.
        """
        kind = type(error)
        state = dict(vars(error))
        if error.__cause__ is not None:
            state["__cause__"] = error.__cause__
        number, text = 0, None
        if kind.__module__.partition(".")[0] not in sys.stdlib_module_names:
            number = self.export(error)
            if type(kind.__str__) is not types.WrapperDescriptorType:
                with contextlib.suppress(Exception):
                    text = str(error)
        described = (self.exception_chain(kind), error.args, state, number, text)
        try:
            self._encode(described)
        except BaseException:  # hostile arguments hurt only their own message
            return (self.exception_chain(kind), (), {}, 0, None)
        return described

    def _error(
        self, classes: Any, arguments: Any, state: Any, number: Any, text: Any
    ) -> BaseException:
        kind = self.exception_class([tuple(c) for c in classes])
        error = kind.__new__(kind, *arguments)
        # Python's own need it: CPython reads fields of a StopIteration that only this one sets.
        # What others' arguments mean nobody knows.
        if type(kind.__init__) is types.WrapperDescriptorType:
            with contextlib.suppress(Exception):
                kind.__init__(error, *arguments)
        error.args = tuple(arguments)
        for name, value in state.items():
            known = name in ("__notes__", "__cause__")
            if type(name) is str and (known or not name.startswith("_")):
                with contextlib.suppress(AttributeError, TypeError):
                    setattr(error, name, value)
        return error


def reference(number: int) -> bytes:
    """The head of a reference; its description follows as a part (`codec.py`)."""
    return b"h" + number.to_bytes(8, "little", signed=True)
