"""What the tests of tracing tools share: outputs handed in inside a tool's spans, and a server."""

from __future__ import annotations

import os
import socket
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from gatekeeper import Budget, Outcome, Verdict, VerificationGate
from gatekeeper.telemetry.scores import ScoreSink
from gatekeeper.testing import ScriptedVerifier, make_generation

PATIENCE = 300.0


def hand_in(sink: ScoreSink, span: Callable[[str], AbstractContextManager[object]]) -> None:
    """right and wrong are verified inside their spans, of unknown the verifier cannot tell; late
    has its verdict when its span is over; nowhere is in no span."""
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


def until(holds: Callable[[], bool]) -> None:
    """A tool shows what it took a little later."""
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.1)
