"""Keeps locked-in processes ready, hands them to the host, and cleans up after them.

The first process of a container (or, locally, of an enclosure). It never reads a job: what a
candidate is asked goes from the host straight to the candidate's process, so no memory that a
later candidate inherits ever holds anything of an earlier one. Messages on the control socket
(packets of JSON):

    host -> supervisor   {…}                the settings, once: `Settings`
    supervisor -> host   {"ready": …, "modules": […]}   hello: Python's version and what can be
                                            imported; or {"failed": why}, and the end
                         {"child": n}       a process stands ready; its socket, stdout and stderr
                                            come along as descriptors
    host -> supervisor   {"waited": [n, …]}     how long have these waited for a processor?
    supervisor -> host   {"waited": seconds}
    host -> supervisor   {"end": [n, …]}    kill these and whatever they left
    supervisor -> host   {"end": [n, …], …}     it is done: `_end`
"""

from __future__ import annotations

import array
import base64
import contextlib
import gc
import importlib
import importlib.machinery
import json
import os
import platform
import signal
import socket
import sys
import time
from typing import Any

from gatekeeper.sandbox.inside import child
from gatekeeper.sandbox.inside.codec import frame
from gatekeeper.sandbox.inside.files import remove
from gatekeeper.sandbox.inside.lockdown import (
    Limits,
    adopt_orphans,
    confine,
    drop_bounding_set,
    enclose,
    landlock_version,
    new_pid_namespace,
)

__all__ = ["main"]

SPARES = 2  # the judge's path takes two
UIDS = 1 << 16  # users nobody else is: a supervisor's start at `first_uid`
PRELOAD = """
    abc bisect cmath collections contextlib copy csv dataclasses datetime decimal enum fractions
    functools hashlib heapq html io inspect itertools json math numbers operator pathlib pprint
    re string struct textwrap time traceback types typing unicodedata unittest uuid
""".split()  # noqa: SIM905
_ENDINGS = frozenset(suffix[1:] for suffix in importlib.machinery.all_suffixes())
SETTLE_SECONDS = 0.5  # for what was killed to be gone
CGROUPS = {  # version 2, then 1
    "current": ("pids.current", "pids/pids.current"),
    "processes": ("pids.events", "pids/pids.events"),
    "memory": ("memory.events", "memory/memory.oom_control"),
}


def main(control: socket.socket) -> None:
    """Serve the host until it goes away. Returns never."""
    settings = json.loads(control.recv(1 << 20))
    try:
        supervisor = Supervisor(control, settings)
    except Exception as error:
        control.send(json.dumps({"failed": f"{type(error).__name__}: {error}"}).encode())
        os._exit(1)
    with contextlib.suppress(OSError):
        supervisor.serve()
    supervisor.close()
    os._exit(0)


class Supervisor:
    """`settings`: level, limits (`Limits`), seccomp (base64), paths to enclose, first_uid."""

    def __init__(self, control: socket.socket, settings: dict[str, Any]) -> None:
        self._control = control
        self._level: str = settings["level"]
        self._limits = Limits(**settings["limits"])
        self._seccomp = base64.b64decode(settings["seccomp"])
        self._first_uid: int = settings["first_uid"]
        self._born = 0
        self._alive: dict[int, int] = {}  # number -> pid, of all children not yet ended
        self._directories: dict[int, str] = {}
        os.umask(0o022)
        if os.getpid() != 1:
            adopt_orphans()
        if self._level == "namespaces":
            if settings["paths"]:
                enclose(settings["paths"])
            self._own_pids = os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
            # Where /tmp shows Python itself, the next place that `tempfile` looks for.
            shown = any(path.startswith("/tmp/") for path in sys.path)
            self._tmp = "/var/tmp" if shown else "/tmp"
        elif self._level == "docker":
            self._tmp = "/tmp"
        else:
            if self._level == "landlock" and landlock_version() < 6:
                raise OSError(f"Landlock version {landlock_version()}: 6 or newer is needed")
            self._tmp = f"/tmp/gatekeeper-{os.getpid()}-{os.urandom(4).hex()}"
            os.mkdir(self._tmp, 0o711)
        drop_bounding_set()
        self._null = os.open("/dev/null", os.O_RDONLY)
        self._files = {name: _first(paths) for name, paths in CGROUPS.items()}
        for name in PRELOAD:
            with contextlib.suppress(ImportError):
                importlib.import_module(name)
        self._say({"ready": platform.python_version(), "modules": sorted(_modules())})
        gc.collect()
        gc.set_threshold(10_000, 10, 10)  # most candidates are done before it is worth it
        gc.freeze()  # the collector need not touch, and so copy, what all children share

    def serve(self) -> None:
        while True:
            while len(self._alive) < SPARES:
                self._bear()
            message = self._control.recv(1 << 16)
            if not message:
                return
            match json.loads(message):
                case {"waited": numbers}:
                    self._say({"waited": sum(_waited(self._alive[n]) for n in numbers)})
                case {"end": numbers}:
                    self._end(numbers)

    def close(self) -> None:
        pids = list(self._alive.values())
        self._alive.clear()
        for pid in pids:
            _signal(pid, signal.SIGKILL)
        patience = time.monotonic() + SETTLE_SECONDS
        while self._strangers() and time.monotonic() < patience:
            pass
        if self._level in ("landlock", "none"):
            remove(self._tmp)

    def _say(self, message: dict[str, Any], descriptors: tuple[int, ...] = ()) -> None:
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))]
        self._control.sendmsg([json.dumps(message).encode()], rights if descriptors else [])

    def _bear(self) -> None:
        """Fork a process, lock it in, and give its end of three streams to the host."""
        number = self._born = self._born + 1
        ours, theirs = socket.socketpair()
        out, out_end = os.pipe()
        error, error_end = os.pipe()
        directory = self._tmp
        if self._level in ("landlock", "none"):
            directory = self._directories[number] = f"{self._tmp}/{number}"
            os.mkdir(directory, 0o700)
            if os.geteuid() == 0:
                os.chown(directory, self._uid(number), self._uid(number))
        if self._level == "namespaces":
            new_pid_namespace(self._own_pids)
        pid = os.fork()
        if not pid:
            self._live(number, theirs, out_end, error_end, directory)
        self._alive[number] = pid
        self._say({"child": number}, (ours.fileno(), out, error))
        for end in (ours, theirs):
            end.close()
        for pipe in (out, out_end, error, error_end):
            os.close(pipe)

    def _uid(self, number: int) -> int:
        return self._first_uid + number % UIDS

    def _live(
        self, number: int, connection: socket.socket, out: int, error: int, directory: str
    ) -> None:
        """What a child does. Never returns."""
        try:
            for source, target in ((self._null, 0), (out, 1), (error, 2)):
                os.dup2(source, target)
            mine = connection.detach()
            os.closerange(3, mine)
            os.closerange(mine + 1, 256)
            connection = socket.socket(fileno=mine)
            confine(
                self._level,
                self._limits,
                uid=self._uid(number),
                seccomp=self._seccomp,
                directory=directory,
            )
            connection.sendall(frame(b"R", b""))
        except BaseException as problem:
            text = f"{type(problem).__name__}: {problem}"
            connection.sendall(frame(b"X", text.encode("utf-8", "replace")))
            os._exit(1)
        try:
            child.work(connection)
        finally:
            os._exit(0)

    def _end(self, numbers: list[int]) -> None:
        """Kill, reap, look for what is left, and report:

        `status` and processor seconds of each; `left`, whether a process or a file outlived them;
        and how often since the start the kernel refused memory or a process.
        """
        pids = [self._alive.pop(number) for number in numbers]
        for pid in pids:
            _signal(pid, signal.SIGKILL)
        ended = [os.wait4(pid, 0) for pid in pids]
        report = {
            "end": numbers,
            "status": [os.waitstatus_to_exitcode(status) for _, status, _ in ended],
            "cpu": [usage.ru_utime + usage.ru_stime for *_, usage in ended],
            "left": self._left(numbers),
            "memory": _count(self._files["memory"], "oom_kill"),
            "processes": _count(self._files["processes"], "max"),
        }
        self._say(report)

    def _left(self, numbers: list[int]) -> bool:
        """Whether anything outlived the candidate; processes are killed, its directory removed."""
        left = False
        patience = time.monotonic() + SETTLE_SECONDS
        while self._strangers():
            left = True
            if time.monotonic() > patience:
                return True
        if self._level == "docker":
            left = left or bool(os.listdir("/tmp") or os.listdir("/dev/shm"))
        for number in numbers:
            if number in self._directories:
                remove(self._directories.pop(number))
        return left

    def _strangers(self) -> bool:
        """Kill every process but ours and the spares; whether there was one.

        Orphans become children of this process. The kernel's count of tasks, where there is one,
        is exact at any moment: a program that forks faster than a list is read cannot hide.
        """
        while True:
            with contextlib.suppress(ChildProcessError):
                pid, _ = os.waitpid(-1, os.WNOHANG)
                if pid:
                    for number in [n for n, known in self._alive.items() if known == pid]:
                        del self._alive[number]  # a spare that died of itself
                    continue
            break
        current = self._files["current"]
        if self._level == "docker" and current is not None:
            if int(_read(current)) == 1 + len(self._alive):
                return False
            os.kill(-1, signal.SIGKILL)  # the spares too; the host recycles the container
            self._alive.clear()
            return True
        strangers = _children(os.getpid()) - set(self._alive.values())
        # All are stopped before one is killed: who is stopped cannot fork.
        stopped: set[int] = set()
        while new := strangers - stopped:
            for pid in new:
                _signal(pid, signal.SIGSTOP)
            stopped |= new
            strangers = new.union(*map(_children, stopped))
        for pid in stopped:
            _signal(pid, signal.SIGKILL)
        return bool(stopped)


def _modules() -> set[str]:
    """Names of the top-level modules that can be imported here."""
    found = set(sys.builtin_module_names)
    for path in sys.path:
        if os.path.isfile(path):  # the standard library in an archive
            found |= sys.stdlib_module_names
        with contextlib.suppress(OSError):
            for entry in os.scandir(path):
                name, dot, ending = entry.name.partition(".")
                module = ending in _ENDINGS if dot else entry.is_dir()
                if module and name.isidentifier() and name != "__pycache__":
                    found.add(name)
    return found


def _children(pid: int) -> set[int]:
    try:
        return set(map(int, _read(f"/proc/{pid}/task/{pid}/children").split()))
    except OSError:  # it ended meanwhile
        return set()


def _signal(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def _read(path: str) -> str:
    """A small file of the kernel's, without what `open` costs. Raises OSError."""
    file = os.open(path, os.O_RDONLY)
    try:
        return os.read(file, 1 << 16).decode()
    finally:
        os.close(file)


def _first(paths: tuple[str, ...]) -> str | None:
    found = (f"/sys/fs/cgroup/{path}" for path in paths)
    return next((path for path in found if os.path.exists(path)), None)


def _count(path: str | None, name: str) -> int:
    """A counter of a cgroup's file of names and numbers; 0 where there is none."""
    if path is None:
        return 0
    pairs = (line.split() for line in _read(path).splitlines())
    return next((int(value) for key, value in pairs if key == name), 0)


def _waited(pid: int) -> float:
    """Seconds a living process was ready to run and had no processor; 0 where nobody counts."""
    try:
        return int(_read(f"/proc/{pid}/schedstat").split()[1]) / 1e9
    except (OSError, IndexError):
        return 0.0
