"""The end of a gateway: answers in progress are delivered, and the gate is closed.

Also at a SIGTERM before it serves, and after it.
"""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing import Pipe
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from unittest.mock import AsyncMock, Mock
from urllib.parse import urlsplit

import pytest
from running_gateway import running_gateway
from scripted_upstream import ScriptedUpstream, event_stream, reply
from shared_runs import writers

from gatekeeper import Budget, LogError, VerificationGate
from gatekeeper.cli import main, serve
from gatekeeper.gateway import application
from gatekeeper.gateway.application import Gateway
from gatekeeper.gateway.outputs import Outputs
from gatekeeper.gateway.route import Route
from gatekeeper.gateway.server import runner_of
from gatekeeper.gateway.settings import GatewaySettings
from gatekeeper.gateway.streamed import StreamedAnswer
from gatekeeper.gateway.tasks import Tasks
from gatekeeper.gateway.termination import Termination
from gatekeeper.gateway.upstream import Upstream
from gatekeeper.testing import ScriptedVerifier

if TYPE_CHECKING:
    from postgres import Server

SECOND = """\
from signal import SIGTERM, raise_signal
from gatekeeper.gateway.termination import Termination

with Termination():
    raise_signal(SIGTERM)
    print("kept", flush=True)
    raise_signal(SIGTERM)
    print("not reached", flush=True)
"""


@pytest.fixture
def lost() -> Iterator[list[int]]:
    """SIGTERMs that no handler caught: each would have ended the process."""
    found: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: found.append(number))
    yield found
    signal.signal(signal.SIGTERM, before)


def test_while_it_starts(
    postgres: Server,
    lost: list[int],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The gate is open, and has a lease."""
    place, live = postgres.new_run(), []

    @contextmanager
    def store(plan: Any) -> Iterator[None]:
        live.append(len(writers(place)))
        signal.raise_signal(signal.SIGTERM)
        yield None

    def must_not_serve(*_: Any) -> None:
        pytest.fail("it serves")

    monkeypatch.setattr(serve, "_store", store)
    monkeypatch.setattr(serve, "_routes", must_not_serve)
    options = ["--log", place.dsn, "--run", place.name, "--shared", "--port", "0"]
    assert main(["serve", "--upstream", "http://127.0.0.1:9/v1", *options]) == 0
    assert live == [1]
    assert not writers(place)
    assert not lost
    assert "is in front of" not in capsys.readouterr().err


def test_again_and_again_at_one_of_several(lost: list[int]) -> None:
    """A service manager sends SIGTERM to all processes, and the supervisor forwards it."""
    ours, theirs = Pipe()

    async def work(termination: Termination) -> None:
        with termination.events() as (in_time, at_once):
            assert in_time.is_set()
            signal.raise_signal(signal.SIGTERM)
            await asyncio.sleep(0.01)
            assert not at_once.is_set()
            ours.close()
            await at_once.wait()

    with Termination(theirs) as termination:
        for _ in range(2):
            signal.raise_signal(signal.SIGTERM)
        assert termination.came
        asyncio.run(work(termination))
        signal.raise_signal(signal.SIGTERM)
    assert not lost


def test_a_second_one_ends_a_single_process() -> None:
    done = subprocess.run([sys.executable, "-c", SECOND], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (-signal.SIGTERM, "kept\n")


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/other"])
def test_a_caller_that_reads_slowly_has_its_whole_answer(path: str) -> None:
    """The answer is in progress until it is sent; aiohttp would cut it after two seconds."""
    message = {"content": "7" * (1 << 24)}
    whole = reply(json.dumps({"choices": [{"index": 0, "message": message}]}).encode())
    found = bytearray()

    def read() -> None:
        time.sleep(3.0)
        while piece := connection.recv(1 << 20):
            found.extend(piece)

    reader = threading.Thread(target=read, daemon=True)
    with ScriptedUpstream(lambda request: [whole]) as upstream:
        with running_gateway(upstream.url) as gateway:
            connection = socket.create_connection(("127.0.0.1", urlsplit(gateway.url).port or 0))
            connection.settimeout(60)
            connection.sendall(b"POST %s HTTP/1.1\r\nhost: x\r\n" % path.encode())
            connection.sendall(b"content-length: 15\r\n\r\n" + b'{"messages":[]}')
            found.extend(connection.recv(1 << 16))
            reader.start()
        reader.join(60)
        connection.close()
    body = bytes(found).partition(b"\r\n\r\n")[2]
    assert json.loads(body)["choices"][0]["message"] == message


def test_connections_are_closed_if_it_cannot_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[Upstream] = []
    close = Upstream.close

    async def noted(self: Upstream) -> None:
        closed.append(self)
        await close(self)

    async def fails(self: Outputs, tasks: Tasks) -> None:
        raise LogError("the log cannot be read")

    async def begin(gateway: Gateway) -> None:
        with pytest.raises(LogError):
            await runner_of(gateway).setup()

    monkeypatch.setattr(Upstream, "close", noted)
    monkeypatch.setattr(Outputs, "resume", fails)
    with VerificationGate(
        "cst", budget=Budget(fraction=1.0), verifier=ScriptedVerifier(), on_unavailable="pass"
    ) as gate:
        route = Route(gate=gate, settings=GatewaySettings(upstream="http://127.0.0.1:9/v1"))
        asyncio.run(begin(Gateway(route, Tasks(kinds=()))))
    assert len(closed) == 1


@pytest.mark.parametrize("streams", [True, False])
def test_a_caller_that_takes_nothing_holds_no_end(
    streams: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(application, "STALLED", 0.3)
    text = "7" * (1 << 24)
    script = event_stream(f"data: {text}\n\n".encode()) if streams else [reply(text.encode())]
    with ScriptedUpstream(lambda request: script) as upstream:
        with running_gateway(upstream.url) as gateway:
            caller = socket.create_connection(("127.0.0.1", urlsplit(gateway.url).port or 0))
            caller.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\n")
            caller.sendall(b"content-length: 15\r\n\r\n" + b'{"messages":[]}')
            caller.recv(1)
        caller.close()


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/files"])
def test_a_caller_that_sends_slowly_holds_no_end(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is no answer to deliver to it."""
    monkeypatch.setattr(application, "STALLED", 0.3)
    ended = threading.Event()
    with ScriptedUpstream(lambda request: [reply(b"{}")]) as upstream:
        with running_gateway(upstream.url) as gateway:
            caller = socket.create_connection(("127.0.0.1", urlsplit(gateway.url).port or 0))
            head = f"POST {path} HTTP/1.1\r\nhost: x\r\ncontent-length: 100000\r\n\r\n"
            caller.sendall(head.encode())

            def send() -> None:
                with suppress(OSError):
                    while not ended.wait(0.05):
                        caller.sendall(b" ")

            thread = threading.Thread(target=send)
            thread.start()
            ended.wait(0.3)  # for the request to be under way
        ended.set()
        thread.join()
        caller.close()


def test_a_decision_goes_on_where_the_caller_leaves() -> None:
    """And is not made again."""

    class Slow:
        made = 0

        def decide(self, *_: Any, **__: Any) -> asyncio.Task[list[Any]]:
            self.made += 1
            return asyncio.create_task(asyncio.sleep(0.05, []))

    async def leaves() -> int:
        outputs: Any = Slow()
        sent = AsyncMock()
        call: Any = SimpleNamespace(settings=SimpleNamespace(scope="content"), n=0)
        stream = StreamedAnswer(call, Mock(), outputs, write=sent, note=print)
        ending = asyncio.create_task(stream.finish())
        await asyncio.sleep(0.01)
        ending.cancel()
        await asyncio.gather(ending, return_exceptions=True)
        await stream.leave()
        made: int = outputs.made
        return made

    assert asyncio.run(leaves()) == 1
