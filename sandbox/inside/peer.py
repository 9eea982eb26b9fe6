"""One end of the connection between the process of the tests and that of the candidate.

Plain data travels by value (`codec.py`); everything else stays where it is and is referred to by a
number. Frames:

    Q  a question: (operation, arguments, keyword arguments, surroundings, loans)
    A  its answer: (value, number of the argument that the value is, changes, printed, loans)
    X  its answer: an exception; (classes, arguments, attributes, its number, its text, changes,
       printed, loans)

None stands for an absent field, except in the arguments.

While a peer waits for an answer it answers questions: callbacks. What is mutable is shared:
`loans` are the values of those that were changed, and the numbers of those that have ended
(`loans.py`). Where that would take too long, a list, dict, set or array of the arguments has only a
place (`places.py`): the answer names it by that, and has the new contents of those that were
changed. Both sides number the questions in their order. `surroundings` are changes of the tests to
their process that a candidate would see in one process (`surroundings.py`); `printed` is the text
that the candidate wrote to streams that the tests replaced. A question of the candidate has what it
has written so far in the place of surroundings.

After `converse` a frame begins with the number of its conversation (`conversations.py`).

Every process is forked with this loaded, so it imports no module that must be reset after a fork:
threading, random, asyncio.
"""

from __future__ import annotations

import contextlib
import socket
import sys
from collections.abc import Callable, Iterator
from typing import Any

from gatekeeper.sandbox.inside import places as placed
from gatekeeper.sandbox.inside.codec import again
from gatekeeper.sandbox.inside.conversations import Conversations, GoneError
from gatekeeper.sandbox.inside.decoding import decode
from gatekeeper.sandbox.inside.loans import Loans
from gatekeeper.sandbox.inside.operations import OPERATIONS
from gatekeeper.sandbox.inside.references import LIMIT
from gatekeeper.sandbox.inside.wire import MalformedError, frame

__all__ = ["Peer"]

_CHUNKS = 1 << 12, 1 << 20  # bytes to read at a time: least, most
_NOTHING: contextlib.nullcontext[list[Any]] = contextlib.nullcontext([])
_ENDS = StopIteration, StopAsyncIteration
_FRAMES, _DEEPEST = 14, 8_000  # of a question within another; the limit up to which they are added
_SINGLE = frozenset({type(None), bool})  # of whose values there is only one


class Peer(Conversations):
    """One end of a stream: asks and answers.

    Parameters
    ----------
    connection
        A stream socket; both ends run the same version of this code.

    Attributes
    ----------
    expected
        Text that names the ends of iterations which any operation may raise; None: all.
    heard
        Is called with each text that the other side sends, and each value of the standard library
        or of a package; None: nothing is.
    changed
        Is called when this side has changed what both have; None: nothing is.
    """

    expected: str | None = None
    heard: Callable[[Any], None] | None = None
    changed: Callable[[], None] | None = None

    def __init__(self, connection: socket.socket) -> None:
        super().__init__(connection)
        self._asked = self._questions = 0  # how many questions were received, and sent
        self._loans = Loans(self.PARITY)

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

    def got(self, contents: Any) -> None:
        """The other side has changed what both have, so that it has these contents."""

    def lends(self, item: object) -> bool:
        """Whether both sides have an item, and may change it."""
        return id(item) in self._loans.numbers

    @property
    def lends_any(self) -> bool:
        """Whether there is any such item."""
        return bool(self._loans.numbers)

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
            self._loans.lend(*arguments, *keywords.values())
            around = self._surroundings()
            self._send(b"Q", (operation, arguments, keywords or None, around))
            return self._questions

    def finish(self, number: int, operation: str, /, *arguments: Any, **keywords: Any) -> Any:
        """The second half of `ask`, for the same question; no other may be asked in between."""
        while True:
            kind, payload = self._receive()
            if kind == b"Q":
                self._answer(payload)
                continue
            *answer, changes, printed = payload
            given, places = [*arguments, *keywords.values()], self._open.pop(number)
            for place, contents in changes or ():
                self.got(contents)
                places.refill(place, contents)
            if printed:
                self._repeat(printed)
            if kind == b"A":
                value, same = answer
                return value if same is None else given[same]
            raise self.received(operation, self._error(*answer))

    def received(self, operation: str, error: BaseException) -> BaseException:
        """The exception to raise here for one of the other side."""
        # These would end a loop of the tests as if there were no more items to check.
        ends = next((kind for kind in _ENDS if isinstance(error, kind)), None)
        if ends is None or operation in ("next", "send", "throw", "anext"):
            return error
        if self.expected is None or ends.__name__ in self.expected:
            return error
        raised = AssertionError(f"the candidate raised {error!r}")
        raised.__cause__ = error
        return raised

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
        known: dict[int, bytes] = {}
        try:
            operation, arguments, keywords, surroundings, (asked, places) = question
            keywords = keywords or {}
            given = [*arguments, *keywords.values()]
            if operation == "calls":  # its arguments exist only for these calls
                given, places = [], placed.Places()
            before = {place: placed.contents(item) for place, item in places.items()}
            try:
                with self._surrounded(surroundings) as printed, self._deeper():
                    value = self._perform(operation, *arguments, **keywords)
            finally:  # what it changed before it raised an exception stays changed
                for place, item in places.items():
                    if id(item) not in self._loans.numbers:
                        if placed.differ(before[place], placed.contents(item)):
                            changes.append((place, item.copy()))
                        known[id(item)] = again(asked, place)
            same = None
            if type(value) not in _SINGLE:
                same = next((i for i, item in enumerate(given) if item is value), None)
            returned = value if same is None else None
            self._loans.lend(returned)
            self._send(b"A", (returned, same, changes or None, [*printed] or None), known)
        except GoneError:
            raise
        except BaseException as error:
            parts = self._error_parts(error)
            self._send(b"X", (*parts, changes or None, [*printed] or None), known)

    @contextlib.contextmanager
    def _deeper(self) -> Iterator[None]:
        """A context for an operation: our own calls around it do not count as its recursion."""
        before = sys.getrecursionlimit()
        deeper = before + _FRAMES if self._open else before
        if before < deeper < _DEEPEST:
            sys.setrecursionlimit(deeper)
        try:
            yield
        finally:
            if sys.getrecursionlimit() == deeper != before:  # the program may have set its own
                sys.setrecursionlimit(before)

    def _error_parts(self, error: BaseException) -> Any:
        classes, arguments, state, *more = super()._error_parts(error)
        self._loans.lend(arguments, *state.values())
        return (classes, arguments, state, *more)

    def _send(self, kind: bytes, message: Any, known: dict[int, bytes] | None = None) -> None:
        with self._lock:
            sent = self._loans.changes()
            if sent and sent.changed and self.changed is not None:
                self.changed()
            loans = sent and (tuple(sent.changed.values()), tuple(sent.ended))
            places = placed.Places(known, self._loans.numbers, sent.changed if sent else ())
            number = () if self._boxes is None else (self._conversation(),)
            try:
                message = (*number, *message, loans)
                payload = self._encode(message, sent=True, places=places)
            except BaseException:
                if sent:
                    self._loans.not_sent(sent)
                raise
            if sent:
                self._loans.sent(sent)
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
            places = placed.Places()
            message = decode(
                payload,
                other=self.meant,
                asked=lambda number, place: self._open[number][place],
                loans=self._loans,
                places=places,
                heard=self.heard,
                limited=False,
            )
            if type(message) is not tuple or not message:
                raise MalformedError
            *message, loans = message
            if loans:
                self.got(loans[0])
                self._loans.end(loans[1])
            if start[:1] == b"Q":
                self._asked += 1
                message.append((self._asked, places))
            return start[:1], message
        except (OSError, EOFError, ValueError, LookupError, TypeError):  # ended, or not valid
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
