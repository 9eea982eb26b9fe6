"""mypy accepts tests/project/typed_api.py, a part of `make lint`, and rejects wrong uses."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import typed_api

ROOT = Path(__file__).resolve().parents[2]

WRONG = """\
from collections.abc import Callable

import openai

from gatekeeper import Budget, Generation, Outcome, Policy, Verifier, VerificationGate, signals_of
from gatekeeper.io.responses import as_generation


class NoOutcome:
    def verify(self, generation: Generation, task: object) -> bool:
        return True


verifier: Verifier = NoOutcome()  # error: assignment
policy: Policy = NoOutcome()  # error: assignment
Budget(0.2)  # error: call-arg
Budget(fraction="0.2")  # error: arg-type
gate = VerificationGate("cst")  # error: call-arg
gate.maybe_verify("a").outcome.error  # error: union-attr
gate.task(verify="sometimes")  # error: arg-type
client: openai.OpenAI = gate.wrap(openai.AsyncOpenAI())  # error: assignment
text: str = signals_of(as_generation({})).h1  # error: assignment
gate.statuss()  # error: attr-defined
as_generation({}, scope="all")  # error: call-arg
"""


def test_what_mypy_accepts_runs() -> None:
    typed_api.signals()
    typed_api.decide()
    typed_api.loop()


def test_mypy_rejects_wrong_uses(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.py"
    wrong.write_text(WRONG)
    command = [sys.executable, "-m", "mypy", "--no-error-summary", "--hide-error-context"]
    # The cache of `make lint`: without it mypy would read numpy and openai again.
    done = subprocess.run([*command, str(wrong)], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 1, done.stdout + done.stderr
    found = re.findall(r"wrong\.py:(\d+): error: .*\[([a-z-]+)\]", done.stdout)
    expected = [
        (str(number), line.partition("# error: ")[2])
        for number, line in enumerate(WRONG.splitlines(), 1)
        if "# error: " in line
    ]
    assert len(expected) > 8
    assert found == expected, done.stdout
