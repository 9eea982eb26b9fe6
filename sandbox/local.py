"""`LocalSandbox`: runs code candidates against their tests in a process of this machine."""

from __future__ import annotations

import asyncio
import math
import os
import secrets
import sys
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Literal

from gatekeeper.errors import BadInputError, GatekeeperError
from gatekeeper.sandbox import child
from gatekeeper.sandbox.fence import extract_code
from gatekeeper.sandbox.literal import LiteralTest, bound_names, parse
from gatekeeper.sandbox.process import GRACE_SECONDS, End, Finished, run
from gatekeeper.sandbox.wire import MalformedError, decode, frames, show
from gatekeeper.types import Generation, Outcome, Verdict

__all__ = ["LocalSandbox"]

Evaluation = Literal["literal", "in_process"]


@dataclass(frozen=True, slots=True)
class _Suite:
    """The tests of one task; `literal` is None where the parent cannot judge them all itself."""

    setup: str
    tests: tuple[str, ...]
    literal: tuple[LiteralTest, ...] | None


class LocalSandbox:
    """A verifier of Python functions: one fresh process for each candidate.

    `verify(generation, task)`: the candidate is the code in `generation.text`, `task` a mapping
    with `tests` (assert statements) and, optionally, `test_setup_code`, run after the candidate.

    Tests of the form `assert f(...) == <literal>` and their relatives are judged by *this*
    process, which alone knows the literals: a candidate passes by returning the right values and
    in no other way. Other tests would have to be run beside the candidate, who could then forge
    the verdict: they give `infra_error` unless `in_process=True` accepts that.

    What is promised: a process of its own without inherited environment, files or site-packages;
    limits on wall-clock time, CPU time, memory, file size and output; an empty directory that is
    removed; for root, another user. `meta["isolation"]` says what the kernel allowed on top:

    - "process+nonet": namespaces: no network, no view into the memory of this process, no signal
      to it, a limit on processes, and whatever the candidate started dies with it;
    - "process+nonet+readonly": files can be read but not written, except in that directory;
    - "process": none of these. A hostile candidate can do as its user what it likes: use the
      network, delete files, kill or read this process (and so the tests), stay in the background.

    What is never promised: the candidate shares the kernel and reads the files its user can
    (for root: every file, where Python itself lives in a private directory). Memory is limited
    for each process, not in sum, CPU time likewise. For hostile code use a container.

    `timeout` is wall-clock seconds; `cpu_seconds` whole seconds of CPU time (default: `timeout`
    rounded up) and `memory_mb` MiB of address space, each for one process; `output_kb` KiB of
    standard output and error together; `disk_mb` MiB of files (each file; all of them together
    at "readonly"); `processes` how many it may have at a time, threads counted. `workers` is how
    many candidates run at once (default: the number of cores); more wait, their clocks with them.
    """

    def __init__(
        self,
        *,
        timeout: float = 5.0,
        cpu_seconds: int | None = None,
        memory_mb: int = 512,
        output_kb: int = 4096,
        disk_mb: int = 64,
        processes: int = 64,
        workers: int | None = None,
        in_process: bool = False,
    ) -> None:
        if sys.platform != "linux":
            raise GatekeeperError(f"sys.platform={sys.platform!r}: LocalSandbox needs Linux")
        cpu_seconds = math.ceil(timeout) if cpu_seconds is None else cpu_seconds
        workers = os.cpu_count() or 1 if workers is None else workers
        for name, value in {
            "timeout": timeout,
            "cpu_seconds": cpu_seconds,
            "memory_mb": memory_mb,
            "output_kb": output_kb,
            "disk_mb": disk_mb,
            "processes": processes,
            "workers": workers,
        }.items():
            if not 0 < value < math.inf:
                raise BadInputError(f"{name}={value!r}: give a number above 0")
        self._timeout = timeout
        self._output_bytes = output_kb << 10
        self._in_process = in_process
        self._limits = [str(n) for n in (memory_mb, cpu_seconds, disk_mb, processes)]
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="gatekeeper-sandbox")

    @property
    def max_seconds(self) -> float:
        """The most wall-clock seconds one verification can take, waiting for a worker aside."""
        return self._timeout + GRACE_SECONDS

    def verify(self, generation: Generation, task: Mapping[str, Any]) -> Outcome:
        """The verdict on one candidate. Raises BadInputError for a task without usable tests."""
        suite = _suite(generation.id, task)
        cancelled = threading.Event()
        work = self._pool.submit(self._verify, generation, suite, cancelled)
        try:
            return work.result()
        except BaseException:  # KeyboardInterrupt: leave no child behind
            cancelled.set()
            raise

    async def averify(self, generation: Generation, task: Mapping[str, Any]) -> Outcome:
        """`verify` for asyncio. When it is cancelled, the child is dead before it returns."""
        suite = _suite(generation.id, task)
        cancelled = threading.Event()
        work = self._pool.submit(self._verify, generation, suite, cancelled)
        waiting = asyncio.wrap_future(work)
        try:
            return await asyncio.shield(waiting)
        except asyncio.CancelledError:
            cancelled.set()
            if not work.cancel():
                await asyncio.wait([waiting])
            raise

    def close(self) -> None:
        """Wait for running verifications and refuse new ones."""
        self._pool.shutdown()

    def _verify(self, generation: Generation, suite: _Suite, cancelled: threading.Event) -> Outcome:
        evaluation: Evaluation = "literal" if suite.literal is not None else "in_process"
        meta: dict[str, Any] = {"evaluation": evaluation, "isolation": None}
        if suite.literal is None and not self._in_process:
            detail = (
                "tests are not literal: they would have to run beside the candidate, who could "
                "forge the verdict; pass in_process=True to accept that"
            )
            return Outcome(Verdict.INFRA_ERROR, detail=detail, meta=meta)
        code = extract_code(generation.text)
        if not code.strip():
            return Outcome(Verdict.NO_ANSWER, detail="there is no code in the output", meta=meta)
        nonce = secrets.token_hex(16)
        if suite.literal is not None:
            texts = [code, suite.setup, *(test.call for test in suite.literal)]
        else:
            texts = [code, suite.setup, nonce, *suite.tests]
        try:
            finished = run(
                # -I without its -E: the environment is the parent's choice already
                [sys.executable, "-P", "-s", "-S", _PROGRAM, evaluation, *self._limits],
                job=_job(texts),
                timeout=self._timeout,
                output_bytes=self._output_bytes,
                answer_bytes=2 * child.MAX_BYTES,
                cancelled=cancelled,
            )
        except OSError as error:
            detail = f"cannot start a sandbox process: {error}"
            return Outcome(Verdict.INFRA_ERROR, detail=detail, meta=meta)
        answers = frames(finished.answer)
        if not answers or answers[0][0] != b"R":
            detail = f"the sandbox process did not start: exit code {finished.exit_code}"
            detail += f" after {finished.seconds:.2f} s; stderr: {finished.stderr[-300:]!r}"
            return Outcome(Verdict.INFRA_ERROR, None, finished.seconds, detail, meta)
        meta["isolation"] = answers[0][1].decode("ascii", "replace")
        meta["stdout"], meta["stderr"] = finished.stdout, finished.stderr
        verdict, detail = _judge(suite, nonce, answers[1:], finished)
        return Outcome(verdict, None, finished.seconds, detail, meta)


_PROGRAM = child.__file__


def _suite(identity: str, task: Mapping[str, Any]) -> _Suite:
    """Read a task. Raises BadInputError."""
    if not isinstance(task, Mapping):
        raise BadInputError(f"id={identity!r}: task={task!r}: give a mapping with 'tests'")
    tests, setup = task.get("tests"), task.get("test_setup_code") or ""
    if not isinstance(tests, Sequence) or isinstance(tests, str) or not tests:
        raise BadInputError(f"id={identity!r}: tests={tests!r}: give a list of assert statements")
    if not isinstance(setup, str):
        raise BadInputError(f"id={identity!r}: test_setup_code={setup!r}: give a string")
    helpers = bound_names(setup)
    parsed: list[LiteralTest] = []
    for test in tests:
        try:
            literal = parse(test, helpers) if helpers is not None else None
        except (SyntaxError, ValueError, TypeError, AttributeError, RecursionError) as error:
            raise BadInputError(
                f"id={identity!r}: test={test!r}: not a Python statement: {error}"
            ) from error
        if literal is not None:
            parsed.append(literal)
    everything = len(parsed) == len(tests)
    return _Suite(setup, tuple(tests), tuple(parsed) if everything else None)


def _job(texts: Sequence[str]) -> bytes:
    """The texts as `child.py` reads them."""
    encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
    return b"".join(len(e).to_bytes(8, "little") + e for e in encoded)


def _judge(
    suite: _Suite, nonce: str, answers: Sequence[tuple[bytes, bytes]], finished: Finished
) -> tuple[Verdict, str]:
    """The verdict and why. The first test in order that did not hold decides, as in a plain run."""
    for number, test in enumerate(suite.tests):
        kind, payload = answers[number] if number < len(answers) else (b"", b"")
        where = f"test {number + 1} of {len(suite.tests)} ({show(test)})"
        match kind:
            case b"V" if suite.literal is not None:
                wrong = _compare(suite.literal[number], payload)
                if wrong:
                    return Verdict.FAILED, f"{where}: {wrong}"
            case b"P" if suite.literal is None and payload == nonce.encode():
                continue
            case b"E":
                return Verdict.FAILED, payload.decode("utf-8", "replace")
            case b"M" | b"L":
                return Verdict.RESOURCE_EXCEEDED, payload.decode("utf-8", "replace")
            case b"":
                return _unanswered(where, finished)
            case _:
                return Verdict.FAILED, f"{where}: the candidate wrote to the sandbox's own pipe"
    return Verdict.PASSED, ""


def _compare(test: LiteralTest, payload: bytes) -> str:
    """What is wrong with the value of a call; empty where nothing is."""
    try:
        value = decode(payload)
    except MalformedError as error:
        return f"no readable value: {error}"
    try:
        if test.holds(value):
            return ""
    except Exception as error:  # a comparison of wrong types is the candidate's mistake
        return f"got {show(value)}: {type(error).__name__}: {error}"
    return f"got {show(value)}"


def _unanswered(where: str, finished: Finished) -> tuple[Verdict, str]:
    """The process ended, or was ended, before it answered all tests."""
    code = finished.exit_code
    match finished.end:
        case End.DEADLINE:
            return Verdict.TIMEOUT, f"{where}: no answer after {finished.seconds:.2f} s"
        case End.OUTPUT:
            return Verdict.RESOURCE_EXCEEDED, f"{where}: it wrote more than allowed"
        case End.CANCELLED:
            return Verdict.INFRA_ERROR, "the verification was cancelled"
        case End.ITSELF if code == 128 + child.SIGXCPU:
            return Verdict.TIMEOUT, f"{where}: its CPU time was used up"
        case End.ITSELF if code == 128 + child.SIGKILL:
            return Verdict.RESOURCE_EXCEEDED, f"{where}: killed, out of a resource"
        case End.ITSELF:
            return Verdict.FAILED, f"{where}: it ended the process, with exit code {code}"
