"""A queue that passes outputs to a gate in one order, whatever the order of their arrival.

A harness that scores under asyncio submits all samples at the same time. The queue sorts them and
has the gate decide on them in blocks; the verdicts of a block are reported, sorted too, before the
next block. So equal runs get equal decisions, at any concurrency, interrupted or not.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio

from gatekeeper.errors import GatekeeperError
from gatekeeper.gate import VerificationGate
from gatekeeper.types import GateResult, Generation, Outcome

__all__ = ["OrderedQueue", "QueuedOutput"]

BLOCK = 32  # decisions before their verdicts are reported; runs are equal only with an equal block
QUIET = 0.1  # seconds without an arrival after which the waiting outputs are sorted
PATIENCE = 10  # times QUIET: the longest wait for further arrivals
WAKE = 1.0  # seconds after which a waiting output checks the queue: other tasks can be cancelled


@dataclass(slots=True, eq=False)
class QueuedOutput:
    """One output in the queue. If it is selected, its owner sets `outcome`."""

    order: Any
    generation: Generation
    result: GateResult | None = None
    error: GatekeeperError | None = None
    outcome: Outcome | None = None
    done: bool = False
    decided: anyio.Event = field(default_factory=anyio.Event)


class OrderedQueue:
    """The queue in front of a gate without a verifier: the owner of a selected output verifies it.

    For one event loop at a time. A verification that a crash interrupts is repeated by the next
    process that queues the same outputs with the same log.

    Parameters
    ----------
    gate : VerificationGate
        Without a verifier.
    """

    def __init__(self, gate: VerificationGate) -> None:
        self.gate = gate
        self._waiting: list[QueuedOutput] = []
        self._selected: deque[QueuedOutput] = deque()
        self._left = 0  # decisions left in the block
        self._arrived = 0

    @property
    def idle(self) -> bool:
        """Whether no output waits for a decision or a verdict."""
        return not (self._waiting or self._selected)

    @asynccontextmanager
    async def decided(self, order: Any, generation: Generation) -> AsyncIterator[QueuedOutput]:
        """Wait for the decision on an output; a verdict set inside is reported in order.

        Parameters
        ----------
        order : comparable
            The place of the output in the order.
        generation : Generation

        Yields
        ------
        QueuedOutput
            With `result`.

        Raises
        ------
        GatekeeperError
            What the gate raises for this output.
        """
        output = QueuedOutput(order, generation)
        self._waiting.append(output)
        self._arrived += 1
        try:
            await self._quiet()
            while not output.decided.is_set():
                self._advance()
                with anyio.move_on_after(WAKE):
                    await output.decided.wait()
            if output.error is not None:
                raise output.error
            yield output
        finally:
            output.done = True
            if output in self._waiting:
                self._waiting.remove(output)
        self._advance()

    async def _quiet(self) -> None:
        for _ in range(PATIENCE):
            arrived = self._arrived
            await anyio.sleep(QUIET)
            if arrived == self._arrived:
                break

    def _advance(self) -> None:
        """Report the verdicts in order; after the last one, decide on the next block."""
        while True:
            while self._selected and self._selected[0].done:
                output = self._selected.popleft()
                if output.outcome is not None:
                    self.gate.report_outcome(output.generation.id, output.outcome)
            if self._selected or not self._waiting:
                return
            self._waiting.sort(key=lambda output: output.order)
            self._decide_on_some()

    def _decide_on_some(self) -> None:
        """Decide to the end of the block, or of the policy's phase, which may need the verdicts."""
        phase = self.gate.status().phase
        self._left = self._left or BLOCK
        while self._waiting and self._left:
            if self._selected and phase != self.gate.status().phase:
                return
            output = self._waiting.pop(0)
            self._left -= 1
            try:
                output.result = self.gate.maybe_verify(output.generation)
            except GatekeeperError as e:
                output.error = e
            output.decided.set()
            if output.result is not None and output.result.decision.verify:
                self._selected.append(output)
                phase = self.gate.phase_of(output.generation.id)
        if not self._waiting:
            self._left = 0
