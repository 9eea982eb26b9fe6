"""The settings of a gate in its log: the policy's name, and the budget as a share."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gatekeeper import policies
from gatekeeper.analysis.off_policy import Evidence
from gatekeeper.errors import BadInputError
from gatekeeper.io.records import is_log
from gatekeeper.log import PostgresRun, open_log
from gatekeeper.policies import T0

__all__ = ["budget_share", "is_for_score", "own_policy", "settings_of"]


def settings_of(path: Path | PostgresRun) -> Mapping[str, Any] | None:
    """The settings in a run's log; None for a file of records."""
    if not is_log(path):
        return None
    with open_log(path, read_only=True) as log:
        if settings := log.settings():
            return settings
    raise BadInputError(f"log {path} has no run in it yet: give the log of a run that has begun")


def own_policy(settings: Mapping[str, Any]) -> str | None:
    """The name of the log's policy; None for a policy from elsewhere, and for the goal "score"."""
    module, _, kind = str(settings.get("policy", {}).get("type", "")).rpartition(".")
    if not module.startswith("gatekeeper.policies."):
        return None
    name = getattr(getattr(policies, kind, None), "name", None)
    return name if name in policies.policy_names() else None


def is_for_score(settings: Mapping[str, Any]) -> bool:
    """Whether the gate's goal was "score"."""
    return bool(settings.get("more", {}).get("goal") == "score")


def budget_share(settings: Mapping[str, Any], evidence: Evidence) -> float:
    """The budget after the warm-up, as a share of verifying everything there.

    Raises
    ------
    BadInputError
        If the run had a budget that is no such share: of everything, or a total.
    """
    budget = settings.get("budget", {})
    fraction, total = budget.get("fraction"), budget.get("total")
    if fraction is not None and fraction < 1.0:
        return float(fraction)
    if total is None:
        raise BadInputError(
            "the run's budget was for verifying everything: give the share of the cost with "
            "--budget, for example --budget 0.2"
        )
    given = settings.get("policy", {}).get("warmup")
    warmup, rest = evidence.costs(given if isinstance(given, int) else T0)
    share = total - warmup
    if not 0.0 < share < rest:
        raise BadInputError(
            "the run's total budget is not between the cost of the warm-up and the cost of "
            "verifying everything: give the share of the cost with --budget"
        )
    return float(share / rest)
