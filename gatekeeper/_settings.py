"""What a gate is given: checked, and in the form that its log remembers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, get_args

from gatekeeper.budget import Budget
from gatekeeper.errors import BadInputError
from gatekeeper.policies import T0
from gatekeeper.protocols import AsyncVerifier, Policy, Verifier

__all__ = ["OnUnavailable", "as_json", "check_arguments", "describe", "max_cost_of", "rate_of"]

OnUnavailable = Literal["raise", "pass"]


def check_arguments(
    policy: object,
    budget: object,
    verifier: object,
    log: object,
    on_unavailable: object,
    workers: object,
    seed: object,
) -> None:
    if isinstance(policy, type) or not isinstance(policy, str | Policy):
        raise BadInputError(f"policy={policy!r}: give a name or an instance, such as CST(0.2)")
    if not isinstance(budget, Budget):
        raise BadInputError(f"budget={budget!r}: give a Budget, such as Budget(fraction=0.2)")
    usable = verifier is None or isinstance(verifier, Verifier | AsyncVerifier)
    if isinstance(verifier, type) or not usable:
        raise BadInputError(
            f"verifier={verifier!r}: must be an object that has verify(generation, task) or averify"
        )
    if not (log is None or isinstance(log, str | Path) or hasattr(log, "append")):
        raise BadInputError(f"log={log!r}: give a file name, a Log, or None")
    if on_unavailable not in get_args(OnUnavailable):
        raise BadInputError(f"on_unavailable={on_unavailable!r}: choose 'raise' or 'pass'")
    if type(workers) is not int or workers < 1:
        raise BadInputError(f"workers={workers!r}: a whole number of threads, at least 1")
    if type(seed) is not int or seed < 0:
        raise BadInputError(f"seed={seed!r}: a whole number of at least 0")


def rate_of(budget: Budget, policy: str) -> float:
    """β for a policy given by name: the share of the candidates after the warm-up to verify."""
    if budget.fraction is not None:
        return budget.fraction
    if budget.total is None or budget.horizon is None or budget.unit != "verifications":
        raise BadInputError(
            f"policy={policy!r} needs a rate: give Budget(fraction=...), or a total of "
            "verifications with horizon=..., or a policy instance with its own beta"
        )
    left, to_come = budget.total - T0, budget.horizon - T0
    if not 0 < left < to_come:
        raise BadInputError(
            f"total={budget.total!r} with horizon={budget.horizon!r}: after a warm-up of {T0} the "
            f"rest of the total must cover some, but not all, of the {max(to_come, 0)} candidates "
            "to come; or give a policy instance with its own beta and warmup"
        )
    return left / to_come


def as_json(more: Mapping[str, Any]) -> dict[str, Any]:
    try:
        settings: dict[str, Any] = json.loads(json.dumps(dict(more), allow_nan=False))
    except (TypeError, ValueError) as e:
        raise BadInputError(f"settings={more!r}: only JSON values can be kept: {e}") from None
    return settings


def max_cost_of(budget: Budget, verifier: object) -> float:
    """The most one verification can cost: what is reserved for it."""
    if budget.unit == "verifications":
        return 1.0
    max_cost = budget.max_cost
    if max_cost is None and budget.unit == "seconds":
        max_cost = getattr(verifier, "max_seconds", None)
    if max_cost is None:
        raise BadInputError(
            f"unit={budget.unit!r}: say what one verification can cost at most, "
            f"Budget(max_cost=...): that much is reserved before it starts"
        )
    return float(max_cost)


def describe(policy: Policy) -> dict[str, Any]:
    """The policy's class and its public plain settings, to recognise it by."""
    kind = type(policy)
    plain = {
        name: value
        for name, value in getattr(policy, "__dict__", {}).items()
        if not name.startswith("_") and isinstance(value, str | int | float | None)
    }
    return {"type": f"{kind.__module__}.{kind.__qualname__}"} | plain
