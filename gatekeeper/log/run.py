"""A finished or a running gate's log, read for people: its settings, results and account."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import nan
from pathlib import Path
from typing import Any

from gatekeeper.budget import Budget, Ledger
from gatekeeper.errors import LogError
from gatekeeper.log import SQLiteLog, encoding
from gatekeeper.types import Calibration, GateResult, Reason

__all__ = ["Run", "Standing", "read_run"]


@dataclass(frozen=True, slots=True)
class Standing:
    """Whether what the policy learned held, from a point of the stream on."""

    after: int  # outputs decided on before
    calibration: Calibration
    why: str  # where it had drifted


@dataclass(slots=True)
class Run:
    """What a log says. `results` are in the order of deciding."""

    settings: Mapping[str, Any]
    ledger: Ledger
    results: dict[str, GateResult] = field(default_factory=dict)
    cost_estimates: dict[str, float] = field(default_factory=dict)  # ĉ, by id
    audited: set[str] = field(default_factory=set)  # ids with a verdict from outside the budget
    fingerprint: Mapping[str, Any] | None = None  # the last one; old logs have none
    standings: list[Standing] = field(default_factory=list)  # its changes; cold until the first


def read_run(path: str | Path) -> Run:
    """Go through the log's events, read-only, also while a gate writes it.

    The account is the gate's own: the same ledger, told the same. Raises LogError for a file that
    is no log, or whose settings are not a gate's.
    """
    with SQLiteLog(path, read_only=True) as log:
        settings = log.settings()
        try:
            budget, _ = Budget(**settings["budget"]), dict(settings["policy"])
        except (KeyError, TypeError, ValueError) as e:
            raise LogError(f"log {str(path)!r} has no settings of a gate: {e!r}") from e
        run = Run(settings, Ledger(budget, budget.max_cost or 1.0))
        for kind, id_, data in log.events():
            _take(run, kind, id_, data)
    return run


def _take(run: Run, kind: str, id_: str, data: Mapping[str, Any]) -> None:
    if kind == "decided":
        candidate, decision = encoding.candidate_of(id_, data), encoding.decision_of(data)
        denied = decision.reason is Reason.BUDGET_EXHAUSTED
        warmup = decision.reason is Reason.WARMUP or (denied and data["phase"] == "warmup")
        hold = run.ledger.see(candidate.cost_estimate, warmup=warmup)
        if decision.verify:
            run.ledger.reserve(id_, hold)
        run.results[id_] = GateResult(id_, candidate.signals, decision)
        run.cost_estimates[id_] = candidate.cost_estimate
    elif kind == "outcome":
        charged = run.ledger.settle(id_, nan if data["taken"] is None else data["taken"])
        outcome = replace(encoding.outcome_of(data), cost=charged)
        run.results[id_] = replace(run.results[id_], outcome=outcome)
    elif kind == "audited":
        run.results[id_] = replace(run.results[id_], outcome=encoding.outcome_of(data))
        run.audited.add(id_)
    elif kind == "released":
        run.ledger.release(id_)
        if data["outcome"] is not None:
            trouble = encoding.outcome_of(data["outcome"])
            run.results[id_] = replace(run.results[id_], outcome=trouble)
    elif kind == "reserved":
        run.ledger.reserve_again(id_)
    elif kind == "fingerprint":
        run.fingerprint = data
    elif kind == "calibration":
        status = Calibration(data["status"])
        run.standings.append(Standing(len(run.results), status, data["why"]))
