"""Every policy against the slow reference, and properties that hold on any stream."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import slow_reference as slow
from test_policies import BETAS, METRICS, records_of

from gatekeeper import BadInputError, Candidate, Policy, Reason, Record, Signals
from gatekeeper.analysis.replay import Replay, replay
from gatekeeper.policies import (
    CST,
    HGA,
    T0,
    CSTMemory,
    MPAdapt,
    MPStrat,
    Oracle,
    Random,
    SplitConformal,
    Threshold,
)

STREAMS = [
    *((kind, n, seed) for seed, n in enumerate((52, 60, 120)) for kind in slow.KINDS),
    *((kind, 51, 3) for kind in ("continuous", "ties", "missing", "equal_costs")),
    *((kind, 600, 4) for kind in ("continuous", "few_values_everywhere", "missing_and_partial")),
    *((kind, 600, 5) for kind in ("ties", "heterogeneous", "heavy_tails")),
]


def stream_and_beta(kind: str, n: int, seed: int) -> tuple[slow.Stream, float]:
    """In every other stream the labels that policies see are not the clean ones."""
    which = seed + slow.KINDS.index(kind)
    stream = slow.make_stream(kind, n, seed)
    if which % 2:
        stream = slow.with_noisy_labels(stream, seed)
    return stream, BETAS[which % len(BETAS)]


def policies(stream: slow.Stream, beta: float, *, half: int, seed: int) -> dict[str, Policy]:
    """Fresh ones by the reference's names, with the first `half` after the warm-up for those
    that calibrate on it, and for Random, which draws for evaluated candidates only."""
    return {
        "random": Random(beta, warmup=T0 + half, seed=seed),
        "threshold": Threshold(beta, seed=seed),
        "cst": CST(beta, seed=seed),
        "mp-adapt": MPAdapt(beta, seed=seed),
        "mp-adapt-extragradient": MPAdapt(beta, extragradient=True, seed=seed),
        "mp-strat": MPStrat(beta, seed=seed),
        "cst-memory": CSTMemory(beta, seed=seed),
        "split-conformal": SplitConformal(beta, calibration=half, seed=seed),
        "split-conformal-global": SplitConformal(
            beta, calibration=half, stratified=False, seed=seed
        ),
        "hga": HGA(beta, calibration=half, labels="full", seed=seed),
        "oracle": Oracle(beta, records=records_of(stream)[T0 + half :]),
    }


def assert_follows(got: Replay, expected: slow.Expected) -> None:
    """The same proposals, strata, verifications and metrics; scores up to rounding."""
    assert len(got.decisions) == len(expected.steps)
    for t, (decision, step) in enumerate(zip(got.decisions, expected.steps, strict=True)):
        where = f"candidate {t} of the evaluation: {decision} against {step}"
        assert decision.verify == step.proposal, where
        assert decision.stratum == step.stratum, where
        assert decision.score == pytest.approx(step.score, rel=0, abs=1e-9, nan_ok=True), where
        assert decision.threshold == pytest.approx(
            step.threshold, rel=1e-9, abs=1e-12, nan_ok=True
        ), where
        assert (decision.reason is Reason.MISSING_SIGNAL) == step.missing, where
    assert list(got.verified) == expected.verified
    assert got.budget == pytest.approx(expected.budget, rel=1e-12)
    for name in METRICS:
        assert getattr(got, name) == pytest.approx(
            expected.metrics[name], rel=1e-12, nan_ok=True
        ), name


@pytest.mark.parametrize(("kind", "n", "seed"), STREAMS)
def test_replay_equals_the_slow_reference(kind: str, n: int, seed: int) -> None:
    """Both feedbacks, evaluated whole and on the second half."""
    stream, beta = stream_and_beta(kind, n, seed)
    records, by_name = records_of(stream), slow.all_steps(stream, beta, seed=seed)
    for second_half in (False, True):
        half = (n - T0) // 2 if second_half else 0
        for feedback in ("full", "partial"):
            for name, policy in policies(stream, beta, half=half, seed=seed).items():
                expected = slow.replayed(
                    name,
                    stream,
                    beta,
                    by_name,
                    seed=seed,
                    second_half=second_half,
                    full=feedback == "full",
                )
                got = replay(
                    records,
                    policy,
                    beta,
                    evaluate="second-half" if second_half else "all",
                    feedback=feedback,
                    observed=stream.observed.tolist(),
                )
                assert_follows(got, expected)


@pytest.mark.parametrize("kind", slow.KINDS)
def test_feedback_changes_only_what_learns_from_every_label(kind: str) -> None:
    """CSTMemory remembers verified candidates only, whatever else it is shown."""
    stream, beta = stream_and_beta(kind, 120, 6)
    full, partial = (
        replay(records_of(stream), CSTMemory(beta), beta, feedback=feedback)
        for feedback in ("full", "partial")
    )
    assert without_versions(full) == without_versions(partial)


def without_versions(run: Replay, **same: object) -> str:
    """Everything decided, for comparison to the last bit; NaN equals NaN."""
    return repr([replace(d, version=0, **same) for d in run.decisions]) + repr(run.verified)


@pytest.mark.parametrize(("kind", "n", "seed"), STREAMS[: 2 * len(slow.KINDS)])
def test_a_memory_without_weight_is_cst(kind: str, n: int, seed: int) -> None:
    stream, beta = stream_and_beta(kind, n, seed)
    one, other = (
        replay(records_of(stream), policy, beta)
        for policy in (CST(beta, seed=seed), CSTMemory(beta, weight=0.0, seed=seed))
    )
    assert [d.verify for d in one.decisions] == [d.verify for d in other.decisions]
    assert one.verified == other.verified


@pytest.mark.parametrize("kind", slow.KINDS)
@pytest.mark.parametrize("beta", [0.1, 0.5])
def test_equal_costs_leave_one_stratum(kind: str, beta: float) -> None:
    """c ≡ ĉ ≡ 0.5: SplitConformal is its global version, to the last bit of the threshold."""
    stream = slow.make_stream(kind, 200, 11)
    stream = replace(stream, c_hat=np.full(200, 0.5), c=np.full(200, 0.5))
    one, other = (
        replay(
            records_of(stream),
            SplitConformal(beta, calibration=75, stratified=stratified),
            beta,
            evaluate="second-half",
        )
        for stratified in (True, False)
    )
    assert without_versions(one, stratum=None) == without_versions(other, stratum=None)


@pytest.mark.parametrize("extragradient", [False, True])
@pytest.mark.parametrize("kind", ["continuous", "ties", "heavy_tails", "all_wrong", "certain"])
def test_theta_stays_on_the_simplex(kind: str, extragradient: bool) -> None:
    """Seen from outside: the score of x = (1, 0, 0) is θ_1, and so on; that of (1, 1, 1) is 1."""
    stream, beta = stream_and_beta(kind, 600, 7)
    policy = MPAdapt(beta, extragradient=extragradient)
    scores = [d.score for d in replay(records_of(stream), policy, beta).decisions]
    assert min(scores) >= 0.0
    assert max(scores) <= 1.0
    high, low = np.full((3, 3), -1e9) + 2e9 * np.eye(3), np.full(3, -1e9)
    theta = [policy.decide(probe(f"probe{j}", high[j])).score for j in range(3)]
    assert min(theta) >= 0.0
    assert sum(theta) == pytest.approx(1.0, abs=1e-12)
    assert policy.decide(probe("none", low)).score == 0.0


def test_the_extragradient_looks_ahead() -> None:
    """The option changes what is learned, from the same first decision."""
    stream = slow.make_stream("continuous", 200, 0)
    plain, ahead = (
        [d.score for d in replay(records_of(stream), policy, 0.2).decisions]
        for policy in (MPAdapt(0.2), MPAdapt(0.2, extragradient=True))
    )
    assert plain[0] == ahead[0]
    assert plain[1:] != ahead[1:]


def probe(name: str, h: Any) -> Candidate:
    return Candidate(name, Signals(*h.tolist()), 1.0)


@pytest.mark.parametrize("beta", [0.3, 0.9])
@pytest.mark.parametrize("kind", ["continuous", "anti_correlated", "heavy_tails", "all_right"])
def test_no_multiplier_of_mp_strat_falls_below_a_tenth(kind: str, beta: float) -> None:
    """So no output whose teacher's score is at most ĉ′ / 10 is proposed."""
    stream = slow.make_stream(kind, 600, 8)
    got = replay(records_of(stream), MPStrat(beta), beta, feedback="partial")
    unit = stream.c_hat[:T0].mean()
    for decision, record in zip(got.decisions, got.records, strict=True):
        assert decision.threshold * unit >= 0.1 * (1 - 1e-12)
        assert not decision.verify or decision.score > 0.1 * record.cost_estimate / unit


@pytest.mark.parametrize("cost", [0.5, 0.1])
@pytest.mark.parametrize("beta", [0.1, 0.2, 0.7])
def test_no_policy_finds_more_than_the_oracle_or_overspends(cost: float, beta: float) -> None:
    """With equal costs. 0.1 has no exact double: sums of it depend on their order."""
    n, half = 150, 50
    for seed, kind in enumerate(slow.KINDS):
        stream = slow.make_stream(kind, n, seed)
        costs = np.full(n, cost)
        stream = replace(stream, c_hat=costs, c=costs)
        runs = {
            name: replay(records_of(stream), policy, beta, evaluate="second-half")
            for name, policy in policies(stream, beta, half=half, seed=seed).items()
        }
        best = runs["oracle"]
        for name, run in runs.items():
            assert run.spent <= run.budget * (1 + 1e-12), (kind, name)  # up to rounding
            assert run.errors_found <= best.errors_found, (kind, name)
        assert sum(best.verified) == max(sum(run.verified) for run in runs.values())


def test_the_oracle_takes_errors_first_and_fills_up_in_stream_order() -> None:
    """By hand, B = 0.5 · 20 = 10: the errors of 4 and 5 fit, that of 3 does not; of what is right
    the first that costs no more than the 1 left."""
    costs = [1.0] * T0 + [3.0, 4.0, 2.0, 5.0, 3.0, 1.0, 2.0]
    labels = [0, 1] * (T0 // 2) + [0, 1, 0, 1, 1, 0, 0]
    records = [
        Record(f"r{i}", Signals(0.1 * i, -1.0, 0.5), 1.0, costs[i], labels[i]) for i in range(57)
    ]
    got = replay(records, Oracle(0.5, records=records[T0:]), 0.5)
    assert list(got.verified) == [False, True, False, True, False, True, False]
    assert (got.spent, got.budget, got.errors_found) == (10.0, 10.0, 2)


def test_the_rank_of_split_conformal_may_exceed_what_was_collected() -> None:
    """⌈(n + 1)(1 - β)⌉ > n: nothing in that stratum is ever wanted; one more and it may be."""
    stream = slow.designed(T0 + 36 + 36, (0.5,) * 4, (5,) * 4, noise=1.0, seed=0)
    collected = 36 // 4
    for beta in (0.09, 0.11):  # (9 + 1) · 0.91 = 9.1 and 8.9
        policy = SplitConformal(beta, calibration=36)
        got = replay(records_of(stream), policy, beta, evaluate="second-half")
        never = {d.threshold == np.inf for d in got.decisions}
        assert never == {(collected + 1) * (1 - beta) > collected}


@pytest.mark.parametrize("n", [0, 49, 50])
def test_a_stream_no_longer_than_the_warmup_is_refused(n: int) -> None:
    stream = slow.make_stream("continuous", 60, 0)
    for policy in policies(stream, 0.2, half=0, seed=0).values():
        with pytest.raises(BadInputError, match=str(n)):
            replay(records_of(stream)[:n], policy, 0.2)
