"""Verifiers by name, and a verifier that selects another by the kind of task.

Other packages add verifiers by the entry-point group `gatekeeper.verifiers`: a callable without
required arguments.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any

from gatekeeper.errors import BadInputError
from gatekeeper.protocols import Verifier
from gatekeeper.types import Generation, Outcome

__all__ = ["ByKind", "make_verifier", "verifier_names"]

# Loaded on first use: importing gatekeeper starts no pool and needs no extra.
_BUILT_IN = {
    "docker": "gatekeeper.sandbox:DockerSandbox",
    "local": "gatekeeper.sandbox:LocalSandbox",
    "math": "gatekeeper.maths:MathChecker",
}


def verifier_names() -> list[str]:
    """The names for `make_verifier`: built-in verifiers and those of installed plug-ins."""
    return sorted({*_BUILT_IN, *(e.name for e in entry_points(group="gatekeeper.verifiers"))})


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
    if name in _BUILT_IN:
        module, _, attribute = _BUILT_IN[name].partition(":")
        verifier: Verifier = getattr(import_module(module), attribute)()
        return verifier
    for entry in entry_points(group="gatekeeper.verifiers", name=name):
        plugged: Verifier = entry.load()()
        return plugged
    raise BadInputError(
        f"verifier={name!r} is unknown: choose one of {', '.join(verifier_names())}"
    )


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

    def verify(self, generation: Generation, task: Mapping[str, Any]) -> Outcome:
        """Verify an output. Raises BadInputError for a task of another kind."""
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
