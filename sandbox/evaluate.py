"""From a candidate and its tests to a verdict: one function for each path.

Of the data that a candidate sends, only the values of its functions count. The reason why a run
ended is taken from the host's clock, the kernel's counters and the exit status of its process.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import signal
import socket
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import Literal

from gatekeeper.sandbox.inside.decoding import decode
from gatekeeper.sandbox.inside.unseen import THREADS
from gatekeeper.sandbox.inside.wire import MalformedError
from gatekeeper.sandbox.literal import LiteralTest
from gatekeeper.sandbox.printed import same_output
from gatekeeper.sandbox.reprs import short_repr
from gatekeeper.sandbox.run_loop import End, Finished, Job, Terms, run_jobs
from gatekeeper.sandbox.suite import Suite
from gatekeeper.sandbox.worker import LostError, Worker
from gatekeeper.types import Verdict

__all__ = ["Evaluation", "Judged", "evaluate", "unjudgeable"]

Evaluation = Literal["literal", "judge", "in_process"]


@dataclass(frozen=True, slots=True)
class Judged:
    """A verdict, why, and the run it came from."""

    verdict: Verdict
    detail: str
    evaluation: Evaluation
    finished: Finished


def evaluate(
    worker: Worker, suite: Suite, code: str, terms: Terms, *, in_process: bool = False
) -> Judged:
    """The verdict on a candidate, by the one path that its tests allow.

    Parameters
    ----------
    worker
        Its processes run the candidate and the tests.
    suite
        The tests, which are not `unjudgeable`. They alone decide the path; the candidate has no
        influence on it.
    code
        The candidate's program.
    terms
        The limits of the run.
    in_process
        Whether tests that are not literal run beside the candidate, which can then forge them.

    Raises
    ------
    LostError
        Nothing is known about the candidate.
    """
    if suite.cases:
        return _programs(worker, suite, code, terms)
    if suite.literal:
        return _calls(worker, suite, code, terms)
    if in_process:
        return _in_process(worker, suite, code, terms)
    return _judge(worker, suite, code, terms)


def unjudgeable(suite: Suite, modules: Collection[str], *, in_process: bool) -> str:
    """Why tests allow no reliable verdict where only `modules` can be imported; empty if they do.

    That is so for every candidate, and known before anything runs.
    """
    missing = ", ".join(sorted(suite.reading.needs - set(modules)))
    if missing:
        return f"the tests need {missing}, which the sandbox does not have: see `requirements`"
    if suite.cases or suite.literal:
        return ""
    if suite.reading.void:
        return f"the tests cannot be judged: {suite.reading.void}"
    if suite.reading.problem and not in_process:
        return (
            f"the tests cannot be judged with the candidate in another process: "
            f"{suite.reading.problem}; in_process=True would judge them, and trust the candidate"
        )
    return ""


def _calls(worker: Worker, suite: Suite, code: str, terms: Terms) -> Judged:
    """The candidate computes the values that the tests compare."""
    calls = [test.call for test in suite.literal]
    kind = "calls" if suite.usual else "literal"
    finished = run_jobs(worker, [Job([kind, code, suite.imports, *calls])], terms)
    return Judged(*_in_order(suite, finished, terms, _value(suite)), "literal", finished)


def _in_process(worker: Worker, suite: Suite, code: str, terms: Terms) -> Judged:
    """The tests run beside the candidate, which can forge the verdict."""
    nonce = secrets.token_hex(16)
    facts = json.dumps(suite.reading.for_judge(suite.entry))
    job = Job(["in_process", code, suite.setup, nonce, facts, *suite.tests])

    def wrong(_number: int, kind: bytes, payload: bytes) -> str | None:
        return "" if kind == b"P" and payload == nonce.encode() else None

    finished = run_jobs(worker, [job], terms)
    return Judged(*_in_order(suite, finished, terms, wrong), "in_process", finished)


_Check = Callable[[int, bytes, bytes], str | None]
"""The error in the answer to a test: empty if there is none, None if the frame is no answer."""


def _value(suite: Suite) -> _Check:
    def wrong(number: int, kind: bytes, payload: bytes) -> str | None:
        return _compare(suite.literal[number], payload) if kind == b"V" else None

    return wrong


def _in_order(suite: Suite, finished: Finished, terms: Terms, check: _Check) -> tuple[Verdict, str]:
    """The first test in order that did not hold decides, as in a plain run."""
    tests = [t.source for t in suite.literal] or list(suite.tests)
    for number, test in enumerate(tests):
        where = f"test {number + 1} of {len(tests)} ({short_repr(test)})"
        if number >= len(finished.answers):
            return _unanswered(where, finished, terms)
        kind, payload = finished.answers[number]
        wrong = check(number, kind, payload)
        if wrong:
            return Verdict.FAILED, f"{where}: {wrong}"
        if wrong is None:
            return _final(kind, payload, where, finished)
    return Verdict.PASSED, ""


def _final(kind: bytes, payload: bytes, where: str, finished: Finished) -> tuple[Verdict, str]:
    """The verdict where a final frame came instead of an answer."""
    text = payload.decode("utf-8", "replace")
    match kind:
        case b"M" | b"L":
            return Verdict.RESOURCE_EXCEEDED, text
        case b"E":
            return _refused(finished) or (Verdict.FAILED, text)
        case _:
            return Verdict.FAILED, f"{where}: the candidate wrote to the sandbox's own pipe"


def _refused(finished: Finished) -> tuple[Verdict, str] | None:
    """The verdict if the kernel's counters show that it refused the candidate a resource."""
    if finished.report.memory:
        return Verdict.RESOURCE_EXCEEDED, "memory ran out: a process was killed"
    if finished.report.processes:
        return Verdict.RESOURCE_EXCEEDED, "too many processes"
    return None


def _compare(test: LiteralTest, payload: bytes) -> str:
    """The error in the value of a call; empty if there is none."""
    try:
        value = decode(payload)
    except MalformedError as error:
        return f"the value cannot be read: {error}"
    try:
        if test.holds(value):
            return ""
    except Exception as error:  # such as TypeError: the candidate returned the wrong type
        return f"got {short_repr(value)}: {type(error).__name__}: {error}"
    return f"got {short_repr(value)}"


def _unanswered(where: str, finished: Finished, terms: Terms) -> tuple[Verdict, str]:
    """The verdict if the process ended, or was killed, before it had answered every test."""
    if stopped := _stopped(where, finished, terms):
        return stopped
    code = finished.report.status[0]
    ended = f"signal {-code}" if code < 0 else f"exit code {code}"
    return Verdict.FAILED, f"{where}: the candidate ended its process with {ended}"


def _stopped(
    where: str, finished: Finished, terms: Terms, process: int = 0
) -> tuple[Verdict, str] | None:
    """The reason why the host or the kernel ended a process; None if it ended by itself."""
    match finished.end:  # first, since there may be no report of a process that the host ended
        case End.DEADLINE:
            return Verdict.TIMEOUT, f"{where}: no answer after {finished.seconds:.2f} s"
        case End.OUTPUT:
            return (
                Verdict.RESOURCE_EXCEEDED,
                f"{where}: the candidate wrote more than allowed (output_kb)",
            )
        case End.CANCELLED:
            return Verdict.INFRA_ERROR, "the verification was cancelled"
    if refused := _refused(finished):
        return refused[0], f"{where}: {refused[1]}"
    code, cpu = finished.report.status[process], finished.report.cpu[process]
    # The kernel's two clocks differ, by a third on a busy machine.
    if code in (-signal.SIGKILL, -signal.SIGXCPU) and cpu > terms.cpu_seconds / 2:
        return Verdict.TIMEOUT, f"{where}: the candidate used up its processor time (cpu_seconds)"
    return None


def _judge(worker: Worker, suite: Suite, code: str, terms: Terms) -> Judged:
    """The tests run in one process, the candidate in another."""
    beside = re.search(THREADS, code) is not None  # they may call back at any time
    facts = json.dumps({**suite.reading.for_judge(suite.entry), "beside": beside})
    ours, theirs = socket.socketpair()
    candidate = Job(["serve", code, suite.imports], ours.detach())
    judge = Job(["judge", facts, suite.setup, *suite.tests], theirs.detach())
    finished = run_jobs(worker, [candidate, judge], terms)
    return Judged(*_judged(suite, finished, terms), "judge", finished)


def _judged(suite: Suite, finished: Finished, terms: Terms) -> tuple[Verdict, str]:
    answers = finished.answers
    passed = sum(kind == b"P" for kind, _ in answers)
    where = f"test {min(passed + 1, len(suite.tests))} of {len(suite.tests)}"
    kind, payload = answers[-1] if answers else (b"", b"")
    if kind == b"D" and passed == len(suite.tests):
        return Verdict.PASSED, ""
    if kind == b"I":
        return Verdict.INFRA_ERROR, payload.decode("utf-8", "replace")
    if kind == b"G":
        return _unanswered(payload.decode("utf-8", "replace"), finished, terms)
    if kind not in (b"P", b""):
        return _final(kind, payload, where, finished)
    # A candidate can cause much work for its tests, which must not count as a failure of the tests.
    if stopped := _stopped(where, finished, terms, process=1):
        return stopped
    code = finished.report.status[1]
    if code < 0:  # no test does that by itself: `Sandbox` finds out whether the candidate did
        raise LostError(f"{where}: signal {-code} ended the process of the tests")
    return Verdict.INFRA_ERROR, f"{where}: the tests ended their own process, status {code}"


def _programs(worker: Worker, suite: Suite, code: str, terms: Terms) -> Judged:
    """The candidate is a program: a fresh process for each input."""
    left, seconds = terms, 0.0
    for number, case in enumerate(suite.cases, 1):
        where = f"input {number} of {len(suite.cases)} ({short_repr(case.stdin, 80)})"
        stdin = os.memfd_create("stdin")
        with open(stdin, "wb", closefd=False) as file:
            file.write(case.stdin.encode("utf-8", "surrogateescape"))
        finished = run_jobs(worker, [Job(["script", code], stdin)], left, keep_output=True)
        left = left.after(finished)
        seconds += finished.seconds
        finished = replace(finished, seconds=seconds)
        kind, payload = finished.answers[0] if finished.answers else (b"", b"")
        # A program may end itself with `os._exit(0)`: its output decides, as it does otherwise.
        ended = not kind and finished.end is End.CLOSED and finished.report.status[0] == 0
        if not kind and not ended:
            verdict, detail = _unanswered(where, finished, terms)
        elif kind not in (b"D", b""):
            verdict, detail = _final(kind, payload, where, finished)
        elif same_output(finished.stdout, case.expected):
            continue
        else:
            got, wanted = short_repr(finished.stdout), short_repr(case.expected)
            verdict, detail = Verdict.FAILED, f"{where}: printed {got}, not {wanted}"
        return Judged(verdict, detail, "literal", finished)
    return Judged(Verdict.PASSED, "", "literal", finished)
