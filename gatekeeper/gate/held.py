"""The verification of an output whose budget is held."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator
from inspect import CORO_CREATED, getcoroutinestate
from typing import Any

from gatekeeper.types import GateResult

__all__ = ["HeldVerification"]


class HeldVerification(Coroutine[Any, Any, GateResult]):
    """A coroutine that gives its budget back if it ends before its first step.

    A task that is cancelled at once throws into a coroutine that has not begun, and none of its
    lines runs.

    Parameters
    ----------
    verification
        Not begun. It gives its budget back itself if it ends later.
    withdraw
        Gives the budget back.
    """

    def __init__(
        self, verification: Coroutine[Any, Any, GateResult], withdraw: Callable[[], None]
    ) -> None:
        self._verification, self._withdraw = verification, withdraw

    def send(self, value: Any) -> Any:
        return self._verification.send(value)

    def throw(self, *error: Any) -> Any:
        self._end()
        return self._verification.throw(*error)

    def close(self) -> None:
        self._end()
        self._verification.close()

    def __await__(self) -> Generator[Any, Any, GateResult]:
        return self._verification.__await__()

    def _end(self) -> None:
        if getcoroutinestate(self._verification) == CORO_CREATED:
            self._withdraw()
