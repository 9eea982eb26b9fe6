"""The supervisor: keeps confined processes ready for the host, and cleans up after them.

It is the first process of a container (locally: of an enclosure). It never reads a job: the host
sends a job to the candidate's process directly. So the memory that the next candidate inherits
holds nothing of the one before. Messages on the control socket (packets of JSON):

    host -> supervisor   {…}                the settings, once: see `Supervisor`
    supervisor -> host   {"ready": …, "modules": […]}   the first answer: Python's version, and
                                            the modules that can be imported; or {"failed": why}
                         {"child": n}       a process is ready; its socket, stdout and stderr
                                            are attached as descriptors
    host -> supervisor   {"spent": [n, …]}      how much processor time did these use?
    supervisor -> host   {"spent": …}           the result of `_spent`
    host -> supervisor   {"end": [n, …]}    kill these processes and all that they left
    supervisor -> host   {"end": [n, …], …}     the report of `_end`
    supervisor -> host   {"failed": why}    no process can be started any more

After "failed" the supervisor ends. Nothing that a candidate leaves reaches the next one, and no
candidate can end the supervisor: see `_strangers` and `_settle`.
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
from gatekeeper.sandbox.inside.streams import stream_into_pipes
from gatekeeper.sandbox.inside.warmup import fill_gaps, warm_up
from gatekeeper.sandbox.inside.wire import frame, opened

__all__ = ["main"]

SPARES = 2  # processes in use or waiting; the judge's path needs two
UIDS = 1 << 16  # number of users of a supervisor, from the setting `first_uid` on
PRELOAD = """
    abc bisect cmath collections contextlib copy csv dataclasses datetime decimal enum fractions
    functools hashlib heapq html io inspect itertools json math numbers operator pathlib pprint
    re string struct textwrap time traceback types typing unicodedata unittest uuid
""".split()  # noqa: SIM905
_ENDINGS = frozenset(suffix[1:] for suffix in importlib.machinery.all_suffixes())
SETTLE_SECONDS = 0.5  # most time for killed processes to end before the report
CLEAR_SECONDS = 5.0  # most time for them to end before the next process is started
REMOVE_SECONDS = 0.3  # most time to remove a candidate's files; `close` removes the rest


def main(control: socket.socket) -> None:
    """Serve the host until it closes the control socket. Never returns."""
    # A child closes only descriptors with low numbers, so the control socket needs a low one.
    given = control.detach()
    control = socket.socket(fileno=os.dup(given))
    os.close(given)
    settings = json.loads(control.recv(1 << 20))
    stream_into_pipes()
    try:
        supervisor = Supervisor(control, settings)
    except Exception as error:
        control.send(json.dumps({"failed": f"{type(error).__name__}: {error}"}).encode())
        os._exit(1)
    try:
        supervisor.serve()
    except OSError as error:
        with contextlib.suppress(OSError):  # the error may be that the host has ended
            control.send(json.dumps({"failed": f"no process can be made: {error}"}).encode())
    supervisor.close()
    os._exit(0)


class Supervisor:
    """Starts, watches and ends processes.

    `settings`: "level", "limits" (the fields of `Limits`), "seccomp" (a filter in base64), "paths"
    (what candidates can read, if the supervisor makes their root directory) and "first_uid".
    """

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
        self._alive: dict[int, int] = {}  # number -> pid of all children that have not ended
        self._directories: dict[int, str] = {}
        os.umask(0o022)
        if os.getpid() != 1:
            adopt_orphans()
        if self._level == "namespaces":
            if settings["paths"]:
                enclose(settings["paths"])
            # If Python itself is below /tmp, use the directory that `tempfile` tries next.
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
        # Whether `kill(-1)` reaches all descendants of this process, and no other process.
        self._kills_all = self._level in ("docker", "landlock")
        drop_bounding_set()
        self._files = {
            name: procfs.open_first(paths) if self._level == "docker" else None
            for name, paths in procfs.COUNTERS.items()
        }
        self._disturbed = False
        self._used = 0.0  # processor seconds of the cgroup before the current run
        for name in PRELOAD:
            with contextlib.suppress(ImportError):
                importlib.import_module(name)
        self._say({"ready": platform.python_version(), "modules": sorted(_modules())})
        with contextlib.suppress(OSError):  # no process could be forked; this is only slower
            warm_up()
        gc.collect()
        self._fillings = fill_gaps()
        gc.set_threshold(10_000, 10, 10)  # most candidates end before a collection is worthwhile
        gc.freeze()  # the collector would write to, and so copy, the pages that children share
        self._own_sockets = self._sockets()

    def serve(self) -> None:
        """Answer the host's messages. Raises OSError if no process can be started any more."""
        while True:
            # All forks come first: after a fork, each page that this process writes to is copied.
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
        """Start a process that confines itself.

        Returns its number, and the host's ends of its socket, stdout and stderr.
        """
        number = self._born = self._born + 1
        ours, theirs = socket.socketpair()
        out, out_end = os.pipe()
        error, error_end = os.pipe()
        directory = self._tmp
        if self._level != "namespaces":  # there each process has a /tmp of its own
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
        """Make a directory to which only processes of this user can write."""
        if self._level != "docker":
            os.mkdir(directory, 0o700)
            if os.geteuid() == 0:
                os.chown(directory, uid, uid)
            return
        os.setegid(uid)  # in a container root cannot change owners, but can join any group
        os.mkdir(directory, 0o700)
        os.setegid(0)
        os.chmod(directory, 0o770)

    def _uid(self, number: int) -> int:
        return self._users[number % len(self._users)]

    def _live(
        self, number: int, connection: socket.socket, out: int, error: int, directory: str
    ) -> None:
        """Confine this process, which was just forked, and do its job. Never returns."""
        try:
            # Inherited descriptors share locks and flags: the next candidate would have them, too.
            null = os.open("/dev/null", os.O_RDONLY)
            for source, target in ((null, 0), (out, 1), (error, 2)):
                os.dup2(source, target)
            mine = connection.detach()
            os.closerange(3, mine)
            os.closerange(mine + 1, 256)
            connection = opened(mine)
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
        """Kill these processes, reap them, look for what they left, and send a report.

        For each process, `status` has the exit status, `cpu` the processor seconds, and `waited`
        the seconds of waiting for a processor. `left`: whether a process, a file or a socket
        outlived them. `gone`: processes that waited for a job and have ended. `memory` and
        `processes`: how often since the start the kernel refused memory, or a process.
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
        """Kill all but the waiting processes, and wait until they have ended.

        Returns whether they ended in time. `_disturbed` is True if there was one to kill.
        """
        self._disturbed = False
        patience = time.monotonic() + seconds
        while self._strangers():
            self._disturbed = True
            if time.monotonic() > patience:
                return False
            time.sleep(0.001)
        return True

    def _left(self, numbers: list[int]) -> bool:
        """Remove the directories of these processes. Returns whether files or sockets are left."""
        mine = [self._directories.pop(n) for n in numbers if n in self._directories]
        if self._level == "docker":
            for directory in mine:
                with contextlib.suppress(OSError):  # a directory with files is counted below
                    os.rmdir(directory)
            return (
                len(os.listdir("/tmp")) > len(self._directories)
                or bool(os.listdir("/dev/shm"))
                or self._sockets() != self._own_sockets
            )
        gone = [remove(directory, REMOVE_SECONDS) for directory in mine]
        return not all(gone)

    def _sockets(self) -> int:
        """Number of sockets and ports in use, without the two ends of each child's connection."""
        return procfs.sockets(self._files["sockets"]) - 2 * len(self._alive)

    def _strangers(self) -> bool:
        """Kill every process except this one and those that wait. Returns whether there was one.

        Orphans become children of this process, so each remaining process is one of its
        descendants. The kernel's count of tasks, where there is one, is always exact. `kill(-1)`
        ends all processes at once, so no program can fork faster than it is killed. It also ends
        the waiting processes, which the report lists as `gone`. Where `kill(-1)` would reach other
        processes, all descendants are stopped before the first is killed.
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
                    del self._alive[number]  # it ended while it waited for a job

    def _spent(self, numbers: list[int]) -> dict[str, Any]:
        """The processor time of these processes and of those that they started.

        `waited`: the seconds for which they were ready to run and had no processor. Of each tree of
        processes, the thread that waited longest counts. `used`: the processor seconds of all
        processes that were started for them. Without a cgroup, ended processes are missing whose
        parents did not wait for them. `crowded`: whether more threads are ready to run now than
        there are processors for them, so that they wait for each other.
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
    """The names of the top-level modules that can be imported here."""
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
    """Fork, and try again while killed processes still end. Raises OSError after that time."""
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
