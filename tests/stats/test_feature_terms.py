"""Features: useful ones help, noise costs almost nothing, gaps are allowed."""

from __future__ import annotations

import json

import numpy as np
import pytest

from gatekeeper import Budget, Calibrated, Candidate, Generation, Reason, Signals, VerificationGate
from gatekeeper.analysis.replay import outcome_of
from gatekeeper.stats.error_model import ErrorModel, Known, KnownTable, raw_of
from gatekeeper.stats.rank_scale import RankScale
from gatekeeper.stats.raw_table import Raw, RawTable
from gatekeeper.testing import ScriptedVerifier
from gatekeeper.types import FloatArray

NAN = float("nan")


def outputs(n: int, seed: int, noise: int = 5) -> tuple[list[Raw], list[Known]]:
    """One useful feature with gaps, a yes or no, one that is worst in the middle, and noise."""
    rng = np.random.default_rng(seed)
    raws, known = [], []
    for i in range(n):
        y = int(rng.random() < 0.4)
        features = {f"noise{j}": float(rng.standard_normal()) for j in range(noise)}
        if rng.random() < 0.8:
            features["confidence"] = float(rng.standard_normal() - 1.5 * y)
        features["parses"] = float(rng.random() < (0.6 if y else 0.95))
        features["middle"] = float(rng.standard_normal() * (0.4 if y else 1.5))
        signals = Signals(float(rng.exponential()), NAN, NAN, 5, 0)
        raws.append(raw_of(Candidate(str(i), signals, float(rng.lognormal()), features)))
        known.append(Known(raws[-1], y, 1.0))
    return raws, known


@pytest.mark.parametrize("cautious", [False, True])
def test_one_at_a_time_is_all_at_once(cautious: bool) -> None:
    raws, known = outputs(400, 0)
    raws += [raws[0]._replace(features={}), raws[0]._replace(features={"unknown": 1.0})]
    model = ErrorModel.fit(RawTable.of(raws), KnownTable.of(known), cautious=cautious)
    again = ErrorModel.restored(json.loads(json.dumps(model.state())))
    p, cost = model.of_rows(RawTable.of(raws))
    for i, raw in enumerate(raws):
        assert model(raw)[:2] == pytest.approx((p[i], cost[i]))
        assert again(raw) == model(raw)


def scaled(raw: Raw, power: int) -> Raw:
    features = {name: float(np.ldexp(v, power)) for name, v in raw.features.items()}
    return raw._replace(features=features)


@pytest.mark.parametrize("power", [-950, -600, -1, 10, 600, 1018])
def test_no_scale_of_a_feature_matters(power: int) -> None:
    """Also where differences, or their squares, are no floats."""
    raws, known = outputs(400, 0)
    usual = ErrorModel.fit(RawTable.of(raws), KnownTable.of(known))
    raws, p = [scaled(raw, power) for raw in raws], [usual(raw)[0] for raw in raws]
    known = [k._replace(raw=scaled(k.raw, power)) for k in known]
    model = ErrorModel.fit(RawTable.of(raws), KnownTable.of(known))
    assert [model(raw)[0] for raw in raws] == p
    assert model.of_rows(RawTable.of(raws))[0] == pytest.approx(p)


@pytest.mark.parametrize("at", [(-1.7e308, 1.7e308), (0.0, 5e-324), (1e-310, 1.0), (0.0, 1e308)])
def test_any_finite_number_is_a_feature(at: tuple[float, float]) -> None:
    rng = np.random.default_rng(0)
    values = [float(at[0] * (1.0 - share) + at[1] * share) for share in rng.random(300)]
    stream = [Generation(f"g{i}", "", features={"a": v}) for i, v in enumerate(values)]
    labels = {g.id: int(v > np.median(values)) for g, v in zip(stream, values, strict=True)}
    for goal in ("errors", "score"):
        with VerificationGate(
            budget=Budget(fraction=0.3), verifier=ScriptedVerifier(labels), goal=goal
        ) as gate:
            results = [gate.maybe_verify(g) for g in stream]
        for result in results:
            assert 0.0 <= result.decision.propensity <= 1.0
    scale = RankScale.of(np.array(values))
    assert [scale(v) for v in values] == pytest.approx(scale.of_rows(np.array(values)))
    assert np.abs(scale.of_rows(np.array(values))).max() <= 2.8


def test_useful_features_are_used_and_noise_is_not() -> None:
    """On outputs that were not fitted: area under the curve, and log loss."""
    useful = {"confidence", "parses", "middle"}
    known, fresh = outputs(800, 1, noise=20)[1], outputs(4000, 2, noise=20)[1]
    y = np.array([k.error for k in fresh])

    def predicted(names: set[str]) -> FloatArray:
        def seen(k: Known) -> Known:
            features = {name: v for name, v in k.raw.features.items() if name in names}
            return k._replace(raw=k.raw._replace(features=features))

        fitted = KnownTable.of(map(seen, known))
        model = ErrorModel.fit(fitted.raw, fitted)
        return model.of_rows(RawTable.of([seen(k).raw for k in fresh]))[0]

    def log_loss(p: FloatArray) -> float:
        return float(-np.log(np.where(y == 1, p, 1.0 - p)).mean())

    noise = {f"noise{j}" for j in range(20)}
    p = predicted(useful | noise)
    assert float((p[y == 1][:, None] > p[y == 0][None, :]).mean()) > 0.85
    # The cost of 20 columns fitted without shrinkage: k / 2n nats, to first order.
    unshrunk = 20 / (2 * len(known))
    assert log_loss(p) - log_loss(predicted(useful)) < 0.5 * unshrunk
    assert log_loss(predicted(noise)) - log_loss(predicted(set())) < 0.5 * unshrunk


def test_features_alone_make_a_decision() -> None:
    """Without log-probabilities: `calibrated` ranks, a policy of the paper draws; a log resumes."""
    rng = np.random.default_rng(3)
    labels = {f"g{i}": int(rng.random() < 0.4) for i in range(600)}
    stream = [
        Generation(id_, "x", features={"confidence": float(rng.standard_normal() - 2.0 * y)})
        for id_, y in labels.items()
    ]
    found = {}
    for policy in ("calibrated", "cst"):
        with VerificationGate(
            policy,
            budget=Budget(fraction=0.2, horizon=600),
            verifier=ScriptedVerifier(labels),
            explore=0.0,
        ) as gate:
            results = [gate.maybe_verify(generation) for generation in stream]
            status = gate.status()
        missing = [r.decision.reason is Reason.MISSING_SIGNAL for r in results[50:]]
        assert not any(missing) if policy == "calibrated" else any(missing)
        found[policy] = status.errors_found / status.verified
    assert found["calibrated"] > 0.7
    assert found["cst"] < 0.6


def test_a_restored_policy_goes_on_as_the_first() -> None:
    raws, known = outputs(300, 4)
    one = Calibrated(0.2, horizon=300)
    two: Calibrated | None = None
    for i, (raw, k) in enumerate(zip(raws, known, strict=True)):
        candidate = Candidate(str(i), Signals(*raw[:3]), float(np.exp(raw.size)), raw.features)
        if i == 150:
            two = Calibrated(0.2, horizon=300)
            two.restore(json.loads(json.dumps(one.state())))
        for policy in filter(None, (one, two)):
            decision = policy.decide(candidate)
            policy.observe(candidate, decision)
            if decision.verify:
                policy.update(candidate, decision, outcome_of(k.error, 1.0))
        assert two is None or json.dumps(two.state()) == json.dumps(one.state())  # NaN is NaN
