"""Whether an object shows the same each time that the tests look at it: its length and items.

Where `f` should return a list, an object that shows other items to each check satisfies them all:
`all(map(is_prime, f(9)))` sees one iteration, `sum(f(9)) == 17` another, `f(9)[0] < f(9)[1]` none.
So what was seen of an object is kept until it may have changed: until the candidate does more than
show objects. A call of a function of the module, which does not get it, may change it, too, but
seldom does: see below.

Objects that the tests made of a class under test may show what they like. Of any other, another
number of items fails the tests. Other items may be right (`shuffled(cards)`), and so may both be
after such a call, or where an object of a class under test returned the object: then tests that
pass say nothing.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from types import FunctionType
from typing import Any

from gatekeeper.sandbox.inside.codec import encode
from gatekeeper.sandbox.inside.kinds import (
    Trust,
    ask,
    has,
    inner,
    is_stand_in,
    kind_of,
    refusal,
)
from gatekeeper.sandbox.inside.library_values import WRITERS
from gatekeeper.sandbox.inside.operations import CONVERSIONS, UNARY
from gatekeeper.sandbox.inside.wire import Parts, TooLargeError, head
from gatekeeper.sandbox.inside.within import PLAIN, inside, parts

__all__ = ["DIFFERENT", "OPINIONS", "VIEWS", "Looks"]

# Answers of an object about itself, which alone are no evidence (`JudgePeer.evidence`).
OPINIONS = frozenset(
    """
    eq ne lt le gt ge contains bool dir task step cancel turn end
    """.split()  # noqa: SIM905
)
_CONVERTED = {*CONVERSIONS, *UNARY} - {"len"}
_READS = OPINIONS.union(_CONVERTED, {"len", "iter", "reversed", "getitem", "get", "plain", "view"})
VIEWS = frozenset({"items", "keys", "values", "copy"})  # methods that show all items
DIFFERENT = "it has {} items and yields {}"
_CHANGES = "{}: it shows other items each time, and the tests may have asked for a list"
_KEYS = frozenset({int, str})
_BOUNDS = frozenset({int, type(None)})
_LISTS = frozenset({list, tuple, *(type(getattr({}, name)()) for name in VIEWS - {"copy"})})
_BACKWARDS = slice(None, None, -1)


def _lasts(item: Any) -> bool:
    """Whether an iteration must leave an object as it is: one that a function gave in any way."""
    trust = inner(item).trust
    tested = trust != Trust.RETURNED if trust is not None else kind_of(type(item)).tested
    return not (tested or has(type(item), "__next__"))


class _Seen:
    """What an object has shown.

    Attributes
    ----------
    items, most, ended
        What an iteration has yielded, by its place; the most that one has; whether one has ended.
    at
        What was at an index or a key.
    sliced
        Whether it was asked for a slice, so that its keys are indexes.
    whole
        The object that it is a slice of, and which.
    views
        Its value as a plain list or dict, and what methods and conversions showed, by their names.
    calls
        How many functions of the module had been called before.
    """

    __slots__ = ("at", "calls", "ended", "items", "most", "sliced", "views", "whole")

    def __init__(self, calls: int) -> None:
        self.calls = calls
        self.items: dict[int, Any] = {}
        self.at: dict[Any, Any] = {}
        self.views: dict[Any, Any] = {}
        self.whole: tuple[Any, slice] | None = None
        self.most, self.ended, self.sliced = 0, False, False

    def places(self, key: slice, count: int) -> range:
        """The indexes of the `count` items of a slice, as far as they are known."""
        if self.ended:
            return range(self.most)[key]
        start, step = key.start or 0, key.step or 1
        return range(start, start + count * step, step) if min(start, step) >= 0 else range(0)

    def differs_at(self, key: Any) -> bool:
        """Whether an iteration has shown another item than the index."""
        place = key + self.most if type(key) is int and key < 0 and self.ended else key
        return place in self.items and not _same(self.items[place], self.at[key])

    def is_list(self) -> bool:
        """Whether its keys are indexes: an iteration of a mapping yields them."""
        if self.sliced:
            return True
        numbers = {item for item in self.items.values() if type(item) is int}
        return self.ended and not all(key in numbers for key in self.at)


class Looks:
    """What the candidate's objects have shown.

    Parameters
    ----------
    doubt
        Is called with a reason why tests that pass say nothing.

    Attributes
    ----------
    waits
        Whether objects may change meanwhile.
    """

    def __init__(self, doubt: Callable[[str], None]) -> None:
        self._doubt, self.waits = doubt, False
        # Lengths, by the numbers of objects; of those that an iteration leaves as they are.
        self._lengths: dict[int, int] = {}
        self._lasting_lengths: dict[int, int] = {}
        self._seen: dict[int, _Seen] = {}
        # Attributes, and how they were written, by the numbers of objects and their names.
        self._attributes: dict[tuple[int, str], tuple[Any, Any]] = {}
        self._calls = 0  # of functions of the module

    def asked(self, operation: str, arguments: Sequence[Any]) -> None:
        """The candidate is asked for an operation, by which objects may change."""
        if operation in _READS:
            return
        self._attributes.clear()
        self._lengths.clear()
        if operation == "next":
            return
        self._lasting_lengths.clear()
        if operation in ("call", "calls") and not any(map(_may_hold, arguments)):
            self._calls += 1
        else:
            self._seen.clear()

    def forget(self) -> None:
        """The tests have changed a list, or the like, that objects may have."""
        self._attributes.clear()
        self._seen.clear()
        self._lengths.clear()
        self._lasting_lengths.clear()

    def length(self, item: Any) -> int:
        """The length of an object: the same until it may have changed.

        An iteration changes it, but not one that a function returned.
        """
        number = inner(item).number
        known = self._lasting_lengths if _lasts(item) else self._lengths
        if self.waits or number not in known:
            known[number] = int(ask(item, "len"))
        return known[number]

    def keeps(self, item: Any) -> bool:
        """Whether an object must show the same each time."""
        known = inner(item)
        free = (known.own and known.sure) or has(type(item), "__next__")
        return not (free or self.waits)

    def value(self, item: Any) -> Any:
        """The value of an object that extends `list`, `dict` or `set`, as a plain one."""
        found = ask(item, "plain")
        if self.keeps(item):
            self._compare(item, self._of(item).views, "plain", found)
            self._indexed(item, found)
        return found

    def _indexed(self, item: Any, found: Any) -> None:
        """An object has shown its value, so what it has at each index or key."""
        seen, is_list = self._of(item), type(found) is list
        seen.sliced |= is_list
        for key, part in enumerate(found) if is_list else getattr(found, "items", tuple)():
            if type(key) in _KEYS and type(part) in PLAIN:
                self._compare(item, seen.at, key, part)
                if is_list and seen.differs_at(key):
                    self._differs(item)

    def answered(self, operation: str, arguments: Sequence[Any], found: Any) -> None:
        """An object has shown its text, its number, its truth or an attribute."""
        item, *more = arguments
        if operation == "get" and not is_stand_in(found):
            self._attribute(item, more[0], found)
        elif operation in _CONVERTED and is_stand_in(item) and self.keeps(item):
            seen = self._of(item)
            self._compare(item, seen.views, (operation, *more), found)
            if operation == "bool" and found and seen.ended and not seen.most:
                self._differs(item)

    def _attribute(self, item: Any, name: str, found: Any) -> None:
        """An attribute is data: it stays until anything is called, unless the tests change it."""
        if issubclass(type(item), type) or inner(item).trust == Trust.MODULE:
            return
        if self.keeps(item):
            place, written = (inner(item).number, name), _written(found)
            before, shown = self._attributes.get(place, (found, written))
            self._attributes[place] = found, written
            if before is not found and shown != written:
                self._differs(item)

    def steps(self, steps: Any, item: Any) -> Any:
        """The steps of an iteration, which must be those of another one."""
        return self._steps(steps, item) if self.keeps(item) else steps

    def _steps(self, steps: Iterator[Any], item: Any) -> Iterator[Any]:
        count = 0
        for step in steps:
            seen = self._of(item)
            if seen.ended and count >= seen.most:
                self._counted(item, seen, count + 1)
            self._compare(item, seen.items, count, step)
            if seen.sliced and count in seen.at and seen.differs_at(count):
                self._differs(item)
            if seen.whole is not None:
                self._slice(*seen.whole, count, step)
            count += 1
            seen.most = max(seen.most, count)
            yield step
        seen = self._of(item)
        if seen.most > count:
            self._counted(item, seen, count)
        seen.most, seen.ended = count, True  # the objects may have changed meanwhile
        if not count and seen.views.get(("bool",)):
            self._differs(item)
        if seen.at and seen.is_list() and any(map(seen.differs_at, seen.at)):
            self._differs(item)

    def backwards(self, steps: Any, item: Any) -> Any:
        """The steps of an iteration from the end to the start."""
        return self._backwards(steps, item) if self.keeps(item) else steps

    def _backwards(self, steps: Iterator[Any], item: Any) -> Iterator[Any]:
        for count, step in enumerate(steps):
            seen = self._of(item)
            places = seen.places(_BACKWARDS, count)
            if count < len(places):
                self._compare(item, seen.items, places[count], step)
            yield step

    def item(self, item: Any, key: Any, found: Any) -> None:
        """An object has shown what it has at an index or a key, or a slice."""
        if not self.keeps(item):
            return
        seen = self._of(item)
        if type(key) is slice and _BOUNDS.issuperset(map(type, (key.start, key.stop, key.step))):
            seen.sliced = True
            if is_stand_in(found):
                self._of(found).whole = item, key
            for count, part in enumerate(found if type(found) in _LISTS else ()):
                self._slice(item, key, count, part)
        elif type(key) in _KEYS:
            self._compare(item, seen.at, key, found)
            if seen.is_list() and seen.differs_at(key):
                self._differs(item)

    def view(self, item: Any, name: str, found: Any) -> None:
        """An object has shown all that it has, by a method of that name."""
        if not self.keeps(item):
            return
        seen = self._of(item)
        self._compare(item, seen.views, name, found)
        if type(found) not in _LISTS:
            return
        for place, part in enumerate(found):
            key = seen.items.get(place)
            if name == "keys":
                self._compare(item, seen.items, place, part)
            elif name == "values" and type(key) in _KEYS:
                self._compare(item, seen.at, key, part)
            elif (
                name == "items"
                and type(part) is tuple
                and len(part) == 2
                and type(part[0]) in _KEYS
            ):
                self._compare(item, seen.at, *part)

    def _slice(self, whole: Any, key: slice, count: int, part: Any) -> None:
        """What is at a place of a slice."""
        seen = self._of(whole)
        places = seen.places(key, count + 1)
        if count < len(places):
            self._compare(whole, seen.at, place := places[count], part)
            if seen.differs_at(place):
                self._differs(whole)

    def _of(self, item: Any) -> _Seen:
        number = inner(item).number
        if (seen := self._seen.get(number)) is None:
            seen = self._seen[number] = _Seen(self._calls)
        return seen

    def _compare(self, item: Any, known: dict[Any, Any], key: Any, found: Any) -> None:
        if not _same(known.setdefault(key, found), found):
            self._differs(item)

    def _counted(self, item: Any, seen: _Seen, count: int) -> None:
        if _lasts(item) and seen.calls == self._calls:
            raise refusal(inner(item).peer, DIFFERENT.format(seen.most, count))
        self._differs(item)

    def _differs(self, item: Any) -> None:
        self._doubt(_CHANGES.format(type(item).__name__))


def _may_hold(item: Any) -> bool:
    """Whether a call of an item, or with it, may change objects beside those of the module."""
    return not all(map(_holds_nothing, parts(item)))


def _holds_nothing(part: Any) -> bool:
    kind = type(part)
    if is_stand_in(part) and not issubclass(kind, type):
        return inner(part).trust is None and kind_of(kind).shown is FunctionType
    return issubclass(kind, type) or kind in WRITERS or inside(part) is not None


def _same(one: Any, other: Any) -> bool:
    """Whether two items are alike, as far as this process knows: new objects of a class are."""
    if one is other:
        return True
    if type(one) in PLAIN and type(other) in PLAIN:
        return type(one) is type(other) and (one == other or (one != one and other != other))
    return _written(one) == _written(other)


def _written(item: Any) -> bytes | None:
    """An item as bytes; None if that is too large."""
    with contextlib.suppress(TooLargeError):
        return encode(item, other=_of_class)
    return None


def _of_class(item: Any) -> Parts:
    name = type(item).__qualname__.encode("utf-8", "replace")
    return head(b"o", len(name)) + name, ()
