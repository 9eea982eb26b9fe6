"""The figures on a terminal."""

from __future__ import annotations

import io
import os
import pty
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from partly_verified import run_gate

from gatekeeper import Budget, Generation, VerificationGate
from gatekeeper.analysis.estimates import estimate, interval
from gatekeeper.analysis.summary import summarise
from gatekeeper.cli import main
from gatekeeper.io.records import records_of_log
from gatekeeper.log.run import read_run
from gatekeeper.testing import ScriptedVerifier, make_generation


def test_the_same_figures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Printed once where there is no terminal."""
    log = tmp_path / "run.db"
    run_gate(log, explore=0.1, n=300)
    assert main(["watch", "--terminal", str(log)]) == 0
    shown = re.sub(r"\s+", " ", capsys.readouterr().out)
    run = read_run(log)
    summary, ledger = summarise(run.results.values()), run.ledger
    rate = estimate(records_of_log(log)).weighted
    for text in (
        "run.db: 300 outputs",
        f"{ledger.spent:g} spent and {ledger.held:g} reserved of {ledger.cap:g} verifications",
        f"{summary.errors_found} in {summary.verified} checks; the same number at random: "
        f"{summary.random_found:.1f}",
        f"{rate.value:.1%}, 95 % interval: {interval(rate)}",
        f"warm-up {summary.warmup_verified} {summary.warmup_verified}",
        "g299",
    ):
        assert text in shown, text


def test_a_known_rate_has_no_interval(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "run.db"
    with VerificationGate(
        budget=Budget(fraction=1), verifier=ScriptedVerifier({"g0": 1}), log=log
    ) as gate:
        for i in range(4):
            gate.maybe_verify(make_generation(f"g{i}"))
    assert main(["watch", "--terminal", str(log)]) == 0
    assert "25.0%, known" in capsys.readouterr().out


def test_an_external_verdict_is_shown_as_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of wrong outputs too, whose words also have the kind of failure."""
    log, budget = tmp_path / "run.db", Budget(fraction=0.2, total=4)
    with VerificationGate("cst", budget=budget, verifier=ScriptedVerifier(), log=log) as gate:
        for i in range(6):
            gate.maybe_verify(make_generation(f"g{i}"))
        gate.report_outcome("g4", "failed")
        gate.report_outcome("g5", "passed")
    assert main(["watch", "--terminal", str(log)]) == 0
    shown = re.sub(r" +", " ", capsys.readouterr().out)
    assert " wrong, external " in shown
    assert " correct, external " in shown


def test_a_running_gate_on_a_terminal(tmp_path: Path) -> None:
    """It follows, executes nothing that an output says, and ends with Ctrl-C."""
    log, (ours, theirs) = tmp_path / "run.db", pty.openpty()
    with VerificationGate("random", budget=Budget(fraction=0.5), log=log) as gate:
        gate.maybe_verify(Generation("[bold]a", "\x1b]0;owned\x07\x9b31m[red]text"))
        process = subprocess.Popen(
            [sys.executable, "-m", "gatekeeper", "watch", "--terminal", str(log)],
            stdout=theirs,
            stderr=subprocess.DEVNULL,
            env=os.environ | {"TERM": "xterm", "COLUMNS": "120", "LINES": "40"},
        )
        os.close(theirs)
        seen = read_until(ours, "1 output")
        gate.maybe_verify(Generation("second", "more"))
        seen += read_until(ours, "2 outputs")
        process.send_signal(signal.SIGINT)
        seen += read_until(ours, None)
        assert process.wait(60) == 130
    assert "[bold]a" in seen
    assert "[red]text" in seen
    assert "\x1b]0;owned" not in seen
    assert "\x9b" not in seen


def read_until(terminal: int, text: str | None) -> str:
    """The text that the terminal received; None: all until its end."""
    seen, deadline = io.BytesIO(), time.monotonic() + 120
    while text is None or text not in seen.getvalue().decode(errors="replace"):
        assert time.monotonic() < deadline
        try:
            part = os.read(terminal, 65536)
        except OSError:  # its other end is closed
            break
        if not part:
            break
        seen.write(part)
    return seen.getvalue().decode(errors="replace")
