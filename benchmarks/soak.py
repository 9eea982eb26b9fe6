"""Whether anything grows when a sandbox judges many candidates, some of them hostile.

    python benchmarks/soak.py [--count 20000] [--hostile 0.05] [--sandbox docker|local]

Right and wrong programs as in sandbox.py, and short hostile ones: resource attacks, processes and
files left behind, garbage on every descriptor, signals to every process. The limit is one second,
because some never end. Sampled while the sandbox is idle: memory of this process and its children
(RSS), descriptors, threads, processes (children and in containers), containers, files under
$TMPDIR (a fresh folder), and the engine's disk usage; let nothing else use the engine meanwhile.
Exits with 1 if, between the first tenth and the end, memory grows by 64 MiB or anything else grows
at all; if something is left after closing; or if a verdict is wrong.
"""

from __future__ import annotations

import argparse
import itertools
import os
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, NamedTuple

import docker
import numpy as np
from _machine import machine
from _programs import make_programs

from gatekeeper.sandbox import DockerSandbox, LocalSandbox
from gatekeeper.sandbox.containers import OWNER
from gatekeeper.types import Generation

MEMORY_BOUND_MB = 64
DESCRIPTORS = 6  # of two waiting processes, which this process may have received or not yet
SAMPLES = 10
TESTS = ("assert f(2) == 4", "assert f(3) == 9")
HONEST = "\ndef f(x):\n    return x * x\n"

STOPPED = {"timeout", "resource_exceeded", "failed"}
ANY = STOPPED | {"passed"}  # the function is right, but a limit may stop the program
# Hostile programs, each with the verdicts that are right for it.
HOSTILE: dict[str, tuple[str, set[str]]] = {
    "endless": ("while True: pass", {"timeout"}),
    "sleeps": ("import time\ntime.sleep(60)", {"timeout"}),
    "endless regex": ("import re\nre.match('(a+)+$', 'a' * 40 + 'b')", {"timeout"}),
    "blocks signals": (
        "import signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))\nwhile True: pass",
        {"timeout"},
    ),
    "fork bomb": ("import os\nwhile True:\n    try: os.fork()\n    except OSError: pass", STOPPED),
    "daemon": (
        "import os, time\nif os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n"
        "        time.sleep(600)\n    os._exit(0)" + HONEST,
        {"passed"},
    ),
    "zombies": (
        "import os\nfor _ in range(20):\n    os.fork() or os._exit(0)" + HONEST,
        {"passed"},
    ),
    "threads": (
        "import threading, time\ntry:\n    while True:\n"
        "        threading.Thread(target=time.sleep, args=(600,), daemon=True).start()\n"
        "except BaseException: pass" + HONEST,
        ANY,
    ),
    "memory": ("a = []\nwhile True: a.append(b'x' * (1 << 20))", STOPPED),
    "one allocation": ("a = bytearray(1 << 36)", {"resource_exceeded", "failed"}),
    "big number": ("a = 10 ** (10 ** 9)", STOPPED),
    "big result": ("def f(x): return 'x' * (1 << 28)", STOPPED),
    "deep result": (
        "def f(x):\n    a = []\n    for _ in range(200000): a = [a]\n    return a",
        STOPPED,
    ),
    "deep recursion": ("def f(x): return f(x)", {"failed"}),
    "output": ("import os\nwhile True: os.write(1, bytes(1 << 16))", STOPPED),
    "fills the disk": (
        "try:\n    with open('/tmp/big', 'wb') as file:\n"
        "        while True: file.write(bytes(1 << 20))\nexcept OSError: pass" + HONEST,
        ANY,
    ),
    "many files": (
        "try:\n    for n in range(30000): open(f'/tmp/{n}', 'w').close()\nexcept OSError: pass"
        + HONEST,
        ANY,
    ),
    "deep directories": (
        "import os\nos.chdir('/tmp')\ntry:\n    for _ in range(5000):\n        os.mkdir('d')\n"
        "        os.chdir('d')\nexcept OSError: pass" + HONEST,
        ANY,
    ),
    "leaves files": (
        "import os\nfor at in ('/tmp', '/dev/shm', '/var/tmp', '.'):\n    try:\n"
        "        open(f'{at}/left', 'w').write('x' * 9999)\n"
        "    except OSError: pass" + HONEST,
        {"passed"},
    ),
    "descriptors": (
        "import os\nheld = []\ntry:\n    while True: held.append(os.open('/', os.O_RDONLY))\n"
        "except OSError: pass\nfor fd in held: os.close(fd)" + HONEST,
        {"passed"},
    ),
    "garbage on every descriptor": (
        "import os\nfor fd in range(3, 256):\n    try: os.write(fd, b'\\xff\\0P' * 99)\n"
        "    except OSError: pass" + HONEST,
        ANY,
    ),
    "closes every descriptor": ("import os\nos.closerange(0, 4096)" + HONEST, {"failed"}),
    "kills everybody": ("import os\nos.kill(-1, 9)", STOPPED),
    "kills its parent": (
        "import os\ntry: os.kill(os.getppid(), 9)\nexcept OSError: pass" + HONEST,
        ANY,
    ),
    "stops itself": (
        "import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)",  # as pid 1 it is not stopped
        {"timeout", "failed"},
    ),
    "segfault": ("import ctypes\nctypes.string_at(0)", {"failed"}),
    "exits with 0": ("import os\nos._exit(0)", {"failed"}),
    "equals everything": (
        "class Liar:\n    def __eq__(self, other): return True\ndef f(x): return Liar()",
        {"failed"},
    ),
    "shared memory": (
        "try:\n    from multiprocessing import shared_memory\n"
        "    held = shared_memory.SharedMemory(create=True, size=1 << 20)\n"
        "except (ImportError, OSError): pass" + HONEST,
        {"passed"},
    ),
}


class Job(NamedTuple):
    kind: str
    code: str
    task: dict[str, Any]
    allowed: set[str]


class Sample(NamedTuple):
    """Resources in use; `memory_mb` is of this process and its children, `disk_mb` the engine's."""

    memory_mb: float
    descriptors: int
    threads: int
    processes: int
    containers: int
    files: int
    disk_mb: float


def jobs(share: float, seed: int) -> Iterator[Job]:
    rng = random.Random(seed)
    programs = itertools.cycle(make_programs(seed))
    hostile = itertools.cycle(HOSTILE.items())
    while True:
        if rng.random() < share:
            name, (code, allowed) = next(hostile)
            yield Job(name, code, {"tests": TESTS}, allowed)
        else:
            program = next(programs)
            kind = "right" if program.right else "wrong"
            allowed = {"passed" if program.right else "failed"}
            yield Job(kind, program.code, {"tests": program.tests}, allowed)


def children() -> list[int]:
    """Every process below this one."""
    parents = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it ended meanwhile
            parents[int(path.parent.name)] = int(path.read_text().rpartition(")")[2].split()[1])
    found = [os.getpid()]
    for pid in found:
        found += [child for child, parent in parents.items() if parent == pid]
    return found[1:]


def memory_mb(pid: int | str) -> float:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0.0
    return sum(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024


def sample(connect: Callable[[], Any] | None, folder: Path) -> Sample:
    mine = children()
    descriptors = len(os.listdir("/proc/self/fd"))
    containers, inside, disk = _of_engine(connect) if connect is not None else (0, 0, 0)
    return Sample(
        memory_mb("self") + sum(map(memory_mb, mine)),
        descriptors,
        len(os.listdir("/proc/self/task")),
        len(mine) + inside,
        containers,
        sum(1 for _ in folder.rglob("*")),
        disk / 2**20,
    )


def _of_engine(connect: Callable[[], Any]) -> tuple[int, int, int]:
    """Our containers, the processes in them, and the bytes on the engine's disk."""
    containers = inside = 0
    with closing(connect()) as client:  # a new one each time: connections of one would add up
        for container in client.api.containers(all=True, filters={"label": OWNER}):
            if container["Labels"][OWNER].split()[1] == str(os.getpid()):
                containers += 1
                with suppress(docker.errors.APIError):  # it is being removed
                    inside += len(client.api.top(container["Id"])["Processes"])
        usage = client.df()
        disk = usage["LayersSize"]
        disk += sum(entry.get("SizeRw", 0) for entry in usage["Containers"] or ())
        disk += sum(entry["UsageData"]["Size"] for entry in usage["Volumes"] or ())
    return containers, inside, disk


def rest(connect: Callable[[], Any] | None, folder: Path) -> Sample:
    """The least use of each resource over three seconds: what is being removed is gone by then."""
    taken = []
    for _ in range(6):
        time.sleep(0.5)
        taken.append(sample(connect, folder))
    return Sample(*map(min, zip(*taken, strict=True)))


def growth(first: Sample, last: Sample) -> list[str]:
    """The resources whose use has grown beyond its bound."""
    found = []
    bounds = {"memory_mb": MEMORY_BOUND_MB, "descriptors": DESCRIPTORS * first.containers}
    for name, before, after in zip(Sample._fields, first, last, strict=True):
        bound = bounds.get(name, 0)
        if after - before > bound:
            found.append(f"{name} from {before:.4g} to {after:.4g}")
    return found


def show(done: object, now: Sample, seconds: float) -> None:
    values = "  ".join(f"{k} {v:.4g}" for k, v in now._asdict().items())
    print(f"{done:>8}  {values}  ({seconds:.0f} s)", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--hostile", type=float, default=0.05)
    parser.add_argument("--sandbox", choices=("docker", "local"), default="docker")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    print(machine())
    connect = docker.from_env if args.sandbox == "docker" else None
    kind = {"docker": DockerSandbox, "local": LocalSandbox}[args.sandbox]
    source = jobs(args.hostile, args.seed)
    wrong: list[tuple[Job, Any]] = []
    verdicts: Counter[tuple[str, str]] = Counter()
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="soak-") as name:
        folder = Path(name)
        os.environ["TMPDIR"] = name
        tempfile.tempdir = name
        outside = rest(connect, folder)
        show("before", outside, 0)
        samples = []
        with kind(timeout=1.0, workers=args.workers) as sandbox:
            for tenth in range(SAMPLES):
                size = args.count * (tenth + 1) // SAMPLES - args.count * tenth // SAMPLES
                batch = list(itertools.islice(source, size))
                pairs = [
                    (Generation(str(n), job.code, *np.empty((3, 0))), job.task)
                    for n, job in enumerate(batch)
                ]
                for job, outcome in zip(batch, sandbox.verify_many(pairs), strict=True):
                    verdicts[job.kind, str(outcome.verdict)] += 1
                    if outcome.verdict not in job.allowed:
                        wrong.append((job, outcome))
                samples.append(rest(connect, folder))
                done = args.count * (tenth + 1) // SAMPLES
                show(done, samples[-1], time.monotonic() - started)
        after = rest(connect, folder)
        show("closed", after, time.monotonic() - started)
    for (name, verdict), number in sorted(verdicts.items()):
        print(f"  {name}: {verdict} {number}")
    grown = growth(samples[0], samples[-1])
    left = growth(outside, after._replace(threads=outside.threads, memory_mb=outside.memory_mb))
    for job, outcome in wrong[:20]:
        print(f"wrong verdict: {job.kind}: {outcome}")
    memory = samples[-1].memory_mb - samples[0].memory_mb
    print(f"memory grew by {memory:.1f} MiB (bound {MEMORY_BOUND_MB})")
    print(f"grown: {'; '.join(grown) or 'nothing'}")
    print(f"left after closing: {'; '.join(left) or 'nothing'}")
    print(f"wrong verdicts: {len(wrong)} of {args.count}")
    sys.exit(bool(grown or left or wrong))


if __name__ == "__main__":
    main()
