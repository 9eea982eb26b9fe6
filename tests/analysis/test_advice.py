"""One advice for all commands: from all policies, the default where the outputs cannot tell."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from partly_verified import run_gate

from gatekeeper import Budget
from gatekeeper.analysis.advice import MOST, advise
from gatekeeper.analysis.off_policy import Evidence
from gatekeeper.cli import main
from gatekeeper.io.records import RecordTable, write_records
from gatekeeper.policies import DEFAULT_POLICY, Threshold, built_in
from gatekeeper.programs.run_options import RunOptions

LIVE = {policy.name for policy in built_in() if not policy.replay_only}


def records(n: int, *, informed: float = 2.0, seed: int = 0) -> RecordTable:
    """h1 is `informed` higher where the output is wrong, as in two fifths of them."""
    rng = np.random.default_rng(seed)
    error = (rng.random(n) < 0.4).astype(np.float64)
    h = np.full((n, 3), np.nan)
    h[:, 0] = 3.0 + informed * error + rng.normal(size=n)
    cost = rng.lognormal(0.0, 0.3, n)
    return RecordTable([f"r{i}" for i in range(n)], h, cost, np.ones(n), error)


def logged(table: RecordTable, share: float = 0.3) -> RecordTable:
    """The records in the log of a gate that draws this share at random."""
    seen = np.random.default_rng(1).random(len(table)) < share
    seen[:50] = True
    p = np.full(len(table), share)
    p[:50] = 1.0
    return replace(
        table,
        error=np.where(seen, table.error, np.nan),
        cost=np.where(seen, table.cost, np.nan),
        propensity=p,
        verified=seen.astype(np.float64),
    )


def test_every_policy_is_compared_and_all_commands_say_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "2000")
    table = records(400)
    advice = advise(table, 0.2)
    assert {advice.policy, *(rival.policy for rival in advice.rivals)} == LIVE
    gains = [rival.less.value for rival in advice.rivals]
    assert gains == sorted(gains)
    assert advice.policy == DEFAULT_POLICY == RunOptions().policy
    assert advice.beats_random
    path, page = tmp_path / "records.jsonl", tmp_path / "report.html"
    write_records(path, table)
    for command in (["diagnose", "--seeds", "1"], ["compare", "--budget", "0.2"]):
        assert main([command[0], str(path), *command[1:]]) in (0, 3, 4)
        assert f"\n{advice}\n" in capsys.readouterr().out
        main([command[0], str(path), *command[1:], "--json"])
        assert json.loads(capsys.readouterr().out)["advice"]["policy"] == advice.policy
    assert main(["report", str(path), "-o", str(page)]) == 0
    assert page.read_text().count(str(advice)) == 2  # in short, and above the table of policies


@pytest.mark.parametrize(
    ("budget", "share"),
    [
        (Budget(fraction=0.3, horizon=700), 0.3),
        (Budget(fraction=0.5, total=50 + 0.4 * 650, unit="usd", max_cost=1.0), 0.4),
    ],
)
def test_the_budget_of_a_log_is_its_own(
    budget: Budget, share: float, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In `diagnose` as in `report` and `compare`; an option has precedence."""
    log = tmp_path / "run.db"
    run_gate(log, explore=0.1, policy=Threshold(0.2), budget=budget)
    for more, wanted in (([], share), (["--budget", "0.1"], 0.1)):
        for command in (["diagnose", "--seeds", "1"], ["compare"]):
            assert main([command[0], str(log), *command[1:], "--json", *more]) in (0, 3, 4)
            advised = json.loads(capsys.readouterr().out)["advice"]["budget"]
            assert advised == pytest.approx(wanted)


def test_recalls_are_those_of_the_choices() -> None:
    """The mean over draws is the recall on this file; random finds its share."""
    table = records(400)
    evidence = Evidence(table)
    advice = advise(table, 0.2, evidence=evidence)
    y = evidence.label
    for rival in advice.rivals:
        found = evidence.shares(rival.policy, 0.2) @ y / y.sum()
        assert rival.recall.value == pytest.approx(found, abs=0.01)
        assert rival.recall.low < found < rival.recall.high or rival.policy == "random"
        assert rival.ahead + rival.behind <= 1.0
        assert advice.recall is not None
        expected = advice.recall.value - rival.recall.value
        assert rival.less.value == pytest.approx(expected, abs=0.02)  # other draws of labels
    assert {r.policy: r.recall.value for r in advice.rivals}["random"] == pytest.approx(0.2)


def test_another_policy_is_advised_only_beyond_chance(monkeypatch: pytest.MonkeyPatch) -> None:
    """Against a default that draws the least uncertain outputs, the others are ahead; against
    one that differs in a few outputs none is."""
    table = records(600)
    shares = Evidence.shares

    def as_default(change: object) -> None:
        def changed(self: Evidence, policy: str, beta: float) -> np.ndarray:
            share = shares(self, "threshold", beta)
            if policy == "random":
                return shares(self, policy, beta)
            return change(share, self) if policy == DEFAULT_POLICY else share  # type: ignore[operator]

        monkeypatch.setattr(Evidence, "shares", changed)

    as_default(lambda share, evidence: (evidence.stream.score[50:] < 0.2).astype(float))
    worse = advise(table, 0.2)
    assert worse.policy not in (DEFAULT_POLICY, "random")
    assert f"Use {worse.policy}: " in str(worse)
    few = np.random.default_rng(0).random(550) < 0.01
    as_default(lambda share, evidence: np.where(few, 0.0, share))
    level = advise(table, 0.2)
    assert level.policy == DEFAULT_POLICY
    assert "no significant difference from" in str(level)
    assert "threshold" in {rival.policy for rival in level.level}


def test_a_log_without_an_answer_gets_a_reason() -> None:
    """A useless signal; a log that did not explore; too few outputs; no signal at all."""
    useless = advise(records(4000, informed=0.0), 0.2)
    assert useless.beats_random is not True
    assert "random draws" in str(useless)
    partly = advise(logged(records(600)), 0.2)
    assert partly.reason is None
    assert partly.recall is not None
    assert partly.recall.low < partly.recall.value < partly.recall.high
    blind = logged(records(300))
    blind = replace(blind, propensity=np.where(np.arange(300) < 50, 1.0, 0.0))
    dumb = records(300)
    dumb = replace(dumb, h=np.full((300, 3), np.nan))
    for table, reason in (
        (blind, "have propensity 0"),
        (records(40), "leave none after a warm-up"),
        (dumb, "no output after the warm-up has a signal"),
    ):
        advice = advise(table, 0.2)
        assert (advice.policy, advice.rivals, advice.recall) == (DEFAULT_POLICY, (), None)
        assert reason in str(advice)
        assert str(advice).startswith(f"Use {DEFAULT_POLICY}, the default. ")


def test_of_many_outputs_the_first_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    assert MOST >= 5_000
    monkeypatch.setattr("gatekeeper.analysis.advice.MOST", 200)
    table = records(300)
    first = advise(table.take(np.arange(200)), 0.2)
    assert advise(table, 0.2) == advise(table, 0.2, evidence=Evidence(table)) == first
