"""What a run's log says of its gate: the policy's name, and the budget as a share."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gatekeeper import policies
from gatekeeper.analysis.off_policy import Evidence
from gatekeeper.errors import BadInputError
from gatekeeper.io.records import is_log
from gatekeeper.log import SQLiteLog

__all__ = ["budget_share", "own_policy", "settings_of"]


def settings_of(path: Path) -> Mapping[str, Any] | None:
    """The settings of a run's log; None for records."""
    if not is_log(path):
        return None
    with SQLiteLog(path, read_only=True) as log:
        return log.settings()


def own_policy(settings: Mapping[str, Any]) -> str | None:
    """The name of the log's policy, where it is one of ours."""
    module, _, kind = str(settings.get("policy", {}).get("type", "")).rpartition(".")
    if not module.startswith("gatekeeper.policies."):
        return None
    name = getattr(getattr(policies, kind, None), "name", None)
    return name if name in policies.policy_names() else None


def budget_share(settings: Mapping[str, Any], evidence: Evidence) -> float:
    """What the gate might spend after the warm-up, as a share of verifying everything there."""
    budget = settings.get("budget", {})
    if budget.get("fraction") is not None:
        return float(budget["fraction"])
    warmup, rest = evidence.costs()
    share = (budget.get("total") or 0.0) - warmup
    if not 0.0 < share < rest:
        raise BadInputError(
            "the run's total budget was not between the warm-up's cost and that of verifying "
            "everything: say with --beta at what share of the cost to compare"
        )
    return float(share / rest)
