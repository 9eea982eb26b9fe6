"""What other policies would have found: exact with all labels, else with the stated coverage."""

import json
from dataclasses import replace
from math import nan
from pathlib import Path

import numpy as np
import pytest
from partly_verified import log_of, run_gate

from gatekeeper import CST, BadInputError, Candidate
from gatekeeper.analysis.advice import advise
from gatekeeper.analysis.diagnosis import diagnose
from gatekeeper.analysis.off_policy import SEED, Evidence, policy_values
from gatekeeper.analysis.replay import replay
from gatekeeper.analysis.run_budget import share_of_costs
from gatekeeper.cli import main
from gatekeeper.io.records import RecordTable, load_records, write_records
from gatekeeper.paper.stress import make_stream
from gatekeeper.policies import T0, make_policy, policy_names

OURS = tuple(policy_names())


@pytest.mark.parametrize("warmup", [T0, 140])
@pytest.mark.parametrize("policy", OURS)
def test_with_every_label_it_is_the_replay(policy: str, warmup: int) -> None:
    """Nothing is estimated: recall and hit rate are those of gatekeeper.analysis.replay."""
    table = make_stream("usual", 600, 3)
    (found,) = policy_values(Evidence(table, warmup=warmup), [policy], 0.2)
    if policy == "random":  # on average over its draws
        recall, hit_rate = 0.2, table.error[warmup:].mean()
    else:
        live = make_policy(policy, 0.2, horizon=len(table), warmup=warmup, seed=SEED)
        once = replay(list(table), live, 0.2, warmup=warmup, feedback="partial")
        recall, hit_rate = once.recall, once.hit_rate
    for estimate, truth in (
        (found.recall, recall),
        (found.hit_rate, hit_rate),
    ):
        assert estimate is not None
        assert estimate.value == pytest.approx(truth, abs=1e-12)
        assert estimate.high - estimate.low < 1e-9


def test_many_verdicts_overrule_a_prediction() -> None:
    """Where cheap outputs are wrong as often as the signal says, and expensive ones never, the
    estimates are the truth: parts of the outputs have rates of their own."""
    table = make_stream("usual", 20_000, 1)
    cheap = table.cost_estimate < np.median(table.cost_estimate)
    log = log_of(replace(table, error=table.error * cheap), chance=0.2, seed=1)
    evidence = Evidence(log)
    share = evidence.shares("cst", 0.3)
    (found,) = policy_values(evidence, ["cst"], 0.3)
    y = (table.error * cheap)[T0:]
    assert found.hit_rate is not None
    assert found.hit_rate.value == pytest.approx(share @ y / share.sum(), abs=0.01)
    assert found.recall.value == pytest.approx(share @ y / y.sum(), abs=0.015)
    assert found.recall.high - found.recall.low < 0.05


@pytest.mark.parametrize("policy", OURS)
def test_no_choice_knows_a_verdict_before_its_turn(policy: str) -> None:
    """The intervals assume it: other verdicts from t on change no choice up to t."""
    log = log_of(make_stream("missing-signals", 700, 5), chance=0.3, seed=5)
    t = 400
    other = log.error.copy()
    other[t:] = 1.0 - other[t:]
    before, after = (
        Evidence(replace(log, error=error)).shares(policy, 0.3) for error in (log.error, other)
    )
    assert (before[: t - T0 + 1] == after[: t - T0 + 1]).all()


def test_replayed_draws_are_not_those_of_the_log() -> None:
    """With the seed of the log's policy a replayed one would choose what the log drew."""
    table = make_stream("usual", 2000, 0)
    draws = make_policy("random", 0.3, seed=0)
    verified = np.array(
        [draws.decide(Candidate(r.id, r.signals, r.cost_estimate)).verify for r in table]
    )
    p = np.where(np.arange(len(table)) < T0, 1.0, 0.3)
    error = np.where(verified, table.error, nan)
    log = replace(table, error=error, propensity=p, verified=verified.astype(float))
    chosen = Evidence(log).shares("hga", 0.3)[: (2000 - T0) // 2] == 1.0  # its own draws
    among = verified[T0:][: chosen.size][chosen].mean()
    assert 0.2 < among < 0.4


def test_intervals_cover_as_often_as_said() -> None:
    """benchmarks/off_policy.py has the figures; here, that nothing is far off."""
    runs, beta = 150, 0.3
    covered = dict.fromkeys(("recall", "hit rate", "more"), 0)
    off = []
    for seed in range(runs):
        table = make_stream("usual", 500, seed)
        evidence = Evidence(log_of(table, chance=0.1, seed=seed))
        y = table.error[T0:]
        own, other = (evidence.shares(name, beta) for name in ("cst", "threshold"))
        _, found = policy_values(evidence, ["cst", "threshold"], beta)
        assert found.hit_rate is not None
        recall = other @ y / y.sum()
        for name, estimate, truth in (
            ("recall", found.recall, recall),
            ("hit rate", found.hit_rate, other @ y / other.sum()),
            ("more", found.more, (other - own) @ y),
        ):
            covered[name] += estimate.low - 1e-9 <= truth <= estimate.high + 1e-9
        off.append(found.recall.value - recall)
    assert abs(np.mean(off)) < 0.02
    for name, times in covered.items():
        assert 0.90 * runs <= times <= runs, name


def test_a_verdict_of_unknown_source_is_the_gates_own() -> None:
    """As in the estimates: records of which only some have the field `verified`."""
    log = log_of(make_stream("usual", 600, 0), chance=0.1, seed=0)
    some = np.where(np.arange(600) % 2, nan, 1.0)
    assert (Evidence(replace(log, verified=some)).drawn == Evidence(log).drawn).all()


# -- files that cannot answer ----------------------------------------------------------------------


def refused(table: RecordTable) -> str:
    with pytest.raises(BadInputError) as caught:
        Evidence(table)
    return str(caught.value)


def test_refusals_say_why() -> None:
    table = make_stream("usual", 600, 0)
    log = log_of(table, chance=0.05, seed=0)
    assert "propensity 0" in refused(log_of(table, chance=0.0, seed=0))
    assert "estimates need 10" in refused(log_of(table, chance=0.002, seed=0))
    assert "propensities" in refused(replace(log, propensity=None))
    assert "warm-up" in refused(table.take(np.arange(T0)))
    right = np.where(np.isnan(log.error), nan, 0.0)
    assert "found an error" in refused(replace(log, error=right))
    none = refused(replace(table, error=np.zeros(600)))
    most = 1 - 0.05 ** (1 / (600 - T0))  # of a mid-p interval without an error
    assert f"is at most {most:.1%} (95 % interval; effective number of verdicts: 550)" in none
    assert log.propensity is not None
    only = np.arange(600) == 300  # verified, though it had no chance: no sample
    error, p = np.where(only, 1.0, right), np.where(only, 0.0, log.propensity)
    odd = replace(log, error=error, propensity=p, verified=np.isfinite(error).astype(float))
    assert "found an error" in refused(odd)
    evidence = Evidence(log)
    for policy, why in (("oracle", "knows the labels"), ("nonesuch", "is unknown")):
        with pytest.raises(BadInputError, match=why):
            policy_values(evidence, [policy], 0.2)
    with pytest.raises(BadInputError, match="beta"):
        policy_values(evidence, ["cst"], 1.0)


def test_a_few_outputs_without_a_label_are_left_out() -> None:
    """Up to 1 %, the others count as all: in the advice, too, with which `diagnose` ends."""
    table = make_stream("usual", 600, 0)
    for without, left_out in ((6, 6), (7, 0)):
        error = np.where(np.arange(600) >= 600 - without, nan, table.error)
        some = replace(table, error=error, propensity=np.full(600, 0.5))
        evidence = Evidence(some)
        assert (evidence.left_out, evidence.complete) == (left_out, left_out > 0)
    known = table.take(np.arange(594))
    few = replace(table, error=np.where(np.arange(600) < 594, table.error, nan), propensity=None)
    assert advise(few, 0.2) == advise(known, 0.2)
    assert diagnose(few, orders=1).odds == diagnose(known, orders=1).odds


def test_verdicts_from_outside_are_no_sample() -> None:
    """A person who searches for errors finds more of them: that must not change the estimates."""
    table = make_stream("usual", 800, 2)
    log = log_of(table, chance=0.1, seed=2)
    wrong = np.isnan(log.error) & (table.error == 1.0)
    audited = replace(log, error=np.where(wrong, 1.0, log.error))
    (before,), (after,) = (policy_values(Evidence(t), ["threshold"], 0.2) for t in (log, audited))
    assert before == after


# -- the command -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the logs of two gates, one of which never explored."""
    folder = tmp_path_factory.mktemp("logs")
    run_gate(folder / "run.db", explore=0.3)
    run_gate(folder / "blind.db", explore=0.0)
    return folder


def test_the_command_on_a_gates_log(logs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The run's own policy comes first, at the run's budget; recall is about the truth."""
    assert main(["compare", str(logs / "run.db"), "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    names = [row["policy"] for row in result["policies"]]
    assert names[0] == "threshold"
    assert sorted(names) == policy_names()
    assert result["budget"] == 0.4
    table = load_records(logs / "run.db")
    assert result["verdicts"] == np.isfinite(table.error[T0:]).sum()
    for row in result["policies"]:
        assert row["recall"]["low"] <= row["recall"]["value"] <= row["recall"]["high"]
    assert main(["compare", str(logs / "run.db"), "--policy", "cst", "--budget", "0.004"]) == 0
    text = capsys.readouterr().out
    assert "at a budget of 0.4%: " in text
    rows = [line.split()[0] for line in text.splitlines() if line.strip()]
    assert "cst" in rows
    assert "hga" not in rows
    assert all(len(line) <= 80 for line in text.splitlines())


def test_the_runs_own_policy_has_its_own_options(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """CST with one stratum is Threshold, in `compare` and in `plan`."""
    log = tmp_path / "run.db"
    run_gate(log, explore=0.3, policy=CST(0.4, strata=1), n=300)
    assert main(["compare", str(log), "--policy", "threshold", "--json"]) == 0
    own, other = json.loads(capsys.readouterr().out)["policies"]
    assert own["policy"] == "cst(strata=1)"
    assert own | {"policy": "threshold"} == other
    curves = []
    for more in ([], ["--policy", "threshold"]):
        assert main(["plan", str(log), "--json", *more]) == 0
        curves.append(json.loads(capsys.readouterr().out)["policies"][0])
    assert curves[0]["policy"] == "cst(strata=1)"
    assert curves[0]["curve"] == curves[1]["curve"]


@pytest.mark.parametrize("warmup", [20, 120])
def test_commands_read_the_warm_up_from_the_log(
    warmup: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "run.db"
    run_gate(log, explore=0.3, policy=CST(0.4, warmup=warmup), n=300)
    for command in ("compare", "plan"):
        assert main([command, str(log), "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["outputs"] == 300 - warmup
    main(["diagnose", str(log), "--seeds", "1", "--json"])
    assert json.loads(capsys.readouterr().out)["warmup"] == warmup


def test_the_command_refuses_in_one_line(
    logs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    records = tmp_path / "records.jsonl"
    write_records(records, make_stream("usual", 300, 0))
    for arguments, why in (
        ([str(logs / "blind.db")], "propensity 0"),
        ([str(logs / "missing.db")], "cannot be read"),
        ([str(logs / "run.db"), "--budget", "2"], "--budget"),
        ([str(logs / "run.db"), "--policy", "best"], "unknown"),
        ([str(records)], "--budget"),
    ):
        assert main(["compare", *arguments]) == 2
        said = capsys.readouterr()
        assert why in said.err
        assert (said.err.count("\n"), said.out) == (1, "")
    assert main(["compare", str(records), "--beta", "0.2"]) == 0
    assert "weighted" not in capsys.readouterr().out  # nothing is estimated


@pytest.mark.parametrize(("warmup", "total"), [(10, 90), (50, 120), (200, 300)])
def test_the_share_of_a_total_counts_from_the_end_of_the_log_s_own_warm_up(
    warmup: int, total: float
) -> None:
    table = replace(make_stream("usual", 400, 3), cost=np.ones(400))
    evidence = Evidence(log_of(table, chance=0.1, seed=0), warmup=warmup)
    share = share_of_costs({"total": total}, *evidence.costs)
    assert share == pytest.approx((total - warmup) / (400 - warmup))


@pytest.mark.parametrize(
    ("fraction", "total", "share"), [(0.5, 85, 0.1), (0.05, 85, 0.05), (0.3, 900, 0.3)]
)
def test_of_a_fraction_and_a_total_the_smaller_holds(
    fraction: float, total: float, share: float
) -> None:
    table = replace(make_stream("usual", 400, 3), cost=np.ones(400))
    evidence = Evidence(log_of(table, chance=0.1, seed=0))
    budget = {"fraction": fraction, "total": total}
    assert share_of_costs(budget, *evidence.costs) == pytest.approx(share)
