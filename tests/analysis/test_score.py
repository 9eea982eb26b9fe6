"""The mean score of all outputs: exact if all are verified, unbiased, covered, always bounded."""

from __future__ import annotations

import html
import json
from collections.abc import Sequence
from dataclasses import replace
from math import comb, nan, sqrt
from pathlib import Path

import numpy as np
import pytest

from gatekeeper import (
    BadInputError,
    Budget,
    Candidate,
    GateResult,
    Outcome,
    Record,
    Signals,
    Verdict,
    VerificationGate,
)
from gatekeeper.analysis.mean_of_all import Drawn, interval_of, mean_of_all
from gatekeeper.analysis.score import (
    ScoreEstimate,
    estimate_score,
    estimate_score_of_run,
    score_as_json,
    score_rows,
    show_score,
)
from gatekeeper.io.records import load_records, write_records
from gatekeeper.policies import Survey
from gatekeeper.report.report import report
from gatekeeper.stats.mid_p import midp_interval
from gatekeeper.stats.raw_table import Raw, RawTable
from gatekeeper.stats.value_model import Columns, Design, predict
from gatekeeper.testing import make_generation
from gatekeeper.types import FloatArray


def records(
    p: Sequence[float | None], value: Sequence[float | None], drawn: Sequence[bool]
) -> list[Record]:
    """Outputs with graded values; outputs that are not drawn have none."""
    return [
        Record(
            f"r{i}",
            Signals(0.1 * (i % 7), -1.0 / (1 + i % 5), 0.5),
            1.0 + i % 3,
            1.0,
            None if v is None or not d else int(v < 1.0),  # type: ignore[arg-type]
            propensity=q,
            value=v if d else None,
        )
        for i, (q, v, d) in enumerate(zip(p, value, drawn, strict=True))
    ]


def stream(n: int, seed: int, *, graded: bool) -> tuple[list[Candidate], FloatArray]:
    """Outputs whose value depends on their first signal, with the noise of real ones."""
    rng = np.random.default_rng(seed)
    u = rng.normal(size=n)
    p = 1.0 / (1.0 + np.exp(1.5 * u - 0.5))
    right = rng.random(n) < p
    value = np.where(right, 1.0, rng.random(n) * 0.6) if graded else right.astype(float)
    return [
        Candidate(f"c{i}", Signals(a, b, nan), 1.0)
        for i, (a, b) in enumerate(zip(u.tolist(), (u + rng.normal(size=n)).tolist(), strict=True))
    ], value


def survey(
    candidates: list[Candidate], value: FloatArray, beta: float, seed: int
) -> list[GateResult]:
    """The policy's draws, with the values of those drawn."""
    policy, results = Survey(beta, horizon=len(candidates), seed=seed), []
    for candidate, v in zip(candidates, value.tolist(), strict=True):
        decision, outcome = policy.decide(candidate), None
        if decision.verify:
            outcome = Outcome(Verdict.PASSED if v == 1.0 else Verdict.FAILED, value=v)
            policy.update(candidate, decision, outcome)
        results.append(GateResult(candidate.id, candidate.signals, decision, outcome))
    return results


# -- what it is, by slow and independent versions ------------------------------------------------


def test_without_predictions_it_is_the_mean_of_the_sample() -> None:
    rng = np.random.default_rng(0)
    y = (rng.random(50) < 0.7).astype(float)
    known = np.zeros(50, dtype=bool)
    known[rng.permutation(50)[:20]] = True
    drawn = Drawn(np.full(50, 0.4), known, np.where(known, y, nan), np.ones(50))
    found = mean_of_all(drawn, None)
    assert found is not None
    sample = float(y[known].mean())
    assert found.value == pytest.approx(sample)
    interval, slow = interval_of(found, found.spread), midp_interval(sample, 20 / (1 - 0.4))
    assert (interval.low, interval.high) == pytest.approx((slow.low, slow.high))
    assert (found.low, found.high) == pytest.approx(
        (y[known].sum() / 50, y[known].sum() / 50 + 0.6)
    )


def test_unequal_chances_are_weighed_by_what_each_output_stands_for() -> None:
    rng = np.random.default_rng(1)
    p = np.where(rng.random(60) < 0.5, 0.2, 0.6)
    p[:5] = 1.0
    y, w = rng.random(60), rng.uniform(0.5, 2.0, 60)
    known = (rng.random(60) < p) | (p == 1.0)
    found = mean_of_all(Drawn(p, known, np.where(known, y, nan), w), None)
    assert found is not None
    known_y = sum(w[i] * y[i] for i in range(60) if known[i])
    rest = sum(w[i] for i in range(60) if not known[i])
    stands = {i: w[i] * (1 / p[i] - 1) for i in range(60) if known[i]}
    # Of those left to chance; residuals leave the output itself out of the mean.
    chosen = [float(y[i]) for i in range(60) if known[i] and p[i] < 1.0]
    mean, n = sum(chosen) / len(chosen), len(chosen)
    off = sum(q * (y[i] - (n * mean - y[i]) / (n - 1)) for i, q in stands.items())
    expected = (known_y + rest * (mean + off / sum(stands.values()))) / w.sum()
    assert found.value == pytest.approx(expected)


def test_predictions_leave_the_outputs_own_value_out() -> None:
    """Exactly those of fits without it, averaged with the same weights."""
    rng = np.random.default_rng(2)
    raws = [Raw(*rng.normal(size=5).tolist(), {"f": float(rng.random())}) for _ in range(40)]
    table = RawTable.of(raws)
    columns = Design.of(table).of_rows(table)
    y = rng.random(12)
    known = np.arange(12)
    found = predict(columns, known, y)
    assert found.mean_left_out == pytest.approx([(y.sum() - v) / 11 for v in y])
    for i in range(12):
        changed = y.copy()
        changed[i] = 1.0 - changed[i]
        # What is left of its own value is only in the weights of the four sizes.
        assert predict(columns, known, changed).left_out[i] == pytest.approx(
            found.left_out[i], abs=0.05
        )
    one_size = Columns(columns.z, columns.variance * 1e-12)
    assert predict(one_size, known, y).left_out == pytest.approx(found.mean_left_out)


def test_a_design_of_one_output_is_that_of_many() -> None:
    rng = np.random.default_rng(3)
    raws = [
        Raw(*np.where(rng.random(5) < 0.2, nan, rng.normal(size=5)).tolist(), {"f": float(i % 3)})
        for i in range(50)
    ]
    seen = [r._replace(size=0.1 * i, positions=1.0) for i, r in enumerate(raws)]
    design = Design.of(RawTable.of(seen))
    again = Design.restored(json.loads(json.dumps(design.state())))
    rows = [r._replace(size=1.0, positions=2.0) for r in raws]
    many = design.of_rows(RawTable.of(rows)).z
    for row, raw in zip(many, rows, strict=True):
        assert design(raw) == again(raw) == pytest.approx(row.tolist())


# -- how good it is ------------------------------------------------------------------------------


@pytest.mark.parametrize("graded", [False, True])
@pytest.mark.parametrize(("n", "beta"), [(100, 0.1), (250, 0.3)])
def test_it_is_unbiased_better_than_a_random_subset_and_covers(
    n: int, beta: float, graded: bool
) -> None:
    off, uniform, holds = [], [], []
    for seed in range(250):
        candidates, value = stream(n, seed, graded=graded)
        found = estimate_score(survey(candidates, value, beta, seed))
        assert found.point is not None
        assert beta * n - 1 <= found.checks <= beta * n
        off.append(found.point - value.mean())
        uniform.append(value.var(ddof=1) * (1 - beta) / found.checks)
        holds.append(found.low <= value.mean() <= found.high)
        assert found.bounds.low <= found.low <= found.point <= found.high <= found.bounds.high
        assert found.both is not None
        assert found.both.low <= found.low < found.high <= found.both.high
    rmse = sqrt(np.mean(np.square(off)) / np.mean(uniform))
    assert rmse < 0.97
    assert abs(np.mean(off)) < 3.0 * sqrt(np.mean(uniform) / 250)
    assert 0.915 < np.mean(holds) < 0.985  # 95 %, of 250


def test_coverage_with_few_possible_outcomes() -> None:
    """A random sample without predictions, exactly: the coverage jumps with the true score.

    Of 100 outputs 50 are right and 20 are drawn: an interval that treats right and wrong alike
    covers in 92 % or in 98 %. Over all true scores the mid-p interval covers in 95 %.
    """
    n, size = 20, 100
    found = [midp_interval(x / n, n / (1.0 - n / size)) for x in range(n + 1)]

    def chance(right: int) -> FloatArray:
        """Of each number of right ones in the sample."""
        ways = [comb(right, x) * comb(size - right, n - x) for x in range(n + 1)]
        return np.array(ways) / comb(size, n)

    def held(right: int) -> float:
        holds = [each.low - 1e-9 <= right / size <= each.high + 1e-9 for each in found]
        return float(chance(right) @ holds)

    alike = [float(chance(50)[10 - k : 11 + k].sum()) for k in range(11)]
    assert not any(0.94 <= share <= 0.965 for share in alike)
    assert round(held(50), 3) == 0.922 == round(max(s for s in alike if s < 0.94), 3)
    assert 0.94 < np.mean([held(right) for right in range(20, 81)]) < 0.965


def test_a_shift_of_the_stream_does_no_harm() -> None:
    """Errors and their predictors change halfway: draws with known propensities stay valid."""
    holds, off = [], []
    for seed in range(200):
        first, easy = stream(100, seed, graded=False)
        second, hard = stream(100, 1000 + seed, graded=False)
        second = [Candidate(f"d{i}", c.signals, 1.0) for i, c in enumerate(second)]
        value = np.concatenate([easy, 1.0 - hard])
        found = estimate_score(survey([*first, *second], value, 0.3, seed))
        holds.append(found.low <= value.mean() <= found.high)
        off.append((found.point or 0.0) - value.mean())
    assert np.mean(holds) > 0.91
    assert abs(np.mean(off)) < 0.01


# -- through a gate ------------------------------------------------------------------------------


def gate(log: Path | None, value: dict[str, float], budget: float, n: int) -> VerificationGate:
    return VerificationGate(
        budget=Budget(fraction=budget, horizon=n),
        verifier=lambda output, task: value[output.id],
        goal="score",
        log=log,
        seed=5,
    )


def test_a_gate_draws_as_its_policy_and_goes_on_after_a_break(tmp_path: Path) -> None:
    outputs = [make_generation(f"q{i}", seed=i) for i in range(200)]
    value = {
        g.id: round(float(np.random.default_rng(i).random()), 1) for i, g in enumerate(outputs)
    }
    with gate(None, value, 0.4, 200) as whole:
        results = [whole.maybe_verify(output) for output in outputs]
        status = whole.status()
    assert (status.verified, status.warmup_verified, status.budget_exhausted) == (80, 0, 0)
    assert status.spent == status.cap == 80
    assert all(0.0 < r.decision.propensity < 1.0 for r in results)
    policy = Survey(0.4, horizon=200, seed=5)
    for output, result in zip(outputs, results, strict=True):
        candidate = Candidate(output.id, result.signals, 30.0 + 1.0)
        decision = policy.decide(candidate)
        if result.decision.propensity == 0.4:  # until it has learned, and ĉ matters
            assert decision.verify is result.decision.verify
    log = tmp_path / "run.db"
    for start in (0, 70, 140):  # opened three times
        with gate(log, value, 0.4, 200) as part:
            again = [part.maybe_verify(output) for output in outputs[start : start + 70]]
            expected = results[start : start + 70]
            assert repr([r.decision for r in again]) == repr([r.decision for r in expected])
    logged, live = load_records(log), estimate_score(results)
    assert [r.value for r in logged] == [r.outcome and r.outcome.value for r in results]
    path = tmp_path / "records.jsonl"
    write_records(path, logged)
    assert repr(estimate_score(load_records(path))) == repr(estimate_score(logged))
    truth = float(np.mean(list(value.values())))
    assert live.low < truth < live.high
    assert live.high - live.low < 0.2


def test_a_budget_of_one_is_exact_to_the_last_digit() -> None:
    value = {f"q{i}": float(np.random.default_rng(i).random()) for i in range(37)}
    with gate(None, value, 1.0, 37) as everything:
        results = [everything.maybe_verify(make_generation(id_)) for id_ in value]
    found = estimate_score(results)
    assert found.point == found.low == found.high == float(np.mean(list(value.values())))
    assert found.both is not None
    assert found.both.low < found.point < found.both.high
    assert show_score(found)[1].endswith("known")


def test_a_forced_verification_leaves_the_draws_within_the_budget() -> None:
    value = dict.fromkeys((f"q{i}" for i in range(60)), 1.0)
    with gate(None, value, 0.3, 60) as forced:
        for i, id_ in enumerate(value):
            forced.maybe_verify(make_generation(id_), force=i in (3, 4, 30))
        assert forced.status().verified <= 18
        assert forced.status().budget_exhausted <= 1


@pytest.mark.parametrize(("n", "budget"), [(25, 0.5), (13, 0.35), (10, 0.3), (77, 0.2), (10, 0.29)])
def test_a_budget_of_a_part_of_a_draw_leaves_no_output_without_a_chance(
    n: int, budget: float
) -> None:
    with gate(None, {f"q{i}": 1.0 for i in range(n)}, budget, n) as some:
        results = [some.maybe_verify(make_generation(f"q{i}")) for i in range(n)]
        assert some.status().verified == int(n * budget + 1e-9)
    assert min(r.decision.propensity for r in results) > 0.0


def test_each_goal_has_its_policies() -> None:
    with pytest.raises(BadInputError, match="policy='cst' with goal='score': this policy is for"):
        VerificationGate("cst", budget=Budget(fraction=0.2), goal="score")
    with pytest.raises(BadInputError, match="policy='survey' with goal='errors'"):
        VerificationGate("survey", budget=Budget(fraction=0.2))
    with pytest.raises(BadInputError, match=r"goal='scores': choose .*'score'\?"):
        VerificationGate(budget=Budget(fraction=0.2), goal="scores")  # type: ignore[arg-type]


# -- never without bounds ------------------------------------------------------------------------


def ends(found: ScoreEstimate) -> tuple[float, float]:
    return found.low, found.high


def test_bounds_where_there_is_no_estimate() -> None:
    some = records([0.5] * 4, [1.0, 0.5, None, None], [True, True, False, False])
    assert estimate_score(some).bounds.low == pytest.approx(1.5 / 4)
    nothing = records([0.5] * 4, [None] * 4, [False] * 4)
    found = estimate_score(nothing)
    assert (found.point, ends(found), found.checks) == (None, (0.0, 1.0), 0)
    assert "bounds" in found.why
    selected = estimate_score(records([1.0] * 2, [None] * 2, [False] * 2))
    assert (selected.point, selected.notes) == (None, ())  # of what an estimate assumes
    unknown = records([None] * 4, [1.0, 0.5, None, None], [True, True, False, False])
    found = estimate_score(unknown)
    assert (found.point, ends(found)) == (None, (0.375, 0.875))
    json.dumps(score_as_json(found))
    # Half had no chance: whatever they are, the interval for the others holds beside them.
    half = records([0.5] * 8 + [0.0] * 8, [1.0] * 16, [True] * 4 + [False] * 12)
    found = estimate_score(half)
    assert found.point == 1.0  # as if they were like the others
    assert found.bounds.low < found.low < 0.5 < found.high == 1.0
    assert "8 of 16 outputs had no chance" in found.why
    json.dumps(score_as_json(found), allow_nan=True)


@pytest.mark.parametrize("p", [0.5, 0.0])
def test_no_estimate_contradicts_a_verdict_from_outside(p: float) -> None:
    """Every drawn output is right; those found wrong from outside were drawn with probability p."""
    drawn = records([0.5] * 40, [1.0] * 40, [i % 2 == 0 for i in range(40)])
    outside = [
        Record(f"x{i}", Signals(nan, nan, nan), 1.0, 1.0, 1, verified=False, propensity=p)
        for i in range(20)
    ]
    unchecked = Record("u", Signals(nan, nan, nan), 1.0, None, None, propensity=p)
    found = estimate_score([*drawn, *outside, unchecked])
    assert found.bounds.low <= found.low < found.high == pytest.approx(found.bounds.high)
    assert found.point == pytest.approx(41 / 61)
    for row in (found.questions, found.both):
        assert row is not None
        assert row.low <= row.value <= row.high


def test_a_metric_in_its_own_unit_with_weights() -> None:
    p, drawn = [0.5] * 40, [True, False] * 20
    value = [float(i % 5) for i in range(40)]
    results = records(p, [0.0] * 40, drawn)
    given = {f"r{i}": v for i, v in enumerate(value) if drawn[i]}
    found = estimate_score(results, values=given, bounds=(0.0, 4.0))
    unit = estimate_score(results, values={k: v / 4.0 for k, v in given.items()})
    assert found.point == pytest.approx(4.0 * (unit.point or nan))
    assert ends(found) == pytest.approx(tuple(4.0 * end for end in ends(unit)))
    heavy = {f"r{i}": 1000.0 for i in range(0, 40, 10)}
    weighed = estimate_score(results, values=given, bounds=(0.0, 4.0), weights=heavy)
    assert (weighed.point or 0.0) < 0.1  # those four are 0
    shares = {f"r{i}": 1.0 + i % 3 for i in range(40)}
    usual = estimate_score(results, values=given, bounds=(0.0, 4.0), weights=shares)
    for unit_weight in (2.0**-900, 2.0**1000):  # only ratios matter
        same = {id_: unit_weight * share for id_, share in shares.items()}
        scaled = estimate_score(results, values=given, bounds=(0.0, 4.0), weights=same)
        assert repr(scaled) == repr(usual)
    with pytest.raises(BadInputError, match=r"value=2.0 lies outside bounds=\(0.0, 1.0\)"):
        estimate_score(results, values=given)
    with pytest.raises(BadInputError, match="weight=0 must be a number above 0"):
        estimate_score(results, weights={"r3": 0})
    with pytest.raises(BadInputError, match="bounds="):
        estimate_score(results, bounds=(1.0, 1.0))
    with pytest.raises(BadInputError, match="with a finite difference"):
        estimate_score(results, bounds=(-1e308, 1e308))


@pytest.mark.parametrize(
    ("values", "bounds"), [((0.0, 1.0), (0, 1)), ((3.0, 7.0), (0, 100)), ((-2.5, 1e9), (-2.5, 1e9))]
)
def test_a_page_takes_the_bounds_from_the_values(
    values: tuple[float, float], bounds: tuple[float, float], tmp_path: Path
) -> None:
    """A page about a log, which has no bounds, is made for every metric."""
    with VerificationGate(
        goal="score",
        budget=Budget(fraction=0.3, horizon=100),
        verifier=lambda output, task: Outcome(Verdict.PASSED, value=values[int(output.id) % 2]),
        log=tmp_path / "run.db",
    ) as gate:
        results = [gate.maybe_verify(make_generation(str(i), seed=i)) for i in range(100)]
    expected = estimate_score(load_records(tmp_path / "run.db"), bounds=bounds)
    found = estimate_score_of_run(load_records(tmp_path / "run.db"))
    assert repr(replace(found, notes=())) == repr(expected)
    assert repr(estimate_score_of_run(results).bounds) == repr(expected.bounds)
    page = html.unescape(report(tmp_path / "run.db"))
    for line in (found.why, *found.notes, *score_rows(found)[0][1:]):
        assert line in page
    assert ("Values are taken to be from" in page) == (bounds != (0, 1))


def test_repeats_of_a_question_are_no_new_questions() -> None:
    """Ten repeats that always agree: as uncertain as their questions; of independent ones: not."""
    rng = np.random.default_rng(4)
    of = {f"r{i}": f"q{i // 10}" for i in range(400)}
    same = np.repeat(rng.random(40) < 0.5, 10).astype(float)
    new = (rng.random(400) < 0.5).astype(float)
    widths = []
    for value in (same, new):
        every = records([1.0] * 400, value.tolist(), [True] * 400)
        found = estimate_score(every, questions=of).both
        assert found is not None
        widths.append(found.margin)
    expected = midp_interval(float(same.mean()), 40.0).margin
    assert widths[0] == pytest.approx(expected, rel=0.05)
    assert widths[1] < 0.6 * widths[0]
    # Of one repeat each, nothing is known of how they agree: the wider interval.
    drawn = [i % 10 == 0 for i in range(400)]
    found = estimate_score(records([0.1] * 400, new.tolist(), drawn), questions=of).questions
    assert found is not None
    assert found.margin == pytest.approx(midp_interval(found.value, 40.0).margin, rel=0.05)


def test_outputs_beyond_a_used_up_total_have_no_chance() -> None:
    """The stream is longer than its horizon, and all of what follows is wrong."""
    with VerificationGate(
        goal="score",
        budget=Budget(total=20, horizon=100),
        verifier=lambda output, task: int(output.id) < 100,
    ) as gate:
        results = [gate.maybe_verify(make_generation(str(i), seed=i)) for i in range(300)]
    assert all(0.0 < result.decision.propensity < 1.0 for result in results[:99])
    assert {result.decision.propensity for result in results[100:]} == {0.0}
    found = estimate_score(results)
    assert found.checks == 20
    assert found.low < 1 / 3 < found.high
