"""A finished or a running gate's log, read for people: its settings, results and account."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from gatekeeper.budget import Budget, Ledger
from gatekeeper.errors import LogError
from gatekeeper.log.events import FingerprintChanged, HealthChanged
from gatekeeper.log.fold import LogState, Output
from gatekeeper.log.sqlite import SQLiteLog
from gatekeeper.types import GateResult, PolicyHealth

__all__ = ["HealthChange", "Run", "read_run"]


@dataclass(frozen=True, slots=True)
class HealthChange:
    """Whether what the policy learned holds, from a point of the stream on."""

    after: int  # outputs decided on before
    health: PolicyHealth
    why: str  # it had drifted, in words; else ""


@dataclass(frozen=True)
class Run:
    """What a log says.

    Attributes
    ----------
    settings
        Of the gate that wrote the log, as it stored them.
    ledger
        The gate's account: the same ledger after the same events.
    outputs, results
        What is known of each output, by id, in the order of deciding.
    external
        Ids with a verdict from outside, which cost nothing.
    fingerprint
        The last one; early logs have none.
    health_changes
        In order; the policy is cold until the first.
    """

    settings: Mapping[str, Any]
    ledger: Ledger
    outputs: Mapping[str, Output]
    fingerprint: FingerprintChanged | None
    health_changes: tuple[HealthChange, ...]

    @cached_property
    def results(self) -> dict[str, GateResult]:
        return {id_: output.result() for id_, output in self.outputs.items()}

    @cached_property
    def external(self) -> frozenset[str]:
        return frozenset(id_ for id_, output in self.outputs.items() if output.external)


def read_run(path: str | Path) -> Run:
    """Apply a log's events, read-only, also while a gate writes it.

    Raises
    ------
    LogError
        For a file that is no log, or whose settings are not a gate's.
    """
    changes = []
    with SQLiteLog(path, read_only=True) as log:
        settings = log.settings()
        try:
            budget, _ = Budget(**settings["budget"]), dict(settings["policy"])
        except (KeyError, TypeError, ValueError) as e:
            raise LogError(f"log {str(path)!r} has no settings of a gate: {e!r}") from e
        state = LogState(Ledger(budget, budget.max_cost or 1.0))
        for event in log.events():
            state.apply(event)
            if isinstance(event, HealthChanged):
                changes.append(HealthChange(state.ledger.seen, event.health, event.why))
    return Run(
        settings,
        state.ledger,
        state.outputs,
        fingerprint=state.fingerprint,
        health_changes=tuple(changes),
    )
