"""The main loop in several processes that share a run: each block of tasks is done by one of them.

All processes have the same tasks. Each takes a free block, until none is left, so a fast process
does more of them than a slow one; the others take the blocks of a process that has ended.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from gatekeeper.budget.lease_store import UnavailableError
from gatekeeper.errors import LogError
from gatekeeper.gate import VerificationGate
from gatekeeper.gate.runner import BLOCK, Generate, answers_of, blocks_of
from gatekeeper.io.tasks import Task, check_asked
from gatekeeper.wording import counted

if TYPE_CHECKING:
    from gatekeeper.log.postgres_blocks import PostgresBlocks

__all__ = ["run_shared_tasks"]

PAUSE = 0.2  # seconds until the next query
PATIENCE = 60.0  # seconds in which this process must apply some events of the others
Found = TypeVar("Found")


def run_shared_tasks(
    gate: VerificationGate,
    blocks: PostgresBlocks,
    tasks: Sequence[Task],
    generate: Generate,
    *,
    on_progress: Callable[[int], None] = lambda done: None,
) -> None:
    """Pass tasks through the gate until all are done, by this process or by another one.

    Then outputs for which a verifier could not tell are tried again, if their process has ended.
    The gate has then applied all events of the others up to that moment.

    Parameters
    ----------
    gate
        This process's, with `shared=True`.
    blocks
        Blocks of the tasks, `BLOCK` in each.
    tasks
        The same in all processes.
    generate
        As for `run_tasks`.
    on_progress
        Called with the number of outputs that any process has decided on since the last call.

    Raises
    ------
    BadInputError
        As `run_tasks`.
    LogError
        If this process was taken for dead.
    """
    check_asked(tasks)
    parts = list(blocks_of(tasks, BLOCK))
    ended: dict[int, list[str]] = {}  # their last decisions may not be in the log yet
    seen = 0
    while _patiently(blocks.left):
        taken = _patiently(blocks.take)
        if taken is not None:
            ended[taken] = [task["id"] for task in parts[taken]]
            _do(gate, blocks, parts[taken], generate)
        for block, ids in list(ended.items()):
            if _patiently(partial(blocks.finish, block, ids)):
                del ended[block]
        if taken is None:
            time.sleep(PAUSE)
        before, seen = seen, gate.status().seen
        on_progress(seen - before)
    _catch_up(gate, blocks)
    on_progress(gate.status().seen - seen)
    by_id = {task["id"]: task for task in tasks}
    gate.verify_batch([(g, by_id[g.id]) for g in gate.pending() if g.id in by_id])


def _do(
    gate: VerificationGate, blocks: PostgresBlocks, block: Sequence[Task], generate: Generate
) -> None:
    """Decide on the outputs of a block, and verify those that are selected.

    If another process ended in the middle of the block, its decisions are kept, and its selected
    outputs without a verdict are verified.
    """
    ids = [task["id"] for task in block]
    known = _patiently(partial(blocks.decided, ids))
    answers = answers_of(block, set(ids) - known, generate)
    if known:
        _catch_up(gate, blocks)
        answers |= {answer.id: answer for answer in gate.pending() if answer.id in known}
    gate.verify_batch([(answers[task["id"]], task) for task in block if task["id"] in answers])


def _catch_up(gate: VerificationGate, blocks: PostgresBlocks) -> None:
    """Wait until the gate has applied what the log has now."""
    logged = _patiently(blocks.logged)
    applied, since = (-1, -1), time.monotonic()
    while True:
        status = gate.status()
        before, applied = applied, (status.seen, status.verified + status.warmup_verified)
        if applied[0] >= logged[0] and applied[1] >= logged[1]:
            return
        if applied != before:
            since = time.monotonic()
        if time.monotonic() > since + PATIENCE:
            raise LogError(
                f"this process has read {applied[0]} of {counted(logged[0], 'output')} of the run, "
                "and could not read the others: the same command continues"
            )
        _patiently(blocks.left)  # raises if this process was taken for dead
        time.sleep(PAUSE)


def _patiently(call: Callable[[], Found]) -> Found:
    """The result of a call, repeated until the database can be reached."""
    while True:
        try:
            return call()
        except UnavailableError:
            time.sleep(PAUSE)
