"""Coroutines of one side that the other side awaits.

Each runs as a task in an event loop of its own side. No loop waits for the other one, because a
task of one may need a task of the other: the side that awaits lets its own loop go on, and asks for
one more turn of the other loop each time.
"""

from __future__ import annotations

import _thread
import contextlib
import functools
import importlib
import itertools
import sys
import weakref
from collections.abc import Callable, Generator, Iterator
from typing import Any

from gatekeeper.sandbox.inside.operations import special

__all__ = ["AWAITED", "Driver", "Tasks", "Waiting", "as_coroutine"]

AWAITED = ("await", "anext", "aenter", "aexit")
_EAGER = 50  # turns without a pause: most tasks end after a few
_PAUSE = 0.001  # seconds


class Tasks:
    """The tasks of one side.

    Parameters
    ----------
    failed
        Is called with each error that ends a task, and what was awaited, even if the other side
        never asks for it.

    Attributes
    ----------
    operations
        What the other side may request, by name. The target is what it awaits.
    turns
        What the tests' side may request, too: see `Driver`.
    """

    def __init__(self, failed: Callable[[BaseException, Any], object] | None = None) -> None:
        self._failed = failed
        self._numbers = itertools.count()
        self._tasks: dict[int, Any] = {}
        # One for each thread, so that objects bound to it stay usable.
        self._loops: dict[int, Any] = {}
        self.turns: dict[str, Callable[..., Any]] = {"turn": self._turn, "end": self._end}
        self.operations: dict[str, Callable[..., Any]] = {
            "task": self._start,
            "step": self._step,
            "cancel": lambda _target, number: self._tasks[number].cancel(),
            **dict.fromkeys(AWAITED, lambda _target, number: self._tasks.pop(number).result()),
        }

    def _start(self, target: Any, name: str, *arguments: Any) -> tuple[int, bool]:
        """Start what an `await` or `async with` would wait for; its number, and if it has ended."""
        if name not in AWAITED:  # any other special method would evade the tests' `Guard`
            raise ValueError(f"{name!r:.80}: nothing to wait for")
        asyncio = importlib.import_module("asyncio")
        work = target if name == "await" else special(target, f"__{name}__")(*arguments)
        loop = asyncio._get_running_loop() or self._loop()
        number = next(self._numbers)
        self._tasks[number] = loop.create_task(self._result_of(work))
        return number, self._step(target, number)

    def _step(self, _target: Any, number: int) -> bool:
        """One turn of the loop, unless it is running already; whether the task has ended."""
        task = self._tasks[number]
        if not task.done():
            self._go_on(task.get_loop())
        done: bool = task.done()
        return done

    def _loop(self) -> Any:
        """The loop of this thread."""
        asyncio = importlib.import_module("asyncio")
        loop = self._loops.get(_thread.get_ident())
        if loop is None:
            loop = self._loops[_thread.get_ident()] = asyncio.new_event_loop()
            asyncio.set_event_loop(loop)
        return loop

    def _go_on(self, loop: Any) -> None:
        """One turn of a loop, unless it is running, maybe in another thread."""
        events = importlib.import_module("asyncio.events")
        within = events._get_running_loop()
        if loop.is_running() or within not in (None, loop):
            return
        events._set_running_loop(None)
        try:
            loop.call_soon(loop.stop)
            loop.run_forever()
        finally:
            events._set_running_loop(within)

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Let code find a running loop, as it may start tasks: the other side's loop runs."""
        events = importlib.import_module("asyncio.events")
        if events._get_running_loop() is not None:
            yield
            return
        events._set_running_loop(self._loop())
        try:
            yield
        finally:
            events._set_running_loop(None)

    def _turn(self, _target: Any) -> bool:
        """One turn of the loop of this thread; whether it has more to do."""
        loop = self._loop()
        self._go_on(loop)
        return bool(loop._ready or loop._scheduled or self._unfinished(loop))

    def _end(self, _target: Any) -> None:
        """Cancel what still runs, as `asyncio.run` does at its end."""
        loop = self._loop()
        for task in self._unfinished(loop):
            task.cancel()
        while self._unfinished(loop):
            self._go_on(loop)

    def _unfinished(self, loop: Any) -> Any:
        return importlib.import_module("asyncio").all_tasks(loop)

    async def _result_of(self, work: Any) -> Any:
        try:
            return await work
        except BaseException as error:
            # Not a callback of the task: that would need one more turn.
            if self._failed is not None:
                self._failed(error, work)
            raise


class Driver:
    """Lets the candidate's loop go on while one of the tests runs: its tasks may run beside them.

    Parameters
    ----------
    ask
        Requests an operation of the candidate.
    """

    def __init__(self, ask: Callable[..., Any]) -> None:
        self._ask = ask
        self._known: Any = weakref.WeakSet()  # loops
        self._driven: Any = weakref.WeakSet()

    def start(self) -> bool:
        """Whether a loop of the tests runs here, which this drives from now on."""
        events = sys.modules.get("asyncio.events")
        loop = None if events is None else events._get_running_loop()
        if loop is None:
            return False
        if loop not in self._known:
            self._known.add(loop)
            loop.close = functools.partial(self._close, loop.close)
        if loop not in self._driven:
            self._driven.add(loop)
            loop.call_soon(self._turn, loop, 0)
        return True

    def _turn(self, loop: Any, count: int) -> None:
        if not self._ask("turn", None):
            self._driven.discard(loop)
        elif count < _EAGER:
            loop.call_soon(self._turn, loop, count + 1)
        else:
            loop.call_later(_PAUSE, self._turn, loop, count)

    def _close(self, close: Callable[[], None]) -> None:
        self._ask("end", None)
        close()


async def as_coroutine(item: Any) -> Any:
    """A real coroutine, which is all that asyncio takes, that waits for a coroutine's stand-in."""
    return await item


class Waiting:
    """Waits for a task of the other side.

    Parameters
    ----------
    ask
        Requests an operation on what is awaited.
    name
        One of `AWAITED`.
    arguments
        Those of the special method.
    """

    __slots__ = ("_arguments", "_ask", "_name")

    def __init__(self, ask: Callable[..., Any], name: str, *arguments: Any) -> None:
        self._ask, self._name, self._arguments = ask, name, arguments

    def __await__(self) -> Generator[Any, None, Any]:
        asyncio = importlib.import_module("asyncio")
        number, ended = self._ask("task", self._name, *self._arguments)
        cancelled = None
        for turn in itertools.count():
            if ended:
                break
            try:
                if turn < _EAGER:
                    yield
                else:
                    # Not `asyncio.sleep`, which tests replace by a mock.
                    yield from asyncio.tasks.sleep(_PAUSE).__await__()
            except asyncio.CancelledError as error:
                cancelled = error
                self._ask("cancel", number)
            ended = self._ask("step", number)
        try:
            return self._ask(self._name, number)
        except asyncio.CancelledError:
            if cancelled is None:
                raise
        raise cancelled  # that of this side, which caused the other one
