"""MBPP's own solutions pass; spoilt ones do not. The data lies beside the repository, not in it."""

from __future__ import annotations

import ast
import json
import random
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from gatekeeper.sandbox import LocalSandbox
from gatekeeper.types import Generation, Outcome

MBPP = Path(__file__).parents[2] / "../shared/data/mbpp.jsonl"
NOT_LITERAL = {596}  # compares with sys.getsizeof(...)
SLOW = {123, 765, 922}


class Spoiler(ast.NodeTransformer):
    """Wraps what each function returns, so that no value is right."""

    def visit_Return(self, node: ast.Return) -> ast.Return:
        spoilt = ast.parse(f"('spoilt', {ast.unparse(node.value or ast.Constant(None))})")
        return ast.Return(spoilt.body[0].value)  # type: ignore[attr-defined]


@pytest.fixture(scope="module")
def tasks() -> list[dict[str, Any]]:
    if not MBPP.exists():
        pytest.skip(f"MBPP is not here: {MBPP}")
    with MBPP.open() as lines:
        found = [json.loads(line) for line in lines]
    usable = [task for task in found if task["task_id"] not in NOT_LITERAL | SLOW]
    return random.Random(0).sample(usable, 100)


@pytest.fixture(scope="module")
def verify_all(generation: Callable[..., Generation]) -> Callable[..., list[Outcome]]:
    sandbox = LocalSandbox(timeout=10, workers=2)

    def verify(task: dict[str, Any], code: str) -> Outcome:
        tests = {"tests": task["test_list"], "test_setup_code": task["test_setup_code"]}
        return sandbox.verify(generation(code, str(task["task_id"])), tests)

    def run(tasks: list[dict[str, Any]], codes: list[str]) -> list[Outcome]:
        with ThreadPoolExecutor(2) as pool:
            return list(pool.map(verify, tasks, codes))

    return run


def test_reference_solutions_pass(
    tasks: list[dict[str, Any]], verify_all: Callable[..., list[Outcome]]
) -> None:
    outcomes = verify_all(tasks, [task["code"] for task in tasks])
    assert {o.verdict for o in outcomes} == {"passed"}, [o for o in outcomes if o.error != 0]
    assert {o.meta["evaluation"] for o in outcomes} == {"literal"}


def test_spoilt_solutions_fail(
    tasks: list[dict[str, Any]], verify_all: Callable[..., list[Outcome]]
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # invalid escapes in MBPP's own code
        spoilt = [ast.unparse(Spoiler().visit(ast.parse(task["code"]))) for task in tasks]
    outcomes = verify_all(tasks, spoilt)
    assert all(o.error == 1 for o in outcomes), [o for o in outcomes if o.error != 1]
