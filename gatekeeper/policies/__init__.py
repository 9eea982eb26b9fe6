"""Allocation policies, one per file, and how to find one by name.

Other packages add theirs through the entry-point group `gatekeeper.policies`: a callable that
takes `beta` and, as keywords, `seed`.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import entry_points

from gatekeeper.errors import BadInputError
from gatekeeper.policies._warmup import T0
from gatekeeper.policies.calibrated import Calibrated
from gatekeeper.policies.cst import CST
from gatekeeper.policies.cst_memory import CSTMemory
from gatekeeper.policies.hga import HGA
from gatekeeper.policies.mp_adapt import MPAdapt
from gatekeeper.policies.mp_strat import MPStrat
from gatekeeper.policies.oracle import Oracle
from gatekeeper.policies.random import Random
from gatekeeper.policies.split_conformal import SplitConformal
from gatekeeper.policies.threshold import Threshold
from gatekeeper.protocols import Policy

__all__ = [
    "CALIBRATING",
    "CST",
    "HGA",
    "T0",
    "CSTMemory",
    "Calibrated",
    "MPAdapt",
    "MPStrat",
    "Oracle",
    "Random",
    "SplitConformal",
    "Threshold",
    "make_policy",
    "policy_names",
]

_BUILT_IN: dict[str, Callable[..., Policy]] = {
    policy.name: policy
    for policy in (
        CST,
        CSTMemory,
        Calibrated,
        HGA,
        MPAdapt,
        MPStrat,
        Random,
        SplitConformal,
        Threshold,
    )
}
CALIBRATING = (HGA.name, SplitConformal.name)  # these spend part of the stream on it


def policy_names() -> list[str]:
    """Names that `make_policy` knows: ours and those of installed plug-ins."""
    return sorted({*_BUILT_IN, *(e.name for e in entry_points(group="gatekeeper.policies"))})


def make_policy(name: str, beta: float, *, horizon: int | None = None, seed: int = 0) -> Policy:
    """The policy of that name with its defaults.

    `horizon`, the number of candidates to come where it is known, sets the calibration of HGA and
    SplitConformal to half of what follows the warm-up, as in the paper; Calibrated paces its
    spending to it. Raises BadInputError for
    an unknown name, and for "oracle", which needs the labels.
    """
    if name == Oracle.name:
        raise BadInputError("policy='oracle' knows the labels beforehand: it exists in replay only")
    if name in CALIBRATING and horizon is not None:
        return _BUILT_IN[name](beta, calibration=max(horizon - T0, 0) // 2, seed=seed)
    if name == Calibrated.name:
        return Calibrated(beta, horizon=horizon, seed=seed)
    if name in _BUILT_IN:
        return _BUILT_IN[name](beta, seed=seed)
    for entry in entry_points(group="gatekeeper.policies", name=name):
        policy: Policy = entry.load()(beta, seed=seed)
        return policy
    raise BadInputError(f"policy={name!r} is unknown: choose one of {', '.join(policy_names())}")
