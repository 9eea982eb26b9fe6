"""Upstreams that compress their answers although the gateway asks them not to."""

from __future__ import annotations

import gzip
import json
import threading
import zlib
from collections.abc import Callable
from typing import Any

import openai
import pytest
from running_gateway import running_gateway
from scripted_upstream import Request, ScriptedUpstream, completion, event_stream, reply
from test_passing import COMMENT, send
from test_unusual_exchanges import ASKED, CHAT, PLAIN, WHOLE, chunk_of

Encode = Callable[[bytes], bytes]  # the next piece, so that it can be read at once


def with_zlib(bits: int) -> Encode:
    made = zlib.compressobj(wbits=bits)
    return lambda piece: made.compress(piece) + made.flush(zlib.Z_FINISH if not piece else 2)


def twice() -> Encode:
    inner, outer = with_zlib(zlib.MAX_WBITS), with_zlib(31)
    return lambda piece: outer(inner(piece)) + (b"" if piece else outer(b""))


CODINGS: dict[str, tuple[str, Callable[[], Encode]]] = {
    "gzip": ("GZIP", lambda: with_zlib(31)),
    "members": ("x-gzip", lambda: lambda piece: gzip.compress(piece) if piece else b""),
    "zlib": ("deflate", lambda: with_zlib(15)),
    "raw": ("deflate", lambda: with_zlib(-15)),
    "two": ("deflate, gzip", twice),
}
CASES = pytest.mark.parametrize("name", [*CODINGS])


@CASES
def test_a_whole_answer(name: str) -> None:
    """It is decided on, and the caller gets it in plain text, without what was not requested."""
    coding, made = CODINGS[name]
    encode = made()
    packed = encode(json.dumps(WHOLE).encode()) + encode(b"")
    answer = reply(packed, headers=[f"content-encoding: {coding}"])
    with (
        ScriptedUpstream(lambda request: [answer]) as upstream,
        running_gateway(upstream.url) as gateway,
    ):
        status, _, headers, body = send(gateway.url, CHAT, json.dumps(ASKED).encode())
        assert (status, body) == (200, json.dumps(PLAIN).encode())
        assert "content-encoding" not in headers
        assert gateway.gate.status().seen == 1


@CASES
def test_a_stream(name: str) -> None:
    """Each frame arrives before the upstream compresses the next one."""
    coding, made = CODINGS[name]
    go = threading.Event()
    frames = [chunk_of(WHOLE), b"data: [DONE]\n\n"]

    def script(request: Request) -> Any:
        encode = made()
        head, first = event_stream(encode(frames[0]), ends=False)
        yield bytes(head).replace(b"\r\n", f"\r\ncontent-encoding: {coding}\r\n".encode(), 1)
        yield first
        while not go.is_set():
            yield 0.005
        yield from event_stream(encode(frames[1]) + encode(b""))[1:]

    with (
        ScriptedUpstream(script) as upstream,
        running_gateway(upstream.url) as gateway,
        openai.OpenAI(base_url=f"{gateway.url}/v1", api_key="k", max_retries=0) as client,
    ):
        asked: Any = ASKED
        stream = client.chat.completions.create(**asked, stream=True)
        (choice,) = next(stream).choices
        assert (choice.delta.content, choice.logprobs) == ("7", None)
        go.set()
        assert list(stream) == []
        assert gateway.gate.status().seen == 1
        body = send(gateway.url, CHAT, json.dumps(ASKED | {"stream": True}).encode())[3]
        assert COMMENT.sub(b"", body) == chunk_of(PLAIN) + frames[1]


def test_a_refusal_of_log_probabilities() -> None:
    """It is understood, and the request sent once more without."""
    refusal = gzip.compress(b'{"error": {"message": "logprobs are not supported"}}')

    def script(request: Request) -> Any:
        if b"logprobs" not in request.body:
            return [reply(json.dumps(PLAIN).encode())]
        headers = ["content-encoding: gzip"]
        return [reply(refusal, status="400 Bad Request", headers=headers)]

    with ScriptedUpstream(script) as upstream, running_gateway(upstream.url) as gateway:
        assert send(gateway.url, CHAT, json.dumps(ASKED).encode())[0] == 200
        assert [b"logprobs" in request.body for request in upstream.requests] == [True, False]


UNREADABLE = {
    "unknown": ("compress", b"\x1f\x9d"),
    "cut": ("gzip", gzip.compress(json.dumps(completion("7")).encode())[:-9]),
    "other": ("gzip", b"not gzip"),
}


@pytest.mark.parametrize("name", [*UNREADABLE])
def test_an_answer_that_cannot_be_decoded(name: str, caplog: pytest.LogCaptureFixture) -> None:
    """The caller gets the bytes that the upstream sent, and no output is decided on."""
    coding, body = UNREADABLE[name]
    header = [f"content-encoding: {coding}"]
    with (
        ScriptedUpstream(lambda request: [reply(body, headers=header)]) as upstream,
        running_gateway(upstream.url) as gateway,
    ):
        found = send(gateway.url, CHAT, json.dumps(ASKED).encode())
        assert found == send(upstream.url, CHAT, json.dumps(ASKED).encode())
        if name == "unknown":  # a stream with a coding that is known is decoded as it comes
            head, *rest = event_stream(body, 0.1, body)
            script = [
                bytes(head).replace(b"\r\n", b"\r\n" + header[0].encode() + b"\r\n", 1),
                *rest,
            ]
            upstream.script = lambda request: script
            assert send(gateway.url, CHAT, json.dumps(ASKED).encode())[3] == 2 * body
            assert "content-encoding 'compress' cannot be read" in caplog.text
        assert gateway.gate.status().seen == 0
