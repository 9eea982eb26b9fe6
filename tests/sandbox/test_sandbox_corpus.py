"""The corpus itself: honest programs are right without a sandbox, and every forgery has a twin."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from attacks import PROGRAMS
from attacks.plain import PLUGIN, render
from attacks.program import NOT_OFFERED, NOT_RUN, UNJUDGED

from gatekeeper.sandbox.suite import read_suite

ROOT = Path(__file__).parents[2]
FORGED = [program for program in PROGRAMS if program.twin and not program.honest]


@pytest.fixture(scope="module")
def wrong(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """Names of the honest programs of the corpus whose tests do not hold in a plain run."""
    top = tmp_path_factory.mktemp("plain")
    (top / "corpus_plugin.py").write_text(PLUGIN)
    chosen, runs = {}, set()
    # These leave processes, close descriptors or stand in prose, and are else the same square.
    disturbing = {program.twin for program in PROGRAMS if program.family in ("hosts", "work")}
    disturbing.add("asserted: a generator test (twin)")  # pytest refuses it, the judge does not
    # It takes functions with parameters for tests with fixtures.
    disturbing |= {program.name for program in PROGRAMS if "(not pytest's)" in program.name}
    disturbing |= {program.name for program in PROGRAMS if "not imported" in program.name}
    for number, program in enumerate(PROGRAMS):
        missing = [name for name in program.needs if importlib.util.find_spec(name) is None]
        right = program.honest and "passed" in program.verdicts
        asked = right and not missing and program.name not in disturbing
        if asked and program.run not in runs:
            runs.add(program.run)
            chosen[f"p{number}"] = program.name
            render(program, top / f"p{number}")
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "--tb=short",
        "--assert=plain",
        "-p",
        "no:cacheprovider",
    ]
    command += ["--continue-on-collection-errors", "-W", "ignore"]
    command += ["-p", "corpus_plugin", "-c", "/dev/null", "--rootdir", str(top), str(top)]
    environment = {"PYTHONPATH": str(top), "PYTHONDONTWRITEBYTECODE": "1", "PATH": "/usr/bin:/bin"}
    done = subprocess.run(
        command,
        cwd=top,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    print(done.stdout[-20_000:])  # shown where the test fails
    assert " passed" in done.stdout.splitlines()[-1], done.stderr
    lines = [
        line
        for line in done.stdout.splitlines()
        if line.startswith(("FAILED", "ERROR", "SUBFAILED"))
    ]
    failed = {re.findall(r"\b(p\d+)\b", line)[0] for line in lines}
    return {chosen[folder] for folder in failed}


def test_honest_programs_are_right_in_a_plain_run(wrong: set[str]) -> None:
    assert wrong == set()


def test_every_forgery_has_an_honest_twin_for_the_same_task() -> None:
    by_name = {program.name: program for program in PROGRAMS}
    for program in FORGED:
        twin = by_name[program.twin]
        assert twin.honest
        assert (twin.twin, twin.task) == (program.name, program.task)
        assert program.code != twin.code


def test_names_are_unique() -> None:
    counts = Counter(program.name for program in PROGRAMS)
    assert [name for name, count in counts.items() if count > 1] == []


def test_few_tasks_cannot_be_judged() -> None:
    undecided = [program for program in FORGED if "infra_error" in program.verdicts]
    assert len(undecided) < len(FORGED) / 10


def test_few_honest_shapes_cannot_be_judged() -> None:
    """At most one in twenty; but for two, each by a rule that reads the tests alone."""
    shapes = [program for program in PROGRAMS if program.honest and not program.twin]
    assert len(UNJUDGED) <= len(shapes) / 20
    by_name = {program.name: program for program in shapes}
    for name, why in UNJUDGED.items():
        assert (
            why in (NOT_OFFERED, NOT_RUN)
            or why in read_suite(name, by_name[name].task).reading.problem
        )
