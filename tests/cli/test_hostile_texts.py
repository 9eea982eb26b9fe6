"""Texts of models, servers, verifiers and files act on no terminal."""

from __future__ import annotations

import json
import logging
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from scripted_upstream import ScriptedUpstream, reply

from gatekeeper import Budget, Outcome, Verdict, VerificationGate
from gatekeeper.cli import main
from gatekeeper.testing import make_generation

HOSTILE = "\x1b]0;title\x07\x1b[31m\N{RIGHT-TO-LEFT OVERRIDE}\x9b31m"
SHOWN = "\ufffd]0;title\ufffd\ufffd[31m\ufffd\ufffd31m"


def could_not_tell(output: object, task: object) -> Outcome:
    return Outcome(Verdict.INFRA_ERROR, detail=f"it raised {HOSTILE}")


def written(log: Path | None) -> VerificationGate:
    with VerificationGate(
        "random", budget=Budget(fraction=1.0), verifier=could_not_tell, log=log, warmup=3,
        on_unavailable="pass",
    ) as gate:  # fmt: skip
        for i in range(6):
            gate.maybe_verify(make_generation(f"q{i}", seed=i), None)
    return gate


def test_the_detail_of_a_verifier(caplog: pytest.LogCaptureFixture) -> None:
    """Why it could not tell, in the warnings of a gate and in the notes of its status."""
    caplog.set_level(logging.WARNING, "gatekeeper")
    notes = " ".join(written(None).status().notes)
    warnings = [record.getMessage() for record in caplog.records]
    quoting = [text for text in (notes, *warnings) if "it raised" in text]
    assert len(quoting) >= 3
    for text in quoting:
        assert f"it raised {SHOWN}" in text


def test_an_error_about_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "run.db"
    written(log)
    with closing(sqlite3.connect(log)) as db, db:
        db.execute("INSERT INTO migrations VALUES (?, 0)", (HOSTILE,))
    capsys.readouterr()
    assert main(["show", str(log)]) == 2
    assert f"(it knows {SHOWN})" in capsys.readouterr().err


def test_an_error_of_a_server(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    body: dict[str, Any] = {"error": {"message": HOSTILE, "type": HOSTILE, "code": HOSTILE}}
    tasks = tmp_path / "tasks.jsonl"
    tasks.write_text(json.dumps({"id": "t", "prompt": "p", "kind": "math", "gold": "7"}))
    answer = reply(json.dumps(body).encode(), status="400 Bad Request")
    with ScriptedUpstream(lambda request: [answer]) as server:
        options = ("--generator", "openai", "--model", "m", "--base-url", server.url)
        assert main(["run", str(tasks), *options, "--log", str(tmp_path / "run.db")]) == 2
    assert f"with status 400: {SHOWN}" in capsys.readouterr().err
