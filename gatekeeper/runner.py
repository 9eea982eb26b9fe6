"""The main loop: generate, decide, verify, learn, over a list of tasks, resumable at any point."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

from gatekeeper.gate import VerificationGate
from gatekeeper.protocols import Verifier
from gatekeeper.tasks import Task
from gatekeeper.types import GateResult, Generation

__all__ = ["Generate", "check_the_rest", "run_tasks"]

BLOCK = 32  # outputs decided on before their verdicts are learned; part of what makes runs equal


Generate = Callable[[Sequence[str], Sequence[str]], Sequence[Generation]]
"""(prompts, ids) -> one output each. For equal runs it must answer equal blocks equally."""


def run_tasks(
    gate: VerificationGate,
    tasks: Sequence[Task],
    generate: Generate,
    *,
    on_progress: Callable[[int], None] = lambda done: None,
) -> None:
    """Take every task through the gate, in order, in blocks of `BLOCK`.

    Outputs that the gate's log knows are not decided on again; those that were selected and have
    no verdict are verified. Interrupted anywhere and called again, it ends in the state that one
    uninterrupted call leaves. `on_progress` is told how many more tasks are done.
    """
    pending = {generation.id: generation for generation in gate.pending()}
    for block in _blocks(tasks, BLOCK):
        new = {task["id"] for task in block if gate.find(task["id"]) is None}
        if new:
            # The whole block, even where a part of it is known: what a model answers depends on
            # its neighbours in the last bits, and a resumed run must equal an uninterrupted one.
            answers = generate([task["prompt"] for task in block], [task["id"] for task in block])
            pending |= {answer.id: answer for answer in answers if answer.id in new}
        gate.verify_batch([(pending[task["id"]], task) for task in block if task["id"] in pending])
        on_progress(len(block))


def check_the_rest(
    gate: VerificationGate,
    tasks: Sequence[Task],
    verifier: Verifier,
    *,
    workers: int,
    on_progress: Callable[[int], None] = lambda done: None,
) -> None:
    """Verify what the gate did not, outside the budget, and log it as audits.

    For those who want to know what another choice would have found; the policy never learns it.
    """

    def check(task: Task) -> None:
        generation = gate.output(task["id"])
        gate.report_outcome(task["id"], verifier.verify(generation, task))
        on_progress(1)

    rest = [task for task in tasks if _unselected(gate.find(task["id"]))]
    with ThreadPoolExecutor(workers) as pool:
        for _ in pool.map(check, rest):
            pass


def _unselected(result: GateResult | None) -> bool:
    return result is not None and not result.decision.verify and result.outcome is None


def _blocks(tasks: Sequence[Task], size: int) -> Iterator[Sequence[Task]]:
    for start in range(0, len(tasks), size):
        yield tasks[start : start + size]
