"""Running the verifier: in this thread, in a pool of threads, or on an event loop.

The only place that calls a verifier.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import replace
from functools import partial
from typing import Literal, TypeVar, get_args

from gatekeeper.errors import BadInputError, GatekeeperError, VerifierUnavailableError
from gatekeeper.gate.calls import Calls
from gatekeeper.gate.lifecycle import Lifecycle
from gatekeeper.gate.lock import Inside
from gatekeeper.gate.new_output import NewOutput
from gatekeeper.gate.own_loop import OwnLoop
from gatekeeper.io.responses import as_generation
from gatekeeper.log.fold import Output
from gatekeeper.protocols import AsyncVerifier, Verifier
from gatekeeper.types import GateResult, Generation, Outcome, Verdict
from gatekeeper.wording import described

__all__ = ["ON_UNAVAILABLE", "OnUnavailable", "Verification"]

Found = TypeVar("Found")
_Waiting = deque[tuple[Output, Future[Outcome] | None]]
# The pool in whose thread a verification runs; an event loop's tasks and threads inherit it.
_POOL: ContextVar[object] = ContextVar("_POOL", default=None)

OnUnavailable = Literal["raise", "pass"]
ON_UNAVAILABLE: tuple[OnUnavailable, ...] = get_args(OnUnavailable)


class Verification:
    """Verifies admitted outputs and concludes them.

    Parameters
    ----------
    verifier
        None: nothing is ever verified here.
    life
        Where outputs are admitted and concluded.
    workers
        Threads for `batch`, and for a synchronous verifier on an event loop.
    on_unavailable
        What happens if the verifier could not tell; see `VerificationGate`.
    """

    def __init__(
        self,
        verifier: Verifier | AsyncVerifier | None,
        life: Lifecycle,
        *,
        workers: int,
        on_unavailable: OnUnavailable,
    ) -> None:
        self._verifier, self._life = verifier, life
        self._raises = on_unavailable == "raise"
        self._own = object()  # not `self`, which the threads would keep alive
        self._pool = ThreadPoolExecutor(
            workers, "gatekeeper", initializer=_POOL.set, initargs=(self._own,)
        )
        self._loop = OwnLoop()
        self._calls = Calls()
        self._inside = Inside()  # a batch, or the start of a thread

    def run(self, output: Output, task: object) -> None:
        """Verify in this thread; on the gate's own loop, where the verifier has only `averify`."""
        with self._calls:
            self._verify(output, task)

    def _verify(self, output: Output, task: object) -> None:
        self._life.conclude(output, self._judge(output, task), learn=True)

    def _judge(self, output: Output, task: object) -> Outcome:
        generation, start = self._life.generation_of(output), time.perf_counter()
        try:
            if isinstance(self._verifier, Verifier):
                return _checked(self._verifier.verify(generation, task), start)
            assert isinstance(self._verifier, AsyncVerifier)
            return self._loop.run(_awaited(self._verifier, generation, task, start))
        except Exception as e:
            return _unavailable(e, task, start)
        except BaseException:
            self._life.release(output, "interrupted")
            raise

    async def arun(self, output: Output, task: object) -> None:
        """Verify on this event loop; in a thread, where the verifier has no `averify`.

        Cancelling releases the reservation, unless a thread has begun: that one finishes.
        """
        if isinstance(self._verifier, AsyncVerifier):
            await self._await(self._verifier, output, task)
            return
        import asyncio  # here: a gate without it need not load it

        future = Future[None]()
        try:
            self._begin(future, self._verify, output, task)
            await asyncio.wrap_future(future)
        except BaseException:  # also where the coroutine is closed
            if future.cancel():  # no thread had begun with it
                self._life.release(output, "cancelled")
            raise

    def _begin(
        self,
        future: Future[Found],
        verify: Callable[[Output, object], Found],
        output: Output,
        task: object,
    ) -> None:
        """Verify in a thread of the pool.

        A verification that runs in one of them, and will wait for this one, does it itself: so none
        waits for a thread that is never free.
        """
        if _POOL.get() is self._own:
            _perform(future, verify, output, task)
            return
        with self._calls.lock:
            self._calls.check()
            self._inside.call(self._pool.submit, _perform, future, verify, output, task)

    async def _await(self, verifier: AsyncVerifier, output: Output, task: object) -> None:
        self._calls.check()
        generation, start = self._life.generation_of(output), time.perf_counter()
        try:
            outcome = await _awaited(verifier, generation, task, start)
        except BaseException:
            self._life.release(output, "cancelled")
            raise
        self._life.conclude(output, outcome, learn=True)

    def batch(self, pairs: Iterable[tuple[object, object]]) -> list[GateResult]:
        """See `VerificationGate.verify_batch`."""
        if self._loop.runs_here():
            raise BadInputError(
                f"verifier={self._verifier!r:.80} calls verify_batch on the event loop that runs "
                "it, and would wait for itself: await gate.amaybe_verify(...) there"
            )
        with self._calls:
            return self._inside.call(self._batch, pairs)

    def _batch(self, pairs: Iterable[tuple[object, object]]) -> list[GateResult]:
        life = self._life
        answers: list[GateResult | Output] = []
        waiting = _Waiting()
        news = self._read(pairs)  # all of them, before the first one can be charged
        try:
            for new, task in news:
                if waiting and waiting[-1][0].phase != life.phase:
                    self._collect(waiting)
                output = life.admitted(new, life.decide(new), learn=False)
                answers.append(output)
                if isinstance(output, Output):
                    future = Future[Outcome]() if output.outcome is None else None
                    waiting.append((output, future))
                    if future is not None:
                        self._begin(future, self._settle, output, task)
            self._collect(waiting)
        except BaseException:
            for output, future in waiting:
                if future is None:
                    continue
                if future.cancel():
                    life.suspend(output)
                else:
                    future.add_done_callback(partial(self._conclude_late, output))
            for new, _ in news[len(answers) :]:
                life.abandon(new)
            raise
        return [a if isinstance(a, GateResult) else self.result(a) for a in answers]

    def _read(self, pairs: Iterable[tuple[object, object]]) -> list[tuple[NewOutput, object]]:
        news: list[tuple[NewOutput, object]] = []
        ids: set[str] = set()
        if not isinstance(pairs, Iterable):
            raise BadInputError(f"pairs={pairs!r:.80}: give (response, task) pairs")
        for pair in pairs:
            if not (isinstance(pair, tuple | list) and len(pair) == 2):
                raise BadInputError(f"pair={pair!r:.80}: give (response, task) pairs")
            response, task = pair
            generation = as_generation(response)
            if generation.id in ids:
                raise BadInputError(f"id={generation.id!r} is twice in the batch")
            ids.add(generation.id)
            news.append((self._life.read(generation, task, id=None, force=False), task))
        return news

    def _settle(self, output: Output, task: object) -> Outcome:
        """Verify an output of a batch, and log a verdict, so that none is lost.

        Where there is none, the reservation is kept: to release it before the batch ends would give
        decisions that depend on which verification ends first.
        """
        outcome = self._judge(output, task)
        if outcome.error is not None:
            self._life.conclude(output, outcome, learn=False)
        return outcome

    def _release(self, output: Output, done: Future[Outcome]) -> None:
        outcome = done.result()
        if outcome.error is None:
            self._life.conclude(output, outcome, learn=False)

    def _conclude_late(self, output: Output, done: Future[Outcome]) -> None:
        """After the batch has broken off. What the verifier raised has given the budget back."""
        if done.exception() is None:
            with suppress(GatekeeperError):  # the batch has raised why
                self._release(output, done)

    def _collect(self, waiting: _Waiting) -> None:
        """Wait for a batch's verifications, then update the policy in stream order."""
        outputs = [output for output, _ in waiting]
        for _, future in waiting:
            if future is not None:
                future.result()
        while waiting:
            output, future = waiting.popleft()
            if future is not None:
                self._release(output, future)
        self._life.learn([output for output in outputs if output.outcome is not None])

    def result(self, output: Output) -> GateResult:
        """The result of an output whose verification has ended.

        Raises
        ------
        VerifierUnavailableError
            Where there is no verdict, with `on_unavailable="raise"`.
        """
        result = output.result()
        if output.outcome is None and self._raises:
            detail = output.unavailable.detail if output.unavailable else "no verdict"
            raise VerifierUnavailableError(
                f"id={output.candidate.id!r}: the verifier could not tell ({detail}); nothing was "
                "charged. on_unavailable='pass' returns such results instead",
                result,
            )
        return result

    def close(self) -> None:
        """Wait for verifications under way, but for those that close the gate themselves.

        Raises
        ------
        BadInputError
            In a verification on the gate's own loop or one of its threads, which would wait for
            itself; and in what interrupts a batch or a step of the gate, such as a signal handler.
        """
        if self._loop.runs_here() or _POOL.get() is self._own:
            raise BadInputError(
                f"verifier={self._verifier!r:.80} closes its gate while it verifies: close the "
                "gate where it was made"
            )
        if self._life.is_held_here() or self._inside.is_here() or self._life.syncing.is_here():
            raise BadInputError(  # other threads may wait for what this one holds
                "a signal handler closes this gate in the middle of one of its calls, or a policy "
                "does, and would wait for that call: raise SystemExit there, and close the gate "
                "where it was made"
            )
        self._calls.end()
        self._pool.shutdown()
        self._loop.close()


def _perform(
    future: Future[Found], verify: Callable[[Output, object], Found], output: Output, task: object
) -> None:
    """Verify, unless that was cancelled; the future was there before a thread could begin."""
    if not future.set_running_or_notify_cancel():
        return
    try:
        future.set_result(verify(output, task))
    except BaseException as error:
        future.set_exception(error)


async def _awaited(
    verifier: AsyncVerifier, generation: Generation, task: object, start: float
) -> Outcome:
    try:
        return _checked(await verifier.averify(generation, task), start)
    except Exception as e:
        return _unavailable(e, task, start)


def _checked(outcome: object, start: float) -> Outcome:
    """What the verifier returned, with its time since `start` where it has none."""
    if not isinstance(outcome, Outcome):
        raise TypeError(f"verifier returned {outcome!r}, not an Outcome")
    return outcome if outcome.seconds else replace(outcome, seconds=time.perf_counter() - start)


def _unavailable(error: Exception, task: object, start: float) -> Outcome:
    detail = described(error)
    if task is None and isinstance(error, TypeError | AttributeError):
        detail += "; no task was given"
    return Outcome(Verdict.INFRA_ERROR, seconds=time.perf_counter() - start, detail=detail)
