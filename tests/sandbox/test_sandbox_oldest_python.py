"""An image may have an older Python than gatekeeper needs: honest programs are right there, too."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from attacks import PROGRAMS

from gatekeeper.errors import SandboxUnavailableError
from gatekeeper.sandbox import LocalSandbox
from gatekeeper.sandbox.interpreter import OLDEST
from gatekeeper.types import Generation

VERSION = ".".join(map(str, OLDEST))
FIND = Path(__file__).parents[2] / ".ci" / "interpreter"
# What Python 3.10 does not have, or does otherwise: a task that is cancelled keeps no error there.
NEWER = re.compile(
    r"TaskGroup|ExceptionGroup|except\*|add_note|enterContext|asyncio\.(timeout|wait)\b|"
    r"CancelledError|int \| str"
)


def test_honest_programs_pass(
    monkeypatch: pytest.MonkeyPatch, generation: Callable[[str], Generation]
) -> None:
    found = subprocess.run([FIND, VERSION], capture_output=True, text=True).stdout.strip()
    if not found:
        pytest.skip(f"no Python {VERSION} on this machine")
    python = Path(found).resolve()
    monkeypatch.setattr(sys, "executable", str(python))
    for prefix in ("base_prefix", "base_exec_prefix"):
        monkeypatch.setattr(sys, prefix, str(python.parents[1]))
    honest = [program for program in PROGRAMS if program.honest and not program.needs]
    chosen = [p for p in honest if not NEWER.search(f"{p.code} {p.task}")][::4]
    assert len(chosen) > 400
    try:
        sandbox = LocalSandbox(isolation="namespaces", timeout=5, workers=1)
    except SandboxUnavailableError as error:
        pytest.skip(f"namespaces: {error}")
    with sandbox:
        version = "import sys\ndef f():\n    return list(sys.version_info[:2])"
        task = {"tests": [f"assert f() == {list(OLDEST)}"]}
        assert sandbox.verify(generation(version), task).verdict == "passed"
        pairs = ((generation(p.code), p.task) for p in chosen)
        outcomes = zip(chosen, sandbox.verify_many(pairs), strict=True)
        wrong = {p.name: o for p, o in outcomes if str(o.verdict) not in p.verdicts}
    assert wrong == {}
