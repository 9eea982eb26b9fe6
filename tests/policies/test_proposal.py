"""A policy of one's own may return anything: what a log cannot keep is refused or converted."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import nan
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gatekeeper import Budget, Candidate, Decision, Outcome, Reason, VerificationGate
from gatekeeper.analysis.replay import replay
from gatekeeper.errors import BadInputError
from gatekeeper.paper.stress import make_stream
from gatekeeper.policies.proposal import checked_proposal
from gatekeeper.testing import make_generation


@dataclass
class Proposes:
    """Every candidate gets the same proposal."""

    _proposal: Any
    phase: str = field(default="steady", init=False)

    def decide(self, candidate: Candidate) -> Decision:
        proposal: Decision = self._proposal
        return proposal

    def update(self, candidate: Candidate, decision: Decision, outcome: Outcome) -> None:
        pass

    def state(self) -> dict[str, Any]:
        return {}

    def restore(self, state: dict[str, Any]) -> None:
        pass


def proposal(**values: Any) -> Decision:
    return Decision(**{"verify": True, "reason": Reason.POLICY} | values)


REFUSED = [
    (None, "None is no Decision"),
    (True, "True is no Decision"),
    (proposal(verify=1), "verify=1:"),
    (proposal(reason="policy"), "reason='policy':"),
    (proposal(propensity=nan), "propensity=nan:"),
    (proposal(propensity=2), "propensity=2.0:"),
    (proposal(propensity=-0.1), "propensity=-0.1:"),
    (proposal(score="high"), "score='high':"),
    (proposal(stratum=0.5), "stratum=0.5:"),
    (proposal(version=None), "version=None:"),
]


@pytest.mark.parametrize(("given", "why"), REFUSED, ids=[why for _, why in REFUSED])
def test_a_decision_that_cannot_be_used_is_refused(given: Any, why: str, tmp_path: Path) -> None:
    log = tmp_path / "run.db"
    gate = VerificationGate(Proposes(given), budget=Budget(total=5), log=log)
    with gate, pytest.raises(BadInputError, match=f"^id='a': the policy's decision .*{why}"):
        gate.maybe_verify(make_generation("a"))
    with pytest.raises(BadInputError, match=why):
        replay(list(make_stream("usual", 300, 0)), Proposes(given), 0.2)


def test_numbers_of_numpy_are_kept_as_pythons(tmp_path: Path) -> None:
    given = proposal(
        verify=np.bool_(True),
        score=np.float32(0.5),
        threshold=np.float64(0.25),
        propensity=1,
        stratum=np.int64(3),
        version=np.int32(7),
    )
    kept = proposal(score=0.5, threshold=0.25, propensity=1.0, stratum=3, version=7)
    log = tmp_path / "run.db"
    for _ in range(2):  # decided, then read from the log
        with VerificationGate(Proposes(given), budget=Budget(total=5), log=log) as gate:
            decision = gate.maybe_verify(make_generation("a")).decision
        assert repr(decision) == repr(kept)


def test_a_usual_decision_is_passed_on_as_it_is() -> None:
    usual = proposal(score=0.5, threshold=0.25, propensity=0.5, stratum=3, version=7)
    assert checked_proposal(usual, "a") is usual


@pytest.mark.parametrize("phase", [None, 3, b"steady"])
def test_a_phase_that_is_no_string_is_refused(phase: Any, tmp_path: Path) -> None:
    policy = Proposes(proposal())
    policy.phase = phase
    gate = VerificationGate(policy, budget=Budget(total=5), log=tmp_path / "run.db")
    with (
        gate,
        pytest.raises(BadInputError, match=f"^id='a': the policy's phase .*phase={phase!r}:"),
    ):
        gate.maybe_verify(make_generation("a"))
