"""Without a working Docker engine: one line with the reason, and no open socket."""

from __future__ import annotations

import contextlib
import gc
import json
import os
import socket
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("docker")

from gatekeeper.errors import BadInputError, SandboxUnavailableError
from gatekeeper.sandbox import DockerSandbox, containers, docker_sandbox
from gatekeeper.sandbox.engine import connect
from gatekeeper.sandbox.worker import LostError

NOBODY = 65534


def reply(body: object, status: str = "200 OK") -> bytes:
    text = body if isinstance(body, str) else json.dumps(body)
    headers = f"Content-Type: application/json\r\nContent-Length: {len(text)}\r\n"
    return f"HTTP/1.1 {status}\r\n{headers}Connection: close\r\n\r\n{text}".encode()


VERSION = reply({"ApiVersion": "1.41"})
FAILURE = reply({"message": "out of order"}, "500 Internal Server Error")
MISSING = reply({"message": "no such image"}, "404 Not Found")
BROKEN = {
    "closed": b"",
    "garbage": b"\x15\x03\x01\x00\x02\x02P\n" * 9,
    "half": VERSION[:-5],
    "status 500": FAILURE,
    "no JSON": reply("<html>"),
}


class Engine:
    """Answers one connection after the other with the replies, then stops listening."""

    def __init__(self, family: int, folder: Path, replies: Sequence[bytes]) -> None:
        self._listener = socket.socket(family)
        self._listener.bind(str(folder / "s") if family == socket.AF_UNIX else ("127.0.0.1", 0))
        name = self._listener.getsockname()
        self.host = f"unix://{name}" if family == socket.AF_UNIX else f"tcp://127.0.0.1:{name[1]}"
        self._listener.listen()
        self._listener.settimeout(60)
        self._thread = threading.Thread(target=self._serve, args=[replies])
        self._thread.start()

    def _serve(self, replies: Sequence[bytes]) -> None:
        for number, text in enumerate(replies, 1):
            connection, _ = self._listener.accept()
            with connection, contextlib.suppress(OSError):
                connection.recv(65536)
                if number == len(replies):
                    self._listener.close()
                connection.sendall(text)

    def close(self) -> None:
        """Fail if a reply was not requested."""
        self._thread.join(60)
        assert not self._thread.is_alive()


@pytest.fixture(scope="module", autouse=True)
def little_garbage() -> Iterator[None]:
    """`refusal` collects garbage: without what earlier tests of the process keep, that is quick."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


Serve = Callable[[int, Sequence[bytes]], None]


@pytest.fixture
def serve(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Serve]:
    """Makes an engine that DOCKER_HOST names."""
    with contextlib.ExitStack() as stack:

        def make(family: int, replies: Sequence[bytes]) -> None:
            engine = stack.enter_context(contextlib.closing(Engine(family, tmp_path, replies)))
            monkeypatch.setenv("DOCKER_HOST", engine.host)

        yield make


def refusal(ask: Callable[[], object]) -> str:
    """The error that `ask` raises; fails if it leaves anything open to the garbage collector."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        text = None
        try:
            ask()
        except (SandboxUnavailableError, LostError) as error:
            text = str(error)
        gc.collect()
    assert text is not None
    assert [str(warning.message) for warning in caught] == []
    assert "\n" not in text
    return text


def ask_sandbox() -> None:
    DockerSandbox(workers=1)


ASK = {
    "connect": lambda: connect(seconds=0.3),
    "sandbox": ask_sandbox,
    "worker": lambda: containers.Starter(None, None, None, same_root=True)(),  # type: ignore[arg-type]
}


@pytest.fixture(params=ASK)
def ask(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Callable[[], object]:
    """Every way to the engine, with little patience."""
    monkeypatch.setattr(docker_sandbox, "ANSWER_SECONDS", 0.3)
    monkeypatch.setattr(containers, "ENGINE_SECONDS", 0.3)
    return ASK[request.param]


@pytest.mark.parametrize(
    "where", ["nowhere", "no socket", "long", "bound", "silent", "bound port", "silent port", "bad"]
)
def test_no_engine(
    where: str, ask: Callable[[], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = f"unix://{tmp_path}/s"
    with socket.socket(socket.AF_UNIX) as local, socket.socket() as port:
        if where in ("bound", "silent"):
            local.bind(str(tmp_path / "s"))
        if where.endswith("port"):
            port.bind(("127.0.0.1", 0))
            host = f"tcp://127.0.0.1:{port.getsockname()[1]}"
        if where.startswith("silent"):  # connects, but no process accepts the connection
            (local if where == "silent" else port).listen()
        if where == "no socket":
            (tmp_path / "s").touch()
        host = {"long": f"{host}{'s' * 200}", "bad": "unix:/:/:"}.get(where, host)
        monkeypatch.setenv("DOCKER_HOST", host)
        assert f"no Docker engine answers at {host}: start it (`dockerd`)" in refusal(ask)


@pytest.mark.parametrize("family", [socket.AF_UNIX, socket.AF_INET])
@pytest.mark.parametrize(
    "text",
    [*BROKEN.values(), reply([]), reply({}), reply({"ApiVersion": 7}), reply({"ApiVersion": "0"})],
    ids=[*BROKEN, "a list", "no version", "a number", "an old version"],
)
def test_an_engine_that_answers_nonsense(
    family: int, text: bytes, ask: Callable[[], object], serve: Serve
) -> None:
    serve(family, [text])
    assert "no Docker engine answers at" in refusal(ask)


@pytest.mark.parametrize("family", [socket.AF_UNIX, socket.AF_INET])
@pytest.mark.parametrize(
    "before",
    [
        [VERSION],
        [VERSION, reply([])],  # no containers of dead owners
        [VERSION, reply([]), reply({}), VERSION],
        [VERSION, reply([]), reply({}), VERSION, MISSING],  # no such image
    ],
    ids=["containers", "info", "image", "pull"],
)
@pytest.mark.parametrize("then", [*BROKEN, "gone"])
def test_an_engine_that_fails_later(
    family: int, before: list[bytes], then: str, serve: Serve
) -> None:
    serve(family, [*before, *([] if then == "gone" else [BROKEN[then]])])
    refusal(lambda: DockerSandbox(image="some:image", workers=1))


def test_a_pull_that_fails_half_way(serve: Serve) -> None:
    events = [{"status": "one layer"}, {"error": "no space left on device"}, {"status": "more"}]
    lines = [f"{json.dumps(event)}\r\n" for event in events]
    chunks = "".join(f"{len(line):x}\r\n{line}\r\n" for line in lines)
    stream = f"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{chunks}".encode()
    serve(socket.AF_UNIX, [VERSION, reply([]), reply({}), VERSION, MISSING, stream])
    text = refusal(lambda: DockerSandbox(image="some:image", workers=1))
    assert text.endswith("cannot be pulled: the disk is full (no space left on device)")


@pytest.mark.parametrize("runtime", ["nope", "", 5])
def test_a_runtime_that_the_engine_does_not_have(runtime: Any, serve: Serve) -> None:
    """The first candidate would find it, and have no verdict."""
    info = {"Runtimes": {"runc": {}, "runsc": {}}}
    serve(socket.AF_UNIX, [VERSION, reply([]), reply(info)])
    with pytest.raises(BadInputError, match=f"^runtime={runtime!r}: choose one of runc, runsc"):
        DockerSandbox(runtime=runtime, workers=1)


def test_no_permission_says_what_to_do(
    ask: Callable[[], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/nowhere")
    refusal(ask)  # and everything is imported, which the other user could not read
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/s")
    with socket.socket(socket.AF_UNIX) as engine:
        engine.bind(str(tmp_path / "s"))
        engine.listen()
        os.chmod(tmp_path / "s", 0)
        me = os.geteuid()
        if me == 0:
            os.seteuid(NOBODY)
        try:
            text = refusal(ask)
        finally:
            os.seteuid(me)
    assert "this user may not use the Docker engine at unix://" in text
    assert text.endswith("add it to the group `docker`, or be root")


def test_no_engine_is_one_line_and_exit_code_2() -> None:
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error", "-m", "gatekeeper", "sandbox", "build"],
        env={**os.environ, "DOCKER_HOST": "unix:///none/such.sock"},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout, done.stderr) == (
        2,
        "",
        "gatekeeper: no Docker engine answers at unix:///none/such.sock: "
        "start it (`dockerd`), or set DOCKER_HOST\n",
    )
