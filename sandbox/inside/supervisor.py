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
    host -> supervisor   {"spent": [n, …]}      what have these and all they started spent?
    supervisor -> host   {"spent": …}           `_spent`
    host -> supervisor   {"end": [n, …]}    kill these and whatever they left
    supervisor -> host   {"end": [n, …], …}     it is done: `_end`
    supervisor -> host   {"failed": why}    no process can be made any more, and the end

Nothing that a candidate leaves may outlive its run, and nothing that it does may end this process:
see `_strangers` and `_settle`.
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

from gatekeeper.sandbox.inside import child, procfs
from gatekeeper.sandbox.inside.files import remove
from gatekeeper.sandbox.inside.lockdown import (
    Limits,
    adopt_orphans,
    confine,
    drop_bounding_set,
    enclose,
    fork,
    keep_signals_in,
    landlock_version,
    users,
)
from gatekeeper.sandbox.inside.warmup import warm_up
from gatekeeper.sandbox.inside.wire import frame

__all__ = ["main"]

SPARES = 2  # the judge's path takes two
UIDS = 1 << 16  # users nobody else is: a supervisor's start at `first_uid`
PRELOAD = """
    abc bisect cmath collections contextlib copy csv dataclasses datetime decimal enum fractions
    functools hashlib heapq html io inspect itertools json math numbers operator pathlib pprint
    re string struct textwrap time traceback types typing unicodedata unittest uuid
""".split()  # noqa: SIM905
_ENDINGS = frozenset(suffix[1:] for suffix in importlib.machinery.all_suffixes())
SETTLE_SECONDS = 0.5  # for what was killed to be gone before the host hears of it
CLEAR_SECONDS = 5.0  # for it to be gone before the next process is made
REMOVE_SECONDS = 0.3  # for a candidate's files; the rest goes with this process


def main(control: socket.socket) -> None:
    """Serve the host until it goes away. Returns never."""
    # Its number may be any at first, and a child closes low ones only: no candidate may have it.
    given = control.detach()
    control = socket.socket(fileno=os.dup(given))
    os.close(given)
    settings = json.loads(control.recv(1 << 20))
    try:
        supervisor = Supervisor(control, settings)
    except Exception as error:
        control.send(json.dumps({"failed": f"{type(error).__name__}: {error}"}).encode())
        os._exit(1)
    try:
        supervisor.serve()
    except OSError as error:
        with contextlib.suppress(OSError):  # the host may be what is gone
            control.send(json.dumps({"failed": f"no process can be made: {error}"}).encode())
    supervisor.close()
    os._exit(0)


class Supervisor:
    """`settings`: level, limits (`Limits`), seccomp (base64), paths to enclose, first_uid."""

    def __init__(self, control: socket.socket, settings: dict[str, Any]) -> None:
        self._control = control
        self._level: str = settings["level"]
        self._limits = Limits(**settings["limits"])
        self._seccomp = base64.b64decode(settings["seccomp"])
        # Two processes of one user could write to each other's memory.
        self._users = users(settings["first_uid"], UIDS) if os.geteuid() == 0 else range(1)
        if not self._users:
            raise OSError("this user namespace has too few users")
        self._born = 0
        self._alive: dict[int, int] = {}  # number -> pid, of all children not yet ended
        self._directories: dict[int, str] = {}
        os.umask(0o022)
        if os.getpid() != 1:
            adopt_orphans()
        if self._level == "namespaces":
            if settings["paths"]:
                enclose(settings["paths"])
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
        if self._level == "landlock":
            keep_signals_in()
        # Whether `kill(-1)` reaches what is under this process, and nothing else.
        self._kills_all = self._level in ("docker", "landlock")
        drop_bounding_set()
        self._files = {
            name: procfs.open_first(paths) if self._level == "docker" else None
            for name, paths in procfs.COUNTERS.items()
        }
        self._disturbed = False
        self._used = 0.0  # processor seconds, of all before the current run
        for name in PRELOAD:
            with contextlib.suppress(ImportError):
                importlib.import_module(name)
        self._say({"ready": platform.python_version(), "modules": sorted(_modules())})
        with contextlib.suppress(OSError):  # no process just now: it is only slower without
            warm_up()
        gc.collect()
        gc.set_threshold(10_000, 10, 10)  # most candidates are done before it is worth it
        gc.freeze()  # the collector need not touch, and so copy, what all children share
        self._own_sockets = self._sockets()

    def serve(self) -> None:
        """Raises OSError where no process can be made any more."""
        while True:
            # First all forks: what this process changes after one it has to copy.
            born = [self._bear() for _ in range(SPARES - len(self._alive))]
            for number, ends in born:
                self._say({"child": number}, ends)
                for end in ends:
                    os.close(end)
            message = self._control.recv(1 << 16)
            if not message:
                return
            match json.loads(message):
                case {"spent": numbers}:
                    self._say({"spent": self._spent(numbers)})
                case {"end": numbers}:
                    self._end(numbers)

    def close(self) -> None:
        pids = list(self._alive.values())
        self._alive.clear()
        for pid in pids:
            _signal(pid, signal.SIGKILL)
        self._settle(SETTLE_SECONDS)
        if self._level in ("landlock", "none"):
            remove(self._tmp)

    def _say(self, message: dict[str, Any], descriptors: tuple[int, ...] = ()) -> None:
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))]
        self._control.sendmsg([json.dumps(message).encode()], rights if descriptors else [])

    def _bear(self) -> tuple[int, tuple[int, int, int]]:
        """Fork a process that locks itself in: its number, and the host's ends of its streams."""
        number = self._born = self._born + 1
        ours, theirs = socket.socketpair()
        out, out_end = os.pipe()
        error, error_end = os.pipe()
        directory = self._tmp
        if self._level != "namespaces":  # where each process has a /tmp of its own
            directory = self._directories[number] = f"{self._tmp}/{number}"
            self._make_directory(directory, self._uid(number))
        pid = _fork(new_pid_namespace=self._level == "namespaces")
        if not pid:
            self._live(number, theirs, out_end, error_end, directory)
        self._alive[number] = pid
        theirs.close()
        os.close(out_end)
        os.close(error_end)
        return number, (ours.detach(), out, error)

    def _make_directory(self, directory: str, uid: int) -> None:
        """One that the user's process may write to, and no other candidate's."""
        if self._level != "docker":
            os.mkdir(directory, 0o700)
            if os.geteuid() == 0:
                os.chown(directory, uid, uid)
            return
        os.setegid(uid)  # there root may not change an owner, but may be in any group
        os.mkdir(directory, 0o700)
        os.setegid(0)
        os.chmod(directory, 0o770)

    def _uid(self, number: int) -> int:
        return self._users[number % len(self._users)]

    def _live(
        self, number: int, connection: socket.socket, out: int, error: int, directory: str
    ) -> None:
        """What a child does. Never returns."""
        try:
            # Not an inherited one, whose locks and flags the next candidate would have, too.
            null = os.open("/dev/null", os.O_RDONLY)
            for source, target in ((null, 0), (out, 1), (error, 2)):
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

        `status`, processor seconds and seconds of waiting for a processor of each; `left`, whether
        a process, a file or a socket outlived them; `gone`, which of the processes that wait for a
        job do so no more; and how often since the start the kernel refused memory or a process.
        """
        waiting = self._alive.copy()
        pids = [self._alive.pop(number) for number in numbers]
        waited = [procfs.waited(f"/proc/{pid}") for pid in pids]
        for pid in pids:
            _signal(pid, signal.SIGKILL)
        ended = [os.wait4(pid, 0) for pid in pids]
        clean = self._settle(SETTLE_SECONDS)
        report = {
            "end": numbers,
            "status": [os.waitstatus_to_exitcode(status) for _, status, _ in ended],
            "cpu": [usage.ru_utime + usage.ru_stime for *_, usage in ended],
            "waited": waited,
            "left": self._left(numbers) or self._disturbed or not clean,
            "gone": list(waiting.keys() - self._alive.keys() - set(numbers)),
            "memory": procfs.count(self._files["memory"], "oom_kill"),
            "processes": procfs.count(self._files["processes"], "max"),
        }
        self._say(report)
        self._used = procfs.used(self._files["used"])
        if not clean and not self._settle(CLEAR_SECONDS):
            raise OSError("what a candidate left cannot be ended")

    def _settle(self, seconds: float) -> bool:
        """Have nothing but the spares left; whether that worked. `_disturbed`: it took a kill."""
        self._disturbed = False
        patience = time.monotonic() + seconds
        while self._strangers():
            self._disturbed = True
            if time.monotonic() > patience:
                return False
            time.sleep(0.001)
        return True

    def _left(self, numbers: list[int]) -> bool:
        """Whether files or sockets outlived the candidate; its directory is removed."""
        mine = [self._directories.pop(n) for n in numbers if n in self._directories]
        if self._level == "docker":
            for directory in mine:
                with contextlib.suppress(OSError):  # what is not empty stays, and is counted
                    os.rmdir(directory)
            return (
                len(os.listdir("/tmp")) > len(self._directories)
                or bool(os.listdir("/dev/shm"))
                or self._sockets() != self._own_sockets
            )
        gone = [remove(directory, REMOVE_SECONDS) for directory in mine]
        return not all(gone)

    def _sockets(self) -> int:
        """Sockets and ports in use, without the two ends of each child's connection."""
        return procfs.sockets(self._files["sockets"]) - 2 * len(self._alive)

    def _strangers(self) -> bool:
        """Kill every process but ours and the spares; whether there was one.

        Orphans become children of this process, so whatever is left has a root among these. The
        kernel's count of tasks, where there is one, is exact at any moment. One `kill(-1)` ends
        all at once, so that no program can fork faster than it is killed; it takes the spares,
        too, and the host learns of it. Elsewhere all are stopped before one is killed.
        """
        self._reap()
        current = self._files["current"]
        if current is not None:
            alone = int(procfs.reread(current)) == 1 + len(self._alive)
        else:
            alone = procfs.children(os.getpid()) <= set(self._alive.values())
        if alone:
            return False
        if self._kills_all:
            _signal(-1, signal.SIGKILL)
            self._alive.clear()
            return True
        strangers = procfs.children(os.getpid()) - set(self._alive.values())
        stopped: set[int] = set()
        while new := strangers - stopped:
            for pid in new:
                _signal(pid, signal.SIGSTOP)
            stopped |= new
            strangers = new.union(*map(procfs.children, stopped))
        for pid in stopped:
            _signal(pid, signal.SIGKILL)
        return True

    def _reap(self) -> None:
        with contextlib.suppress(ChildProcessError):
            while (pid := os.waitpid(-1, os.WNOHANG)[0]) != 0:
                for number in [n for n, known in self._alive.items() if known == pid]:
                    del self._alive[number]  # a spare that died of itself

    def _spent(self, numbers: list[int]) -> dict[str, Any]:
        """`waited`: the seconds that these were ready to run and had no processor.

        Of each, the thread of its tree that waited longest. `used`: the processor seconds of all
        that were started under this process for them; without a cgroup, those are missing whose
        parents did not wait for them. `crowded`: more threads are ready to run now than there are
        processors for them, so that they keep each other waiting.
        """
        roots = [self._alive[number] for number in numbers]
        trees = [procfs.tree({pid}) for pid in roots]
        spares = {pid for number, pid in self._alive.items() if number not in numbers}
        everyone = procfs.tree(procfs.children(os.getpid()) - spares).union(*trees)
        waited = sum(max(map(procfs.longest_wait, tree)) for tree in trees)
        if self._files["used"] is not None:
            used = procfs.used(self._files["used"]) - self._used
        else:
            used = sum(map(procfs.processor_seconds, everyone))
        processors = min((len(os.sched_getaffinity(pid)) for pid in roots), default=1)
        crowded = sum(map(procfs.running, everyone)) > processors
        return {"waited": waited, "used": used, "crowded": crowded}


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


def _fork(*, new_pid_namespace: bool) -> int:
    """Raises OSError where, for seconds, no process could be made: what was killed takes time."""
    patience = time.monotonic() + CLEAR_SECONDS
    while True:
        try:
            return fork(new_pid_namespace=new_pid_namespace)
        except OSError:
            if time.monotonic() > patience:
                raise
            time.sleep(0.01)


def _signal(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)
