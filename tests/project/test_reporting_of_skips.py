"""The summary of a test run: why tests were skipped, without hiding failures."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
TESTS = """
import pytest

@pytest.mark.parametrize("number", range(30))
def test_many(number):
    pytest.skip("no engine")

@pytest.mark.skip(reason="no model")
def test_one():
    pass

def test_wrong():
    assert False
"""


def test_a_reason_to_skip_is_printed_once(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(TESTS)
    (tmp_path / "conftest.py").write_bytes((ROOT / "tests" / "conftest.py").read_bytes())
    (tmp_path / "pyproject.toml").write_bytes((ROOT / "pyproject.toml").read_bytes())
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-n", "1", "-p", "no:cacheprovider", "."],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT / "tests" / "support")},
        capture_output=True,
        text=True,
    )
    assert "    30  no engine\n     1  no model\n" in done.stdout
    assert done.stdout.count("no engine") == 1
    assert "FAILED test_it.py::test_wrong" in done.stdout
