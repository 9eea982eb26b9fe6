"""Attributes by which an object of the candidate's would decide a test about itself.

- *Methods that compare* (`COMPARING`): text, numbers and collections have such methods, so an
  object in their place may say yes to everything. They are called on no object that a function
  returned, and get no data of the tests on one that an object of a class under test returned. A
  class has them where the tests know it by its name. What others (`TELLING`) tell about data of
  the tests by a number says nothing: text has `find`, and so has a tree. Nor does a number that is
  made of their result, as in `f().eq([1, 2]).sum()`.
- *The record of a mock* (`RECORDS`): `called`, `assert_called_with`. Tests that put a mock into an
  object of the candidate's may read it there again, but the candidate may have replaced it. What it
  gave in that place has no record. Elsewhere an object may count its own calls, if the tests made
  it, of a class or of a function (`counted(send)`); of any other it is not known whether a right
  candidate has the mock there, so there is no verdict. Only an object of a class may assert them.

A class under test may come in the place of something else, too: of a function that `f("a")` should
return, or of `f` itself. Then it is not known which of its objects the tests made in its name, so
where one decides a test (`kinds.decides`), tests that pass say nothing.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Sequence
from typing import Any

from gatekeeper.sandbox.inside.forwarders import refused
from gatekeeper.sandbox.inside.kinds import (
    GIVEN,
    RemoteClass,
    Trust,
    decides,
    given,
    inner,
    is_stand_in,
    kind_of,
    theirs,
)
from gatekeeper.sandbox.inside.offered import is_mock
from gatekeeper.sandbox.inside.operations import NAMED
from gatekeeper.sandbox.inside.pandas_values import is_frame
from gatekeeper.sandbox.inside.references import original
from gatekeeper.sandbox.inside.wire import MalformedError
from gatekeeper.sandbox.inside.within import parts

__all__ = ["Decisions"]

COMPARING = frozenset(
    """
    startswith endswith isalnum isalpha isascii isdecimal isdigit isidentifier islower
    isnumeric isprintable isspace istitle isupper isdisjoint issubset issuperset
    is_integer is_nan is_finite is_infinite is_zero is_signed is_normal is_subnormal
    is_qnan is_snan is_canonical equals all any allclose array_equal difference
    symmetric_difference intersection union count index rindex
    """.split()  # noqa: SIM905
)
_MASKS = frozenset("eq ne lt le gt ge isin between compare sub rsub".split())  # noqa: SIM905
TELLING = frozenset({"find", "rfind", "compare_total", "same_quantum", *_MASKS})
RECORDS = frozenset(
    """
    called call_count call_args call_args_list mock_calls method_calls await_count await_args
    await_args_list assert_called assert_called_once assert_called_with assert_called_once_with
    assert_any_call assert_has_calls assert_not_called assert_awaited assert_awaited_once
    assert_awaited_with assert_awaited_once_with assert_any_await assert_has_awaits
    assert_not_awaited
    """.split()  # noqa: SIM905
)
_USES_MOCKS = re.compile(r"\bunittest\b.*\bmock\b|\bmocker\b|\bimport mock\b", re.DOTALL)
_TYPES = frozenset(NAMED.values())
_NUMBERS = "biufcmM"  # kinds of labels that are no names
_NUMERIC = frozenset({bool, int, float})
_TOLD = "{}: the candidate's object tells about data of the tests"
_NO_RECORD = "{}: the candidate's object is in the place of a mock, whose calls it does not know"


class Decisions:
    """Which attributes of the candidate's objects the tests may read.

    Parameters
    ----------
    programs
        The tests.

    Attributes
    ----------
    unsure
        Why tests that pass say nothing; empty if they do.
    gave_type
        Whether the tests got a type of Python itself, such as `bool`: what they hand to it, the
        candidate does not get.
    """

    def __init__(self, programs: Sequence[str]) -> None:
        self._mocks = any(map(_USES_MOCKS.search, programs))
        self._counting: set[int] = set()  # numbers of objects that may count their own calls
        self._places: dict[str, set[int]] = {}  # attributes that are mocks, of which objects
        self._instead: set[int] = set()  # what the candidate gave for these
        self._masks: set[int] = set()  # objects that were made with data of the tests
        self._given: dict[int, type] = {}  # classes that came not only by their names, by id
        self.unsure, self.gave_type = "", False

    def asked(self, operation: str, arguments: Sequence[Any]) -> None:
        """The tests ask the candidate for an operation; they may put a mock somewhere."""
        if self._mocks and operation in ("set", "delete"):
            target, name, *value = arguments
            owners = self._places.setdefault(name, set())
            if any(map(_is_mock, parts(value))):
                owners.add(_number(target))
            else:
                owners.discard(_number(target))

    def doubt(self, why: str) -> None:
        """Tests that pass say nothing."""
        self.unsure = self.unsure or why

    def give(self, items: Iterable[Any]) -> None:
        """The tests get items where they may expect anything, such as a function."""
        for item in items:
            if issubclass(type(item), type):
                self._given[id(item)] = item
                self.gave_type = self.gave_type or (type(item) is type and item in _TYPES)

    def is_sure(self, kind: type) -> bool:
        """Whether the tests got a class only by its name, so that they mean it."""
        return id(kind) not in self._given

    def found(
        self, operation: str, arguments: Sequence[Any], found: Any, items: Sequence[Any]
    ) -> Any:
        """What the tests see of the answer; `items`: it, and what is within it.

        Raises
        ------
        AttributeError, AssertionError
            The object would decide the test.
        """
        if self._masks and _number(arguments[0]) in self._masks:
            self._masks.update(filter(None, map(_number, items)))
            self._tells(operation, found)
        if operation == "get":
            owner, name = arguments
            if self._mocks:
                self._record(owner, name, items)
            if not _means_class(owner, name):
                self.give(items)
            return self._compared(owner, name, found) if name in COMPARING | TELLING else found
        makes = operation == "call" and (
            isinstance(arguments[0], type) or any(map(callable, arguments[1:]))
        )
        itself = operation == "getitem" and found is arguments[0]  # `Stack[int]`
        if operation != "signature" and not itself:
            self.give(items)
        for item in items if self._mocks else ():
            if is_stand_in(item):
                self._notice(item, counts=makes)
        return found

    def made(self, value: Any) -> None:
        """A value has come whose attributes have names that the candidate chose.

        Raises MalformedError if one of them compares: data does not.
        """
        if isinstance(fields := getattr(type(value), "_fields", None), tuple):
            known: Any = dict(zip(fields, value, strict=True))
        elif is_frame(type(value)) and value.axes[-1].dtype.kind not in _NUMBERS:
            known = value if value.ndim == 1 else dict.fromkeys(value.columns)
        else:
            return
        if any(name in known and callable(known[name]) for name in COMPARING):
            raise MalformedError("data with methods")
        for name in RECORDS if self._mocks else ():
            if name in known:
                self.doubt(_NO_RECORD.format(name))

    def hides(self, name: object, value: object) -> bool:
        """Whether an exception must not have that attribute here, beside its original."""
        return (name in COMPARING and is_stand_in(value)) or (self._mocks and name in RECORDS)

    def _compared(self, owner: Any, name: str, found: Any) -> Any:
        """A method that compares, if the tests may use it."""
        if not is_stand_in(found):
            return found
        if issubclass(type(owner), type):
            if name in COMPARING and not (isinstance(owner, RemoteClass) and kind_of(owner).named):
                return functools.partial(_without_data, name, found, trusted=False)
            if not self.is_sure(owner):
                self.doubt(GIVEN.format(owner.__name__))
            return found
        known = inner(owner)
        if known.trust == Trust.MODULE or decides(owner):
            return found
        if name in TELLING:
            return functools.partial(self._told, name, given(owner, found))
        trusted = known.trust == Trust.INSTANCE
        return functools.partial(_without_data, name, given(owner, found), trusted=trusted)

    def _told(self, name: str, method: Any, /, *arguments: Any, **keywords: Any) -> Any:
        """Call a method that may tell about data which it gets."""
        found, peer = method(*arguments, **keywords), inner(method).peer
        if not all(theirs(peer, argument) for argument in arguments):
            self._tells(name, found)
            if name in _MASKS and (number := _number(found)):
                self._masks.add(number)
        return found

    def _tells(self, name: str, found: Any) -> None:
        if type(found) in _NUMERIC:
            self.doubt(_TOLD.format(name))

    def _record(self, owner: Any, name: str, items: Sequence[Any]) -> None:
        """Notice where an object stands for a mock, and whether its record is read."""
        number = _number(owner)
        instead = number in self._instead
        counts = number in self._counting
        if name in RECORDS:
            if instead or (name.startswith("assert") and not (counts and inner(owner).made)):
                raise AssertionError(_NO_RECORD.format(name))
            if not counts:
                self.doubt(_NO_RECORD.format(name))
        instead = instead or bool(self._places.get(name))
        of_module = is_stand_in(owner) and inner(owner).trust == Trust.MODULE
        for item in items:
            if _number(item):
                self._notice(item, counts=of_module and not instead, instead=instead)

    def _notice(self, item: Any, *, counts: bool, instead: bool = False) -> None:
        number = _number(item)
        if instead:
            self._instead.add(number)
        if counts and number not in self._instead:
            self._counting.add(number)
        else:
            self._counting.discard(number)


def _number(item: Any) -> int:
    """A number of what stands for an object of the candidate's, or an exception; 0: nothing does.

    Of a class of exceptions, which is none of the peer's.
    """
    if issubclass(type(item), type) and issubclass(item, BaseException):
        return -id(item)
    item = original(item) if issubclass(type(item), BaseException) else item
    return inner(item).number if is_stand_in(item) else 0


def _means_class(owner: Any, name: str) -> bool:
    """Whether the tests that read an attribute mean a class, or nothing of its kind.

    What they mean by a name of the module says `names.py`.
    """
    of_module = is_stand_in(owner) and inner(owner).trust == Trust.MODULE
    return of_module or name[:1].isupper() or name == "__annotations__"


def _is_mock(item: Any) -> bool:
    """Whether an item of the tests is a mock, or a function that one imitates."""
    if is_stand_in(item):
        return False
    imitated = getattr(item, "__dict__", {}).get("mock")
    return any(is_mock(kind) for one in (item, imitated) for kind in type(one).__mro__)


def _without_data(
    name: str, method: Any, /, *arguments: Any, trusted: bool, **keywords: Any
) -> Any:
    """Call a method that gets no data of the tests: only functions, or the candidate's objects.

    Nor one of an object that is not trusted.
    """
    peer = inner(method).peer
    data = (a for a in (*arguments, *keywords.values()) if not (theirs(peer, a) or callable(a)))
    if not trusted or any(True for _ in data):
        raise refused(peer, name, "call", method, *arguments, **keywords)
    return method(*arguments, **keywords)
