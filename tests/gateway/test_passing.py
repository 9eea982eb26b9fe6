"""Requests and answers are the same with and without the gateway, byte for byte."""

from __future__ import annotations

import gzip
import http.client
import itertools
import json
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import openai
import pydantic
import pytest
from openai_server import Server
from running_gateway import Running, running_gateway
from scripted_upstream import CUT, Request, ScriptedUpstream, completion, event_stream, reply
from serving import serving

COMMENT = re.compile(rb": gatekeeper (\{.*\})\n\n")
OWN = re.compile("x-gatekeeper-|content-length$|transfer-encoding$|date$|connection$|keep-alive$")
KEY = {"authorization": "Bearer sk-secret", "content-type": "application/json"}


def send(
    url: str, path: str, body: bytes | None, *, method: str = "POST", headers: Any = KEY
) -> tuple[int, str, dict[str, str], bytes]:
    """Status, reason, headers and body; of a body that breaks off, as much as came."""
    at = urlsplit(url)
    connection = http.client.HTTPConnection(at.hostname or "", at.port, timeout=120)
    try:
        connection.request(method, path, body, headers)
        try:
            answer = connection.getresponse()
        except ConnectionError:
            return 0, "", {}, b"<cut>"
        try:
            data = answer.read()
        except http.client.IncompleteRead as error:
            data = error.partial + b"<cut>"
        except ConnectionError:
            data = b"<cut>"
        found = {k.lower(): v for k, v in answer.getheaders() if not OWN.match(k.lower())}
        return answer.status, answer.reason, found, data
    finally:
        connection.close()


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server() as server:
        yield server


@pytest.fixture(scope="module")
def gateway(server: Server) -> Iterator[Running]:
    with running_gateway(server.url) as running:
        yield running


MESSAGES = {"model": "m", "messages": [{"role": "user", "content": "ask"}]}
BODIES: dict[str, list[dict[str, Any]]] = {
    "/v1/chat/completions": [
        MESSAGES | more | streams
        for more, streams in itertools.product(
            [
                {},
                {"n": 2},
                {"logprobs": None, "x-unknown": {"a": [1.50, "\u00e9", None]}},
                {"logprobs": True},
                {"logprobs": True, "top_logprobs": 2},
                {"logprobs": True, "top_logprobs": 7},
                {"logprobs": False},
                {"messages": [{"role": "user", "content": "refuse"}]},
                {"messages": [{"role": "user", "content": "calltool"}]},
                {"messages": [{"role": "user", "content": "empty"}]},
            ],
            [{}, {"stream": True}, {"stream": True, "stream_options": {"include_usage": True}}],
        )
    ],
    "/v1/completions": [
        {"model": "m", "prompt": "ask"} | more | streams
        for more, streams in itertools.product(
            [{}, {"logprobs": 3}, {"echo": True}], [{}, {"stream": True}]
        )
    ],
    "/v1/responses": [
        {"model": "m", "input": "ask"} | more | streams
        for more, streams in itertools.product(
            [
                {},
                {"include": ["file_search_call.results"]},
                {"include": ["message.output_text.logprobs"], "top_logprobs": 2},
            ],
            [{}, {"stream": True}],
        )
    ],
}


def test_answers_are_the_same(server: Server, gateway: Running) -> None:
    """Every endpoint, in one piece and as a stream, whatever log-probabilities the caller wants;
    and each output has a decision, with signals unless the caller refused them."""
    compared = 0
    for path, bodies in BODIES.items():
        for body in bodies:
            text = json.dumps(body).encode()
            direct = send(server.url, path, text)
            asked = server.sent
            through = send(gateway.url, path, text)
            said = COMMENT.findall(through[3])
            if body.get("stream"):
                assert len(said) == 1, body
                through = (*through[:3], COMMENT.sub(b"", through[3]))
            assert through == direct, body
            assert {k: server.sent[k] for k in asked if "logprobs" not in k and k != "include"} == {
                k: v for k, v in asked.items() if "logprobs" not in k and k != "include"
            }
            compared += 1
            prompt = json.dumps(body)
            if said and "empty" not in prompt and body.get("logprobs") is not False:
                for each in json.loads(said[0])["results"]:
                    found = gateway.gate.find(each["id"])
                    assert found is not None
                    has = found.signals.h1 == found.signals.h1
                    assert has or "calltool" in prompt or body.get("echo"), body
    assert compared == 42


ERRORS = {
    "400": ("400 Bad Request", []),
    "401": ("401 Unauthorized", ["www-authenticate: Bearer"]),
    "404": ("404 Not Found", []),
    "429": (
        "429 Slow Down",
        ["retry-after: 7", "x-ratelimit-remaining-requests: 0", "x-request-id: req_1"],
    ),
    "500": ("500 Oops", ["x-should-retry: false"]),
}
STRANGE = b'{ "id" : "x", "id": "y", "big": 1e400, "n": 0.10, "pi": 3.140000000000000000001 }'


def scripted(request: Request) -> Any:
    """The script that a word in the path or in the body selects."""
    asked = request.path + request.body.decode(errors="replace")
    for word, (status, headers) in ERRORS.items():
        if f"error-{word}" in asked:
            error = {"error": {"message": word, "type": "t", "param": None, "code": None}}
            return [reply(json.dumps(error, indent=1).encode(), status=status, headers=headers)]
    if "cut-plain" in asked:
        return [reply(b"x" * 100)[:-50], CUT]
    if "cut-stream" in asked:
        return event_stream(b'data: {"choices": []}\n\ndata: {"cho', CUT, ends=False)
    if "strange" in asked:
        return [reply(STRANGE)]
    if request.head.startswith(b"HEAD"):
        return [b"HTTP/1.1 200 OK\r\ncontent-type: a/b\r\ncontent-length: 5\r\n\r\n"]
    if "bytes" in asked:
        return [reply(bytes(range(256)) * 8192, kind="audio/x-odd", headers=["set-cookie: a=1"])]
    if "empty" in asked:
        return [b"HTTP/1.1 204 No Content\r\nx-a: b\r\n\r\n"]
    return [reply(request.body or b"{}", headers=["x-unknown: kept"])]


def test_errors_and_odd_bytes_are_the_same() -> None:
    """Upstream errors with their headers, cut connections, JSON that others would change, paths
    that are not gated, requests and answers of 2 MiB."""
    chat = "/v1/chat/completions"
    asked: list[tuple[str, str, bytes | None]] = [
        *(("POST", chat, json.dumps({"model": f"error-{code}"}).encode()) for code in ERRORS),
        ("POST", chat, b'{"model": "cut-plain"}'),
        ("POST", chat, b'{"model": "cut-stream", "stream": true}'),
        ("POST", chat, b'{"model": "strange"}'),
        ("POST", chat, b"[1, 2"),
        ("POST", chat, b'{"model": "\xff"}'),
        ("POST", chat, b""),
        ("POST", "/v1/embeddings", b" " * (2 << 20)),
        ("GET", "/v1/models?limit=%41%2F..", None),
        ("GET", "/health/bytes", None),
        ("DELETE", "/v1/files/empty", None),
        ("HEAD", "/v1/bytes", None),
        ("GET", "/v1/error-429", None),
        ("GET", "/v1/cut-plain", None),
    ]
    with ScriptedUpstream(scripted) as upstream, running_gateway(upstream.url) as gateway:
        for method, path, body in asked:
            headers = KEY | {"x-custom": "a, b"}
            direct = send(upstream.url, path, body, method=method, headers=headers)
            first = upstream.requests[-1]
            through = send(gateway.url, path, body, method=method, headers=headers)
            second = upstream.requests[-1]
            if path == chat and b"cut-stream" in (body or b""):
                assert b"<cut>" in through[3]
            if body == b'{"model": "cut-plain"}':  # it is read to its end before it passes
                assert (direct[3][-5:], through[3]) == (b"<cut>", b"<cut>")
                continue
            assert through == direct, (method, path, body)
            assert second.path == first.path
            assert second.header("x-custom") == "a, b"
            assert second.header("authorization") == "Bearer sk-secret"
        # A compressed request passes as it came.
        packed = gzip.compress(b'{"model": "m"}')
        send(gateway.url, chat, packed, headers=KEY | {"content-encoding": "gzip"})
        assert upstream.requests[-1].body == packed
        assert upstream.requests[-1].header("content-encoding") == "gzip"
        # The caller gets an envelope where there is no upstream at all.
    with running_gateway("http://127.0.0.1:9/v1") as gateway:
        status, _, _, text = send(gateway.url, chat, b'{"model": "m"}')
        assert (status, json.loads(text)["error"]["code"]) == (502, "upstream_unreachable")


def test_errors_are_the_same_for_the_real_client() -> None:
    """Class, status, body, code and headers that the client acts on, of each endpoint, whole and as
    a stream; and nothing is decided on."""

    def error_of(client: openai.OpenAI, call: Any, **asked: Any) -> tuple[Any, ...]:
        with pytest.raises(openai.APIStatusError) as raised:
            call(client).create(**asked)
        error = raised.value
        headers = {k: v for k, v in error.response.headers.items() if not OWN.match(k)}
        known = error.code, error.param, error.type, error.request_id
        return type(error), error.status_code, str(error), error.body, known, headers

    messages = [{"role": "user", "content": "q"}]
    calls: list[tuple[Any, dict[str, Any]]] = [
        (lambda client: client.chat.completions, {"messages": messages}),
        (lambda client: client.chat.completions.with_raw_response, {"messages": messages}),
        (lambda client: client.completions, {"prompt": "q"}),
        (lambda client: client.responses, {"input": "q"}),
    ]
    with (
        ScriptedUpstream(scripted) as upstream,
        running_gateway(upstream.url) as gateway,
        openai.OpenAI(base_url=upstream.url, api_key="sk-secret", max_retries=0) as direct,
    ):
        through = direct.with_options(base_url=f"{gateway.url}/v1")
        found = set()
        for code in ERRORS:
            for (call, asked), stream in itertools.product(calls, (False, True)):
                body = {**asked, "model": f"error-{code}", "stream": stream}
                expected = error_of(direct, call, **body)
                assert error_of(through, call, **body) == expected
                found.add(expected[0])
        assert found == {
            openai.BadRequestError,
            openai.AuthenticationError,
            openai.NotFoundError,
            openai.RateLimitError,
            openai.InternalServerError,
        }
        assert gateway.gate.status().seen == 0


def test_streams_pass_as_they_come() -> None:
    """The head and each frame arrive while the upstream waits before the next one; only the last is
    held, until the verdict where the caller asked for it."""
    chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    entry = completion()["choices"][0]["logprobs"]
    texts = ["a", "b", "7"]

    def frame(text: str, reason: str | None = None) -> bytes:
        choice = {
            "index": 0,
            "delta": {"content": text},
            "logprobs": entry,
            "finish_reason": reason,
        }
        return f"data: {json.dumps(chunk | {'choices': [choice]})}\n\n".encode()

    released: list[str] = []

    def script(request: Request) -> Any:
        yield from event_stream(ends=False)
        for text in texts:
            while text not in released:
                yield 0.005
            yield from event_stream(frame(text, "stop" if text == "7" else None), ends=False)[1:]
        yield from event_stream(b"data: [DONE]\n\n")[1:]

    with ScriptedUpstream(script) as upstream, running_gateway(upstream.url) as gateway:
        client = openai.OpenAI(base_url=f"{gateway.url}/v1", api_key="k", max_retries=0)
        with client:
            stream = client.chat.completions.create(
                model="m",
                messages=[{"role": "user", "content": "q"}],
                stream=True,
                extra_body={"gatekeeper": {"task": {"kind": "math", "gold": "7"}}},
            )
            released.append(texts[0])  # the head has come
            seen = []
            for part in stream:  # the next text is sent only after this one has come
                seen.append(part.choices[0].delta.content)
                assert part.choices[0].logprobs is None
                released.extend(texts[len(seen) : len(seen) + 1])
            assert seen == texts
            # A wrong output ends in an error, in place of the last frame.
            with pytest.raises(openai.APIError, match="is wrong: failed"):
                for _ in client.chat.completions.create(
                    model="m",
                    messages=[{"role": "user", "content": "q"}],
                    stream=True,
                    extra_body={
                        "gatekeeper": {
                            "task": {"kind": "math", "gold": "8"},
                            "on_failed": "block",
                        }
                    },
                ):
                    pass


def test_the_bundled_model_through_the_real_client() -> None:
    """The same seed gives the same choices, with and without the gateway, which verifies them."""
    with serving() as direct, running_gateway(str(direct.base_url)) as gateway:
        through = direct.with_options(base_url=f"{gateway.url}/v1")
        for more in ({}, {"n": 3}, {"logprobs": True, "top_logprobs": 2}):
            asked: dict[str, Any] = {
                "model": "gatekeeper-bundled",
                "messages": [{"role": "user", "content": "What is 3/4 + 5/6?"}],
                "seed": 7,
                "max_tokens": 24,
                **more,
            }
            plain = direct.chat.completions.create(**asked)
            own = {"task": {"kind": "math", "gold": "19"}, "wait": "verdict"}
            gated = through.chat.completions.with_raw_response.create(
                **asked, extra_body={"gatekeeper": own}
            )
            assert gated.parse().choices == plain.choices
            assert gated.parse().usage == plain.usage
            verdicts = gated.headers["x-gatekeeper-verdict"].split(", ")
            assert len(verdicts) == len(plain.choices)
            assert set(verdicts) <= {"passed", "failed"}


class Answer(pydantic.BaseModel):
    answer: str


def test_structured_output_tool_calls_and_refusals_through_the_real_client(
    server: Server, gateway: Running
) -> None:
    """What the client parses is the same, in one piece and as a stream; so are the errors that a
    server has for a request that it cannot serve."""
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="k", max_retries=0) as direct:
        through = direct.with_options(base_url=f"{gateway.url}/v1")
        for prompt in ("ask", "calltool", "refuse"):
            asked: Any = {"model": "m", "messages": [{"role": "user", "content": prompt}]}
            found = []
            for client in (direct, through):
                plain = client.chat.completions.parse(**asked, response_format=Answer)
                with client.chat.completions.stream(**asked, response_format=Answer) as stream:
                    whole = stream.until_done().get_final_completion()
                raw = client.chat.completions.with_raw_response.create(**asked)
                found.append((plain, whole, raw.parse(), raw.http_response.content))
            assert found[0] == found[1]
            assert isinstance(found[1][0].choices[0].message.parsed, Answer) == (prompt == "ask")
            assert bool(found[1][0].choices[0].message.tool_calls) == (prompt == "calltool")
    with serving() as direct, running_gateway(str(direct.base_url)) as other:
        through = direct.with_options(base_url=f"{other.url}/v1")
        messages: Any = [{"role": "user", "content": "3/4"}]
        for refused, error in (
            ({"model": "unknown"}, openai.NotFoundError),
            ({"model": "gatekeeper-bundled", "max_tokens": -1}, openai.BadRequestError),
            ({"model": "gatekeeper-bundled", "max_tokens": -1, "stream": True}, openai.APIError),
        ):
            said = []
            for client in (direct, through):
                with pytest.raises(error) as raised:
                    client.chat.completions.create(messages=messages, **refused)
                said.append((type(raised.value), raised.value.body, str(raised.value)))
            assert said[0] == said[1]
