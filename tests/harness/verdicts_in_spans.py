"""Shared by the tests of tracing tools: outputs passed to a gate inside spans, and a server."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from scripted_upstream import ScriptedUpstream, completion, reply

from gatekeeper import Budget, Outcome, Verdict, VerificationGate
from gatekeeper.telemetry.scores import ScoreSink
from gatekeeper.testing import ScriptedVerifier, make_generation

PATIENCE = 300.0


def hand_in(sink: ScoreSink, span: Callable[[str], AbstractContextManager[object]]) -> None:
    """right and wrong are verified inside their spans, and the verifier cannot judge unknown; late
    gets its verdict after its span has ended; nowhere is in no span."""
    labels = {"right": 0, "wrong": 1, "unknown": None}
    options = {"budget": Budget(fraction=1.0), "telemetry": sink, "on_unavailable": "pass"}
    with VerificationGate("cst", verifier=ScriptedVerifier(labels), **options) as gate:  # type: ignore
        for id_ in labels:
            with span(id_):
                gate.maybe_verify(make_generation(id_))
        gate.maybe_verify(make_generation("nowhere"))
    with VerificationGate("cst", **options) as gate:  # type: ignore
        with span("late"):
            gate.maybe_verify(make_generation("late"))
        gate.report_outcome("late", Outcome(Verdict.FAILED, value=0.25, detail="a person: no"))
    assert sink.flush(PATIENCE)
    assert (sink.sent, sink.dropped, sink.failed, sink.without_span) == (3, 0, 0, 1)


VALUES = {"right": 1.0, "wrong": 0.0, "late": 0.25}


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


@contextmanager
def server(
    command: Sequence[str], health: str, folder: Path, environment: Mapping[str, str]
) -> Iterator[None]:
    """A server in a process of its own, until it is not needed any more."""
    with (folder / "server.log").open("w") as log:
        process = subprocess.Popen(
            command, cwd=folder, env={**os.environ, **environment}, stdout=log, stderr=log
        )
    try:
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                urllib.request.urlopen(health, timeout=5).close()
                break
            except OSError:
                said = (folder / "server.log").read_text()[-3000:]
                assert process.poll() is None, said
                assert time.monotonic() < deadline, said
                time.sleep(0.1)
        yield
    finally:
        process.terminate()
        process.wait(PATIENCE)


@contextmanager
def gateway(tool: str, environment: Mapping[str, str]) -> Iterator[Callable[[Any], str]]:
    """`gatekeeper serve --telemetry TOOL`, and what calls it with a caller's headers: the id of the
    output, which is right. At the end it has sent what it had."""
    answer = reply(json.dumps(completion("\\boxed{7}")).encode())
    with ScriptedUpstream(lambda request: [answer]) as upstream:
        command = [sys.executable, "-m", "gatekeeper", "serve", "--port", "0", "--budget", "1"]
        command += ["--upstream", upstream.url, "--telemetry", tool]
        process = subprocess.Popen(
            command, env={**os.environ, **environment}, stderr=subprocess.PIPE, text=True
        )
        assert process.stderr is not None
        url = re.search(r"http://127\.0\.0\.1:\d+", said := process.stderr.readline())
        assert url, said

        def call(headers: Mapping[str, str]) -> str:
            assert "traceparent" in headers
            task = {"kind": "math", "gold": "7"}
            body = {"model": "m", "messages": [], "gatekeeper": {"task": task, "wait": "verdict"}}
            sent = urllib.request.Request(
                f"{url[0]}/v1/chat/completions", json.dumps(body).encode(), dict(headers)
            )
            with urllib.request.urlopen(sent, timeout=PATIENCE) as found:
                assert found.headers["x-gatekeeper-verdict"] == "passed"
                return str(found.headers["x-gatekeeper-id"])

        try:
            yield call
            process.terminate()
            _, said = process.communicate(timeout=PATIENCE)
            assert process.returncode == 0, said
        finally:
            process.kill()


def until(holds: Callable[[], bool]) -> None:
    """Wait until the tool shows what it has received, which takes a little."""
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.1)
