"""The budget that a target needs: exact parts, coverage, the command and its page."""

import json
import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from partly_verified import log_of, run_gate

from gatekeeper import BadInputError
from gatekeeper.analysis.off_policy import Evidence
from gatekeeper.analysis.plan import Curve, Draws, Point, curve_of
from gatekeeper.analysis.policy_run import Contender
from gatekeeper.analysis.replay import replay
from gatekeeper.analysis.vectorised import fixed_score
from gatekeeper.cli import main
from gatekeeper.io.records import RecordTable, write_records
from gatekeeper.paper.stress import make_stream
from gatekeeper.policies import T0, Threshold
from gatekeeper.stats.interval import Interval
from gatekeeper.stats.mid_p import midp_interval

PAGE = Path(__file__).parents[2] / "docs" / "plan.md"
SOME = (0.2, 0.5, 0.8)


def test_with_every_label_a_point_is_the_replay() -> None:
    """Recall and residual risk are close to the replay's, whose quantiles are still being learned;
    their intervals are those of as many errors, and of as many outputs that are not verified."""
    table = make_stream("sharp-signal", 900, 1)
    for point in curve_of(Evidence(table), "threshold", SOME).points[1:-1]:
        once = replay(list(table), Threshold(point.budget), point.budget)
        left = ~np.array(once.verified)
        errors = table.error[T0:]
        assert point.verified == pytest.approx(point.budget, abs=0.02)
        assert point.recall.value == pytest.approx(once.recall, abs=0.02)
        assert point.residual_risk.value == pytest.approx(errors[left].mean(), abs=0.02)
        found, risk = point.recall, point.residual_risk
        expected = midp_interval(found.value, errors.sum())
        assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=0.012)
        expected = midp_interval(risk.value, left.sum())
        assert (risk.low, risk.high) == pytest.approx((expected.low, expected.high), abs=0.012)


def test_random_finds_its_share() -> None:
    """Its recall needs no label; the error rate of outputs that it skips is that of all."""
    table = make_stream("usual", 800, 0)
    curve = curve_of(Evidence(log_of(table, chance=0.1, seed=0)), "random")
    for target in (0.3, 0.9):
        needed = curve.for_recall(target).budget
        assert (needed.value, needed.low, needed.high) == pytest.approx((target,) * 3)
    risks = {point.residual_risk for point in curve.points[:-1]}
    assert len(risks) == 1


def test_needed_budgets_are_read_off_every_draw() -> None:
    """Straight lines between points; the estimate is the mean over curves, not of their mean."""
    recall = np.array([[0.0, 0.4, 0.8, 1.0], [0.0, 0.6, 0.6, 1.0]])
    risk = np.array([[0.50, 0.30, 0.10], [0.54, 0.34, 0.14]])
    known = Interval(0.5, 0.5, 0.5)
    points = tuple(Point(b, b, known, known) for b in (0.0, 0.2, 0.6, 1.0))
    curve = Curve(Contender("any"), points, Draws(recall, recall), Draws(risk, risk))
    needed = curve.for_recall(0.6).budget
    assert needed.value == pytest.approx((0.4 + 0.2) / 2)
    assert 0.2 <= needed.low < 0.21 < 0.39 < needed.high <= 0.4
    assert curve.for_recall(0.9).budget.value == pytest.approx((0.8 + 0.9) / 2)
    assert curve.highest_risks() == pytest.approx([0.54, 0.34, 0.14], abs=0.003)
    risks = [curve.for_residual_risk(target) for target in (0.6, 0.35, 0.15, 0.05)]
    assert risks == [0.0, 0.2, 0.6, None]
    for target in (0.0, 1.0, -0.1, float("nan")):
        with pytest.raises(BadInputError, match="between 0 and 1"):
            curve.for_recall(target)


def test_a_claimed_risk_holds_over_all_budgets_looked_at() -> None:
    """Scores are uninformative, so no budget has a residual risk below the error rate, 40 %. A
    separate bound for each of the 49 budgets would claim one in many more runs."""
    false = apart = 0
    for seed in range(60):
        table = make_stream("no-signal-homogeneous", 500, seed)
        curve = curve_of(Evidence(table), "threshold")
        false += curve.for_residual_risk(0.39) is not None
        apart += any(p.residual_risk.high <= 0.39 for p in curve.points[:-1])
    assert false <= 6
    assert apart > 2 * false


@cache
def this_run_and_the_next(seed: int) -> tuple[RecordTable, float, float]:
    """A run; at a budget of 0.4 recall and residual risk of its score on 20,000 further outputs."""
    table, more = make_stream("usual", 600, seed), make_stream("usual", 20_000, 10_000 + seed)
    h = np.vstack([table.h[:T0], more.h])
    cost = np.concatenate([table.cost_estimate[:T0], more.cost_estimate])
    z = (fixed_score(h, cost, table.error[:T0]) / cost)[T0:]
    chosen = np.argsort(-z)[: round(0.4 * more.error.size)]
    left = np.delete(more.error, chosen)
    return table, more.error[chosen].sum() / more.error.sum(), left.mean()


@pytest.mark.parametrize("everything", [True, False])
def test_the_next_runs_figures_are_covered(everything: bool) -> None:
    """benchmarks/off_policy.py has the figures; this test notices gross errors."""
    runs = 120
    covered = dict.fromkeys(("recall", "risk", "budget"), 0)
    for seed in range(runs):
        table, recall, risk = this_run_and_the_next(seed)
        records = table if everything else log_of(table, chance=0.1, seed=seed)
        curve = curve_of(Evidence(records), "threshold", (0.2, 0.3, 0.4, 0.5, 0.6))
        at, needed = curve.at(0.4), curve.for_recall(recall).budget
        covered["recall"] += at.recall.low <= recall <= at.recall.high
        covered["risk"] += at.residual_risk.low <= risk <= at.residual_risk.high
        covered["budget"] += needed.low <= 0.4 <= needed.high
    for name, times in covered.items():
        assert times >= 0.88 * runs, name


def test_more_labels_say_more() -> None:
    """A log's interval holds that of the same outputs with every label, up to chance."""
    table = make_stream("usual", 2000, 4)
    known, little = (
        curve_of(Evidence(t), "cst", SOME) for t in (table, log_of(table, chance=0.05, seed=4))
    )
    for all_labels, some in zip(known.points[1:-1], little.points[1:-1], strict=True):
        width = [p.recall.high - p.recall.low for p in (all_labels, some)]
        assert width[1] > 1.5 * width[0]


# -- the command -----------------------------------------------------------------------------------


def test_the_page_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """docs/plan.md: every command, on a gate's log and on records, and what JSON holds."""
    monkeypatch.chdir(tmp_path)
    run_gate(Path("run.db"), explore=0.3)
    write_records("records.jsonl", make_stream("sharp-signal", 500, 0))
    commands = re.findall(r"^    gatekeeper (.*?)(?: +#.*)?$", PAGE.read_text(), re.MULTILINE)
    assert len(commands) == 6
    for command in commands:
        assert main(command.split()) == 0, command
        text = capsys.readouterr().out
        assert text
        if "--json" not in command:
            assert all(len(line) <= 80 for line in text.splitlines()), command


def test_the_answer_in_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The run's own policy, and random beside it."""
    run_gate(tmp_path / "run.db", explore=0.3)
    arguments = ["plan", str(tmp_path / "run.db"), "--residual-risk", "0.6", "--json"]
    assert main([*arguments, "--recall", "0.8"]) == 0
    result = json.loads(capsys.readouterr().out)
    own, random = result["policies"]
    assert (own["policy"], random["policy"]) == ("threshold", "random")
    assert own["recall"]["low"] <= own["recall"]["budget"] <= own["recall"]["high"]
    assert random["recall"]["budget"] == pytest.approx(0.8)
    assert own["residual_risk"] == {"target": 0.6, "budget": 0.0}  # 40 % of all are wrong
    assert [point["budget"] for point in own["curve"]][:2] == [0.0, 0.02]
    assert main([*arguments, "--policy", "random"]) == 0
    (only,) = json.loads(capsys.readouterr().out)["policies"]
    assert only["recall"] is None


def test_what_a_file_cannot_show_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_records(tmp_path / "records.jsonl", make_stream("inverted-homogeneous", 400, 0))
    targets = ["--residual-risk", "0.05", "--recall", "0.999"]
    assert main(["plan", str(tmp_path / "records.jsonl"), *targets]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "shows it at no budget" in said
    assert "only by verifying everything" in said


def test_bad_input_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run_gate(tmp_path / "blind.db", explore=0.0)
    table = make_stream("usual", 300, 0)
    write_records(tmp_path / "records.jsonl", table)
    partial = replace(table, error=np.where(np.arange(300) < 200, table.error, np.nan))
    write_records(tmp_path / "partial.jsonl", partial)
    for file, more, why in (
        ("blind.db", [], "propensity 0"),
        ("partial.jsonl", [], "propensities"),
        ("records.jsonl", ["--recall", "1.5"], "--recall '1.5': give a number in (0, 1)"),
        ("records.jsonl", ["--residual-risk", "0"], "--residual-risk '0': give a number in (0, 1)"),
        ("records.jsonl", ["--policy", "best"], "unknown"),
        ("none.jsonl", [], "cannot be read"),
    ):
        assert main(["plan", str(tmp_path / file), *more]) == 2
        said = capsys.readouterr()
        assert why in said.err
        assert (said.err.count("\n"), said.out) == (1, "")
