"""No candidate evades a label, and no verdict depends on candidates before it or beside it.

`make test-neighbours` has each of the hostile programs beside each of the honest ones.
"""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import cycle, pairwise
from statistics import median
from typing import Any

import pytest
from attacks import PROGRAMS
from attacks.evasion import EVASIONS, TASKS
from attacks.program import WRONG, Program
from busy_machine import settled
from sandboxes import PATIENCE, open_sandbox

from gatekeeper.sandbox import base, control, local, run_loop
from gatekeeper.sandbox.base import Sandbox
from gatekeeper.sandbox.inside import lockdown
from gatekeeper.sandbox.run_loop import End, Terms
from gatekeeper.sandbox.turns import Turns
from gatekeeper.sandbox.worker import LostError, OverloadedError, Spent, Worker
from gatekeeper.types import Generation, Outcome

pytestmark = pytest.mark.usefixtures("alone")

Make = Callable[..., Generation]

LIMIT = 2.0
SQUARE = "def f(x):\n    return x * x\n"
HONEST: dict[str, tuple[str, dict[str, Any]]] = {
    "literal": (SQUARE, dict(TASKS["literal"])),
    "judge": (SQUARE, dict(TASKS["judge"])),
    "three inputs": ("print(int(input()) ** 2)", dict(TASKS["stdin"])),
    "work": (
        "def f(x):\n    return sum(n * 0 for n in range(2_000_000)) + x * x\n",
        dict(TASKS["literal"]),
    ),
    "processes, threads, files": (
        "import os, subprocess, sys, tempfile, threading\n"
        "def f(x):\n"
        "    found = []\n"
        "    thread = threading.Thread(target=found.append, args=(x,))\n"
        "    thread.start()\n"
        "    thread.join()\n"
        "    with tempfile.NamedTemporaryFile('w+') as file:\n"
        "        file.write(str(found[0]))\n"
        "        file.flush()\n"
        "        code = f'print(int(open({file.name!r}).read()) ** 2)'\n"
        "        return int(subprocess.check_output([sys.executable, '-Sc', code]))\n",
        dict(TASKS["literal"]),
    ),
}
DAEMON = """
import os, time
if os.fork() == 0:
    os.setsid()
    os.closerange(0, 3)
    time.sleep(1000)
"""
SESSIONS = """
import os
for n in range(55):
    if os.fork() == 0:
        os.setsid()
        while True:
            pass
while True:
    pass
"""


@pytest.fixture(
    scope="module",
    params=["docker", "namespaces", "unshare", "landlock"],
)
def pool(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    """A sandbox of one worker, with so little memory that files in memory can fill it."""
    if request.param == "docker":
        request.getfixturevalue("engine")
    elif request.param == "unshare" and not shutil.which("bwrap"):
        pytest.skip("unshare: what `namespaces` is where bubblewrap is not installed")
    with open_sandbox(request.param, timeout=LIMIT, memory_mb=160, workers=1) as sandbox:
        yield sandbox


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("name", EVASIONS)
def test_no_label_is_evaded(pool: Sandbox, generation: Make, name: str, task: str) -> None:
    outcome = settled(partial(pool.verify, generation(EVASIONS[name]), TASKS[task]))
    assert outcome.verdict in WRONG, outcome
    assert outcome.seconds < PATIENCE
    assert pool.verify(generation(SQUARE), TASKS["literal"]).verdict == "passed"


@pytest.mark.parametrize("task", TASKS)
def test_a_daemon_is_not_a_failure(pool: Sandbox, generation: Make, task: str) -> None:
    program = "print(int(input()) ** 2)" if task == "stdin" else SQUARE
    for _ in range(2):
        outcome = pool.verify(generation(DAEMON + program), TASKS[task])
        assert outcome.verdict == "passed", outcome


def test_a_sandbox_that_is_lost_each_time_is_the_candidate_s_doing(
    pool: Sandbox, generation: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unless a control run loses its sandbox, too: then nothing is known."""

    def lose(worker: Worker, *_: Any, **__: Any) -> Any:
        worker.tried = True  # a candidate had begun
        raise LostError("the sandbox's supervisor is gone")

    monkeypatch.setattr(base, "evaluate", lose)
    outcome = settled(partial(pool.verify, generation(SQUARE), TASKS["literal"]))
    assert (outcome.verdict, outcome.error) == ("resource_exceeded", 1), outcome
    assert "twice" in outcome.detail
    with monkeypatch.context() as patch:
        controls = cycle([True, False, True])  # those that a busy machine lets end well
        patch.setattr(Sandbox, "_undisturbed", lambda *_: next(controls))
        outcome = pool.verify(generation(SQUARE), TASKS["literal"])
    assert outcome.verdict == "infra_error"
    assert control.DISTURBED in outcome.detail
    monkeypatch.setattr(control, "run_jobs", lose)
    outcome = pool.verify(generation(SQUARE), TASKS["literal"])
    assert (outcome.verdict, outcome.error) == ("infra_error", None), outcome
    assert control.DISTURBED in outcome.detail


# --- the clock ---


def test_an_answer_in_the_pipe_counts_however_late_it_is_read(
    pool: Sandbox, generation: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = run_loop._Exchange.run

    def late(exchange: Any, seconds: float, cancelled: threading.Event) -> End:
        time.sleep(1.5 * LIMIT)  # as if another thread held the interpreter
        return run(exchange, seconds, cancelled)

    monkeypatch.setattr(run_loop._Exchange, "run", late)
    assert pool.verify(generation(SQUARE), TASKS["literal"]).verdict == "passed"


def test_the_clock_stands_still_while_the_host_does_not_look(
    pool: Sandbox, generation: Make
) -> None:
    """The host's interpreter is held, as by a comparison in C, for half of the limit."""
    code = f"import time\ntime.sleep({0.75 * LIMIT})\n{SQUARE}"
    with ThreadPoolExecutor(1) as threads:
        work = threads.submit(pool.verify, generation(code), TASKS["literal"])
        time.sleep(0.2)
        switch = sys.getswitchinterval()
        sys.setswitchinterval(0.75 * LIMIT)
        try:
            end = time.monotonic() + 0.75 * LIMIT
            while time.monotonic() < end:
                pass
        finally:
            sys.setswitchinterval(switch)
        assert work.result().verdict == "passed"


class Spending:
    """A worker that reports the given processor time."""

    def __init__(self, share: float, used: float, crowded: bool) -> None:
        self._share, self._used, self._crowded = share, used, crowded
        self._started = time.monotonic()

    def spent(self, children: Any) -> Any:
        passed = time.monotonic() - self._started
        return Spent(self._share * passed, self._used * passed, self._crowded)


@pytest.mark.parametrize(
    ("share", "used", "crowded", "seconds", "end"),
    [
        (0.0, 0.0, False, 0.4, "deadline"),  # it slept
        (0.3, 0.7, False, 0.57, "deadline"),  # its waiting did not count
        (0.9, 0.1, False, 0.8, "overloaded"),
        (0.9, 1.5, False, 0.4, "deadline"),  # its children used its processor time
        (0.9, 0.1, True, 0.4, "deadline"),  # their time is not known, but they were ready to run
    ],
)
def test_waiting_for_a_processor(
    share: float, used: float, crowded: bool, seconds: float, end: str
) -> None:
    class Silent:
        children, forgiven = (), 0.0

        def run(self, seconds: float, cancelled: threading.Event) -> End:
            time.sleep(seconds)
            return End.DEADLINE

        def count(self, seconds: float) -> float:
            return seconds

    terms = Terms(0.4, 0.4, 1, 1, threading.Event())
    worker: Any = Spending(share, used, crowded)
    exchange: Any = Silent()
    started = time.monotonic()
    try:
        found = run_loop._converse(worker, exchange, terms).value
    except OverloadedError:
        found = "overloaded"
    assert found == end
    assert time.monotonic() - started > 0.95 * seconds


def test_what_is_waited_in_one_input_is_given_back_to_the_next() -> None:
    terms = Terms(2.0, 2.0, 1, 1, threading.Event())
    finished: Any = type("Finished", (), {"seconds": 1.5, "waited": 1.0})
    left = terms.after(finished)
    assert (left.seconds, left.waiting) == (1.5, 1.0)


def test_one_alone_or_all_beside_each_other() -> None:
    turns, never = Turns(), threading.Event()
    running, seen = [0], []

    def run(alone: bool) -> None:
        with turns.turn(never, alone=alone, patience=30):
            running[0] += 1
            time.sleep(0.01)
            seen.append((alone, running[0]))
            running[0] -= 1

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(run, [n % 5 == 4 for n in range(40)]))
    assert all(beside == 1 for alone, beside in seen if alone)
    assert max(beside for alone, beside in seen if not alone) > 1
    with (
        turns.turn(never, alone=False, patience=0),
        turns.turn(never, alone=True, patience=0.05),  # no candidate waits for ever
        turns.turn(never, alone=False, patience=30),
    ):
        pass


# --- neighbours ---

ALL = os.environ.get("GATEKEEPER_NEIGHBOURS") == "all"
SOME = """
    fork bomb that hides its errors [check], 2,000 threads [literal], stops itself [literal],
    memory: shared mappings [check], memory: eight processes [literal],
    an endless loop [functional],
    a flood on stdout [check], a flood on all descriptors [literal], disk: in sum [literal],
    disk: a chain of 20,000 directories [literal], sockets full of bytes [literal],
    daemons that stay [check], hogs left behind [literal], a fork bomb left behind [literal],
    a result of 100 million items [literal], left: a daemon with a socket [literal]
"""
FAMILIES = ("resources", "time", "results", "isolation")
HOSTILE = [
    program for program in PROGRAMS if program.family in FAMILIES and (ALL or program.name in SOME)
]
HOSTILE += [
    Program(f"evasion: {name}", "resources", code, TASKS["stdin"])
    for name, code in EVASIONS.items()
    if ALL or name.startswith(("starves", "memory"))
]
HOSTILE += [Program("55 sessions that spin", "resources", SESSIONS, TASKS["literal"])]


@pytest.mark.parametrize("workers", [1, 2] if ALL else [2])  # on one worker: the attack suite
@pytest.mark.parametrize(
    "name", ["docker", "namespaces", *(["landlock"] if ALL else [])], scope="module"
)
def test_pairs(request: pytest.FixtureRequest, generation: Make, name: str, workers: int) -> None:
    """After each hostile program, and beside it where there are two workers, honest ones pass.

    In Docker, whose containers share nothing but the machine, in nearly the time they take alone.
    """
    if name == "docker":
        request.getfixturevalue("engine")
    wrong: list[tuple[str, str, Outcome]] = []
    shares: list[tuple[float, float, float, str, str]] = []  # of the time that one may take
    queue = cycle(HONEST.items())
    with (
        open_sandbox(name, timeout=LIMIT / 2, workers=workers) as sandbox,
        ThreadPoolExecutor(1) as threads,
    ):

        def timed(code: str, task: dict[str, Any]) -> tuple[Outcome, float]:
            started = time.monotonic()
            outcome = sandbox.verify(generation(code), task)
            return outcome, time.monotonic() - started

        alone = {
            which: median(timed(*program)[1] for _ in range(7)) for which, program in HONEST.items()
        }

        def honest(beside: str) -> None:
            which, program = next(queue)
            outcome, seconds = timed(*program)
            if outcome.verdict != "passed":
                wrong.append((beside, which, outcome))
            shares.append(
                (seconds / (1.5 * alone[which] + 0.5), seconds, alone[which], beside, which)
            )

        for program in HOSTILE:
            if program.after:
                sandbox.verify(generation(program.after), TASKS["literal"])
            work = threads.submit(sandbox.verify, generation(program.code), program.task)
            if workers == 1:
                work.result()
            for _ in range(len(HONEST) if ALL else 1):
                honest(program.name)
            while not work.done():
                honest(program.name)
    shares.sort(reverse=True)
    for found in shares[:10]:
        print("{:.2f} of what it may take: {:.2f} s, alone {:.2f} s, beside {}: {}".format(*found))
    assert not wrong
    if ALL and name == "docker":  # on a quiet machine
        assert shares[0][0] <= 1, shares[0]


def test_limits_of_others_are_out_of_reach(generation: Make) -> None:
    """At the weakest level an ordinary user's candidate has the user of its host."""
    code = """
import os, resource
def f(x):
    done = []
    for pid in range(os.getppid() - 3, os.getpid() + 4):
        if pid in (0, 1, os.getpid()):
            continue
        for change in (
            lambda: resource.prlimit(pid, resource.RLIMIT_CORE, (0, 0)),
            lambda: os.sched_setaffinity(pid, {0}),
            lambda: os.setpriority(os.PRIO_PROCESS, pid, 19),
            lambda: os.setpriority(os.PRIO_USER, 0, 19),
            lambda: os.kill(pid, 0),
        ):
            try:
                change()
                done.append(pid)
            except OSError:
                pass
    return done
"""
    with open_sandbox("landlock", timeout=10, workers=1) as sandbox:
        outcome = sandbox.verify(generation(code), {"tests": ["assert f(0) == []"]})
    assert outcome.verdict == "passed", outcome


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0 0 4294967295\n", range(1 << 31, (1 << 31) + 8)),
        ("0 1000 1\n1 100000 65536\n", range(16385, 32769)),  # an engine of an ordinary user
        ("0 200000 65536\n", range(16384, 32768)),
        ("0 1000 1\n", range(0)),
    ],
)
def test_each_process_has_a_user_of_its_own(
    monkeypatch: pytest.MonkeyPatch, text: str, expected: range
) -> None:
    """Of those that the user namespace has: else all would be one, and share their memory."""
    monkeypatch.setattr(lockdown, "open", lambda _: io.StringIO(text), raising=False)
    assert lockdown.users(1 << 31, 8) == expected


def test_nothing_of_bubblewrap_can_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """As an ordinary user a candidate would own it, and the next one would find it."""
    monkeypatch.setattr(shutil, "which", lambda _: "/usr/bin/bwrap")
    command = local._wrappers("namespaces")[0]
    pairs = set(pairwise(command))
    made = {path for option, path in pairs if option in ("--tmpfs", "--dev")}
    assert {path for option, path in pairs if option == "--remount-ro"} == {*made, "/"}


def test_a_host_with_many_files_keeps_its_control_socket() -> None:
    """Of a candidate's descriptors, one is a socket: its own."""
    program = """
import os, resource, sys
import numpy as np
from gatekeeper.sandbox import LocalSandbox
from gatekeeper.types import Generation

resource.setrlimit(resource.RLIMIT_NOFILE, (1000, 1000))
held = [os.dup(0) for _ in range(400)]
code = '''
import os, stat
def f(x):
    found = []
    for fd in range(3, 1000):
        try:
            found.append(stat.S_ISSOCK(os.fstat(fd).st_mode))
        except OSError:
            pass
    return found
'''
with LocalSandbox(timeout=10, workers=1) as sandbox:
    task = {"tests": ["assert f(0) == [True]"]}
    outcome = sandbox.verify(Generation("c", code, *np.empty((3, 0))), task)
    sys.exit(str(outcome) if outcome.verdict != "passed" else 0)
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    if "SandboxUnavailableError" in run.stderr:
        pytest.skip(run.stderr.splitlines()[-1])
    assert run.returncode == 0, run.stderr
