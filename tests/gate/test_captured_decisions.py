"""Decisions for the goal "errors" are those from before there was the goal "score"."""

from __future__ import annotations

import gzip
import json
import runpy
from pathlib import Path
from typing import Any

import pytest

from gatekeeper.policies import built_in

made = runpy.run_path(str(Path(__file__).parent / "captured" / "make.py"))
BUDGETS, POLICIES, decisions = made["BUDGETS"], made["POLICIES"], made["decisions"]
CAPTURED: dict[str, Any] = json.loads(gzip.decompress(made["CAPTURED"].read_bytes()))


def test_every_policy_for_errors_is_captured() -> None:
    assert set(POLICIES) == {policy.name for policy in built_in() if not policy.replay_only}
    assert set(CAPTURED) == {f"{policy}, {budget}" for policy in POLICIES for budget in BUDGETS}


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("policy", POLICIES)
def test_decisions_are_those_of_before(policy: str, budget: str) -> None:
    """Each of them, its reason, and its propensity to the last digits but three."""
    then, now = CAPTURED[f"{policy}, {budget}"], decisions(policy, budget)
    assert [each[:2] for each in now] == [each[:2] for each in then]
    assert [p for *_, p in now] == pytest.approx([p for *_, p in then], rel=1e-13)
    assert {True, False} == {verify for verify, *_ in then}
