"""What may not leave the gateway: tasks on their way upstream, callers' keys everywhere else."""

from __future__ import annotations

import gzip
import http.client
import itertools
import json
import logging
import re
import socket
import zlib
from argparse import ArgumentTypeError
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from running_gateway import running_gateway
from scripted_upstream import CUT, Request, ScriptedUpstream, completion, event_stream, reply

from gatekeeper import BadInputError
from gatekeeper.adapters.generate import openai_generator
from gatekeeper.adapters.openai.base_url import check_client_url
from gatekeeper.gateway.settings import GatewaySettings
from gatekeeper.page.access import Access
from gatekeeper.programs.values import base_url
from gatekeeper.telemetry.opentelemetry import OpenTelemetry
from gatekeeper.types import Generation, Outcome, Verdict

CHAT = "/v1/chat/completions"
USERS = ("@api.example/v1", "@[/v1", "@api.example:x", "@ /v1?a=b")  # after a password in a URL
BODIES: dict[str, dict[str, Any]] = {
    CHAT: {"model": "m", "messages": [{"role": "user", "content": "q"}]},
    "/v1/completions": {"model": "m", "prompt": "q"},
    "/v1/responses": {"model": "m", "input": "q"},
    f"{CHAT}/": {"model": "m", "messages": []},
    "/openai/deployments/d/chat/completions?api-version=1": {"messages": []},
}
GOLD = 4_310_431  # more digits than a port has, which is on the wire too
TASKS: list[dict[str, Any]] = [
    {"kind": "math", "gold": f"7/{GOLD} S3CRET"},
    {
        "kind": "code",
        "prompt": "S3CRET",
        "entry_point": "f_S3CRET",
        "tests": [f"assert f_S3CRET(7) == {GOLD}"],
    },
]


class Seeing:
    """Knows the tasks that it got."""

    def __init__(self) -> None:
        self.tasks: list[Mapping[str, Any]] = []

    def verify(self, generation: Generation, task: Mapping[str, Any]) -> Outcome:
        self.tasks.append(task)
        return Outcome(Verdict.FAILED, detail="S3CRET was expected")


class Caller:
    """Sends requests, and keeps all that comes back."""

    def __init__(self, url: str) -> None:
        self._at = urlsplit(url)
        self.got: list[bytes] = []

    def send(
        self,
        path: str,
        body: bytes | None,
        headers: Mapping[str, str] | None = None,
        *,
        method: str = "POST",
    ) -> int:
        """The status; 0 if the connection ended without an answer."""
        connection = http.client.HTTPConnection(self._at.netloc, timeout=60)
        try:
            connection.request(method, path, body, dict(headers or {}))
            answer = connection.getresponse()
            self.got.append(repr((answer.reason, answer.getheaders())).encode())
            try:
                self.got.append(answer.read())
            except http.client.IncompleteRead as error:
                self.got.append(error.partial)
            return answer.status
        except ConnectionError:
            return 0
        finally:
            connection.close()

    def raw(self, request: bytes) -> bytes:
        """What comes back for these bytes, until the connection ends."""
        with socket.create_connection((self._at.hostname, self._at.port), timeout=60) as connection:
            connection.sendall(request)
            found = b"".join(iter(lambda: connection.recv(65536), b""))
        self.got.append(found)
        return found


def answers(request: Request) -> Any:
    asked = json.loads(request.body)
    if asked.get("model") == "refuses" and len(asked.keys() & {"logprobs", "include"}):
        return [reply(b'{"error": {"message": "no logprobs"}}', status="400 Bad")]
    whole = completion("7")
    if not asked.get("stream"):
        return [reply(json.dumps(whole).encode())]
    choice = whole["choices"][0] | {"delta": {"content": "7"}}
    chunk = f"data: {json.dumps(whole | {'choices': [choice]})}\n\n"
    return event_stream(chunk.encode(), b"data: [DONE]\n\n")


def test_no_task_goes_upstream() -> None:
    """By body, by header and by PUT, for every endpoint, whole and as a stream, also where the
    request is sent again without log-probabilities: upstream sees the caller's own members, and
    those that request log-probabilities."""
    verifier = Seeing()
    with (
        ScriptedUpstream(answers) as upstream,
        running_gateway(upstream.url, verifier=verifier, kinds=("math", "code")) as gateway,
    ):
        caller, calls = Caller(gateway.url), 0
        ways = ["body", "spelt", "header", "both"]
        for i, task in enumerate(TASKS):
            put = caller.send(f"/gatekeeper/tasks/t{i}", json.dumps(task).encode(), method="PUT")
            assert put == 201
            for (path, asked), way, stream, model in itertools.product(
                BODIES.items(), ways, [{}, {"stream": True}], ["m", "refuses"]
            ):
                body = asked | stream | {"model": model}
                own = {} if way == "header" else {"task": task, "wait": "verdict"}
                text = json.dumps({"gatekeeper": own} | body if own else body)
                if way == "spelt":
                    text = text.replace("gatekeeper", "g\\u0061tekeeper").replace("S3", "\\u00533")
                headers = {"x-gatekeeper-task": f"t{i}"} if way in ("header", "both") else {}
                status = caller.send(path, text.encode(), headers | {"x-gatekeeper-key": "S3CRET"})
                assert status == 200
                calls += 1
                sent = json.loads(upstream.requests[-1].body)
                added = sent.keys() - body.keys()
                assert added <= {"logprobs", "top_logprobs", "include"}
                assert {name: sent[name] for name in sent.keys() - added} == body
        assert calls == 160
    assert len(verifier.tasks) >= 128  # answers of the Responses API have no output here
    assert "S3CRET" in repr(verifier.tasks)
    assert b"S3" not in upstream.wire
    assert str(GOLD).encode() not in upstream.wire
    assert b"gatekeeper" not in upstream.wire.lower()


OWN = '"gatekeeper": {"task": {"kind": "math", "gold": "S3CRET"}}'
UNREAD = {
    "no JSON": f'{{"model": "m", {OWN},}}'.encode(),
    "cut": f'{{{OWN}, "model": "m'.encode(),
    "spelt": rb'{"g\u0061te\u006Beeper" : {"gold": "S3CRET"},}',
    "no object": f"[{{{OWN}}}]".encode(),
    "deep": f'{{"a": {"[" * 500_000}{"]" * 500_000}, {OWN}}}'.encode(),
    "digits": f'{{"a": {"9" * 5000}, {OWN}}}'.encode(),
    "mark": f"\ufeff{{{OWN}}}".encode(),
    "UTF-16": f"{{{OWN}}}".encode("utf-16"),
    "Latin-1": f'{{"a": "\u00e9", {OWN}}}'.encode("latin-1"),
    "gzip": gzip.compress(f"{{{OWN}}}".encode()),
}


@pytest.mark.parametrize("name", [*UNREAD])
def test_a_task_in_a_body_that_cannot_be_read_goes_nowhere(name: str) -> None:
    """It is refused, while the same body without the task is forwarded unchanged, also if it speaks
    of the gateway."""
    body = UNREAD[name]
    headers = {"content-encoding": "gzip"} if name == "gzip" else {}
    if name == "gzip":
        other = gzip.compress(b'{"messages": "\\"gatekeeper\\": 1"}')
    else:
        other = body.replace(OWN.encode(), rb'"x": "\"gatekeeper\": 1"')
        other = other.replace(rb"\u0061te", b"").replace(f"{OWN}".encode("utf-16")[2:], b"")
    with (
        ScriptedUpstream(lambda request: [reply(b"{}")]) as upstream,
        running_gateway(upstream.url) as gateway,
    ):
        caller = Caller(gateway.url)
        assert caller.send(CHAT, body, headers) == 400
        assert b"'gatekeeper' and cannot be read" in caller.got[-1]
        assert b"S3CRET" not in caller.got[-1]
        assert upstream.requests == []
        assert caller.send(CHAT, other, headers) == 200
        assert upstream.requests[-1].body == other


def raw_deflate(text: bytes) -> bytes:
    made = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return made.compress(text) + made.flush()


COMPRESSED: dict[str, tuple[str, Callable[[bytes], bytes], int]] = {
    "gzip": ("gzip", gzip.compress, 400),
    "old name": ("X-GZip", gzip.compress, 400),
    "members": ("gzip", lambda text: gzip.compress(text[:9]) + gzip.compress(text[9:]), 400),
    "zlib": ("deflate", zlib.compress, 400),
    "raw": ("deflate", raw_deflate, 400),
    "twice": ("gzip, gzip", lambda text: gzip.compress(gzip.compress(text)), 400),
    "two ways": ("deflate, gzip", lambda text: gzip.compress(zlib.compress(text)), 400),
    "cut": ("gzip", lambda text: gzip.compress(text)[:-8], 415),
    "unknown": ("br", lambda text: text[::-1], 415),
}


@pytest.mark.parametrize("name", [*COMPRESSED])
def test_a_task_in_a_compressed_body_goes_nowhere(name: str) -> None:
    coding, compress, status = COMPRESSED[name]
    headers = {"content-encoding": coding}
    with (
        ScriptedUpstream(lambda request: [reply(b"{}")]) as upstream,
        running_gateway(upstream.url) as gateway,
    ):
        caller = Caller(gateway.url)
        assert caller.send(CHAT, compress(f"{{{OWN}}}".encode()), headers) == status
        assert b"S3CRET" not in caller.got[-1]
        assert upstream.requests == []
        other = compress(b'{"model": "m", "messages": []}')
        assert caller.send(CHAT, other, headers) == (200 if status == 400 else status)


def test_a_coding_on_a_line_of_its_own_hides_no_task() -> None:
    """A header of several lines is one list."""
    body = gzip.compress(f"{{{OWN}}}".encode())
    head = f"{HEAD}content-encoding: identity\r\ncontent-encoding: gzip\r\nconnection: close\r\n"
    with (
        ScriptedUpstream(lambda request: [reply(b"{}")]) as upstream,
        running_gateway(upstream.url) as gateway,
    ):
        request = f"{head}content-length: {len(body)}\r\n\r\n".encode() + body
        assert Caller(gateway.url).raw(request).startswith(b"HTTP/1.1 400")
        assert upstream.requests == []


@pytest.mark.parametrize("page", [None, Access()])
def test_a_task_that_is_put_to_another_path_goes_nowhere(
    page: Access | None, tmp_path: Path
) -> None:
    paths = ["/v1/gatekeeper/tasks/x", "//gatekeeper/tasks/x", "/Gatekeeper/tasks/x"]
    paths += ["/gatekeeper%2Ftasks/x", "/%67atekeeper/tasks", "/%2567atekeeper/tasks/x"]
    paths += ["/gatekeeper/task/x", "/gatekeeper/results/x", "/gatekeeper/"]
    with (
        ScriptedUpstream(lambda request: [reply(b"{}")]) as upstream,
        running_gateway(upstream.url, page=page, gate={"log": tmp_path / "gate.db"}) as gateway,
    ):
        caller, task = Caller(gateway.url), json.dumps(TASKS[0]).encode()
        for path, method in itertools.product(paths, ("PUT", "POST")):
            assert caller.send(path, task, method=method) in (404, 405), path
        assert upstream.requests == []
        assert caller.send("/v1/models/gatekeeper", None, method="GET") == 200
        assert len(upstream.requests) == 1


# -- keys ------------------------------------------------------------------------------------------

KEY = "sk-5ecret-0123456789"


FAULTS: dict[str, Any] = {
    "cut-head": [CUT],
    "cut-body": [reply(b"x" * 100)[:-50], CUT],
    "cut-stream": event_stream(b'data: {"choices": []}\n\ndata: {"cho', CUT, ends=False),
    "no-http": [b"what?\r\n\r\n"],
    "error": [reply(b'{"error": {"message": "no"}}', status="429 Slow Down")],
    "no-json": [reply(b"hello")],
}
FAILING: list[tuple[int, dict[str, Any], dict[str, str]]] = [
    *(
        (status, {"model": m}, {})
        for m, status in zip(FAULTS, [502, 0, 200, 502, 429, 200], strict=True)
    ),
    (400, {"gatekeeper": {"wait": "soon"}}, {}),
    (400, {"gatekeeper": {"task": 7}}, {}),
    (422, {"gatekeeper": {"task": TASKS[0], "on_failed": "block"}}, {}),
    (401, {}, {"x-gatekeeper-key": "no"}),
    (400, {}, {"x-gatekeeper-task": "unknown"}),
]
HEAD = f"POST {CHAT} HTTP/1.1\r\nhost: x\r\nx-gatekeeper-key: 0wn\r\n"
NO_HTTP = [
    f"{HEAD}authorization: Bearer {KEY}\0\r\n\r\n",
    f"{HEAD}authorization: Bearer {KEY}{'a' * 70_000}\r\n\r\n",
    f"{HEAD}authorization Bearer {KEY}\r\n\r\n",
    f"{HEAD}authorization: Bearer\r\n {KEY}\r\ncontent-length: x\r\n\r\n",
    f"{HEAD}authorization: Bearer {KEY}\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n",
    f"{HEAD}authorization: Bearer {KEY}\r\ntransfer-encoding: {KEY}\r\n\r\n",
    f"authorization: Bearer {KEY}\r\n\r\n",
]


def test_a_key_is_nowhere_but_upstream(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    """Not in an answer or an error, on the page, in the log, in an event of telemetry, in what the
    program writes: after calls that succeed, and after every kind of failure."""
    caplog.set_level(logging.DEBUG)
    events, logs = InMemoryLogRecordExporter(), LoggerProvider()
    logs.add_log_record_processor(SimpleLogRecordProcessor(events))
    headers = {
        "authorization": f"Bearer {KEY}",
        "api-key": KEY,
        "cookie": f"session={KEY}",
        "x-gatekeeper-key": "0wn",
        "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    }
    options: Any = {
        "gate": {"log": tmp_path / "gate.db", "telemetry": OpenTelemetry(logger_provider=logs)},
        "page": Access(),
        "own_key": "0wn",
        "traced": True,
    }

    def script(request: Request) -> Any:
        return FAULTS.get(json.loads(request.body).get("model")) or answers(request)

    with ScriptedUpstream(script) as upstream, running_gateway(upstream.url, **options) as gateway:
        caller = Caller(gateway.url)
        for (path, body), stream in itertools.product(BODIES.items(), [{}, {"stream": True}]):
            own = {"task": TASKS[0], "wait": "verdict"}
            asked = json.dumps(body | stream | {"gatekeeper": own})
            assert caller.send(path, asked.encode(), headers) == 200
        assert upstream.wire.count(KEY.encode()) == 3 * 2 * len(BODIES)
        for status, more, also in FAILING:
            text = json.dumps(BODIES[CHAT] | more).encode()
            assert caller.send(CHAT, text, headers | also) == status, more
        for request in NO_HTTP:
            assert caller.raw(request.encode()).split()[1] == b"400"
        assert caller.send(f"{CHAT}/x", b"{}", headers) == 200  # a path that is not gated
        for name in ("metrics", "healthz", "results/unknown", "nothing", ""):
            caller.send(f"/gatekeeper/{name}", None, headers, method="GET")
        outputs = re.findall(r"outputs/\d+", caller.got[-1].decode())
        assert len(outputs) >= 8
        for output in outputs:
            assert caller.send(f"/gatekeeper/{output}", None, headers, method="GET") == 200
    written = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    found = {
        "answers": b"".join(caller.got),
        "log": written,
        "events": "".join(each.to_json() for each in events.get_finished_logs()).encode(),
        "program": caplog.text.encode(),
        "output": "".join(capfd.readouterr()).encode(),
    }
    assert all(len(found[name]) > 1000 for name in ("answers", "log", "events", "program"))
    assert [name for name, text in found.items() if b"5ecret" in text] == []


def test_the_gateway_s_key_is_asked_for_on_every_path(tmp_path: Path) -> None:
    """Also on those that resemble the page's, which a browser visits without it."""
    options: Any = {"page": Access(), "gate": {"log": tmp_path / "gate.db"}}
    tops = ["", "/gatekeeper%2Foutputs%2Fx/..", "/gatekeeper/outputs/x/../..", "/gatekeeper/.."]
    tops += ["/gatekeeper%2Fverdicts", "/gatekeeper%2F", "//gatekeeper/outputs/x"]
    with (
        ScriptedUpstream(lambda request: [reply(b"{}")]) as upstream,
        running_gateway(upstream.url, own_key="0wn", upstream_key=KEY, **options) as gateway,
    ):
        caller = Caller(gateway.url)
        for top in tops:
            assert caller.send(f"{top}{CHAT}", b"{}") in (401, 404), top
        assert upstream.requests == []
        assert caller.send(CHAT, b"{}", {"x-gatekeeper-key": "0wn"}) == 200
        assert len(upstream.requests) == 1


def test_a_request_as_to_a_proxy_goes_to_the_upstream() -> None:
    """A URL in place of the path names no other server, which would get the upstream's key."""
    with (
        ScriptedUpstream(answers) as upstream,
        running_gateway(upstream.url, upstream_key=KEY) as gateway,
    ):
        caller = Caller(gateway.url)
        for url in ("http://127.0.0.1:9", "t://x", "http://x.y", "http://.evil.example"):
            text = json.dumps(BODIES[CHAT]).encode()
            assert caller.send(f"{url}{CHAT}?a=%2F", text) == 200
            assert upstream.requests[-1].path == f"{CHAT}?a=%2F"


@pytest.mark.parametrize(
    "url",
    [
        *(f"{s}://user:{{}}{rest}" for s in ("https", "ftp") for rest in USERS),
        *("http://u:{}/@h/v1", "http://u:{}#@h/v1", "u:{}@h", "http:/u:{}@h", "http://{}@h/v1"),
        *("http://h:{}/v1", "http://h:{}", "h:{}/v1", "{}", "http://[{}", "http://h {}"),
        *("https://api.example/v1?key={}", "https://api.example/v1#{}"),
    ],
)
@pytest.mark.parametrize(
    "read",
    [
        lambda url: GatewaySettings(upstream=url),
        base_url,
        check_client_url,
        lambda url: openai_generator("m", base_url=url),
    ],
    ids=["gateway", "commands", "clients", "generator"],
)
def test_a_url_with_a_password_or_a_key_is_refused_and_not_shown(
    url: str, read: Callable[[str], Any]
) -> None:
    """Callers see the URL in errors, and so does who reads the message."""
    with pytest.raises((BadInputError, ArgumentTypeError), match="give the base URL") as error:
        read(url.format(KEY))
    assert KEY not in str(error.value)


def test_the_url_of_the_environment_is_checked_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that is given none has that one, and messages show it."""
    monkeypatch.setenv("OPENAI_BASE_URL", f"http://user:{KEY}@127.0.0.1:9/v1")
    with pytest.raises(BadInputError, match=r"^OPENAI_BASE_URL .* has a user or a pass") as error:
        openai_generator("m")
    assert KEY not in str(error.value)
    openai_generator("m", base_url="http://127.0.0.1:9/v1")
