"""What a gate is given: checked, and in the form that its log remembers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, get_args

from gatekeeper.budget import Budget
from gatekeeper.errors import BadInputError
from gatekeeper.policies import T0, make_policy
from gatekeeper.protocols import AsyncVerifier, ObservingPolicy, Policy, Verifier

__all__ = [
    "OnDrift",
    "OnUnavailable",
    "as_json",
    "chance_of",
    "check_arguments",
    "describe",
    "max_cost_of",
    "named_policy",
    "relearning_rate",
]

OnUnavailable = Literal["raise", "pass"]
OnDrift = Literal["relearn", "report"]
ANY_RATE = 0.5  # of a policy whose wishes decide nothing, everything being verified


def check_arguments(
    policy: object,
    budget: object,
    verifier: object,
    log: object,
    on_unavailable: object,
    workers: object,
    seed: object,
    explore: object,
    prompt_template: object,
    on_drift: object,
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
    if isinstance(explore, bool) or not isinstance(explore, int | float) or not 0 <= explore < 1:
        raise BadInputError(
            f"explore={explore!r}: the share of the budget to draw at random lies in [0, 1), for "
            "example 0.1"
        )
    if not isinstance(prompt_template, str | None):
        raise BadInputError(f"prompt_template={prompt_template!r:.80}: give its text, or None")
    if on_drift not in get_args(OnDrift):
        raise BadInputError(f"on_drift={on_drift!r}: choose 'relearn' or 'report'")


def chance_of(budget: Budget, explore: float) -> float:
    """ε: with what probability a candidate after the warm-up is drawn whatever the policy says.

    `explore` times β where the budget says β. A total without a horizon does not: it is used up
    somewhere, and what comes after has no chance anyway. At a fraction of 1 everything is drawn.
    """
    if budget.fraction == 1.0:
        return 1.0
    return explore * (_beta(budget) or 0.0)


def named_policy(name: str, budget: Budget, chance: float, seed: int) -> Policy:
    """A policy that, with draws of probability `chance` beside it, spends the budget's rate β.

    One that hears what is verified sees the draws' spending too, and makes up for it: it gets β.
    Any other gets what the draws leave.
    """
    beta = _rate(budget, name)
    if beta == 1.0:
        return make_policy(name, ANY_RATE, horizon=budget.horizon, seed=seed)
    policy = make_policy(name, beta, horizon=budget.horizon, seed=seed)
    if isinstance(policy, ObservingPolicy) or not chance:
        return policy
    left = _beside(beta, chance)
    return make_policy(name, left, horizon=budget.horizon, seed=seed)


def relearning_rate(budget: Budget, chance: float) -> float | None:
    """With what probability to draw, beside draws of probability `chance`, so that β is spent;
    None where the budget does not say β."""
    beta = _beta(budget)
    return beta if beta in (None, 1.0) else _beside(beta, chance)


def _beside(beta: float, chance: float) -> float:
    """p of 1 - (1 - ε)(1 - p) = β."""
    return (beta - chance) / (1.0 - chance)


def _rate(budget: Budget, policy: str) -> float:
    beta = _beta(budget)
    if beta is not None:
        return beta
    if budget.total is None or budget.horizon is None or budget.unit != "verifications":
        raise BadInputError(
            f"policy={policy!r} needs a rate: give Budget(fraction=...), or a total of "
            "verifications with horizon=..., or a policy instance with its own beta"
        )
    raise BadInputError(
        f"total={budget.total!r} with horizon={budget.horizon!r}: after a warm-up of {T0} the "
        f"rest of the total must cover some, but not all, of the {max(budget.horizon - T0, 0)} "
        "candidates to come; or give a policy instance with its own beta and warmup"
    )


def _beta(budget: Budget) -> float | None:
    """The share of the candidates after the warm-up to verify, where the budget says it."""
    if budget.fraction is not None:
        return budget.fraction
    if budget.total is None or budget.horizon is None or budget.unit != "verifications":
        return None
    left, to_come = budget.total - T0, budget.horizon - T0
    return left / to_come if 0 < left < to_come else None


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
