"""Mutable values that both sides have: what one side changes, changes on the other, too.

A list, dict, set or array that a question, its answer or an exception contains becomes a loan, and
so does all that is in it. From then on a message names its number wherever it contains it (`m` of
`codec.py`), and each message has those that were changed since the last one. A loan ends when one
of the sides has no other reference to it. A dict of which only views were sent is changed by its
own side alone: no view can change it.

To compare and to send them takes time: after `WORK`, only small ones remain loans. Of others, only
what the candidate changes in an argument is sent, with the answer (`peer.py`).
"""

from __future__ import annotations

import _thread
import sys
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from gatekeeper.sandbox.inside.pandas_values import is_frame, size
from gatekeeper.sandbox.inside.places import contents, differ, held, is_placed, is_view, refill

__all__ = ["Loans", "Sent"]

TOTAL = 1 << 22  # most bytes, about, of all loans at a time
TOTAL_LATER = 1 << 12  # likewise, after much work
WORK = 1 << 27  # bytes that are compared, which takes about a second
_SENDING = 64  # the work to send a byte
_EACH = 128  # the bytes that take as much work as a loan itself
_PLAIN = frozenset({int, str, float, bool, bytes, complex, type(None)})
_TEXTS = frozenset({str, bytes})


class Sent(NamedTuple):
    """What a message says of loans.

    Attributes
    ----------
    changed
        Values by their numbers.
    ended
        Numbers.
    before
        What is no longer needed: a `__del__` may ask a question, so only when this one was sent.
    """

    changed: dict[int, Any]
    ended: list[int]
    before: list[Any]


class _Loan:
    """A value, the contents that the other side knows, and those of them that have parts.

    `group` is the same for what became a loan together; `shown`: only views of it were sent.
    """

    __slots__ = ("ends", "group", "known", "parts", "shown", "size", "value")

    def __init__(self, value: Any, group: int) -> None:
        self.value, self.group = value, group
        self.ends = False  # with the next message, which still has its changes
        self.shown = False
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
        self._parity, self._next = parity, 2 + parity
        self._messages = 0
        self._ended: list[int] = []  # what the other side does not know yet
        self._total = self._work = 0  # bytes
        self._most = TOTAL

    def lend(self, *values: Any) -> None:
        """Make loans of values and what is in them, also in tuples; not of what is too large."""
        if not _PLAIN.issuperset(map(type, values)):
            with self._lock:
                for value in values:
                    self._share([value], self._next)

    def take(self, number: int, value: Any, *, changed: bool = True) -> Any:
        """The loan of that number, which has the contents of `value` in the other process.

        Raises ValueError if it cannot be.
        """
        before: list[Any] = []  # until the lock is free: a `__del__` may ask a question
        with self._lock:
            loan = self._loans.get(number)
            if loan is None:
                if not is_placed(value):
                    raise ValueError("a loan that does not change")
                ended = number % 2 == self._parity
                if not ended and self._total <= self._most and id(value) not in self.numbers:
                    self._add(number, _Loan(value, -self._messages))
                return value
            if changed and not loan.shown:
                before += loan.known, loan.parts
                refill(loan.value, value)
                self._renew(loan)
            return loan.value

    def find(self, number: int) -> Any:
        """The value of that number; None if there is none."""
        loan = self._loans.get(number)
        return None if loan is None else loan.value

    def end(self, numbers: Iterable[Any]) -> None:
        """The other side has ended these loans."""
        before: list[Any] = []
        with self._lock:
            for number in numbers:
                if type(number) is int:
                    before.append(self._remove(number))

    def changes(self) -> Sent | None:
        """What to send with a message; None if there is nothing."""
        if not self._loans and not self._ended:
            return None
        with self._lock:
            self._messages += 1
            before: list[Any] = []
            changed: set[int] = set()
            todo = [*self._loans.items()]
            for number, loan in todo:
                if loan.known is None or differ(loan.known, contents(loan.value)):
                    changed.add(number)
                    before.append((loan.known, loan.parts))
                    self._renew(loan)
                    self._work += _SENDING * loan.size
                    loan.ends |= not self._share(loan.parts, loan.group)
            used = self._used()
            self._end([n for n in self._loans if n not in used and n not in changed], before)
            values = {number: self._loans[number].value for number in changed}
            last = [number for number, loan in self._loans.items() if loan.ends]
            self._limit()
            ended, self._ended = self._ended, []
            return Sent(values, ended + last, before) if values or ended or last else None

    def sent(self, sent: Sent) -> None:
        """The message is written: the loans that it ends are none any more."""
        with self._lock:
            sent.before.extend(map(self._remove, sent.ended))

    def not_sent(self, sent: Sent) -> None:
        """Send this with the next message."""
        with self._lock:
            self._ended += [number for number in sent.ended if number not in self._loans]
            for number in sent.changed:
                if number in self._loans:
                    self._loans[number].known = None

    def _share(self, values: Iterable[Any], group: int) -> bool:
        """Make loans of values and what is in them; not if these are too large together."""
        found: dict[int, _Loan] = {}
        seen, size = set[int](), 0
        todo = [(value, False) for value in values]
        while todo:
            item, shown = todo.pop()
            known = self._loans.get(self.numbers.get(id(item), -1)) or found.get(id(item))
            if known is not None:
                known.shown &= shown
            if known is not None or id(item) in seen:
                continue
            seen.add(id(item))
            if (inside := held(item)) is not None:
                more, parts = _measured(tuple(inside))
                size += more
                todo += [(part, is_view(item)) for part in parts]
            elif is_placed(item):
                if _count(item) > self._most:
                    return False
                loan = found[id(item)] = _Loan(item, group)
                loan.shown = shown
                size += loan.size
                todo += [(part, False) for part in loan.parts]
            if size > self._most:
                return False
        for loan in found.values():
            self._add(self._next, loan)
            self._next += 2
        return True

    def _limit(self) -> None:
        """End the largest loans, so that all of them take no more than `_most`."""
        self._work += self._total
        if self._work > WORK:
            self._most = TOTAL_LATER
        if self._total > self._most:
            sizes: dict[int, int] = {}
            for loan in self._loans.values():
                sizes[loan.group] = sizes.get(loan.group, 0) + loan.size
            left = self._total
            ended = set[int]()
            for group in sorted(sizes, key=sizes.__getitem__, reverse=True):
                if left > self._most:
                    left -= sizes[group]
                    ended.add(group)
            for loan in self._loans.values():
                loan.ends |= loan.group in ended

    def _add(self, number: int, loan: _Loan) -> None:
        self._loans[number] = loan
        self.numbers[id(loan.value)] = number
        self._total += loan.size

    def _renew(self, loan: _Loan) -> None:
        self._total -= loan.size
        loan.renew()
        self._total += loan.size

    def _remove(self, number: int) -> _Loan | None:
        loan = self._loans.pop(number, None)
        if loan is not None:
            del self.numbers[id(loan.value)]
            self._total -= loan.size
        return loan

    def _end(self, numbers: Sequence[int], before: list[Any]) -> None:
        before += map(self._remove, numbers)
        self._ended += numbers

    def _used(self) -> set[int]:
        """The numbers of the loans that anything else refers to, and of what is in these."""
        loans = self._loans
        if not any(loan.parts for loan in loans.values()):
            return {n for n, loan in loans.items() if sys.getrefcount(loan.value) > _ALONE}
        own, tuples = self._references()
        used = set[int]()
        todo: list[Any] = []
        holders: list[Any] = [*loans.values(), *tuples.values()]
        for holder in holders:
            if sys.getrefcount(holder.value) > _ALONE + own.get(id(holder.value), 0):
                todo.append(holder)
        found = {id(holder) for holder in todo}
        while todo:
            holder = todo.pop()
            if (number := self.numbers.get(id(holder.value))) is not None:
                used.add(number)
            for part in holder.parts:
                number = self.numbers.get(id(part))
                inner = tuples.get(id(part)) if number is None else loans[number]
                if inner is not None and id(inner) not in found:
                    found.add(id(inner))
                    todo.append(inner)
        return used

    def _references(self) -> tuple[dict[int, int], dict[int, _Tuple]]:
        """How many references to each value we know of, by id; and the tuples in loans."""
        own: dict[int, int] = {}
        tuples: dict[int, _Tuple] = {}
        for loan in self._loans.values():
            for part in loan.parts:
                own[id(part)] = own.get(id(part), 0) + 3  # of the value, of `known`, of `parts`
                _find_tuples(part, tuples)
        for inside in tuples.values():
            for part in inside.parts:
                own[id(part)] = own.get(id(part), 0) + 2  # of the tuple, of `parts`
        return own, tuples


class _Tuple:
    """A tuple in a loan, or a view of a dict, and those of its items that have parts."""

    __slots__ = ("parts", "value")

    def __init__(self, value: Any, inside: Iterable[Any]) -> None:
        self.value, self.parts = value, _parts(inside)


def _find_tuples(item: Any, found: dict[int, _Tuple]) -> None:
    """Find an item, if it is a tuple or a view, and those in it."""
    todo = [item]
    while todo:
        part = todo.pop()
        if id(part) not in found and (inside := held(part)) is not None:
            found[id(part)] = made = _Tuple(part, inside)
            todo += made.parts


def _count(item: Any) -> int:
    """The least bytes of a value, without a look at its contents."""
    if is_frame(type(item)):
        return size(item)
    return int(item.nbytes if hasattr(item, "nbytes") else len(item))


def _measured(known: Any) -> tuple[int, list[Any]]:
    """About how many bytes some contents take, without those of its parts; and the parts."""
    if type(known) is not tuple:
        return _EACH + _count(known), []
    texts = sum(len(item) for item in known if type(item) in _TEXTS)
    return _EACH + 6 * len(known) + texts, _parts(known)


def _parts(items: Iterable[Any]) -> list[Any]:
    """Those of the items that are loans, or may have loans in them."""
    others = [item for item in items if type(item) not in _PLAIN]
    return [item for item in others if is_placed(item) or held(item) is not None]


_SOME = _Loan([], 0)
_ALONE = sys.getrefcount(_SOME.value)  # references to a value that only its loan has
