"""The loop over tasks: blocks that are generated ahead."""

from __future__ import annotations

import gc
import threading
import time
import weakref
from collections.abc import Sequence
from typing import Any

import pytest

from gatekeeper import Budget, VerificationGate
from gatekeeper.errors import BadInputError, GeneratorUnavailableError
from gatekeeper.gate.runner import BLOCK, run_tasks
from gatekeeper.io.tasks import Task
from gatekeeper.log import MemoryLog
from gatekeeper.testing import ScriptedVerifier, make_generation
from gatekeeper.types import Generation

N = 10 * BLOCK + 5
TASKS: list[Task] = [
    {"id": f"{n}", "prompt": f"{n}", "kind": "math", "gold": "1"} for n in range(N)
]


class Model:
    """Answers a block after a while that differs between blocks; counts the blocks at work.

    The first `together` blocks are not answered before all of them have been asked for.
    """

    def __init__(self, *, together: int = 1, fails_at: int | None = None) -> None:
        self._begun, self._together = threading.Barrier(together), together
        self.asked: list[int] = []
        self.at_work = self.most = 0
        self._lock = threading.Lock()
        self._fails_at = fails_at

    def __call__(self, prompts: Sequence[str], ids: Sequence[str]) -> list[Generation]:
        block = int(ids[0]) // BLOCK
        with self._lock:
            self.asked.append(block)
            self.at_work += 1
            self.most = max(self.most, self.at_work)
        if block < self._together:
            self._begun.wait(timeout=60)
        time.sleep(0.01 * (1 + block % 3))
        with self._lock:
            self.at_work -= 1
        if block == self._fails_at:
            raise GeneratorUnavailableError("no connection")
        return [make_generation(id_, seed=int(id_)) for id_ in ids]


def run(model: Model, ahead: int) -> MemoryLog:
    log = MemoryLog()
    verifier = ScriptedVerifier({task["id"]: int(task["id"]) % 3 == 0 for task in TASKS})
    with VerificationGate("cst", budget=Budget(fraction=0.2), verifier=verifier, log=log) as gate:
        run_tasks(gate, TASKS, model, ahead=ahead)
    return log


def decisions(log: MemoryLog) -> list[object]:
    return [event for event in log.rows() if event.kind == "decided"]


@pytest.mark.parametrize("ahead", [1, 3])
def test_the_run_is_the_same_and_several_blocks_are_generated_at_once(ahead: int) -> None:
    plain, model = Model(), Model(together=ahead)
    assert decisions(run(model, ahead)) == decisions(run(plain, 0))
    assert plain.most == 1
    assert model.most == ahead
    assert sorted(model.asked) == list(range(11))


def test_what_a_generator_raises_comes_in_its_turn() -> None:
    log, model = MemoryLog(), Model(fails_at=5)
    gate = VerificationGate("random", budget=Budget(fraction=0.2), log=log)
    with gate, pytest.raises(GeneratorUnavailableError, match="no connection"):
        run_tasks(gate, TASKS, model, ahead=3)
    assert len(decisions(log)) == 5 * BLOCK  # of the blocks before it
    assert max(model.asked) <= 5 + 3


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"id": "b"}, "task 2: field 'prompt' is missing"),
        ({"prompt": "b"}, "task 2: field 'id' is missing"),
        ({"id": 2, "prompt": "b"}, "task 2: field 'id' is 2, not of type str"),
        ({"id": "b", "prompt": ["b"]}, r"task 2: field 'prompt' is \['b'\], not of type str"),
        ({"id": "a", "prompt": "b"}, "task 2: id 'a' occurs twice"),
        ("b", "task 2: 'b': give a mapping with 'id' and 'prompt'"),
    ],
)
def test_a_task_that_cannot_be_asked(wrong: Any, message: str) -> None:
    """It is found before anything is generated; other fields are the verifier's."""
    model = Model()
    with (
        VerificationGate("random", budget=Budget(fraction=0.2)) as gate,
        pytest.raises(BadInputError, match=f"^{message}"),
    ):
        run_tasks(gate, [{"id": "a", "prompt": "a"}, wrong], model)
    assert not model.asked


def test_outputs_are_not_kept_after_their_block() -> None:
    kept: list[weakref.ref[Any]] = []  # of their arrays
    most = 0

    def generate(prompts: Sequence[str], ids: Sequence[str]) -> list[Generation]:
        answers = [make_generation(id_) for id_ in ids]
        kept.extend(weakref.ref(answer.top1) for answer in answers)
        return answers

    def count(done: int) -> None:
        nonlocal most
        gc.collect()
        most = max(most, sum(array() is not None for array in kept))

    with VerificationGate("random", budget=Budget(fraction=0.2), warmup=1, explore=0.0) as gate:
        run_tasks(gate, TASKS, generate, on_progress=count)
    assert len(kept) == N
    assert most <= 4 * BLOCK
