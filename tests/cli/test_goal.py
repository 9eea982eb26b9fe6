"""`gatekeeper run --goal score`: the draws, the estimate with bounds, and the log of a run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gatekeeper.cli import main

TASKS = Path(__file__).parents[2] / "gatekeeper" / "bundled" / "tasks.jsonl"


@pytest.fixture
def command(tmp_path: Path) -> list[str]:
    """A run over maths tasks, which need no sandbox."""
    lines = [
        s for s in TASKS.read_text().splitlines(keepends=True) if json.loads(s)["kind"] == "math"
    ]
    tasks = tmp_path / "tasks.jsonl"
    tasks.write_text("".join(lines[:30]))
    return ["run", str(tasks), "--budget", "0.3"]


def test_a_run_for_the_score(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = ["--log", str(tmp_path / "run.db")]
    assert main([*command, "--goal", "score", *log, "--json"]) == 0
    shown = capsys.readouterr()
    assert "30 tasks: 9 of them are drawn at random" in shown.err
    found = json.loads(shown.out)
    score = found["score"]
    assert (found["goal"], found["policy"], found["verified"]) == ("score", "survey", 9)
    assert (found["warmup_verified"], score["checks"], score["outputs"]) == (0, 9, 30)
    assert score["bounds"]["low"] <= score["low"] < score["point"] < score["high"]
    assert score["both"]["low"] < score["low"]
    # The same command shows the same; with another goal the log is of another run.
    assert main([*command, "--goal", "score", *log]) == 0
    assert f"{score['low']:.4f} – {score['high']:.4f}" in capsys.readouterr().out
    assert main([*command, *log]) == 2
    assert "--goal score (now errors): give the same" in capsys.readouterr().err
    assert main(["report", log[1], "-o", str(tmp_path / "report.html")]) == 0
    assert f"{score['point']:.4f}" in (tmp_path / "report.html").read_text()


def test_a_run_without_an_estimate_prints_bounds(
    command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*command, "--warmup", "10", "--explore", "0"]) == 0
    shown = capsys.readouterr().out
    assert "what is possible" in shown
    for option in (["--warmup", "3"], ["--explore", "0.2"], ["--policy", "cst"]):
        assert main([*command, "--goal", "score", *option]) == 2
        assert f"{option[0]} {option[1]} with --goal score" in capsys.readouterr().err


def test_every_command_reads_the_log_of_a_run_for_the_score(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With tasks enough for a warm-up of another run: figures, or one line that says why not."""
    tasks, log = Path(command[1]), str(tmp_path / "run.db")
    maths = (line for line in TASKS.read_text().splitlines(keepends=True) if '"math"' in line)
    tasks.write_text("".join(maths))
    run = ["--goal", "score", "--limit", "110", "--max-tokens", "8", "--log", log]
    assert main([*command, *run]) == 0
    capsys.readouterr()
    for arguments, codes, shows in (
        (["plan", log], {0}, "Recall of 90% with calibrated"),
        (["compare", log], {0}, "more than"),
        (["diagnose", log, "--seeds", "2"], {0, 3, 4}, "No policy is replayed"),
        (["replay", log], {2}, "a replay needs all of them"),
        (["show", log], {0}, "77 without a verdict"),
    ):
        assert main(arguments) in codes
        shown = capsys.readouterr()
        assert shows in " ".join((shown.out + shown.err).split())
        assert len(shown.err.splitlines()) == (2 in codes)
