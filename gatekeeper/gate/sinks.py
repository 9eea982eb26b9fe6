"""Passes decisions and outcomes on to the sinks of a gate."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from gatekeeper.protocols import Sink
from gatekeeper.types import GateFacts, GateResult, Observation

__all__ = ["Sinks"]

_LOG = logging.getLogger("gatekeeper")


class Sinks:
    """The sinks of one gate. Never called under the gate's lock; their exceptions are caught.

    Parameters
    ----------
    sinks
        In the order in which they are called.
    facts
        About the gate.
    """

    def __init__(self, sinks: Sequence[Sink], facts: GateFacts) -> None:
        self._sinks, self._facts = tuple(sinks), facts
        # The response's id, and what each sink returned, of selected outputs without a verdict: as
        # many as the gate itself keeps open.
        self._open: dict[str, tuple[str, list[object]]] = {}
        self._failed: set[int] = set()  # sinks, by `id`, whose first error was logged

    def __bool__(self) -> bool:
        return bool(self._sinks)

    def decided(self, result: GateResult, response_id: object) -> None:
        """Pass a decision on, in the caller's context."""
        named = response_id if isinstance(response_id, str) else ""
        seen = Observation(result, self._facts, named)
        returned = [self._call(sink, sink.decided, seen) for sink in self._sinks]
        if result.decision.verify:
            self._open[result.id] = named, returned

    def concluded(self, result: GateResult) -> None:
        """Pass an outcome on, if there is one."""
        if result.outcome is None:
            return
        has_verdict = result.outcome.error is not None
        found = self._open.pop(result.id, None) if has_verdict else self._open.get(result.id)
        named, returned = found or ("", [None] * len(self._sinks))
        seen = Observation(result, self._facts, named, external=not result.decision.verify)
        for sink, own in zip(self._sinks, returned, strict=True):
            self._call(sink, sink.concluded, seen, own)

    def _call(self, sink: Sink, method: Callable[..., object], *given: object) -> object:
        try:
            return method(*given)
        except Exception as error:
            if id(sink) not in self._failed:
                self._failed.add(id(sink))
                _LOG.warning(
                    "gatekeeper: telemetry %r raised %s: %s. Further errors are not logged",
                    sink,
                    type(error).__name__,
                    error,
                )
            return None
