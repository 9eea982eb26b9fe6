"""Decide on the outputs of an answer, and verify the selected ones in the background."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from gatekeeper.adapters.openai.attachment import Result
from gatekeeper.adapters.openai.call_settings import CallSettings
from gatekeeper.adapters.openai.observer import ResponseObserver
from gatekeeper.adapters.openai.stream import StreamReader
from gatekeeper.gate import VerificationGate
from gatekeeper.gateway.metrics import Metrics
from gatekeeper.gateway.tasks import Tasks
from gatekeeper.types import Generation, Undecided, UndecidedState

__all__ = ["Decided", "Outputs"]

_LOG = logging.getLogger("gatekeeper")

Found = Sequence[Generation | Undecided]


@dataclass(slots=True)
class Decided:
    """An output on which the gate has decided, or why it did not."""

    result: Result
    verification: asyncio.Task[None] | None = None


class Outputs:
    """Decides on outputs and verifies them. All calls come from one event loop.

    Parameters
    ----------
    gate
        With `on_unavailable="pass"`.
    metrics
        Where outputs without a task or a decision are counted.
    """

    def __init__(self, gate: VerificationGate, metrics: Metrics) -> None:
        self.gate = gate
        self._metrics = metrics
        self._running: set[asyncio.Task[None]] = set()

    # -- reading ----------------------------------------------------------------------------------

    def of_answer(self, answer: Any, settings: CallSettings) -> Found:
        """The outputs of a JSON answer; None for an answer that is not JSON."""
        return ResponseObserver(self.gate, settings).outputs_of(answer)

    def of_stream(self, reader: StreamReader, settings: CallSettings) -> Found:
        """The outputs of a stream that has ended."""
        observer = ResponseObserver(self.gate, settings)
        return observer.read(reader.generations, reader.id, must_end=True)

    # -- deciding ---------------------------------------------------------------------------------

    async def decide(self, found: Found, settings: CallSettings) -> list[Decided]:
        """Decide on the outputs of one answer, in order, and begin to verify the selected ones."""
        decided = []
        for i, output in enumerate(found):
            id_ = f"{settings.id}/{i}" if len(found) > 1 else str(settings.id)
            decided.append(await self._decide(output, settings, id_))
        return decided

    async def _decide(
        self, output: Generation | Undecided, settings: CallSettings, id_: str
    ) -> Decided:
        if isinstance(output, Undecided):
            return self._undecided(replace(output, id=id_))
        try:
            result, verification = await self.gate.adecide(
                output, settings.task, id=id_, force=settings.verify == "always"
            )
        except Exception as error:
            observer = ResponseObserver(self.gate, settings)
            return self._undecided(observer.undecided(UndecidedState.GATE_ERROR, id_, error))
        self._metrics.decided(has_task=settings.task is not None)
        decided = Decided(result)
        if verification is not None:
            self._begin(decided, verification)
        return decided

    def skipped(self, settings: CallSettings) -> list[Decided]:
        """Of a call with `verify="never"`."""
        return [self._undecided(Undecided(str(settings.id), UndecidedState.SKIPPED))]

    def _undecided(self, result: Undecided) -> Decided:
        self._metrics.undecided(result)
        return Decided(result)

    # -- verification -----------------------------------------------------------------------------

    def _begin(self, decided: Decided, verification: Any) -> None:
        task = asyncio.create_task(self._verify(decided, verification))
        decided.verification = task
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def _verify(self, decided: Decided, verification: Any) -> None:
        try:
            decided.result = await verification
        except Exception as error:  # of the gate or its log; the output stays open
            _LOG.error("output %r: no verdict: %s", decided.result.id, error)

    async def verdicts(self, decided: Sequence[Decided]) -> None:
        """Wait for the verdicts. Verification goes on where the caller does not wait any more."""
        waiting = [each.verification for each in decided if each.verification is not None]
        if waiting:
            await asyncio.wait(waiting)

    async def resume(self, tasks: Tasks) -> int:
        """Verify what an earlier process selected and did not verify; how many outputs.

        An output whose task is not known any more returns its reservation.
        """
        resumed = 0
        for output in self.gate.pending():
            task = tasks.of_output(output.id)
            if task is None:
                self.gate.report_outcome(output.id, "infra_error")
                continue
            result, verification = await self.gate.adecide(output, task)
            if verification is not None:
                self._begin(Decided(result), verification)
                resumed += 1
        return resumed

    async def drain(self, seconds: float) -> None:
        """Let verifications end; after so many seconds, those that have not begun give up."""
        await asyncio.sleep(0)  # for the tasks made in this turn to begin
        if self._running:
            await asyncio.wait(self._running, timeout=seconds)
        for task in self._running:
            task.cancel()
        if self._running:
            await asyncio.wait(self._running)
