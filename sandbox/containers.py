"""Starts and removes the containers that candidates run in. Labels name their owner."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import struct
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import docker
import requests

from gatekeeper.errors import SandboxUnavailableError
from gatekeeper.sandbox import seccomp
from gatekeeper.sandbox.engine import connect
from gatekeeper.sandbox.image import Image
from gatekeeper.sandbox.inside.files import remove
from gatekeeper.sandbox.start import LOADER, Limits, send_program
from gatekeeper.sandbox.worker import START_SECONDS, LostError, Worker

__all__ = ["ContainerLimits", "Starter", "has_same_root", "reap"]

OWNER = "org.gatekeeper.sandbox.owner"  # label: host name, process number, its start time
CAPABILITIES = ["SETUID", "SETGID", "KILL", "SETPCAP"]  # for the supervisor, not for candidates
CPUS = 2  # the judge's path uses two; with one, the kernel throttles even runs of 30 ms
INODES = "20k"
REMOVAL_SECONDS = 10.0
ENGINE_SECONDS = 10.0  # for an answer of the engine, which takes some 0.2
_OWN_USERS = {"name=userns", "name=rootless"}


@dataclass(frozen=True, slots=True)
class ContainerLimits:
    """The limits of all processes of a container together, and (`disk_mb`) of one file."""

    memory_mb: int
    processes: int
    disk_mb: int
    cpu_seconds: int  # of each process by itself

    @property
    def of_each(self) -> Limits:
        limits = {"cpu_seconds": self.cpu_seconds, "disk_mb": self.disk_mb}
        return {**limits, "memory_mb": 0, "processes": 0}


def has_same_root(engine: Mapping[str, Any]) -> bool:
    """Whether root in a container is root of this machine, from the engine's `info`.

    It is not in an engine that gives its containers users of their own (`userns-remap`), or that
    runs as an ordinary user (rootless).
    """
    options = engine.get("SecurityOptions") or ()
    return not any(option.split(",")[0] in _OWN_USERS for option in options)


@contextlib.contextmanager
def _understood() -> Iterator[None]:
    """Raise LostError in place of exceptions of the engine's client."""
    try:
        yield
    except (
        docker.errors.DockerException,
        requests.RequestException,
        SandboxUnavailableError,
        OSError,
    ) as error:
        text = getattr(error, "explanation", None) or str(error)
        raise LostError(f"the Docker engine: {text}") from error


class Starter:
    """Starts workers, each in a container of its own. May be called from several threads.

    Parameters
    ----------
    image, limits, runtime
        Of each container.
    same_root
        Whether the containers' root is this machine's: see `has_same_root`.
    """

    def __init__(
        self, image: Image, limits: ContainerLimits, runtime: str | None, *, same_root: bool
    ) -> None:
        self._image, self._limits, self._runtime = image, limits, runtime
        self._private = same_root and os.geteuid() == 0

    def __call__(self) -> Worker:
        """Start a worker. Raises LostError."""
        with _understood(), closing(connect(seconds=ENGINE_SECONDS)) as client:
            folder = tempfile.mkdtemp(prefix=f"gatekeeper-{os.getpid()}-")
            try:
                return self._start(client, folder)
            finally:
                # The connection is open: the path of the socket is not needed any more.
                shutil.rmtree(folder, ignore_errors=True)

    def _start(self, client: Any, folder: str) -> Worker:
        # The container's root cannot override file modes. If it is another user than this one, the
        # socket is open to all; `_accept` takes the container's first process alone.
        os.chmod(folder, 0o700 if self._private else 0o711)
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
            listener.bind(f"{folder}/control")
            os.chmod(f"{folder}/control", 0o600 if self._private else 0o666)
            listener.listen(1)
            options = _options(self._image, self._limits, folder, self._runtime)
            container = client.containers.create(self._image.id, **options)
            stop = partial(_remove, container.id)
            control: socket.socket | None = None
            try:
                container.start()
                control = _accept(listener, container)
                send_program(control, "docker", self._limits.of_each)
                about = {"isolation": "docker", "image": self._image.id}
                runs = partial(_runs, container.id)
                return Worker(control, stop=stop, runs=runs, about=about)
            except BaseException:
                if control is not None:
                    control.close()
                stop()
                raise


def _options(
    image: Image, limits: ContainerLimits, folder: str, runtime: str | None
) -> dict[str, Any]:
    tmpfs = f"rw,nosuid,nodev,size={limits.disk_mb}m,nr_inodes={INODES},mode=1777"
    return {
        "entrypoint": [image.python],
        "command": ["-s", "-B", "-c", LOADER, "/control/control"],
        "user": "0:0",
        "working_dir": "/",
        "environment": {"PYTHONHASHSEED": "0", "PYTHONUTF8": "1", "LD_BIND_NOW": "1"},
        "volumes": {folder: {"bind": "/control", "mode": "ro"}},
        "read_only": True,
        # In place of the engine's /dev/mqueue, in which a candidate could leave queues.
        "tmpfs": {"/tmp": tmpfs, "/dev/shm": tmpfs, "/dev/mqueue": "ro,mode=555"},
        "network_mode": "none",
        "ipc_mode": "none",
        "cap_drop": ["ALL"],
        "cap_add": CAPABILITIES,
        "security_opt": [
            "no-new-privileges",
            f"seccomp={json.dumps(seccomp.docker_profile())}",
        ],
        "mem_limit": f"{limits.memory_mb}m",
        "memswap_limit": f"{limits.memory_mb}m",
        "pids_limit": limits.processes,
        "nano_cpus": CPUS * 10**9 if (os.cpu_count() or 1) >= CPUS else None,
        "ulimits": [docker.types.Ulimit(name="core", soft=0, hard=0)],
        "log_config": docker.types.LogConfig(type="none"),
        "labels": {OWNER: _owner()},
        "healthcheck": {"test": ["NONE"]},  # an image's own would run beside the candidate
        "stop_signal": "SIGKILL",  # the first process handles no other: no wait at the end
        "auto_remove": True,  # its supervisor ends when this process does, however that ends
        "runtime": runtime,
    }


def _accept(listener: socket.socket, container: Any) -> socket.socket:
    """The connection of the container's first process, and of no other. Raises LostError."""
    listener.settimeout(0.5)
    patience = time.monotonic() + START_SECONDS
    while time.monotonic() < patience:
        try:
            control, _ = listener.accept()
        except TimeoutError:
            container.reload()
            if container.status not in ("created", "running"):
                code = container.attrs["State"]["ExitCode"]
                raise LostError(f"the container ended at once: {code=}") from None
            continue
        container.reload()
        credentials = control.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
        if struct.unpack("3i", credentials)[0] == container.attrs["State"]["Pid"]:
            return control
        control.close()
    raise LostError("the container does not connect: is the engine's host this machine?")


def _runs(identity: str) -> bool:
    """Whether a container is running; False where that is unknown."""
    with contextlib.suppress(LostError), _understood(), closing(connect(seconds=1.0)) as client:
        state = client.containers.get(identity).attrs["State"]
        return bool(state["Running"] and not state["Paused"])
    return False


def _remove(identity: str) -> None:
    """Remove a container, and wait until it is gone."""
    patience = time.monotonic() + REMOVAL_SECONDS
    # Without an engine it goes with its supervisor, or `reap` finds it.
    with (
        contextlib.suppress(LostError),
        _understood(),
        closing(connect(seconds=ENGINE_SECONDS)) as client,
    ):
        while time.monotonic() < patience:
            try:
                client.api.remove_container(identity, force=True)
            except docker.errors.NotFound:
                return
            except docker.errors.APIError:  # its removal is under way already
                time.sleep(0.02)


def _owner() -> str:
    return f"{socket.gethostname()} {os.getpid()} {_born(os.getpid())}"


def _born(pid: int) -> str:
    """When a process started, in the kernel's clock ticks; empty where there is none."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[19].decode()
    except OSError:
        return ""


def reap(client: Any) -> int:
    """Remove the containers and folders of owners that have ended; returns how many containers.

    It removes, too, containers that the engine created too late: never started, and without a
    folder. Raises LostError.
    """
    for folder in Path(tempfile.gettempdir()).glob("gatekeeper-*-????????"):
        pid = folder.name.split("-")[1]
        if pid.isdigit() and not _born(int(pid)):
            with contextlib.suppress(FileNotFoundError):  # another process removed it meanwhile
                if folder.stat().st_uid == os.geteuid():
                    remove(str(folder))
    removed = 0
    with _understood():
        found = client.containers.list(all=True, filters={"label": OWNER}, ignore_removed=True)
        for container in found:
            host, pid, born = container.labels[OWNER].split()
            dead = _born(int(pid)) != born
            if host == socket.gethostname() and (dead or _forgotten(container)):
                with contextlib.suppress(docker.errors.APIError):
                    container.remove(force=True)
                    removed += 1
    return removed


def _forgotten(container: Any) -> bool:
    folders = [mount["Source"] for mount in container.attrs["Mounts"] if mount["Type"] == "bind"]
    return container.status == "created" and not any(map(os.path.exists, folders))
