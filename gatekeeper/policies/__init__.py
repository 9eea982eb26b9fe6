"""Allocation policies, one per file, and how to find one by name.

Other packages add theirs through the entry-point group `gatekeeper.policies`: a callable that
takes `beta` and, as keywords, `seed`.
"""

from __future__ import annotations

from importlib.metadata import entry_points

from gatekeeper.errors import BadInputError
from gatekeeper.policies._warmup import T0
from gatekeeper.policies.cst import CST
from gatekeeper.policies.hga import HGA
from gatekeeper.policies.random import Random
from gatekeeper.policies.threshold import Threshold
from gatekeeper.protocols import Policy

__all__ = ["CST", "HGA", "T0", "Random", "Threshold", "make_policy", "policy_names"]

_BUILT_IN = {policy.name: policy for policy in (CST, HGA, Random, Threshold)}


def policy_names() -> list[str]:
    """Names that `make_policy` knows: ours and those of installed plug-ins."""
    return sorted({*_BUILT_IN, *(e.name for e in entry_points(group="gatekeeper.policies"))})


def make_policy(name: str, beta: float, *, horizon: int | None = None, seed: int = 0) -> Policy:
    """The policy of that name with its defaults.

    `horizon`, the number of candidates to come where it is known, sets HGA's calibration to half
    of what follows the warm-up, as in the paper. Raises BadInputError for an unknown name.
    """
    if name == HGA.name and horizon is not None:
        hga = HGA(beta, seed=seed)
        return HGA(beta, calibration=max(horizon - hga.warmup, 0) // 2, seed=seed)
    if name in _BUILT_IN:
        return _BUILT_IN[name](beta, seed=seed)
    for entry in entry_points(group="gatekeeper.policies", name=name):
        policy: Policy = entry.load()(beta, seed=seed)
        return policy
    raise BadInputError(f"policy={name!r} is unknown: choose one of {', '.join(policy_names())}")
