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

After `converse`, each thread has a conversation of its own with a thread of the other side, so
that one may wait for another. Then a frame begins with the number of its conversation.

Every process is forked with this loaded, so it imports no module that must be reset after a fork:
threading, random, asyncio.
"""

from __future__ import annotations

import _queue
import _thread
import contextlib
import socket
from select import select
from typing import Any

from gatekeeper.sandbox.inside import places as placed
from gatekeeper.sandbox.inside.codec import again
from gatekeeper.sandbox.inside.decoding import decode
from gatekeeper.sandbox.inside.operations import MUTABLE, OPERATIONS
from gatekeeper.sandbox.inside.references import LIMIT, UNBOUNDED, References
from gatekeeper.sandbox.inside.wire import frame

__all__ = ["LOANS", "GoneError", "Peer"]

_CHUNKS = 1 << 12, 1 << 20  # bytes to read at a time: least, most
_NOTHING: contextlib.nullcontext[list[Any]] = contextlib.nullcontext([])
_SINGLE = frozenset({type(None), bool})  # of whose values there is only one
_PARTED = frozenset({*MUTABLE, tuple})  # kinds of values that have parts
_THREADS = 24  # so many get a conversation each, before one may have several
_PATIENCE = 0.02  # seconds in which nothing comes, before the thread that reads has to answer
_ALSO = object()  # in a box: the number of one more conversation
LOANS = 32  # mutable values that the tests may still change


class GoneError(BaseException):
    """The other process ended. Not an Exception, so that no test takes it for the candidate's."""


class Peer(References):
    """One end of a stream: asks, answers, and keeps loans up to date.

    Parameters
    ----------
    connection
        A stream socket; both ends run the same version of this code.
    """

    PARITY = 0  # of the numbers of conversations that this side begins

    def __init__(self, connection: socket.socket) -> None:
        super().__init__()
        self._connection = connection
        self._received = bytearray()  # bytes received and not read yet
        self._turn: Any = _thread.RLock()  # threads take turns
        self._boxes: dict[int, Any] | None = None  # of messages, by conversation
        self._conversations: dict[int, int] = {}  # by the thread of this side
        self._passing: Any = _thread.RLock()  # a `__del__` may ask in between
        self._reader = self._threads = 0
        self._idle: set[int] = set()  # conversations of threads that have nothing to answer
        self._unanswered: list[int] = []  # conversations that wait for such a thread
        self._asked = self._questions = 0  # how many questions were received, and sent
        self._open: dict[int, dict[int, Any]] = {}  # places of our open questions, by their numbers
        self.gone = False

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

    # Conversations

    def converse(self) -> None:
        """From now on, give each thread a conversation of its own; the other side does the same."""
        self._turn = contextlib.nullcontext()
        self._boxes = {0: _queue.SimpleQueue()}
        self._conversations[_thread.get_ident()] = 0
        _thread.start_new_thread(self._read_all, ())

    def _conversation(self) -> int:
        """The number of this thread's conversation; odd if the candidate began it."""
        thread = _thread.get_ident()
        if (number := self._conversations.get(thread)) is None:
            number = 2 * len(self._conversations) + self.PARITY
            self._boxes[number] = _queue.SimpleQueue()  # type: ignore[index]
            self._conversations[thread] = number
        return number

    def _read_all(self) -> None:
        """Read messages, and give each to the thread that it is for."""
        self._reader = _thread.get_ident()
        boxes: Any = self._boxes
        try:
            while True:
                self._pass_on()
        except BaseException:  # a hostile message may cause any
            self.gone = True
            for box in [*boxes.values()]:
                box.put(None)

    def _pass_on(self) -> None:
        stream = [self._connection]
        while self._unanswered and not (self._received or select(stream, [], [], _PATIENCE)[0]):
            with self._passing:
                # Threads that wait for an answer will have nothing to do then, but need this one.
                waits = self._open or not self._unanswered
                number = None if waits else self._unanswered.pop(0)
            if number is not None:  # nothing moves: this one answers
                self._answer_also(number)
        kind, (number, *message) = self._read_message()
        boxes: Any = self._boxes
        with self._passing:
            known = number in boxes
            if not known:
                boxes[number] = _queue.SimpleQueue()
            boxes[number].put((kind, message))
            self._idle.discard(number)
            if known or (self._threads >= _THREADS and self._give_to_idle(number)):
                return
        try:
            _thread.start_new_thread(self._answer_in, (number,))
            self._threads += 1
        except RuntimeError:  # no thread is left
            if not self._threads:
                self._answer_also(number)
                return
            with self._passing:
                if not self._give_to_idle(number):
                    self._unanswered.append(number)

    def _give_to_idle(self, number: int) -> bool:
        """Let a thread that has nothing to do answer in a conversation, if there is one."""
        if not self._idle:
            return False
        self._boxes[self._idle.pop()].put((_ALSO, number))  # type: ignore[index]
        return True

    def _answer_in(self, number: int) -> None:
        """Answer in a conversation that the other side began, in a thread of its own."""
        boxes: Any = self._boxes
        self._conversations[_thread.get_ident()] = number
        with contextlib.suppress(GoneError):
            while True:
                with self._passing:
                    if boxes[number].empty():
                        self._idle.add(number)
                        if self._unanswered:
                            self._give_to_idle(self._unanswered.pop(0))
                kind, message = boxes[number].get() or (b"", 0)
                if kind == b"Q":
                    self._answer(message)
                elif kind is _ALSO:
                    self._answer_also(message)
                elif not kind:
                    raise GoneError

    def _answer_also(self, number: int) -> None:
        """Answer what has been asked in a conversation, in a thread that has another one."""
        boxes: Any = self._boxes
        thread = _thread.get_ident()
        own = self._conversations.get(thread)
        self._conversations[thread] = number
        asked = True
        while asked:
            kind, message = self._receive()
            if kind == b"Q":
                self._answer(message)
            with self._passing:
                asked = not boxes[number].empty()
                if not asked:
                    del boxes[number]
        if own is not None:
            self._conversations[thread] = own

    def _receive(self) -> tuple[bytes, Any]:
        if self._boxes is None:
            return self._read_message()
        with self._lock:
            box = self._boxes[self._conversation()]
        while _thread.get_ident() == self._reader and box.empty():
            self._pass_on()
        others = []  # conversations that have to wait until this one has ended
        while (found := box.get()) is not None and found[0] is _ALSO:
            others.append(found)
        for other in others:
            box.put(other)
        if found is None:
            box.put(None)  # for the next question
            raise GoneError
        kind, message = found
        return kind, message

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
