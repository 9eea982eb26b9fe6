"""Callers that try to leave the base URL, to hold up all other calls, or to fill the memory."""

from __future__ import annotations

import asyncio
import gzip
import http.client
import json
import random
import socket
import threading
import tracemalloc
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest
from running_gateway import GoldChecker, running_gateway
from scripted_upstream import Request, ScriptedUpstream, completion, reply

from gatekeeper import BadInputError, Budget, VerificationGate
from gatekeeper.gateway import bodies
from gatekeeper.gateway.codings import MOST, PARTS, SLICE, CodingError, Decoder, decoded
from gatekeeper.gateway.metrics import Metrics
from gatekeeper.gateway.route import Route
from gatekeeper.gateway.routes import Routes
from gatekeeper.gateway.settings import GatewaySettings
from gatekeeper.gateway.tasks import CODE, Tasks

CHAT = "/v1/chat/completions"
BODY = json.dumps({"model": "m", "messages": []}).encode()
TASK = {"kind": "math", "gold": "S3CRET"}


def asked(url: str, method: str, path: str, body: bytes | None, **headers: str) -> tuple[int, str]:
    """The status of a request whose path is sent as it is, and the code of an error."""
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=60)
    connection.request(method, path, body, headers)
    answer = connection.getresponse()
    value = json.loads(answer.read())
    connection.close()
    return answer.status, value.get("error", {}).get("code", "")


@pytest.mark.parametrize("base", ["/tenant/v1", "/tenant"])
def test_no_path_leaves_the_base_url(base: str) -> None:
    """The gateway's key is for what is below it; and no task passes in a path that is resolved."""
    task = json.dumps({"model": "m", "messages": [], "gatekeeper": {"task": TASK}}).encode()
    with (
        ScriptedUpstream(lambda request: [reply(json.dumps(completion()).encode())]) as upstream,
        running_gateway(upstream.url.removesuffix("/v1") + base, upstream_key="sk-key") as gateway,
    ):
        for path in (
            "/../admin", "/v1/../../admin", "/%2e%2e/admin", "/v1/..%2f..%2Fadmin", "/v1/.%2E/x",
            "/v1/..", "/v1/x/..?a=b", "/v1/..%5C..%5cadmin", f"{CHAT}/.", "/v1/chat/./completions",
        ):  # fmt: skip
            for method, body in (("GET", None), ("POST", task)):
                assert asked(gateway.url, method, path, body) == (400, "dot_segments"), path
        assert upstream.requests == []
        for path in ("/v1/files/a..b", "/v1/.well-known/x", "/v1/models/...", "/v1/x?a=/../"):
            assert asked(gateway.url, "GET", path, None)[0] == 200
            assert upstream.requests[-1].path == f"/tenant{path}"


@pytest.mark.parametrize(
    ("origin", "passes"),
    [
        ("https://evil.example", False),
        ("http://6.6.6.6", False),
        ("http://localhost.evil.example:8080", False),
        ("null", False),
        ("http://[", False),
        ("http://localhost:3000", True),
        ("http://LOCALHOST.", True),
        ("http://127.0.0.1:3000", True),
        ("http://[::1]:3000", True),
        ("http://192.168.0.7", True),
        ("app://chat", True),
    ],
)
def test_no_other_site_spends_the_upstreams_key(origin: str, passes: bool) -> None:
    """A page's text needs no permission of the server, and most APIs permit all pages."""
    headers = {"origin": origin, "content-type": "text/plain"}
    with ScriptedUpstream(lambda request: [reply(json.dumps(completion()).encode())]) as upstream:
        for key in ("sk-key", None):  # None: callers have their own
            with running_gateway(upstream.url, upstream_key=key) as gateway:
                for path in (CHAT, "/v1/embeddings"):
                    status, code = asked(gateway.url, "POST", path, BODY, **headers)
                    refused = key is not None and not passes
                    assert (status, code) == ((403, "other_site") if refused else (200, ""))
        assert len(upstream.requests) == (4 if passes else 2)


@pytest.mark.parametrize(
    ("coding", "part", "count"),
    [
        ("gzip", gzip.compress(b"", mtime=0), PARTS + 1),
        ("deflate", b"\3\0", PARTS + 1),
        (", ".join(["gzip"] * (MOST + 1)), b"", 0),
    ],
)
def test_a_body_with_too_many_parts_or_codings(coding: str, part: bytes, count: int) -> None:
    """The time to read it would grow with their square, and all calls would wait for it."""
    body = part * count if count else BODY
    for _ in coding.split(",") if not count else ():
        body = gzip.compress(body)
    with pytest.raises(CodingError):
        decoded(body, coding)
    with (
        ScriptedUpstream(lambda request: [reply(BODY)]) as upstream,
        running_gateway(upstream.url) as gateway,
    ):
        assert asked(gateway.url, "POST", CHAT, body, **{"content-encoding": coding}) == (
            415,
            "unreadable_body",
        )
        assert upstream.requests == []


def test_parts_of_all_lengths_are_read() -> None:
    """Also those that end where a slice does, or within one."""
    draw = random.Random(1)
    parts = [draw.randbytes(draw.choice((0, 1, 100, SLICE))) for _ in range(200)]
    body = b"".join(gzip.compress(part, 0) for part in parts)
    for length in (0, 1, SLICE - 23, SLICE - 24, SLICE - 46, SLICE):  # with gzip's head and tail
        first = gzip.compress(draw.randbytes(length), 0)
        assert decoded(first + body, "gzip") == gzip.decompress(first + body)
    decoder = Decoder("gzip")
    cuts = [body[i : i + 999] for i in range(0, len(body), 999)]
    assert b"".join(map(decoder.add, cuts)) == b"".join(parts)
    decoder.end()
    whole = BODY
    for _ in range(MOST):
        whole = gzip.compress(whole)
    assert decoded(whole, ", ".join(["gzip"] * MOST)) == BODY


@pytest.mark.parametrize(("letters", "is_remembered"), [(9, True), (1 << 16, False)])
def test_only_short_names_are_remembered(letters: int, is_remembered: bool) -> None:
    """Those of models without log-probabilities; the memory would have thousands of any length."""
    body = json.dumps({"model": "m" * letters, "messages": []}).encode()

    def script(request: Request) -> list[bytes]:
        if b"logprobs" in request.body:
            return [reply(b'{"error": "no logprobs"}', status="400 Bad Request")]
        return [reply(json.dumps(completion(logprobs=False)).encode())]

    with ScriptedUpstream(script) as upstream, running_gateway(upstream.url) as gateway:
        for _ in range(2):
            assert asked(gateway.url, "POST", CHAT, body) == (200, "")
        tried = [b"logprobs" in request.body for request in upstream.requests]
        assert tried == ([True, False, False] if is_remembered else [True, False, True, False])


def test_routes_remember_only_short_names() -> None:
    settings = GatewaySettings(upstream="http://127.0.0.1:9/v1")

    async def used() -> int:
        found = [
            Route(gate=gate, settings=settings),
            Route(gate=gate, settings=settings, name="big", models=["big-*"]),
        ]
        routes = Routes(found, Metrics(found))
        own, big = routes.of("small"), routes.of("big-1")
        assert own is not big
        tracemalloc.start()
        try:
            for i in range(32):
                assert routes.of(f"small{i:01048576}") is own
                assert routes.of(f"big-{i:01048576}") is big
            return tracemalloc.get_traced_memory()[0]
        finally:
            tracemalloc.stop()
            await routes.close()

    with VerificationGate("random", budget=Budget(fraction=0.5), verifier=GoldChecker()) as gate:
        assert asyncio.run(used()) < 8 << 20


@pytest.mark.parametrize("path", [CHAT, "/gatekeeper/tasks/a"])
def test_callers_that_stall_keep_no_room_from_others(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that began first are refused; what is forwarded, or has arrived, stays."""
    monkeypatch.setattr(bodies, "ROOM", (4 << 17) + (1 << 10))
    came, go_on, method = threading.Event(), threading.Event(), "POST" if path == CHAT else "PUT"

    def script(request: Request) -> Iterator[bytes | float]:
        if b"slow" in request.body:
            came.set()
            while not go_on.is_set():
                yield 0.01
        yield reply(json.dumps(completion()).encode())

    with (
        ScriptedUpstream(script) as upstream,
        running_gateway(upstream.url) as gateway,
        ThreadPoolExecutor(1) as pool,
        ExitStack() as stack,
    ):
        stack.callback(go_on.set)

        def stalled(path: str, length: int) -> socket.socket:
            host, port = gateway.url.removeprefix("http://").split(":")
            caller = stack.enter_context(socket.create_connection((host, int(port)), timeout=60))
            head = f"{method} {path} HTTP/1.1\r\nhost: x\r\ncontent-length: {length + 1}\r\n\r\n"
            caller.sendall(head.encode() + b" " * length)
            asked(gateway.url, "GET", "/gatekeeper/healthz", None)  # it has begun to arrive
            return caller

        def head_of(caller: socket.socket) -> bytes:
            return caller.recv(1 << 16).lower()

        slow = json.dumps({"model": "slow", "messages": [], "x": "x" * (3 << 17)}).encode()
        forwarded = pool.submit(asked, gateway.url, "POST", CHAT, slow)
        assert came.wait(60)
        passing = stalled("/v1/files", 1 << 17)  # not read here, so not counted
        callers = [stalled(path, 1 << 17) for _ in range(6)]
        for caller in callers[:2]:
            head = head_of(caller)
            assert head.startswith(b"http/1.1 503 ")
            assert b"\r\nretry-after: 1\r\n" in head
            assert b"too_many_bodies" in head + (b"" if b"{" in head else head_of(caller))
        body = json.dumps({"model": "m", "messages": [], "x": "x" * (1 << 17)}).encode()
        assert asked(gateway.url, "POST", CHAT, body) == (200, "")
        for caller in (*callers[3:], passing):
            caller.sendall(b" ")
            assert b"503" not in head_of(caller)[:16]
        go_on.set()
        assert forwarded.result(60) == (200, "")


def test_a_body_that_says_that_it_is_too_large() -> None:
    with (
        ScriptedUpstream(lambda request: [reply(BODY)]) as upstream,
        running_gateway(upstream.url) as gateway,
    ):
        for length in (bodies.MAX_BODY, bodies.MAX_BODY + 1):
            connection = http.client.HTTPConnection(gateway.url.removeprefix("http://"), timeout=60)
            connection.putrequest("POST", CHAT)
            connection.putheader("content-length", str(length))
            connection.endheaders(b" ")
            if length > bodies.MAX_BODY:
                answer = connection.getresponse()
                assert (answer.status, json.loads(answer.read())["error"]["code"]) == (
                    413,
                    "body_too_large",
                )
            connection.close()
        assert upstream.requests == []


def test_code_that_takes_long_to_parse() -> None:
    """Every other call would wait: it is refused, in a body as well, however it is divided."""
    half = "f()\n" * (CODE // 8)
    for tests, more in ((["assert f()"], f"{half}{half}"), ([half, f"{half}#"], "")):
        task = {"kind": "code", "tests": tests, "test_setup_code": more}
        body = json.dumps({"model": "m", "messages": [], "gatekeeper": {"task": task}}).encode()
        with (
            ScriptedUpstream(lambda request: [reply(BODY)]) as upstream,
            running_gateway(upstream.url, kinds=["code"]) as gateway,
        ):
            path = "/gatekeeper/tasks/a"
            found = asked(gateway.url, "PUT", path, json.dumps(task).encode())
            assert found == (400, "invalid_task")
            assert asked(gateway.url, "POST", CHAT, body) == (400, "gatekeeper_settings")
            assert upstream.requests == []
    tasks = Tasks(kinds=["code"])
    with pytest.raises(BadInputError, match=f"has {CODE + 1} characters of code, and {CODE} are"):
        tasks.checked("a", task)
    assert tasks.checked("a", task | {"tests": [half, half]})["tests"] == [half, half]
