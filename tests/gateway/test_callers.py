"""The server beneath the gateway: what it adds to no answer, and what it leaves to aiohttp."""

from __future__ import annotations

import http.client
import socket
from contextlib import suppress
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import pytest
from aiohttp import web
from aiohttp.http import SERVER_SOFTWARE
from running_gateway import running_gateway
from scripted_upstream import ScriptedUpstream, reply

from gatekeeper.gateway import server

PATHS = ["/v1/chat/completions", "/v1/other", "/gatekeeper/healthz", "/gatekeeper/unknown"]


def names_of(url: str, path: str) -> set[str]:
    """The headers of an answer."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=60)
    try:
        connection.request("POST" if path.startswith("/v1") else "GET", path, b"{}")
        answer = connection.getresponse()
        answer.read()
        return {name.lower() for name in answer.headers}
    finally:
        connection.close()


def test_no_answer_names_the_server() -> None:
    with (
        ScriptedUpstream(lambda request: [reply(b"{}")]) as upstream,
        running_gateway(upstream.url) as gateway,
    ):
        for path in PATHS:
            names = names_of(gateway.url, path)
            assert "content-type" in names
            assert "server" not in names


HEAD = b"HTTP/1.1 200 Tr\xc3\xa8s bien\r\nx-name: caf\xc3\xa9\r\n"
SERVER = f"server: {SERVER_SOFTWARE}\r\n".encode()  # such as an upstream with aiohttp sends
ANSWERS = {
    "whole": [HEAD + SERVER + b"content-length: 2\r\n\r\n{}"],
    "stream": [
        HEAD + b"content-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n",
        b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n",
    ],
}


@pytest.mark.parametrize("path", PATHS[:2])
@pytest.mark.parametrize("answer", ANSWERS)
def test_heads_are_the_same_bytes(path: str, answer: str) -> None:
    """None is added that aiohttp would add."""
    with (
        ScriptedUpstream(lambda request: ANSWERS[answer]) as upstream,
        running_gateway(upstream.url) as gateway,
    ):
        at = urlsplit(gateway.url)
        with socket.create_connection((at.hostname, at.port), timeout=60) as connection:
            head = b"POST %s HTTP/1.1\r\nhost: x\r\nx-asked: na\xc3\xafve\r\n" % path.encode()
            connection.sendall(head + b"connection: close\r\ncontent-length: 2\r\n\r\n{}")
            found = b"".join(iter(lambda: connection.recv(65536), b"")).partition(b"\r\n\r\n")[0]
        assert b"\r\nx-asked: na\xc3\xafve\r\n" in upstream.requests[0].head
        assert found.startswith(HEAD[:-2])
        names = {name for name in (b"content-type", b"server") if name in found.lower()}
        assert names == ({b"server"} if answer == "whole" else {b"content-type"})


def test_a_caller_that_waits_for_the_word_to_continue() -> None:
    """As curl does with a long body: it gets it, and the header is not forwarded."""
    with (
        ScriptedUpstream(lambda request: [reply(b"{}")]) as upstream,
        running_gateway(upstream.url) as gateway,
    ):
        at = urlsplit(gateway.url)
        for path in PATHS[:2]:
            with socket.create_connection((at.hostname, at.port), timeout=60) as connection:
                head = f"POST {path} HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\n"
                connection.sendall(f"{head}content-length: 2\r\n\r\n".encode())
                assert connection.recv(65536) == b"HTTP/1.1 100 Continue\r\n\r\n"
                connection.sendall(b"{}")
                assert connection.recv(65536).startswith(b"HTTP/1.1 200 ")
            assert upstream.requests[-1].header("expect") is None


def test_an_instrumented_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """Middlewares that are added to every application, as by OpenTelemetry, see each request."""
    seen: list[str] = []

    @web.middleware
    async def noted(request: web.Request, handler: Any) -> web.StreamResponse:
        seen.append(request.path)
        response: web.StreamResponse = await handler(request)
        return response

    monkeypatch.setattr(web, "Application", partial(web.Application, middlewares=[noted]))
    with (
        ScriptedUpstream(lambda request: [reply(b"{}")]) as upstream,
        running_gateway(upstream.url) as gateway,
    ):
        for path in PATHS:
            names_of(gateway.url, path)
    assert seen == PATHS


def test_a_request_with_too_many_headers() -> None:
    """The answer says so."""
    with running_gateway("http://127.0.0.1:9/v1") as gateway:
        connection = http.client.HTTPConnection(urlsplit(gateway.url).netloc, timeout=60)
        connection.request("GET", "/v1/models", headers={f"x-{i}": "v" for i in range(150)})
        answer = connection.getresponse()
        assert answer.status == 400
        assert b"or too many headers (aiohttp reads 128)" in answer.read()
        connection.close()


def test_a_head_that_never_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its connection is closed, as one that is idle; aiohttp would keep both for an hour."""
    monkeypatch.setattr(server, "KEEP", 0.3)
    with running_gateway("http://127.0.0.1:9/v1") as gateway:
        for sent in (b"", b"GET /v1/models HTTP/1.1\r\nx-long: "):
            at = urlsplit(gateway.url)
            with socket.create_connection((at.hostname, at.port), timeout=60) as caller:
                caller.sendall(sent)
                with suppress(ConnectionError):
                    assert caller.recv(1) == b""
