r"""MathChecker: whether the final answer of a free-form solution equals the reference answer.

"So it is \boxed{0.5}" reaches \frac{1}{2}; "So it is \boxed{2}" does not.
"""

from __future__ import annotations

import asyncio
import os
import weakref
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from importlib.util import find_spec
from time import perf_counter
from typing import Any, Self

from gatekeeper.arguments import check_count, check_positive
from gatekeeper.errors import BadInputError, MissingDependencyError
from gatekeeper.maths.choices import same_choice
from gatekeeper.maths.compare import AnswerComparer
from gatekeeper.maths.extract import extract, find
from gatekeeper.maths.normalise import MAX_LENGTH, normalise
from gatekeeper.maths.pool import Cancellation, Limits, Pool
from gatekeeper.types import Generation, Outcome, Verdict
from gatekeeper.types.checks import check_generation

__all__ = ["MathChecker", "reference"]

MOST_SECONDS, MOST_MB, MOST_WORKERS = 1e6, 1 << 30, 1 << 30
GRACE = 0.5  # seconds beyond the hard limit for extraction and for killing a worker
LOOK_AHEAD = 16  # items per worker that a batch reads in advance


class MathChecker:
    """Verifies solutions by their final answer; docs/maths.md has the rules and their limits.

    Threads and asyncio tasks may share it. Comparisons without algebra run in the caller's
    process, in linear time; the others run in worker processes that are started on demand. Close
    it, or use it as a context manager.

    Parameters
    ----------
    workers : int or None
        How many comparisons run at once, at least 1, in at most `workers` + 1 processes. None: one
        fewer than the machine has processors, from 1 to 4.
    soft_limit : float
        Seconds of processor time after which a comparison stops. Processor time, so that a busy
        machine does not change a verdict.
    hard_limit : float
        Seconds of wall clock after which the worker is killed; above `soft_limit`.
    memory_mb : int
        MiB of address space of a worker, at least 256.

    Raises
    ------
    MissingDependencyError
        Without the extra "math".
    BadInputError
        If a limit is out of its range.
    """

    def __init__(
        self,
        *,
        workers: int | None = None,
        soft_limit: float = 2.0,
        hard_limit: float = 3.0,
        memory_mb: int = 1024,
    ) -> None:
        for package in ("math_verify", "antlr4"):
            if find_spec(package) is None:
                raise MissingDependencyError(package, extra="math", needed_for="MathChecker")
        size = workers if workers is not None else max(1, min(4, (os.cpu_count() or 1) - 1))
        check_count("workers", size, most=MOST_WORKERS)
        check_positive("hard_limit", hard_limit, most=MOST_SECONDS)
        check_positive("soft_limit", soft_limit, most=MOST_SECONDS)
        if not soft_limit < hard_limit:
            raise BadInputError(f"{soft_limit=!r}, {hard_limit=!r}: need 0 < soft < hard, seconds")
        check_count("memory_mb", memory_mb, least=256, most=MOST_MB)
        self.workers = size
        self._max_seconds = hard_limit + GRACE
        self._pool = Pool(size, Limits(soft_limit, hard_limit, memory_mb))
        self._threads = ThreadPoolExecutor(size, thread_name_prefix="gatekeeper-maths")
        self._look_ahead = LOOK_AHEAD * size
        # Without waiting: the garbage collector may call this on one of these threads.
        self._finalizer = weakref.finalize(self, _close, self._pool, self._threads, wait=False)

    @property
    def max_seconds(self) -> float:
        """The longest time of one verdict once it has a worker, seconds."""
        return self._max_seconds

    def verify(self, generation: Generation, task: Any) -> Outcome:
        """Compare the final answer of an output with the reference answer of its task.

        Parameters
        ----------
        generation : Generation
            The output; only its `text` is read.
        task : mapping
            Its "gold" is the reference answer, in LaTeX.

        Returns
        -------
        Outcome
            As `check` returns it.

        Raises
        ------
        BadInputError
            If the task has no "gold", or `generation` is no Generation.
        """
        return self.check(_gold(task), check_generation(generation).text)

    async def averify(self, generation: Generation, task: Any) -> Outcome:
        """`verify` for asyncio; a cancellation frees the worker."""
        return await self.acheck(_gold(task), check_generation(generation).text)

    def check(self, gold: str, response: str) -> Outcome:
        """Compare the final answer of a response with a reference answer.

        Parameters
        ----------
        gold : str
            The reference answer, in LaTeX.
        response : str
            The whole response.

        Returns
        -------
        Outcome
            Its meta has `extracted`, the final answer, and `rule`, the rule that decided.

        Raises
        ------
        BadInputError
            If `gold` is empty, or `response` is no string.
        """
        case = _prepare(gold, response)
        return case if isinstance(case, Outcome) else _ask(self._pool, case, Cancellation())

    async def acheck(self, gold: str, response: str) -> Outcome:
        """`check` for asyncio; a cancellation frees the worker."""
        case = _prepare(gold, response)
        if isinstance(case, Outcome):
            return case
        cancellation = Cancellation()
        self._pool.check_open()
        future = self._threads.submit(_ask, self._pool, case, cancellation)
        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            cancellation.cancel()
            self._pool.wake()
            raise

    def check_many(self, pairs: Iterable[tuple[str, str]]) -> Iterator[Outcome]:
        """Compare (gold, response) pairs, several at the same time.

        Parameters
        ----------
        pairs : iterable
            A bounded number of pairs is read ahead.

        Yields
        ------
        Outcome
            In the order of the pairs.

        Raises
        ------
        BadInputError
            At a pair with an empty gold, or with a response that is no string.
        """
        pending: deque[Outcome | Future[Outcome]] = deque()
        try:
            for gold, response in pairs:
                case = _prepare(gold, response)
                if isinstance(case, Outcome):
                    pending.append(case)
                else:
                    self._pool.check_open()
                    pending.append(self._threads.submit(_ask, self._pool, case, Cancellation()))
                while pending and (_is_done(pending[0]) or len(pending) >= self._look_ahead):
                    yield _result(pending.popleft())
            while pending:
                yield _result(pending.popleft())
        finally:  # the caller may stop reading
            for left in pending:
                if isinstance(left, Future):
                    left.cancel()

    def close(self) -> None:
        """End all workers. Waiting and later calls that need one raise GatekeeperError."""
        self._finalizer.detach()
        _close(self._pool, self._threads, wait=True)

    def __enter__(self) -> Self:
        self._pool.warm()
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


@dataclass(frozen=True, slots=True)
class _Case:
    """A pair that needs a worker."""

    gold: str
    answer: str
    extracted: str
    seconds: float  # of the preparation


def _prepare(gold: str, response: str) -> Outcome | _Case:
    """The outcome if linear time suffices, otherwise the case for a worker."""
    started = perf_counter()
    written, wanted = reference(gold)
    if not isinstance(response, str):
        raise BadInputError(f"response={response!r:.80}: give the whole response as a string")
    found = find(response)
    if found is None:
        return _outcome(Verdict.NO_ANSWER, None, "extraction", started, "no final answer found")
    extracted = found.text
    if found.choice and wanted and same_choice(wanted, "(A)") is not None:
        extracted = f"({found.choice}) {extracted}"  # the reference is a choice, too
    if found.doubt:
        detail = f"cannot compare: {found.doubt}"
        return _outcome(Verdict.INFRA_ERROR, extracted, "too_complex", started, detail)
    if extracted == written:
        return _outcome(Verdict.PASSED, extracted, "string", started)
    answer = normalise(extracted)
    if answer == "":
        return _outcome(Verdict.NO_ANSWER, None, "extraction", started, "the answer is empty")
    if wanted is None or answer is None:
        detail = "too complex to compare: too long, too deeply nested, or code"
        return _outcome(Verdict.INFRA_ERROR, extracted, "too_complex", started, detail)
    comparer = AnswerComparer()
    same = comparer.compare(wanted, answer)
    if same is None:
        return _Case(wanted, answer, extracted, perf_counter() - started)
    return _outcome(Verdict.PASSED if same else Verdict.FAILED, extracted, comparer.rule, started)


def reference(gold: str) -> tuple[str, str | None]:
    """The reference answer without its box.

    Returns
    -------
    written : str
    canonical : str or None
        None if it is too complex.

    Raises
    ------
    BadInputError
        For a reference answer that is empty, or a mark such as \\square.
    """
    if not isinstance(gold, str):
        raise BadInputError(f"gold={gold!r:.80}: give the reference answer as a string")
    is_boxed = r"\boxed" in gold or r"\fbox" in gold
    written = (extract(gold) or "") if is_boxed else gold.strip()
    canonical = normalise(written)
    if canonical == "":
        why = " (it has only space or marks)" if written else ""
        raise BadInputError(f"gold={gold!r:.80}: the reference answer is empty{why}")
    return written, canonical


def _ask(pool: Pool, case: _Case, cancellation: Cancellation) -> Outcome:
    reply = pool.ask(case.gold, case.answer, cancellation)
    return Outcome(
        Verdict(reply["verdict"]),
        seconds=case.seconds + reply["seconds"],  # without the wait for a worker
        detail=reply["detail"],
        meta={"extracted": case.extracted, "rule": reply["rule"]},
    )


def _outcome(
    verdict: Verdict, extracted: str | None, rule: str, started: float, detail: str = ""
) -> Outcome:
    return Outcome(
        verdict,
        seconds=perf_counter() - started,
        detail=detail,
        meta={"extracted": extracted[:MAX_LENGTH] if extracted else extracted, "rule": rule},
    )


def _is_done(item: Outcome | Future[Outcome]) -> bool:
    return isinstance(item, Outcome) or item.done()


def _result(item: Outcome | Future[Outcome]) -> Outcome:
    return item if isinstance(item, Outcome) else item.result()


def _close(pool: Pool, threads: ThreadPoolExecutor, *, wait: bool) -> None:
    threads.shutdown(wait=False, cancel_futures=True)
    pool.close(wait=wait)
    threads.shutdown(wait=wait)


def _gold(task: Any) -> str:
    gold = task.get("gold") if isinstance(task, Mapping) else getattr(task, "gold", None)
    if gold is None:
        raise BadInputError(f"task={task!r:.200}: a maths task needs a reference answer, 'gold'")
    return gold  # type: ignore[no-any-return]
