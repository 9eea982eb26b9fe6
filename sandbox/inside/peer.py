"""One end of the connection between the process of the tests and that of the candidate.

Plain data travels by value (`codec.py`); everything else stays where it is and is referred to by a
number. Frames:

    Q  a question: (operation, arguments, keyword arguments, surroundings, (changed loans, all))
    A  its answer: (value, number of the argument that the value is, number of the loan that it is,
       loans that it keeps, changes, printed, changed loans)
    X  its answer: an exception; (classes, arguments, attributes, its number, its text, changes,
       printed, changed loans)

None stands for an absent field, except in the arguments.

While a peer waits for an answer it answers questions: callbacks. Each list, dict, set or array of
the arguments has a place (`places.py`): the answer names it by that, and has the new contents of
those that were changed. Both sides number the questions in their order. A list, dict or set that
the tests receive, or that the candidate keeps of the arguments, is a loan: the tests' changes to
it, as in `cart.items.append(x)`, are sent with the next question, and the candidate's changes with
the answer. `surroundings` are changes of the tests to their process that a candidate would see in
one process (`surroundings.py`); `printed` is the text that the candidate wrote to streams that the
tests replaced.

After `converse` a frame begins with the number of its conversation (`conversations.py`).

Every process is forked with this loaded, so it imports no module that must be reset after a fork:
threading, random, asyncio.
"""

from __future__ import annotations

import contextlib
import socket
from typing import Any

from gatekeeper.sandbox.inside import places as placed
from gatekeeper.sandbox.inside.codec import again
from gatekeeper.sandbox.inside.conversations import Conversations, GoneError
from gatekeeper.sandbox.inside.decoding import decode
from gatekeeper.sandbox.inside.operations import MUTABLE, OPERATIONS
from gatekeeper.sandbox.inside.references import LIMIT, UNBOUNDED
from gatekeeper.sandbox.inside.wire import frame

__all__ = ["LOANS", "Peer"]

_CHUNKS = 1 << 12, 1 << 20  # bytes to read at a time: least, most
_NOTHING: contextlib.nullcontext[list[Any]] = contextlib.nullcontext([])
_SINGLE = frozenset({type(None), bool})  # of whose values there is only one
_PARTED = frozenset({*MUTABLE, tuple})  # kinds of values that have parts
LOANS = 32  # mutable values that the tests may still change


class Peer(Conversations):
    """One end of a stream: asks, answers, and keeps loans up to date.

    Parameters
    ----------
    connection
        A stream socket; both ends run the same version of this code.
    """

    def __init__(self, connection: socket.socket) -> None:
        super().__init__(connection)
        self._asked = self._questions = 0  # how many questions were received, and sent

    # Methods that differ between the two sides

    def _perform(self, operation: str, target: Any, /, *arguments: Any, **keywords: Any) -> Any:
        """The value of an operation on an object of ours."""
        return OPERATIONS[operation](target, *arguments, **keywords)

    def _surroundings(self) -> Any:
        """The surroundings to send with a question."""
        return None

    def _surrounded(self, surroundings: Any) -> contextlib.AbstractContextManager[list[Any]]:
        """A context for answering a question; yields the text printed in it, by stream."""
        return _NOTHING

    def _repeat(self, printed: list[Any]) -> None:
        """Write here the text that the other side wrote while it answered."""

    def _lend(self, value: Any) -> int:
        """The number under which the other side knows and may change a value; 0: none."""
        return 0

    def _borrow(self, number: int, value: Any) -> Any:
        """Record a value that the other side has lent; the one that stands here for it."""
        return value

    def _loans(self) -> tuple[list[tuple[int, Any]], list[int]] | None:
        """The borrowed values that have changed, and the numbers of all that are still in use.

        None if there are none.
        """
        return None

    def _changed(self, loans: list[tuple[int, Any]]) -> None:
        """Give borrowed values the contents that the other side gave them."""

    def _lending(self, loans: Any) -> contextlib.AbstractContextManager[list[tuple[int, Any]]]:
        """A context for answering a question with the other side's `_loans`; yields the changes."""
        return _NOTHING

    # Questions and answers

    def ask(self, operation: str, /, *arguments: Any, **keywords: Any) -> Any:
        """Request an operation from the other side; its exceptions are raised here."""
        with self._turn:
            number = self.begin(operation, *arguments, **keywords)
            return self.finish(number, operation, *arguments, **keywords)

    def begin(self, operation: str, /, *arguments: Any, **keywords: Any) -> int:
        """The first half of `ask`: the caller continues while the other side works.

        Returns the number of the question.
        """
        with self._lock:
            around = self._surroundings(), self._loans()
            self._send(b"Q", (operation, arguments, keywords or None, *around))
            return self._questions

    def finish(self, number: int, operation: str, /, *arguments: Any, **keywords: Any) -> Any:
        """The second half of `ask`, for the same question; no other may be asked in between."""
        while True:
            kind, payload = self._receive()
            if kind == b"Q":
                self._answer(payload)
                continue
            *answer, changes, printed, loans = payload
            given, places = [*arguments, *keywords.values()], self._open.pop(number)
            for place, contents in changes or ():
                placed.refill(places[place], contents)
            if printed:
                self._repeat(printed)
            with self._lock:
                if loans:
                    self._changed(loans)
                if kind == b"A":
                    value, same, loan, kept = answer
                    if loan:
                        value = self._borrow(loan, value)
                    for place, loan in kept or ():
                        self._borrow(loan, places[place])
                    return value if same is None else given[same]
            raise self.received(operation, self._error(*answer))

    def received(self, operation: str, error: BaseException) -> BaseException:
        """The exception to raise here for one of the other side."""
        # These would end a loop of the tests as if there were no more items to check.
        ends = isinstance(error, StopIteration | StopAsyncIteration)
        if ends and operation not in ("next", "send", "throw", "anext"):
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
        changes: list[Any] = []
        printed: list[Any] = []
        changed: list[Any] = []
        known: dict[int, bytes] = {}
        try:
            operation, arguments, keywords, surroundings, loans, (asked, places) = question
            keywords = keywords or {}
            given = [*arguments, *keywords.values()]
            if loans:  # what is only in these is no part of the arguments
                places = placed.outside(places, loans)
            if operation == "calls":  # its arguments exist only for these calls
                given, places = [], {}
            before = {place: placed.contents(item) for place, item in places.items()}
            uses = placed.uses(places)
            try:
                with self._lending(loans) as changed, self._surrounded(surroundings) as printed:
                    value = self._perform(operation, *arguments, **keywords)
                    now = placed.uses(places)
            finally:  # what it changed before it raised an exception stays changed
                for place, item in places.items():
                    if placed.differ(before[place], contents := placed.contents(item)):
                        changes.append((place, contents))
                    known[id(item)] = again(asked, place)
            same, loan = None, 0
            if type(value) not in _SINGLE:
                same = next((i for i, item in enumerate(given) if item is value), None)
            if type(value) in MUTABLE and same is None:
                loan = self._lend(value)
            returned = value if same is None else None
            kept = [
                (place, lent)
                for place, item in places.items()
                if type(item) in MUTABLE
                and now[place] > uses[place] + (item is value)
                # The parts of a list that it returns are in that, and maybe nowhere else.
                and (type(value) not in _PARTED or any(item is g for g in given))
                and (lent := self._lend(item))
            ]
            effects = changes or None, printed or None, changed or None
            self._send(b"A", (returned, same, loan, kept or None, *effects), known)
        except GoneError:
            raise
        except BaseException as error:
            effects = changes or None, printed or None, changed or None
            self._send(b"X", (*self._error_parts(error), *effects), known)

    def _send(self, kind: bytes, message: Any, known: dict[int, bytes] | None = None) -> None:
        places = placed.Places(known)
        with self._lock:
            if self._boxes is not None:
                message = (self._conversation(), *message)
            payload = self._encode(message, sent=True, places=places)
            if kind == b"Q":
                self._questions += 1
                self._open[self._questions] = places
            try:
                self._connection.sendall(frame(kind, payload))
            except (OSError, ValueError):
                self.gone = True
                raise GoneError from None

    # The stream

    def _read_message(self) -> tuple[bytes, Any]:
        try:
            start = self._read(5)
            size = int.from_bytes(start[1:], "little")
            if size > 2 * LIMIT:
                raise EOFError
            payload = self._read(size)
            places: dict[int, Any] = {}
            find = {"other": self.meant, "asked": lambda number, place: self._open[number][place]}
            message = decode(payload, places=places, **find, **UNBOUNDED)  # type: ignore[arg-type]
            if start[:1] == b"Q" and type(message) is tuple:
                self._asked += 1
                message = (*message, (self._asked, places))
            return start[:1], message
        except (OSError, EOFError, ValueError):  # the stream has ended, or is no longer valid
            self.gone = True
            raise GoneError from None

    def _read(self, size: int) -> bytes:
        """Read `size` bytes of the stream. Raises EOFError."""
        # Not `socket.makefile`, which would take 0.2 ms of each task.
        while (missing := size - len(self._received)) > 0:
            chunk = self._connection.recv(max(min(missing, _CHUNKS[1]), _CHUNKS[0]))
            if not chunk:
                raise EOFError
            self._received += chunk
        data = bytes(self._received[:size])
        del self._received[:size]
        return data
