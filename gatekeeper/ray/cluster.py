"""The connection to a Ray cluster. Ray itself is imported when it is first needed."""

from __future__ import annotations

import signal
from collections.abc import Callable, Mapping
from functools import partial
from math import inf
from typing import Any

from gatekeeper.errors import BadInputError, MissingDependencyError
from gatekeeper.types.values import as_number, check_text
from gatekeeper.wording import described

__all__ = [
    "POLL",
    "START_LIMIT",
    "actor_starter",
    "check_reserved",
    "connected",
    "not_picklable",
    "reason_of",
]

START_LIMIT = 120.0  # seconds without any actor, after which what waits for one ends
POLL = 0.5  # seconds between two checks of an actor


def connected(address: str | None) -> Any:
    """The module `ray`, connected to a cluster.

    Parameters
    ----------
    address
        If this process is not connected yet; None: RAY_ADDRESS, else a cluster that runs on this
        machine, else a new one on this machine.

    Raises
    ------
    MissingDependencyError
        Without the extra `ray`.
    BadInputError
        For an address that is no text.
    """
    if address is not None:
        check_text("address", address)
    try:
        import ray
    except ImportError as e:
        raise MissingDependencyError("ray", extra="ray", needed_for="a pool on a cluster") from e
    if not ray.is_initialized():
        handler = signal.getsignal(signal.SIGTERM)
        ray.init(address=address, log_to_driver=False, include_dashboard=False)
        # Ray replaces it in the main thread. A program that has one ends in its own way.
        if callable(handler) and signal.getsignal(signal.SIGTERM) != handler:
            signal.signal(signal.SIGTERM, handler)
    return ray


def actor_starter(ray: Any, cls: type, make: Any, **reserved: float) -> Callable[[], Any]:
    """A function that starts an actor, an instance of `cls` with this `make`.

    Parameters
    ----------
    **reserved
        What Ray reserves for each: `cpus`, `gpus`.

    Raises
    ------
    BadInputError
        For a number that Ray cannot reserve, and for a `make` that cannot be pickled.
    """
    if why := not_picklable(ray, "it", make):
        raise BadInputError(f"make={make!r:.80}: {why}; give a function that makes it in the actor")
    try:
        actors = ray.remote(cls).options(
            **{f"num_{setting}": value for setting, value in reserved.items()},
            max_restarts=0,
            scheduling_strategy="SPREAD",
        )
    except ValueError as e:  # more decimals than Ray counts
        given = ", ".join(f"{setting}={value!r}" for setting, value in reserved.items())
        raise BadInputError(f"{given}: {e}") from None
    return partial(actors.remote, make)


def check_reserved(setting: str, value: Any, *, zero: bool) -> None:
    """Raises BadInputError for what is no finite number above 0, or of at least 0."""
    number = as_number(setting, value)
    if not (0.0 < number < inf or (zero and number == 0.0)):
        least = "of at least 0" if zero else "above 0"
        raise BadInputError(f"{setting}={value!r}: a finite number {least} is needed")


def not_picklable(ray: Any, name: str, value: Any) -> str | None:
    """What Ray cannot send of this value, and why; None where it can send all of it."""
    if (why := _refusal(ray, value)) is None:
        return None
    for key, field in value.items() if isinstance(value, Mapping) else ():
        if of_field := _refusal(ray, field):
            name, why = f"{name}[{key!r:.80}]", of_field
            break
    return f"{name} cannot be pickled: {why}"


def _refusal(ray: Any, value: Any) -> str | None:
    try:
        ray.cloudpickle.dumps(value)
    except Exception as e:
        return described(e)
    return None


def reason_of(error: Exception) -> str:
    """The last line of a message: Ray puts a traceback from the actor before it."""
    lines = str(error).strip().splitlines() or [""]
    return lines[-1].strip() or type(error).__name__
