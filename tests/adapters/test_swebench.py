"""docs/swebench.md on recorded reports; SWE-bench itself is in tests/harness."""

from __future__ import annotations

import json
import re
import shlex
import sqlite3
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import simulated_swebench
from simulated_swebench import patch_of, write

from gatekeeper import BadInputError
from gatekeeper.adapters.swebench.predictions import Prediction, read_predictions
from gatekeeper.adapters.swebench.reports import outcome_of
from gatekeeper.cli import main
from gatekeeper.types import Generation, Verdict

N = 300
PAGE = (Path(__file__).parents[2] / "docs" / "swebench.md").read_text()
START, END = ">>>>> Start Test Output", ">>>>> End Test Output"


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("swebench")
    simulated_swebench.main(path, N)
    return path


@pytest.fixture
def place(simulated: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory; the reports are another test's, too."""
    (tmp_path / "reports").symlink_to(simulated / "reports")
    (tmp_path / "predictions.jsonl").write_bytes((simulated / "predictions.jsonl").read_bytes())
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, Any]:
    given = ["--predictions", "predictions.jsonl", "--reports", "reports", "--json", *words]
    code = main(["swebench", *given])
    out, err = capsys.readouterr()
    return code, json.loads(out) if code < 2 else err.strip().splitlines()[-1]


def known_resolved(place: Path) -> dict[str, bool]:
    """Computed independently: the reports' results, and False for everything without one."""
    found = {}
    for line in (place / "predictions.jsonl").read_text().splitlines():
        id_ = json.loads(line)["instance_id"]
        report = place / "reports" / "simulated__agent" / id_ / "report.json"
        found[id_] = report.exists() and json.loads(report.read_text())[id_]["resolved"]
    return found


def test_budget_1_is_the_harness_s_count(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    resolved = known_resolved(place)
    code, found = run(capsys, "--budget", "1", "--out", "verdicts.jsonl")
    rate = found["resolve_rate"]
    assert code == 0
    assert rate["point"] == rate["low"] == rate["high"] == sum(resolved.values()) / N
    assert sum(found["swebench"].values()) == N
    assert min(found["swebench"].get(name, 0) for name in ("empty_patch", "error")) > 0
    for line in map(json.loads, (place / "verdicts.jsonl").read_text().splitlines()):
        assert (line["verdict"] == "passed") == resolved[line["id"]]


def test_a_part_holds_the_whole_in_its_interval(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of 95 in 100; empty patches take nothing of the budget."""
    whole = sum(known_resolved(place).values()) / N
    held = 0
    for seed in range(10):
        code, found = run(capsys, "--budget", "0.2", "--seed", str(seed))
        rate = found["resolve_rate"]
        patched = N - found["swebench"]["empty_patch"]
        assert (code, found["outputs"], found["warmup"]) == (0, patched, 0)
        assert found["verified"] == int(0.2 * patched)
        assert rate["low"] < rate["point"] < rate["high"] < rate["low"] + 0.35
        held += rate["low"] <= whole <= rate["high"]
    assert held >= 8


def test_the_page_s_table_is_what_its_commands_print(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    part, whole = (
        shlex.split(line)[1:] for line in re.findall(r"^gatekeeper .*--reports.*$", PAGE, re.M)
    )
    (row,) = re.findall(r"^\| resolve rate .* predictions \| (.*) \|$", PAGE, re.MULTILINE)
    found = []
    for words in (part, whole):
        assert main(words) == 0
        line = capsys.readouterr().out.splitlines()[1]
        found.append(re.findall(r"0\.\d{4}", line))
    (estimate, low, high, *_), (known, *_) = found
    assert row == f"{estimate}, {low} – {high} | {known}"


def test_a_log_goes_on_and_keeps_to_its_predictions(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, first = run(capsys, "--log", "run.db")
    with closing(sqlite3.connect("run.db")) as log:
        before = log.execute("select count(*) from events").fetchone()
    (place / "reports").unlink()
    (place / "reports").mkdir()  # nothing is looked up again, so that nothing is missed
    for line in (place / "predictions.jsonl").read_text().splitlines():
        (place / "reports" / json.loads(line)["instance_id"]).mkdir()
    assert run(capsys, "--log", "run.db") == (0, first)
    with closing(sqlite3.connect("run.db")) as log:
        assert log.execute("select count(*) from events").fetchone() == before
    lines = (place / "predictions.jsonl").read_text().splitlines(keepends=True)
    (place / "predictions.jsonl").write_text("".join([*lines[1:], lines[0]]))
    code, said = run(capsys, "--log", "run.db")
    assert code == 2
    assert "predictions" in said


def test_an_empty_folder_is_of_a_run_to_come(
    place: Path, simulated: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Decide, evaluate the chosen ones elsewhere, and go on with their reports."""
    (place / "reports").unlink()
    (place / "reports").mkdir()
    code, before = run(capsys, "--log", "run.db")
    assert (code, before["verified"], before["resolve_rate"]["point"]) == (1, 0, None)
    for id_ in before["selected"]:
        (place / "reports" / id_).symlink_to(simulated / "reports" / "simulated__agent" / id_)
    code, after = run(capsys, "--log", "run.db")
    assert (code, after["selected"]) == (0, before["selected"])
    assert after["verified"] == len(after["selected"]) == int(0.2 * after["outputs"])
    rate = after["resolve_rate"]
    assert rate["low"] < rate["point"] < rate["high"] < rate["low"] + 0.35


def test_an_instance_without_a_report_is_not_unresolved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Budget 1, reports missing: bounds, an estimate among patches alone, and exit code 1."""
    monkeypatch.chdir(tmp_path)
    with Path("predictions.jsonl").open("w") as file:
        for number in range(40):
            patch = "" if number < 10 else patch_of(3)
            line = {"instance_id": f"i{number}", "model_name_or_path": "m", "model_patch": patch}
            file.write(json.dumps(line) + "\n")
            if 10 <= number < 34:
                place = Path("reports", f"i{number}")
                write(place, f"i{number}", patch, applies=True, resolved=number % 2 == 0)
    code, found = run(capsys, "--budget", "1")
    rate = found["resolve_rate"]
    assert code == 1
    assert found["could_not_tell"] == 6
    assert rate["bounds"] == pytest.approx({"low": 12 / 40, "high": 18 / 40})
    assert rate["point"] == pytest.approx(15 / 40)  # half of the 30 patches
    assert main(["swebench", "--predictions=predictions.jsonl", "--reports=reports"]) == 1
    assert main(["swebench", "--predictions=predictions.jsonl", "--reports=reports", "--budget=1"])
    out = capsys.readouterr().out
    assert "instances without a verdict as not resolved: resolved 12 of 40, 0.3000" in out


REPORT = {"patch_exists": True, "patch_successfully_applied": True, "infra_failure": False}
INFO = "2026-11-24 03:00:00,000 - INFO - "


@pytest.mark.parametrize(
    ("files", "verdict", "counted", "detail"),
    [
        ({"report.json": {"i": REPORT | {"resolved": True}}}, Verdict.PASSED, "resolved", ""),
        ({"report.json": {"i": REPORT | {"resolved": False}}}, Verdict.FAILED, "unresolved", "no"),
        (
            {
                "report.json": {
                    "i": {
                        "resolved": False,
                        "tests_status": {
                            "FAIL_TO_PASS": {"success": ["a"], "failure": ["b"]},
                            "PASS_TO_PASS": {"success": ["c"], "failure": []},
                        },
                    }
                },
                "test_output.txt": f"{START}\n{END}\n",
            },
            Verdict.FAILED,
            "unresolved",
            "FAIL_TO_PASS 1 of 2, PASS_TO_PASS 1 of 1",
        ),
        (
            {
                "report.json": {
                    "i": {
                        "resolved": False,
                        "infra_failure": True,
                        "infra_failure_reason": "out_of_memory",
                    }
                }
            },
            Verdict.INFRA_ERROR,
            "unresolved",
            "out_of_memory",
        ),
        (
            {"report.json": {"i": REPORT | {"resolved": False}}, "test_output.txt": f"{START}\n"},
            Verdict.INFRA_ERROR,
            "unresolved",
            "did not run to their end",
        ),
        ({"report.json": {}}, Verdict.INFRA_ERROR, "error", "cannot be read"),
        (
            {"run_instance.log": f"{INFO}x\n{INFO}>>>>> Patch Apply Failed:\nerror\n"},
            Verdict.FAILED,
            "error",
            "does not apply",
        ),
        (  # a patch that contains the words
            {"run_instance.log": f"{INFO}Git diff before:\n+>>>>> Patch Apply Failed\n"},
            Verdict.INFRA_ERROR,
            "error",
            "no report",
        ),
        (
            {"run_instance.log": f"{INFO}x\nEvaluationError: Test timed out after 5 seconds.\n"},
            Verdict.INFRA_ERROR,
            "error",
            "timed out after 5 seconds",
        ),
        (
            {"run_instance.log": "2026-11-24 03:00:00,000 - ERROR - Image m not found\n"},
            Verdict.INFRA_ERROR,
            "error",
            "Image m not found",
        ),
        ({}, Verdict.INFRA_ERROR, "error", "no report in"),
    ],
)
def test_what_the_files_of_an_instance_state(
    files: dict[str, Any], verdict: Verdict, counted: str, detail: str, tmp_path: Path
) -> None:
    for name, content in files.items():
        text = content if isinstance(content, str) else json.dumps(content)
        (tmp_path / name).write_text(text)
    found = outcome_of(tmp_path, Prediction("m", Generation("i", "patch")))
    assert (found.verdict, found.meta["swebench"]) == (verdict, counted)
    assert detail in found.detail


def test_the_shapes_of_a_file_of_predictions(tmp_path: Path) -> None:
    patch = patch_of(4)
    own = {"patch_files": 1.0, "patch_lines": 4.0}
    first = {"instance_id": "a", "model_name_or_path": "m/n", "model_patch": patch}
    second = first | {"instance_id": "b", "model_patch": None, "features": {"turns": 7}}
    for name, content in {
        "list.json": json.dumps([first, second]),
        "object.json": json.dumps({"a": first, "b": second}),
        "lines.jsonl": f"{json.dumps(first)}\n{json.dumps(second)}\n",
    }.items():
        (tmp_path / name).write_text(content)
        a, b = read_predictions(tmp_path / name)
        assert a.as_dict() == first
        assert (a.folder, dict(a.generation.features)) == ("m__n", own)
        assert (b.patch, b.generation.features["turns"]) == ("", 7.0)


GOOD = {"instance_id": "a", "model_name_or_path": "m", "model_patch": "x"}


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ([GOOD, GOOD], "prediction 2: instance_id 'a' has a prediction already"),
        ([{"model_patch": "x"}], "prediction 1: field 'instance_id' is missing"),
        ([{"instance_id": "a", "model_name_or_path": "m"}], "field 'model_patch' is missing"),
        ([GOOD | {"features": {"turns": "many"}}], "features['turns']='many'"),
        ([GOOD | {"logprobs": 3}], "field 'logprobs' is 3"),
        ([GOOD | {"model_patch": ""}], "every patch is empty"),
        ([7], "prediction 1: a JSON object is needed"),
        ([], "has no prediction"),
        (7, "a list of predictions"),
        ([GOOD], "--reports . has no folder m/a, nor one for any other prediction"),
        ([GOOD | {"instance_id": "b"}], "b is about another patch than the prediction for b"),
    ],
)
def test_bad_input_is_one_line_and_2(
    content: Any,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    write(Path("b"), "b", "another patch", applies=True, resolved=True)
    Path("p.json").write_text(json.dumps(content))
    assert main(["swebench", "--predictions", "p.json", "--reports", "."]) == 2
    (last,) = capsys.readouterr().err.strip().splitlines()
    assert said in last
    assert main(["swebench", "--predictions", "p.json", "--reports", "nowhere"]) == 2


def test_empty_patches_within_a_limit_are_of_the_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    lines = [GOOD | {"instance_id": f"b{i}", "model_patch": "x" * (i > 1)} for i in range(3)]
    Path("p.json").write_text(json.dumps(lines))
    words = ["swebench", "--predictions", "p.json", "--reports", ".", "--limit"]
    assert main([*words, "2"]) == 2
    said = "--limit 2: the first 2 predictions of p.json have empty patches"
    assert said in capsys.readouterr().err


@pytest.mark.skipif(find_spec("swebench") is not None, reason="SWE-bench is installed here")
def test_without_swebench_the_extra_is_named(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--predictions", "predictions.jsonl", "--dataset", "verified"]
    assert main(["swebench", *words]) == 2
    assert "extra swebench" in capsys.readouterr().err


def test_a_dry_run_of_a_part_says_what_the_run_does(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It writes nothing; the run with the same options checks as many, and its log is read."""
    part = ("--limit", "40", "--budget", "0.5", "--log", "run.db")
    patched = sum(bool(p.patch) for p in read_predictions("predictions.jsonl")[:40])
    code, plan = run(capsys, *part, "--dry-run")
    assert (code, plan["predictions"], plan["answered"]) == (0, patched, 0)
    assert not Path("run.db").exists()
    assert "to_generate" not in plan
    code, _ = run(capsys, *part)
    assert code < 2
    code, after = run(capsys, *part, "--dry-run")
    assert (code, after["answered"]) == (0, patched)
    assert 0 < after["verified"] <= plan["to_verify_at_most"]
    code, error = run(capsys, "--limit", "30", *part[2:], "--dry-run")
    assert code == 2
    assert "--log run.db was written with other predictions (another file or --limit)" in error
    code, error = run(capsys, *part[:2], "--budget", "0.4", *part[4:])
    assert code == 2
    assert "--log run.db was written with --budget 0.5 (now 0.4)" in error


@pytest.mark.parametrize(
    "option", [("--split", "dev"), ("--run-id", "r"), ("--workers", "2"), ("--timeout", "60")]
)
def test_an_option_of_an_evaluation_is_in_vain_with_reports(
    place: Path, capsys: pytest.CaptureFixture[str], option: tuple[str, str]
) -> None:
    code, line = run(capsys, *option)
    assert code == 2
    assert line == (
        f"gatekeeper: {' '.join(option)} needs --dataset: with --reports nothing is evaluated"
    )


@pytest.mark.parametrize(
    "report",
    [
        {"resolved": "false"},
        {"resolved": None},
        {"resolved": 1},
        {"resolved": False, "tests_status": {"FAIL_TO_PASS": {"success": []}}},
        ["resolved"],
    ],
)
def test_an_odd_report_is_no_verdict(tmp_path: Path, report: Any) -> None:
    """The text "false" counts as true."""
    (tmp_path / "report.json").write_text(json.dumps({"i": report}))
    outcome = outcome_of(tmp_path, Prediction("m", Generation("i", "patch")))
    assert outcome.verdict is Verdict.INFRA_ERROR
    assert "delete it to try again" in outcome.detail


def test_an_id_that_no_output_can_have(tmp_path: Path) -> None:
    for name in ("", "x" * 2000):
        line = {"instance_id": name, "model_name_or_path": "m", "model_patch": "p"}
        (tmp_path / "p.jsonl").write_text(json.dumps(line))
        with pytest.raises(BadInputError, match=r"p.jsonl, line 1: field 'instance_id' is '"):
            read_predictions(tmp_path / "p.jsonl")
