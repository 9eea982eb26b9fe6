"""The verifier as a service: inputs, threads, asyncio, faults, and nothing left behind."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from docker.errors import NotFound
from sandboxes import STRONG

from gatekeeper.errors import BadInputError, GatekeeperError, SandboxUnavailableError
from gatekeeper.protocols import AsyncVerifier, Verifier
from gatekeeper.sandbox import DockerSandbox, LocalSandbox, containers, local, start
from gatekeeper.sandbox.base import Sandbox
from gatekeeper.sandbox.engine import connect
from gatekeeper.sandbox.worker import LostError, Worker
from gatekeeper.types import Generation, Outcome

Make = Callable[..., Generation]
Check = Callable[..., Outcome]
Running = Callable[[str], bool]
Open = Callable[..., contextlib.AbstractContextManager[Sandbox]]

HONEST = "def f(x): return x * x"
TASK = {"tests": ["assert f(2) == 4", "assert f(3) == 9"]}


SLEEP = "import time; time.sleep(300)"
SUPPORT = str(Path(__file__).parents[1] / "support")


def sleeper(marker: str) -> str:
    """A candidate that hides a process in a session of its own, then waits."""
    return (
        "import os, sys, time\nif not os.fork():\n    os.setsid()\n    if os.fork(): os._exit(0)\n"
        "    os.closerange(0, 64)\n"
        f"    os.execv(sys.executable, ['python', '-c', {SLEEP!r}, '{marker}'])\ntime.sleep(300)\n"
    )


def wait_until(condition: Callable[[], bool]) -> bool:
    end = time.monotonic() + 30  # less than the limits of the candidates
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.02)
    return False


def test_protocols(sandbox: Sandbox) -> None:
    assert isinstance(sandbox, Verifier)
    assert isinstance(sandbox, AsyncVerifier)
    assert sandbox.max_seconds > 1.0


def test_bad_tasks_are_refused_by_name(sandbox: Sandbox, generation: Make) -> None:
    for run in (
        sandbox.verify,
        lambda *job: asyncio.run(sandbox.averify(*job)),
        lambda *job: list(sandbox.verify_many([job])),
    ):
        with pytest.raises(BadInputError, match="id='this-one': tests="):
            run(generation(HONEST, "this-one"), {"tests": []})


@pytest.mark.parametrize("kind", [DockerSandbox, LocalSandbox])
@pytest.mark.parametrize("name", ["timeout", "memory_mb", "workers", "cpu_seconds", "disk_mb"])
@pytest.mark.usefixtures("engine")
def test_bad_limits_are_refused(kind: Any, name: str) -> None:
    wanted = "give a number above 0" if name == "timeout" else "must be a whole number from 1"
    for value in (0, -1, float("nan"), float("inf"), "5", 10**20, True):
        with pytest.raises(BadInputError, match=f"{name}={value!r}: {wanted}"):
            kind(**{name: value})


def test_setup_code_runs_after_the_candidate(check: Check) -> None:
    code = "class Node:\n    def __init__(s, v): s.v = v\ndef f(n): return n.v"
    task = {"tests": ["assert f(root) == 7"], "test_setup_code": "root = Node(7)"}
    outcome = check(code, **task)
    assert (outcome.verdict, outcome.meta["evaluation"]) == ("passed", "judge")
    outcome = check("def f(n): return 7", **task)
    assert "in the setup code (root = Node(7)): NameError" in outcome.detail


def test_in_process_only_where_that_is_accepted(
    check: Check, opened: Open, generation: Make
) -> None:
    task = {"tests": ["assert near(f(2), 4)"], "test_setup_code": "def near(a, b): return a == b"}
    liar = "class A:\n    __eq__ = lambda s, o: True\ndef f(x): return A()"
    assert check(HONEST, **task).meta["evaluation"] == "judge"
    assert check(liar, **task).verdict == "failed"
    with opened(timeout=10, workers=1, in_process=True) as accepting:
        verdicts = {}
        for code in (HONEST, "def f(x): return 5", "import os; os._exit(0)", "def f(x): 1 / 0"):
            outcome = accepting.verify(generation(code), task)
            assert outcome.meta["evaluation"] == "in_process"
            verdicts[code] = str(outcome.verdict)
        assert list(verdicts.values()) == ["passed", "failed", "failed", "failed"]
        assert accepting.verify(generation(HONEST), TASK).meta["evaluation"] == "literal"
        program = "from solution import f\nasync def test_f():\n    assert f(2) == 4\n"
        for code, verdict in ((HONEST, "passed"), ("def f(x): return 5", "failed")):
            outcome = accepting.verify(generation(code), {"test": program})
            assert (outcome.verdict, outcome.meta["evaluation"]) == (verdict, "in_process")


def test_a_batch_keeps_its_order(sandbox: Sandbox, generation: Make) -> None:
    codes = [HONEST, "def f(x): return x", "", "def f(x): return x ** 2"] * 5
    pairs = [(generation(code, str(n)), TASK) for n, code in enumerate(codes)]
    verdicts = [str(outcome.verdict) for outcome in sandbox.verify_many(iter(pairs))]
    assert verdicts == ["passed", "failed", "no_answer", "passed"] * 5


def test_a_batch_stops_when_its_reader_stops(sandbox: Sandbox, generation: Make) -> None:
    read = []

    def pairs() -> Iterator[tuple[Generation, dict[str, Any]]]:
        for n in range(1000):
            read.append(n)
            yield generation(HONEST, str(n)), TASK

    outcomes = sandbox.verify_many(pairs())
    assert next(outcomes).verdict == "passed"
    outcomes.close()  # type: ignore[attr-defined]
    assert len(read) < 100
    assert sandbox.verify(generation(HONEST), TASK).verdict == "passed"


def test_tails_of_the_output_are_kept(check: Check) -> None:
    outcome = check("import os\nos.write(1, b'\\xff' * 5000 + b'end')\n" + HONEST)
    assert outcome.verdict == "passed"
    assert outcome.meta["stdout"].endswith("\ufffdend")
    assert len(outcome.meta["stdout"]) <= 2048


def test_sixteen_threads_at_once(sandbox: Sandbox, generation: Make) -> None:
    codes = [HONEST, "def f(x): return x", "def f(x): raise ValueError", "import os; os._exit(0)"]

    def run(n: int) -> str:
        return sandbox.verify(generation(codes[n % 4], str(n)), TASK).verdict

    with ThreadPoolExecutor(16) as pool:
        verdicts = list(pool.map(run, range(64)))
    assert verdicts == ["passed", "failed", "failed", "failed"] * 16


def test_asyncio(sandbox: Sandbox, generation: Make) -> None:
    async def run() -> list[Outcome]:
        return await asyncio.gather(
            *(sandbox.averify(generation(HONEST, str(n)), TASK) for n in range(8))
        )

    assert [o.verdict for o in asyncio.run(run())] == ["passed"] * 8


def test_cancellation_ends_the_child(opened: Open, generation: Make, running: Running) -> None:
    marker = f"300.25{os.getpid()}"

    async def run(sandbox: Sandbox) -> None:
        task = asyncio.create_task(sandbox.averify(generation(sleeper(marker)), TASK))
        waiting = asyncio.create_task(sandbox.averify(generation(HONEST), TASK))
        assert await asyncio.to_thread(wait_until, lambda: running(marker))
        waiting.cancel()  # has no worker yet
        with pytest.raises(asyncio.CancelledError):
            await waiting
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not running(marker)
        outcome = await sandbox.averify(generation(HONEST), TASK)
        assert outcome.verdict == "passed"  # the worker is free again

    with opened(timeout=60, workers=1) as sandbox:
        asyncio.run(run(sandbox))


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize("backend", [*STRONG, "landlock"], indirect=True, scope="session")
def test_background_processes_are_gone_afterwards(check: Check, running: Running) -> None:
    marker = f"300.5{os.getpid()}"
    code = sleeper(marker).replace(")\ntime.sleep(300)\n", f")\n{HONEST}\n")
    assert check(code).verdict == "passed"
    assert not running(marker)


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize(
    "backend", [*STRONG, "unshare", "landlock"], indirect=True, scope="session"
)
def test_kill_of_the_parent_leaves_nothing(
    backend: str, opened: Open, running: Running, tmp_path: Path
) -> None:
    with opened():  # skips where this machine has it not
        pass
    marker = f"300.75{os.getpid()}"
    program = (
        f"import sys\nsys.path.insert(0, {SUPPORT!r})\n"
        "import time\nimport numpy as np\nfrom sandboxes import open_sandbox\n"
        "from gatekeeper.types import Generation\n"
        f"with open_sandbox({backend!r}, timeout=60, workers=1) as sandbox:\n"
        f"    sandbox.verify(Generation('k', {HONEST!r}, *np.empty((3, 0))), {TASK!r})\n"
        "    while sandbox._pool._starting:\n        time.sleep(0.01)\n"  # the spare stands, too
        f"    code = {sleeper(marker)!r}\n"
        f"    sandbox.verify(Generation('k', code, *np.empty((3, 0))), {TASK!r})\n"
    )
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen([sys.executable, "-c", program], env=environment) as parent:
        try:
            assert wait_until(lambda: running(marker))
        finally:
            parent.send_signal(signal.SIGKILL)
    assert wait_until(lambda: not running(marker))
    assert wait_until(lambda: not containers_of(parent.pid))
    assert wait_until(lambda: not list(tmp_path.iterdir()))


def containers_of(pid: int) -> list[str]:
    """The sandbox's containers that a process of this machine started, dead ones included."""
    try:
        client = connect()
    except SandboxUnavailableError:
        return []
    with contextlib.closing(client):
        found = client.api.containers(all=True, filters={"label": containers.OWNER})
        return [c["Id"] for c in found if c["Labels"][containers.OWNER].split()[1] == str(pid)]


def test_nothing_is_left(backend: str, opened: Open, generation: Make) -> None:
    def run() -> None:
        with opened(timeout=1, workers=2) as sandbox:
            for code in (HONEST, "open('a', 'w').write('x')", "1 / 0", "while True: pass"):
                sandbox.verify(generation(code), TASK)
            sandbox.verify(generation(HONEST), {"tests": ["x = f(2)\nassert x == 4"]})

    run()  # what Python and Docker's client open once
    before = leftovers()
    run()
    assert wait_until(lambda: leftovers() == before), (before, leftovers())
    with opened(timeout=1, workers=1) as sandbox:
        pass
    with pytest.raises(GatekeeperError, match="closed"):
        sandbox.verify(generation(HONEST), TASK)
    sandbox.close()  # twice is fine


def leftovers() -> tuple[Any, ...]:
    """Descriptors, children, threads, files and containers of this process."""
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    threads = sorted(t.name for t in threading.enumerate() if t.name.startswith("gatekeeper"))
    files = list(Path(tempfile.gettempdir()).glob(f"gatekeeper-{os.getpid()}-*"))
    gc.collect()  # Docker's client lets go of its connections then
    return (
        len(os.listdir("/proc/self/fd")),
        children,
        threads,
        files,
        containers_of(os.getpid()),
    )


def test_closing_ends_what_runs(opened: Open, generation: Make, running: Running) -> None:
    marker = f"300.125{os.getpid()}"
    with ThreadPoolExecutor(1) as pool, opened(timeout=60, workers=1) as sandbox:
        work = pool.submit(sandbox.verify, generation(sleeper(marker)), TASK)
        assert wait_until(lambda: running(marker))
        sandbox.close()
        assert wait_until(lambda: not running(marker))
        with pytest.raises(GatekeeperError, match="closed"):
            work.result()


def test_a_lost_worker_is_replaced(
    backend: str, opened: Open, generation: Make, running: Running
) -> None:
    """Killed from outside: tried again on a fresh worker, with the same verdict."""
    with opened(timeout=20, workers=1) as sandbox:
        assert sandbox.verify(generation(HONEST), TASK).verdict == "passed"
        for _ in range(2):
            kill_workers(sandbox)
            assert sandbox.verify(generation(HONEST), TASK).verdict == "passed"
        slow = f"import time\ntime.sleep(0.7)\n{HONEST}"
        with ThreadPoolExecutor(1) as pool:
            work = pool.submit(sandbox.verify, generation(slow), TASK)
            time.sleep(0.3)
            kill_workers(sandbox)
            assert work.result().verdict == "passed"


def test_tests_that_cannot_be_judged_use_up_no_worker(opened: Open, generation: Make) -> None:
    """Nothing ran, so the next candidate gets a worker that stands ready."""
    with opened(workers=1) as sandbox:
        assert sandbox.verify(generation(HONEST), TASK).verdict == "passed"
        outcome = sandbox.verify(generation(HONEST), {"tests": ["import gc\nassert f(2) == 4"]})
        assert (outcome.verdict, outcome.meta["evaluation"]) == ("infra_error", None)
        assert all(worker.reusable for worker in sandbox._pool._all)


def kill_workers(sandbox: Sandbox) -> None:
    """End all supervisors, from outside."""
    for worker in list(sandbox._pool._all):
        stop: Any = worker._stop
        if isinstance(sandbox, DockerSandbox):
            # A tainted one may be on its way out already.
            with contextlib.closing(connect()) as client, contextlib.suppress(NotFound):
                client.api.kill(stop.args[0])
        else:
            stop._process.kill()


@pytest.mark.parametrize(
    ("hostile", "verdict"),
    [
        ("import time; time.sleep(60)", "timeout"),
        ("while True: print('x' * 65536)", "resource_exceeded"),
    ],
)
@pytest.mark.parametrize(
    "task",
    [
        TASK,
        {"tests": ["x = f(2)\nassert x == 4"]},
        {"input_output": {"inputs": ["2"], "outputs": ["4"]}},
    ],
    ids=["literal", "judge", "script"],
)
def test_out_of_time_or_output_stands_without_a_report(
    opened: Open,
    generation: Make,
    monkeypatch: pytest.MonkeyPatch,
    task: dict[str, Any],
    hostile: str,
    verdict: str,
) -> None:
    """The host saw it itself: it needs no report of a supervisor that the candidate blocks."""
    asked = []

    def fall_silent(worker: Worker, children: Any) -> Any:
        asked.append(worker)
        raise LostError("the sandbox's supervisor does not answer (end)")

    with opened(timeout=1, workers=1) as sandbox:
        sandbox.verify(generation("1 / 0"), task)  # a worker is there
        with monkeypatch.context() as patch:
            patch.setattr(Worker, "end", fall_silent)
            outcome = sandbox.verify(generation(hostile), task)
        assert asked
        assert outcome.verdict == verdict, outcome


def test_faults_are_not_labels(
    opened: Open, generation: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(timeout=5, workers=1) as sandbox:
        with monkeypatch.context() as patch:
            for module in (local, containers):
                patch.setattr(module, "LOADER", "raise SystemExit('out of order')")
            for _ in range(5):  # until no worker from before is left
                kill_workers(sandbox)
                outcome = sandbox.verify(generation(HONEST), TASK)
                if outcome.verdict != "passed":
                    break
            assert (outcome.verdict, outcome.error) == ("infra_error", None), outcome
            assert outcome.detail
        assert sandbox.verify(generation(HONEST), TASK).verdict == "passed"


def test_the_program_of_a_supervisor_fits_into_a_socket() -> None:
    """As one message it would fit no longer: Linux takes 208 KiB by default."""
    assert max(map(len, start._program())) < 1 << 16


def test_a_worker_knows_the_importable_modules(sandbox: Sandbox) -> None:
    with sandbox._pool.worker() as worker:
        assert {"json", "math", "heapq", "asyncio", "_socket", "sys"} <= worker.modules
        assert not {"numpy", "gatekeeper", "winreg", "lib-dynload"} & worker.modules
