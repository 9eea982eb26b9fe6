"""Real solutions pass, and mutants get the verdict of a plain run.

The data lies beside the repository, not in it. `python examples/mbpp.py --check-references`
compares thousands.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mutants import Mutant, Trusted, agreed, mutants

from gatekeeper.errors import SandboxUnavailableError
from gatekeeper.io.datasets import mbpp_task
from gatekeeper.io.tasks import Task, as_tasks
from gatekeeper.sandbox import DockerSandbox, LocalSandbox
from gatekeeper.types import Generation, Outcome

MBPP = Path(__file__).resolve().parents[2] / "../shared/data/mbpp.jsonl"
HUMAN_EVAL = MBPP.with_name("HumanEval.jsonl.gz")
# A built-in name under test; objects made by setup; sys.getsizeof.
NOT_LITERAL = {"Mbpp/126", "Mbpp/367", "Mbpp/596", "Mbpp/927"}
SLOW = {"Mbpp/123", "Mbpp/765", "Mbpp/922"}  # their own solutions take a second and more
MUTANTS = 200


@pytest.fixture(scope="module", params=[DockerSandbox, LocalSandbox], ids=["docker", "local"])
def sandbox(request: pytest.FixtureRequest) -> Iterator[DockerSandbox | LocalSandbox]:
    try:
        # Three solutions take seconds, on a machine that others use as well half a minute.
        backend = request.param(timeout=300, workers=2)
    except SandboxUnavailableError as error:
        pytest.skip(str(error))
    with backend:
        yield backend


@pytest.fixture(scope="module")
def mbpp() -> list[Task]:
    return as_tasks(map(json.loads, lines_of(MBPP)), convert=mbpp_task)


def lines_of(path: Path) -> list[str]:
    if not path.exists():
        pytest.skip(f"not here: {path}")
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt") as lines:
        return list(lines)


def verify_all(
    sandbox: DockerSandbox | LocalSandbox, jobs: Sequence[tuple[Any, str, Mapping[str, Any]]]
) -> dict[Any, Outcome]:
    """Outcomes by identity, of (identity, code, task)."""
    pairs = [(Generation(str(i), code, *np.empty((3, 0))), task) for i, code, task in jobs]
    outcomes = sandbox.verify_many(pairs)
    return dict(zip([i for i, _, _ in jobs], outcomes, strict=True))


def not_passed(outcomes: Mapping[Any, Outcome]) -> dict[Any, Outcome]:
    return {i: outcome for i, outcome in outcomes.items() if outcome.verdict != "passed"}


def test_mbpp_solutions_pass(sandbox: DockerSandbox | LocalSandbox, mbpp: list[Task]) -> None:
    outcomes = verify_all(sandbox, [(t["id"], t["reference"], t) for t in mbpp])
    assert len(outcomes) == 974
    assert not_passed(outcomes) == {}
    other = {i for i, outcome in outcomes.items() if outcome.meta["evaluation"] != "literal"}
    assert other == NOT_LITERAL


def test_human_eval_solutions_pass(sandbox: DockerSandbox | LocalSandbox) -> None:
    tasks = [json.loads(line) for line in lines_of(HUMAN_EVAL)]
    jobs = [
        (
            t["task_id"],
            t["prompt"] + t["canonical_solution"],
            {"test": t["test"], "entry_point": t["entry_point"]},
        )
        for t in tasks
    ]
    outcomes = verify_all(sandbox, jobs)
    assert len(outcomes) == 164
    assert not_passed(outcomes) == {}
    assert {outcome.meta["evaluation"] for outcome in outcomes.values()} <= {"literal", "judge"}


def test_human_eval_completions_pass(sandbox: DockerSandbox | LocalSandbox) -> None:
    """A text that goes on where the prompt ends, as base models write."""
    tasks = [json.loads(line) for line in lines_of(HUMAN_EVAL)][:20]
    outcomes = verify_all(sandbox, [(t["task_id"], t["canonical_solution"], t) for t in tasks])
    assert not_passed(outcomes) == {}


@pytest.fixture(scope="module")
def ended(mbpp: list[Task]) -> dict[bool, list[tuple[Mutant, str]]]:
    """For both ways to judge, mutants that end in a plain run, and their verdicts there."""
    tasks = [task for task in mbpp if task["id"] not in SLOW]
    found = {}
    with Trusted() as trusted:
        for judge in (False, True):
            judged = [(m, trusted.verdict(m)) for m in islice(mutants(tasks, seed=judge), MUTANTS)]
            found[judge] = [(m, verdict) for m, verdict in judged if verdict != "timeout"]
            assert len(found[judge]) > 0.9 * MUTANTS
    return found


@pytest.mark.parametrize("judge", [False, True], ids=["literal", "judge"])
def test_mutants_are_judged_as_in_a_plain_run(
    sandbox: DockerSandbox | LocalSandbox,
    ended: dict[bool, list[tuple[Mutant, str]]],
    judge: bool,
) -> None:
    outcomes = verify_all(
        sandbox,
        [
            (number, mutant.code, mutant.task(judge=judge))
            for number, (mutant, _) in enumerate(ended[judge])
        ],
    )
    different = {
        mutant.code: (verdict, outcome)
        for (mutant, verdict), outcome in zip(ended[judge], outcomes.values(), strict=True)
        if outcome.error != (verdict != "passed") and agreed(mutant)
    }
    assert different == {}
