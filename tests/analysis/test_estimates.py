"""The error rate of all outputs: exact if all are verified, unbiased, with the stated coverage."""

import json
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from math import comb, exp, hypot, log, sqrt
from pathlib import Path

import numpy as np
import pytest

import gatekeeper.bundled
from gatekeeper import BadInputError, Budget, GateResult, Record, Signals, VerificationGate
from gatekeeper.analysis import estimates as module
from gatekeeper.analysis.estimates import Estimates, as_json, estimate, rates, show
from gatekeeper.cli import main
from gatekeeper.io.records import RecordTable, load_records, write_records
from gatekeeper.paper.stress import make_stream
from gatekeeper.report.report import report
from gatekeeper.stats.interval import Interval
from gatekeeper.stats.mid_p import midp_interval
from gatekeeper.testing import ScriptedVerifier, make_generation

NO_SIGNAL = Signals(float("nan"), float("nan"), float("nan"))


def records(
    p: Sequence[float | None], error: Sequence[int | None], verified: Sequence[bool | None]
) -> list[Record]:
    rows = zip(p, error, verified, strict=True)
    return [
        Record(f"r{i}", Signals(0.1 * (i % 7), -1.0 / (1 + i % 5), 0.5), 1.0 + i % 3, 1.0, y,
               propensity=q, verified=v)
        for i, (q, y, v) in enumerate(rows)
    ]  # fmt: skip


def numbers(found: Interval | None) -> tuple[float, float, float]:
    assert found is not None
    return found.value, found.low, found.high


# -- slow and independent ------------------------------------------------------------------------


def slow_midp(x: int, n: int) -> tuple[float, float]:
    """Mid-p by adding up probabilities, and halving intervals."""

    def above(q: float) -> float:
        terms = [comb(n, k) * q**k * (1 - q) ** (n - k) for k in range(n + 1)]
        return sum(terms[x + 1 :]) + terms[x] / 2

    def solve(target: float) -> float:
        low, high = 0.0, 1.0
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if above(middle) < target else (low, middle)
        return (low + high) / 2

    return (solve(0.025) if x else 0.0), (solve(0.975) if x < n else 1.0)


def slow_part(
    p: list[float], y: list[int], drawn: list[bool], log_odds: list[float]
) -> tuple[float, float, float]:
    """Rate of a part and its interval, by loops, from the formulae of the module's docstring."""
    mine = [i for i, d in enumerate(drawn) if d]
    total = sum(1 / p[i] for i in mine)
    low, high = -40.0, 40.0
    for _ in range(200):  # the shift at which weighted residuals add up to nothing
        shift = (low + high) / 2
        m = [1 / (1 + exp(-(v + shift))) for v in log_odds]
        low, high = (shift, high) if sum((y[i] - m[i]) / p[i] for i in mine) > 0 else (low, shift)
    rate = sum(m) / len(m) + sum((y[i] - m[i]) / p[i] for i in mine) / total
    spread = {i: (1 - p[i]) / p[i] ** 2 for i in mine}
    left = sum(spread[i] * (y[i] - m[i]) ** 2 for i in mine)
    without = sum(spread.values()) * rate * (1 - rate)
    n = total**2 / sum(p[i] ** -2 for i in mine)
    share = (n * left / without + 4) / (n + 4)
    found = midp_interval(rate, total**2 / sum(spread.values()) / share)
    return rate, found.low, found.high


@pytest.mark.parametrize(("x", "n"), [(0, 1), (1, 1), (0, 8), (1, 8), (3, 20), (20, 20), (9, 60)])
def test_the_interval_is_mid_p(x: int, n: int) -> None:
    found = midp_interval(x / n, n)
    assert (found.low, found.high) == pytest.approx(slow_midp(x, n), abs=1e-9)
    assert found.value == x / n


def test_the_interval_covers_at_every_small_count() -> None:
    """Averaged over rates it is the nearer to 95 % the more labels; nowhere is it below 92 %."""
    for n, mean in ((5, 0.978), (15, 0.964), (40, 0.956)):
        intervals = [midp_interval(x / n, n) for x in range(n + 1)]
        covers = [
            sum(
                comb(n, x) * q**x * (1 - q) ** (n - x)
                for x, found in enumerate(intervals)
                if found.low <= q <= found.high
            )
            for q in np.linspace(0.002, 0.998, 499).tolist()
        ]
        assert min(covers) > 0.92
        assert np.mean(covers) == pytest.approx(mean, abs=0.002)


def test_both_estimates_are_those_of_the_formulae() -> None:
    """Two parts of unequal propensities, certain outputs, and any prediction."""
    rng = np.random.default_rng(5)
    for _ in range(20):
        kind = rng.integers(0, 3, 80)
        p = np.choose(kind, [1.0, rng.uniform(0.05, 0.1, 80), rng.uniform(0.3, 0.6, 80)])
        p[:4] = [0.05, 0.1, 0.3, 0.6]  # so that the parts are these two whatever is drawn
        y = rng.integers(0, 2, 80)
        drawn = rng.random(80) < np.maximum(p, 0.3)
        label = np.where(drawn, y, np.nan)
        log_odds = rng.normal(0.0, 1.0, 80)
        for prediction in (np.zeros(80), log_odds):
            found = module.rate_of_all(p, drawn, label, prediction)
            value, below, above = float(y[p == 1.0].sum()) / 80, 0.0, 0.0
            for part in (p <= 0.1, (p > 0.1) & (p < 1.0)):
                columns = (p[part], y[part], drawn[part], prediction[part])
                rate, low, high = slow_part(*(c.tolist() for c in columns))
                value += part.mean() * rate
                below, above = (
                    hypot(below, part.mean() * (rate - low)),
                    hypot(above, part.mean() * (high - rate)),
                )
            seen = (label == 1.0).sum() / 80, 1.0 - (label == 0.0).sum() / 80
            expected = value, max(value - below, seen[0]), min(value + above, seen[1])
            assert numbers(found) == pytest.approx(expected, abs=1e-7)


# -- exact and unbiased --------------------------------------------------------------------------


def test_what_is_wholly_verified_is_known() -> None:
    y = [1, 0, 0, 1, 0]
    found = estimate(records([1.0, 0.02, 0.5, 1.0, 0.3], y, [True] * 5))
    known = Interval(0.4, 0.4, 0.4, 5)
    assert (found.naive, found.weighted, found.assisted) == (known, known, known)
    assert known.complement == Interval(0.6, 0.6, 0.6, 5)
    assert "known, not estimated" in found.why
    # Audits complete it: known as well, and the naive rate stays that of the gate's own verdicts.
    found = estimate(records([1.0, 0.02, 0.5, 1.0, 0.3], y, [True, False, False, True, False]))
    assert found.weighted == found.assisted == known
    assert found.naive is not None
    assert (found.naive.value, found.naive.n) == (1.0, 2)


def test_the_estimate_lies_within_its_interval() -> None:
    """To the last bit; where all that had a chance are verified, the rate is known."""
    for p, label, verified in (
        ([0.05, 0.3, 0.05, 1.0, 1.0], [1, 0, None, 1, 0], [True, True, None, True, True]),
        ([1.0, 0.3, 0.3, 1.0, 1.0, 0.0], [0, 0, 0, 0, 1, None], [True] * 5 + [None]),
    ):
        found = estimate(records(p, label, verified)).weighted
        assert found is not None
        assert found.low <= found.value <= found.high
    assert module.interval(found) == "known"


def test_the_weighted_estimate_is_unbiased() -> None:
    """The mean over all possible draws, without the empty one, is the truth."""
    y, p = [1, 0, 1, 1, 0, 0, 0, 1, 0], [1.0] * 3 + [0.3] * 6
    mean = probability = naive = 0.0
    for rest in product([False, True], repeat=6):
        drawn = [True] * 3 + list(rest)
        chance = float(np.prod([0.3 if d else 0.7 for d in rest]))
        found = estimate(
            records(p, [label if d else None for label, d in zip(y, drawn, strict=True)], drawn)
        )
        if not any(rest):
            assert found.weighted is found.assisted is None
            assert found.why.startswith(
                "None of the 6 outputs with a propensity between 0 and 1 has a verdict"
            )
            continue
        assert found.weighted is not None
        assert found.naive is not None
        probability += chance
        mean += chance * found.weighted.value
        naive += chance * found.naive.value
    assert mean / probability == pytest.approx(4 / 9, abs=1e-9)
    assert naive / probability > 4 / 9 + 0.05


def test_external_verdicts_are_not_a_sample() -> None:
    """People chose the outputs: adding wrong ones changes no estimate, unless it contradicts
    them."""
    rng = np.random.default_rng(1)
    p = [1.0] * 30 + [0.1] * 300
    drawn = (rng.random(330) < p).tolist()
    y = [int(v) for v in rng.integers(0, 2, 330)]
    labels = [label if d else None for label, d in zip(y, drawn, strict=True)]
    before = estimate(records(p, labels, drawn))
    audited = [1 if label is None and i % 9 == 0 else label for i, label in enumerate(labels)]
    assert estimate(records(p, audited, drawn)) == before
    audited = [1 if label is None and i != 99 else label for i, label in enumerate(labels)]
    found = estimate(records(p, audited, drawn))
    least = audited.count(1) / 330
    for name, rate in rates(found)[1:]:
        assert rate is not None, name
        assert rate.value == rate.low == least < rate.high <= least + 1 / 330
    assert before.weighted is not None
    assert before.weighted.high < least


# -- coverage ------------------------------------------------------------------------------------


def test_the_intervals_cover() -> None:
    """200 streams, of which a score picks some: 95 % within four binomial standard errors.

    benchmarks/estimates.py does so for every policy, and longer.
    """
    runs, covered, widths = 200, np.zeros(3), np.zeros(3)
    for seed in range(runs):
        stream = make_stream("sharp-signal" if seed % 2 else "usual", 500, seed)
        rng = np.random.default_rng((seed, 1))
        p = np.where(stream.h[:, 0] > np.quantile(stream.h[:, 0], 0.85), 1.0, 0.06)
        p[:50] = 1.0
        drawn = rng.random(500) < p
        left = replace(
            stream,
            error=np.where(drawn, stream.error, np.nan),
            propensity=p,
            verified=drawn.astype(float),
        )
        truth = stream.error.mean()
        found = estimate(left)
        for j, one in enumerate((found.naive, found.weighted, found.assisted)):
            _, low, high = numbers(one)
            covered[j] += low <= truth <= high
            widths[j] += high - low
    assert covered[0] < 0.6 * runs
    for count in covered[1:].tolist():
        assert abs(count / runs - 0.95) < 4 * sqrt(0.95 * 0.05 / runs)
    assert widths[2] < 0.95 * widths[1]


def test_an_uninformative_prediction_does_no_harm() -> None:
    ratios = []
    for seed in range(30):
        stream = make_stream("no-signal", 500, seed)
        p = np.where(np.arange(500) < 50, 1.0, 0.08)
        drawn = np.random.default_rng((seed, 1)).random(500) < p
        found = estimate(
            replace(stream, error=np.where(drawn, stream.error, np.nan), propensity=p,
                    verified=drawn.astype(float))
        )  # fmt: skip
        _, low, high = numbers(found.weighted)
        _, lower, higher = numbers(found.assisted)
        ratios.append((higher - lower) / (high - low))
    assert np.mean(ratios) < 1.03
    assert max(ratios) < 1.25


# -- edges ---------------------------------------------------------------------------------------


def refused(found: Estimates, *words: str) -> None:
    assert found.weighted is found.assisted is None
    assert all(word in found.why for word in words), found.why
    assert json.loads(json.dumps(as_json(found)))["weighted"] is None
    assert "weighted" not in "\n".join(show(found)[:-1])


def test_logs_without_an_estimate_are_refused_with_a_reason() -> None:
    half = [True] * 5 + [False] * 5
    labels = [1, 0, 0, 0, 1] + [None] * 5
    refused(estimate([]), "no outputs")
    refused(estimate(records([None] * 10, labels, half)), "propensity of 10 of 10", "not known")
    refused(
        estimate(records([1.0] * 5 + [0.0] * 5, labels, half)),
        "5 of 10 outputs have propensity 0",
        "explore above 0",
    )
    refused(estimate(records([1.0] * 5 + [0.1] * 5, labels, half)), "None of the 5 outputs with")
    for p, which in ((0.1, "with a propensity between 0 and 1"), (1.0, "selected")):
        nobody = estimate(records([p] * 10, [None] * 10, [False] * 10))
        refused(nobody, f"None of the 10 outputs {which} has a verdict")
        assert nobody.naive is None
        assert show(nobody)[0] == "Error rate of all 10 outputs:"
        refused(estimate(records([p], [None], [False])), f"The 1 output {which} has no verdict")
    with pytest.raises(BadInputError, match="give a run's GateResults"):
        estimate([1])  # type: ignore[list-item]
    with pytest.raises(BadInputError, match=r"cost_estimate=0\.0 must be a number above 0"):
        estimate([Record("a", NO_SIGNAL, 0.0, 1.0, None)])
    with pytest.raises(BadInputError, match=r"propensity=1\.5"):
        estimate(records([1.5], [None], [False]))


def test_outputs_without_a_chance_are_left_out_and_named() -> None:
    with_chance = records([1.0] * 4 + [0.5] * 8, [1, 0, 0, 0] + [1, 0] * 2 + [None] * 4,
                          [True] * 8 + [False] * 4)  # fmt: skip
    without = [replace(r, id=f"late {r.id}", propensity=0.0, error=None, verified=False)
               for r in with_chance]  # fmt: skip
    found, alone = estimate([*with_chance, *without]), estimate(with_chance)
    assert (found.weighted, found.covered, found.outputs) == (alone.weighted, 12, 24)
    assert any("12 outputs that had a chance; the other 12 had none" in s for s in found.notes)
    assert show(found)[0].startswith("Error rate of 12 of 24 outputs")


def test_one_label_and_no_signal() -> None:
    one = [
        Record(f"r{i}", NO_SIGNAL, 1.0, 1.0, 1 if i == 3 else None, propensity=0.01,
               verified=i == 3)
        for i in range(100)
    ]  # fmt: skip
    for found in (estimate(one).weighted, estimate(one).assisted):
        value, low, high = numbers(found)
        assert (value, high) == (1.0, 1.0)
        assert 0.01 <= low < 0.06  # one label gives a wide interval
    equally = estimate(one)
    assert "equally likely" in equally.why


def test_a_verdict_that_never_came_is_missing_at_random() -> None:
    """Missing verdicts of certain outputs count as not drawn: reported, and no longer exact."""
    labels = [1] * 4 + [0] * 4 + [None] * 2
    found = estimate(records([1.0] * 10, labels, [True] * 8 + [False] * 2))
    value, low, high = numbers(found.weighted)
    assert value == pytest.approx(0.5)
    assert 0.4 <= low < 0.5 < high <= 0.6  # the two could be both right or both wrong
    assert any("Without a verdict: 2 selected outputs" in note for note in found.notes)


# -- a real gate, its log, its report ------------------------------------------------------------

N = 400


def run_gate(log: Path, *, explore: float) -> tuple[list[GateResult], float]:
    """A run whose longer outputs are more often wrong; 7 external verdicts, all wrong."""
    rng = np.random.default_rng(3)
    labels: dict[str, int | None] = {
        f"o{i}": int(rng.random() < 0.2 + 0.3 * (i % 2)) for i in range(N)
    }
    truth = float(np.mean([label for label in labels.values() if label is not None]))
    labels["o60"] = labels["o61"] = None
    with VerificationGate(
        "threshold",
        budget=Budget(fraction=0.3, horizon=N),
        verifier=ScriptedVerifier(labels),  # type: ignore[arg-type]
        log=log,
        on_unavailable="pass",
        explore=explore,
    ) as gate:
        for i in range(N):
            gate.maybe_verify(
                make_generation(f"o{i}", seed=i, tokens=5 + 10 * (i % 2)), force=i in (60, 61)
            )
        left = [i for i in range(N) if gate.find(f"o{i}").outcome is None]  # type: ignore[union-attr]
        for i in left[:7]:
            gate.report_outcome(f"o{i}", "failed")
        results = [gate.find(f"o{i}") for i in range(N)]
    return [r for r in results if r is not None], truth


@pytest.fixture(scope="module")
def explored(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[GateResult], float]:
    log = tmp_path_factory.mktemp("explored") / "run.db"
    return log, *run_gate(log, explore=0.4)


def test_a_gate_that_explores(explored: tuple[Path, list[GateResult], float]) -> None:
    """Its results and its log give one estimate; forced and external verdicts do not change it."""
    log, results, truth = explored
    of_results, of_log = estimate(results), estimate(load_records(log))
    assert of_results.covered == of_results.outputs == N
    assert of_results.weighted == of_log.weighted
    assert of_results.naive == of_log.naive
    mine = [r for r in results if r.decision.verify and r.verified]
    assert of_results.naive is not None
    assert of_results.naive.n == len(mine) == sum(bool(r.verified) for r in load_records(log))
    for found in (of_results.weighted, of_results.assisted, of_log.assisted):
        _, low, high = numbers(found)
        assert low < truth < high
    assert any("Without a verdict: 2 selected outputs" in note for note in of_results.notes)


def test_records_keep_what_estimates_need(
    explored: tuple[Path, list[GateResult], float], tmp_path: Path
) -> None:
    """Propensity and `verified` are the gate's, in its log and in a file written from it."""
    log, results, _ = explored
    write_records(tmp_path / "records.jsonl.gz", load_records(log))
    again = load_records(tmp_path / "records.jsonl.gz")
    assert estimate(again) == estimate(load_records(log))
    for record, result in zip(again, results, strict=True):
        assert record.propensity == result.decision.propensity
        assert record.verified == (result.decision.verify and result.verified)
        label = None if result.outcome is None else result.outcome.error
        assert record.error == label


def test_the_report_shows_them(explored: tuple[Path, list[GateResult], float]) -> None:
    log = explored[0]
    page, found = report(log), estimate(load_records(log))
    assert "How many of all outputs are wrong?" in page
    assert found.why in page
    for one in (found.naive, found.weighted, found.assisted):
        assert one is not None
        assert f"{one.value:.1%}" in page
        assert f"{100 * one.low:.1f} – {100 * one.high:.1f}%" in page
    assert f"An estimated {numbers(found.assisted)[0]:.1%} of all are wrong" in page
    lines = show(found)
    assert lines[0] == f"Error rate of all {N} outputs, with 95 % intervals:"
    assert json.loads(json.dumps(as_json(found)))["assisted"]["value"] == numbers(found.assisted)[0]


def test_the_page_on_estimates_runs(
    explored: tuple[Path, list[GateResult], float], tmp_path: Path
) -> None:
    """docs/estimates.md: the program on a score, and the one on an error rate beside a log."""
    page = (Path(__file__).parents[2] / "docs" / "estimates.md").read_text()
    score, program = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    graded = "from gatekeeper.types import Generation\n"
    graded += "outputs = [(Generation(str(i), 'x'), i / 60) for i in range(60)]\n"
    graded += "def f1(generation, task): return task\n"
    ran = subprocess.run(
        [sys.executable, "-c", graded + score], cwd=tmp_path, capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr
    point, low, high = map(float, ran.stdout.splitlines()[-1].split())
    assert low < point < high
    assert low < 59 / 120 < high
    log = explored[0]
    ran = subprocess.run(
        [sys.executable, "-c", program], cwd=log.parent, capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr
    printed_lines = show(estimate(load_records(log)))
    assert ran.stdout.splitlines()[: len(printed_lines)] == printed_lines
    assert ran.stdout.splitlines()[-1].startswith("pass rate 0.")


def test_a_gate_that_does_not_explore(tmp_path: Path) -> None:
    results, _ = run_gate(tmp_path / "run.db", explore=0.0)
    refused(estimate(results), "have propensity 0", "explore above 0")
    page = report(tmp_path / "run.db")
    assert "have propensity 0" in page
    assert "is not the model&#x27;s error rate" in page


def test_the_command_prints_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`gatekeeper run` with a log, as JSON, as text, and without a log."""
    tasks = gatekeeper.bundled.TASKS.read_text().splitlines()
    maths = [task for task in tasks if json.loads(task)["kind"] == "math"][:80]
    (tmp_path / "tasks.jsonl").write_text("\n".join(maths))
    command = ["run", str(tmp_path / "tasks.jsonl"), "--budget", "0.5", "--explore", "0.5"]
    logged = [*command, "--log", str(tmp_path / "run.db")]
    assert main([*logged, "--json"]) == 0
    found = estimate(load_records(tmp_path / "run.db"))
    assert numbers(found.weighted)[0] < 1
    assert json.loads(capsys.readouterr().out)["error_rate"] == json.loads(
        json.dumps(as_json(found))
    )
    assert main(logged) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert all(" ".join(line.split()) in out for line in show(found))
    assert main([*command, "--limit", "60"]) == 0
    assert "weighted by propensity" in capsys.readouterr().out


def test_a_table_is_as_good_as_its_records() -> None:
    p, y = [1.0] * 10 + [0.5] * 10, [1, 0] * 5 + [1, 0, None, None, 1, 0, None, None, 0, 0]
    rows = records(p, y, [label is not None for label in y])
    assert estimate(RecordTable.of(rows)) == estimate(rows)
    assert log(numbers(estimate(rows).weighted)[1]) < 0


def test_verdicts_that_all_agree() -> None:
    """Rounding of weights does not leave the rate an ulp below 1, whose log odds would be huge."""
    for seed in range(40):
        rng = np.random.default_rng(seed)
        p = rng.uniform(0.02, 0.039, 60).tolist()
        labels = [1 if drawn else None for drawn in rng.random(60) < 0.3]
        found = estimate(records(p, labels, [label == 1 for label in labels])).weighted
        assert found is not None
        assert found.value == 1.0
