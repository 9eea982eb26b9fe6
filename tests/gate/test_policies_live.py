"""The learning policies behind a gate: verdicts late, out of order or never, and a kill between."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gatekeeper import (
    HGA,
    BadInputError,
    Budget,
    Calibrated,
    CSTMemory,
    GateResult,
    Generation,
    MPAdapt,
    MPStrat,
    Outcome,
    Policy,
    Random,
    Reason,
    SplitConformal,
    Verdict,
    VerificationGate,
)
from gatekeeper.errors import VerifierUnavailableError
from gatekeeper.testing import ScriptedVerifier, make_candidates, make_generation

BETA = 0.3
WARMUP = 20
POLICIES: dict[str, Callable[[], Policy]] = {
    "mp-adapt": lambda: MPAdapt(BETA, warmup=WARMUP, extragradient=True),
    "mp-strat": lambda: MPStrat(BETA, warmup=WARMUP),
    "calibrated": lambda: Calibrated(BETA, warmup=WARMUP),
    "cst-memory": lambda: CSTMemory(BETA, warmup=WARMUP),
    "split-conformal": lambda: SplitConformal(BETA, warmup=WARMUP, calibration=50),
    "split-conformal, too few": lambda: SplitConformal(BETA, warmup=WARMUP, calibration=4),
}
ROOMY = Budget(total=1e6, unit="seconds", max_cost=100.0)


def stream(n: int = 200, *, missing: bool = True) -> list[Generation]:
    """Outputs of many lengths and prompts; one in eleven has no signal, if `missing`."""
    rng = np.random.default_rng(5)
    sizes = rng.integers((1, 5), (40, 200), size=(n, 2)).tolist()
    return [
        make_generation(
            f"g{i}",
            seed=i,
            tokens=0 if missing and i % 11 == 5 else tokens,
            prompt_tokens=prompt,
        )
        for i, (tokens, prompt) in enumerate(sizes)
    ]


def outcome_of(id_: str) -> Outcome:
    """A verdict and a cost in seconds that depend on the id alone."""
    rng = np.random.default_rng(int(id_[1:]))
    verdict = Verdict.FAILED if rng.random() < 0.4 else Verdict.PASSED
    return Outcome(verdict, cost=float(rng.uniform(0.5, 20.0)))


def gate_of(policy: Policy, log: Path | None = None, **more: Any) -> VerificationGate:
    return VerificationGate(policy, **{"budget": ROOMY, "log": log} | more)


def state_of(gate: VerificationGate) -> str:
    """To the last bit: JSON writes floats so that they read back equal."""
    return json.dumps(gate.policy.state(), sort_keys=True)


class Haphazard:
    """Hands outputs to a gate that only decides; verdicts come late, out of order, or never."""

    def __init__(self) -> None:
        self.rng = np.random.default_rng(8)
        self.waiting: list[str] = []

    def go(self, gate: VerificationGate, outputs: list[Generation]) -> list[GateResult]:
        results = []
        for output in outputs:
            results.append(gate.maybe_verify(output, force=self.rng.random() < 0.05))
            if results[-1].decision.verify:
                self.waiting.append(output.id)
            while self.waiting and self.rng.random() < 0.3:
                id_ = self.waiting.pop(int(self.rng.integers(len(self.waiting))))
                fate = self.rng.random()
                if fate < 0.2:
                    gate.report_outcome(id_, Verdict.INFRA_ERROR)
                elif fate < 0.9:  # else the verdict never comes
                    gate.report_outcome(id_, outcome_of(id_))
        return results


@pytest.mark.parametrize("cut", [7, 20, 63, 150])
@pytest.mark.parametrize("name", POLICIES)
def test_a_killed_run_resumes_as_an_uninterrupted_one(name: str, cut: int, tmp_path: Path) -> None:
    """In the warm-up, at its end, in a calibration, and after: the same decisions and state."""
    whole, halves = Haphazard(), Haphazard()
    with gate_of(POLICIES[name]()) as gate:
        expected = [r.decision for r in whole.go(gate, stream())]
        at_end = state_of(gate)
    assert {d.reason for d in expected} >= {Reason.WARMUP, Reason.FORCED, Reason.MISSING_SIGNAL}
    log = tmp_path / "run.db"
    with gate_of(POLICIES[name](), log) as gate:
        got = [r.decision for r in halves.go(gate, stream()[:cut])]
    with gate_of(POLICIES[name](), log) as gate:
        got += [r.decision for r in halves.go(gate, stream()[cut:])]
        assert state_of(gate) == at_end
    assert repr(got) == repr(expected)


@pytest.mark.parametrize("when", [0, 10, WARMUP, 60, 110])
@pytest.mark.parametrize("name", POLICIES)
def test_a_state_in_mid_stream_goes_on_elsewhere(name: str, when: int) -> None:
    """Through JSON, with pending verdicts, missing signals and thresholds of +∞."""
    one, two = POLICIES[name](), POLICIES[name]()
    candidates = make_candidates(160, seed=4, missing=0.1)
    open_: list[Any] = []

    def go(policy: Policy, part: slice, rng: np.random.Generator, waiting: list[Any]) -> list[str]:
        said = []
        for candidate in candidates[part]:
            decision = policy.decide(candidate)
            if hasattr(policy, "observe"):
                policy.observe(candidate, decision)
            said.append(repr(decision))
            if decision.verify:
                waiting.append((candidate, decision))
            while waiting and rng.random() < 0.4:
                first = waiting.pop(int(rng.integers(len(waiting))))
                policy.update(*first, outcome_of(first[0].id))
        return said

    go(one, slice(when), np.random.default_rng(2), open_)
    two.restore(json.loads(json.dumps(one.state())))
    ahead = list(open_)
    rest = slice(when, None)
    assert go(one, rest, np.random.default_rng(3), open_) == go(
        two, rest, np.random.default_rng(3), ahead
    )
    assert json.dumps(one.state()) == json.dumps(two.state())


@pytest.mark.parametrize("order", ["at once", "in order", "backwards", "shuffled"])
@pytest.mark.parametrize("kind", [MPAdapt, MPStrat])
def test_late_verdicts_leave_the_price_where_prompt_ones_would(
    kind: type[MPAdapt | MPStrat], order: str
) -> None:
    """λ has moved by Σ η_λ (c' - β), whatever the order in which the true costs come in.

    All are verified, and each costs more than β of the mean, so that no price meets its floor.
    """
    gate = gate_of(kind(BETA, warmup=WARMUP))
    outputs = stream(WARMUP + 60, missing=False)
    for output in outputs[:WARMUP]:
        gate.maybe_verify(output)
        gate.report_outcome(output.id, Outcome(Verdict.FAILED, cost=8.0))
    twin = kind(BETA, warmup=WARMUP)
    twin.restore(gate.policy.state())
    twin.decide(make_candidates(1)[0])  # the first decision sets the prices
    start = np.array(twin.state()["price"])

    costs = np.random.default_rng(6).uniform(4.0, 20.0, 60)
    late, strata = [], []
    for output, cost in zip(outputs[WARMUP:], costs.tolist(), strict=True):
        strata.append(gate.maybe_verify(output, force=True).decision.stratum or 0)
        late.append((output.id, Outcome(Verdict.FAILED, cost=cost)))
        if order == "at once":
            gate.report_outcome(*late.pop())
    turn = {"backwards": range(59, -1, -1), "shuffled": np.random.default_rng(1).permutation(60)}
    for i in turn.get(order, range(len(late))):
        gate.report_outcome(*late[i])
    moved = np.bincount(strata, 0.25 * BETA * (costs / 8.0 - BETA), minlength=start.size)
    assert gate.policy.state()["price"] == pytest.approx((start + moved).tolist())


@pytest.mark.parametrize("kind", [MPAdapt, MPStrat])
def test_without_a_verdict_in_the_warm_up_prices_do_not_depend_on_the_unit(
    kind: type[MPAdapt | MPStrat],
) -> None:
    """All verdicts come after the warm-up: costs in seconds or milliseconds decide alike."""

    def run(unit: float) -> list[bool]:
        gate = gate_of(
            kind(BETA, warmup=WARMUP), budget=Budget(total=1e9, unit="usd", max_cost=1e5)
        )
        outputs, got = stream(), []
        for i, output in enumerate(outputs):
            got.append(gate.maybe_verify(output).decision.verify)
            if i >= 30 and got[i - 30]:
                outcome = outcome_of(outputs[i - 30].id)
                assert outcome.cost is not None
                gate.report_outcome(
                    outputs[i - 30].id, Outcome(outcome.verdict, cost=unit * outcome.cost)
                )
        return got

    wanted = run(1.0)
    assert run(1000.0) == wanted
    assert {*wanted[WARMUP:]} == {True, False}


@pytest.mark.parametrize("name", POLICIES)
def test_a_verifier_that_could_not_tell_teaches_once_it_can(name: str) -> None:
    """Released verifications are no labels; handed in again, each is learned from once."""
    down = {f"g{i}": None for i in range(0, 200, 3)}
    verifier = ScriptedVerifier(down, cost=1.0)
    gate = gate_of(POLICIES[name](), verifier=verifier)
    outputs, failed, learned = stream(), [], 0
    for output in outputs:
        try:
            learned += gate.maybe_verify(output).verified
        except VerifierUnavailableError:
            failed.append(output)
    assert failed
    assert gate.policy.state()["labels"] == learned
    verifier.labels = {}
    for output in failed:
        assert gate.maybe_verify(output).verified
    assert gate.policy.state()["labels"] == learned + len(failed)
    assert gate.pending() == []
    assert not gate.policy.state().get("open")  # nothing is kept of what is settled


@pytest.mark.parametrize("epsilon", [float("nan"), -0.1, float("inf")])
def test_the_gate_of_hga_asks_for_at_least_nothing(epsilon: float) -> None:
    """An ε that could never be reached, or never be missed, is refused."""
    for name in ("epsilon_h", "epsilon_p"):
        with pytest.raises(BadInputError, match=f"{name}={epsilon}"):
            HGA(BETA, **{name: epsilon})


@pytest.mark.parametrize("kind", [HGA, MPAdapt, Random, SplitConformal])
def test_a_seed_makes_a_run_repeatable_or_is_refused(kind: Callable[..., Policy]) -> None:
    for seed in (-1, None, 0.5):
        with pytest.raises(BadInputError, match=f"seed={seed}"):
            kind(BETA, seed=seed)


def test_split_conformal_verifies_nothing_while_it_calibrates() -> None:
    """Its decisions there say so: calibration, propensity 0; then thresholds are fixed."""
    gate = gate_of(POLICIES["split-conformal"](), verifier=ScriptedVerifier(cost=1.0))
    decisions = [gate.maybe_verify(output).decision for output in stream()]
    calibration, after = decisions[WARMUP : WARMUP + 50], decisions[WARMUP + 50 :]
    assert {(d.reason, d.verify, d.propensity) for d in calibration} == {
        (Reason.CALIBRATION, False, 0.0)
    }
    by_stratum = {(d.stratum, d.threshold) for d in after if d.reason is Reason.POLICY}
    assert len(by_stratum) == 4


@pytest.mark.parametrize("value", [float("nan"), float("inf"), np.float64("-inf")])
def test_a_setting_that_no_log_keeps_is_refused(value: float, tmp_path: Path) -> None:
    """NaN is not equal to itself: the same policy would not continue its own log."""
    policy = Random(BETA)
    policy.limit = value  # type: ignore[attr-defined]
    with pytest.raises(BadInputError, match=r"policy Random has limit=.*call the attribute _limit"):
        VerificationGate(policy, budget=Budget(fraction=BETA), log=tmp_path / "a.db")
    assert not (tmp_path / "a.db").exists()
    del policy.limit  # type: ignore[attr-defined]
    policy._limit = value  # type: ignore[attr-defined]
    VerificationGate(policy, budget=Budget(fraction=BETA), log=tmp_path / "a.db").close()
