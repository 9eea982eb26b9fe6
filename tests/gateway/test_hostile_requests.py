"""Callers that try to leave the base URL, to hold up all other calls, or to fill the memory."""

from __future__ import annotations

import asyncio
import gzip
import http.client
import json
import random
import tracemalloc

import pytest
from running_gateway import GoldChecker, running_gateway
from scripted_upstream import Request, ScriptedUpstream, completion, reply

from gatekeeper import BadInputError, Budget, VerificationGate
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
