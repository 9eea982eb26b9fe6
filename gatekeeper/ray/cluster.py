"""The connection to a Ray cluster. Ray itself is imported when it is first needed."""

from __future__ import annotations

import signal
from typing import Any

from gatekeeper.errors import MissingDependencyError

__all__ = ["POLL", "START_LIMIT", "connected", "reason_of"]

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
    """
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


def reason_of(error: Exception) -> str:
    """The last line of a message: Ray puts a traceback from the actor before it."""
    lines = str(error).strip().splitlines() or [""]
    return lines[-1].strip() or type(error).__name__
