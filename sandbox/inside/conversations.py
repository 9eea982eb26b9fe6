"""Which thread gets a message of the other process: each has a conversation of its own there.

At first all threads of a side take turns. After `converse` each has a conversation with a thread of
the other side, so that one may wait for another. A thread reads the stream for all, and gives each
message to the thread that it is for, or to a new one. Where no thread is left, one that has nothing
to do answers, and the one that reads only if nothing else moves.
"""

from __future__ import annotations

import _queue
import _thread
import contextlib
import socket
from select import select
from typing import Any

from gatekeeper.sandbox.inside.places import Places
from gatekeeper.sandbox.inside.references import References

__all__ = ["Conversations", "GoneError"]

_THREADS = 24  # so many get a conversation each, before one may have several
_PATIENCE = 0.02  # seconds in which nothing comes, before the thread that reads has to answer
_ALSO = object()  # in a box: the number of one more conversation


class GoneError(BaseException):
    """The other process ended. Not an Exception, so that no test takes it for the candidate's."""


class Conversations(References):
    """The threads of one end of a stream.

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
        self._open: dict[int, Places] = {}  # places of our open questions, by their numbers
        self.gone = False

    def _read_message(self) -> tuple[bytes, Any]:
        """The next message of the stream. Raises GoneError."""
        raise NotImplementedError

    def _answer(self, question: Any) -> None:
        """Answer a question, in this thread."""
        raise NotImplementedError

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
