"""The decorator `@gate.watch`: passes a function's results through a gate."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Awaitable, Callable
from functools import update_wrapper
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar, cast, overload
from uuid import uuid4

from gatekeeper.errors import BadInputError, VerifierUnavailableError
from gatekeeper.io.responses import as_generation
from gatekeeper.types import GateResult, Generation, Undecided, UndecidedState
from gatekeeper.wording import described

__all__ = ["Watched", "WatchedMethod", "watched"]

P = ParamSpec("P")
Q = ParamSpec("Q")
R = TypeVar("R")
S = TypeVar("S")
_LOG = logging.getLogger("gatekeeper")


class Watched(Generic[P, R]):
    """A decorated function. A call passes the function's result to the gate, and returns it.

    Parameters are those of `VerificationGate.watch`, which makes it.

    Attributes
    ----------
    function
        The function that was decorated; a direct call of it bypasses the gate.
    """

    def __init__(
        self, gate: Any, function: Callable[P, R], *, task: object, id: object, strict: bool
    ) -> None:
        self.function = function
        self._gate, self._task, self._id, self._strict = gate, task, id, strict
        self._is_async = inspect.iscoroutinefunction(function)
        update_wrapper(self, function)

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...

    @overload
    def __get__(
        self: Watched[Concatenate[S, Q], R], instance: S, owner: type | None = None
    ) -> WatchedMethod[Q, R]: ...

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """Binds the first argument of a method, as a function does."""
        return self if instance is None else WatchedMethod(self, instance)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """The function's own return value."""
        found: Any = self.with_result(*args, **kwargs)
        return cast(R, _first(found) if self._is_async else found[0])

    def with_result(self, *args: P.args, **kwargs: P.kwargs) -> Any:
        """The function's return value and the gate's result.

        Returns
        -------
        tuple of (value, GateResult or Undecided)
            A coroutine of it if the function is a coroutine function.

        Raises
        ------
        Exception
            What the function raises; with `strict=True` also what the gate, `task` or `id` raise.
        """
        if self._is_async:
            return self._awaited(*args, **kwargs)
        value = self.function(*args, **kwargs)
        try:
            output, task = self._read(value, args, kwargs)
            return value, self._gate.maybe_verify(output, task)
        except Exception as error:
            return value, self._failed(value, error)

    async def _awaited(self, *args: Any, **kwargs: Any) -> tuple[Any, GateResult | Undecided]:
        value = await cast(Any, self.function)(*args, **kwargs)
        try:
            output, task = self._read(value, args, kwargs)
            return value, await self._gate.amaybe_verify(output, task)
        except Exception as error:
            return value, self._failed(value, error)

    def _read(self, value: object, args: Any, kwargs: Any) -> tuple[Generation, object]:
        id_: Any = self._id(*args, **kwargs) if callable(self._id) else self._id
        task = self._task(*args, **kwargs) if callable(self._task) else self._task
        new = f"output-{uuid4().hex}"
        if isinstance(value, str):
            return Generation(id_ or new, value), task
        return as_generation(value, id=id_, without_id=new), task

    def _failed(self, value: object, error: Exception) -> GateResult | Undecided:
        if self._strict:
            raise error
        if isinstance(error, VerifierUnavailableError):
            return error.result
        id_ = getattr(value, "id", "")
        text = described(error)
        _LOG.warning("gatekeeper: an output of %s: no decision: %s", self.function, text)
        return Undecided(id_ if isinstance(id_, str) else "", UndecidedState.GATE_ERROR, text)


class WatchedMethod(Generic[P, R]):
    """A decorated method of one object."""

    def __init__(self, watched: Watched[Any, R], instance: object) -> None:
        self._watched, self.__self__ = watched, instance
        update_wrapper(self, watched)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """The method's own return value."""
        return self._watched(self.__self__, *args, **kwargs)

    def with_result(self, *args: P.args, **kwargs: P.kwargs) -> Any:
        """See `Watched.with_result`."""
        return self._watched.with_result(self.__self__, *args, **kwargs)


async def _first(pair: Awaitable[tuple[Any, Any]]) -> Any:
    return (await pair)[0]


def watched(
    gate: Any, *, task: object, id: object, strict: bool
) -> Callable[[Callable[P, R]], Watched[P, R]]:
    """The decorator. Parameters and errors are those of `VerificationGate.watch`."""

    def decorate(function: Callable[P, R]) -> Watched[P, R]:
        if isinstance(function, staticmethod | classmethod):
            raise BadInputError(
                f"function={function!r:.80}: put @gate.watch below @{type(function).__name__}"
            )
        if not callable(function) or isinstance(function, type):
            raise BadInputError(
                f"function={function!r:.80}: decorate a function, @gate.watch(task=...)"
            )
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise BadInputError(
                f"function={function!r:.80} yields: pass what it returns to gate.observe_stream"
            )
        return Watched(gate, function, task=task, id=id, strict=strict)

    return decorate
