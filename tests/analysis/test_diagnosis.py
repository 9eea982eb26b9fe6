"""What a user relies on: the figures are right, and the advice follows from them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from math import isnan, nan
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2_contingency, pearsonr

from gatekeeper import CST, BadInputError, Budget, Threshold, VerificationGate
from gatekeeper.analysis.diagnosis import SWEEP, Diagnosis, Thresholds, diagnose
from gatekeeper.analysis.diagnosis.odds import odds_of
from gatekeeper.analysis.off_policy import Evidence
from gatekeeper.analysis.replay import replay
from gatekeeper.cli import main
from gatekeeper.io.records import RecordTable, write_records
from gatekeeper.policies import HGA
from gatekeeper.policies.score import WarmupScore
from gatekeeper.stats.strata import CostStrata
from gatekeeper.testing import ScriptedVerifier, make_generation
from gatekeeper.types import Candidate, FloatArray

RATES = np.array([0.2, 0.4, 0.6, 0.8])


def records(
    n: int,
    seed: int = 0,
    *,
    rates: Any = (0.4,) * 4,
    slopes: Any = (1.0,) * 4,
    shift: Any = (0.0,) * 4,
    spread: float = 0.5,
) -> RecordTable:
    """Signals h1 = slope · y + shift + noise and error rates that depend on the cost quartile."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    k = np.searchsorted([-0.6745, 0.0, 0.6745], x)
    y = (rng.random(n) < np.asarray(rates)[k]).astype(np.float64)
    h1 = 3 + np.asarray(slopes)[k] * y + np.asarray(shift)[k] + rng.normal(size=n)
    cost = np.exp(spread * x)
    h = np.column_stack([h1, np.full(n, nan), np.full(n, nan)])
    return RecordTable([f"r{i}" for i in range(n)], h, cost, cost * 1.1, y)


def scores(table: RecordTable, warmup: int = 50) -> tuple[FloatArray, FloatArray]:
    """s and the cost stratum after the warm-up, by the policies' own classes."""
    fitted = WarmupScore(warmup)
    rows = list(table)
    for r in rows[:warmup]:
        fitted.add(Candidate(r.id, r.signals, r.cost_estimate))
        if r.error is not None:
            fitted.learn(r.id, r.error)
    fitted.fit()
    strata = CostStrata(4).fit([r.cost_estimate for r in rows[:warmup]])
    return (
        np.array([fitted.score(r.signals) for r in rows[warmup:]]),
        np.array([strata.of(r.cost_estimate) for r in rows[warmup:]]),
    )


# -- the figures -------------------------------------------------------------------------------


def test_figures_are_those_of_scipy() -> None:
    table = records(900, rates=RATES, slopes=(0.2, 1, 2, 0.5))
    d = diagnose(table, orders=1)
    s, k = scores(table)
    y = table.error[50:]
    for j, figures in enumerate(d.strata):
        mine = k == j
        expected = pearsonr(s[mine], y[mine])
        assert (figures.n, figures.labelled, figures.weight) == ((mine).sum(),) * 3
        assert figures.error_rate == pytest.approx(y[mine].mean())
        assert figures.mean_cost == pytest.approx(table.cost_estimate[50:][mine].mean())
        assert (figures.rho, figures.p_value) == pytest.approx(tuple(expected))
    whole = pearsonr(s, y)
    assert (d.overall.rho, d.overall.p_value) == pytest.approx(tuple(whole))
    assert d.dispersion == pytest.approx(np.var([f.rho for f in d.strata]))
    counts = [[(y[k == j] == v).sum() for v in (0, 1)] for j in range(4)]
    assert d.base_rate_p == pytest.approx(chi2_contingency(counts, correction=False).pvalue)
    assert d.base_rate_spread == pytest.approx(np.ptp([f.error_rate for f in d.strata]))


@pytest.mark.parametrize("missing", [False, True])
def test_replays_are_those_of_the_policies(missing: bool) -> None:
    """ "none" and "cost", and every K, decide as Threshold and CST do step by step."""
    table = records(300, rates=RATES)
    if missing:
        table.h[::5] = nan
    d = diagnose(table, beta=0.25, orders=3)
    assert d.partitions is not None
    assert d.sweep is not None
    streams = [list(table.take(np.random.default_rng(i).permutation(300))) for i in range(3)]
    base = [replay(stream, Threshold(0.25), 0.25) for stream in streams]
    for choice, make in [
        (d.partitions[0], lambda: Threshold(0.25)),
        (d.partitions[3], lambda: CST(0.25)),
        *(
            (choice, lambda k=k: CST(0.25, strata=k))
            for choice, k in zip(d.sweep, SWEEP, strict=True)
        ),
    ]:
        runs = [replay(stream, make(), 0.25) for stream in streams]
        assert choice.hit_rate == pytest.approx(np.mean([r.hit_rate for r in runs]))
        assert choice.recall == pytest.approx(np.mean([r.recall for r in runs]))
        assert choice.utilisation == pytest.approx(np.mean([r.utilisation for r in runs]))
        gain = np.mean([r.hit_rate - b.hit_rate for r, b in zip(runs, base, strict=True)])
        assert choice.above_threshold.value == pytest.approx(gain)
    assert [c.name for c in d.partitions] == ["none", "random", "signal", "cost", "oracle"]
    assert d.partitions[4].hit_rate > 0.95  # errors first, then what is left of the budget


def test_the_gate_shown_is_that_of_hga() -> None:
    table = records(400, rates=RATES)
    d = diagnose(table, orders=1)
    hga = HGA(0.2, calibration=175, labels="full")
    replay(list(table), hga, 0.2, evaluate="second-half")
    evidence = hga.evidence
    assert evidence is not None
    assert d.gate is not None
    assert [(c.value, c.least) for c in d.gate] == [
        (evidence.hit_cst, evidence.hit_threshold),
        (evidence.dispersion, 0.002),
        (evidence.base_rate_spread, 0.03),
    ]
    assert all(c.holds for c in d.gate) == evidence.open


def test_noise_is_not_taken_for_dispersion() -> None:
    """Equal ρ_k: H without noise is near 0 and the test rejects as often as it says."""
    found = [diagnose(partly(records(500, seed)), orders=1) for seed in range(200)]
    raw = np.mean([d.dispersion for d in found])
    assert np.mean([d.dispersion_corrected for d in found]) < raw / 2
    assert np.mean([d.dispersion_p < 0.05 for d in found]) < 0.09
    assert np.mean([d.base_rate_p < 0.05 for d in found]) < 0.09
    unequal = [
        diagnose(partly(records(2000, seed, slopes=(0, 0, 2, 2))), orders=1) for seed in range(10)
    ]
    assert all(d.dispersion_p < 0.001 for d in unequal)
    assert all(0 < d.dispersion_corrected < d.dispersion for d in unequal)


def partly(table: RecordTable) -> RecordTable:
    """Without every tenth label, so that nothing is replayed."""
    error = table.error.copy()
    error[9::10] = nan
    return replace(table, error=error)


def test_an_error_rate_is_within_what_the_labels_show() -> None:
    """Where a policy finds many errors, the weighted rate alone may be below their share."""
    table = records(90)
    wrong, right = np.ones(90), np.zeros(90)
    for error, end in ((wrong, 30 / 40), (right, 10 / 40)):
        share = np.full(90, 0.05)
        share[:80] = 1.0  # 30 that were certain to be verified, and the warm-up
        known = np.where(share == 1.0, error, nan)
        known[-1] = 1 - error[-1]  # one drawn by chance weighs as much as 20 of these
        found = diagnose(replace(table, error=known, propensity=share), orders=1)
        assert found.overall.error_rate == pytest.approx(end)


def test_labels_weigh_by_propensity() -> None:
    """Errors are verified thrice as often: unweighted rates would be far off."""
    table = records(20_000, rates=RATES)
    share = np.where(table.error == 1, 0.6, 0.2)
    share[:50] = 1.0
    drawn = np.random.default_rng(1).random(len(table)) < share
    known = np.where(drawn, table.error, nan)
    cost = np.where(drawn, table.cost, nan)
    some = diagnose(replace(table, error=known, cost=cost, propensity=share))
    whole = diagnose(table, orders=1)
    for mine, true in zip(some.strata, whole.strata, strict=True):
        assert mine.labelled < true.labelled
        assert mine.weight < mine.labelled
        assert mine.error_rate == pytest.approx(true.error_rate, abs=0.04)
        assert mine.rho == pytest.approx(true.rho, abs=0.06)
    assert some.absent is not None
    assert "have no label" in some.absent
    assert some.gate is some.partitions is some.sweep is None
    assert some.notes == ["each label counts 1 / propensity"]


def test_labels_of_unequal_weight_are_counted_by_what_they_show() -> None:
    table = records(400)
    share = np.tile([1.0, 0.3], 200)
    known = np.where(np.random.default_rng(1).random(400) < share, table.error, nan)
    seen = diagnose(replace(table, error=known, propensity=share))
    assert seen.overall.weight < seen.overall.labelled
    drawn_at_random = f"as informative as {seen.overall.weight:.0f} drawn at random, are too few"
    assert f"{seen.overall.labelled} labels, {drawn_at_random}" in seen.conclusion


def test_external_verdicts_are_no_sample() -> None:
    """A person reports wrong outputs that were not drawn: no figure changes. Where every output has
    a verdict, all of them count."""
    table = records(6000, rates=RATES)
    share = np.where(np.arange(6000) < 50, 1.0, 0.1)
    drawn = np.random.default_rng(1).random(6000) < share
    log = replace(table, error=np.where(drawn, table.error, nan), propensity=share)
    reported = ~drawn & (table.error == 1) & (np.arange(6000) % 3 == 0)
    error = np.where(reported, 1.0, log.error)
    seen = diagnose(replace(log, error=error, verified=drawn.astype(float)))
    note = f"left out: {reported.sum()} external verdicts, which are no random sample"
    assert seen.notes[0] == note
    assert repr(replace(seen, notes=seen.notes[1:])) == repr(diagnose(log))

    audited = replace(log, error=table.error, verified=drawn.astype(float))
    assert repr(diagnose(audited, orders=1)) == repr(diagnose(table, orders=1))


def test_labels_that_a_policy_chose_are_not_a_sample() -> None:
    """Only outputs drawn at random count; without them, strata are not compared."""
    table = records(6000, rates=RATES)
    s, _ = scores(table)
    wanted = np.concatenate([np.ones(50), s > np.quantile(s, 0.6)])
    log = replace(table, error=np.where(wanted, table.error, nan), propensity=wanted)
    chosen = diagnose(log)
    assert (chosen.chosen, chosen.thresholds) == (True, Thresholds.UNKNOWN)
    assert "random sample" in chosen.conclusion

    share = np.where(np.arange(6000) < 3000, 0.5, wanted)
    drawn = np.where(share == 0.5, np.random.default_rng(0).random(6000) < 0.5, wanted)
    mixed = diagnose(replace(log, error=np.where(drawn, table.error, nan), propensity=share))
    assert not mixed.chosen
    assert mixed.overall.labelled == drawn[50:3000].sum()


def test_a_few_verifications_that_failed_are_left_out() -> None:
    table = records(1000, rates=RATES)
    error = table.error.copy()
    error[[3, 500, 501]] = nan
    d = diagnose(replace(table, error=error, propensity=np.zeros(1000)), orders=2)
    whole = diagnose(table.take(~np.isnan(error)), orders=2)
    assert d.notes == ["3 records without a label or a cost are left out"]
    assert replace(d, notes=[]) == whole


# -- the conclusion ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("table", "thresholds", "says"),
    [
        (
            records(3000, spread=0.01),
            Thresholds.ONE,
            "No evidence that strata differ: one threshold serves them all.",
        ),
        (records(200), Thresholds.UNKNOWN, "150 labels are too few to decide: about 1,"),
        (records(3000, rates=RATES), Thresholds.OWN, "error rate lies between 2"),
        (
            records(3000, shift=(0, 1, 2, 3), spread=0.02),
            Thresholds.OWN,
            "score ÷ cost is not comparable",
        ),
        (records(3000, rates=RATES[::-1]), Thresholds.ONE, "CST does worse than Threshold"),
        (
            records(400, rates=(0.3, 0.3, 0.5, 0.5), spread=0.02),
            Thresholds.UNKNOWN,
            "too few labels to decide whether",
        ),
        (records(4000, slopes=(0,) * 4, spread=0.01), Thresholds.ONE, "no better than random"),
        (
            records(150, slopes=(0,) * 4),
            Thresholds.UNKNOWN,
            "too few labels to show whether either policy",
        ),
        (records(40), Thresholds.UNKNOWN, "of the 0 labels after the warm-up"),
        (records(50), Thresholds.UNKNOWN, "of the 0 labels after the warm-up"),
        (records(51), Thresholds.UNKNOWN, "more are needed"),
        (records(500, rates=(0.0,) * 4), Thresholds.UNKNOWN, "fewer than two are of one kind"),
        (records(3000, rates=(1.0,) * 4), Thresholds.UNKNOWN, "fewer than two are of one kind."),
        (records(3000, spread=0.0), Thresholds.ONE, "all outputs fall into one cost stratum"),
        (
            partly(records(3000, rates=RATES)),
            Thresholds.UNKNOWN,
            "only a replay can show",
        ),
        (
            partly(records(3000)),
            Thresholds.ONE,
            "No evidence that strata differ: one threshold serves them all.",
        ),
    ],
)
def test_conclusion(table: RecordTable, thresholds: Thresholds, says: str) -> None:
    d = diagnose(table, orders=3)
    assert says.lower() in d.conclusion.lower()
    assert d.thresholds is thresholds


def test_degenerate_files_give_figures_or_none() -> None:
    """A stratum without errors has no ρ_k; constant and perfect signals have one."""
    table = records(1000)
    cheap = table.cost_estimate <= np.quantile(table.cost_estimate[:50], 0.25)
    clean = diagnose(replace(table, error=np.where(cheap, 0.0, table.error)), orders=1)
    assert [isnan(f.rho) for f in clean.strata] == [True, False, False, False]
    assert clean.strata[0].error_rate == 0.0
    assert clean.dispersion_p > 0.0

    constant = diagnose(replace(table, h=np.full((1000, 3), 0.5)), orders=1)
    assert [f.rho for f in constant.strata] == [0.0] * 4
    assert constant.dispersion_p == 1.0
    perfect = diagnose(replace(table, h=np.column_stack([table.error] * 3)), orders=1)
    assert [f.rho for f in perfect.strata] == pytest.approx([1.0] * 4)
    assert perfect.dispersion_p == pytest.approx(1.0)

    h = table.h.copy()
    h[::3] = nan
    some = diagnose(replace(table, h=h), orders=1)
    assert some.without_signal == 317
    assert sum(f.n for f in some.strata) == 633
    none = diagnose(replace(table, h=np.full((1000, 3), nan)), orders=2)
    assert (none.without_signal, none.overall.labelled, none.thresholds) == (
        950,
        0,
        Thresholds.UNKNOWN,
    )


# -- the odds ------------------------------------------------------------------------------------


def test_the_odds_are_those_of_the_better_policy() -> None:
    """Expensive outputs are wrong more often, or less: score ÷ cost alone takes the cheap ones."""
    for rates, cst in ((RATES, True), (RATES[::-1], False)):
        found = diagnose(records(1500, rates=rates), orders=1).odds
        assert found is not None
        assert (found.cst > 0.95) == (found.gain.value > 0.0) == cst
        assert (found.threshold > 0.95) == (not cst)


def test_the_odds_of_a_long_file_are_from_all_parts_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The warm-up, and as many later outputs as are taken, evenly spaced."""
    taken: list[list[str]] = []

    class Noted(Evidence):
        def __init__(self, table: RecordTable, *, warmup: int) -> None:
            taken.append(list(table.ids))
            super().__init__(table, warmup=warmup)

    monkeypatch.setattr("gatekeeper.analysis.diagnosis.odds.MOST", 400)
    monkeypatch.setattr("gatekeeper.analysis.diagnosis.odds.Evidence", Noted)
    table = records(1650)
    assert odds_of(table, 0.2, 4) is not None
    assert taken == [[*table.ids[:50], *table.ids[50::4]]]


def test_uncertain_comparisons_give_odds() -> None:
    """From few labels, and from a log, of which nothing is replayed; not from labels that a policy
    chose."""
    few = records(400, rates=(0.3, 0.3, 0.5, 0.5), spread=0.02)
    logged = records(1500, rates=RATES)
    share = np.where(scores_of(logged) > 0.8, 1.0, 0.1)
    share[:50] = 1.0
    drawn = np.random.default_rng(1).random(1500) < share
    log = replace(
        logged,
        error=np.where(drawn, logged.error, nan),
        cost=np.where(drawn, logged.cost, nan),
        propensity=share,
    )
    for table in (few, log):
        d = diagnose(table, orders=1)
        assert d.thresholds is Thresholds.UNKNOWN
        assert d.odds is not None
        assert d.odds.cst + d.odds.threshold <= 1.0
    blind = replace(log, propensity=np.where(share == 1.0, 1.0, 0.0))
    assert diagnose(blind, orders=1).odds is None


def scores_of(table: RecordTable) -> FloatArray:
    """Ranks of h1, (N,) in [0, 1)."""
    return np.argsort(np.argsort(table.h[:, 0])) / len(table)


# -- the command -------------------------------------------------------------------------------


@pytest.fixture
def diagnosed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    def run(table: RecordTable, *more: str) -> tuple[int, str, str]:
        write_records(tmp_path / "records.jsonl", table)
        code = main(["diagnose", str(tmp_path / "records.jsonl"), "--seeds", "2", *more])
        return code, *capsys.readouterr()

    return run


def test_exit_codes_and_json(diagnosed: Callable[..., tuple[int, str, str]]) -> None:
    fields = set(Diagnosis.__dataclass_fields__)
    for table, code, thresholds in (
        (records(2000, spread=0.01), 0, "one for all"),
        (records(2000, rates=RATES), 3, "one per stratum"),
        (records(120), 4, "cannot tell"),
        (records(20), 4, "cannot tell"),
    ):
        got, out, err = diagnosed(table, "--json")
        result = json.loads(out, parse_constant=lambda name: pytest.fail(name))
        assert (got, result["thresholds"], err) == (code, thresholds, "")
        assert fields < result.keys()
        got, out, _ = diagnosed(table)
        assert got == code
        assert "nan" not in out
        assert result["conclusion"].split()[0] in out


@pytest.mark.parametrize(
    ("explore", "note"),
    [(0.1, "each label counts 1 / propensity"), (0, "only labels drawn at random count")],
)
def test_a_log_is_diagnosed(
    explore: float, note: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "run.db"
    labels: Any = {f"g{i}": int(i % 3 == 0) for i in range(200)}
    with VerificationGate(
        "hga",
        budget=Budget(fraction=0.3),
        verifier=ScriptedVerifier(labels),
        log=path,
        explore=explore,
    ) as gate:
        for i in range(200):
            gate.maybe_verify(
                make_generation(f"g{i}", seed=i, prompt_tokens=10 + 37 * i % 200), None
            )
    assert main(["diagnose", str(path)]) == 4
    out = capsys.readouterr().out
    out = " ".join(out.split())
    assert note in out
    assert "replays need every one" in out


@pytest.mark.parametrize(
    "arguments", [["--budget", "0"], ["--budget", "nan"], ["--strata", "1"], ["--seeds", "0"]]
)
def test_bad_arguments(
    diagnosed: Callable[..., tuple[int, str, str]], arguments: list[str]
) -> None:
    code, out, err = diagnosed(records(60), *arguments)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert arguments[0][2:] in err


def test_one_stratum_is_not_taken_for_too_few_labels(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    path = tmp_path / "equal.jsonl"
    write_records(path, records(300, spread=0.0))
    assert main(["diagnose", str(path), "--seeds", "1"]) == 0
    out = capsys.readouterr().out
    assert out.count("test that all are equal: there is one stratum only") == 2
    assert "too few labels to test" not in out


def test_bad_lines_are_refused_or_skipped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "records.jsonl"
    write_records(path, records(300))
    path.write_text(path.read_text() + '{"id": "x"}\n')
    assert main(["diagnose", str(path)]) == 2
    assert "line 301: field 'cost_estimate' is missing" in capsys.readouterr().err
    assert main(["diagnose", str(path), "--skip-bad", "--json", "--seeds", "1"]) == 4
    assert json.loads(capsys.readouterr().out)["skipped"] == 1


def test_arguments_of_the_function() -> None:
    with pytest.raises(BadInputError, match="strata=1"):
        diagnose(records(60), strata=1)
    with pytest.raises(BadInputError, match="orders=0"):
        diagnose(records(60), orders=0)
