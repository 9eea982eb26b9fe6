"""Verifiers by name, by the kind of task, and functions as verifiers.

Other packages add verifiers by the entry-point group `gatekeeper.verifiers`: a callable without
required arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from inspect import iscoroutinefunction
from numbers import Real
from typing import Any

import numpy as np

from gatekeeper.errors import BadInputError
from gatekeeper.plug_ins import plug_ins
from gatekeeper.protocols import AsyncVerifier, Verifier
from gatekeeper.types import Generation, Outcome, Verdict
from gatekeeper.types.values import check_text
from gatekeeper.wording import choose

__all__ = [
    "AsyncFunctionVerifier",
    "ByKind",
    "FunctionVerifier",
    "as_verifier",
    "make_verifier",
    "outcome_of",
    "verifier_names",
]

_GROUP = "gatekeeper.verifiers"
# Loaded on first use: importing gatekeeper starts no pool and needs no extra.
_BUILT_IN = {
    "docker": "gatekeeper.sandbox:DockerSandbox",
    "local": "gatekeeper.sandbox:LocalSandbox",
    "math": "gatekeeper.maths:MathChecker",
}


def verifier_names() -> list[str]:
    """The names for `make_verifier`: built-in verifiers and those of installed plug-ins."""
    return sorted({*_BUILT_IN, *plug_ins(_GROUP)})


def make_verifier(name: str) -> Verifier:
    """A verifier with its default settings.

    Parameters
    ----------
    name : str
        One of `verifier_names()`.

    Raises
    ------
    BadInputError
        For an unknown name.
    """
    check_text("verifier", name)
    if name in _BUILT_IN:
        module, _, attribute = _BUILT_IN[name].partition(":")
        verifier: Verifier = getattr(import_module(module), attribute)()
        return verifier
    if entry := plug_ins(_GROUP).get(name):
        plugged: Verifier = entry.load()()
        return plugged
    raise BadInputError(f"verifier={name!r} is unknown: {choose(name, verifier_names())}")


class FunctionVerifier:
    """A function of an output and its task as a verifier.

    Parameters
    ----------
    function
        Called with the Generation and the task, from several threads at once. See `outcome_of` for
        its possible results.
    name
        Identifies it in a log; default: its module and name.
    """

    def __init__(self, function: Callable[[Generation, Any], object], name: str = "") -> None:
        self.function, self.name = _callable(function), name or _name_of(function)

    def verify(self, generation: Generation, task: Any) -> Outcome:
        """Call the function. Raises what it raises, and BadInputError for another return value."""
        return outcome_of(self.function(generation, task))


class AsyncFunctionVerifier:
    """A coroutine function of an output and its task as a verifier.

    Parameters
    ----------
    function, name
        As of `FunctionVerifier`; the function is awaited.
    """

    def __init__(self, function: Callable[[Generation, Any], Any], name: str = "") -> None:
        self.function, self.name = _callable(function), name or _name_of(function)

    async def averify(self, generation: Generation, task: Any) -> Outcome:
        """Await the function. Raises what it raises, and BadInputError for another return value."""
        return outcome_of(await self.function(generation, task))


def as_verifier(verifier: Any) -> Any:
    """A function as a verifier; anything else as it is."""
    if isinstance(verifier, type | Verifier | AsyncVerifier) or not callable(verifier):
        return verifier
    called = verifier if hasattr(verifier, "__code__") else getattr(verifier, "__call__", None)  # noqa: B004
    is_async = iscoroutinefunction(verifier) or iscoroutinefunction(called)
    return AsyncFunctionVerifier(verifier) if is_async else FunctionVerifier(verifier)


def outcome_of(value: object) -> Outcome:
    """The outcome for the return value of a function.

    Parameters
    ----------
    value
        An Outcome; True for a right output and False for a wrong one; a score in [0, 1], of which
        1 is right and anything below is wrong; NaN or None: could not tell.

    Returns
    -------
    Outcome
        PASSED, FAILED, or INFRA_ERROR for "could not tell"; an Outcome is returned as it is.

    Raises
    ------
    BadInputError
        For any other value. In a gate this means that the verifier could not tell.
    """
    if isinstance(value, Outcome):
        return value
    if value is None or value != value:
        return Outcome(Verdict.INFRA_ERROR, detail=f"the function returned {value}")
    if isinstance(value, bool | np.bool_):
        return Outcome(Verdict.PASSED if value else Verdict.FAILED)
    if isinstance(value, Real) and 0.0 <= (score := float(value)) <= 1.0:
        right = score == 1.0
        return Outcome(
            Verdict.PASSED if right else Verdict.FAILED,
            detail="" if right else f"score {score:g}",
            value=score,
        )
    raise BadInputError(
        f"the function returned {value!r:.80}: return True or False, a score in [0, 1] (1 is "
        "right), an Outcome, or None for “could not tell”"
    )


def _callable(function: Callable[[Generation, Any], Any]) -> Callable[[Generation, Any], Any]:
    if not callable(function):
        raise BadInputError(f"function={function!r:.80}: give a function of (generation, task)")
    return function


def _name_of(function: Any) -> str:
    named = function if hasattr(function, "__qualname__") else type(function)
    return f"{named.__module__}.{named.__qualname__}"


class ByKind:
    """Passes each output to the verifier for its task's `kind`.

    Parameters
    ----------
    verifiers : mapping of str to Verifier
        By kind.
    """

    def __init__(self, verifiers: Mapping[str, Verifier]) -> None:
        self.verifiers = dict(verifiers)

    @property
    def max_seconds(self) -> float | None:
        """The longest time of one verification, seconds; None if a verifier does not declare it."""
        limits = [getattr(v, "max_seconds", None) for v in self.verifiers.values()]
        known = [limit for limit in limits if limit is not None]
        return max(known) if len(known) == len(limits) else None

    def verify(self, generation: Generation, task: Mapping[str, Any] | None) -> Outcome:
        """Verify an output; without a task: could not tell.

        Raises
        ------
        BadInputError
            For a task of another kind.
        """
        if task is None:
            return Outcome(Verdict.INFRA_ERROR, detail="no task came with the output")
        if task["kind"] not in self.verifiers:
            raise BadInputError(
                f"kind={task['kind']!r} has no verifier: the kinds with one are "
                f"{', '.join(map(repr, self.verifiers))}"
            )
        return self.verifiers[task["kind"]].verify(generation, task)

    def close(self) -> None:
        """Close every verifier that has a `close`."""
        for verifier in self.verifiers.values():
            close = getattr(verifier, "close", None)
            if callable(close):
                close()
