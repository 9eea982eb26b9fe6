"""Mutable values that both sides have: what one side changes, changes on the other, too.

A list, dict, set or array becomes a loan where both sides may still use it: one that the candidate
returns, and one of the arguments of a question, if something else refers to it when the question
has been answered, or if a question is asked in return. So does all that is in it. From then on a
message names its number wherever it contains it (`m` of `codec.py`), and each message has those
that were changed since the last one. A loan ends when one of the sides has no other reference to
it.
"""

from __future__ import annotations

import _thread
import sys
from collections.abc import Collection, Iterable, Iterator
from typing import Any, NamedTuple

from gatekeeper.sandbox.inside.places import contents, differ, is_placed, refill

__all__ = ["Loans", "Sent"]

LOANS = 32  # most values that a side lends at a time, not counting what is in them
LOAN_BYTES = 1 << 14  # most bytes, about, of such a value with what is in it
TOTAL = 1 << 20  # most bytes of all: whatever the other side sends
_PLAIN = frozenset({int, str, float, bool, bytes, complex, type(None)})
_TEXTS = frozenset({str, bytes})


class Sent(NamedTuple):
    """What a message says of loans."""

    changed: dict[int, Any]  # values by their numbers
    ended: list[int]


class _Loan:
    """A value, the contents that the other side knows, and those of them that have parts."""

    __slots__ = ("ends", "known", "origin", "parts", "size", "value")

    def __init__(self, value: Any, origin: int) -> None:
        self.value, self.origin = value, origin
        self.ends = False  # with the next message: it is too large
        self.renew()

    def renew(self) -> None:
        self.known = contents(self.value)
        self.size, self.parts = _measured(self.known)


class Loans:
    """The loans of one side.

    Parameters
    ----------
    parity
        0 or 1: of the numbers that this side gives, so that they are none of the other's.

    Attributes
    ----------
    numbers
        The numbers of the loans by the ids of their values.
    """

    def __init__(self, parity: int) -> None:
        # Not the connection's lock: that is held while a message is sent, and the other side may
        # read it only when this side has read one.
        self._lock: Any = _thread.RLock()
        self._loans: dict[int, _Loan] = {}
        self.numbers: dict[int, int] = {}
        self._next = 2 + parity
        self._lent: dict[int, None] = {}  # numbers of what was lent for itself, in this order
        self._ended: list[int] = []  # what the other side does not know yet
        self._total = 0  # bytes

    def lend(self, value: Any) -> None:
        """Make loans of a value and all that is in it, unless they are too large."""
        if type(value) in _PLAIN:
            return
        with self._lock:
            origin = self._next
            if self._share([value], origin) and self._next > origin:
                self._lent[origin] = None
                while len(self._lent) > LOANS or self._total > TOTAL:
                    oldest = next(iter(self._lent))
                    self._end([n for n, loan in self._loans.items() if loan.origin == oldest])
                    self._lent.pop(oldest, None)

    def take(self, number: int, value: Any, *, changed: bool = True) -> Any:
        """The loan of that number, which has the contents of `value` in the other process.

        Raises ValueError if it cannot be.
        """
        with self._lock:
            loan = self._loans.get(number)
            if loan is None:
                if not is_placed(value):
                    raise ValueError("a loan that does not change")
                fits = _count(value) <= LOAN_BYTES and self._total < TOTAL
                if fits and id(value) not in self.numbers:
                    self._add(number, _Loan(value, 0))
                return value
            if type(loan.value) is not type(value):
                raise ValueError("a loan that was something else")
            if changed:
                refill(loan.value, contents(value))
                self._renew(loan)
                if loan.size > LOAN_BYTES:
                    self._remove(number)
            return loan.value

    def find(self, number: int) -> Any:
        """The value of that number; None if there is none."""
        loan = self._loans.get(number)
        return None if loan is None else loan.value

    def end(self, numbers: Iterable[int]) -> None:
        """The other side has ended these loans."""
        with self._lock:
            for number in numbers:
                self._remove(number)

    def changes(self) -> Sent | None:
        """What to send with a message; None if there is nothing."""
        if not self._loans and not self._ended:
            return None
        with self._lock:
            self._end([number for number, loan in self._loans.items() if loan.ends])
            changed: set[int] = set()
            for number, loan in [*self._loans.items()]:
                if loan.known is None or differ(loan.known, contents(loan.value)):
                    changed.add(number)
                    self._renew(loan)
                    fits = loan.size <= LOAN_BYTES and self._share(loan.parts, loan.origin)
                    loan.ends = not fits
            used = self._used()
            self._end([n for n in self._loans if n not in used and n not in changed])
            values = {number: self._loans[number].value for number in changed}
            ended, self._ended = self._ended, []
            return Sent(values, ended) if values or ended else None

    def assume(self, number: int, known: Any) -> None:
        """The other side knows these contents of a loan (`contents`)."""
        self._loans[number].known = known

    def not_sent(self, sent: Sent) -> None:
        """Send this with the next message."""
        with self._lock:
            self._ended += sent.ended
            for number in sent.changed:
                if number in self._loans:
                    self._loans[number].known = None

    def _share(self, values: Iterable[Any], origin: int) -> bool:
        """Make loans of values and what is in them; not if these are too large together."""
        found, seen, size = [], set[int](), 0
        todo = [*values]
        while todo:
            item = todo.pop()
            if id(item) in seen or id(item) in self.numbers:
                continue
            seen.add(id(item))
            if issubclass(type(item), tuple):
                more, parts = _measured(tuple(tuple.__iter__(item)))
                size += more
                todo += parts
            elif is_placed(item):
                if _count(item) > LOAN_BYTES:
                    return False
                loan = _Loan(item, origin)
                size += loan.size
                found.append(loan)
                todo += loan.parts
            if size > LOAN_BYTES:
                return False
        for loan in found:
            self._add(self._next, loan)
            self._next += 2
        return True

    def _add(self, number: int, loan: _Loan) -> None:
        self._loans[number] = loan
        self.numbers[id(loan.value)] = number
        self._total += loan.size

    def _renew(self, loan: _Loan) -> None:
        self._total -= loan.size
        loan.renew()
        self._total += loan.size

    def _remove(self, number: int) -> bool:
        loan = self._loans.pop(number, None)
        self._lent.pop(number, None)
        if loan is not None:
            del self.numbers[id(loan.value)]
            self._total -= loan.size
        return loan is not None

    def _end(self, numbers: Iterable[int]) -> None:
        self._ended += [number for number in numbers if self._remove(number)]

    def _used(self) -> Collection[int]:
        """The numbers of the loans that anything else refers to, and of what is in these."""
        loans = self._loans
        own = dict.fromkeys(self.numbers, _ALONE)  # references that we know of, by id
        tuples = set[int]()
        if not any(loan.parts for loan in loans.values()):
            return {n for n, loan in loans.items() if sys.getrefcount(loan.value) > _ALONE}
        for loan in loans.values():
            for part in loan.parts:
                if id(part) in own:
                    own[id(part)] += 3  # of the value, of `known`, of `parts`
                for inner in _in_tuples(part, tuples):
                    own[id(inner)] = own.get(id(inner), 0) + 1
        todo = [n for n, loan in loans.items() if sys.getrefcount(loan.value) > own[id(loan.value)]]
        used = set(todo)
        while todo:
            for part in loans[todo.pop()].parts:
                for item in (part, *_in_tuples(part, set())):
                    number = self.numbers.get(id(item))
                    if number is not None and number not in used:
                        used.add(number)
                        todo.append(number)
        return used


def _in_tuples(item: Any, seen: set[int]) -> Iterator[Any]:
    """What is in a tuple, also in one that is in it; of each tuple once."""
    todo = [item]
    while todo:
        part = todo.pop()
        if issubclass(type(part), tuple) and id(part) not in seen:
            seen.add(id(part))
            inside = _parts(tuple.__iter__(part))
            yield from inside
            todo += inside


def _count(item: Any) -> int:
    """The least bytes of a value, without a look at its contents."""
    size: int = item.nbytes if hasattr(item, "nbytes") else len(item)
    return size


def _measured(known: Any) -> tuple[int, list[Any]]:
    """About how many bytes some contents take, without those of its parts; and the parts."""
    if type(known) is not tuple:
        return 16 + _count(known), []
    texts = sum(len(item) for item in known if type(item) in _TEXTS)
    return 16 + 6 * len(known) + texts, _parts(known)


def _parts(items: Iterable[Any]) -> list[Any]:
    """Those of the items that are loans, or may have loans in them."""
    others = [item for item in items if type(item) not in _PLAIN]
    return [item for item in others if issubclass(type(item), tuple) or is_placed(item)]


_SOME = _Loan([], 0)
_ALONE = sys.getrefcount(_SOME.value)  # references to a value that only its loan has
