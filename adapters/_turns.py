"""Outputs that arrive all at once, in any order, and take turns at a gate in one order.

A harness that scores under asyncio has every sample ask at the same time. Here they are sorted,
decided on in blocks, and what is found out about a block is learned, sorted too, before the next
one: equal runs get equal decisions, at any concurrency, interrupted or not.
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

__all__ = ["Turn", "Turns"]

BLOCK = 32  # outputs decided on before their verdicts are learned; part of what makes runs equal
QUIET = 0.1  # seconds without another arrival after which those that wait are put in order
PATIENCE = 10  # times QUIET: then they are, whoever may still come
WAKE = 1.0  # seconds after which a waiting one looks for itself: others can be cancelled


@dataclass(slots=True, eq=False)
class Turn:
    """One output on its way. Whoever is selected sets `outcome`, if there is a new one."""

    order: Any
    generation: Generation
    result: GateResult | None = None
    error: GatekeeperError | None = None
    outcome: Outcome | None = None
    done: bool = False
    decided: anyio.Event = field(default_factory=anyio.Event)


class Turns:
    """Of a gate without a verifier: those who are selected verify, and say what they found.

    For one event loop at a time. What is in progress when the process dies is verified again by
    the next one that has the same outputs take turns with the same log.
    """

    def __init__(self, gate: VerificationGate) -> None:
        self.gate = gate
        self._waiting: list[Turn] = []
        self._selected: deque[Turn] = deque()
        self._left = 0  # of the block: still to be decided on
        self._arrived = 0

    @property
    def idle(self) -> bool:
        return not (self._waiting or self._selected)

    @asynccontextmanager
    async def turn(self, order: Any, generation: Generation) -> AsyncIterator[Turn]:
        """Wait for the decision, `turn.result`; what is done inside keeps its place in the order.

        Raises what the gate raises of this output.
        """
        turn = Turn(order, generation)
        self._waiting.append(turn)
        self._arrived += 1
        try:
            await self._quiet()
            while not turn.decided.is_set():
                self._advance()
                with anyio.move_on_after(WAKE):
                    await turn.decided.wait()
            if turn.error is not None:
                raise turn.error
            yield turn
        finally:
            turn.done = True
            if turn in self._waiting:
                self._waiting.remove(turn)
        self._advance()

    async def _quiet(self) -> None:
        for _ in range(PATIENCE):
            arrived = self._arrived
            await anyio.sleep(QUIET)
            if arrived == self._arrived:
                break

    def _advance(self) -> None:
        """Report what has been found out, in order; when that is all, decide on the next ones."""
        while True:
            while self._selected and self._selected[0].done:
                turn = self._selected.popleft()
                if turn.outcome is not None:
                    self.gate.report_outcome(turn.generation.id, turn.outcome)
            if self._selected or not self._waiting:
                return
            self._waiting.sort(key=lambda turn: turn.order)
            self._decide_on_some()

    def _decide_on_some(self) -> None:
        """Up to the end of the block, or of the policy's phase, which may need the verdicts."""
        phase = self.gate.status().phase
        self._left = self._left or BLOCK
        while self._waiting and self._left:
            if self._selected and phase != self.gate.status().phase:
                return
            turn = self._waiting.pop(0)
            self._left -= 1
            try:
                turn.result = self.gate.maybe_verify(turn.generation)
            except GatekeeperError as e:
                turn.error = e
            turn.decided.set()
            if turn.result is not None and turn.result.decision.verify:
                self._selected.append(turn)
                phase = self.gate.phase_of(turn.generation.id)
        if not self._waiting:
            self._left = 0
