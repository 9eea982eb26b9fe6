"""Worker processes: kills, threads, asyncio, cancellation, and no process left behind."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from math_workers import EASY, LONG, alive, boxed, children, signal_children, wait_for

from gatekeeper.errors import BadInputError, GatekeeperError, MissingDependencyError
from gatekeeper.maths import MathChecker
from gatekeeper.types import Outcome, Verdict

ROOT = Path(__file__).parents[2]
PATIENT = {"soft_limit": 60.0, "hard_limit": 61.0}  # seconds: beyond any test


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
        with pytest.raises(GatekeeperError, match="closed"):
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
        output, errors = parent.communicate(timeout=120)
        assert (parent.returncode, errors) == (0, "")
        verdict, _, pids = output.partition("\n")
        assert verdict == "passed"
        wait_for(lambda: not any(alive(int(pid)) for pid in pids.split()))


def test_limits_out_of_range() -> None:
    for wrong in ({"workers": 0}, {"soft_limit": 3.0}, {"soft_limit": 0.0}, {"memory_mb": 10}):
        with pytest.raises(BadInputError):
            MathChecker(**wrong)  # type: ignore[arg-type]


def test_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gatekeeper.maths.checker.find_spec", lambda package: None)
    with pytest.raises(MissingDependencyError, match=r"\(extra math\): pip install '"):
        MathChecker()
