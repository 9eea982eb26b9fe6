"""Allocation policies, one per file; `registry` lists them, `descriptor` reads their class
attributes.

Shared parts: the combined score s (`score`), the bases `quantile_policy` and `mirror_prox`, the
rule for candidates without signals (`missing_signal`), the price of the budget (`budget_pacer`).
"""

from gatekeeper.policies.calibrated import Calibrated
from gatekeeper.policies.cst import CST
from gatekeeper.policies.cst_memory import CSTMemory
from gatekeeper.policies.descriptor import Goal, PolicyDescriptor, display_name
from gatekeeper.policies.hga import HGA
from gatekeeper.policies.mp_adapt import MPAdapt
from gatekeeper.policies.mp_strat import MPStrat
from gatekeeper.policies.oracle import Oracle
from gatekeeper.policies.random import Random
from gatekeeper.policies.registry import (
    DEFAULT_POLICY,
    built_in,
    describe_policy,
    make_policy,
    policy_names,
    replay_names,
)
from gatekeeper.policies.score import T0
from gatekeeper.policies.split_conformal import SplitConformal
from gatekeeper.policies.survey import Survey
from gatekeeper.policies.threshold import Threshold

__all__ = [
    "CST",
    "DEFAULT_POLICY",
    "HGA",
    "T0",
    "CSTMemory",
    "Calibrated",
    "Goal",
    "MPAdapt",
    "MPStrat",
    "Oracle",
    "PolicyDescriptor",
    "Random",
    "SplitConformal",
    "Survey",
    "Threshold",
    "built_in",
    "describe_policy",
    "display_name",
    "make_policy",
    "policy_names",
    "replay_names",
]
