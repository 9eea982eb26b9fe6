"""`gatekeeper replay`: its contract with scripts, and its messages for wrong input."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import slow_reference as slow

from gatekeeper.analysis.experiment import Comparison, Protocol
from gatekeeper.analysis.policy_run import Contender
from gatekeeper.cli import main, replay
from gatekeeper.io.records import read_records
from gatekeeper.types import Record

T0 = slow.T0
N = 120
EXACT = ("--order", "given", "--no-noise", "--seeds", "1")
PAPER = ["threshold", "cst", "cst-memory", "mp-adapt", "mp-strat", "split-conformal", "hga"]
METRICS = ["hit_rate", "audit_rate", "utilisation", "recall", "yield", "value"]
FIELDS = ["policy", "beta", "seed", "id", "verify", "wanted", "score", "threshold", "stratum"]


def rows_of(stream: slow.Stream) -> list[dict[str, Any]]:
    rows = zip(stream.h.tolist(), stream.c_hat, stream.c, stream.y, strict=True)
    return [
        {
            "id": f"r{i}",
            **{f"h{j}": v if np.isfinite(v) else None for j, v in enumerate(h, 1)},
            "cost_estimate": float(e),
            "cost": float(c),
            "error": int(y),
        }
        for i, (h, e, c, y) in enumerate(rows)
    ]


ROWS = rows_of(slow.make_stream("heterogeneous", N, 0))


def written(path: Path, rows: list[Any]) -> Path:
    text = "".join(r if isinstance(r, str) else json.dumps(r) + "\n" for r in rows)
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(text.encode()))
    else:
        path.write_text(text)
    return path


@pytest.fixture
def records(tmp_path: Path) -> Path:
    return written(tmp_path / "records.jsonl", ROWS)


def no_constant(name: str) -> Any:
    raise AssertionError(f"{name} is no JSON")


class Shell:
    """Runs `gatekeeper replay` in this process."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self.capsys = capsys

    def __call__(self, *arguments: object, code: int = 0) -> tuple[str, str]:
        """(standard output, standard error)."""
        assert main(["replay", *map(str, arguments), "--workers", "1"]) == code
        out, err = self.capsys.readouterr()
        assert "Traceback" not in err
        return out, err

    def json(self, *arguments: object) -> dict[str, Any]:
        out, err = self(*arguments, "--json")
        assert err == ""
        assert out.count("\n") == 1
        result: dict[str, Any] = json.loads(out, parse_constant=no_constant)
        return result

    def refused(self, *arguments: object) -> str:
        """Exit code 2, one line on standard error, nothing else."""
        out, err = self(*arguments, code=2)
        assert out == ""
        assert err.startswith("gatekeeper: ")
        assert err.count("\n") == 1
        return err


@pytest.fixture
def shell(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Shell:
    monkeypatch.setenv("COLUMNS", "80")
    return Shell(capsys)


# -- output ---------------------------------------------------------------------------------------


def test_random_and_oracle_stand_around_every_table(shell: Shell, records: Path) -> None:
    def policies(*arguments: str) -> list[str]:
        results = shell.json(records, "--beta", "0.2", "--seeds", "2", *arguments)["results"]
        return [row["policy"] for row in results]

    assert policies() == ["random", *PAPER, "calibrated", "oracle"]
    assert policies("--policy", "cst") == ["random", "cst", "oracle"]
    assert policies("--policy", "hga", "--policy", "cst") == ["random", "hga", "cst", "oracle"]
    assert policies("--policy", "random", "--policy", "random") == ["random", "oracle"]


def test_json_says_how_it_was_made(shell: Shell, records: Path) -> None:
    found = shell.json(records, "--policy", "cst", "--policy", "hga", "--beta", "0.1,0.2,0.1")
    results = found.pop("results")
    assert found == {
        "records": N,
        "skipped": 0,
        "left_out": 0,
        "seeds": 10,
        "order": "shuffled",
        "noise": True,
        "feedback": "full",
        "evaluate": "second-half",
        "label": "error",
    }
    assert len(results) == 4 * 2  # a budget given twice counts once
    assert {row["beta"] for row in results} == {0.1, 0.2}
    for row in results:
        more = ["gate_open"] if row["policy"] == "hga" else []
        assert list(row) == ["policy", "beta", *METRICS, "hit_rate_minus_random", *more]
        for name in [*METRICS, "hit_rate_minus_random"]:
            assert list(row[name]) == ["mean", "margin"]
    other = shell.json(
        records, "--policy", "cst", "--feedback", "partial", "--evaluate", "all", *EXACT
    )
    assert [other[key] for key in ("seeds", "order", "noise", "feedback", "evaluate")] == [
        *(1, "given", False, "partial", "all")
    ]
    assert {row["beta"] for row in other["results"]} == {0.1, 0.2, 0.3, 0.5}


def test_figures_without_noise_are_those_of_the_slow_reference(shell: Shell, records: Path) -> None:
    """Deterministic, and as docs/reference/policies.md says; each line has score and threshold."""
    betas, out = (0.1, 0.3), records.with_name("decisions.jsonl")
    arguments = (records, "--beta", "0.1,0.3", *EXACT, "--decisions", out)
    found = shell.json(*arguments)
    lines = [json.loads(line, parse_constant=no_constant) for line in out.read_text().splitlines()]
    before = out.read_bytes()
    assert shell.json(*arguments) == found
    assert out.read_bytes() == before
    stream, half = slow.make_stream("heterogeneous", N, 0), (N - T0) // 2
    assert len(lines) == 10 * 2 * (N - T0 - half)
    for beta in betas:
        steps = slow.all_steps(stream, beta)
        for name in ["random", *PAPER, "oracle"]:
            expected = slow.replayed(name, stream, beta, steps, second_half=True)
            mine = [line for line in lines if (line["policy"], line["beta"]) == (name, beta)]
            assert all(list(line) == FIELDS and line["seed"] == 0 for line in mine)
            assert [line["id"] for line in mine] == [f"r{i}" for i in range(T0 + half, N)]
            assert [line["wanted"] for line in mine] == [s.proposal for s in expected.steps]
            assert [line["verify"] for line in mine] == expected.verified
            assert [line["stratum"] for line in mine] == [s.stratum for s in expected.steps]
            for key in ("score", "threshold"):
                theirs = [getattr(step, key) for step in expected.steps]
                ours = [np.nan if line[key] is None else line[key] for line in mine]
                finite = [v if np.isfinite(v) else np.nan for v in theirs]
                assert ours == pytest.approx(finite, rel=1e-9, abs=1e-12, nan_ok=True)
            (row,) = [r for r in found["results"] if (r["policy"], r["beta"]) == (name, beta)]
            for metric in METRICS:
                value = expected.metrics[metric]
                assert row[metric]["margin"] is None  # one seed
                if np.isnan(value):
                    assert row[metric]["mean"] is None
                else:
                    assert row[metric]["mean"] == pytest.approx(value, rel=1e-12)


def test_decisions_of_every_seed_in_its_own_order(shell: Shell, records: Path) -> None:
    out = records.with_name("decisions.jsonl.gz")
    found = shell.json(
        records, "--policy", "cst", "--seeds", "3", "--beta", "0.2", "--decisions", out
    )
    with gzip.open(out, "rt") as file:
        lines = [json.loads(line) for line in file]
    assert len(lines) == 3 * 3 * (N - T0)
    y = {row["id"]: row["error"] for row in ROWS}
    rates, orders = [], set()
    for seed in range(3):
        mine = [line for line in lines if (line["policy"], line["seed"]) == ("cst", seed)]
        orders.add(tuple(line["id"] for line in mine))
        assert all(line["wanted"] or not line["verify"] for line in mine)
        verified = [y[line["id"]] for line in mine if line["verify"]]
        rates.append(sum(verified) / len(verified))
    assert len(orders) == 3
    assert found["results"][1]["hit_rate"]["mean"] == pytest.approx(np.mean(rates))


def test_gzip_or_not_and_processes_change_nothing(
    shell: Shell, records: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    packed = written(records.with_name("records.jsonl.gz"), ROWS)
    arguments = ("--policy", "hga", "--beta", "0.2", "--seeds", "2")
    plain = shell.json(records, *arguments)
    assert shell.json(packed, *arguments) == plain
    assert main(["replay", str(records), *arguments, "--workers", "2", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == plain


def test_routing(shell: Shell, tmp_path: Path) -> None:
    rows = [{**row, "benefit": int(row["error"] and i % 2)} for i, row in enumerate(ROWS)]
    path = written(tmp_path / "routing.jsonl", rows)
    swapped = written(tmp_path / "swapped.jsonl", [{**r, "error": r["benefit"]} for r in rows])
    arguments = ("--policy", "cst", "--beta", "0.2", "--seeds", "2")
    found = shell.json(path, *arguments, "--label", "benefit")
    assert found["label"] == "benefit"
    assert found["results"] == shell.json(swapped, *arguments)["results"]
    out, _ = shell(path, *arguments, "--label", "benefit")
    assert "of the benefits" in out
    assert "errors" not in out


# -- the table and its words ----------------------------------------------------------------------


def test_a_narrow_table_cuts_no_name_and_no_figure(shell: Shell, records: Path) -> None:
    out, err = shell(records, "--beta", "0.2", "--seeds", "3")
    assert err == ""
    assert "…" not in out
    assert max(map(len, out.splitlines())) <= 80
    for name in ["random", *PAPER, "oracle"]:
        assert f"│ {name} " in out
    for words in (f"{N} records, mean of 3 seeds", "the second half of what follows the warm-up"):
        assert words in out
    assert "HGA opened its gate" in out


def test_the_conclusion_claims_no_more_than_the_interval_says(shell: Shell, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    n = 400
    y = (rng.random(n) < 0.3).astype(int)
    one = np.ones(n)

    def said(h1: Any, *arguments: object) -> str:
        h = np.stack([h1, np.full(n, np.nan), np.full(n, np.nan)], axis=1)
        rows = rows_of(slow.Stream(h, one, one, y))
        path = written(tmp_path / "told.jsonl", rows)
        out, _ = shell(path, "--beta", "0.2", *arguments)
        return " ".join(out.split("\n", 4)[-1].split())

    alone = ("--policy", "threshold")
    good = said(y + 0.1 * rng.random(n), *alone)
    assert "threshold finds " in good
    assert "against random)." in good  # nobody else to be ahead of
    assert "no significant difference from random" in said(rng.random(n), *alone)
    assert "no significant difference from it: " in said(
        y + 0.1 * rng.random(n), *alone, "--policy", "cst"
    )
    assert "one order, no interval" in said(y + 0.1 * rng.random(n), *alone, *EXACT)
    assert "no policy to compare" in said(y + 0.1, "--policy", "random", "--policy", "oracle")
    # All the uncertainty falls on right answers once the warm-up is over.
    wrong = np.where(np.arange(n) < T0, y, 1 - y) + 0.1 * rng.random(n)
    fooled = ("--order", "given", "--no-noise", "--seeds", "3")
    assert "less than random; no policy pays" in said(wrong, *alone, *fooled)


def test_a_significant_second_is_not_hidden_by_a_noisy_first() -> None:
    """The largest mean may be noise, while another policy beats random beyond chance."""
    recall = np.array([[0.20, 0.21, 0.19, 0.20], [0.9, 0.0, 0.9, 0.0], [0.30, 0.31, 0.29, 0.30]])
    values = np.repeat(recall[:, None, :, None], len(METRICS), axis=-1)
    contenders = [Contender(name) for name in ("random", "mp-adapt", "cst")]
    compared = Comparison(
        contenders, [0.2], Protocol(seeds=4), "all", values, np.full((3, 1, 4), np.nan)
    )
    said = replay._conclusion(compared, 0.2, "errors")
    assert "mp-adapt finds 45.0% of the errors, the most" in said
    assert (
        "no significant difference from random; significantly more than random: cst at this budget."
        in said
    )


@pytest.mark.parametrize(
    ("kind", "undefined"),
    [
        ("all_right", "recall"),
        ("constant", "hit_rate"),
        ("one_constant", None),
        ("equal_costs", None),
        ("all_wrong", None),
        ("few_values_everywhere", None),
        ("only_one_signal", None),
        ("missing", None),
        ("anti_correlated", None),
    ],
)
def test_odd_records_give_a_dash_and_a_null_where_nothing_can_be_said(
    kind: str, undefined: str | None, shell: Shell, tmp_path: Path
) -> None:
    path = written(tmp_path / "odd.jsonl", rows_of(slow.make_stream(kind, N, 0)))
    arguments = (path, "--beta", "0.3", "--seeds", "3", "--policy", "threshold", "--policy", "hga")
    out, _ = shell(*arguments)
    results = {row["policy"]: row for row in shell.json(*arguments)["results"]}
    assert "nan" not in out
    holes = any(row[m]["mean"] is None for row in results.values() for m in METRICS if m != "value")
    assert ("–: 0/0 in at least one seed." in out) == holes
    if undefined:
        assert results["threshold"][undefined]["mean"] is None
        assert " – │" in out
    if kind == "all_right":
        assert "in at least one seed no counted record is among the errors" in out
        assert results["oracle"]["hit_rate"]["mean"] == 0.0
    if kind == "all_wrong":
        assert all(row["hit_rate"]["mean"] in (1.0, None) for row in results.values())


def test_a_cost_stratum_without_errors(shell: Shell, tmp_path: Path) -> None:
    median = sorted(row["cost_estimate"] for row in ROWS)[N // 2]
    rows = [{**r, "error": r["error"] if r["cost_estimate"] > median else 0} for r in ROWS]
    path = written(tmp_path / "half.jsonl", rows)
    found = shell.json(path, "--beta", "0.3", "--seeds", "3")
    for row in found["results"]:
        assert all(row[m]["mean"] is not None for m in ("audit_rate", "utilisation", "recall"))
    shell(path, "--beta", "0.3", "--seeds", "3")


def test_hga_without_a_calibration_is_said(shell: Shell, records: Path) -> None:
    arguments = (records, "--evaluate", "all", "--beta", "0.3", "--seeds", "2")
    out, _ = shell(*arguments, "--policy", "hga", "--policy", "threshold")
    assert "nothing to calibrate on" in out
    assert "HGA opened" not in out
    found = shell.json(*arguments, "--policy", "hga", "--policy", "threshold")
    _, hga, threshold, _ = found["results"]
    assert hga["recall"] == threshold["recall"]
    assert hga["gate_open"] == 0.0


# -- refusals -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ('{"id": "x", \n', "not JSON"),
        ("[1, 2]\n", "a JSON object is needed, not list"),
        ({"error": ...}, "field 'error' is missing"),
        ({"cost": ...}, "field 'cost' is missing"),
        ({"cost_estimate": ...}, "field 'cost_estimate' is missing"),
        ({"id": ...}, "field 'id' is missing"),
        ({"cost": 0}, "field 'cost' is 0: a number above 0, from"),
        ({"cost": -1.5}, "field 'cost' is -1.5: a number above 0, from"),
        ({"cost": float("nan")}, "field 'cost' is nan"),
        ({"cost_estimate": 0.0}, "field 'cost_estimate' is 0.0"),
        ({"cost_estimate": float("nan")}, "field 'cost_estimate' is nan"),
        ({"cost_estimate": float("inf")}, "field 'cost_estimate' is inf"),
        ({"error": 2}, "field 'error' is 2: 0, 1 or null is needed"),
        ({"error": 0.5}, "field 'error' is 0.5: 0, 1 or null is needed"),
        ({"verified": "yes"}, "field 'verified' is 'yes': true, false or null is needed"),
        ({"stratum": 2**53}, "a whole number from 0 to 2^53 - 1 is needed"),
        ({"error": "yes"}, "field 'error' is 'yes'"),
        ({"error": True}, "field 'error' is True"),
        ({"h1": "high"}, "field 'h1' is 'high'"),
        ({"h1": float("inf")}, "field 'h1' is inf"),
        ({"id": "r0"}, "id 'r0' occurs twice: give each record a unique id"),
    ],
)
def test_a_bad_line_is_named_or_skipped_and_counted(
    change: Any, says: str, shell: Shell, tmp_path: Path
) -> None:
    bad = change
    if isinstance(change, dict):
        bad = {k: v for k, v in {**ROWS[60], "id": "bad", **change}.items() if v is not ...}
    folder = tmp_path / ("a folder with a long name " * 6)  # no message is wrapped
    folder.mkdir()
    path = written(folder / "records.jsonl", [*ROWS[:60], bad, *ROWS[60:]])
    error = shell.refused(path)
    assert f"{path}, line 61: " in error
    assert says in error
    arguments = ("--beta", "0.2", "--policy", "cst", *EXACT)
    out, err = shell(path, *arguments, "--skip-bad", "--json")
    found = json.loads(out)
    assert (found["skipped"], found["records"]) == (1, N)
    assert err.startswith(f"gatekeeper: skipped {path}, line 61: ")
    assert err.count("\n") == 1
    clean = written(tmp_path / "clean.jsonl", ROWS)
    assert shell.json(clean, *arguments)["results"] == found["results"]


def test_records_that_cannot_be_replayed(shell: Shell, tmp_path: Path) -> None:
    def refused(rows: list[Any], *arguments: object) -> str:
        return shell.refused(written(tmp_path / "wrong.jsonl", rows), *arguments)

    unknown = [{**row, "error": None} if i in (3, 9) else row for i, row in enumerate(ROWS)]
    assert f"2 of {N} records have no 'error' label, the first is id='r3'" in refused(unknown)
    assert "compare" not in refused(unknown)  # which needs propensities
    drawn = [{**row, "propensity": 0.5} for row in unknown]
    assert "`gatekeeper compare` estimates from those that there are" in refused(drawn)
    for nan in (None, float("nan")):  # an output that nobody checked has neither label nor cost
        rows = [*ROWS[:98], {**ROWS[98], "error": nan, "cost": nan}]
        assert "1 of 99 records has no 'error' label" in refused(rows)
    assert "no record has a 'benefit' label" in refused(ROWS, "--label", "benefit")
    for n, told in ((1, "1 record leaves"), (49, "49 records leave"), (50, "50 records leave")):
        assert f"{told} none to evaluate after a warm-up of 50" in refused(ROWS[:n])
    assert "holds no record" in refused([])
    assert "holds no good record" in refused(["{\n"], "--skip-bad")
    shell(written(tmp_path / "enough.jsonl", ROWS[:51]), "--seeds", "2")


def test_a_few_records_without_a_label_are_left_out(shell: Shell, tmp_path: Path) -> None:
    """Up to 1 %: verifiers fail now and then. The figures are those of the other records."""
    few = written(tmp_path / "few.jsonl", [*ROWS[:-1], {**ROWS[-1], "error": None, "cost": None}])
    others = written(tmp_path / "others.jsonl", ROWS[:-1])
    left_out = "1 record left out, without a label or a cost.\n"
    found, _ = shell(few, *EXACT, "--policy", "cst")
    assert found.count(left_out) == 1
    assert found.replace(left_out, "") == shell(others, *EXACT, "--policy", "cst")[0]
    assert shell.json(few, *EXACT, "--policy", "cst")["left_out"] == 1


def test_files_that_cannot_be_read_or_written(shell: Shell, records: Path) -> None:
    folder = records.parent
    none = folder / "none.jsonl"
    assert f"{none} cannot be read: No such file" in shell.refused(none)
    assert "cannot be read: Is a directory" in shell.refused(folder)
    plain = written(folder / "plain.jsonl", ROWS).rename(folder / "plain.jsonl.gz")
    assert "cannot be read: Not a gzipped file" in shell.refused(plain)
    cut = folder / "cut.jsonl.gz"
    cut.write_bytes(written(folder / "whole.jsonl.gz", ROWS).read_bytes()[:-400])
    assert f"{cut} cannot be read: " in shell.refused(cut)
    (folder / "bytes.jsonl").write_bytes(b"\xff\xfe\x00")
    assert "line 1: not UTF-8" in shell.refused(folder / "bytes.jsonl")
    nowhere = folder / "nowhere" / "out.jsonl"
    assert f"--decisions {nowhere} cannot be written: its folder does not exist" in shell.refused(
        records, "--decisions", nowhere
    )
    assert "cannot be written: it is a folder" in shell.refused(records, "--decisions", folder)
    before = records.read_bytes()
    assert "is the input file itself" in shell.refused(records, "--decisions", records)
    assert records.read_bytes() == before
    untouched = folder / "untouched.jsonl"
    shell.refused(records, "--decisions", untouched, "--beta", "2")
    assert not untouched.exists()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--beta", "0"], "--budget/--beta '0': give numbers in (0, 1), separated by commas"),
        (["--beta", "1"], "--beta '1': "),
        (["--beta", "0.2,-0.1"], "--beta '0.2,-0.1': "),
        (["--beta", "nan"], "--beta 'nan': "),
        (["--beta", "abc"], "--beta 'abc': give numbers"),
        (["--beta", ""], "--beta '': give numbers"),
        (["--beta", "0.1,"], "--beta '0.1,': give numbers"),
        (["--seeds", "0"], "--seeds '0': give a whole number from 1 to 10000"),
        (["--seeds", "-3"], "--seeds '-3': "),
        (["--policy", "delphi"], "policy 'delphi' is unknown: choose one of random, threshold"),
    ],
)
def test_wrong_options(arguments: list[str], says: str, shell: Shell, records: Path) -> None:
    assert says in shell.refused(records, *arguments)


def test_wrong_workers(records: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", str(records), "--workers", "0"]) == 2
    assert (
        capsys.readouterr().err == "gatekeeper: --workers '0': give a whole number of at least 1\n"
    )


def test_the_reader_and_the_rows_agree(records: Path) -> None:
    """What these tests write is what a replay reads."""
    table: list[Record] = list(read_records(records))
    assert [r.id for r in table] == [row["id"] for row in ROWS]
    assert [r.signals.h1 for r in table] == [row["h1"] for row in ROWS]


def test_records_without_any_signal_are_counted(shell: Shell, tmp_path: Path) -> None:
    """They are drawn at random, so a misspelt column must not pass unnoticed."""
    arguments = ("--beta", "0.3", "--policy", "cst", "--seeds", "2")
    some = [{**r, "h1": None, "h2": None, "h3": None} if i < 7 else r for i, r in enumerate(ROWS)]
    out, _ = shell(written(tmp_path / "some.jsonl", some), *arguments)
    assert f"7 of {N} records have no signal" in out
    none = [{k.upper() if k in ("h1", "h2", "h3") else k: v for k, v in r.items()} for r in ROWS]
    out, _ = shell(written(tmp_path / "none.jsonl", none), *arguments)
    assert f"{N} of {N} records have no signal" in out
    out, _ = shell(written(tmp_path / "all.jsonl", ROWS), *arguments)
    assert "no signal" not in out
