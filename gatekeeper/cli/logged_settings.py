"""The settings of a gate in its log: its policy and its goal."""

from __future__ import annotations

from collections.abc import Mapping
from inspect import signature
from pathlib import Path
from typing import Any

from gatekeeper import policies
from gatekeeper.analysis.policy_run import Contender
from gatekeeper.errors import BadInputError
from gatekeeper.io.records import is_log
from gatekeeper.log import PostgresRun, open_log
from gatekeeper.policies import describe_policy

__all__ = ["is_for_score", "own_policy", "settings_of"]


def settings_of(path: Path | PostgresRun) -> Mapping[str, Any] | None:
    """The settings in a run's log; None for a file of records."""
    if not is_log(path):
        return None
    with open_log(path, read_only=True) as log:
        if settings := log.settings():
            return settings
    raise BadInputError(f"log {path} has no run in it yet: give the log of a run that has begun")


def own_policy(settings: Mapping[str, Any]) -> Contender | None:
    """The log's policy, with the options that differ from its defaults; None for a policy from
    elsewhere, and for the goal "score"."""
    logged = settings.get("policy", {})
    module, _, kind = str(logged.get("type", "")).rpartition(".")
    if not module.startswith("gatekeeper.policies."):
        return None
    name = getattr(getattr(policies, kind, None), "name", None)
    if name not in policies.policy_names():
        return None
    described = describe_policy(name)
    usual = signature(described.make).parameters
    given = {option: logged[option] for option in described.options if option in logged}
    return Contender(name, {o: v for o, v in given.items() if v != usual[o].default})


def is_for_score(settings: Mapping[str, Any]) -> bool:
    """Whether the gate's goal was "score"."""
    return bool(settings.get("more", {}).get("goal") == "score")
