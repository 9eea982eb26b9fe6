"""Errors that end a thread, a future or a task of the tests, and that no code retrieves.

Python ignores them, so the tests would pass although an assertion failed, or although the candidate
raised before they could assert anything.
"""

from __future__ import annotations

import gc
import importlib
import re
import sys
import weakref
from collections.abc import Callable
from typing import Any

__all__ = ["THREADS", "Unseen"]

THREADS = "[tT]hread|futures|executor"  # words of programs that may start some


class Unseen:
    """Records such errors.

    Parameters
    ----------
    text
        All programs of the tests. They name each module that starts something beside them, so the
        modules that they do not name need not be looked at.
    counts
        Whether an error matters: a failed assertion, or an exception of the candidate. A thread of
        the tests may end with an error of its own, for example one that waits for more work.
    """

    def __init__(self, text: str, counts: Callable[[BaseException], bool]) -> None:
        self._counts = counts
        self._error: BaseException | None = None
        self._futures: dict[int, Any] = {}  # futures that ended with an error, by their id
        self._cancelled: list[Any] = []  # tasks
        self._made: Any = weakref.WeakSet()  # tasks
        self._threads = re.search(f"{THREADS}|asyncio", text) is not None
        sys.unraisablehook = lambda args: self._note(args.exc_value)  # callbacks, `_thread`
        if self._threads:
            threading: Any = importlib.import_module("threading")
            threading.excepthook = lambda args: self._note(args.exc_value)
            threads: Any = importlib.import_module("_thread")
            start = threads.start_new_thread
            threads.start_new_thread = lambda run, *more: start(self._noting(run), *more)
        if "futures" in text or "asyncio" in text:
            self._watch_futures()
        self._tasks = "asyncio" in text
        if self._tasks:
            self._watch_tasks()

    def check(self) -> None:
        """Raises AssertionError if there was such an error."""
        if self._tasks:
            gc.collect()  # only after that does asyncio report an error that was not retrieved
        for task in self._cancelled:
            try:
                task.result()  # the error that ended it, if no code has retrieved that
            except BaseException as error:
                self._note(error)
                self._note(error.__context__)  # of Python 3.10, which raises a copy
        self._cancelled.clear()
        for task in [*self._made]:  # which something still refers to, such as its error
            if task.done() and not task.cancelled() and task._log_traceback:
                self._note(task._exception)
        for future in self._futures.values():
            self._note(future._exception)
        self._futures.clear()
        if self._error is not None:
            kind = type(self._error).__name__
            raise AssertionError(
                f"{kind} in a thread or task of the tests, which no code retrieved"
            )

    def finish(self) -> None:
        """Wait for the threads of the tests, as Python does before it ends. Raises as `check`."""
        if self._threads:
            importlib.import_module("threading")._shutdown()
            self.check()

    def _note(self, error: BaseException | None) -> None:
        if error is not None and self._counts(error):
            self._error = self._error or error

    def _noting(self, run: Callable[..., object]) -> Callable[..., object]:
        """The function of a thread, of which Python ignores a SystemExit."""

        def noting(*arguments: Any, **keywords: Any) -> object:
            try:
                return run(*arguments, **keywords)
            except SystemExit as error:
                self._note(error)
                raise

        return noting

    def _watch_futures(self) -> None:
        future = importlib.import_module("concurrent.futures").Future
        set_error, result, exception = future.set_exception, future.result, future.exception

        def set_exception(made: Any, error: BaseException | None) -> None:
            self._futures[id(made)] = made
            set_error(made, error)

        def retrieving(function: Callable[..., Any]) -> Callable[..., Any]:
            def retrieve(made: Any, timeout: float | None = None) -> Any:
                try:
                    return function(made, timeout)
                finally:
                    if made.done():
                        self._futures.pop(id(made), None)

            return retrieve

        future.set_exception = set_exception
        future.result, future.exception = retrieving(result), retrieving(exception)

    def _watch_tasks(self) -> None:
        loop = importlib.import_module("asyncio.base_events").BaseEventLoop
        handle, create = loop.default_exception_handler, loop.create_task

        def noted(made: Any, context: dict[str, Any]) -> None:
            self._note(context.get("exception"))
            handle(made, context)

        def ended(task: Any) -> None:
            # A candidate that raises CancelledError would end a task as if the tests had done so,
            # and a TaskGroup or `asyncio.wait` would say nothing.
            if task.cancelled():
                self._cancelled.append(task)

        def create_task(made: Any, *arguments: Any, **keywords: Any) -> Any:
            task = create(made, *arguments, **keywords)
            task.add_done_callback(ended)
            self._made.add(task)
            return task

        loop.default_exception_handler, loop.create_task = noted, create_task
