"""The bundled server and clients that are broken, hostile, slow or many, by raw sockets."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from time import monotonic
from typing import Any

import pytest
from serving import running

import gatekeeper.bundled.chat
from gatekeeper.adapters.bundled import BundledModel
from gatekeeper.bundled.connections import MOST_BYTES
from gatekeeper.bundled.fields import MOST_CHARACTERS
from gatekeeper.bundled.outputs import Piece
from gatekeeper.bundled.serve import Server

CHAT = "/v1/chat/completions"
ASKED = {
    "model": BundledModel.name,
    "messages": [{"role": "user", "content": "What is 12 + 30?"}],
    "temperature": 0,
}


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with running() as server:
        yield server


def connect(server: Server) -> socket.socket:
    return socket.create_connection(server.server_address[:2], timeout=60)


def head(length: object, *more: str, path: str = CHAT) -> bytes:
    lines = [f"POST {path} HTTP/1.1", "Host: x", *more]
    lines += [] if length is None else [f"Content-Length: {length}"]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def request(body: object, path: str = CHAT) -> bytes:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return head(len(data), path=path) + data


def answer(client: socket.socket) -> tuple[int, Any]:
    """One response: its status and its JSON."""
    with client.makefile("rb") as file:
        status = int(file.readline().split()[1])
        length = 0
        while (line := file.readline().strip()) != b"":
            name, _, value = line.partition(b":")
            length = int(value) if name.lower() == b"content-length" else length
        return status, json.loads(file.read(length))


def refusal(server: Server, sent: bytes) -> tuple[int, str]:
    with connect(server) as client:
        client.sendall(sent)
        status, body = answer(client)
    error = body["error"]
    assert error.keys() == {"message", "type", "param", "code"}
    assert error["type"] == "invalid_request_error"
    return status, error["message"]


def changed(**fields: object) -> bytes:
    return request(ASKED | fields)


def says(content: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": content}]


def tool(parameters: object) -> dict[str, Any]:
    return {"type": "function", "function": {"name": "f", "parameters": parameters}}


def nested(levels: int) -> dict[str, Any]:
    """A schema of objects in objects."""
    return {"properties": {"a": nested(levels - 1)}} if levels else {"type": "string"}


@pytest.mark.parametrize(
    ("sent", "message"),
    [
        (head("ten") + b"{}", "Content-Length: ten: a number is needed"),
        (head("-1"), "Content-Length: -1: a number is needed"),
        (head("+5") + b"{}   ", "Content-Length: +5: a number is needed"),
        (head("1_0"), "Content-Length: 1_0: a number is needed"),
        (head(""), "Content-Length: : a number is needed"),
        (head("2", "Content-Length: 3") + b"{}", "Content-Length: 3, 2: a number is needed"),
        (head(None), "Content-Length is missing"),
        (head(MOST_BYTES + 1), f"Content-Length: {MOST_BYTES + 1}: the most is {MOST_BYTES}"),
        (head("9" * 5000), "the most is"),
        (head(MOST_BYTES + 1) + b"x" * MOST_BYTES, "the most is"),
        (head(None, "Transfer-Encoding: chunked") + b"2\r\n{}\r\n0\r\n\r\n", "Transfer-Encoding"),
        (head(2, "Transfer-Encoding: chunked") + b"{}", "Transfer-Encoding: chunked: this server"),
        (request(b""), "not JSON"),
        (request(b"[" * 1_000_000), "the body is not JSON: "),
        (request(b'{"a":' * 100_000), "the body is not JSON: "),
        (request(b"\xff\xfe\xff\xff"), "not JSON"),
        (request(b'{"model": "\xe9"}'), "not JSON"),
        (request(b"9" * 100_000), "not JSON"),
        (request(b"null"), "JSON object"),
        (changed(messages=says("\ud800")), "messages: no valid text"),
        (changed(messages=[{"role": "user", "content": [{"text": "\udfff"}]}]), "no valid text"),
        (changed(messages={"role": "user"}), "messages"),
        (changed(messages=[None, 3, {"role": "user", "content": 7}]), "messages"),
        (changed(temperature="hot"), "temperature"),
        (changed(temperature=10**400), "temperature"),
        (changed(temperature=float("nan")), "temperature"),
        (changed(temperature=[]), "temperature"),
        (changed(max_tokens=1.5), "max_tokens"),
        (changed(n=10**400), "n=1"),
        (changed(stop={"a": 1}), "stop"),
        (changed(stop=["a"] * 1000), "stop: 1000 strings"),
        (changed(stream="yes"), "stream='yes': true or false is needed"),
        (changed(stream=True, stream_options=[1]), "stream_options"),
        (changed(tools={"a": 1}), "tools"),
        (changed(tools=[{"type": "function"}]), "a function with name and parameters"),
        (changed(tools=[tool(nested(40))]), "in 16 levels"),
        (changed(tools=[tool({"properties": {"a": {"$ref": "#"}}})]), "in 16 levels"),
        (changed(tools=[tool({"properties": {f"{i}": {} for i in range(999)}})]), "256 values"),
        (changed(tools=[tool({})], tool_choice={"function": {"name": "g"}}), "tool_choice"),
        (changed(tools=[tool({})], tool_choice=3), "tool_choice=3: none, auto, required"),
        (changed(tool_choice="required"), "needs tools"),
        (request({**ASKED, "input": 7}, "/v1/responses"), "input: a list with at least one"),
        (request({**ASKED, "input": "\ud800"}, "/v1/responses"), "input: no valid text"),
        (request({**ASKED, "input": "x", "include": 5}, "/v1/responses"), "include=5"),
        (
            request({**ASKED, "input": "x", "previous_response_id": "r"}, "/v1/responses"),
            "previous_response_id: this server keeps no responses",
        ),
        (request({**ASKED, "prompt": "\ud800"}, "/v1/completions"), "prompt: no valid text"),
        (request({**ASKED, "prompt": ["x"] * 1000}, "/v1/completions"), "1,000 prompts"),
        (request({**ASKED, "prompt": [[1], 2]}, "/v1/completions"), "prompt"),
    ],
    ids=lambda value: value[-50:] if isinstance(value, str) else "",
)
def test_what_cannot_be_read_is_said(
    server: Server, capfd: pytest.CaptureFixture[str], sent: bytes, message: str
) -> None:
    status, said = refusal(server, sent)
    assert status == 400
    assert message in said
    assert len(said) < 300
    assert capfd.readouterr() == ("", "")  # no traceback


def test_requests_that_are_none(server: Server, capfd: pytest.CaptureFixture[str]) -> None:
    for sent, status in (
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400),  # TLS
        (b"POST\r\n\r\n", 400),
        (b"GET / HTTP/9.9\r\n\r\n", 505),
        (b"BREW /v1/models HTTP/1.1\r\n\r\n", 501),
        (b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\n\r\n", 414),
        (b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 1000 + b"\r\n", 431),
        (b"GET /none HTTP/1.1\r\n\r\n", 404),
    ):
        with connect(server) as client:
            client.sendall(sent)
            found, body = answer(client)
        assert (found, list(body)) == (status, ["error"])
    assert capfd.readouterr() == ("", "")


def test_one_connection_for_many_requests(server: Server) -> None:
    """A refusal ends it only where nobody knows where the next request begins."""
    with connect(server) as client:
        for sent, status in ((request(ASKED), 200), (request(b"{"), 400), (request(ASKED), 200)):
            client.sendall(sent)
            assert answer(client)[0] == status
        client.sendall(head("x") + request(ASKED))
        assert answer(client)[0] == 400
        assert client.recv(1) == b""
    with connect(server) as client:  # the body of a GET is no request of its own
        client.sendall(b"GET /v1/models HTTP/1.1\r\nContent-Length: 500\r\n\r\n" + request(ASKED))
        assert answer(client)[0] == 200
        assert client.recv(1) == b""


STREAMED = ASKED | {"stream": True}


def test_streams_of_raw_bytes(server: Server) -> None:
    """The connection stays after a stream; a client of HTTP/1.0 gets no chunks, and the end."""
    with connect(server) as client:
        for _ in range(2):
            client.sendall(request(STREAMED))
            with client.makefile("rb") as file:
                lines = list(iter(file.readline, b"0\r\n"))
                assert lines[-3:-1] == [b"data: [DONE]\n", b"\n"]
                assert file.readline() == b"\r\n"
    with connect(server) as client, client.makefile("rb") as file:
        client.sendall(request(STREAMED).replace(b"HTTP/1.1", b"HTTP/1.0"))
        _, _, body = file.read().partition(b"\r\n\r\n")
    lines = body.decode().split("\n\n")
    assert lines[-2:] == ["data: [DONE]", ""]
    chunks = [json.loads(line.removeprefix("data: ")) for line in lines[:-2]]
    text = "".join(c["choices"][0]["delta"].get("content", "") for c in chunks)
    assert text == "12+30=42\n\\boxed{42}"


def test_a_stream_ends_with_its_client_or_with_its_failure(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = server.model.steps
    ended = threading.Event()

    def endless(model: Any, asked: Any) -> Iterator[Piece]:
        try:
            while True:
                yield Piece(0, "and so on", [], [], [], [], 0, None)
        finally:
            ended.set()

    with monkeypatch.context() as patched:
        patched.setattr(gatekeeper.bundled.chat, "pieces", endless)
        with connect(server) as client:
            client.sendall(request(STREAMED))
            assert client.recv(1 << 16)
        assert ended.wait(60)

    def broken(*arguments: Any) -> Iterator[Any]:
        for active in steps(*arguments):
            yield active
            raise ValueError("broken on purpose")

    failed = threading.Event()
    monkeypatch.setattr(server, "handle_error", lambda *_: failed.set())  # else it is printed
    monkeypatch.setattr(server.model, "steps", broken)
    with connect(server) as client, client.makefile("rb") as file:
        client.sendall(request(STREAMED))
        received = file.read()
    assert b'"content": "1"' in received
    assert b"this server failed" in received
    assert not received.endswith(b"0\r\n\r\n")  # a client must not take it for the end
    assert failed.wait(60)


def test_half_a_request_is_not_waited_for() -> None:
    """Nothing, half a head, half a body, a byte now and then: each connection ends by itself."""
    with running(read_seconds=1.0) as server, ExitStack() as opened:
        nothing, half_head, half_body, gone, drips = (
            opened.enter_context(connect(server)) for _ in range(5)
        )
        half_head.sendall(b"POST /v1/chat")
        half_body.sendall(request(ASKED)[:-5])
        gone.sendall(request(ASKED)[:-5])
        gone.shutdown(socket.SHUT_WR)
        sent = []
        stop = threading.Event()

        def drip() -> None:  # each byte comes well before any timeout of a single read
            for byte in request(ASKED)[:-1]:
                if stop.wait(0.1):
                    return
                try:
                    drips.send(bytes([byte]))
                except OSError:
                    return
                sent.append(byte)

        dripping = threading.Thread(target=drip)
        dripping.start()
        status, body = answer(gone)
        assert (status, "the body ended after" in body["error"]["message"]) == (400, True)
        assert answer(half_body)[0] == 408
        for client in (nothing, half_head, half_body):
            assert client.recv(1) == b""
        with suppress(ConnectionResetError):
            assert drips.recv(1) == b""
        stop.set()
        dripping.join()
        assert len(sent) < len(request(ASKED)) - 1  # it did not wait for all of the bytes
        with connect(server) as client:
            client.sendall(request(ASKED))
            assert answer(client)[0] == 200


def test_there_are_only_so_many_connections() -> None:
    with running(most_connections=4, read_seconds=2.0) as server:
        with ExitStack() as opened:
            before = threading.active_count()
            clients = [opened.enter_context(connect(server)) for _ in range(20)]
            for client in clients[4:]:
                status, body = answer(client)
                assert (status, body["error"]["type"]) == (503, "server_error")
            assert threading.active_count() - before <= 4
        while not served(server):  # until the server has seen that those have gone
            pass


def served(server: Server) -> bool:
    try:
        with connect(server) as client:
            client.sendall(request(ASKED))
            return answer(client)[0] == 200
    except (OSError, IndexError):  # refused and closed before the request was there
        return False


def test_large_and_slow_clients_stall_nobody(server: Server) -> None:
    """While some send the largest prompts there may be and some read nothing, others are served."""
    filler = "word " * (MOST_BYTES // 5 - 100)
    large = request(ASKED | {"messages": says(filler), "max_tokens": 1})
    greedy = request(ASKED | {"n": 64, "temperature": 2, "logprobs": True, "top_logprobs": 20})
    started = monotonic()
    server.model.encode(filler[: len(filler) // 10])  # no other thread runs meanwhile
    stall = monotonic() - started
    enough = threading.Event()

    def send_large() -> list[int]:
        found = []
        while not enough.is_set():
            with connect(server) as client:
                client.sendall(large)
                found.append(answer(client)[0])
        return found

    with ExitStack() as opened, ThreadPoolExecutor(2) as pool:
        deaf = opened.enter_context(connect(server))
        deaf.sendall(greedy)  # and its answer is never read
        sent = [pool.submit(send_large) for _ in range(2)]
        took = []
        for _ in range(10):
            started = monotonic()
            assert served(server)
            took.append(monotonic() - started)
        enough.set()
        assert {status for future in sent for status in future.result()} == {200}
    assert sorted(took)[5] < stall  # though it is that of a tenth of a large prompt


def test_a_prompt_is_cut_where_no_token_of_its_end_changes(server: Server) -> None:
    """What is too long is not tokenised from its beginning, and gets the same answer."""
    end = "What is 12 + 30? " * 200
    texts = []
    for content in (end, "x y " * MOST_CHARACTERS + end):
        with connect(server) as client:
            client.sendall(request(ASKED | {"messages": says(content)}))
            texts.append(answer(client)[1]["choices"][0]["message"]["content"])
    assert texts[0] == texts[1]
