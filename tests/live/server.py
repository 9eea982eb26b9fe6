"""The bundled model on a real vLLM server, on loopback, for as long as a `with` block lasts."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pages import command_of_server
from scenarios import ENGINE, MODEL_NAME

import gatekeeper.bundled

__all__ = ["serving"]

START_SECONDS = 240.0  # 30 on two quiet cores


@contextmanager
def serving(*flags: str) -> Iterator[str]:
    """Yield the base URL of a healthy server; `flags` go to vLLM besides those of `ENGINE`.

    The server leads a process group of its own, which is killed at the end, come what may. If the
    block raises, the tail of the server's log is printed first.
    """
    with tempfile.TemporaryFile("w+") as log:
        port = _free_port()
        process = subprocess.Popen(
            _command(port, *flags),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env={**os.environ, "VLLM_LOGGING_LEVEL": "INFO"},
            cwd=Path(__file__).parent,
        )
        try:
            _wait_until_healthy(process, port)
            yield f"http://127.0.0.1:{port}/v1"
        except BaseException:
            log.seek(0)
            print("".join(log.readlines()[-60:]), file=sys.stderr)
            raise
        finally:
            _kill(process)


def _free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port: int = s.getsockname()[1]
        return port


def _command(port: int, *flags: str) -> list[str]:
    """The command of docs/vllm.md, with what makes answers equal; two names for the model."""
    values = {
        "served_model_name": [str(gatekeeper.bundled.MODEL), MODEL_NAME],
        "host": ["127.0.0.1"],
        **ENGINE,
    }
    command = command_of_server(port)
    for name, value in values.items():
        flag = name.replace("_", "-")
        if isinstance(value, bool):
            command.append(f"--{flag}" if value else f"--no-{flag}")
        else:
            command += [f"--{flag}", *map(str, value if isinstance(value, list) else [value])]
    return [*command, *flags]


def _wait_until_healthy(process: subprocess.Popen[bytes], port: int) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise RuntimeError(f"the vLLM server ended with status {process.returncode}")
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=2):
                return
        except OSError:
            time.sleep(0.5)
    raise TimeoutError(f"the vLLM server was not healthy after {START_SECONDS:.0f} s")


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End the whole group: the server has an engine process that must not outlive it."""
    for sign, patience in ((signal.SIGTERM, 10.0), (signal.SIGKILL, 10.0)):
        try:
            os.killpg(process.pid, sign)
        except ProcessLookupError:
            break
        try:
            process.wait(patience)
        except subprocess.TimeoutExpired:
            continue
