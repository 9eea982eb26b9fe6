"""The protocol of a replay, against a few lines of numpy that know nothing of the package."""

from __future__ import annotations

from dataclasses import replace
from importlib.metadata import EntryPoint
from typing import Any

import numpy as np
import pytest
import slow_reference as slow
from scipy import stats

from gatekeeper.analysis import vectorised
from gatekeeper.analysis.experiment import Comparison, Protocol, compare, runs
from gatekeeper.analysis.policy_run import METRICS, Contender, PolicyRun
from gatekeeper.analysis.replay import replay
from gatekeeper.errors import BadInputError
from gatekeeper.io.records import RecordTable
from gatekeeper.policies import (
    CST,
    HGA,
    Calibrated,
    CSTMemory,
    MPAdapt,
    MPStrat,
    Oracle,
    Random,
    SplitConformal,
    Threshold,
    registry,
    replay_names,
)
from gatekeeper.protocols import Policy
from gatekeeper.stats.interval import Interval
from gatekeeper.stats.student import student_interval
from gatekeeper.types import Record, Signals

T0 = slow.T0
N = 151
BETAS = [0.1, 0.3]
EXACT = Protocol(seeds=1, shuffle=False, label_noise=0.0, signal_noise=0.0)
# How the slow reference and this package call the same policy.
SLOW = {
    **{name: Contender(name) for name in ("random", "threshold", "cst", "hga", "oracle")},
    **{name: Contender(name) for name in ("mp-adapt", "mp-strat", "cst-memory")},
    "mp-adapt-extragradient": Contender("mp-adapt", {"extragradient": True}),
    "split-conformal": Contender("split-conformal"),
    "split-conformal-global": Contender("split-conformal", {"stratified": False}),
}


def table_of(stream: slow.Stream, **more: Any) -> RecordTable:
    n = len(stream)
    return RecordTable(
        [f"r{i}" for i in range(n)],
        np.array(stream.h, dtype=float),
        np.array(stream.c_hat, dtype=float),
        np.array(stream.c, dtype=float),
        np.array(stream.y, dtype=float),
        **more,
    )


def seen_by(stream: slow.Stream, seed: int, *, labels: float = 0.1, signals: float = 0.1) -> Any:
    """(order, the stream of a seed): shuffled, then labels flipped, then noise on the signals."""
    rng, n = np.random.default_rng(seed), len(stream)
    order = rng.permutation(n)
    flipped = rng.random(n) < labels
    noise = rng.standard_normal((n, 3))
    h = stream.h[order] + signals * np.nanstd(stream.h, axis=0) * noise
    y = stream.y[order]
    observed = np.where(flipped, 1 - y, y)
    return order, slow.Stream(h, stream.c_hat[order], stream.c[order], y, observed=observed)


# -- what a seed does -----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["continuous", "heterogeneous", "decimal_costs", "missing"])
@pytest.mark.parametrize("feedback", ["full", "partial"])
def test_every_policy_decides_on_a_seed_as_the_slow_reference_does(
    kind: str, feedback: Any
) -> None:
    plain = slow.make_stream(kind, N, 5)
    table, half = table_of(plain), (N - T0) // 2
    protocol = Protocol(seeds=2, feedback=feedback)
    got = {
        (str(run.contender), run.beta, run.seed): run
        for run in runs(table, list(SLOW.values()), BETAS, protocol)
    }
    compared = compare(table, list(SLOW.values()), BETAS, protocol)
    assert compared.evaluate == "second-half"
    for seed in (0, 1):
        order, stream = seen_by(plain, seed)
        for beta in BETAS:
            steps = slow.all_steps(stream, beta, seed=seed)
            for name, contender in SLOW.items():
                expected = slow.replayed(
                    name,
                    stream,
                    beta,
                    steps,
                    seed=seed,
                    second_half=True,
                    full=feedback == "full",
                )
                run = got[str(contender), beta, seed]
                where = f"{name} at beta={beta}, seed={seed}"
                assert run.rows.tolist() == order[T0 + half :].tolist(), where
                assert run.decisions.wanted.tolist() == [s.proposal for s in expected.steps], where
                assert run.decisions.verified.tolist() == expected.verified, where
                for metric in METRICS:
                    value = compared.seeds(contender, beta, metric)[seed]
                    assert value == pytest.approx(
                        expected.metrics[metric], rel=1e-12, nan_ok=True
                    ), f"{where}: {metric}"
                opened = compared.gate_open[list(SLOW).index(name), BETAS.index(beta), seed]
                if name == "hga":
                    assert expected.gate is not None
                    assert opened == expected.gate.open, where
                else:
                    assert np.isnan(opened), where


def test_the_metrics_count_the_clean_labels_of_the_table() -> None:
    """Once more from the decisions and the table alone, however noisy the labels shown."""
    stream = slow.make_stream("continuous", N, 1)
    table = table_of(stream)
    names = ["random", "threshold", "mp-adapt", "oracle"]
    protocol = Protocol(seeds=3, label_noise=0.9, signal_noise=3.0)
    compared = compare(table, names, BETAS, protocol)
    seen = 0
    for run in runs(table, names, BETAS, protocol):
        y, c = stream.y[run.rows], stream.c[run.rows]
        a = run.decisions.verified
        assert run.rows.size == N - T0
        assert sorted(set(run.rows)) == sorted(run.rows)
        assert c[a].sum() <= run.beta * c.sum() * (1 + 1e-12)
        expected = {
            "hit_rate": y[a].mean(),
            "audit_rate": a.mean(),
            "utilisation": c[a].sum() / (run.beta * c.sum()),
            "recall": y[a].sum() / y.sum(),
            "yield": y[a].sum() / c[a].sum(),
            "value": (a * y).mean(),
        }
        for metric, value in expected.items():
            at = compared.seeds(run.contender, run.beta, metric)[run.seed]
            assert at == pytest.approx(value, rel=1e-12), metric
        seen += 1
    assert seen == len(names) * len(BETAS) * 3


def test_noise_moves_signals_by_a_tenth_of_their_spread_and_a_tenth_of_the_labels() -> None:
    """The protocol's figures, measured: one policy whose decisions show what it was given."""
    n = 4000
    rng = np.random.default_rng(0)
    h = rng.normal(0.0, [1.0, 20.0, 0.01], (n, 3))
    one = np.ones(n)
    table = RecordTable([str(i) for i in range(n)], h, one, one, (rng.random(n) < 0.5) * 1.0)
    seen: list[Signals] = []

    class Spy(Random):
        def decide(self, candidate: Any) -> Any:
            seen.append(candidate.signals)
            return super().decide(candidate)

        def update(self, candidate: Any, decision: Any, outcome: Any) -> None:
            labels.append(outcome.error)

    labels: list[int] = []
    with pytest.MonkeyPatch.context() as patch:
        plug_in(patch, "spy", Spy)
        list(runs(table, ["spy"], [0.2], Protocol(seeds=1)))
    order = np.random.default_rng(0).permutation(n)
    shift = np.array([[s.h1, s.h2, s.h3] for s in seen]) - h[order]
    np.testing.assert_allclose(shift.std(axis=0), 0.1 * h.std(axis=0), rtol=0.05)
    assert (np.abs(shift.mean(axis=0)) < 0.01 * h.std(axis=0)).all()
    assert np.abs(np.corrcoef(shift.T) - np.eye(3)).max() < 0.06
    assert np.mean(np.array(labels) != table.error[order]) == pytest.approx(0.1, abs=0.02)


def test_random_is_fair_to_every_place_in_the_file() -> None:
    """Its draws and the shuffle have generators of the same seed: they must be independent."""
    stream = slow.make_stream("continuous", 150, 0)
    stream.y = (np.arange(150) < 60).astype(int)  # all errors at the head of the file
    table = replace(table_of(stream), cost=np.ones(150), cost_estimate=np.ones(150))
    times, n = np.zeros(150), 400
    for run in runs(table, ["random"], [0.2], Protocol(seeds=n)):
        times[run.rows[run.decisions.wanted]] += 1
    # Each record is evaluated with probability 100/150 and then drawn with probability 0.2.
    head, tail = times[:60].mean() / n, times[60:].mean() / n
    assert head == pytest.approx(0.2 * 100 / 150, abs=0.01)
    assert tail == pytest.approx(0.2 * 100 / 150, abs=0.01)


# -- intervals ------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [2, 3, 10, 30])
def test_the_margin_is_students(n: int) -> None:
    values = np.random.default_rng(n).normal(0.4, 0.1, n)
    found = student_interval(values)
    interval = stats.ttest_1samp(values, 0.0).confidence_interval(0.95)
    assert found.value == pytest.approx(values.mean())
    assert (found.low, found.high) == pytest.approx((interval.low, interval.high))
    assert found.margin == pytest.approx((interval.high - interval.low) / 2)


def test_one_seed_has_no_margin_and_an_undefined_seed_makes_the_mean_undefined() -> None:
    one = student_interval(np.array([0.25]))
    assert one.value == 0.25
    assert np.isnan(one.margin)
    assert np.isnan(student_interval(np.array([0.25, np.nan, 0.5])).value)
    assert student_interval(np.full(4, 0.5)) == Interval(0.5, 0.5, 0.5, 4)


def test_differences_are_paired_by_seed() -> None:
    compared = compare(table_of(slow.make_stream("continuous", N, 2)), ["cst", "random"], [0.3])
    a, b = (compared.seeds(name, 0.3, "recall") for name in ("cst", "random"))
    assert a.shape == (10,)
    found = compared.difference("cst", "random", 0.3, "recall")
    expected = stats.ttest_rel(a, b).confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))
    assert compared.difference("cst", "cst", 0.3, "recall") == Interval(0.0, 0.0, 0.0, 10)
    for wrong in (("hga", 0.3, "recall"), ("cst", 0.2, "recall"), ("cst", 0.3, "beauty")):
        with pytest.raises(BadInputError, match="not part of this comparison"):
            compared.estimate(*wrong)


# -- the protocol's other choices -----------------------------------------------------------------


def test_which_half_counts() -> None:
    table, half = table_of(slow.make_stream("continuous", N, 3)), (N - T0) // 2

    def evaluated(names: list[str], **choice: Any) -> list[int]:
        protocol = replace(EXACT, **choice)
        of_each = {tuple(run.rows.tolist()) for run in runs(table, names, [0.2], protocol)}
        assert len(of_each) == 1  # the same for every policy
        return list(of_each.pop())

    everything, second = list(range(T0, N)), list(range(T0 + half, N))
    assert evaluated(["threshold", "cst", "mp-adapt"]) == everything
    assert evaluated(["threshold", "hga"]) == second
    assert evaluated(["random", "split-conformal"]) == second
    assert evaluated(["threshold"], evaluate="second-half") == second
    assert evaluated(["hga", "cst"], evaluate="all") == everything


def test_partial_feedback_hides_labels_from_learners_only() -> None:
    table = table_of(slow.make_stream("heterogeneous", 300, 3))
    names = ["threshold", "cst", "mp-adapt", "mp-strat", "cst-memory"]
    seen: dict[str, list[PolicyRun]] = {
        feedback: list(runs(table, names, [0.2], replace(EXACT, feedback=feedback)))
        for feedback in ("full", "partial")
    }
    for full, partial in zip(seen["full"], seen["partial"], strict=True):
        alike = np.array_equal(full.decisions.score, partial.decisions.score)
        # CSTMemory remembers what was verified, whatever else is shown.
        assert alike == (not full.contender.name.startswith("mp-")), full.contender


def test_routing_finds_benefits_in_place_of_errors() -> None:
    stream = slow.make_stream("continuous", N, 4)
    benefit = stream.y * (np.arange(N) % 2.0)
    routed = compare(
        table_of(stream, benefit=benefit), list(SLOW.values()), BETAS, Protocol(label="benefit")
    )
    as_error = replace(table_of(stream), error=benefit)
    same(routed, compare(as_error, list(SLOW.values()), BETAS))
    nobody_knows_the_errors = replace(table_of(stream, benefit=benefit), error=np.full(N, np.nan))
    compare(nobody_knows_the_errors, ["cst"], [0.2], replace(EXACT, label="benefit"))


def same(a: Comparison, b: Comparison) -> None:
    np.testing.assert_array_equal(a.values, b.values)
    np.testing.assert_array_equal(a.gate_open, b.gate_open)


def test_in_the_given_order_without_noise_it_is_the_replay_of_the_live_classes() -> None:
    stream = slow.make_stream("heterogeneous", N, 6)
    table, half = table_of(stream), (N - T0) // 2
    rows = zip(stream.h.tolist(), stream.c_hat, stream.c, stream.y, strict=True)
    records = [
        Record(f"r{i}", Signals(*h), float(e), float(c), int(y))  # type: ignore[arg-type]
        for i, (h, e, c, y) in enumerate(rows)
    ]
    beta = 0.3
    live: dict[str, Policy] = {
        "random": Random(beta, warmup=T0 + half),
        "threshold": Threshold(beta),
        "cst": CST(beta),
        "mp-adapt": MPAdapt(beta),
        "mp-strat": MPStrat(beta),
        "cst-memory": CSTMemory(beta),
        "calibrated": Calibrated(beta, horizon=N),
        "split-conformal": SplitConformal(beta, calibration=half),
        "hga": HGA(beta, calibration=half, labels="full"),
        "oracle": Oracle(beta, records=records[T0 + half :]),
    }
    assert set(live) == set(replay_names())
    for run in runs(table, list(live), [beta], EXACT):
        expected = replay(records, live[run.contender.name], beta, evaluate="second-half")
        assert [f"r{row}" for row in run.rows] == [r.id for r in expected.records]
        assert run.decisions.wanted.tolist() == [d.verify for d in expected.decisions]
        assert run.decisions.verified.tolist() == list(expected.verified)
        assert run.decisions.budget == expected.budget
        metrics = dict(zip(METRICS, run.metrics(), strict=True))
        for name in ("hit_rate", "audit_rate", "utilisation", "recall"):
            assert metrics[name] == pytest.approx(getattr(expected, name), nan_ok=True)
    twice = (compare(table, list(live), [beta], replace(EXACT, seeds=3)) for _ in range(2))
    first, second = twice
    same(first, second)
    for p, name in enumerate(live):  # seeds change nothing but random draws
        drawn = name in ("random", "calibrated")
        assert drawn or (first.values[p] == first.values[p, :, :1]).all()


def test_neither_processes_nor_the_other_seeds_change_a_run() -> None:
    table = table_of(slow.make_stream("missing", N, 7))
    names, done = ["random", "cst", "mp-adapt", "hga"], []
    protocol = Protocol(seeds=3)
    alone = compare(table, names, BETAS, protocol, on_progress=done.append)
    together = compare(table, names, BETAS, protocol, workers=2, on_progress=done.append)
    same(alone, together)
    assert sum(done) == 6
    last = compare(table, names, BETAS, replace(protocol, seeds=1, first_seed=2))
    assert np.array_equal(last.values[:, :, 0], alone.values[:, :, 2], equal_nan=True)
    assert [run.seed for run in runs(table, ["cst"], [0.2], last.protocol)] == [2]
    with pytest.raises(BadInputError, match=r"policy='cst' with \{'wings': 2\}"):
        compare(table, [Contender("cst", {"wings": 2})], BETAS, protocol, workers=2)


# -- plug-ins -------------------------------------------------------------------------------------


def plug_in(patch: pytest.MonkeyPatch, name: str, maker: Any) -> None:
    """As if another package were installed that registers the policy."""

    class Registered(EntryPoint):
        def load(self) -> Any:
            return maker

    def plug_ins(group: str) -> dict[str, EntryPoint]:
        return {name: Registered(name, "elsewhere:maker", group)}

    patch.setattr(registry, "plug_ins", plug_ins)


def test_a_plug_in_takes_part(monkeypatch: pytest.MonkeyPatch) -> None:
    table = table_of(slow.make_stream("continuous", N, 8))
    plug_in(monkeypatch, "twin", lambda beta, *, seed: Threshold(beta, seed=seed))
    assert replay_names()[-1] == "twin"
    compared = compare(table, ["threshold", "twin"], BETAS, Protocol(seeds=2))
    np.testing.assert_array_equal(compared.values[0], compared.values[1])
    with pytest.raises(BadInputError, match=r"policy='twin' with \{'strata': 2\}: .*: none"):
        compare(table, [Contender("twin", {"strata": 2})], BETAS)


class Fair(Threshold):
    """A class whose attributes name the options and needs of a replay."""

    name = "fair"
    needs = ("warmup", "horizon")
    options = ("strength",)

    def __init__(
        self, beta: float, *, warmup: int, horizon: int, seed: int, strength: float = 1.0
    ) -> None:
        super().__init__(beta * strength, warmup=warmup, seed=seed)
        self.horizon = horizon


def test_a_plug_in_gets_the_arguments_that_it_declares(monkeypatch: pytest.MonkeyPatch) -> None:
    table = table_of(slow.make_stream("continuous", N, 8))
    plug_in(monkeypatch, "fair", Fair)
    half = Contender("fair", {"strength": 0.5})
    protocol = Protocol(seeds=2, warmup=20)
    compared = compare(table, ["threshold", "fair", half], BETAS, protocol)
    np.testing.assert_array_equal(compared.values[0], compared.values[1])
    assert (compared.values[1] != compared.values[2]).any()
    plug_in(monkeypatch, "odd", lambda beta, *, seed: Threshold(beta, seed=seed))
    monkeypatch.setattr(Fair, "needs", ("weather",))
    plug_in(monkeypatch, "fair", Fair)
    with pytest.raises(BadInputError, match=r"policy='fair': its .* needs has 'weather'"):
        compare(table, ["fair"], BETAS)


# -- errors ---------------------------------------------------------------------------------------


class Broken(Threshold):
    """One whose own code is wrong."""

    def decide(self, candidate: Any) -> Any:
        return super().decide(candidate) if self.phase == "warmup" else len(3)  # type: ignore[arg-type]


def test_a_mistake_inside_a_policy_is_not_reported_as_bad_input(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = table_of(slow.make_stream("continuous", N, 8))
    plug_in(monkeypatch, "broken", lambda beta, *, seed: Broken(beta, seed=seed))
    with pytest.raises(TypeError, match="has no len"):
        compare(table, ["broken"], [0.2])
    plug_in(monkeypatch, "unmade", lambda beta, *, seed: Threshold(beta, sed=seed))  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="sed"):
        compare(table, ["unmade"], [0.2])


def test_a_mistake_inside_a_rule_over_columns_is_not_either(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def wrong(stream: Any, beta: float, seed: int, *, strata: int = 4) -> Any:
        return len(3)  # type: ignore[arg-type]

    monkeypatch.setitem(vectorised._RULES, CST, wrong)
    with pytest.raises(TypeError, match="has no len"):
        compare(table_of(slow.make_stream("continuous", N, 8)), ["cst"], [0.2])


def test_options_beyond_the_rule_over_columns_are_stepped_through() -> None:
    table = table_of(slow.make_stream("missing", N, 9))
    skips = Contender("cst", {"on_missing": "skip"})
    compared = compare(table, ["cst", skips], [0.3], Protocol(seeds=2))
    assert (compared.values[0] != compared.values[1]).any()


def test_options_reach_the_policy() -> None:
    table = table_of(slow.make_stream("heterogeneous", 300, 9))
    one, four = Contender("cst", {"strata": 1}), Contender("cst")
    compared = compare(table, [one, four, "threshold"], [0.2], Protocol(seeds=2))
    assert str(one) == "cst(strata=1)"
    np.testing.assert_array_equal(compared.values[0], compared.values[2])
    assert (compared.values[1] != compared.values[2]).any()


@pytest.mark.parametrize(
    ("name", "options", "says"),
    [
        ("cst", {"wings": 2}, r"policy='cst' with \{'wings': 2\}: .*wings"),
        ("cst", {"seed": 2}, "policy='cst' with {'seed': 2}: .*seed"),
        ("cst", {"strata": 0}, "=0: "),
        ("random", {"strata": 2}, "policy='random' with {'strata': 2}"),
        ("mp-adapt", {"wings": 2}, "policy='mp-adapt' with {'wings': 2}: .*wings"),
        ("mp-strat", {"seed": 2}, "policy='mp-strat' with {'seed': 2}: .*seed"),
        ("cst-memory", {"weight": 3}, "weight=3"),
        ("cst-memory", {"weight": "heavy"}, "weight='heavy'"),
        ("cst", {"strata": "four"}, "strata='four'"),
        ("hga", {"alpha": "often"}, "alpha='often'"),
        ("hga", {"epsilon_p": None}, "epsilon_p=None"),
        ("delphi", {}, "policy 'delphi' is unknown: choose one of random, threshold, cst, "),
    ],
)
def test_wrong_policies(name: str, options: dict[str, Any], says: str) -> None:
    table = table_of(slow.make_stream("continuous", N, 0))
    with pytest.raises(BadInputError, match=says):
        compare(table, [Contender(name, options)], [0.2], EXACT)


@pytest.mark.parametrize("beta", [0.0, 1.0, -0.1, 1.5, float("nan"), float("inf"), "0.2", True])
def test_wrong_budgets(beta: Any) -> None:
    with pytest.raises(BadInputError, match=f"beta={beta!r}: .* strictly between 0 and 1"):
        compare(table_of(slow.make_stream("continuous", N, 0)), ["cst"], [0.2, beta])


def test_wrong_records() -> None:
    table = table_of(slow.make_stream("continuous", N, 0))
    hole = np.where(np.isin(np.arange(N), (7, 9)), np.nan, 1.0)
    for lacking, protocol, says in [
        ({"error": hole}, EXACT, f"2 of {N} records have no 'error' label, the first is id='r7'"),
        ({"cost": hole}, EXACT, "id='r7' has no cost"),
        ({}, replace(EXACT, label="benefit"), "no record has a 'benefit' label"),
        ({"benefit": hole}, replace(EXACT, label="benefit"), "have no 'benefit' label"),
    ]:
        for call in (compare, lambda *a: list(runs(*a))):
            with pytest.raises(BadInputError, match=says):
                call(replace(table, **lacking), ["cst"], [0.2], protocol)
    for names, betas in (([], [0.2]), (["cst"], [])):
        with pytest.raises(BadInputError, match="nothing to compare"):
            compare(table, names, betas)


@pytest.mark.parametrize("n", [0, 1, 49, 50])
def test_no_record_after_the_warm_up(n: int) -> None:
    table = table_of(slow.make_stream("continuous", N, 0)).take(np.arange(n))
    with pytest.raises(BadInputError, match=rf"{n} records? leaves? none to evaluate"):
        compare(table, ["cst"], [0.2])


@pytest.mark.parametrize("n", [51, 52])
def test_one_record_after_the_warm_up_is_enough(n: int) -> None:
    table = table_of(slow.make_stream("continuous", N, 0)).take(np.arange(n))
    compared = compare(table, replay_names(), BETAS, Protocol(seeds=2))
    audits = compared.values[..., METRICS.index("audit_rate")]
    assert (audits == 0.0).all()  # no cost fits into a third of itself
    assert np.isnan(compared.values[..., METRICS.index("hit_rate")]).all()


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"seeds": 0}, "seeds=0"),
        ({"seeds": 2.0}, "seeds=2.0"),
        ({"first_seed": -1}, "first_seed=-1"),
        ({"label_noise": 1.0}, "label_noise=1.0"),
        ({"label_noise": float("nan")}, "label_noise=nan"),
        ({"signal_noise": -0.1}, "signal_noise=-0.1"),
        ({"signal_noise": float("inf")}, "signal_noise=inf"),
        ({"feedback": "none"}, "feedback='none': choose one of full, partial"),
        ({"label": "beauty"}, "label='beauty': choose one of error, benefit"),
    ],
)
def test_wrong_protocols(settings: dict[str, Any], says: str) -> None:
    with pytest.raises(BadInputError, match=says):
        Protocol(**settings)


def test_a_wrong_share_of_the_stream() -> None:
    table = table_of(slow.make_stream("continuous", N, 0))
    with pytest.raises(BadInputError, match="evaluate='third-half'"):
        compare(table, ["cst"], [0.2], replace(EXACT, evaluate="third-half"))


@pytest.mark.parametrize("kind", slow.KINDS)
def test_odd_streams_are_compared_without_a_warning(kind: str) -> None:
    """Ratios are numbers in [0, 1], or NaN where the denominator is 0."""
    table = table_of(slow.make_stream(kind, 90, 11))
    compared = compare(table, replay_names(), [0.2], Protocol(seeds=2))
    for p, contender in enumerate(compared.contenders):
        values = dict(zip(METRICS, np.moveaxis(compared.values[p, 0], -1, 0), strict=True))
        for metric in ("audit_rate", "utilisation", "value"):
            assert ((values[metric] >= 0) & (values[metric] <= 1 + 1e-12)).all(), contender
        assert np.array_equal(np.isnan(values["hit_rate"]), values["audit_rate"] == 0)
        assert np.array_equal(np.isnan(values["yield"]), values["audit_rate"] == 0)
        if kind == "all_right":
            assert np.isnan(values["recall"]).all()
