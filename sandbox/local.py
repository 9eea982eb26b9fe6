"""`LocalSandbox`: candidates run on this machine, in namespaces of their own."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from gatekeeper.arguments import check_choice, check_flag
from gatekeeper.errors import SandboxUnavailableError
from gatekeeper.sandbox.base import Sandbox
from gatekeeper.sandbox.evaluate import Judged
from gatekeeper.sandbox.start import LOADER, Limits, send_program
from gatekeeper.sandbox.worker import LostError, Worker

__all__ = ["Isolation", "LocalSandbox"]

Isolation = Literal["namespaces", "landlock"]

_SYSTEM = (
    *("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc/ld.so.cache", "/etc/passwd"),
    *("/etc/group", "/etc/nsswitch.conf", "/etc/localtime", "/etc/hosts", "/etc/alternatives"),
)
_FILES = 256  # open files of a candidate, as sandbox/inside/lockdown.py sets it


class LocalSandbox(Sandbox):
    """A verifier of Python programs without Docker: isolated processes of this machine. Linux only.

    The level of isolation depends on the kernel; `meta["isolation"]` of each outcome has it:

    - "namespaces": a read-only root directory that holds Python and system libraries; no network;
      no view of other processes; processes that a candidate starts end with it. Started by
      bubblewrap where that is installed.
    - "landlock": where no namespaces are allowed. System directories and Python can be read, one
      empty directory can be written; no sockets, no signals to others; processes are visible.
    - "none": limits only, and only with `allow_unsafe=True`. A hostile candidate has all rights of
      your user.

    A verdict is as hard to forge as with Docker. Memory and processor time are limited for each
    process, not in sum, and the kernel is shared.

    Parameters
    ----------
    isolation
        The level to use; None: the strongest that works here.
    allow_unsafe
        Whether the level "none" is accepted where no other works.
    timeout
        Wall-clock seconds of a candidate's own time: waiting for a processor does not count, up to
        four times this.
    cpu_seconds
        Processor seconds of each process; None: `timeout` rounded up.
    memory_mb
        MiB of address space of each process.
    processes
        Processes and threads of the candidate together.
    output_kb
        KiB of standard output and standard error together.
    disk_mb
        MiB of files.
    workers
        Candidates that run at once; None: the number of processors.
    in_process
        Whether tests that are not literal run beside the candidate, which can then forge them.

    Attributes
    ----------
    isolation
        The level in use.

    Raises
    ------
    SandboxUnavailableError
        No level works here.
    BadInputError
        A limit is not a number above 0, or there is no such level.
    """

    def __init__(
        self,
        *,
        isolation: Isolation | None = None,
        allow_unsafe: bool = False,
        timeout: float = 5.0,
        cpu_seconds: int | None = None,
        memory_mb: int = 512,
        processes: int = 64,
        output_kb: int = 4096,
        disk_mb: int = 64,
        workers: int | None = None,
        in_process: bool = False,
    ) -> None:
        if sys.platform != "linux":
            raise SandboxUnavailableError(f"{sys.platform=!r}: LocalSandbox needs Linux")
        if isolation is not None:
            check_choice("isolation", isolation, ("namespaces", "landlock"))
        check_flag("allow_unsafe", allow_unsafe)
        super().__init__(
            timeout=timeout,
            cpu_seconds=cpu_seconds,
            memory_mb=memory_mb,
            processes=processes,
            output_kb=output_kb,
            disk_mb=disk_mb,
            workers=workers,
            in_process=in_process,
        )
        limits = {
            "cpu_seconds": self._cpu_seconds,
            "memory_mb": memory_mb,
            "disk_mb": disk_mb,
            "processes": processes,
        }
        levels: list[str] = [isolation] if isolation else ["namespaces", "landlock"]
        ways = [(level, wrap) for level in levels for wrap in _wrappers(level)]
        self._open(
            _Starter([*ways, *([("none", ())] if allow_unsafe else [])], limits), spare=False
        )
        with self._pool.worker() as worker:  # so that it fails here, not at the first candidate
            self.isolation: str = worker.about["isolation"]

    def _tainted(self, judged: Judged) -> bool:
        return judged.finished.report.left


class _Starter:
    """Starts supervisors in the first way that works, and from then on only in that way."""

    def __init__(self, ways: Sequence[tuple[str, Sequence[str]]], limits: Limits) -> None:
        self._ways, self._limits = list(ways), limits
        self._worked = False
        self._choosing = threading.Lock()

    def __call__(self) -> Worker:
        """Start a supervisor.

        Raises SandboxUnavailableError if no way works, LostError if the way worked before.
        """
        with self._choosing:
            problems = []
            for level, wrap in self._ways:
                try:
                    worker = _start(level, wrap, self._limits)
                except LostError as error:
                    problems.append(f"{level}: {error}")
                    continue
                self._ways = [(level, wrap)]
                self._worked = True
                return worker
        if self._worked:
            raise LostError("; ".join(problems))
        if lower := _lower_limit(self._limits):
            raise SandboxUnavailableError(f"{lower}: raise it, or use DockerSandbox")
        raise SandboxUnavailableError(
            f"this machine allows no isolation ({'; '.join(problems)}): use DockerSandbox, or "
            "accept limits only with allow_unsafe=True"
        )


def _lower_limit(limits: Limits) -> str | None:
    """The limit of this process, in words, that is below a candidate's limits."""
    import resource  # exists on Unix only; other systems were refused before

    promised = (
        (resource.RLIMIT_NOFILE, _FILES, "open files (ulimit -Hn)"),
        (resource.RLIMIT_AS, limits["memory_mb"] << 20, "bytes of address space (ulimit -Hv)"),
        (resource.RLIMIT_FSIZE, limits["disk_mb"] << 20, "bytes in a file (ulimit -Hf)"),
        (resource.RLIMIT_CPU, limits["cpu_seconds"], "seconds of processor time (ulimit -Ht)"),
        (resource.RLIMIT_NPROC, limits["processes"], "processes (ulimit -Hu)"),
    )
    for which, most, what in promised:
        _, hard = resource.getrlimit(which)
        if hard != resource.RLIM_INFINITY and hard < most:
            return f"this process may have {hard} {what}, a candidate may have {most}"
    return None


def _wrappers(level: str) -> list[Sequence[str]]:
    """Commands to start a level's supervisor under, the preferred one first."""
    bubblewrap = shutil.which("bwrap")
    if level != "namespaces" or bubblewrap is None:
        return [()]
    command = [bubblewrap, "--die-with-parent", "--new-session", "--cap-add", "ALL"]
    # Root needs no user namespace, and with one its files would be the candidate's own.
    command += ["--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts"]
    command += ["--unshare-user"] if os.geteuid() else []
    command += ["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--tmpfs", "/var/tmp"]
    for path in _visible():
        if os.path.islink(path):
            command += ["--symlink", os.readlink(path), path]
        elif os.path.exists(path):
            # Directories that bubblewrap makes by itself can be listed by their owner only.
            parents = [str(parent) for parent in reversed(Path(path).parents)][1:]
            command += [word for parent in parents for word in ("--dir", parent)]
            command += ["--ro-bind", path, path]
    # Each is a mount of its own, and each candidate gets a new one in place of /tmp.
    for path in ("/dev", "/tmp", "/var/tmp", "/"):
        command += ["--remount-ro", path]
    return [[*command, "--chdir", "/", "--"], ()]


def _visible() -> list[str]:
    """What a candidate can read: the system's programs and libraries, and this Python."""
    python = {os.path.realpath(p) for p in (sys.base_prefix, sys.base_exec_prefix)}
    inside = [path for path in sorted(python) if not path.startswith(("/usr/", "/lib"))]
    return [*_SYSTEM, *(path for path in inside if path != "/usr")]


def _start(level: str, wrap: Sequence[str], limits: Limits) -> Worker:
    """Start a supervisor. Raises LostError with its output."""
    control, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    said = os.memfd_create("stderr")
    try:
        with other:
            number = other.fileno()
            python = os.path.realpath(sys.executable)
            process = subprocess.Popen(
                [*wrap, python, "-S", "-s", "-B", "-c", LOADER, str(number)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=said,
                cwd="/",
                # A fixed order of sets of strings gives the same verdict each time. Libraries
                # linked at the start need not be linked in every child. Memory is counted as
                # address space, of which malloc would reserve 64 MiB for each of many threads.
                env={
                    "PYTHONHASHSEED": "0",
                    "PYTHONUTF8": "1",
                    "LD_BIND_NOW": "1",
                    "MALLOC_ARENA_MAX": "1",
                },
                pass_fds=(number,),
                start_new_session=True,
            )
        stop = _Stop(process)
        try:
            # Without bubblewrap the supervisor makes the root directory.
            paths = _visible() if level == "namespaces" and not wrap else ()
            send_program(control, level, limits, paths=paths)
            about = {"isolation": level}
            worker = Worker(control, stop=stop, runs=stop.runs, about=about)
            worker.rehearse()
            return worker
        except (LostError, OSError) as error:
            control.close()
            stop()
            text = os.pread(said, 300, 0).decode("utf-8", "replace").strip()
            raise LostError(f"{error}; {text}" if text else str(error)) from error
    finally:
        os.close(said)


class _Stop:
    """Ends a supervisor, which should end when its control socket closes and else is killed."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    def runs(self) -> bool:
        return self._process.poll() is None

    def __call__(self) -> None:
        try:
            self._process.wait(1.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
