"""One verifier made of several, by the kind of task."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gatekeeper.errors import BadInputError
from gatekeeper.protocols import Verifier
from gatekeeper.types import Generation, Outcome

__all__ = ["ByKind"]


class ByKind:
    """Passes each output to the verifier for its task's `kind`."""

    def __init__(self, verifiers: Mapping[str, Verifier]) -> None:
        self._verifiers = dict(verifiers)

    @property
    def max_seconds(self) -> float | None:
        """The most that one verification can take; None where one of the verifiers does not say."""
        limits = [getattr(v, "max_seconds", None) for v in self._verifiers.values()]
        known = [limit for limit in limits if limit is not None]
        return max(known) if len(known) == len(limits) else None

    def verify(self, generation: Generation, task: Mapping[str, Any]) -> Outcome:
        if task["kind"] not in self._verifiers:
            raise BadInputError(
                f"no verifier for kind={task['kind']!r}: there is one for "
                f"{', '.join(map(repr, self._verifiers))}"
            )
        return self._verifiers[task["kind"]].verify(generation, task)

    def close(self) -> None:
        for verifier in self._verifiers.values():
            close = getattr(verifier, "close", None)
            if callable(close):
                close()
