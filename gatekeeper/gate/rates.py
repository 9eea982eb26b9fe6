"""The rates at which a gate verifies, from its budget: the policy's and those of uniform draws.

β is the share of the candidates after the warm-up that the budget pays for, ε the probability of a
uniform draw beside the policy.
"""

from __future__ import annotations

from functools import partial

from gatekeeper.budget import Budget
from gatekeeper.errors import BadInputError
from gatekeeper.policies import T0, make_policy
from gatekeeper.protocols import ObservingPolicy, Policy

__all__ = ["exploration_rate", "named_policy", "rate_of", "relearning_rate"]

ANY_RATE = 0.5  # of a policy whose proposals have no effect, because everything is verified


def exploration_rate(budget: Budget, explore: float, *, warmup: int = T0) -> float:
    """ε: probability with which a candidate after the warm-up is drawn, independent of the policy.

    `explore` times β where the budget has a rate β. A total without a horizon has none: it is used
    up at some point, and later outputs cannot be verified anyway. At a fraction of 1 everything is
    drawn.
    """
    if budget.fraction == 1.0:
        return 1.0
    return explore * (rate_of(budget, warmup) or 0.0)


def named_policy(
    name: str, budget: Budget, epsilon: float, seed: int, *, warmup: int = T0
) -> Policy:
    """A policy that, together with draws of probability `epsilon`, spends the budget's rate β.

    An observing policy is informed of the draws and compensates for them: it gets β. Any other gets
    the rest.
    """
    make = partial(
        make_policy, name, horizon=budget.horizon, warmup=warmup, unit=budget.unit, seed=seed
    )
    beta = _needed_rate(budget, name, warmup)
    if beta == 1.0:
        return make(ANY_RATE)
    policy = make(beta)
    if isinstance(policy, ObservingPolicy) or not epsilon:
        return policy
    return make(_rate_beside(beta, epsilon))


def relearning_rate(budget: Budget, epsilon: float, *, warmup: int = T0) -> float | None:
    """Probability with which to draw, in addition to draws of probability `epsilon`, so that β is
    spent; None where the budget has no rate.
    """
    beta = rate_of(budget, warmup)
    return beta if beta in (None, 1.0) else _rate_beside(beta, epsilon)


def _rate_beside(beta: float, epsilon: float) -> float:
    """p of 1 - (1 - ε)(1 - p) = β: what draws of probability ε leave of β; at ε = 1 any p does."""
    if epsilon == 1.0:
        return beta
    return (beta - epsilon) / (1.0 - epsilon)


def rate_of(budget: Budget, warmup: int) -> float | None:
    """β, the share of the candidates after the warm-up to verify; None where there is none."""
    planned = _planned_total(budget)
    if planned is None:
        return budget.fraction
    total, horizon = planned
    if budget.fraction is not None:
        return budget.fraction if warmup else min(budget.fraction, total / horizon)
    left, to_come = total - warmup, horizon - warmup
    return left / to_come if 0 < left < to_come else None


def _needed_rate(budget: Budget, policy: str, warmup: int) -> float:
    beta = rate_of(budget, warmup)
    if beta is not None:
        return beta
    planned = _planned_total(budget)
    if planned is None:
        raise BadInputError(
            f"policy={policy!r} needs a rate: give Budget(fraction=...), or a total of "
            "verifications with horizon=..., or a policy instance with its own beta"
        )
    total, horizon = planned
    raise BadInputError(
        f"total={total!r} with horizon={horizon!r}: after a warm-up of {warmup} the "
        f"rest of the total must cover some, but not all, of the {max(horizon - warmup, 0)} "
        "candidates to come; or give a policy instance with its own beta and warmup"
    )


def _planned_total(budget: Budget) -> tuple[float, int] | None:
    """A total of verifications and the number of outputs that it is for; None without both."""
    if budget.total is None or budget.horizon is None or budget.unit != "verifications":
        return None
    return budget.total, budget.horizon
