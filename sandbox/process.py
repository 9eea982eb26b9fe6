"""Starts one process, drains what it writes, and ends it in time. Knows nothing of tests."""

from __future__ import annotations

import contextlib
import itertools
import os
import secrets
import selectors
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import IO

__all__ = ["End", "Finished", "run"]

GRACE_SECONDS = 1.0  # to end a process that was told to
_TICK_SECONDS = 0.05  # how soon a cancellation is noticed
_CHUNK = 1 << 16
_TAIL_BYTES = 2048


class End(Enum):
    """Who ended the process."""

    ITSELF = "itself"
    DEADLINE = "deadline"
    OUTPUT = "output"  # it wrote more than allowed
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class Finished:
    """What is left of a process: `answer` is what it wrote to its private pipe."""

    end: End
    exit_code: int
    seconds: float
    answer: bytes
    stdout: str
    stderr: str


@dataclass(slots=True)
class _Stream:
    """A pipe being read: the last `keep` bytes, and how many went by."""

    keep: int
    data: bytearray = field(default_factory=bytearray)
    total: int = 0

    def feed(self, chunk: bytes) -> None:
        self.total += len(chunk)
        self.data += chunk
        del self.data[: -self.keep]


def run(
    argv: Sequence[str],
    *,
    job: bytes,
    timeout: float,
    output_bytes: int,
    answer_bytes: int,
    cancelled: threading.Event,
) -> Finished:
    """Run `argv` + [number of the answering pipe] in an empty directory, for `timeout` seconds.

    Raises OSError where the process or its directory cannot be made.
    """
    started = time.monotonic()
    with contextlib.ExitStack() as stack:
        directory = tempfile.mkdtemp(prefix=f"gatekeeper-{os.getpid()}-")
        stack.callback(_remove, directory)
        # A file in memory, because writing to a pipe would have to be part of the loop below.
        stdin = stack.enter_context(os.fdopen(os.memfd_create("job"), "r+b", buffering=0))
        stdin.write(job)
        stdin.seek(0)
        reading, writing = os.pipe()
        answer = stack.enter_context(os.fdopen(reading, "rb", buffering=0))
        try:
            process = subprocess.Popen(
                [*argv, str(writing)],
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                cwd=directory,
                env={"PYTHONHASHSEED": "0"},  # sets of strings in one order: the same verdict
                pass_fds=(writing,),
                start_new_session=True,
            )
        finally:
            os.close(writing)
        assert process.stdout is not None
        assert process.stderr is not None
        stack.enter_context(process.stdout)
        stack.enter_context(process.stderr)
        streams: dict[IO[bytes], _Stream] = {
            process.stdout: _Stream(keep=_TAIL_BYTES),
            process.stderr: _Stream(keep=_TAIL_BYTES),
            answer: _Stream(keep=answer_bytes + _CHUNK),
        }
        stack.callback(_end, process)
        end = _drain(streams, started + timeout, output_bytes, answer_bytes, cancelled)
        _end(process)
        out, err, ans = streams.values()
        return Finished(
            end,
            process.wait(),
            time.monotonic() - started,
            bytes(ans.data),
            out.data.decode("utf-8", "replace"),
            err.data.decode("utf-8", "replace"),
        )


def _drain(
    streams: dict[IO[bytes], _Stream],
    deadline: float,
    output_bytes: int,
    answer_bytes: int,
    cancelled: threading.Event,
) -> End:
    """Read until every pipe is closed, which is when the process and all it started are gone."""
    *outputs, answer = streams.values()
    with selectors.DefaultSelector() as ready:
        for file, stream in streams.items():
            ready.register(file, selectors.EVENT_READ, stream)
        while ready.get_map():
            left = deadline - time.monotonic()
            if left <= 0:
                return End.DEADLINE
            if cancelled.is_set():
                return End.CANCELLED
            for key, _ in ready.select(min(left, _TICK_SECONDS)):
                chunk = os.read(key.fd, _CHUNK)
                if chunk:
                    key.data.feed(chunk)
                else:
                    ready.unregister(key.fileobj)
            if sum(s.total for s in outputs) > output_bytes or answer.total > answer_bytes:
                return End.OUTPUT
    return End.ITSELF


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill the process, its group, and (being what it does on SIGTERM) its namespace."""
    if process.returncode is not None:
        return
    # Not reaped before the end of this function, so that the numbers stay its own.
    os.kill(process.pid, signal.SIGTERM)
    patience = time.monotonic() + GRACE_SECONDS
    while time.monotonic() < patience:
        if os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG):
            break
        time.sleep(0.001)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _remove(directory: str) -> None:
    """Remove a directory, bringing inner ones to the top: a chain may be deeper than any stack."""
    fresh = (f"{directory}/{secrets.token_hex(8)}" for _ in itertools.count())
    with contextlib.suppress(OSError):
        while found := list(os.scandir(directory)):
            for entry in found:
                if not entry.is_dir(follow_symlinks=False):
                    os.unlink(entry.path)
                    continue
                os.chmod(entry.path, 0o700)
                for inner in list(os.scandir(entry.path)):
                    if inner.is_dir(follow_symlinks=False):
                        os.chmod(inner.path, 0o700)
                        os.rename(inner.path, next(fresh))
                    else:
                        os.unlink(inner.path)
                os.rmdir(entry.path)
        os.rmdir(directory)
