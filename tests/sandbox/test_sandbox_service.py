"""The verifier as a service: inputs, threads, asyncio, faults, and nothing left behind."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from gatekeeper.errors import BadInputError
from gatekeeper.protocols import AsyncVerifier, Verifier
from gatekeeper.sandbox import LocalSandbox, child, local
from gatekeeper.types import Generation, Outcome

Make = Callable[..., Generation]
Check = Callable[..., Outcome]
Running = Callable[[str], bool]

ROOT = Path(__file__).parents[2]
HONEST = "def f(x): return x * x"
TASK = {"tests": ["assert f(2) == 4", "assert f(3) == 9"]}


def sleeper(marker: str) -> str:
    """A candidate that hides a process in a session of its own, then waits."""
    return (
        "import os, time\nif not os.fork():\n    os.setsid()\n    if os.fork(): os._exit(0)\n"
        "    os.closerange(0, 64)\n"
        f"    os.execv('/bin/sleep', ['sleep', '{marker}'])\ntime.sleep(300)\n"
    )


def wait_until(condition: Callable[[], bool], seconds: float = 10) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.02)
    return False


def test_protocols(sandbox: LocalSandbox) -> None:
    assert isinstance(sandbox, Verifier)
    assert isinstance(sandbox, AsyncVerifier)
    assert sandbox.max_seconds > 1.0


@pytest.mark.parametrize(
    "task",
    [
        None,
        {},
        {"tests": []},
        {"tests": "assert f(1) == 1"},
        {"tests": ["assert f(1 =="]},
        {"tests": [1]},
        {"tests": ["assert f(1) == 1"], "test_setup_code": 1},
    ],
)
def test_bad_tasks_are_refused_by_name(sandbox: LocalSandbox, generation: Make, task: Any) -> None:
    with pytest.raises(BadInputError, match="id='this-one'"):
        sandbox.verify(generation(HONEST, "this-one"), task)
    with pytest.raises(BadInputError, match="id='this-one'"):
        asyncio.run(sandbox.averify(generation(HONEST, "this-one"), task))


@pytest.mark.parametrize("name", ["timeout", "memory_mb", "workers", "cpu_seconds"])
def test_bad_limits_are_refused(name: str) -> None:
    with pytest.raises(BadInputError, match=f"{name}=0"):
        LocalSandbox(**{name: 0})  # type: ignore[arg-type]


def test_setup_code_runs_after_the_candidate(check: Check) -> None:
    code = "class Node:\n    def __init__(s, v): s.v = v\ndef f(n): return n.v"
    task = {"tests": ["assert f(root) == 7"], "test_setup_code": "root = Node(7)"}
    outcome = check(code, **task)
    assert (outcome.verdict, outcome.meta["evaluation"]) == ("passed", "literal")
    outcome = check("def f(n): return 7", **task)
    assert "in the setup code: NameError" in outcome.detail


def test_other_tests_run_in_process_only_where_that_is_accepted(
    check: Check, generation: Make
) -> None:
    task = {"tests": ["assert near(f(2), 4)"], "test_setup_code": "def near(a, b): return a == b"}
    outcome = check(HONEST, **task)
    assert outcome.verdict == "infra_error"
    assert outcome.error is None
    assert "in_process=True" in outcome.detail
    accepting = LocalSandbox(timeout=5, in_process=True)
    outcome = accepting.verify(generation(HONEST), task)
    assert (outcome.verdict, outcome.meta["evaluation"]) == ("passed", "in_process")
    outcome = accepting.verify(generation("def f(x): return 5"), task)
    assert (outcome.verdict, outcome.detail) == ("failed", "in test 1: AssertionError")
    assert accepting.verify(generation("import os; os._exit(0)"), task).verdict == "failed"
    assert accepting.verify(generation(HONEST), TASK).meta["evaluation"] == "literal"


def test_tails_of_the_output_are_kept(check: Check) -> None:
    outcome = check("import os\nos.write(1, b'\\xff' * 5000 + b'end')\n" + HONEST)
    assert outcome.verdict == "passed"
    assert outcome.meta["stdout"].endswith("\ufffdend")
    assert len(outcome.meta["stdout"]) <= 2048


def test_sixteen_threads_at_once(sandbox: LocalSandbox, generation: Make) -> None:
    codes = [HONEST, "def f(x): return x", "def f(x): raise ValueError", "import os; os._exit(0)"]

    def run(n: int) -> str:
        return sandbox.verify(generation(codes[n % 4], str(n)), TASK).verdict

    with ThreadPoolExecutor(16) as pool:
        verdicts = list(pool.map(run, range(64)))
    assert verdicts == ["passed", "failed", "failed", "failed"] * 16


def test_asyncio(sandbox: LocalSandbox, generation: Make) -> None:
    async def run() -> list[Outcome]:
        return await asyncio.gather(
            *(sandbox.averify(generation(HONEST, str(n)), TASK) for n in range(8))
        )

    assert [o.verdict for o in asyncio.run(run())] == ["passed"] * 8


@pytest.mark.usefixtures("namespaces")
def test_cancellation_ends_the_child(generation: Make, running: Running) -> None:
    sandbox = LocalSandbox(timeout=60, workers=1)

    async def run() -> None:
        task = asyncio.create_task(sandbox.averify(generation(sleeper("300.25")), TASK))
        waiting = asyncio.create_task(sandbox.averify(generation(HONEST), TASK))
        assert await asyncio.to_thread(wait_until, lambda: running("300.25"))
        waiting.cancel()  # has no worker yet
        with pytest.raises(asyncio.CancelledError):
            await waiting
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not running("300.25")
        outcome = await sandbox.averify(generation(HONEST), TASK)
        assert outcome.verdict == "passed"  # the worker is free again

    asyncio.run(run())


@pytest.mark.usefixtures("namespaces")
def test_background_processes_are_gone_afterwards(check: Check, running: Running) -> None:
    code = sleeper("300.5").replace("time.sleep(300)", HONEST)
    assert check(code).verdict == "passed"
    assert not running("300.5")


@pytest.mark.usefixtures("namespaces")
@pytest.mark.parametrize("defiant", [False, True])
def test_kill_of_the_parent_leaves_nothing(
    running: Running, isolation: str, tmp_path: Path, defiant: bool
) -> None:
    marker = f"300.75{int(defiant)}"
    code = sleeper(marker)
    if defiant:  # takes back the kernel's promise to kill it with its parent
        code = f"import ctypes\nctypes.CDLL(None).prctl(1, 0)\n{code}"
    program = (
        "import numpy as np\nfrom gatekeeper.sandbox import LocalSandbox\n"
        "from gatekeeper.types import Generation\n"
        f"LocalSandbox(timeout=60).verify(Generation('k', {code!r}, *np.empty((3, 0))), {TASK!r})"
    )
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen([sys.executable, "-c", program], cwd=ROOT, env=environment) as parent:
        try:
            assert wait_until(lambda: running(marker), 30)
        finally:
            parent.send_signal(signal.SIGKILL)
    assert wait_until(lambda: not running(marker))
    if "readonly" in isolation:
        assert wait_until(lambda: not list(tmp_path.iterdir()))


def test_nothing_is_left(check: Check, hasty: LocalSandbox) -> None:
    check("import time\ntime.sleep(60)", by=hasty)
    check(HONEST)
    descriptors = len(os.listdir("/proc/self/fd"))
    for code in (HONEST, "open('a', 'w').write('x')", "1 / 0"):
        check(code)
    assert len(os.listdir("/proc/self/fd")) == descriptors
    assert not list(Path(tempfile.gettempdir()).glob(f"gatekeeper-{os.getpid()}-*"))


def test_faults_are_not_labels(
    check: Check, hasty: LocalSandbox, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(sys, "executable", str(tmp_path / "no-python"))
        outcome = check(HONEST)
        assert (outcome.verdict, outcome.error) == ("infra_error", None)
        assert "no-python" in outcome.detail
    with monkeypatch.context() as patch:
        patch.setattr(tempfile, "tempdir", str(tmp_path / "no-directory"))
        assert check(HONEST).verdict == "infra_error"
    broken = tmp_path / "child.py"
    broken.write_text("raise SystemExit('out of order')")
    with monkeypatch.context() as patch:
        patch.setattr(local, "_PROGRAM", str(broken))
        outcome = check(HONEST)
        assert outcome.verdict == "infra_error"
        assert "out of order" in outcome.detail
    broken.write_text("import time; time.sleep(60)")
    with monkeypatch.context() as patch:
        patch.setattr(local, "_PROGRAM", str(broken))
        assert (
            check(HONEST, by=hasty).verdict == "infra_error"
        )  # a slow start is not a slow candidate
    assert check(HONEST).verdict == "passed"


def test_without_namespaces(
    check: Check,
    hasty: LocalSandbox,
    running: Running,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """What remains of the promises where the kernel allows none."""
    source = Path(child.__file__).read_text()
    poorer = tmp_path / "child.py"
    poorer.write_text(source.replace("separate = _separate(libc)", "separate = False"))
    tmp_path.chmod(0o755)
    monkeypatch.setattr(local, "_PROGRAM", str(poorer))
    outcome = check(HONEST)
    assert (outcome.verdict, outcome.meta["isolation"]) == ("passed", "process")
    assert check("def f(x): return x").verdict == "failed"
    assert check("import time\ntime.sleep(60)", by=hasty).verdict == "timeout"
    assert check("a = [0] * 10**9").verdict == "resource_exceeded"
    seen = "import os\ndef f(x):\n    open('left', 'w').close()\n    return os.listdir('.')"
    assert check(seen, ["assert f(0) == ['left']"]).verdict == "passed"
    background = f"import subprocess\nsubprocess.Popen(['/bin/sleep', '300.875'])\n{HONEST}"
    assert check(background).verdict == "passed"
    assert not running("300.875")
    deep = "import os\nfor _ in range(1200):\n    os.mkdir('d')\n    os.chdir('d')\n"
    assert check(deep + HONEST).verdict == "passed"
    assert not list(Path(tempfile.gettempdir()).glob(f"gatekeeper-{os.getpid()}-*"))
