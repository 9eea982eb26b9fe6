"""The main loop: generate, decide, verify, learn, over a list of tasks, resumable at any point."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Protocol

from gatekeeper.errors import BadInputError
from gatekeeper.gate import VerificationGate
from gatekeeper.io.tasks import Task, check_asked
from gatekeeper.protocols import Verifier
from gatekeeper.types import GateResult, Generation, Outcome, Verdict
from gatekeeper.wording import described

__all__ = [
    "BLOCK",
    "Generate",
    "Sampler",
    "answers_of",
    "blocks_of",
    "check_the_rest",
    "run_tasks",
]

BLOCK = 32  # outputs decided on before their verdicts are learned; equal runs need equal blocks


Generate = Callable[[Sequence[str], Sequence[str]], Sequence[Generation]]
"""(prompts, ids) -> one output each. For equal runs it must answer equal blocks equally."""


class Sampler(Protocol):
    """A `Generate` whose temperature and seed may be set for one call."""

    def __call__(
        self,
        prompts: Sequence[str],
        ids: Sequence[str],
        *,
        temperature: float = ...,
        seed: int = ...,
    ) -> Sequence[Generation]:
        """One output for each prompt, in order. Other seeds give other samples."""
        ...


def run_tasks(
    gate: VerificationGate,
    tasks: Sequence[Task],
    generate: Generate,
    *,
    ahead: int = 0,
    on_progress: Callable[[int], None] = lambda done: None,
) -> None:
    """Pass every task through the gate, in order, in blocks of `BLOCK`.

    Outputs in the gate's log are not decided on again; selected ones without a verdict are
    verified. After an interruption, a second call ends in the same state as one uninterrupted call.

    Parameters
    ----------
    gate
        Its log decides what is left to do.
    tasks
        With unique ids, and with prompts; the same tasks in the same order after an interruption.
    generate
        Called with the prompts and ids of a block; returns one Generation for each.
    ahead
        How many further blocks are generated while one is verified, each in a thread of its own;
        0: none. Answers do not depend on decisions, so the run is the same.
    on_progress
        Called with the number of tasks just done.

    Raises
    ------
    BadInputError
        For a task without an id or a prompt, and an id that occurs twice; before any is generated.
    Exception
        What `generate` and `VerificationGate.verify_batch` raise.
    """
    check_asked(tasks)
    pending = {generation.id: generation for generation in gate.pending()}
    parts = ((block, _new(gate, block)) for block in blocks_of(tasks, BLOCK))
    for block, answered in _in_order(parts, generate, ahead):
        pending |= answered
        gate.verify_batch([(pending[task["id"]], task) for task in block if task["id"] in pending])
        for task in block:  # an output may be large
            pending.pop(task["id"], None)
        on_progress(len(block))


def _new(gate: VerificationGate, block: Sequence[Task]) -> set[str]:
    """Ids of the tasks without an output."""
    return {task["id"] for task in block if gate.find(task["id"]) is None}


def _in_order(
    parts: Iterator[tuple[Sequence[Task], set[str]]], generate: Generate, ahead: int
) -> Iterator[tuple[Sequence[Task], dict[str, Generation]]]:
    """Each block with its answers; those of the next `ahead` blocks are being generated then."""
    if not ahead:
        yield from ((block, answers_of(block, new, generate)) for block, new in parts)
        return
    pool = ThreadPoolExecutor(ahead)
    begun = deque[tuple[Sequence[Task], Future[dict[str, Generation]]]]()
    try:
        for block, new in parts:
            begun.append((block, pool.submit(answers_of, block, new, generate)))
            if len(begun) > ahead:
                first, answers = begun.popleft()
                yield first, answers.result()
        for block, answers in begun:
            yield block, answers.result()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def answers_of(block: Sequence[Task], new: set[str], generate: Generate) -> dict[str, Generation]:
    """The outputs for those tasks of a block that are new, by id.

    Parameters
    ----------
    block
        All tasks of the block.
    new
        Ids of the tasks without an output.
    generate
        As for `run_tasks`.

    Raises
    ------
    BadInputError
        If `generate` leaves one out.
    """
    if not new:
        return {}
    # The whole block, even if a part of it is known: a model's answer depends on the rest of its
    # batch in the last bits, and a resumed run must equal an uninterrupted one.
    answers = generate([task["prompt"] for task in block], [task["id"] for task in block])
    found = {answer.id: answer for answer in answers if answer.id in new}
    if new - found.keys():
        raise BadInputError(f"generate gave no output for {sorted(new - found.keys())}")
    return found


def check_the_rest(
    gate: VerificationGate,
    tasks: Sequence[Task],
    verifier: Verifier,
    *,
    workers: int,
    on_progress: Callable[[int], None] = lambda done: None,
) -> None:
    """Verify the outputs that the gate did not select, outside the budget, as external verdicts.

    Shows what another choice would have found; the policy does not learn from it.

    Parameters
    ----------
    gate
        After `run_tasks` with these tasks.
    tasks
        The same as for `run_tasks`.
    verifier
        Verifies the outputs, in threads.
    workers
        Verifications at the same time, at least 1.
    on_progress
        Called with 1 after each verification.
    """

    def check(task: Task) -> None:
        try:
            outcome = verifier.verify(gate.output(task["id"]), task)
        except Exception as e:
            outcome = Outcome(Verdict.INFRA_ERROR, detail=described(e))
        gate.report_outcome(task["id"], outcome)
        on_progress(1)

    rest = [task for task in tasks if _unselected(gate.find(task["id"]))]
    with ThreadPoolExecutor(workers) as pool:
        for _ in pool.map(check, rest):
            pass


def _unselected(result: GateResult | None) -> bool:
    return result is not None and not result.decision.verify and result.outcome is None


def blocks_of(tasks: Sequence[Task], size: int) -> Iterator[Sequence[Task]]:
    """The tasks in order, that many in each block but the last."""
    for start in range(0, len(tasks), size):
        yield tasks[start : start + size]
