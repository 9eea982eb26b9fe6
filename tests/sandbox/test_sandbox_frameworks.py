"""Tests that pytest runs: without a sandbox, and in an image that has it, unlike the default."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from attacks import PROGRAMS, Program
from busy_machine import settled

from gatekeeper.sandbox import DockerSandbox, image
from gatekeeper.sandbox.engine import connect
from gatekeeper.types import Generation, Outcome

_RUN = """
import ast, sys
from gatekeeper.sandbox.inside import collect
from gatekeeper.sandbox.inside.nodes import walk

asked = []
names = {"__name__": "tests", "f": lambda x: asked.append(x) or (x * x if x else None)}
program = ast.parse(sys.stdin.read())
exec(compile(program, "test.py", "exec"), names)
for name, run in collect.items(program, walk(program), names, {}, None, lambda: len(asked)):
    print(name)
    run()
"""
_HEAD = "import pytest\n\ndef test_f():\n    assert f(3) == 9\n\n"
_FIXTURE = """
@pytest.fixture
def got():
    made = f({})
    if made is None:
        pytest.skip("not there")
    return made

"""


@pytest.mark.parametrize(
    ("test", "error"),
    [
        (_FIXTURE.format(2) + "def test_got(got):\n    assert got == 4\n", ""),
        (_FIXTURE.format(2) + "def test_got(got):\n    assert got == 5\n", "AssertionError"),
        (_FIXTURE.format(0) + "def test_got(got):\n    assert got == 5\n", "skipped itself"),
        ("def test_g():\n    if f(0) is None:\n        pytest.xfail('x')\n", "skipped itself"),
        ("def test_g():\n    pytest.importorskip('no_such_module')\n    f(0)\n", ""),
        ("f(1)\ndef test_g():\n    pytest.skip('x')\n", "skipped itself"),
        ("f(1)\n@pytest.mark.skip\ndef test_g():\n    pass\n", ""),
    ],
)
def test_pytest_runs_the_tests(test: str, error: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _RUN], input=_HEAD + test, text=True, capture_output=True
    )
    assert done.stdout == "pytest\n"
    assert (done.returncode == 0) == (not error), done.stderr
    assert error in done.stderr


@pytest.fixture
def with_pytest(engine: None) -> Iterator[str]:
    """The name of an image that has pytest."""
    name = f"gatekeeper-test-{os.getpid()}:pytest"
    client = connect()
    try:
        yield image.build(client, requirements=["pytest"], tag=name).name
        client.images.remove(name, force=True)
    finally:
        client.close()


def test_programs_where_pytest_is(
    with_pytest: str, generation: Callable[[str], Generation]
) -> None:
    chosen = [program for program in PROGRAMS if program.needs == ("pytest",)]
    assert len(chosen) > 100
    with DockerSandbox(image=with_pytest, workers=2) as sandbox, ThreadPoolExecutor(2) as threads:

        def run(program: Program) -> Outcome:
            return settled(lambda: sandbox.verify(generation(program.code), program.task))

        found = list(zip(chosen, threads.map(run, chosen), strict=True))
    wrong = {p.name: outcome for p, outcome in found if str(outcome.verdict) not in p.verdicts}
    assert wrong == {}
