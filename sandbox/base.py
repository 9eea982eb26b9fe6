"""What all sandboxes share: the verifier's methods, retries, and the wording of outcomes."""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Self

from gatekeeper.arguments import check_count, check_flag, check_positive
from gatekeeper.sandbox.control import DISTURBED, undisturbed
from gatekeeper.sandbox.evaluate import Judged, evaluate, unjudgeable
from gatekeeper.sandbox.pool import Pool
from gatekeeper.sandbox.run_loop import FORGIVEN_SECONDS, TAIL_BYTES, Terms
from gatekeeper.sandbox.suite import Suite, read_suite
from gatekeeper.sandbox.turns import TURNS
from gatekeeper.sandbox.worker import ANSWER_SECONDS, LostError, OverloadedError, Worker
from gatekeeper.types import Generation, Outcome, Verdict
from gatekeeper.types.checks import check_generation

__all__ = ["Sandbox"]

MOST_SECONDS = 1e6  # of a time limit; the clocks of processes end later
MOST = 1 << 30  # of every other limit, so that its bytes are a 64-bit number
RETRIES = 2  # on a fresh worker, after one was lost
WAITING_FACTOR = 4  # a candidate may wait for a processor for this many times its limit
# To read the processor time used, to clean up, and for gaps in which this process could not check.
GRACE_SECONDS = 2 * ANSWER_SECONDS + FORGIVEN_SECONDS
_UNTRIED = {"evaluation": None, "isolation": None}  # `meta` of a candidate that did not run
LOOK_AHEAD = 4  # candidates per worker that a batch reads in advance


class Sandbox:
    """A verifier of Python programs; the base of `DockerSandbox` and `LocalSandbox`.

    Safe to use from any number of threads and from asyncio. At most `workers` candidates run at
    once; the others wait, and that time does not count. Close it, or use it as a context manager.
    """

    def __init__(
        self,
        *,
        timeout: float,
        cpu_seconds: int | None,
        memory_mb: int,
        processes: int,
        output_kb: int,
        disk_mb: int,
        workers: int | None,
        in_process: bool,
    ) -> None:
        workers = os.cpu_count() or 1 if workers is None else workers
        self._timeout = check_positive("timeout", timeout, most=MOST_SECONDS)
        cpu = math.ceil(timeout) if cpu_seconds is None else cpu_seconds
        for name, value in {
            "cpu_seconds": cpu,
            "memory_mb": memory_mb,
            "processes": processes,
            "output_kb": output_kb,
            "disk_mb": disk_mb,
            "workers": workers,
        }.items():
            check_count(name, value, most=MOST)
        self._cpu_seconds = cpu
        self._output_bytes = output_kb << 10
        self._in_process = check_flag("in_process", in_process)
        self._workers = workers
        self._threads = ThreadPoolExecutor(workers, thread_name_prefix="gatekeeper-sandbox")

    def _open(self, start: Callable[[], Worker], *, spare: bool) -> None:
        """Make the pool of workers.

        `start` makes a worker. It raises LostError if a retry may help, and another error if not.
        """
        self._pool = Pool(start, self._workers, spare=spare)
        # For callers that do not close the sandbox; needs a `start` that does not refer to self.
        self._finalizer = weakref.finalize(self, self._pool.close)

    def _tainted(self, judged: Judged) -> bool:
        """Whether a worker must not be used again after this run."""
        raise NotImplementedError

    @property
    def max_seconds(self) -> float:
        """Most seconds that one attempt takes, without waiting for a worker or a processor."""
        return self._timeout + GRACE_SECONDS

    def verify(self, generation: Generation, task: Mapping[str, Any]) -> Outcome:
        """The verdict on one candidate.

        Parameters
        ----------
        generation
            Its `text` holds the candidate: the last fenced block of Python code, or all of it.
        task
            The tests, in one of the shapes of docs/sandbox.md.

        Returns
        -------
        Outcome
            `infra_error`, not an exception, if there is no verdict. `meta` has "evaluation",
            "isolation" and the last 2 KiB of "stdout" and "stderr".

        Raises
        ------
        BadInputError
            The task has no usable tests, or `generation` is no Generation.
        GatekeeperError
            The sandbox is closed, or belongs to the parent of this process.
        """
        return self._read_and_verify(generation, task, threading.Event())

    async def averify(self, generation: Generation, task: Mapping[str, Any]) -> Outcome:
        """`verify` for asyncio. If it is cancelled, the candidate has ended when it returns."""
        cancelled = threading.Event()
        # Long tests are read in that thread, too: no event loop waits for them.
        work = self._submit(self._read_and_verify, generation, task, cancelled)
        waiting = asyncio.wrap_future(work)
        try:
            return await asyncio.shield(waiting)
        except asyncio.CancelledError:
            cancelled.set()
            if not work.cancel():
                await asyncio.wait([waiting])
            raise

    def verify_many(
        self, pairs: Iterable[tuple[Generation, Mapping[str, Any]]]
    ) -> Iterator[Outcome]:
        """The verdicts on many candidates, `workers` at a time.

        Parameters
        ----------
        pairs
            Generations with their tasks; read a little ahead.

        Yields
        ------
        Outcome
            In the order of `pairs`.

        Raises
        ------
        BadInputError
            At a task without usable tests, and at what is no Generation.
        GatekeeperError
            As `verify`.
        """
        cancelled = threading.Event()
        pending: deque[Future[Outcome]] = deque()
        try:
            for generation, task in pairs:
                suite = _suite(generation, task)
                pending.append(self._submit(self._verify, generation, suite, cancelled))
                if len(pending) >= LOOK_AHEAD * self._workers:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        finally:
            cancelled.set()  # the caller has stopped reading, so the rest is cancelled
            for work in pending:
                work.cancel()

    def close(self) -> None:
        """End all workers and their processes. The sandbox accepts no candidate after that."""
        self._finalizer()
        self._threads.shutdown(cancel_futures=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _submit(self, verify: Callable[..., Outcome], *given: Any) -> Future[Outcome]:
        self._pool.check_usable()  # the threads' own error on a closed sandbox does not say so
        return self._threads.submit(verify, *given)

    def _read_and_verify(
        self, generation: Generation, task: Mapping[str, Any], cancelled: threading.Event
    ) -> Outcome:
        return self._verify(generation, _suite(generation, task), cancelled)

    def _verify(self, generation: Generation, suite: Suite, cancelled: threading.Event) -> Outcome:
        code = suite.candidate(generation.text)
        if not code:
            return Outcome(Verdict.NO_ANSWER, detail="the output contains no code", meta=_UNTRIED)
        problem = "the verification was cancelled"
        spared: list[bool] = []  # after each loss of a worker: whether a control run lost none
        for attempt in range(1 + RETRIES):
            if attempt:
                time.sleep(0.1 * 2**attempt)
            if cancelled.is_set():
                break
            try:
                return self._try(suite, code, cancelled, again=bool(spared))
            except _CandidateLostError as error:
                spared.append(self._undisturbed(error, cancelled))
                if spared[-2:] == [True, True]:
                    return error.outcome()
                problem = str(error)
                if not all(spared):
                    problem += f"; {DISTURBED}, so the candidate may not be the cause"
            except (LostError, OSError) as error:  # such as too many open files
                problem = str(error)
        return Outcome(Verdict.INFRA_ERROR, detail=problem, meta=_UNTRIED)

    def _try(self, suite: Suite, code: str, cancelled: threading.Event, *, again: bool) -> Outcome:
        """Run the candidate once; `again`: on a fresh worker, while no other candidate runs.

        Raises LostError, OSError; _CandidateLostError if the worker is lost while it runs.
        """
        waiting = WAITING_FACTOR * self._timeout
        terms = Terms(self._timeout, waiting, self._cpu_seconds, self._output_bytes, cancelled)
        with self._pool.worker(fresh=again) as worker, self._turn(cancelled, alone=again):
            suite = suite.where(worker.modules)
            if why := unjudgeable(suite, worker.modules, in_process=self._in_process):
                return Outcome(Verdict.INFRA_ERROR, detail=why, meta=_UNTRIED)
            worker.tried = False
            started = time.monotonic()
            try:
                judged = evaluate(worker, suite, code, terms, in_process=self._in_process)
            except LostError as error:
                if worker.tried:
                    raise _CandidateLostError(
                        error, time.monotonic() - started, worker.about
                    ) from error
                raise
            worker.reusable = worker.reusable and not self._tainted(judged)
            return _outcome(judged, worker.about, self._timeout)

    def _turn(
        self, cancelled: threading.Event, *, alone: bool
    ) -> contextlib.AbstractContextManager[None]:
        return TURNS.turn(cancelled, alone=alone, patience=self.max_seconds)

    def _undisturbed(self, lost: _CandidateLostError, cancelled: threading.Event) -> bool:
        """Whether a control program runs undisturbed, on a fresh worker, for the same time."""
        seconds = min(lost.seconds, self._timeout)
        try:
            with self._pool.worker(fresh=True) as worker, self._turn(cancelled, alone=True):
                return undisturbed(worker, seconds, cancelled, processor=lost.overloaded)
        except (LostError, OSError):
            return False


class _CandidateLostError(Exception):
    """A worker was lost, or gave no verdict, while a candidate ran on it.

    The cause may be outside, or another candidate. If it happens twice, the second time on a fresh
    worker with no other candidate running, and not to the control runs after each (`control.py`),
    then the candidate caused it.
    """

    def __init__(self, error: LostError, seconds: float, about: Mapping[str, Any]) -> None:
        super().__init__(str(error))
        self.seconds = seconds
        self._about = about
        self.overloaded = isinstance(error, OverloadedError)

    def outcome(self) -> Outcome:
        verdict = Verdict.TIMEOUT if self.overloaded else Verdict.RESOURCE_EXCEEDED
        detail = f"the candidate ended its sandbox twice ({self})"
        if self.overloaded:
            detail = (
                f"no answer after {self.seconds:.2f} s, while a control run got a processor: {self}"
            )
        meta = {"evaluation": None, **self._about}
        return Outcome(verdict, None, self.seconds, detail, meta)


def _suite(generation: Generation, task: Mapping[str, Any]) -> Suite:
    return read_suite(check_generation(generation).id, task)


def _outcome(judged: Judged, about: Mapping[str, Any], limit: float) -> Outcome:
    finished = judged.finished
    # The time that it waited for a processor beyond its limit does not count.
    seconds = finished.seconds - max(0.0, min(finished.seconds - limit, finished.waited))
    meta = {
        "evaluation": judged.evaluation,
        **about,
        "stdout": finished.stdout[-TAIL_BYTES:],
        "stderr": finished.stderr[-TAIL_BYTES:],
    }
    return Outcome(judged.verdict, None, seconds, judged.detail, meta)
