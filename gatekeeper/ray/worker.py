"""What an actor of a cluster holds: one verifier."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from gatekeeper.errors import BadInputError
from gatekeeper.protocols import Verifier
from gatekeeper.types import Generation, Outcome, Verdict
from gatekeeper.verifiers import as_verifier, make_verifier
from gatekeeper.wording import described

__all__ = ["Make", "Worker", "check_make"]

Make = str | Callable[[], Any]
"""A verifier's name, such as "local", or what makes one: a class, a `functools.partial`."""


def check_make(make: object) -> None:
    """Raises BadInputError for what is no `Make`."""
    if not (isinstance(make, str) or callable(make)):
        raise BadInputError(f"make={make!r:.80}: give a verifier's name or what makes one")


class Worker:
    """One verifier, used by one call at a time."""

    def __init__(self, make: Make) -> None:
        """Raises BadInputError for what is no `Make`, and for one that makes no verifier."""
        check_make(make)
        made = make_verifier(make) if isinstance(make, str) else make()
        self._verifier = as_verifier(made)
        if not isinstance(self._verifier, Verifier):
            raise BadInputError(f"make={make!r:.80} made {made!r:.80}, which has no `verify`")

    def about(self) -> tuple[str, float | None]:
        """The node's id, and the verifier's `max_seconds`."""
        import ray

        node = ray.get_runtime_context().get_node_id()
        return node, getattr(self._verifier, "max_seconds", None)

    def verify_many(self, pairs: Sequence[tuple[Generation, Any]]) -> list[Outcome]:
        """One outcome for each pair: what a verifier raises is an INFRA_ERROR."""
        return [self._verified(generation, task) for generation, task in pairs]

    def _verified(self, generation: Generation, task: Any) -> Outcome:
        start = time.perf_counter()
        try:
            outcome = self._verifier.verify(generation, task)
            if not isinstance(outcome, Outcome):
                raise TypeError(f"verifier returned {outcome!r:.80}, not an Outcome")
        except Exception as e:
            outcome = Outcome(Verdict.INFRA_ERROR, detail=described(e))
        # Without the time that it waited for an actor.
        return outcome if outcome.seconds else replace(outcome, seconds=time.perf_counter() - start)
