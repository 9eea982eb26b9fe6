"""Where the processor time of a verification goes: host, supervisor, candidate's processes.

    python benchmarks/sandbox_profile.py [--rounds 2] [--seed 0] [--json]

About a minute. The programs and both paths are those of `sandbox.py`, with one worker. Times are
the kernel's counts of processor milliseconds for each program, so other work on the machine changes
them less than a rate; "faults" are page faults, mostly copies of pages that processes shared after
a fork. "ended" is the candidate's process and, for "judge", that of the tests. "fork" is the lower
bound of `sandbox.py`, whose one process stands in the supervisor's column; `of fork` is the sum of
a row divided by that of the fork.

Two processors run two forks at a time. So a bar of r for the rate of one worker, relative to forks,
and of s for the speed-up of a second worker allow a sum of at most 2 / (r s) forks: `at most`.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import struct
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

from _machine import machine
from _programs import make_programs
from _runners import BARS, PYTHON, SPEEDUP, Processes, Runner, sandbox_runner
from rich.console import Console
from rich.table import Table

from gatekeeper.errors import GatekeeperError
from gatekeeper.sandbox import DockerSandbox, LocalSandbox

TICK = 1e3 / os.sysconf("SC_CLK_TCK")  # milliseconds


class Spent(NamedTuple):
    """Processor milliseconds and page faults of a process, and of the children that it reaped."""

    own: float
    faults: float
    ended: float
    ended_faults: float

    def since(self, before: Spent, programs: int) -> Spent:
        pairs = zip(self, before, strict=True)
        return Spent(*((now - then) / programs for now, then in pairs))


class Row(NamedTuple):
    """One runner's figures per program; `most` is the largest sum that the bars allow, in forks."""

    runner: str
    host: float
    supervisor: float
    supervisor_faults: float
    ended: float
    ended_faults: float
    of_fork: float
    most: float


def spent(pid: int) -> Spent:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    faults, ended_faults = int(fields[7]), int(fields[8])
    user, system, ended_user, ended_system = map(int, fields[11:15])
    return Spent(TICK * (user + system), faults, TICK * (ended_user + ended_system), ended_faults)


def supervisor_of(sandbox: Any) -> int:
    """The process number of the one supervisor of a sandbox with one worker."""
    (worker,) = [worker for worker in sandbox._pool._all if worker.used]
    if isinstance(sandbox, LocalSandbox):
        return int(worker._stop._process.pid)
    credentials = worker._control.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    return int(struct.unpack("3i", credentials)[0])


def measure(rounds: int, seed: int) -> list[Row]:
    programs = make_programs(seed)
    rows = []
    with ExitStack() as stack:
        fork = Processes("fork", "fork", [*PYTHON, "-S"], stack)
        parent = fork._servers[0].pid

        def profile(runner: Runner, pid: int) -> tuple[float, Spent]:
            before, host = spent(pid), os.times()
            for _ in range(rounds):
                runner.block(programs, 1)
            after, now = spent(pid), os.times()
            count = rounds * len(programs)
            used = now.user + now.system - host.user - host.system
            return 1e3 * used / count, after.since(before, count)

        fork.block(programs[:8], 1)
        _, bound = profile(fork, parent)
        whole = bound.own + bound.ended
        rows.append(Row("fork", 0.0, *bound, 1.0, 2.0))
        for label, kind in (("docker", DockerSandbox), ("local", LocalSandbox)):
            try:
                sandbox = stack.enter_context(kind(timeout=10, workers=1))
            except GatekeeperError as error:
                print(f"{label} left out: {error}")
                continue
            for way in ("literal", "judge"):
                runner = sandbox_runner(label, sandbox, way)
                runner.block(programs[:8], 1)
                host_ms, inside = profile(runner, supervisor_of(sandbox))
                total = (host_ms + inside.own + inside.ended) / whole
                most = 2 / (BARS[runner.name] * SPEEDUP)
                rows.append(Row(runner.name, host_ms, *inside, total, most))
    return rows


def table(rows: Sequence[Row]) -> Table:
    found = Table(title="processor time and page faults of one program")
    headings = "runner,host ms,supervisor ms,faults,ended ms,faults,of fork,at most"
    for heading in headings.split(","):
        found.add_column(heading, justify="left" if heading == "runner" else "right")
    for name, *values in rows:
        digits = (2, 2, 0, 2, 0, 2, 2)
        found.add_row(name, *(f"{v:.{n}f}" for v, n in zip(values, digits, strict=True)))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    rows = measure(args.rounds, args.seed)
    if args.json:
        print(json.dumps([row._asdict() for row in rows]))
        return
    print(machine())
    Console(width=110).print(table(rows))


if __name__ == "__main__":
    main()
