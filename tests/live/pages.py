"""The programs and commands of docs/vllm.md, as they stand, in processes of their own.

MODEL names the bundled model, and the ports are those of a server and of a gateway that this
starts. Nothing else is replaced.
"""

from __future__ import annotations

import os
import re
import shlex
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import gatekeeper.bundled

__all__ = ["Page", "command_of_server"]

PAGE = Path(__file__).parents[2] / "docs" / "vllm.md"
BLOCKS = re.findall(r"```(?:bash|python)\n(.*?)```", PAGE.read_text(), re.DOTALL)
(
    _,  # export MODEL
    TASKS,
    OFFLINE,
    OFFLINE_RUN,
    STREAMED,
    SERVER,
    SERVED,
    SERVED_RUN,
    GATEWAY,
    THROUGH_GATEWAY,
) = BLOCKS
PATIENCE = 300.0  # seconds, on a busy machine


def command_of_server(port: int) -> list[str]:
    """The page's `vllm serve`, on another port, from the environment of this Python."""
    vllm, *arguments = shlex.split(SERVER.replace("8000", str(port)))
    model = str(gatekeeper.bundled.MODEL)
    return [
        str(Path(sys.executable).parent / vllm),
        *(a.replace("$MODEL", model) for a in arguments),
    ]


@dataclass
class Page:
    """Runs the page's blocks in one folder. Raises AssertionError where one fails."""

    folder: Path
    base_url: str = ""  # of the server

    def __post_init__(self) -> None:
        self._run(["bash", "-ec", TASKS])

    def offline(self) -> None:
        """Engines in this process's children."""
        assert _ids(self._python(OFFLINE)) == ["q1", "q2"]
        assert "warm-up: the first ones, all verified" in self._run(["bash", "-ec", OFFLINE_RUN])
        lines = sorted(self._python(STREAMED).splitlines())
        assert lines == ["q1 warmup ok", "q2 warmup ok"], lines

    def served(self) -> None:
        """A client around the server, and a task file."""
        assert self._python(SERVED).splitlines()[-1] == "q1 warmup ok"
        found = self._run(["bash", "-ec", SERVED_RUN])
        assert "warm-up: the first ones, all verified" in found, found

    @contextmanager
    def gateway(self) -> Iterator[str]:
        """The page's gateway, after its client: yields the base URL."""
        port = _free_port()
        command = GATEWAY.replace("8080", str(port))
        process = subprocess.Popen(
            ["bash", "-ec", f"exec {self._placed(command)}"],
            cwd=self.folder,
            env=self._environment,
            stdout=subprocess.DEVNULL,
        )
        try:
            _wait_for(port, process)
            program = THROUGH_GATEWAY.replace("8080", str(port))
            *text, result = self._python(program).splitlines()
            assert text, result
            assert re.fullmatch(r"\S+ verify", result), result
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            process.terminate()
            process.wait(PATIENCE)

    def _python(self, program: str) -> str:
        """The program's output. It runs from a file, because vLLM's processes import it."""
        file = self.folder / "program.py"
        file.write_text(self._placed(program))
        return self._run([sys.executable, str(file)])

    def _placed(self, text: str) -> str:
        if not self.base_url:
            return text
        return text.replace("http://127.0.0.1:8000/v1", self.base_url)

    def _run(self, command: list[str]) -> str:
        command = [self._placed(each) for each in command]
        ran = subprocess.run(
            command, cwd=self.folder, env=self._environment, capture_output=True, text=True
        )
        assert ran.returncode == 0, f"{command}: {ran.stderr[-4000:]}"
        return ran.stdout

    @property
    def _environment(self) -> dict[str, str]:
        commands = str(Path(sys.executable).parent)
        return {
            **os.environ,
            "MODEL": str(gatekeeper.bundled.MODEL),
            "PATH": f"{commands}:{os.environ['PATH']}",
            "COLUMNS": "100",
        }


def _ids(printed: str) -> list[str]:
    lines = [line.split() for line in printed.splitlines()]
    return [words[0] for words in lines if words and words[-1] == "warmup"]


def _free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port: int = s.getsockname()[1]
        return port


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        assert process.poll() is None, f"the gateway ended with status {process.returncode}"
        try:
            socket.create_connection(("127.0.0.1", port), timeout=2).close()
        except OSError:
            time.sleep(0.2)
        else:
            return
    raise TimeoutError(f"the gateway did not listen after {PATIENCE:.0f} s")
