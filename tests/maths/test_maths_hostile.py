"""Hostile text, and the limits of time and memory that contain it."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from math_workers import EASY, LONG, boxed, children, wait_for

from gatekeeper.maths import MathChecker, worker
from gatekeeper.types import Verdict

LIMIT = 3.5  # seconds: the contract for any item
OWN = LIMIT - 3.0  # of them in the caller's process: a worker is killed after the other three
FIRST = 50_000  # characters, of longer texts
PATIENT = {"soft_limit": 60.0, "hard_limit": 61.0}  # seconds: beyond any test


def hostile(evidence: Path) -> Iterator[tuple[str, str]]:
    """(reference, response) that make some grader hang, use all memory, or execute code."""
    payload = f"__import__('os').system('touch {evidence}')"
    for text in [
        "9^{9^{9^{9}}}", "9^9^9^9^9", "2^{2^{2^{2^{2^{2}}}}}", "((((9!)!)!)!)", "99999!", "9999!",
        "(x+1)^{99999}", "(x+1)^{2999}", "((3^{2999})^{2999})^{2999}+x", r"\binom{99999}{50000}",
        r"\sum_{n=1}^{10^9} n", r"\int e^{x^2} dx", r"\exp(\exp(\exp(\exp(9))))",
        payload, f"({payload}, 5)", rf"\text{{{payload}}}", f"open('{evidence}','w')",
        f"exec(\"open('{evidence}','w')\")", "().__class__.__bases__[0].__subclasses__()",
        "5\x006", "\x00" * 500, "\ud800", "\udfff" * 500, "x^" * 500 + "x", "-" * 1400 + "x",
        r"\frac" * 250, r"\sqrt" * 250, "|" * 1000, "," * 1400, "!" * 1000, "'" * 1000,
        r"\text{A)" * 180,
        r"\frac{1}{" * 51 + "x" + "}" * 51, "(" * 700 + "x" + ")" * 700, "9" * 1400 + "x",
        r"\log(" * 20 + "9^{3000}" + ")" * 20, r"5\text{" + "a" * 1300 + "!}",
        ",".join(f"x+{i}" for i in range(250)), r"x^{7}y+x^{5}-3xy^4+11=\sin(y)",
    ]:  # fmt: skip
        yield "x", boxed(text)
    for text in [
        "{" * 1_000_000, "}" * 1_000_000, r"\boxed{" + "{" * 1_000_000, r"\boxed{" * 140_000,
        r"\boxed{" + "{" * 500_000 + "}" * 500_000 + "}", r"\boxed" * 160_000, "$" * 1_000_000,
        "answer: " * 120_000, "answer is $" * 90_000, "final answer" + " " * 1_000_000,
        "</think>" * 120_000, boxed("7" * 1_000_000), boxed(r"\frac" * 200_000),
    ]:  # fmt: skip
        yield "x", text
    yield "x^5-x+1=y^3", boxed(r"x^{7}y+x^{5}-3xy^4+11=\sin(y)")
    yield "9^{9^{9}}", boxed("x")


def test_hostile_text(tmp_path: Path) -> None:
    """Answered in time, never accepted, nothing executed, the next item unaffected."""
    evidence = tmp_path / "executed"
    with MathChecker(workers=1) as checker:

        def own(response: str) -> float:
            """Processor time: by the clock, a busy machine would be taken for slow code."""
            started = time.thread_time()
            checker.check("x", response)
            return time.thread_time() - started

        checker.check(*EASY)  # starting a worker is not part of any item
        for gold, response in hostile(evidence):
            started = time.thread_time()
            outcome = checker.check(gold, response)
            took = time.thread_time() - started
            if len(response) > FIRST:  # squared, a million characters take 400 times as long
                small = min(own(response[:FIRST]) for _ in range(3))
                assert took < 100 * max(small, OWN / 100), response[:80]
            else:
                assert took < OWN, response[:80]
            assert outcome.seconds < 8 * LIMIT, response[:80]
            assert outcome.verdict is not Verdict.PASSED, response[:80]
            assert len(str(outcome.meta)) < 10_000
        assert not evidence.exists()
        assert checker.check(*EASY).verdict is Verdict.PASSED
        for pid in children(os.getpid()):
            status = Path(f"/proc/{pid}/status").read_text()
            peak = int(status.partition("VmPeak:")[2].split()[0])  # KiB
            assert peak <= 1024 * 1024


def test_memory_limit_is_the_kernels() -> None:
    with MathChecker(workers=1, memory_mb=256) as small:
        assert small.check(*EASY).verdict is Verdict.PASSED
        limits = [Path(f"/proc/{pid}/limits") for pid in children(os.getpid())]
        wait_for(lambda: any(str(256 << 20) in path.read_text() for path in limits))


def test_memory_of_the_callers_own_does_not_count() -> None:
    """Beside a model that fills the caller's memory, a worker still serves item after item."""
    held = b"x" * (400 << 20)  # more than a worker may hold before it is replaced
    others = children(os.getpid())
    with MathChecker(workers=1, **PATIENT) as checker:
        checker.check(*EASY)
        wait_for(lambda: len(children(os.getpid()) - others) >= 2)  # one, and the spare
        workers = children(os.getpid()) - others
        for _ in range(5):
            assert checker.check(*EASY).verdict is Verdict.PASSED
        assert workers <= children(os.getpid())
    del held


def test_out_of_memory_is_a_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    from gatekeeper.maths import symbolic

    def greedy(gold: str, answer: str) -> bool:
        raise MemoryError

    monkeypatch.setattr(symbolic, "equal", greedy)
    assert worker.judge("x", "y", 60.0)["verdict"] == "resource_exceeded"


def test_soft_limit_is_a_verdict() -> None:
    with MathChecker(workers=1, soft_limit=0.3, hard_limit=20.0) as quick:
        assert quick.check("x", LONG).verdict is Verdict.TIMEOUT
        assert quick.check(*EASY).verdict is Verdict.PASSED


def test_hard_limit_when_the_worker_does_not_react() -> None:
    """It is killed in time; one that was not let run has not shown that the answer is wrong."""
    others = children(os.getpid())
    with MathChecker(workers=1) as checker:
        checker.check(*EASY)
        # The first that there was; the spare may not have started yet.
        (worker, *_) = sorted(children(os.getpid()) - others)
        timer = threading.Timer(0.5, os.kill, (worker, signal.SIGSTOP))
        timer.start()
        started = time.monotonic()
        outcome = checker.check("x", LONG)
        assert time.monotonic() - started < 50.0  # LONG alone would take a minute
        timer.join()
        assert (outcome.verdict, outcome.meta["rule"]) == (Verdict.INFRA_ERROR, "overloaded")
        assert checker.check(*EASY).verdict is Verdict.PASSED
