"""Requests and answers that HTTP allows and that few servers and clients send."""

from __future__ import annotations

import asyncio
import json
import socket
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import openai
import pytest
from running_gateway import running_gateway
from scripted_upstream import ScriptedUpstream, completion, event_stream, reply
from test_passing import COMMENT, send

from gatekeeper.gateway.logprobs import requested

CHAT = "/v1/chat/completions"
WHOLE = completion("7")
PLAIN = completion("7", logprobs=False)
ASKED = {"model": "m", "messages": [{"role": "user", "content": "q"}]}


def chunk_of(answer: dict[str, Any]) -> bytes:
    choice = {n: v for n, v in answer["choices"][0].items() if n != "message"}
    chunk = answer | {"object": "chat.completion.chunk"}
    chunk["choices"] = [choice | {"delta": {"content": "7"}}]
    return b"data: " + json.dumps(chunk).encode() + b"\n\n"


@pytest.mark.parametrize("stream", [False, True])
def test_each_success_has_an_output(stream: bool) -> None:
    """Some frameworks answer every POST with 201."""
    done = b"data: [DONE]\n\n"
    whole: Any = [reply(json.dumps(WHOLE).encode(), status="201 Created")]
    if stream:
        head, *rest = event_stream(chunk_of(WHOLE), done)
        whole = [bytes(head).replace(b"200 OK", b"201 Created"), *rest]
    with ScriptedUpstream(lambda request: whole) as upstream, running_gateway(upstream.url) as to:
        status, _, _, body = send(to.url, CHAT, json.dumps(ASKED | {"stream": stream}).encode())
        assert status == 201
        wanted = chunk_of(PLAIN) + done if stream else json.dumps(PLAIN).encode()
        assert COMMENT.sub(b"", body) == wanted
        assert to.gate.status().seen == 1


@pytest.mark.parametrize("status", ["307 Temporary Redirect", "308 Permanent Redirect"])
def test_a_redirect_past_the_gateway(status: str) -> None:
    """A client would send its request there again, with the task in it: it is an error. One to a
    path comes back to the gateway."""
    elsewhere = ["https://api.example/v1/chat/completions", "//api.example/v1", "HTTP:/v1"]
    body = json.dumps(ASKED | {"gatekeeper": {"task": {"kind": "math", "gold": "7"}}}).encode()
    for location in [*elsewhere, "/v1/chat/completions", "?a=b://c"]:
        answer = reply(b"{}", status=status, headers=[f"location: {location}"])
        with (
            ScriptedUpstream(lambda request, answer=answer: [answer]) as upstream,
            running_gateway(upstream.url) as gateway,
        ):
            found = send(gateway.url, CHAT, body)
            if location not in elsewhere:
                assert found == send(upstream.url, CHAT, body)
                continue
            assert found[0] == 502
            assert "location" not in found[2]
            error = json.loads(found[3])["error"]
            assert error["code"] == "upstream_redirects"
            assert f"redirects to {location}: " in error["message"]


@pytest.mark.parametrize("path", [CHAT, "/v1/embeddings"])
def test_a_head_that_no_server_may_send_on(path: str) -> None:
    """It is the upstream's error, and says what is wrong. The next call is answered."""
    good = reply(json.dumps(WHOLE).encode(), headers=["x-odd: a\tb"])
    answers = {
        "the status 99": [good.replace(b"200 OK", b"099 OK")],
        "a control character in 'x-odd'": [
            good.replace(b"a\tb", b"a%cb" % number) for number in b"\1\b\x0b\x1f\x7f"
        ],
        "a control character in 'reason'": [good.replace(b"200 OK", b"200 O\1K")],
    }
    sent = [good]
    with (
        ScriptedUpstream(lambda request: [sent[0]]) as upstream,
        running_gateway(upstream.url) as gateway,
    ):
        for why, wrong in answers.items():
            for sent[0] in wrong:
                status, _, _, body = send(gateway.url, path, json.dumps(ASKED).encode())
                error = json.loads(body)["error"]
                assert (status, error["code"]) == (502, "upstream_invalid")
                assert error["message"].endswith(f"the head of its answer has {why}")
            sent[0] = good
            assert send(gateway.url, path, json.dumps(ASKED).encode())[0] == 200


def test_a_response_in_the_background() -> None:
    """Its answer has no output, and the output that a later request gets is not read: nothing is
    requested that would be in it. As a stream it has the output."""
    assert requested("/responses", {"background": True}).parameters == {}
    assert requested("/responses", {"background": True, "stream": True}).parameters != {}
    assert requested("/responses", {"background": False}).parameters != {}


@pytest.mark.parametrize("path", [CHAT, "/v1/other"])
def test_a_caller_with_http_1_0_that_keeps_its_connection(path: str) -> None:
    """Only the end of the connection ends an answer without a length."""
    answer = event_stream(b"data: [DONE]\n\n")
    with (
        ScriptedUpstream(lambda request: answer) as upstream,
        running_gateway(upstream.url) as gateway,
    ):
        at = urlsplit(gateway.url)
        with socket.create_connection((at.hostname, at.port), timeout=60) as connection:
            head = f"POST {path} HTTP/1.0\r\nconnection: keep-alive\r\ncontent-length: 2\r\n\r\n"
            connection.sendall(head.encode() + b"{}")
            connection.settimeout(20)  # less than an idle connection is kept
            found = b"".join(iter(lambda: connection.recv(65536), b""))
        assert found.endswith(b"data: [DONE]\n\n")


def test_headers_that_a_second_connection_header_names() -> None:
    with (
        ScriptedUpstream(lambda request: [reply(b"{}")]) as upstream,
        running_gateway(upstream.url) as gateway,
    ):
        at = urlsplit(gateway.url)
        with socket.create_connection((at.hostname, at.port), timeout=60) as connection:
            lines = ["GET /v1/x HTTP/1.1", "host: x", "x-kept: 1", "x-named: 1"]
            lines += ["connection: close", "connection: x-named"]
            connection.sendall("\r\n".join([*lines, "", ""]).encode())
            while connection.recv(65536):
                pass
    assert upstream.requests[0].header("x-kept") == "1"
    assert upstream.requests[0].header("x-named") is None


@pytest.mark.parametrize("done", [b"data: [DONE]", b"data: [DONE] ", b"data: [DONE]\ndata:"])
def test_a_stream_whose_data_have_several_lines(done: bytes) -> None:
    """They are one text: it is decided on, and what the caller did not ask for is removed. The end
    is where clients stop reading, so a wrong output is blocked before it."""
    lines = json.dumps(json.loads(chunk_of(WHOLE)[6:]), indent=1).splitlines()
    frame = "\r\n".join(["id: 1", *(f"data: {line}" for line in lines), "retry: 9", "", ""])
    answer = event_stream(b": ping\r\n\r\n", frame.encode(), done + b"\r\n\r\n")
    with (
        ScriptedUpstream(lambda request: answer) as upstream,
        running_gateway(upstream.url) as gateway,
        openai.OpenAI(base_url=f"{gateway.url}/v1", api_key="k", max_retries=0) as client,
    ):

        def call(gold: str) -> list[Any]:
            task = {"kind": "math", "gold": gold}
            own = {"gatekeeper": {"task": task, "on_failed": "block"}}
            asked: Any = {**ASKED, "extra_body": own}
            return [
                chunk.choices[0] for chunk in client.chat.completions.create(**asked, stream=True)
            ]

        (choice,) = call("7")
        assert (choice.delta.content, choice.logprobs) == ("7", None)
        assert gateway.gate.status().seen == 1
        with pytest.raises(openai.APIError, match="is wrong: failed"):
            call("8")


def test_a_websocket_is_refused() -> None:
    """The upstream would get it without its `Upgrade`, and answer what no client understands."""
    with (
        ScriptedUpstream(lambda request: [reply(b"{}")]) as upstream,
        running_gateway(upstream.url) as gateway,
    ):

        async def connect() -> None:
            async with aiohttp.ClientSession() as session:
                await session.ws_connect(f"{gateway.url}/v1/realtime?model=m")

        with pytest.raises(aiohttp.WSServerHandshakeError) as raised:
            asyncio.run(connect())
        assert raised.value.status == 501
        head = {"connection": "Upgrade", "upgrade": "websocket", "sec-websocket-version": "13"}
        head["sec-websocket-key"] = "dGhlIHNhbXBsZSBub25jZQ=="
        error = json.loads(send(gateway.url, "/v1/realtime", None, method="GET", headers=head)[3])
        assert error["error"]["code"] == "websocket_not_forwarded"
        assert "'/v1/realtime' is asked for as a WebSocket" in error["error"]["message"]
        assert upstream.requests == []
