"""Ctrl-C, as a terminal sends it to a command and all its processes, and SIGTERM: at any moment."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from gatekeeper import Budget, VerificationGate
from gatekeeper.errors import LogError
from gatekeeper.programs.exit_code import exit_code_of
from gatekeeper.testing import make_generation

PATIENCE = 60.0  # seconds: every command here would run for longer
TASKS = Path(__file__).parents[2] / "gatekeeper" / "bundled" / "tasks.jsonl"


def eventually(holds: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + PATIENCE
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def processes(group: int) -> list[int]:
    """Of the group, those that have not ended."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, of = path.read_text().rpartition(")")[2].split()[:3]
        except OSError:
            continue
        if int(of) == group and state != "Z":
            found.append(int(path.parent.name))
    return found


def has_loaded(process: int, library: str) -> bool:
    try:
        return library in Path(f"/proc/{process}/maps").read_text()
    except OSError:
        return False


class Command:
    """A running command, leader of its own process group."""

    def __init__(self, *arguments: object) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "gatekeeper", *map(str, arguments)],
            stdin=subprocess.PIPE,  # in which nothing comes
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def loaded(self, library: str, count: int = 1) -> bool:
        """Waits until that many processes of the group have loaded a library."""
        group = self.process.pid
        return eventually(
            lambda: sum(has_loaded(pid, library) for pid in processes(group)) >= count
        )

    def interrupted(self, by: int = signal.SIGINT, *, everywhere: bool = True) -> str:
        """Its standard error, after asserting that no process of the group is left."""
        (os.killpg if everywhere else os.kill)(self.process.pid, by)
        _, err = self.process.communicate(timeout=PATIENCE)
        assert (self.process.returncode, "Traceback" in err) == (128 + by, False), err
        assert eventually(lambda: not processes(self.process.pid))
        *_, last = err.splitlines()
        assert last.startswith("gatekeeper: interrupted")
        assert err.count("interrupted") == 1
        return err


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path, rng = tmp_path_factory.mktemp("records") / "records.jsonl", random.Random(0)
    with path.open("w") as file:
        for i in range(20_000):
            h = {f"h{j}": rng.random() for j in (1, 2, 3)}
            costs = {"cost_estimate": 1 + rng.random(), "cost": 1 + rng.random()}
            file.write(json.dumps({"id": f"{i}", **h, **costs, "error": i % 3 // 2}) + "\n")
    return path


@pytest.mark.parametrize("everywhere", [True, False])
def test_replay_ends_with_its_workers(records: Path, everywhere: bool) -> None:
    command = Command("replay", records, "--seeds", 1000, "--workers", 2)
    assert command.loaded("_multiarray_umath", 3)
    command.interrupted(everywhere=everywhere)


def test_an_end_that_is_too_late_for_its_workers_is_quiet() -> None:
    """They leave semaphores, which multiprocessing removes with a warning."""
    program = """
import os
from gatekeeper.analysis.parallel import WorkerPool
from gatekeeper.programs.exit_code import exit_code_of
def program():
    WorkerPool(1).submit(len, "").result()
    os._exit(130)
exit_code_of(program)
"""
    command = [sys.executable, "-c", program]
    ended = subprocess.run(command, stderr=subprocess.PIPE, timeout=PATIENCE)
    assert (ended.returncode, ended.stderr) == (130, b"")


def test_an_interrupt_that_a_callback_swallows_ends_it_too() -> None:
    """As imports have them: Python cannot raise there."""
    program = """
import os, signal, sys, time, weakref
from gatekeeper.programs.exit_code import exit_code_of
class Item: pass
def program():
    item = Item()
    kept = weakref.ref(item, lambda ref: os.kill(os.getpid(), signal.SIGINT))
    del item
    time.sleep(600)
sys.exit(exit_code_of(program))
"""
    command = [sys.executable, "-c", program]
    ended = subprocess.run(command, stderr=subprocess.PIPE, timeout=PATIENCE)
    assert (ended.returncode, ended.stderr) == (130, b"gatekeeper: interrupted\n")


def test_paper_ends_with_its_workers() -> None:
    command = Command("paper", "--seeds", 100)
    assert command.loaded("_multiarray_umath", 2)
    command.interrupted()


SERVE = ("serve", "--upstream", "http://127.0.0.1:9/v1", "--port", 0)
WATCH = ("watch", "LOG", "--port", 0)


@pytest.mark.parametrize(
    "arguments",
    [
        ("diagnose", "RECORDS"),
        ("plan", "RECORDS"),
        ("compare", "RECORDS", "--budget", 0.2),
        ("report", "RECORDS", "-o", "report.html"),
        ("signals", "-"),
        ("verify", "math", "-", "-o", "-"),
        SERVE,
        WATCH,
    ],
    ids=str,
)
def test_other_commands_end(records: Path, arguments: tuple[object, ...], tmp_path: Path) -> None:
    """While they compute, wait for standard input, or serve."""
    with VerificationGate("cst", budget=Budget(fraction=0.2), log=tmp_path / "run.db") as gate:
        gate.maybe_verify(make_generation("a"))
    files = {"RECORDS": records, "LOG": tmp_path / "run.db"}
    words = [files.get(str(word), word) for word in arguments]
    command = Command(*[tmp_path / word if word == "report.html" else word for word in words])
    assert command.loaded("_multiarray_umath")
    time.sleep(random.Random(str(arguments)).random())
    command.interrupted()


def test_workers_end_with_a_parent_that_was_killed(records: Path) -> None:
    command = Command("replay", records, "--seeds", 1000, "--workers", 2)
    assert command.loaded("_multiarray_umath", 3)
    command.process.kill()
    command.process.communicate()
    assert eventually(lambda: not processes(command.process.pid))


def test_a_worker_that_was_killed_is_named(records: Path) -> None:
    """As the kernel kills it when memory runs out."""
    command = Command("replay", records, "--seeds", 1000, "--workers", 2)
    assert command.loaded("_multiarray_umath", 3)
    group = command.process.pid
    workers = [pid for pid in processes(group) if has_loaded(pid, "_multiarray_umath")]
    os.kill(max(workers), signal.SIGKILL)
    _, err = command.process.communicate(timeout=PATIENCE)
    assert command.process.returncode == 2
    assert err.splitlines()[-1].startswith("gatekeeper: a worker process was killed")
    assert "Traceback" not in err


def test_programs_that_never_end(tmp_path: Path) -> None:
    item = {"code": "def f():\n    while True: pass", "tests": ["assert f()"]}
    items, out = tmp_path / "items.jsonl", tmp_path / "out.jsonl"
    items.write_text("".join(json.dumps({"id": i, **item}) + "\n" for i in range(9)))
    command = Command(
        *("verify", "code", items, "--sandbox", "local", "--timeout", PATIENCE, "--out", out)
    )
    assert eventually(out.exists)
    command.interrupted()


@pytest.fixture
def silent() -> Iterator[socket.socket]:
    """A server that takes requests and never answers."""
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        server.settimeout(PATIENCE)
        yield server


@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGTERM], ids=("ctrl-c", "sigterm"))
def test_a_server_that_never_answers(by: int, silent: socket.socket, tmp_path: Path) -> None:
    """The message says how far the run is, and how to continue."""
    url = f"http://127.0.0.1:{silent.getsockname()[1]}/v1"
    command = Command(
        *("run", TASKS, "--generator", "openai", "--model", "m", "--base-url", url),
        *("--sandbox", "local", "--log", tmp_path / "run.db"),
    )
    connection, _ = silent.accept()
    with connection:
        plan, last = command.interrupted(by).splitlines()
    assert re.search("the first 50 are verified to warm up, then at most 110 of the other", plan)
    said = "interrupted by SIGTERM" if by == signal.SIGTERM else "interrupted"
    assert last.endswith(f"{said} after 0 of 600 outputs; the same command continues")


@pytest.mark.parametrize("seed", range(5))
def test_at_any_moment_of_the_start(seed: int, tmp_path: Path) -> None:
    """From the first import on, also in a library of C, in which the model answers."""
    command = Command("run", TASKS, "--sandbox", "local", "--log", tmp_path / "run.db")
    assert command.loaded("_multiarray_umath")
    time.sleep(random.Random(seed).random() * 3)
    command.interrupted()


@pytest.mark.parametrize("error", [LogError("no library"), SystemError("no C API")])
def test_what_an_interrupted_import_raises_is_the_interrupt(
    error: Exception, capsys: pytest.CaptureFixture[str]
) -> None:
    """A library of C raises an error of its own where Ctrl-C ended its import."""

    def program() -> int:
        try:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(PATIENCE)
        except KeyboardInterrupt:
            raise error from None
        raise AssertionError

    assert exit_code_of(program) == 130
    assert "interrupted" in capsys.readouterr().err


@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGTERM], ids=("ctrl-c", "sigterm"))
def test_a_program_with_nothing_to_close_tells_the_signal_too(by: int) -> None:
    """It has ended before another thread has had its turn."""
    done = subprocess.run(
        [sys.executable, "-c", WAITING, str(int(by))], capture_output=True, text=True
    )
    said = "interrupted by SIGTERM" if by == signal.SIGTERM else "interrupted"
    assert (done.returncode, done.stderr) == (128 + by, f"gatekeeper: {said}\n")


WAITING = """
import os, signal, sys, time
from gatekeeper.programs.exit_code import exit_code_of

def program():
    sys.setswitchinterval(10)
    os.kill(os.getpid(), int(sys.argv[1]))
    time.sleep(60)

sys.exit(exit_code_of(program))
"""


@pytest.mark.parametrize("again", [signal.SIGTERM, signal.SIGINT], ids=("sigterm", "ctrl-c"))
def test_a_second_signal_after_sigterm(again: int) -> None:
    """`timeout` sends SIGTERM to the command and to its group; Ctrl-C ends it at once."""
    done = subprocess.run(
        [sys.executable, "-c", CLOSING, str(int(again))], capture_output=True, text=True
    )
    assert done.returncode == 128 + signal.SIGTERM
    assert done.stdout == ("closed\n" if again == signal.SIGTERM else "")
    assert done.stderr == "gatekeeper: interrupted by SIGTERM\n"


CLOSING = """
import os, signal, sys, time
from gatekeeper.programs.exit_code import exit_code_of

def program():
    try:
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(60)
    finally:
        time.sleep(0.2)  # so that the first one is noted
        os.kill(os.getpid(), int(sys.argv[1]))
        try:
            time.sleep(0.5)
        except KeyboardInterrupt:
            time.sleep(60)
        print("closed", flush=True)

sys.exit(exit_code_of(program))
"""


def test_a_child_that_is_terminated_is_no_interrupt() -> None:
    """A forked process has the pipe in which the signals of its parent are noted, at once too."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", FORKING],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert (done.returncode, done.stdout, done.stderr) == (7, "ended by SIGTERM\n", "")


FORKING = """
import os, signal, sys, time
from gatekeeper.programs.exit_code import exit_code_of

def program():
    for _ in range(300):
        child = os.fork()
        if child == 0:
            time.sleep(60)
        os.kill(child, signal.SIGTERM)
        assert os.waitpid(child, 0)[1] == signal.SIGTERM
    print("ended by SIGTERM")
    time.sleep(9)  # an interrupt would have ended it by then
    return 7

sys.exit(exit_code_of(program))
"""


HELD = """
import os, time
from gatekeeper.programs.interrupt import prompt_interrupts

with prompt_interrupts():
    parent = os.getpid()
    if os.fork() == 0:
        while os.getppid() == parent:
            time.sleep(0.01)
        os._exit(0)
"""


def test_a_child_that_outlives_the_program_does_not_hold_it() -> None:
    """A forked process has the pipe that the watching thread reads."""
    subprocess.run([sys.executable, "-c", HELD], check=True, timeout=PATIENCE)
