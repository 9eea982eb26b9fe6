"""Callers that disconnect, an upstream that fails: no reservation stays, errors pass unchanged."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import openai
import pytest
from running_gateway import GoldChecker, Running, running_gateway
from scripted_upstream import CUT, Request, ScriptedUpstream, completion, event_stream, reply

from gatekeeper.gateway import upstream as connections
from gatekeeper.types import Generation, Outcome

PATIENCE = 60.0
CALLERS = 20
PATH = "/v1/chat/completions"
TASK = {"kind": "math", "gold": "7"}
WHOLE = json.dumps(completion("7")).encode()


def until(holds: Callable[[], bool], then: Callable[[], None] = lambda: None) -> None:
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.005)
    then()


def frame(text: str, reason: str | None = None) -> bytes:
    entry = completion(text)["choices"][0]["logprobs"]
    delta = {"index": 0, "delta": {"content": text}, "logprobs": entry, "finish_reason": reason}
    head = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    return f"data: {json.dumps(head | {'choices': [delta]})}\n\n".encode()


def body_of(**own: Any) -> bytes:
    messages = [{"role": "user", "content": "q"}]
    return json.dumps({"model": "m", "messages": messages, "gatekeeper": own}).encode()


def post(url: str, body: bytes) -> int:
    """The status of a whole call."""
    with urllib.request.urlopen(url + PATH, body, timeout=PATIENCE) as answer:
        answer.read()
        return int(answer.status)


class Caller:
    """A connection that a test can end at any point."""

    def __init__(self, url: str, body: bytes) -> None:
        at = urlsplit(url)
        assert at.port is not None
        self.socket = socket.create_connection(("127.0.0.1", at.port), timeout=PATIENCE)
        head = f"POST {PATH} HTTP/1.1\r\nhost: x\r\ncontent-length: {len(body)}\r\n\r\n"
        self.socket.sendall(head.encode() + body)

    def read_until(self, text: bytes) -> None:
        found = b""
        while text not in found:
            piece = self.socket.recv(65536)
            assert piece
            found += piece

    def leave(self) -> None:
        self.socket.close()


def nothing_reserved(gateway: Running) -> bool:
    status = gateway.gate.status()
    return status.held == status.warmup_held == status.reserved == status.verifying == 0


@pytest.mark.parametrize("stream", [False, True])
def test_a_caller_that_leaves_during_an_answer(stream: bool) -> None:
    """Its call ends upstream too; what never became an output is not decided on."""
    ended = threading.Event()
    begun = threading.Event()

    def endless(request: Request) -> Iterator[bytes | float | str]:
        begun.set()
        try:
            if stream:
                yield from event_stream(ends=False)
            else:
                yield b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
                yield b"content-length: 1000000000\r\n\r\n"
            while True:
                yield from event_stream(frame("7"), ends=False)[1:] if stream else [b" "]
                yield 0.005
        finally:
            ended.set()

    with ScriptedUpstream(endless) as upstream, running_gateway(upstream.url) as gateway:
        caller = Caller(gateway.url, body_of(task=TASK))
        if stream:
            caller.read_until(b"chat.completion.chunk")
        assert begun.wait(PATIENCE)
        caller.leave()
        assert ended.wait(PATIENCE)
        assert gateway.gate.status().seen == 0
        # The gateway goes on.
        upstream.script = lambda request: [reply(WHOLE)]
        assert post(gateway.url, body_of(task=TASK)) == 200
        until(lambda: nothing_reserved(gateway) and gateway.gate.status().seen == 1)


@pytest.mark.parametrize("n", [1, 2])
def test_a_caller_that_leaves_before_the_last_frame(n: int) -> None:
    """It has its answer if all outputs are complete; then they are decided on."""
    left = threading.Event()

    def script(request: Request) -> Iterator[bytes | float | str]:
        yield from event_stream(frame("7", "stop"), ends=False)
        while not left.is_set():
            yield 0.005
        yield from event_stream(b"data: [DONE]\n\n")[1:]

    with ScriptedUpstream(script) as upstream, running_gateway(upstream.url) as gateway:
        body = json.loads(body_of(task=TASK)) | {"stream": True, "n": n}
        caller = Caller(gateway.url, json.dumps(body).encode())
        caller.read_until(b'"stop"')
        caller.leave()
        if n == 1:
            until(lambda: gateway.gate.status().seen == 1)
        left.set()
        upstream.script = lambda request: [reply(WHOLE)]
        assert post(gateway.url, body_of(task=TASK)) == 200
        until(lambda: nothing_reserved(gateway) and gateway.gate.status().seen == 3 - n)


@pytest.mark.parametrize("stream", [False, True])
def test_a_caller_that_leaves_between_two_decisions(
    stream: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All outputs of the answer are decided on, each once, and verified."""
    choices = [completion("7")["choices"][0] | {"index": i} for i in range(3)]
    whole = reply(json.dumps(completion("7") | {"choices": choices}).encode())
    frames = [frame("7", "stop").replace(b'"index": 0', b'"index": %d' % i) for i in range(3)]
    streamed = event_stream(*frames, b"data: [DONE]\n\n")
    with (
        ScriptedUpstream(lambda request: streamed if stream else [whole]) as upstream,
        running_gateway(upstream.url) as gateway,
    ):
        connected, left = threading.Event(), threading.Event()
        decide = gateway.gate.adecide

        async def slow(*args: Any, **how: Any) -> Any:
            decided = await decide(*args, **how)
            await asyncio.to_thread(connected.wait, PATIENCE)
            caller.leave()
            await asyncio.sleep(0.1)  # in which the gateway notices it
            left.set()
            return decided

        monkeypatch.setattr(gateway.gate, "adecide", slow)
        body = json.loads(body_of(task=TASK)) | {"n": 3, "stream": stream}
        caller = Caller(gateway.url, json.dumps(body).encode())
        connected.set()
        assert left.wait(PATIENCE)
        until(lambda: gateway.gate.status().seen == 3 and nothing_reserved(gateway))
        status = gateway.gate.status()
        assert (status.verified + status.warmup_verified, status.unresolved) == (3, 0)


class Held(GoldChecker):
    """Verifies once `go` is set."""

    def __init__(self) -> None:
        self.go, self.begun = threading.Event(), threading.Semaphore(0)

    def verify(self, generation: Generation, task: Any) -> Outcome:
        self.begun.release()
        assert self.go.wait(PATIENCE)
        return super().verify(generation, task)


def test_callers_that_leave_while_they_wait_for_a_verdict() -> None:
    """Verification goes on for those that have begun and those that have not: each output is
    decided on, and its reservation settled, once."""
    verifier = Held()
    with (
        ScriptedUpstream(lambda request: [reply(WHOLE)]) as upstream,
        running_gateway(upstream.url, verifier=verifier, gate={"workers": 2}) as gateway,
    ):
        callers = [Caller(gateway.url, body_of(task=TASK, wait="verdict")) for _ in range(20)]
        until(lambda: gateway.gate.status().seen == 20)
        for _ in range(2):
            assert verifier.begun.acquire(timeout=PATIENCE)
        for caller in callers:
            caller.leave()
        time.sleep(0.1)  # for the gateway to notice
        assert not nothing_reserved(gateway)
        verifier.go.set()
        until(lambda: nothing_reserved(gateway))
        status = gateway.gate.status()
        assert (status.verified + status.warmup_verified, status.unresolved) == (20, 0)


@pytest.mark.parametrize("leaves", ["caller", "upstream"])
def test_a_connection_that_ends_after_the_decision(leaves: str) -> None:
    """While a caller waits for a stream's verdict, and after the last frame: nothing of the output
    is decided on again, which the gate would refuse."""
    verifier = Held()
    stream = event_stream(frame("7", "stop"), b"data: [DONE]\n\n", CUT, ends=False)
    with (
        ScriptedUpstream(lambda request: stream) as upstream,
        running_gateway(upstream.url, verifier=verifier) as gateway,
    ):
        wait = "verdict" if leaves == "caller" else "background"
        body = json.loads(body_of(task=TASK, wait=wait)) | {"stream": True}
        caller = Caller(gateway.url, json.dumps(body).encode())
        if leaves == "caller":
            assert verifier.begun.acquire(timeout=PATIENCE)
        else:
            caller.read_until(b"[DONE]")
            with suppress(ConnectionError):
                while caller.socket.recv(65536):
                    pass
        caller.leave()

        def figures() -> str:
            with urllib.request.urlopen(f"{gateway.url}/gatekeeper/metrics") as answer:
                return str(answer.read().decode())

        until(lambda: "gatekeeper_requests_total{" in figures())
        assert "gatekeeper_undecided_total{" not in figures()
        verifier.go.set()
        until(lambda: nothing_reserved(gateway))
        assert gateway.gate.status().seen == 1


@pytest.mark.parametrize("reason", ["error", "abort"])
@pytest.mark.parametrize("stream", [False, True])
def test_an_output_that_the_upstream_broke_off(stream: bool, reason: str) -> None:
    """It is incomplete, not wrong: no decision, no verdict."""

    def script(request: Request) -> Any:
        if stream:
            return event_stream(frame("The ans"), frame("", reason), b"data: [DONE]\n\n")
        answer = completion("The ans")
        answer["choices"][0]["finish_reason"] = reason
        return [reply(json.dumps(answer).encode())]

    with ScriptedUpstream(script) as upstream, running_gateway(upstream.url) as gateway:
        body = json.loads(body_of(task=TASK, id="o")) | {"stream": stream}
        assert post(gateway.url, json.dumps(body).encode()) == 200
        assert gateway.gate.find("o") is None
        assert gateway.gate.status().seen == 0


def test_verifications_that_have_not_begun_at_the_end_are_released() -> None:
    """Of 30 outputs two are with the verifier when the grace is over: they are settled."""
    verifier = Held()
    with ScriptedUpstream(lambda request: [reply(WHOLE)]) as upstream:
        with running_gateway(
            upstream.url, verifier=verifier, gate={"workers": 2}, grace=0.2
        ) as gateway:
            gate, go = gateway.gate, verifier.go.set
            for _ in range(30):
                assert post(gateway.url, body_of(task=TASK)) == 200
            for _ in range(2):
                assert verifier.begun.acquire(timeout=PATIENCE)
            # These two end when the others have given up their places.
            others = threading.Thread(target=until, args=(lambda: gate.status().reserved == 2, go))
            others.start()
        others.join(PATIENCE)
        status = gateway.gate.status()
    assert nothing_reserved(gateway)
    assert (status.verified + status.warmup_verified, status.unresolved) == (2, 28)


def test_errors_reach_the_real_client_unchanged() -> None:
    """429 with retry-after, 500, a cut connection, a timeout of the caller's own; a retry of the
    client's own then gives one output."""
    slow = json.dumps({"error": {"message": "slow down", "code": "rate_limit_exceeded"}}).encode()
    scripts: dict[str, Any] = {
        "429": [reply(slow, status="429 Too Many", headers=["retry-after: 0"])],
        "500": [reply(b'{"error": {"message": "oops"}}', status="500 Oops")],
        "cut": [CUT],
        "cut-body": [reply(WHOLE)[:-20], CUT],
        "late": [30.0, reply(WHOLE)],
    }
    errors: dict[str, type[openai.APIError]] = {
        "429": openai.RateLimitError,
        "500": openai.InternalServerError,
        "cut": openai.InternalServerError,  # 502: there was no answer at all
        "cut-body": openai.APIConnectionError,
        "late": openai.APITimeoutError,
    }
    failed: Counter[str] = Counter()

    def script(request: Request) -> Any:
        model = json.loads(request.body)["model"]
        name, _, times = model.partition(" ")
        failed[model] += 1
        return scripts[name] if failed[model] <= int(times) else [reply(WHOLE)]

    messages: Any = [{"role": "user", "content": "q"}]
    own = {"gatekeeper": {"task": TASK, "wait": "verdict"}}
    with ScriptedUpstream(script) as upstream, running_gateway(upstream.url) as gateway:
        with openai.OpenAI(base_url=f"{gateway.url}/v1", api_key="k", max_retries=0) as client:
            for name, error in errors.items():
                with pytest.raises(error) as raised:
                    client.with_options(
                        timeout=0.3 if name == "late" else PATIENCE
                    ).chat.completions.create(model=f"{name} 1", messages=messages, extra_body=own)
                if isinstance(raised.value, openai.RateLimitError):
                    assert raised.value.response.headers["retry-after"] == "0"
                    assert raised.value.code == "rate_limit_exceeded"
                if name == "cut":
                    assert getattr(raised.value, "code", None) == "upstream_unreachable"
            assert gateway.gate.status().seen == 0
            again = client.with_options(max_retries=2)
            for model in ("429 2", "500 1", "cut-body 1"):
                answer = again.chat.completions.create(
                    model=model, messages=messages, extra_body=own
                )
                assert answer.choices[0].message.content == "7"
        until(lambda: nothing_reserved(gateway))
        assert gateway.gate.status().seen == 3


def test_an_upstream_that_accepts_no_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its queue is full: the caller gets a 504 that says so, and nothing is decided on."""
    monkeypatch.setattr(connections, "CONNECT", 0.2)
    with socket.socket() as full, socket.socket() as first, socket.socket() as second:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        for waiting in (first, second):  # one more than the queue's length has room
            waiting.setblocking(False)
            waiting.connect_ex(full.getsockname())
        url = f"http://127.0.0.1:{full.getsockname()[1]}/v1"
        with running_gateway(url) as gateway:
            for path in (PATH, "/v1/embeddings"):
                request = urllib.request.Request(gateway.url + path, body_of(task=TASK))
                with pytest.raises(urllib.error.HTTPError) as raised:
                    urllib.request.urlopen(request, timeout=PATIENCE)
                with raised.value as answer:
                    error = json.loads(answer.read())["error"]
                assert (raised.value.code, error["code"]) == (504, "upstream_timeout")
                said = f"no answer from the upstream {url}: it accepted no connection within 0.2 s"
                assert said in error["message"]
            assert gateway.gate.status().seen == 0


def test_an_upstream_that_dies_and_comes_back() -> None:
    """Under load, in the middle of bodies and of streams: callers see what became of their calls,
    and the gate has one decision and one verdict for each complete answer."""

    def script(request: Request) -> Any:
        if b'"stream"' in request.body:
            last = frame("7", "stop")
            if not dying.is_set():
                return event_stream(frame("7"), 0.02, last, b"data: [DONE]\n\n")
            held.append(request)
            return event_stream(frame("7"), PATIENCE)
        return [reply(WHOLE)[:80], 0.02, reply(WHOLE)[80:]]

    async def load(url: str, found: Counter[str], stop: asyncio.Event) -> None:
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

            async def one(caller: int, *, streams: bool) -> None:
                sent = json.loads(body_of(task=TASK)) | ({"stream": True} if streams else {})
                while not stop.is_set():
                    try:
                        async with session.post(url, json=sent) as answer:
                            if streams:
                                under_way.add(caller)
                            text = await answer.read()
                            found[str(answer.status)] += 1
                            assert answer.status != 200 or not streams or b"[DONE]" in text
                    except aiohttp.ClientError:
                        found["cut"] += 1
                    under_way.discard(caller)

            await asyncio.gather(*(one(i, streams=i % 2 == 1) for i in range(CALLERS)))

    async def through(url: str, upstream: ScriptedUpstream, found: Counter[str]) -> None:
        stop = asyncio.Event()
        calls = asyncio.create_task(load(url, found, stop))

        async def wait_until(holds: Callable[[], bool]) -> None:
            deadline = time.monotonic() + PATIENCE
            while not holds():
                assert time.monotonic() < deadline
                await asyncio.sleep(0.005)

        async def wait_for(status: str, more: int) -> None:
            wanted = found[status] + more
            await wait_until(lambda: found[status] >= wanted)

        await wait_for("200", 40)
        dying.set()  # new streams are held, so that some are under way when the upstream dies
        await wait_until(lambda: len(held) == len(under_way) == CALLERS // 2)
        await asyncio.to_thread(upstream.__exit__, None, None, None)
        dying.clear()
        await wait_for("502", 20)
        with ScriptedUpstream(script, port=upstream.port):
            await wait_for("200", 40)
            stop.set()
            await calls

    found: Counter[str] = Counter()
    dying, held, under_way = threading.Event(), list[Request](), set[int]()
    upstream = ScriptedUpstream(script)
    upstream.__enter__()
    with running_gateway(upstream.url) as gateway:
        asyncio.run(through(gateway.url + PATH, upstream, found))
        until(lambda: nothing_reserved(gateway))
    status = gateway.gate.status()
    assert found.keys() == {"200", "502", "cut"}
    assert status.seen == status.verified + status.warmup_verified == found["200"]
