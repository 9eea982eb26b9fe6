"""The built-in policies, in the order in which tables list them, and how to find one by name.

Those that find errors are in BUILT_IN: tables compare these. `Survey` is the one for the goal
"score".

To add a built-in policy: its file, with the class attributes of `descriptor`, and its line in
BUILT_IN. Other packages add theirs through the entry-point group `gatekeeper.policies`: a class,
or any callable that takes `beta` and, as a keyword, `seed`.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from gatekeeper.budget import Unit
from gatekeeper.errors import BadInputError
from gatekeeper.plug_ins import plug_ins
from gatekeeper.policies.calibrated import Calibrated
from gatekeeper.policies.cst import CST
from gatekeeper.policies.cst_memory import CSTMemory
from gatekeeper.policies.descriptor import Need, PolicyDescriptor
from gatekeeper.policies.hga import HGA
from gatekeeper.policies.mp_adapt import MPAdapt
from gatekeeper.policies.mp_strat import MPStrat
from gatekeeper.policies.oracle import Oracle
from gatekeeper.policies.random import Random
from gatekeeper.policies.score import T0
from gatekeeper.policies.split_conformal import SplitConformal
from gatekeeper.policies.survey import Survey
from gatekeeper.policies.threshold import Threshold
from gatekeeper.protocols import Policy
from gatekeeper.types.values import check_text
from gatekeeper.wording import nearest

__all__ = [
    "DEFAULT_POLICY",
    "built_in",
    "describe_policy",
    "make_policy",
    "policy_names",
    "replay_names",
]

GROUP = "gatekeeper.policies"
BUILT_IN: tuple[Any, ...] = (
    Random,
    Threshold,
    CST,
    CSTMemory,
    MPAdapt,
    MPStrat,
    SplitConformal,
    HGA,
    Oracle,
    Calibrated,
)
# The default of gates, commands and plug-ins: it finds the most errors on average over the streams
# of benchmarks/calibrated.py (docs/calibrated.md has the figures).
DEFAULT_POLICY = Calibrated.name


def built_in() -> list[PolicyDescriptor]:
    """The built-in policies that find errors, those of the paper in its order first."""
    return [PolicyDescriptor.of(policy.name, policy) for policy in BUILT_IN]


def policy_names() -> list[str]:
    """Names of the live policies that find errors, sorted: built-in ones and installed plug-ins."""
    live = {policy.name for policy in built_in() if not policy.replay_only}
    return sorted(live | set(plug_ins(GROUP)))


def replay_names() -> list[str]:
    """Names of the policies that find errors in a replay: built-in ones, then plug-ins."""
    return list(dict.fromkeys([policy.name for policy in BUILT_IN] + sorted(plug_ins(GROUP))))


def describe_policy(name: str) -> PolicyDescriptor:
    """The descriptor of the policy of that name.

    Raises
    ------
    BadInputError
        The name is unknown.
    """
    check_text("policy", name)
    for policy in (*BUILT_IN, Survey):
        if policy.name == name:
            return PolicyDescriptor.of(name, policy)
    if entry := plug_ins(GROUP).get(name):
        return PolicyDescriptor.of(name, entry.load())
    only = {policy.name for policy in built_in() if policy.replay_only}
    live = ", ".join(known for known in replay_names() if known not in only)
    near = nearest(name, replay_names())
    raise BadInputError(
        f"policy {name!r:.80} is unknown: choose one of {live}; in a replay also {', '.join(only)}"
        f"{near and f' ({near})'}"
    )


def make_policy(
    name: str,
    beta: float,
    *,
    horizon: int | None = None,
    warmup: int = T0,
    unit: Unit = "verifications",
    seed: int = 0,
    options: Mapping[str, Any] = MappingProxyType({}),
) -> Policy:
    """The policy of that name, for live use.

    Parameters
    ----------
    name
        One of `policy_names()`, or "survey".
    beta
        Share of the full cost to spend, in (0, 1).
    horizon
        Number of candidates to come, the warm-up included, where it is known. A policy that
        calibrates then does so on half of what follows the warm-up, as in the paper; one that
        paces its spending spends its budget by then.
    warmup
        How many candidates come first and are all verified, at least 1.
    unit
        The budget's.
    seed
        Seed of its draws, at least 0.
    options
        Values for some of its options; the others have its defaults.

    Raises
    ------
    BadInputError
        The name or an option is unknown, or the policy exists in replay only: it needs the labels.
    """
    policy = describe_policy(name)
    if policy.replay_only:
        raise BadInputError(
            f"policy {name!r} knows the labels beforehand: it exists in replay only"
        )
    stream: dict[Need, Any] = {"warmup": warmup, "unit": unit}
    if horizon is not None:
        stream |= {"horizon": horizon, "calibration": max(horizon - warmup, 0) // 2}
    return policy.build(beta, seed=seed, stream=stream, options=options)
