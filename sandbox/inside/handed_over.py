"""Decides which functions of the tests that assert something the candidate got and left out.

Without a run of them the tests would pass whatever they assert. The candidate may have a reason,
such as an event that did not come: so this is no failure, there is no verdict.

- A function, a coroutine or a generator that the candidate gets itself must run.
- What is in an object of the tests (a task, a thread, a mock, an object of their classes) their own
  code may run, too: one of its functions is enough, whoever runs it.
- Each is noted when it is first sent, and looked for at the end, in the code that `Count` saw.
"""

from __future__ import annotations

import types
from collections.abc import Collection, Iterable, Iterator
from gc import get_referents
from typing import Any

from gatekeeper.sandbox.inside.asserting import FUNCTION_KINDS, Asserting, name_of
from gatekeeper.sandbox.inside.kinds import of_tests
from gatekeeper.sandbox.inside.within import parts

__all__ = ["HandedOver"]

_TASKS = frozenset({"_asyncio", "asyncio.tasks"})
# Modules of classes whose objects have what the tests give them, as iterators of Python have it.
_OPEN = _TASKS.union(
    """
    types unittest.mock collections contextlib queue _queue asyncio.queues itertools threading
    argparse
    """.split()  # noqa: SIM905
)


class _Item:
    """What the candidate got, and the runs of it that we know.

    Attributes
    ----------
    runs
        Frames that must come to an assertion; None for a run that has ended.
    codes
        Where code of the tests may run it, too: that of its functions, of which one is enough.
    """

    __slots__ = ("codes", "item", "runs")

    def __init__(self, item: Any) -> None:
        self.item = item  # so that its id stays its own
        self.runs: list[types.FrameType | None] = []
        self.codes: frozenset[types.CodeType] = frozenset()


class HandedOver:
    """What the candidate got that asserts something.

    Parameters
    ----------
    asserting
        Finds the functions that assert.
    module
        Name of the module that the tests run in.
    """

    def __init__(self, asserting: Asserting, module: str) -> None:
        self._asserting, self._module = asserting, module
        self._items: dict[int, _Item] = {}
        self._opened: dict[int, Any] = {}  # objects and classes of the tests, by id
        self._frames: set[types.FrameType | None] = set()  # of functions that it got
        self._methods: dict[int, types.CodeType] = {}  # by id: run, of objects that it got

    def __bool__(self) -> bool:
        return bool(self._items)

    def add(self, item: Any) -> None:
        """The candidate gets an object of the tests for the first time."""
        if isinstance(item, type) or not self._asserts(item):
            self._open(item)

    def _asserts(self, item: Any, *, shared: bool = False) -> bool:
        """Whether an item itself asserts something, so that it must run.

        `shared`: code of the tests may run it, too, as it is in an object of theirs.
        """
        if (frame := self._asserting.frame(item)) is not None:
            if frame not in self._frames:
                self._items.setdefault(id(item), _Item(item)).runs.append(frame)
            return True
        codes = frozenset(self._asserting.codes(item, surely=shared))
        if codes:
            known = self._items.setdefault(id(item), _Item(item))
            known.codes = codes if shared else known.codes
        return bool(codes)

    def _open(self, item: Any) -> None:
        """Find the functions in an object, or a class, which code of the tests may run, too."""
        todo = [item]
        while todo:
            part = todo.pop()
            if id(part) in self._opened:
                continue
            self._asserts(part, shared=True)
            if of_tests(part, self._module) or type(part).__module__ in _OPEN or _lists(part):
                self._opened[id(part)] = part
                todo += parts(get_referents(part))
            elif isinstance(part, types.CoroutineType) or _calls_back(part):
                self._opened[id(part)] = part
                todo += _awaited(part)

    def returned(self, items: Iterable[Any]) -> None:
        """Code of the tests gets these items from the candidate, and may run them."""
        for item in items if self._items else ():
            if (known := self._items.get(id(item))) is not None:
                known.codes = frozenset(self._asserting.codes(item, surely=True))
                known.runs += () if known.codes or known.runs else (None,)

    def ended(self, target: Any, made: Any) -> None:
        """The candidate has called an object of the tests, which returned."""
        known = self._items.get(id(target))
        if known is None and type(target) is not types.MethodType:
            return
        frame = self._asserting.frame(made)
        self._frames.add(frame)
        if known is not None:
            known.runs.append(frame)
        elif frame is None and type(target.__func__) is types.FunctionType:
            code = target.__func__.__code__
            self._methods[id(code)] = code

    def left_out(self, codes: Collection[types.CodeType]) -> Iterator[str]:
        """The names of those that were not run; `codes`: the code of what came to an assertion."""
        frames = self._asserting.frames.items()
        codes = {*codes, *self._methods.values(), *(frame.f_code for frame, came in frames if came)}
        for known in [*self._items.values()]:  # a thread of the candidate may get more
            ran = any(frame is None or self._asserting.frames[frame] for frame in known.runs)
            if not ran and _within(known.codes).isdisjoint(codes):
                yield name_of(known.item)


def _lists(item: Any) -> bool:
    """Whether an item of Python shows others: a view of a dict, or an iterator like `map`.

    A generator runs code of its own instead.
    """
    kind = type(item)
    shows = kind is types.MappingProxyType or issubclass(kind, Iterator)
    return kind.__module__ == "builtins" and shows and kind is not types.GeneratorType


def _calls_back(item: Any) -> bool:
    """Whether an item is what asyncio calls at the end of a task: `shield` holds that by it."""
    return type(item) is types.FunctionType and item.__module__ == "asyncio.tasks"


def _awaited(item: Any) -> Iterator[Any]:
    """The functions, coroutines and tasks that a coroutine or such a function holds."""
    if isinstance(item, types.FunctionType):
        found = [cell.cell_contents for cell in item.__closure__ or ()]
    else:
        found = [*item.cr_frame.f_locals.values(), item.cr_await] if item.cr_frame else []
    for part in parts(found):
        awaited = isinstance(part, types.CoroutineType) or type(part).__module__ in _TASKS
        if awaited or type(part) in FUNCTION_KINDS:
            yield part


def _within(codes: Iterable[types.CodeType]) -> set[types.CodeType]:
    """These, and the code of the functions within."""
    found = [*codes]
    for code in found:  # the list grows during the loop
        found += [part for part in code.co_consts if isinstance(part, types.CodeType)]
    return set(found)
