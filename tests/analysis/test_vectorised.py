"""Replay over arrays equals replay step by step, to the last bit."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import pytest
import slow_reference as slow
from hypothesis import given, settings
from hypothesis import strategies as st

from gatekeeper.analysis.learners import MOST, by_distance
from gatekeeper.analysis.replay import Evaluate, Feedback, replay
from gatekeeper.analysis.thresholds import stratified_thresholds
from gatekeeper.analysis.vectorised import (
    Decisions,
    Stream,
)
from gatekeeper.policies import (
    CST,
    HGA,
    CSTMemory,
    MPAdapt,
    MPStrat,
    Oracle,
    Random,
    SplitConformal,
    Threshold,
    describe_policy,
)
from gatekeeper.protocols import Policy
from gatekeeper.types import Record, Signals

T0 = slow.T0
STREAMS = [(kind, n, seed) for kind in slow.KINDS for n, seed in ((52, 0), (200, 1), (201, 2))]


def records_of(stream: slow.Stream) -> list[Record]:
    rows = zip(stream.h.tolist(), stream.c_hat, stream.c, stream.y, strict=True)
    return [
        Record(f"r{i}", Signals(*h), float(e), float(c), int(y))  # type: ignore[arg-type]
        for i, (h, e, c, y) in enumerate(rows)
    ]


def policies(name: str, beta: float, n: int, half: int, records: list[Record]) -> Policy:
    """The policy, made for a stream of n records of which `half` calibrate."""
    if name == "oracle":
        return Oracle(beta, records=records[T0 + half :])
    made: dict[str, Any] = {
        "random": lambda: Random(beta, warmup=T0 + half, seed=3),
        "threshold": lambda: Threshold(beta, seed=3),
        "cst": lambda: CST(beta, seed=3),
        "cst-6": lambda: CST(beta, strata=6, seed=3),
        "hga": lambda: HGA(beta, calibration=half, labels="full", seed=3),
        "split-conformal": lambda: SplitConformal(beta, calibration=half, seed=3),
        "split-global": lambda: SplitConformal(beta, calibration=half, stratified=False, seed=3),
        "mp-adapt": lambda: MPAdapt(beta, seed=3),
        "mp-strat": lambda: MPStrat(beta, seed=3),
        "cst-memory": lambda: CSTMemory(beta, seed=3),
    }
    policy: Policy = made[name]()
    return policy


OPTIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "cst-6": ("cst", {"strata": 6}),
    "split-global": ("split-conformal", {"stratified": False}),
}
BY_COLUMN = ["random", "threshold", "cst", "cst-6", "hga", "split-conformal", "split-global"]
LEARNERS = ["mp-adapt", "mp-strat", "cst-memory"]


@pytest.mark.parametrize(("kind", "n", "seed"), STREAMS)
def test_columns_decide_as_the_steps_do(kind: str, n: int, seed: int) -> None:
    plain = slow.make_stream(kind, n, seed)
    observed = np.where(np.random.default_rng(seed).random(n) < 0.1, 1 - plain.y, plain.y)
    records = records_of(plain)
    evaluate: Evaluate = "second-half" if seed else "all"
    feedback: Feedback = "partial" if seed == 2 else "full"
    stream = Stream(
        plain.h,
        np.asarray(plain.c_hat, dtype=float),
        np.asarray(plain.c, dtype=float),
        plain.y.astype(float),
        observed=observed.astype(float),
        evaluate=evaluate,
    )
    half = stream.first - T0
    for beta in (0.05, 0.3):
        for name in [*BY_COLUMN, *LEARNERS, "oracle"]:
            policy = policies(name, beta, n, half, records)
            expected = replay(
                records,
                policy,
                beta,
                evaluate=evaluate,
                feedback=feedback,
                observed=observed.tolist(),
            )
            if name in LEARNERS:
                again = policies(name, beta, n, half, records)
                same(stream.step(again, beta, feedback=feedback), expected, where=f"{name}, steps")
            known, options = OPTIONS.get(name, (name, {}))
            got = stream.decide(
                describe_policy(known).make, beta, seed=3, feedback=feedback, **options
            )
            same(got, expected, where=f"{name} at {beta}")
            if isinstance(policy, HGA) and policy.evidence is not None:
                assert repr(got.evidence) == repr(policy.evidence)


@pytest.mark.parametrize("feedback", ["full", "partial"])
@pytest.mark.parametrize(
    ("policy", "options"),
    [
        (MPAdapt, {}),
        (MPStrat, {"strata": 7}),
        (CSTMemory, {"weight": 1.0, "neighbours": 1, "strata": 1}),
        (CSTMemory, {"weight": 0.3, "neighbours": 3, "strata": 20}),
    ],
)
def test_learners_where_labels_and_signals_are_missing(
    policy: Any, options: dict[str, Any], feedback: Feedback
) -> None:
    """Few values of each signal: many outputs are equally near, or the same."""
    rng = np.random.default_rng(5)
    n = 700
    h = rng.choice([0.1, 0.2, 0.3, 0.9, np.nan], (n, 3), p=[0.3, 0.2, 0.2, 0.1, 0.2])
    estimate, cost = rng.lognormal(0.0, 0.5, n), rng.lognormal(0.0, 0.5, n)
    observed = rng.choice([0.0, 1.0, np.nan], n, p=[0.5, 0.4, 0.1])
    for missing in (0.0, 1.0):  # of the warm-up's labels
        observed[:T0][rng.random(T0) < missing] = np.nan
        stream = Stream(h, estimate, cost, np.zeros(n), observed=observed, evaluate="second-half")
        got = stream.decide(policy, 0.3, seed=3, feedback=feedback, **options)
        plain = stream.step(policy(0.3, seed=3, **options), 0.3, feedback=feedback)
        for column in fields(Decisions):
            ours, theirs = getattr(got, column.name), getattr(plain, column.name)
            np.testing.assert_array_equal(ours, theirs, err_msg=column.name)


@settings(deadline=None, max_examples=50)
@given(st.integers(1, 40), st.integers(0, 30), st.integers(0, 999))
def test_neighbours_are_in_order_of_distance_then_of_arrival(
    m: int, before: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    values = [0.0, 0.5, 0.5 + 2.0**-52, 1.0, np.nan, rng.random()]  # two that nearly are one
    earlier = rng.choice(values, (before + m, 3))
    got = by_distance(earlier[before:], earlier)
    for row, t in enumerate(range(before, before + m)):
        d = earlier[:t] - earlier[t]
        d[np.isnan(d)] = 0.0
        distance = np.sqrt((d * d).sum(axis=1)).tolist()
        assert got[row, :t].tolist() == sorted(range(t), key=lambda i: (distance[i], i))


def test_a_long_stream_is_stepped_through_where_memory_would_not_hold_its_neighbours() -> None:
    one = np.ones(MOST + 1)
    long = Stream(np.ones((MOST + 1, 3)), one, one, one)
    assert not long.has_rule(CSTMemory)
    assert long.has_rule(CST)
    assert long.has_rule(MPStrat, {"strata": 6})
    assert not long.has_rule(MPAdapt, {"extragradient": True})


def same(got: Decisions, expected: Any, *, where: str) -> None:
    assert got.budget == expected.budget, where
    assert got.wanted.tolist() == [d.verify for d in expected.decisions], where
    assert got.verified.tolist() == list(expected.verified), where
    for column in ("score", "threshold"):
        theirs = np.array([getattr(d, column) for d in expected.decisions], dtype=float)
        np.testing.assert_array_equal(getattr(got, column), theirs, err_msg=f"{where}: {column}")
    strata = [-1 if d.stratum is None else d.stratum for d in expected.decisions]
    assert got.stratum.tolist() == strata, where


@settings(deadline=None, max_examples=100)
@given(st.integers(1, 80), st.integers(1, 5), st.floats(0.01, 0.99), st.integers(0, 999))
def test_thresholds_within_any_partition(n: int, k: int, q: float, seed: int) -> None:
    """Own earlier values where there are two, all earlier ones otherwise, NaN left out."""
    rng = np.random.default_rng(seed)
    z, part = rng.choice([0.1, 0.2, 0.5, np.nan, 0.9], n), rng.integers(0, k, n)
    got = stratified_thresholds(z, part, q)
    for t in range(n):
        earlier = [v for v, p in zip(z[:t], part[:t], strict=True) if p == part[t] and v == v]
        if len(earlier) < 2:
            earlier = [v for v in z[:t] if v == v]
        expected = np.quantile(earlier, q) if earlier else np.nan
        assert repr(float(got[t])) == repr(float(expected))
