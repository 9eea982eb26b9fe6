"""Faults from outside, on real components: no label, always an outcome, nothing left behind.

The Docker tests have an engine of their own (`dockerd`, with its data in a small tmpfs), so that
it can be stopped, filled and silenced. Between it and the sandbox stands a `Relay`.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import gc
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from gatekeeper.errors import GatekeeperError, SandboxUnavailableError
from gatekeeper.sandbox import DockerSandbox, LocalSandbox, control, image
from gatekeeper.types import Generation, Outcome

# The engine's client leaves the socket of a connection that fails to the garbage collector.
pytestmark = pytest.mark.filterwarnings(
    "ignore:unclosed <socket:ResourceWarning",
    "ignore:Exception ignored in. <socket:pytest.PytestUnraisableExceptionWarning",
)

Make = Callable[..., Generation]
Sandbox = DockerSandbox | LocalSandbox

ROOT = Path(__file__).parents[2]
HONEST = "def f(x): return x * x"
TASK = {"tests": ["assert f(2) == 4", "assert f(3) == 9"]}
LEAVES = f"open('left', 'w').close()\n{HONEST}"  # taints its container
PATIENCE = 40.0  # seconds for an operation of about one second, on a loaded machine
IMAGE_LABEL = "org.gatekeeper.sandbox.owner"


def busy(name: str, seconds: float) -> str:
    """An honest candidate that names its process `name`, so that a test can find it."""
    call = f"import ctypes, time\nctypes.CDLL(None).prctl(15, b'{name}')\ntime.sleep({seconds})\n"
    return call + HONEST


def hiding(name: str) -> str:
    """A candidate with a process in a session of its own, for which it does not wait."""
    return f"import os\nif not os.fork():\n    os.setsid()\n    os.fork()\n{busy(name, 600)}"


def named(name: str) -> list[int]:
    """The processes of this machine that are called `name`."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):  # it ended meanwhile
            if Path(f"/proc/{pid}/comm").read_text() == f"{name}\n":
                found.append(int(pid))
    return found


def parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def wait_until(condition: Callable[[], Any], seconds: float = PATIENCE) -> Any:
    """The value of `condition` once it is true; fails if it never is."""
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)
    return found


def descriptors() -> int:
    gc.collect()  # clients of the engine, and the relay's ends of their connections
    return len(os.listdir("/proc/self/fd"))


class Relay:
    """Forwards all data to and from the engine, until a test sets a fault."""

    def __init__(self, path: str, engine: str) -> None:
        self.path, self._engine = path, engine
        self.speaking = threading.Event()
        self.speaking.set()
        self.delay = 0.0  # seconds before each request
        self.failures = 0  # of the next requests to create a container
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(path)
        self._listener.listen(64)
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self.speaking.set()
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        self.speaking.wait()
        with client, socket.socket(socket.AF_UNIX) as engine, contextlib.suppress(OSError):
            engine.connect(self._engine)
            back = threading.Thread(target=self._answer, args=(engine, client), daemon=True)
            back.start()
            while data := client.recv(1 << 16):
                time.sleep(self.delay)
                self.speaking.wait()
                if self.failures and re.match(rb"POST \S*/containers/create", data):
                    self.failures -= 1
                    body = b'{"message": "out of order"}'
                    head = f"HTTP/1.1 500 Oh\r\nContent-Length: {len(body)}\r\n"
                    client.sendall(f"{head}Content-Type: application/json\r\n\r\n".encode() + body)
                    break
                engine.sendall(data)
            engine.shutdown(socket.SHUT_RDWR)
            back.join()

    def _answer(self, engine: socket.socket, client: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := engine.recv(1 << 16):
                self.speaking.wait()
                client.sendall(data)
            client.shutdown(socket.SHUT_RDWR)


class Engine:
    """A Docker engine of one's own."""

    def __init__(self, folder: Path, *options: str) -> None:
        self._folder, self.data, self._options = folder, folder / "data", options
        self.socket = str(folder / "docker.sock")
        self.client: Any = None
        self._daemon: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        for last in (False, False, True):  # it gives its containerd ten seconds, busy or not
            try:
                self._start()
                return
            except AssertionError:
                if last:
                    raise

    def _start(self) -> None:
        """Raises OSError, or AssertionError with the end of the daemon's log."""
        log = self._folder / "log"
        with log.open("ab") as output:
            self._daemon = subprocess.Popen(
                [
                    # A network of its own: without a bridge it removes the machine's, which is
                    # that of another engine.
                    *("unshare", "--net"),
                    *("dockerd", "--host", f"unix://{self.socket}", "--data-root", str(self.data)),
                    *("--exec-root", str(self._folder / "exec"), "--bridge=none"),
                    *("--pidfile", str(self._folder / "pid"), "--iptables=false"),
                    *self._options,
                ],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        import docker

        def answers() -> bool:
            assert self._daemon is not None
            assert self._daemon.poll() is None, log.read_text()[-300:]
            with socket.socket(socket.AF_UNIX) as engine, contextlib.suppress(OSError):
                engine.connect(self.socket)
                engine.sendall(b"GET /_ping HTTP/1.0\r\n\r\n")
                return b" 200 " in engine.recv(64)
            return False

        wait_until(answers)
        self.client = docker.DockerClient(f"unix://{self.socket}")

    def stop(self, number: signal.Signals = signal.SIGTERM) -> None:
        if self._daemon is not None:
            self._daemon.send_signal(number)
            self._daemon.wait(PATIENCE)
        if self.client is not None:
            self.client.close()

    def containers(self) -> list[str]:
        return [found["Id"] for found in self.client.api.containers(all=True)]

    def kill(self) -> None:
        """All containers, from outside, and those that a spare was just starting in."""

        def gone() -> bool:
            for identity in self.containers():
                with contextlib.suppress(Exception):  # it is gone already
                    self.client.api.kill(identity)
            return not self.containers()

        wait_until(gone)

    def of(self, pid: int) -> Any:
        """The container that a process is in."""
        group = Path(f"/proc/{pid}/cgroup").read_text()
        identity = re.search(r"[0-9a-f]{64}", group)
        assert identity, group
        return self.client.containers.get(identity[0])


@contextlib.contextmanager
def own_engine(folder: Path, *options: str) -> Iterator[Engine]:
    """An engine with the sandbox's image; `options` of dockerd."""
    pytest.importorskip("docker")
    if os.geteuid() or not shutil.which("dockerd"):
        pytest.skip("only root can start an engine of its own, and with dockerd installed")
    engine = Engine(folder, *options)
    folder.chmod(0o711)  # for users of its containers
    engine.data.mkdir()
    small = ["mount", "-t", "tmpfs", "-o", "size=640m", "tmpfs", str(engine.data)]
    if subprocess.run(small, capture_output=True).returncode:
        pytest.skip("no tmpfs can be mounted here")
    try:
        try:
            engine.start()
            image.build(engine.client)
        except (OSError, AssertionError, GatekeeperError) as problem:
            pytest.skip(f"no engine of its own: {problem}")
        yield engine
    finally:
        with contextlib.suppress(Exception):
            engine.kill()
        engine.stop()
        # An engine that was killed leaves containerd's shims behind, with nothing in them.
        subprocess.run(["pkill", "-KILL", "-f", f"containerd-shim.*{engine.data.parent}/"])
        mounted = [*(engine.data.parent / "exec" / "netns").glob("*"), engine.data]
        subprocess.run(["umount", "--lazy", *mounted], capture_output=True)


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    with own_engine(tmp_path_factory.mktemp("engine")) as engine:
        yield engine


@pytest.fixture
def relay(engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Relay]:
    """DOCKER_HOST names it. Afterwards, no container is left."""
    relay = Relay(str(tmp_path / "relay.sock"), engine.socket)
    monkeypatch.setenv("DOCKER_HOST", f"unix://{relay.path}")
    yield relay
    relay.close()
    wait_until(lambda: not engine.containers())


LEVELS = ["docker", "namespaces", "landlock"]


@pytest.fixture(params=LEVELS)
def level(request: pytest.FixtureRequest) -> str:
    level = str(request.param)
    if level == "docker":
        request.getfixturevalue("relay")
        return level
    try:
        LocalSandbox(isolation=level).close()  # type: ignore[arg-type]
    except SandboxUnavailableError as problem:
        pytest.skip(str(problem))
    return level


@pytest.fixture
def make(level: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Makes sandboxes of the level. Afterwards they are closed, and nothing is left of them."""
    folder = tmp_path / "tmp"
    folder.mkdir()
    folder.chmod(0o1777)
    tmp_path.chmod(0o755)
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    before = descriptors()
    made: list[Sandbox] = []

    def make(**limits: Any) -> Sandbox:
        kind: Any = DockerSandbox
        if level != "docker":
            kind = functools.partial(LocalSandbox, isolation=level)
        made.append(kind(**limits))
        return made[-1]

    yield make
    for sandbox in made:
        sandbox.close()
    wait_until(lambda: not list(folder.iterdir()))
    made.clear()
    wait_until(lambda: descriptors() <= before)


class Running:
    """A verification in a thread of its own, of a candidate that a test can find."""

    def __init__(self, sandbox: Sandbox, generation: Generation, name: str) -> None:
        self._threads = ThreadPoolExecutor(1)
        self._work = self._threads.submit(sandbox.verify, generation, TASK)
        self.pid = wait_until(lambda: named(name))[0]

    def outcome(self) -> Outcome:
        try:
            return self._work.result(PATIENCE)
        finally:
            self._threads.shutdown(wait=False)


def fine(sandbox: Sandbox, generation: Make) -> None:
    """Assert that the sandbox works: it passes a right candidate and fails a wrong one."""
    assert sandbox.verify(generation(HONEST), TASK).verdict == "passed"
    assert sandbox.verify(generation("def f(x): return x"), TASK).verdict == "failed"


def is_fault(outcome: Outcome) -> bool:
    return outcome.verdict == "infra_error" and outcome.error is None and bool(outcome.detail)


@pytest.mark.parametrize("fault", [signal.SIGKILL, signal.SIGSTOP])
def test_a_supervisor_that_is_killed_or_stopped(make: Any, generation: Make, fault: int) -> None:
    sandbox = make(timeout=8, workers=1)
    running = Running(sandbox, generation(busy(f"gk-sig{fault}", 1)), f"gk-sig{fault}")
    os.kill(parent(running.pid), fault)
    assert running.outcome().verdict == "passed"
    fine(sandbox, generation)


@pytest.mark.parametrize("fault", ["kill", "pause"])
def test_a_container_that_is_killed_or_paused(
    relay: Relay, engine: Engine, generation: Make, fault: str
) -> None:
    with DockerSandbox(timeout=3, workers=1) as sandbox:
        running = Running(sandbox, generation(busy(f"gk-{fault}", 1)), f"gk-{fault}")
        getattr(engine.of(running.pid), fault)()
        assert running.outcome().verdict == "passed"
        fine(sandbox, generation)


def test_an_engine_whose_containers_have_users_of_their_own(
    generation: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Root of a container is another user than the root that checks."""
    with (
        tempfile.TemporaryDirectory() as folder,
        own_engine(Path(folder), "--userns-remap=default") as engine,
    ):
        monkeypatch.setenv("DOCKER_HOST", f"unix://{engine.socket}")
        with DockerSandbox(timeout=8, workers=1) as sandbox:
            fine(sandbox, generation)


def test_a_fault_that_stays_is_no_label(
    make: Any, generation: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It hits the control run, too; a fault of the candidate alone would count as its failure."""
    monkeypatch.setattr(control, "_CODE", busy("gk-again", 20))
    sandbox = make(timeout=30, workers=1)
    running = Running(sandbox, generation(busy("gk-again", 20)), "gk-again")
    killed = set()
    stop = threading.Event()

    def kill() -> None:
        while not stop.wait(0.02):
            for pid in named("gk-again"):
                with contextlib.suppress(OSError):
                    if (supervisor := parent(pid)) != 1:  # it is gone already
                        killed.add(supervisor)
                        os.kill(supervisor, signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        assert is_fault(running.outcome())
    finally:
        stop.set()
        killer.join()
    assert 2 <= len(killed) <= 6  # three tries, and a control run after each
    fine(sandbox, generation)


def test_the_engine_stops_and_starts_again(relay: Relay, engine: Engine, generation: Make) -> None:
    sandbox = DockerSandbox(timeout=8, workers=2)
    running = Running(sandbox, generation(busy("gk-engine", 3)), "gk-engine")
    engine.stop()
    try:
        outcome = running.outcome()  # the daemon may let it finish
        assert outcome.verdict == "passed" or is_fault(outcome)
        wait_until(lambda: is_fault(sandbox.verify(generation(HONEST), TASK)))
        pairs = [(generation(HONEST), TASK)] * 4  # in threads that have no client yet
        assert all(is_fault(outcome) for outcome in sandbox.verify_many(pairs))
        with pytest.raises(SandboxUnavailableError):
            DockerSandbox()
    finally:
        engine.start()
    fine(sandbox, generation)
    running = Running(sandbox, generation(busy("gk-engine2", 2)), "gk-engine2")
    engine.stop(signal.SIGKILL)
    engine.start()
    assert running.outcome().verdict == "passed"
    assert sandbox.verify(generation(LEAVES), TASK).verdict == "passed"
    fine(sandbox, generation)
    sandbox.close()


def test_the_image_is_removed(relay: Relay, engine: Engine, generation: Make) -> None:
    with DockerSandbox(timeout=8, workers=1) as sandbox:
        fine(sandbox, generation)
        saved = b"".join(engine.client.images.get(sandbox.image.name).save(named=True))
        engine.kill()
        engine.client.images.remove(sandbox.image.id, force=True)
        try:
            outcome = sandbox.verify(generation(HONEST), TASK)
            assert is_fault(outcome)
            assert "image" in outcome.detail.lower()
            with pytest.raises(SandboxUnavailableError, match="gatekeeper sandbox build"):
                DockerSandbox()
        finally:
            engine.client.images.load(saved)
        fine(sandbox, generation)


def test_the_engine_s_disk_is_full(relay: Relay, engine: Engine, generation: Make) -> None:
    with DockerSandbox(timeout=8, workers=1) as sandbox:
        fine(sandbox, generation)
        filler = engine.data / "filler"

        def full() -> bool:
            engine.kill()  # what is removed after it was filled leaves room for one more start
            with filler.open("ab") as file, contextlib.suppress(OSError):
                while True:
                    file.write(bytes(1 << 20))
                    file.flush()
            return is_fault(sandbox.verify(generation(HONEST), TASK))

        wait_until(full)
        filler.unlink()
        fine(sandbox, generation)


def test_no_temporary_directory(
    make: Any, generation: Make, monkeypatch: pytest.MonkeyPatch, level: str
) -> None:
    sandbox = make(timeout=8, workers=1)
    fine(sandbox, generation)
    with monkeypatch.context() as patch:
        patch.setattr("tempfile.tempdir", "/nowhere")
        patch.setenv("TMPDIR", "/nowhere")
        for _ in range(3):
            running = Running(sandbox, generation(busy("gk-tmp", 1)), "gk-tmp")
            os.kill(parent(running.pid), signal.SIGKILL)
            if is_fault(outcome := running.outcome()):
                break
            assert outcome.verdict == "passed"
        else:
            assert level != "docker"
    fine(sandbox, generation)


def test_an_engine_that_does_not_answer(
    relay: Relay, engine: Engine, generation: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gatekeeper.sandbox.containers.ENGINE_SECONDS", 1.0)
    monkeypatch.setattr("gatekeeper.sandbox.docker_sandbox.ANSWER_SECONDS", 1.0)
    with DockerSandbox(timeout=2, workers=2) as sandbox:
        fine(sandbox, generation)
        engine.kill()
        relay.speaking.clear()
        started = time.monotonic()
        try:
            pairs = [(generation(HONEST), TASK)] * 3
            assert all(is_fault(outcome) for outcome in sandbox.verify_many(pairs))
            with pytest.raises(SandboxUnavailableError):
                DockerSandbox()
            # Three starts, each of a few questions; without a limit it would be minutes.
            assert time.monotonic() - started < PATIENCE
        finally:
            relay.speaking.set()
        fine(sandbox, generation)
        relay.speaking.clear()  # a sandbox can be closed all the same
    relay.speaking.set()
    time.sleep(1.0)  # the engine now handles the requests from while it was silent
    DockerSandbox().close()


def test_an_engine_that_is_slow(relay: Relay, generation: Make) -> None:
    relay.delay = 0.1
    with DockerSandbox(timeout=8, workers=1) as sandbox:
        for _ in range(2):
            assert sandbox.verify(generation(LEAVES), TASK).verdict == "passed"
        fine(sandbox, generation)


def test_starts_that_fail_for_a_while(relay: Relay, generation: Make) -> None:
    with DockerSandbox(timeout=8, workers=1) as sandbox:
        relay.failures = 2
        assert sandbox.verify(generation(HONEST), TASK).verdict == "passed"
    with DockerSandbox(timeout=8, workers=1) as sandbox:
        relay.failures = 3
        outcome = sandbox.verify(generation(HONEST), TASK)
        assert is_fault(outcome)
        assert "out of order" in outcome.detail
        fine(sandbox, generation)


def test_what_a_candidate_leaves_costs_its_container(
    relay: Relay, engine: Engine, generation: Make
) -> None:
    with DockerSandbox(timeout=8, workers=1) as sandbox:
        seen: set[str] = set()
        for number in range(3):
            code = f"import os\ndef f(x): return [x * x, os.path.exists('left')]\n{LEAVES}"
            code = code.replace(HONEST, "")
            empty = {"tests": ["assert f(2) == [4, True]"]}
            assert sandbox.verify(generation(code), empty).verdict == "passed"
            walk = "for at in ('/tmp', '/dev/shm') for _, _, files in os.walk(at) for name in files"
            look = f"import os\ndef f(x): return [name {walk}]"
            clean = {"tests": ["assert f(2) == []"]}
            assert sandbox.verify(generation(look), clean).verdict == "passed"
            running = Running(
                sandbox, generation(busy(f"gk-left{number}", 0.3)), f"gk-left{number}"
            )
            seen.add(engine.of(running.pid).id)
            assert running.outcome().verdict == "passed"
        assert len(seen) == 3


def test_close_while_candidates_run(make: Any, generation: Make) -> None:
    sandbox = make(timeout=120, workers=2)
    running = [Running(sandbox, generation(hiding(f"gk-close{n}")), f"gk-close{n}") for n in (0, 1)]
    waiting = ThreadPoolExecutor(1).submit(sandbox.verify, generation(HONEST), TASK)
    started = time.monotonic()
    sandbox.close()
    for work in (*(r.outcome for r in running), waiting.result):
        with contextlib.suppress(GatekeeperError):  # "the sandbox is closed"
            assert is_fault(work())
    assert time.monotonic() - started < PATIENCE  # not the candidates' ten minutes
    assert not named("gk-close0") + named("gk-close1")
    with pytest.raises(GatekeeperError, match="closed"):
        sandbox.verify(generation(HONEST), TASK)
    sandbox.close()


def test_cancellation_and_abandonment_free_the_workers(make: Any, generation: Make) -> None:
    sandbox = make(timeout=120, workers=1)

    async def cancel() -> None:
        work = asyncio.create_task(sandbox.averify(generation(hiding("gk-async")), TASK))
        waiting = asyncio.create_task(sandbox.averify(generation(HONEST), TASK))
        assert await asyncio.to_thread(wait_until, lambda: named("gk-async"))
        for task in (waiting, work):
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        assert not named("gk-async")
        assert (await sandbox.averify(generation(HONEST), TASK)).verdict == "passed"

    asyncio.run(cancel())
    pairs = [(generation(HONEST), TASK), *([(generation(hiding("gk-many")), TASK)] * 20)]
    outcomes = sandbox.verify_many(pairs)
    assert next(outcomes).verdict == "passed"
    wait_until(lambda: named("gk-many"))
    outcomes.close()
    fine(sandbox, generation)
    assert not named("gk-many")


def test_more_threads_than_workers(make: Any, generation: Make) -> None:
    sandbox = make(timeout=20, workers=2)
    codes = [HONEST, "def f(x): return x", LEAVES, "import os; os._exit(0)"]

    def run(number: int) -> str:
        return str(sandbox.verify(generation(codes[number % 4], str(number)), TASK).verdict)

    with ThreadPoolExecutor(12) as threads:
        verdicts = list(threads.map(run, range(24)))
    assert verdicts == ["passed", "failed", "passed", "failed"] * 6


def test_sandboxes_do_not_disturb_each_other(
    relay: Relay, engine: Engine, generation: Make
) -> None:
    """Each one that starts looks for containers of the dead while others come and go."""
    with DockerSandbox(timeout=40, workers=1) as sandbox:
        running = Running(sandbox, generation(busy("gk-two", 20)), "gk-two")

        def other(number: int) -> None:
            with DockerSandbox(timeout=20, workers=1) as another:
                assert another.verify(generation(LEAVES), TASK).verdict == "passed"

        with ThreadPoolExecutor(3) as threads:
            list(threads.map(other, range(6)))
        engine.of(running.pid)  # the first one, not a second try
        assert running.outcome().verdict == "passed"


# Programs whose whole process is hit by a fault. `sandbox` and `generation` are defined.
PRELUDE = """
import json, os, resource, signal, sys, threading, time
import numpy as np
from gatekeeper.sandbox import DockerSandbox, LocalSandbox
from gatekeeper.types import Generation

def generation(code):
    return Generation("g", code, *np.empty((3, 0)))

def say(**what):
    print(json.dumps(what), flush=True)

def verdict(code, task):
    outcome = sandbox.verify(generation(code), task)
    return [outcome.verdict, outcome.error]
"""


@pytest.fixture
def program(
    level: str,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts a program with a sandbox. Afterwards no container, process or file is left."""
    folder = tmp_path / "tmp"
    folder.mkdir(exist_ok=True)
    folder.chmod(0o1777)
    tmp_path.chmod(0o755)
    started: list[subprocess.Popen[str]] = []

    def start(body: str, limits: str, **names: Any) -> subprocess.Popen[str]:
        kind = "DockerSandbox(" if level == "docker" else f"LocalSandbox(isolation={level!r}, "
        given = "\n".join(f"{name} = {value!r}" for name, value in names.items())
        source = f"{PRELUDE}{given}\nsandbox = {kind}{limits})\n{textwrap.dedent(body)}"
        started.append(
            subprocess.Popen(
                [sys.executable, "-c", source],
                cwd=ROOT,
                env={**os.environ, "TMPDIR": str(folder)},
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                start_new_session=True,
            )
        )
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate()
    if level == "docker":
        engine = request.getfixturevalue("engine")
        monkeypatch.setattr("tempfile.tempdir", str(folder))
        DockerSandbox().close()  # a kill in the middle of a start leaves that to the next one
        wait_until(lambda: not engine.containers())
    wait_until(lambda: not list(folder.iterdir()))


def said(process: subprocess.Popen[str]) -> list[dict[str, Any]]:
    """The program's output lines, once it has ended with exit code 0."""
    output, complaint = process.communicate(timeout=2 * PATIENCE)
    assert process.returncode == 0, complaint
    return [json.loads(line) for line in output.splitlines()]


def test_ctrl_c(program: Any) -> None:
    """At any moment: the worker is free again, and nothing leaks."""
    body = """
    def pipes():
        names = [f"/proc/self/fd/{fd}" for fd in os.listdir("/proc/self/fd")]
        return sum(os.readlink(n).startswith("pipe:") for n in names if os.path.lexists(n))

    def interrupted(work):
        try:
            work()
        except KeyboardInterrupt:
            return True

    with sandbox:
        verdict(HONEST, TASK)
        for round in range(3):
            if round == 1:
                before = pipes()
            say(ready=interrupted(lambda: verdict(SLOW, TASK)))
            pairs = [(generation(SLOW), TASK)] * 20
            say(ready=interrupted(lambda: list(sandbox.verify_many(pairs))))
            say(ready=verdict(HONEST, TASK))
        time.sleep(1)
        say(grown=pipes() - before)
    """
    names = {"HONEST": HONEST, "TASK": TASK, "SLOW": hiding("gk-ctrl-c")}
    process = program(body, "timeout=120, workers=1", **names)
    lines = []
    for _ in range(3):
        for _ in range(2):
            wait_until(lambda: named("gk-ctrl-c") or process.poll() is not None)
            seen = set(named("gk-ctrl-c"))
            process.send_signal(signal.SIGINT)
            lines.append(json.loads(process.stdout.readline()))
            wait_until(lambda seen=seen: not seen & set(named("gk-ctrl-c")))
        lines.append(json.loads(process.stdout.readline()))
    assert lines == [{"ready": True}, {"ready": True}, {"ready": ["passed", 0]}] * 3
    assert said(process)[0]["grown"] <= 3


def test_kill_of_the_parent(program: Any) -> None:
    body = "list(sandbox.verify_many([(generation(SLOW), TASK)] * 8))"
    process = program(body, "timeout=600, workers=2", TASK=TASK, SLOW=hiding("gk-kill9"))
    wait_until(lambda: len(named("gk-kill9")) >= 6 or process.poll() is not None)
    process.kill()
    wait_until(lambda: not named("gk-kill9"))


@pytest.mark.parametrize("level", ["docker"], indirect=True)
def test_kill_of_the_parent_while_it_starts_containers(program: Any, generation: Make) -> None:
    body = "say(up=1)\nwhile True: verdict(LEAVES, TASK)"
    for seconds in (0.1, 0.25, 0.4, 0.6):
        process = program(body, "timeout=60, workers=1", TASK=TASK, LEAVES=LEAVES)
        process.stdout.readline()
        time.sleep(seconds)
        process.kill()


@pytest.mark.parametrize("level", ["docker"], indirect=True)
def test_containers_of_the_dead_are_removed_and_no_others(level: str, engine: Engine) -> None:
    name = socket.gethostname()
    owners = {
        "dead": f"{name} 4194305 1",
        "another process of that number": f"{name} {os.getpid()} 1",
        "another machine's": "elsewhere 4194305 1",
        "nobody's": None,
    }
    made = {
        who: engine.client.containers.create(
            image.DEFAULT, labels={} if owner is None else {IMAGE_LABEL: owner}
        ).id
        for who, owner in owners.items()
    }
    try:
        DockerSandbox().close()
        left = set(engine.containers())
        assert {who for who, identity in made.items() if identity in left} == {
            "another machine's",
            "nobody's",
        }
    finally:
        for identity in set(engine.containers()) & set(made.values()):
            engine.client.api.remove_container(identity, force=True)


def test_a_fork_of_the_host(program: Any) -> None:
    """A forked process cannot use its parent's workers, nor end them; the parent can."""
    body = """
    with sandbox:
        verdict(HONEST, TASK)
        child = os.fork()
        if not child:
            for _ in range(2):
                try:
                    sandbox.verify(generation(HONEST), TASK)
                except Exception as refusal:
                    say(refused=str(refusal))
            sys.exit()
        verdicts = [verdict(code, TASK) for code in (SLOW, WRONG) * 5]
        os.waitpid(child, 0)
        say(verdicts=verdicts + [verdict(SLOW, TASK)])
    """
    wrong = "def f(x): return x"
    names = {"HONEST": HONEST, "TASK": TASK, "SLOW": busy("gk-fork", 0.1), "WRONG": wrong}
    lines = said(program(body, "timeout=20, workers=1", **names))
    refusals = [line["refused"] for line in lines if "refused" in line]
    assert len(refusals) == 2
    assert all("process" in refusal for refusal in refusals)
    verdicts = next(line["verdicts"] for line in lines if "verdicts" in line)
    assert verdicts == [["passed", 0], ["failed", 1]] * 5 + [["passed", 0]]


def test_no_descriptors_left(program: Any) -> None:
    """With few of them free or none: a fault or the right verdict, and later no trace of it."""
    body = """
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))

    def count():
        return len(os.listdir("/proc/self/fd"))

    def with_free(number):
        held = []
        try:
            while True:
                held.append(os.dup(0))
        except OSError:
            pass
        for _ in range(number):
            os.close(held.pop())
        try:
            return [verdict(code, task) for code, task in WORK]
        finally:
            for descriptor in held:
                os.close(descriptor)

    with sandbox:
        for code, task in WORK:
            verdict(code, task)
        time.sleep(1)
        before = count()
        for number in (0, 1, 2, 3, 4, 5, 7, 9):
            few = with_free(number)
            say(few=few, then=[verdict(code, task) for code, task in WORK])
        patience = time.monotonic() + 20
        while count() > before + 8 and time.monotonic() < patience:
            time.sleep(0.1)
        say(grown=count() - before)
    """
    judged = {"tests": ["for x in range(3):\n    assert f(x) == x * x"]}
    printed = {"input_output": {"inputs": ["2\n"], "outputs": ["4\n"]}}
    work = [(HONEST, TASK), (HONEST, judged), ("print(int(input()) ** 2)", printed)]
    *rounds, last = said(program(body, "timeout=8, workers=1", WORK=work))
    for line in rounds:
        assert line["then"] == [["passed", 0]] * 3
        assert all(verdict in (["passed", 0], ["infra_error", None]) for verdict in line["few"])
    assert any(["infra_error", None] in line["few"] for line in rounds)
    assert last["grown"] <= 8  # processes that stand ready, connections to the engine
