"""Worker processes: hostile text, kills, threads, asyncio, cancellation, and who cleans up."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from gatekeeper.errors import BadInputError, MissingDependencyError
from gatekeeper.maths import MathChecker, worker
from gatekeeper.types import Outcome, Verdict

ROOT = Path(__file__).parents[2]
LIMIT = 3.5  # seconds: the contract for any item
OWN = LIMIT - 3.0  # of them in the caller's process: a worker is killed after the other three
EASY = ("x^2+2x+1", r"\boxed{(x+1)^2}")  # needs a worker
PATIENT = {"soft_limit": 60.0, "hard_limit": 61.0}  # seconds: beyond any test
LONG = r"\boxed{" + r"\sin(" * 40 + "x" + ")" * 40 + "}"  # SymPy would take minutes


def boxed(text: str) -> str:
    return rf"\boxed{{{text}}}"


def hostile(evidence: Path) -> Iterator[tuple[str, str]]:
    """(reference, response) that hang, explode or run something in one grader or another."""
    payload = f"__import__('os').system('touch {evidence}')"
    for text in [
        "9^{9^{9^{9}}}", "9^9^9^9^9", "2^{2^{2^{2^{2^{2}}}}}", "((((9!)!)!)!)", "99999!", "9999!",
        "(x+1)^{99999}", "(x+1)^{2999}", "((3^{2999})^{2999})^{2999}+x", r"\binom{99999}{50000}",
        r"\sum_{n=1}^{10^9} n", r"\int e^{x^2} dx", r"\exp(\exp(\exp(\exp(9))))",
        payload, f"({payload}, 5)", rf"\text{{{payload}}}", f"open('{evidence}','w')",
        f"exec(\"open('{evidence}','w')\")", "().__class__.__bases__[0].__subclasses__()",
        "5\x006", "\x00" * 500, "\ud800", "\udfff" * 500, "x^" * 500 + "x", "-" * 1400 + "x",
        r"\frac" * 250, r"\sqrt" * 250, "|" * 1000, "," * 1400, "!" * 1000, "'" * 1000,
        r"\frac{1}{" * 50 + "x" + "}" * 50, "(" * 700 + "x" + ")" * 700, "9" * 1400 + "x",
        r"\log(" * 20 + "9^{3000}" + ")" * 20,
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
        checker.check(*EASY)  # starting a worker is not part of any item
        for gold, response in hostile(evidence):
            started = time.thread_time()
            outcome = checker.check(gold, response)
            # Processor time: by the clock, a busy machine would be taken for slow code.
            assert time.thread_time() - started < OWN, response[:80]
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
        assert time.monotonic() - started < 4 * LIMIT  # LONG alone would take a minute
        timer.join()
        assert (outcome.verdict, outcome.meta["rule"]) == (Verdict.INFRA_ERROR, "overloaded")
        assert checker.check(*EASY).verdict is Verdict.PASSED


def test_worker_killed_in_mid_item() -> None:
    """An accident is not a verdict: the item is tried again."""
    with MathChecker(workers=1, soft_limit=0.5, hard_limit=20.0) as checker:
        checker.check(*EASY)
        wait_for(lambda: len(children(os.getpid())) >= 2)
        timer = threading.Timer(0.2, lambda: signal_children(signal.SIGKILL))
        timer.start()
        assert checker.check("x", LONG).verdict is Verdict.TIMEOUT
        timer.join()
        assert checker.check(*EASY).verdict is Verdict.PASSED


def test_worker_killed_again_and_again() -> None:
    """An item whose worker keeps dying gets no label."""
    done = threading.Event()

    def assassin() -> None:
        while not done.wait(0.05):
            signal_children(signal.SIGKILL)

    with MathChecker(workers=1) as checker:
        checker.check(*EASY)
        thread = threading.Thread(target=assassin)
        thread.start()
        outcome = checker.check("x", LONG)
        done.set()
        thread.join()
        assert outcome.error is None
        assert checker.check(*EASY).verdict is Verdict.PASSED


def test_from_many_threads(checker: MathChecker) -> None:
    pairs = [(f"x^2+{n}x", boxed(f"x(x+{n + n % 2})")) for n in range(2, 26)]
    with ThreadPoolExecutor(8) as threads:
        outcomes = list(threads.map(lambda pair: checker.check(*pair), pairs))
    assert [o.error for o in outcomes] == [n % 2 for n in range(2, 26)]


def test_from_asyncio(checker: MathChecker) -> None:
    async def judge() -> list[Outcome]:
        pairs = [(f"x^2+{n}x", boxed(f"x(x+{n + n % 2})")) for n in range(2, 26)]
        return await asyncio.gather(*(checker.acheck(*pair) for pair in pairs))

    assert [o.error for o in asyncio.run(judge())] == [n % 2 for n in range(2, 26)]


def test_cancelling_frees_the_worker() -> None:
    async def judge(checker: MathChecker) -> Outcome:
        tasks = [asyncio.create_task(checker.acheck("x", LONG)) for _ in range(5)]
        await asyncio.sleep(0.3)  # one is being judged, four wait
        for task in tasks:
            task.cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        assert all(isinstance(r, asyncio.CancelledError) for r in results)
        return await asyncio.wait_for(checker.acheck(*EASY), 30)  # 300 s if nothing were freed

    with MathChecker(workers=1, **PATIENT) as checker:
        checker.check(*EASY)
        assert asyncio.run(judge(checker)).verdict is Verdict.PASSED


def test_batch_that_is_not_read_to_its_end(checker: MathChecker) -> None:
    outcomes = checker.check_many([EASY] * 50)
    assert next(outcomes).verdict is Verdict.PASSED
    outcomes.close()
    assert checker.check(*EASY).verdict is Verdict.PASSED


def test_close_leaves_nothing() -> None:
    threads = set(threading.enumerate())
    before = children(os.getpid())
    checker = MathChecker(workers=2, **PATIENT)
    with ThreadPoolExecutor(1) as other:
        waiting = other.submit(checker.check, "x", LONG)
        checker.check(*EASY)
        checker.close()
        checker.close()
        with pytest.raises(RuntimeError, match="closed"):
            waiting.result()
    assert children(os.getpid()) == before
    ours = {thread for thread in threading.enumerate() if "maths" in thread.name}
    assert ours <= threads


SCRIPT = """
import sys
sys.path.insert(0, {root!r})
from gatekeeper.maths import MathChecker
checker = MathChecker(workers=1)
print(checker.check({gold!r}, {response!r}).verdict.value, flush=True)
{more}
"""


def start(more: str) -> subprocess.Popen[str]:
    script = SCRIPT.format(root=str(ROOT), gold=EASY[0], response=EASY[1], more=more)
    return subprocess.Popen(
        [sys.executable, "-c", script],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_no_orphan_after_kill_9() -> None:
    with start(f"checker.check('x', {LONG!r})") as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == "passed\n"
        wait_for(lambda: len(children(parent.pid)) == 2)  # one at work, and the spare
        workers = children(parent.pid)
        parent.kill()
        parent.wait()
        wait_for(lambda: not any(alive(pid) for pid in workers))


def test_no_orphan_after_exit_without_close() -> None:
    with start("print(*(w._process.pid for w in checker._pool._all))") as parent:
        output, errors = parent.communicate(timeout=20)
        assert (parent.returncode, errors) == (0, "")
        verdict, _, pids = output.partition("\n")
        assert verdict == "passed"
        wait_for(lambda: not any(alive(int(pid)) for pid in pids.split()))


def test_limits_that_make_no_sense() -> None:
    for wrong in ({"workers": 0}, {"soft_limit": 3.0}, {"soft_limit": 0.0}, {"memory_mb": 10}):
        with pytest.raises(BadInputError):
            MathChecker(**wrong)  # type: ignore[arg-type]


def test_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gatekeeper.maths.checker.find_spec", lambda package: None)
    with pytest.raises(MissingDependencyError, match=r"llm-gatekeeper\[math\]"):
        MathChecker()


def children(pid: int) -> set[int]:
    """The living workers of a process: not what else it may have started, in other tests."""
    found = (path for path in Path("/proc").glob("[0-9]*") if _stat(path)[:1] == [pid])
    return {int(path.name) for path in found if _is_worker(path)}


def _is_worker(path: Path) -> bool:
    try:
        return b"gatekeeper.maths" in (path / "cmdline").read_bytes()
    except OSError:  # it ended meanwhile
        return False


def alive(pid: int) -> bool:
    return bool(_stat(Path(f"/proc/{pid}")))


def _stat(path: Path) -> list[int]:
    """[parent] of a process, nothing for one that has ended (a zombie has)."""
    try:
        state, parent = (path / "stat").read_text().rpartition(")")[2].split()[:2]
    except OSError:
        return []
    return [] if state == "Z" else [int(parent)]


def signal_children(which: signal.Signals) -> None:
    for pid in children(os.getpid()):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, which)


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline, "waited 20 s in vain"
        time.sleep(0.05)
