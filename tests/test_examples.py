"""The examples run and print what their readers expect."""

import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"


def test_own_policy_and_verifier(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(EXAMPLES / "own_parts.py"), run_name="__main__")
    assert capsys.readouterr().out.splitlines() == [
        "short: unchecked (policy)",
        "long: failed (policy)",
        "longer: passed (policy)",
        "longest: unchecked (budget_exhausted)",
    ]
