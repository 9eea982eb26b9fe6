"""Wrong arguments and files on the command line: one line, exit code 2."""

import json
import os
import re
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

import gatekeeper
from gatekeeper import Budget, VerificationGate
from gatekeeper.analysis.estimates import estimate
from gatekeeper.analysis.summary import summarise
from gatekeeper.cli import main
from gatekeeper.log import SQLiteLog
from gatekeeper.programs.run_options import RunOptions
from gatekeeper.programs.run_report import RunReport
from gatekeeper.testing import ScriptedVerifier, make_generation

MATH = {"id": "m1", "prompt": "Compute 1 + 1.", "kind": "math", "gold": "2"}
CODE = {"id": "c1", "prompt": "Write f.", "kind": "code", "tests": ["assert f(1) == 1"]}


def lines(path: Path, *items: object) -> Path:
    path.write_text("".join(i if isinstance(i, str) else json.dumps(i) + "\n" for i in items))
    return path


def refused(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """Run a command that must be refused; returns its one line."""
    assert main([str(a) for a in arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert "Traceback" not in err
    return err


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        ('{"id": "x", \n', "not JSON"),
        ("[1, 2]\n", "a JSON object is needed, not list"),
        ({**MATH, "id": 7}, "field 'id' is 7, not of type str"),
        ({**MATH, "id": ""}, "field 'id' is empty"),
        ({k: v for k, v in MATH.items() if k != "prompt"}, "field 'prompt' is missing"),
        ({**MATH, "kind": "essay"}, "field 'kind' is 'essay': choose 'code' or 'math'"),
        ({**MATH, "gold": " "}, "field 'gold' is empty"),
        ({**CODE, "tests": []}, "field 'tests' must be a list of at least one assert"),
        ({**CODE, "tests": "assert 1"}, "field 'tests' is 'assert 1', not of type list"),
        ({**CODE, "test_setup_code": 3}, "field 'test_setup_code' is 3, not of type str"),
        (MATH, "id 'm1' occurs twice"),
    ],
)
def test_a_bad_line_is_named_by_file_and_line(
    bad: object, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = lines(tmp_path / "tasks.jsonl", MATH, "\n", bad)
    error = refused(capsys, "run", path)
    assert f"{path}, line 3: " in error
    assert says in error


def test_bad_lines_are_skipped_and_reported_on_request(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = lines(tmp_path / "tasks.jsonl", "{\n", MATH, {**MATH, "id": "m2", "gold": ""})
    assert main(["run", str(path), "--skip-bad", "--json"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["outputs"] == 1
    first, third, plan = err.splitlines()
    assert "line 1" in first
    assert "line 3" in third
    assert plan == "gatekeeper: 1 task, all of them verified (--warmup 50)"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--policy", "delphi"], "hga, calibrated; in a replay also oracle"),
        (["--budget", "0"], "--budget '0': give a number in (0, 1]"),
        (["--budget", "1.5"], "--budget '1.5': give a number in (0, 1]"),
        (["--budget", "nan"], "--budget 'nan': give a number in (0, 1]"),
        (["--threads", "0"], "--threads '0': "),
        (["--temperature", "-1"], "--temperature '-1': "),
        (["--log", "/nowhere/run.db"], "log '/nowhere/run.db' cannot be opened"),
    ],
)
def test_wrong_options_are_shown_with_their_value(
    arguments: list[str], says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = lines(tmp_path / "tasks.jsonl", MATH)
    assert says in refused(capsys, "run", path, *arguments)


def test_wrong_task_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "cannot be read: No such file" in refused(capsys, "run", tmp_path / "none.jsonl")
    assert "cannot be read: Is a directory" in refused(capsys, "run", tmp_path)
    assert "holds no task: give a JSON object" in refused(
        capsys, "run", lines(tmp_path / "empty.jsonl", "\n")
    )
    (tmp_path / "bytes.jsonl").write_bytes(b"\xff\xfe\x00")
    assert "line 1: not UTF-8" in refused(capsys, "run", tmp_path / "bytes.jsonl")
    (tmp_path / "not.jsonl.gz").write_bytes(b"plain")
    assert "cannot be read" in refused(capsys, "run", tmp_path / "not.jsonl.gz")


def test_code_is_never_run_without_a_sandbox_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    error = refused(capsys, "run", lines(tmp_path / "tasks.jsonl", CODE))
    assert "tasks of kind 'code'" in error
    assert "--sandbox local" in error


def test_a_log_is_only_resumed_with_the_settings_it_was_written_with(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tasks, log = lines(tmp_path / "tasks.jsonl", MATH), tmp_path / "run.db"
    assert main(["run", str(tasks), "--log", str(log)]) == 0
    capsys.readouterr()

    def differs(*arguments: object) -> str:
        error = refused(capsys, "run", *arguments, "--log", log)
        assert refused(capsys, "run", *arguments, "--log", log, "--dry-run") == error
        assert error.startswith(f"gatekeeper: --log {log} was written with ")
        return error

    assert "--policy calibrated (now random): give the same" in differs(tasks, "--policy", "random")
    assert "--budget 0.2 (now 0.3): give the same" in differs(tasks, "--budget", "0.3")
    assert "--on-drift relearn (now report)" in refused(
        capsys, "run", tasks, "--log", log, "--on-drift", "report"
    )
    other = lines(tmp_path / "other.jsonl", {**MATH, "gold": "3"})
    every = differs(other, "--seed", "1", "--temperature", "0.5", "--warmup", "9", "--total", "12")
    for part in ("--seed 0 (now 1)", "--temperature 0 (now 0.5)", "--warmup 50 (now 9)",
                 "--total none (now 12)", "other tasks"):  # fmt: skip
        assert part in every
    with SQLiteLog(log):
        assert "in use by another gate" in refused(capsys, "run", tasks, "--log", log)
    with closing(sqlite3.connect(log)) as db, db:
        db.execute("INSERT INTO migrations VALUES ('_add_wings', 0)")
    assert "written by a newer gatekeeper" in refused(capsys, "run", tasks, "--log", log)
    not_a_log = lines(tmp_path / "notes.txt", "hello, I am no database at all\n" * 99)
    assert "is not a log" in refused(capsys, "run", tasks, "--log", not_a_log)


def test_doctor_tries_every_part(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--json"]) == 0
    findings = {f["part"]: f for f in json.loads(capsys.readouterr().out)}
    assert [f["group"] for f in findings.values() if f["works"]].count("core") == 6
    assert all(findings[part]["works"] for part in ["bundled model", "maths checker", "local"])
    assert all(f["detail"] for f in findings.values())
    assert all(f["version"] for part, f in findings.items() if f["works"] and part != "local")
    assert main(["doctor"]) == 0
    docker = findings["docker"]
    assert not docker["works"] or "packages beside the standard library: " in docker["detail"]
    shown = "".join(capsys.readouterr().out.split())
    assert findings["vLLM"]["works"] or "pipinstall'vllm>=" in shown


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        ({**CODE, "tests": ["assert ("]}, "field 'tests' has 'assert (', which is not Python"),
        ({**MATH, "id": "\ud800"}, "field 'id' is not valid Unicode text"),
        ({**MATH, "prompt": "\ud800"}, "field 'prompt' is not valid Unicode text"),
    ],
)
def test_tasks_that_cannot_be_verified_are_refused_when_the_file_is_read(
    bad: object, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert says in refused(capsys, "run", lines(tmp_path / "tasks.jsonl", bad))


def test_the_verifiers_by_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = lines(tmp_path / "tasks.jsonl", CODE)
    for name in ("kindergarten", "math"):
        error = refused(capsys, "run", path, "--sandbox", name)
        assert f"--sandbox {name!r}: choose one of docker, local" in error
        assert "math" not in error.partition("choose")[2]
    assert "--seed '-1': give a whole number of at least 0" in refused(
        capsys, "run", path, "--sandbox", "local", "--seed", -1
    )


def test_a_closed_pipe_is_not_an_error(tmp_path: Path) -> None:
    """`gatekeeper run … --json | head -0` ends quietly."""
    path = lines(tmp_path / "tasks.jsonl", MATH)
    command = [sys.executable, "-m", "gatekeeper", "run", str(path), "--json"]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert child.stdout is not None
    child.stdout.close()
    _, err = child.communicate()
    assert (child.returncode, err.count(b"\n")) == (141, 1)  # what it will verify


def test_a_closed_pipe_is_not_an_error_for_a_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rich ends a program with 1, which would mean an output without a verdict."""
    path = lines(tmp_path / "tasks.jsonl", MATH)
    read, write = os.pipe()
    os.close(read)
    with open(write, "w", buffering=1) as out:
        monkeypatch.setattr(sys, "stdout", out)
        assert main(["run", str(path)]) == 141
    for source in Path(gatekeeper.__file__).parent.rglob("*.py"):
        for arguments in re.findall(r"\bConsole\((.*?)\)", source.read_text()):
            assert arguments == "stderr=True", source


def test_the_plan_is_what_is_done(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`--dry-run` writes nothing; the run spends what it said, on as many tasks as asked for."""
    tasks = lines(tmp_path / "tasks.jsonl", *({**MATH, "id": f"m{i}"} for i in range(30)))
    log = tmp_path / "run.db"
    how = ["run", str(tasks), "--limit", "20", "--warmup", "4", "--total", "9", "--log", str(log)]
    assert main([*how, "--dry-run", "--json"]) == 0
    plan = json.loads(capsys.readouterr().out)
    assert not log.exists()
    assert (plan["tasks"], plan["warmup"], plan["after_warmup_at_most"]) == (20, 4, 5)
    assert (plan["to_generate"], plan["to_verify_at_most"]) == (20, 9)
    assert main([*how, "--json"]) == 0
    out, err = capsys.readouterr()
    assert err == (
        "gatekeeper: 20 tasks: the first 4 are verified to warm up, then at most 5 of the other 16 "
        "(--total 9): 9 in all\n"
    )
    done = json.loads(out)
    assert (done["outputs"], done["warmup_verified"], done["cap"]) == (20, 4, 5)
    assert done["verified"] <= 5
    assert main([*how, "--dry-run"]) == 0
    assert "To generate: 0 answers" in capsys.readouterr().out


def test_the_plan_counts_the_answers_for_comparison(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tasks = lines(tmp_path / "tasks.jsonl", *({**MATH, "id": f"m{i}"} for i in range(3)))
    compared = ["--features", "agreement:4", "--second-model", "other"]
    for how, count in (([], 0), (compared[:2], 12), (compared, 15)):
        assert main(["run", str(tasks), *how, "--dry-run", "--json"]) == 0
        plan = json.loads(capsys.readouterr().out)
        assert (plan["to_generate"], plan["to_generate_for_comparison"]) == (3, count)
    assert main(["run", str(tasks), *compared, "--dry-run"]) == 0
    assert "3 answers, and 15 others to compare them with." in capsys.readouterr().out


def test_a_log_without_a_decision_takes_other_settings(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Such a log is left by a run that ended before its first output."""
    tasks, log = lines(tmp_path / "tasks.jsonl", MATH), tmp_path / "run.db"
    unreachable = ["--generator", "openai", "--model", "m", "--base-url", "http://127.0.0.1:9/v1"]
    assert main(["run", str(tasks), "--log", str(log), *unreachable]) == 2
    assert "stopped after 0 of 1 output; the same command continues" in capsys.readouterr().err
    how = ["--policy", "random", "--seed", "3", "--on-drift", "report"]
    assert main(["run", str(tasks), "--log", str(log), *how]) == 0
    assert main(["run", str(tasks), "--log", str(log), *how]) == 0


def test_a_run_that_is_all_warmup_has_no_other_outputs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", str(lines(tmp_path / "tasks.jsonl", MATH))]) == 0
    out = capsys.readouterr().out
    assert "warm-up: the first ones, all verified" in out
    assert "?" not in out
    assert "The others are unverified" not in out


def test_a_shared_run_is_not_told_to_check_all(capsys: pytest.CaptureFixture[str]) -> None:
    """It cannot: each process would verify what the others do."""
    with VerificationGate("cst", budget=Budget(fraction=0.1), verifier=ScriptedVerifier()) as gate:
        results = [gate.maybe_verify(make_generation(f"g{i}", seed=i)) for i in range(70)]
        status = gate.status()
    for shared in (False, True):
        options = RunOptions(shared=shared)
        RunReport(summarise(results), status, estimate(results), None, options, None).print()
        out = capsys.readouterr().out
        assert "The others are unverified" in out
        assert ("--check-all" in out) is not shared
