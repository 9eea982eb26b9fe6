"""Decide on the outputs of an answer, and verify the selected ones in the background."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gatekeeper.adapters.openai.attachment import Result
from gatekeeper.adapters.openai.call_settings import CallSettings
from gatekeeper.adapters.openai.observer import ResponseObserver
from gatekeeper.adapters.openai.stream import StreamReader
from gatekeeper.errors import GatekeeperError
from gatekeeper.gate import VerificationGate
from gatekeeper.gateway.metrics import Metrics
from gatekeeper.gateway.tasks import Tasks
from gatekeeper.types import Generation, Undecided, UndecidedState

__all__ = ["Decided", "Decision", "Found", "Outputs", "ended"]

_LOG = logging.getLogger("gatekeeper")

LOOK = 1.0  # seconds between looks at which processes share the run
TRIED = 1 << 14  # ids of outputs that a process could not verify, which it remembers
Found = Sequence[Generation | Undecided]


@dataclass(slots=True)
class Decided:
    """An output on which the gate has decided, or why it did not."""

    result: Result
    verification: asyncio.Task[None] | None = None


Decision = asyncio.Task[list[Decided]]
"""The decision on the outputs of one answer, which goes on where the caller leaves meanwhile."""


async def ended(decision: Decision) -> list[Decided]:
    """What has been decided. If the caller leaves meanwhile, it ends all the same, before that."""
    try:
        return await asyncio.shield(decision)
    except asyncio.CancelledError:
        await asyncio.wait([decision])
        raise


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
        # Open outputs that this process could not verify; from longer ago they are tried again.
        self._tried: dict[str, None] = {}

    # -- reading ----------------------------------------------------------------------------------

    def of_answer(self, answer: Any, settings: CallSettings) -> Found:
        """The outputs of an answer, given as the value of its JSON; None where it has none."""
        return ResponseObserver(self.gate, settings).outputs_of(answer)

    def of_stream(self, reader: StreamReader, settings: CallSettings) -> Found:
        """The outputs of a stream that has ended."""
        observer = ResponseObserver(self.gate, settings)
        return observer.read(reader.generations, reader.id, must_end=True)

    # -- deciding ---------------------------------------------------------------------------------

    def decide(
        self,
        read: Callable[[], Found],
        settings: CallSettings,
        *,
        unreadable: Exception | None = None,
    ) -> Decision:
        """Decide on the outputs of one answer, in order, and begin to verify the selected ones.

        In a task of its own, as a caller may leave between two outputs: `ended` waits for it.

        Parameters
        ----------
        read
            Returns the outputs.
        settings
            Of the call.
        unreadable
            Why the answer cannot be read, if it cannot.
        """
        return asyncio.create_task(self._decide_all(read, settings, unreadable))

    async def _decide_all(
        self, read: Callable[[], Found], settings: CallSettings, unreadable: Exception | None
    ) -> list[Decided]:
        if settings.verify == "never":
            return [self._undecided(Undecided(str(settings.id), UndecidedState.SKIPPED))]
        if unreadable is not None:
            return [self._failed(settings, UndecidedState.UNREADABLE, str(settings.id), unreadable)]
        found, decided = read(), []
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
            return self._failed(settings, UndecidedState.GATE_ERROR, id_, error)
        self._metrics.decided(has_task=settings.task is not None)
        decided = Decided(result)
        if verification is not None:
            self._begin(decided, verification)
        return decided

    def _failed(
        self, settings: CallSettings, state: UndecidedState, id_: str, error: Exception
    ) -> Decided:
        return self._undecided(ResponseObserver(self.gate, settings).undecided(state, id_, error))

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
            decided.result = result = await verification
            if result.outcome is None or result.outcome.error is None:
                self._note_tried(result.id)
        except Exception as error:  # of the gate or its log; the output stays open
            self._note_tried(decided.result.id)
            _LOG.error("output %r: no verdict: %s", decided.result.id, error)

    def _note_tried(self, id_: str) -> None:
        self._tried[id_] = None
        if len(self._tried) > TRIED:
            del self._tried[next(iter(self._tried))]

    async def verdicts(self, decided: Sequence[Decided]) -> None:
        """Wait for the verdicts. Verification continues if the caller stops waiting."""
        waiting = [each.verification for each in decided if each.verification is not None]
        if waiting:
            await asyncio.wait(waiting)

    async def resume(self, tasks: Tasks) -> None:
        """Verify outputs that an ended process selected and did not verify.

        An output whose task is lost releases its reservation.
        """
        pending = {output.id: output for output in await asyncio.to_thread(self.gate.pending)}
        for id_ in [id_ for id_ in pending if id_ not in self._tried]:
            task = await tasks.of_output(id_)
            if task is None:
                self.gate.report_outcome(id_, "infra_error")
                self._note_tried(id_)
                continue
            result, verification = await self.gate.adecide(pending[id_], task)
            if verification is not None:
                self._begin(Decided(result), verification)

    async def succeed(self, tasks: Tasks) -> None:
        """Resume outputs of other processes, whenever a process on the run starts or ends."""
        known = self._processes()
        while True:
            await asyncio.sleep(LOOK)
            before, known = known, self._processes()
            if known != before:
                try:
                    await self.resume(tasks)
                except GatekeeperError as error:
                    known = before  # try again
                    _LOG.error("what another process has left cannot be verified now: %s", error)

    def _processes(self) -> set[int]:
        shared = self.gate.status().shared
        return set() if shared is None else {process.number for process in shared.processes}

    async def drain(self, seconds: float) -> None:
        """Wait for verifications; after so many seconds, those that have not begun are dropped."""
        await asyncio.sleep(0)  # for the tasks made in this turn to begin
        if self._running:
            await asyncio.wait(self._running, timeout=seconds)
        for task in self._running:
            task.cancel()
        if self._running:
            await asyncio.wait(self._running)
