"""Reads the kernel's counters of processes and sockets (/proc) and of the container's cgroup."""

from __future__ import annotations

import contextlib
import os

__all__ = [
    "COUNTERS",
    "children",
    "count",
    "longest_wait",
    "open_first",
    "processor_seconds",
    "reread",
    "running",
    "sockets",
    "tree",
    "used",
    "waited",
]

MANY = 1000  # most processes that are looked at, however fast they fork
COUNTERS = {  # files of /sys/fs/cgroup, of version 2, then 1
    "current": ("pids.current", "pids/pids.current"),
    "used": ("cpu.stat", "cpuacct/cpuacct.usage"),
    "processes": ("pids.events", "pids/pids.events"),
    "memory": ("memory.events", "memory/memory.oom_control"),
    "sockets": ("/proc/net/sockstat",),
}


def _threads(pid: int) -> list[str]:
    """The directories of a process's threads; none if the process has ended."""
    try:
        return [f"/proc/{pid}/task/{thread}" for thread in os.listdir(f"/proc/{pid}/task")]
    except OSError:
        return []


def children(pid: int) -> set[int]:
    found: set[int] = set()
    for thread in _threads(pid):
        with contextlib.suppress(OSError):  # it ended meanwhile
            found.update(map(int, _read(f"{thread}/children").split()))
    return found


def tree(roots: set[int]) -> set[int]:
    """These processes and all that they started, except those whose parents have ended."""
    found: set[int] = set()
    new = roots
    while new and len(found) < MANY:
        found |= new
        new = set().union(*map(children, new)) - found
    return found


def _read(path: str) -> str:
    """The text of a small file of the kernel, faster than `open`. Raises OSError."""
    file = os.open(path, os.O_RDONLY)
    try:
        return os.read(file, 1 << 16).decode()
    finally:
        os.close(file)


def open_first(paths: tuple[str, ...]) -> int | None:
    """The first of these files of `COUNTERS` that exists, open for `reread`."""
    found = (os.path.join("/sys/fs/cgroup", path) for path in paths)
    path = next((path for path in found if os.path.exists(path)), None)
    return None if path is None else os.open(path, os.O_RDONLY | os.O_CLOEXEC)


def reread(file: int) -> str:
    return os.pread(file, 1 << 16, 0).decode()


def count(file: int | None, name: str) -> int:
    """A counter in a cgroup's file of names and numbers; 0 if it is absent."""
    if file is None:
        return 0
    pairs = (line.split() for line in reread(file).splitlines())
    return next((int(value) for key, value in pairs if key == name), 0)


def used(file: int | None) -> float:
    """Processor seconds of a cgroup so far; 0 if they are not counted."""
    if file is None:
        return 0.0
    text = reread(file)  # version 1 has nanoseconds and no more
    return int(text) / 1e9 if text.strip().isdigit() else count(file, "usage_usec") / 1e6


def sockets(file: int | None) -> int:
    """How many sockets a network namespace has, and TCP ports in TIME_WAIT; 0 if not counted."""
    if file is None:
        return 0
    words = reread(file).split()
    return sum(int(words[words.index(name) + 1]) for name in ("used", "tw"))


def waited(where: str) -> float:
    """Seconds in which a thread, or a process's first one, was ready to run without a processor."""
    try:
        return int(_read(f"{where}/schedstat").split()[1]) / 1e9
    except (OSError, IndexError):  # the thread has ended, or the kernel does not count
        return 0.0


def longest_wait(pid: int) -> float:
    return max(map(waited, _threads(pid)), default=0.0)


def running(pid: int) -> int:
    """How many threads of a process have a processor, or wait for one."""
    found = 0
    for thread in _threads(pid):
        with contextlib.suppress(OSError):
            found += _read(f"{thread}/stat").rpartition(")")[2].split()[0] == "R"
    return found


def processor_seconds(pid: int) -> float:
    """Processor seconds of a process and of those of its children that it waited for."""
    try:
        fields = _read(f"/proc/{pid}/stat").rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
