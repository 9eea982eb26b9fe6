"""`gatekeeper run`: the real command, the bundled model, real verdicts."""

import json
import random
import signal
import subprocess
import sys
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from logged_runs import events, final_state

from gatekeeper.adapters.bundled import BundledModel
from gatekeeper.io.tasks import read_tasks
from gatekeeper.maths import MathChecker
from gatekeeper.sandbox import LocalSandbox
from gatekeeper.verifiers import ByKind

ROOT = Path(__file__).parents[2]
TASKS = ROOT / "gatekeeper" / "bundled" / "tasks.jsonl"
N = 72
KILLS = 4


@pytest.fixture(scope="module")
def tasks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tasks") / "tasks.jsonl"
    path.write_text("".join(TASKS.read_text().splitlines(keepends=True)[:N]))
    return path


def command(tasks: Path, log: Path, policy: str) -> list[str]:
    options = ["--policy", policy, "--budget", "0.3", "--sandbox", "local", "--seed", "3"]
    return [sys.executable, "-m", "gatekeeper", "run", str(tasks), *options, "--log", str(log)]


@pytest.fixture(scope="module")
def plain(tasks: Path) -> Path:
    """The log of an uninterrupted run of cst."""
    log = tasks.with_name("plain.db")
    subprocess.run(command(tasks, log, "cst"), check=True, capture_output=True)
    return log


def test_a_run_that_is_killed_often_ends_as_an_uninterrupted_one(
    tasks: Path, plain: Path, tmp_path: Path
) -> None:
    """kill -9 at random moments loses nothing, charges nothing twice and changes no decision.

    tests/log/test_log.py kills gates of other policies.
    """
    rng = random.Random(7)
    broken, total = tmp_path / "broken.db", events(plain)
    for kill in range(KILLS):
        target = (kill + rng.random()) * total / KILLS  # somewhere in each part of the run
        child = subprocess.Popen(
            command(tasks, broken, "cst"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        while events(broken) < target and child.poll() is None:
            time.sleep(0.02)
        time.sleep(rng.random() * 0.02)
        child.send_signal(signal.SIGKILL)
        child.wait()
    subprocess.run(command(tasks, broken, "cst"), check=True, capture_output=True)
    assert final_state(broken, "cst", N) == final_state(plain, "cst", N)


def test_ctrl_c_stops_with_one_line_and_the_same_command_goes_on(
    tasks: Path, tmp_path: Path
) -> None:
    log = tmp_path / "run.db"
    child = subprocess.Popen(
        command(tasks, log, "threshold"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    while events(log) < 60 and child.poll() is None:
        time.sleep(0.02)
    child.send_signal(signal.SIGINT)
    out, err = child.communicate()
    assert (child.returncode, out) == (130, "")
    plan, last = err.splitlines()
    assert plan.endswith(f"the other {N - 50} (--budget 0.3): {50 + 3 * (N - 50) // 10} in all")
    assert last.startswith("gatekeeper: interrupted after ")
    assert last.endswith(f" of {N} outputs; the same command continues")
    again = subprocess.run([*command(tasks, log, "threshold"), "--json"], capture_output=True)
    assert json.loads(again.stdout)["outputs"] == N


def test_a_budget_of_one_verifies_everything(tasks: Path, tmp_path: Path) -> None:
    log = tmp_path / "run.db"
    ran = subprocess.run(
        [*command(tasks, log, "cst"), "--budget", "1", "--json"], check=True, capture_output=True
    )
    summary = json.loads(ran.stdout)
    assert (summary["warmup_verified"], summary["verified"]) == (50, N - 50)
    assert (summary["spent"], summary["cap"]) == (N - 50, N - 50)
    assert summary["errors_found"] == summary["errors"] == summary["best_found"]


def test_checking_the_rest_finds_the_truth_and_changes_no_decision(
    tasks: Path, plain: Path, tmp_path: Path
) -> None:
    """`--check-all` finds what verifying everything plainly finds, outside budget and policy."""
    checked = tmp_path / "checked.db"
    ran = subprocess.run(
        [*command(tasks, checked, "cst"), "--check-all", "--json"], check=True, capture_output=True
    )
    summary = json.loads(ran.stdout)

    listed = read_tasks(tasks)
    answers = BundledModel().generate(
        [task["prompt"] for task in listed], ids=[task["id"] for task in listed]
    )
    with closing(ByKind({"code": LocalSandbox(), "math": MathChecker()})) as verifier:
        wrong = [verifier.verify(a, t).error for a, t in zip(answers, listed, strict=True)]
    assert summary["warmup_errors"] == sum(wrong[:50])
    assert summary["errors"] == sum(wrong[50:])
    assert summary["verified"] == summary["spent"] <= summary["cap"] == round(0.3 * (N - 50), 9)
    assert summary["errors_found"] <= summary["best_found"]
    assert summary["random_found"] == summary["verified"] * sum(wrong[50:]) / (N - 50)

    (state, status, decisions, verdicts), with_audits = (
        final_state(log, "cst", N) for log in (plain, checked)
    )
    assert with_audits == (
        state,
        replace(status, external_verdicts=N - len(verdicts)),
        decisions,
        verdicts,
    )


NOISY = """
import os, subprocess, sys
from gatekeeper.adapters import bundled
from gatekeeper.cli import main

class Noisy(bundled.BundledModel):
    def generate(self, *given, **options):
        print("a library reports")
        os.write(1, b"its own C code\\n")
        subprocess.run(["echo", "a process that it started"])
        return super().generate(*given, **options)

bundled.BundledModel = Noisy
sys.exit(main(sys.argv[1:]))
"""


def test_standard_output_has_the_result_alone_whatever_a_library_prints(
    tasks: Path, tmp_path: Path
) -> None:
    options = command(tasks, tmp_path / "a.db", "threshold")[3:]
    done = subprocess.run(
        [sys.executable, "-c", NOISY, *options, "--json"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout)["outputs"] == N
    for line in ("a library reports", "its own C code", "a process that it started"):
        assert line in done.stderr
