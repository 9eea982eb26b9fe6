"""docs/gateway.md: the lines to start with run as they stand, in front of the bundled model."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from gatekeeper.bundled import TASKS

PAGE = (Path(__file__).parents[2] / "docs" / "gateway.md").read_text()
PATIENCE = 120.0  # seconds
PROGRAM = """
import json
from openai import OpenAI

client = OpenAI(api_key="none")
for line in list(open("tasks.jsonl"))[:8]:
    task = json.loads(line)
    answer = client.chat.completions.create(
        model="gatekeeper-bundled",
        messages=[{"role": "user", "content": task["prompt"]}],
        extra_headers={"x-gatekeeper-task": task["id"]},
    )
"""


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def started(line: str, folder: Path, env: Mapping[str, str], port: int) -> subprocess.Popen[bytes]:
    """A line that serves, once its port is open."""
    process = subprocess.Popen(["bash", "-c", f"exec {line}"], cwd=folder, env=env)
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        assert process.poll() is None, line
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except OSError:
            time.sleep(0.05)
        else:
            return process
    raise AssertionError(f"nothing listens: {line}")


def test_the_lines_to_start_with(tmp_path: Path) -> None:
    """`vllm` stands for the bundled model's server; both ports are free ones."""
    section = PAGE.partition("## Five lines to start")[2]
    block = re.findall(r"(?:^    .*\n)+", section, re.MULTILINE)[0]
    ports = {"8000": free_port(), "8080": free_port()}
    for given, free in ports.items():
        assert given in block
        block = block.replace(given, str(free))
    upstream, gateway, export, *programs = (line.strip() for line in block.splitlines())
    assert len(programs) + 3 == 5
    name, _, url = export.removeprefix("export ").partition("=")
    bin_ = tmp_path / "bin"
    bin_.mkdir()
    for command, run in {
        "vllm": '-m gatekeeper.bundled.serve "${@:3}"',
        "gatekeeper": '-m gatekeeper "$@"',
        "python": '"$@"',
    }.items():
        (bin_ / command).write_text(f"#!/bin/bash\nexec {sys.executable} {run}\n")
        (bin_ / command).chmod(0o755)
    env = {**os.environ, name: url, "PATH": f"{bin_}{os.pathsep}{os.environ['PATH']}"}
    gateway += f" --port {ports['8080']}"  # the page's is the default
    maths = (line for line in TASKS.read_text().splitlines(True) if '"math"' in line)
    (tmp_path / "tasks.jsonl").write_text("".join(maths))
    (tmp_path / "your_program.py").write_text(PROGRAM)
    serving = []
    try:
        for line, port in zip((upstream, gateway), ports.values(), strict=True):
            serving.append(started(line, tmp_path, env, port))
        for line in programs:
            subprocess.run(["bash", "-euc", line], cwd=tmp_path, env=env, check=True)
    finally:
        for process in serving:
            process.send_signal(signal.SIGTERM)
            process.wait(PATIENCE)
    page = (tmp_path / "report.html").read_text()
    assert "8 outputs were seen. 8 were verified as a warm-up." in page
