"""The conformance suites: gatekeeper's own parts pass them, broken parts do not."""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gatekeeper import (
    CST,
    HGA,
    AsyncVerifier,
    Calibrated,
    Candidate,
    Decision,
    Outcome,
    Policy,
    Random,
    Reason,
    Threshold,
    Verdict,
    Verifier,
)
from gatekeeper.policies import make_policy, policy_names
from gatekeeper.testing import (
    AsyncScriptedVerifier,
    ScriptedVerifier,
    check_policy,
    check_verifier,
    make_candidates,
    make_generation,
)

POLICIES: dict[str, Callable[[], Policy]] = {
    "random": lambda: Random(0.2, seed=1),
    "random without warm-up": lambda: Random(0.7, warmup=0),
    "threshold": lambda: Threshold(0.2),
    "threshold, warm-up of 1": lambda: Threshold(0.5, warmup=1),
    "threshold, missing verified": lambda: Threshold(0.1, on_missing="verify"),
    "threshold, warm-up beyond the middle": lambda: Threshold(0.1, warmup=200),
    "cst": lambda: CST(0.2, seed=2),
    "cst, 1 stratum": lambda: CST(0.3, strata=1),
    "cst, 8 strata": lambda: CST(0.9, strata=8, warmup=20, on_missing="skip"),
    "calibrated": lambda: Calibrated(0.2),
    "calibrated, to a horizon": lambda: Calibrated(0.4, horizon=220, seed=7),
    "calibrated, for precision": lambda: Calibrated(
        0.6, objective="precision", warmup=20, on_missing="skip"
    ),
    "hga, still calibrating": lambda: HGA(0.2),
    "hga, judged in the middle": lambda: HGA(0.3, calibration=100, seed=3),
    "hga, judged at once": lambda: HGA(0.2, calibration=0),
    "hga, labels in full": lambda: HGA(0.2, calibration=60, labels="full"),
    "hga, judging on": lambda: HGA(0.5, calibration=20, warmup=30, test="heterogeneity", alpha=0.9),
    "hga, always open": lambda: HGA(0.5, calibration=90, epsilon_h=0.0, epsilon_p=0.0),
}


@pytest.mark.parametrize("name", POLICIES)
def test_our_policies_keep_the_contract(name: str) -> None:
    make = POLICIES[name]
    assert isinstance(make(), Policy)
    check_policy(make, n=220, seed=4)


@pytest.mark.parametrize("name", ["calibrated", "cst", "hga", "random", "threshold"])
def test_policies_by_name_keep_the_contract(name: str) -> None:
    assert name in policy_names()
    check_policy(lambda: make_policy(name, 0.2, horizon=200, seed=5), n=200)


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("when", [0, 30, 130])
def test_a_state_is_a_snapshot(name: str, when: int) -> None:
    """The value of `state()` does not change while the policy goes on, so that it can serve as a
    checkpoint. Restoring from it, JSON or not, continues exactly."""
    candidates = make_candidates(240, seed=6, missing=0.1)
    policy = POLICIES[name]()

    def go_on(policy: Policy, candidates: list[Candidate]) -> list[Decision]:
        decisions = []
        for i, candidate in enumerate(candidates):
            decision = policy.decide(candidate)
            decisions.append(decision)
            if decision.verify:
                verdict = Verdict.FAILED if i % 3 == 0 else Verdict.PASSED
                policy.update(candidate, decision, Outcome(verdict, cost=1.0))
        return decisions

    go_on(policy, candidates[:when])
    state = policy.state()
    text = json.dumps(state)
    went_on = go_on(policy, candidates[when:])
    assert json.dumps(state) == text
    for snapshot in (state, json.loads(text)):
        other = POLICIES[name]()
        other.restore(snapshot)
        assert repr(go_on(other, candidates[when:])) == repr(went_on)


class Sound:
    """Verifies every third candidate; each broken policy below changes one thing."""

    phase = "steady"

    def __init__(self) -> None:
        self.count = 0

    def decide(self, candidate: Candidate) -> Any:
        self.count += 1
        verify = self.count % 3 == 0
        return Decision(verify, Reason.POLICY, propensity=float(verify))

    def update(self, candidate: Candidate, decision: Decision, outcome: Outcome) -> None:
        pass

    def state(self) -> dict[str, Any]:
        return {"count": self.count}

    def restore(self, state: dict[str, Any]) -> None:
        self.count = state["count"]


class NotRepeatable(Sound):
    """Shares a generator of random numbers between instances, like a global one."""

    shared = itertools.count()

    def decide(self, candidate: Candidate) -> Any:
        return replace(super().decide(candidate), verify=next(self.shared) % 7 == 0)


class StateForgets(Sound):
    def state(self) -> dict[str, Any]:
        return {}

    def restore(self, state: dict[str, Any]) -> None:
        pass


class RestoreForgets(Sound):
    def restore(self, state: dict[str, Any]) -> None:
        pass


class StateIsNotJSON(Sound):
    def state(self) -> dict[str, Any]:
        return {"count": np.int64(self.count)}


class LearnsOutsideItsState(Sound):
    """Learns, and leaves what it learned out of its state."""

    learned = 0

    def decide(self, candidate: Candidate) -> Any:
        decision = super().decide(candidate)
        return replace(decision, verify=decision.verify or self.learned % 5 == 1)

    def update(self, candidate: Candidate, decision: Decision, outcome: Outcome) -> None:
        self.learned += 1


class Surer(Sound):
    def decide(self, candidate: Candidate) -> Any:
        return replace(super().decide(candidate), propensity=1.2)


class LessThanNever(Sound):
    def decide(self, candidate: Candidate) -> Any:
        return replace(super().decide(candidate), propensity=-0.2)


class NoPropensity(Sound):
    def decide(self, candidate: Candidate) -> Any:
        return replace(super().decide(candidate), propensity=float("nan"))


class ReturnsNone(Sound):
    def decide(self, candidate: Candidate) -> Any:
        return None


class ReturnsBool(Sound):
    def decide(self, candidate: Candidate) -> Any:
        return super().decide(candidate).verify


class NumpyBool(Sound):
    def decide(self, candidate: Candidate) -> Any:
        decision = super().decide(candidate)
        return replace(decision, verify=np.bool_(decision.verify))


class FreeReason(Sound):
    def decide(self, candidate: Candidate) -> Any:
        return replace(super().decide(candidate), reason="because")


BROKEN = Sound.__subclasses__()


def test_a_sound_policy_passes() -> None:
    check_policy(Sound, n=62)


@pytest.mark.parametrize("broken", BROKEN)
def test_a_broken_policy_fails(broken: type) -> None:
    """With AssertionError, as `check_policy` says: pytest then reports a failure, not an error."""
    with pytest.raises(AssertionError):
        check_policy(broken, n=62)


class NeedsLabelsInOrder(Sound):
    """Assumes that each label follows its decision at once."""

    def __init__(self) -> None:
        super().__init__()
        self.last = ""

    def decide(self, candidate: Candidate) -> Any:
        self.last = candidate.id
        return super().decide(candidate)

    def update(self, candidate: Candidate, decision: Decision, outcome: Outcome) -> None:
        assert candidate.id == self.last

    def state(self) -> dict[str, Any]:
        return {"count": self.count, "last": self.last}

    def restore(self, state: dict[str, Any]) -> None:
        self.count, self.last = state["count"], state["last"]


class NeedsSignals(Sound):
    """Assumes that every candidate has signals."""

    def decide(self, candidate: Candidate) -> Any:
        assert candidate.signals.h1 >= 0.0
        return super().decide(candidate)


@pytest.mark.parametrize("broken", [NeedsLabelsInOrder, NeedsSignals])
def test_a_policy_with_a_wrong_assumption_fails(broken: type) -> None:
    with pytest.raises(AssertionError):
        check_policy(broken, n=62)


# -- verifiers ------------------------------------------------------------------------------------

EXAMPLES = [
    (make_generation("right"), None, Verdict.PASSED),
    (make_generation("wrong"), None, Verdict.FAILED),
    (make_generation("unknown"), {"tests": []}, Verdict.INFRA_ERROR),
    *((make_generation(f"more{i}"), i, Verdict.PASSED) for i in range(8)),
]
LABELS: dict[str, Any] = {"wrong": 1, "unknown": None}


@pytest.mark.parametrize("cls", [ScriptedVerifier, AsyncScriptedVerifier])
def test_the_scripted_verifiers_keep_the_contract(cls: type) -> None:
    verifier = cls(LABELS, cost=0.25, delay=0.002)
    assert isinstance(verifier, Verifier)
    assert isinstance(verifier, AsyncVerifier) == (cls is AsyncScriptedVerifier)
    check_verifier(verifier, EXAMPLES)
    assert len(verifier.calls) == 2 * len(EXAMPLES)
    assert verifier.most_at_once > 1
    assert verifier.verify(EXAMPLES[1][0], None) == Outcome(
        Verdict.FAILED, cost=0.25, seconds=0.002
    )


def test_a_verifier_with_only_averify_is_checked_through_it() -> None:
    class OnlyAsync:
        def __init__(self, labels: dict[str, Any]) -> None:
            self.inner = AsyncScriptedVerifier(labels)

        async def averify(self, generation: Any, task: Any) -> Outcome:
            return await self.inner.averify(generation, task)

    check_verifier(OnlyAsync(LABELS), EXAMPLES)
    with pytest.raises(AssertionError, match="unknown"):
        check_verifier(OnlyAsync({"wrong": 1}), EXAMPLES)


def test_a_scripted_verifier_raises_what_it_is_told_and_goes_on() -> None:
    verifier = ScriptedVerifier({"dead": ConnectionError("no daemon")})
    with pytest.raises(ConnectionError, match="no daemon"):
        verifier.verify(make_generation("dead"), None)
    check_verifier(verifier, EXAMPLES[:1])


class Spoilt(ScriptedVerifier):
    """Returns each outcome as `spoil` changes it."""

    def __init__(self, spoil: Callable[[Outcome, int], Any]) -> None:
        super().__init__(LABELS)
        self.spoil = spoil
        self.count = itertools.count()

    def verify(self, generation: Any, task: Any) -> Any:
        return self.spoil(super().verify(generation, task), next(self.count))


SPOILT: dict[str, Callable[[Outcome, int], Any]] = {
    "calls an outage a wrong answer": lambda o, i: (
        replace(o, verdict=Verdict.FAILED) if o.error is None else o
    ),
    "calls everything right": lambda o, i: replace(o, verdict=Verdict.PASSED),
    "changes its mind": lambda o, i: replace(o, verdict=Verdict.PASSED) if i > 10 else o,
    "returns a bool": lambda o, i: o.error == 0,
    "returns None": lambda o, i: None,
    "says it in a string": lambda o, i: replace(o, verdict="correct"),
    "took less than no time": lambda o, i: replace(o, seconds=-1.0),
    "keeps objects in meta": lambda o, i: replace(o, meta={"lock": threading.Lock()}),
}


@pytest.mark.parametrize("name", SPOILT)
def test_a_broken_verifier_fails(name: str) -> None:
    """With AssertionError, as `check_verifier` says."""
    with pytest.raises(AssertionError):
        check_verifier(Spoilt(SPOILT[name]), EXAMPLES)
