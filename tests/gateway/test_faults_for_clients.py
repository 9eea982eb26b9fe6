"""What the real client makes of an upstream that fails, beside what it makes of it directly: for
each endpoint, whole and as a stream, parsed and raw."""

from __future__ import annotations

import http.client
import itertools
import json
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import openai
import pytest
from openai_server import ENDPOINTS
from running_gateway import Running, running_gateway
from scripted_upstream import CUT, Request, ScriptedUpstream, event_stream, reply

MESSAGES = [{"role": "user", "content": "ask"}]
CALLS: dict[str, tuple[Callable[[openai.OpenAI], Any], dict[str, Any]]] = {
    "/chat/completions": (lambda client: client.chat.completions, {"messages": MESSAGES}),
    "/completions": (lambda client: client.completions, {"prompt": "ask"}),
    "/responses": (lambda client: client.responses, {"input": "ask"}),
}
CASES = [*itertools.product(CALLS, ["whole", "stream"], ["parsed", "raw"])]
ALL = pytest.mark.parametrize(("endpoint", "kind", "how"), CASES)
LATE = 2.0  # seconds: the client's own timeout


def frames_of(endpoint: str, asked: dict[str, Any]) -> list[bytes]:
    frames = [f"data: {json.dumps(event)}\n\n".encode() for event in ENDPOINTS[endpoint][1](asked)]
    return frames if endpoint == "/responses" else [*frames, b"data: [DONE]\n\n"]


def script(request: Request) -> Any:
    """By the model's name: how far the answer comes, and how it ends."""
    asked = json.loads(request.body)
    how = asked["model"]
    endpoint = request.path.removeprefix("/v1")
    if not asked.get("stream"):
        answer = reply(json.dumps(ENDPOINTS[endpoint][0](asked)).encode())
        return {
            "cut before": [CUT],
            "cut inside": [answer[:-20], CUT],
            "late before": [20 * LATE, answer],
            "late inside": [answer[:-20], 20 * LATE, answer[-20:]],
        }.get(how, [answer])
    frames = frames_of(endpoint, asked)
    part = frames[3][:20]
    return {
        "cut before": [CUT],
        "cut inside": event_stream(*frames[:3], part, CUT, ends=False),
        "late before": [20 * LATE, *event_stream(*frames)],
        "late inside": event_stream(*frames[:3], 20 * LATE, *frames[3:]),
    }.get(how, event_stream(*frames))


@pytest.fixture(scope="module")
def upstream() -> Iterator[ScriptedUpstream]:
    with ScriptedUpstream(script) as upstream:
        yield upstream


@pytest.fixture(scope="module")
def gateway(upstream: ScriptedUpstream) -> Iterator[Running]:
    with running_gateway(upstream.url) as gateway:
        yield gateway


def client_of(url: str) -> openai.OpenAI:
    return openai.OpenAI(base_url=url, api_key="k", max_retries=0, timeout=60)


def result(
    client: openai.OpenAI, endpoint: str, kind: str, how: str, **asked: Any
) -> tuple[list[Any], Any]:
    """What comes, and the type of the error that ends it."""
    call, body = CALLS[endpoint]
    came: list[Any] = []
    create = call(client).with_raw_response.create if how == "raw" else call(client).create
    try:
        answer = create(**body, **asked, stream=kind == "stream")
        if how == "raw":
            came.append((answer.status_code, answer.headers["content-type"]))
            answer = answer.parse()
        if kind == "whole":
            came.append(answer)
        else:
            came.extend(answer)
    except Exception as error:
        return came, type(error)
    return came, None


@ALL
def test_an_answer_is_the_same(
    upstream: ScriptedUpstream, gateway: Running, endpoint: str, kind: str, how: str
) -> None:
    with client_of(upstream.url) as direct, client_of(f"{gateway.url}/v1") as through:
        wanted = result(direct, endpoint, kind, how, model="m")
        assert result(through, endpoint, kind, how, model="m") == wanted
    came, error = wanted
    assert error is None
    assert len(came) > (3 if kind == "stream" else 0)


@ALL
@pytest.mark.parametrize("where", ["before", "inside"])
def test_a_connection_that_is_cut(
    upstream: ScriptedUpstream, gateway: Running, endpoint: str, kind: str, how: str, where: str
) -> None:
    """The same came before it, and the same error comes; but where there is no answer at all the
    gateway says so, in the API's own format."""
    asked = {"model": f"cut {where}"}
    with client_of(upstream.url) as direct, client_of(f"{gateway.url}/v1") as through:
        wanted = result(direct, endpoint, kind, how, **asked)
        found = result(through, endpoint, kind, how, **asked)
        assert wanted[1] is not None
        if where == "before":
            assert wanted == ([], openai.APIConnectionError)
            assert found == ([], openai.InternalServerError)
            call, body = CALLS[endpoint]
            with pytest.raises(openai.InternalServerError) as raised:
                call(through).create(**body, **asked, stream=kind == "stream")
            assert raised.value.status_code == 502
            assert raised.value.body["code"] == "upstream_unreachable"  # type: ignore[index]
            return
        assert found == wanted
        assert len(found[0]) >= (3 if kind == "stream" else 0)


def test_clients_that_wait_no_longer(upstream: ScriptedUpstream, gateway: Running) -> None:
    """Their own timeouts end the calls, as without the gateway, which has none; all at once."""
    cases = [*itertools.product(CASES, ["before", "inside"])]
    with (
        client_of(upstream.url) as direct,
        client_of(f"{gateway.url}/v1") as through,
        ThreadPoolExecutor(2 * len(cases)) as pool,
    ):
        found = [
            [
                pool.submit(result, client, *case, model=f"late {where}", timeout=LATE)
                for client in (direct, through)
            ]
            for case, where in cases
        ]
        for (case, where), (wanted, other) in zip(cases, found, strict=True):
            assert other.result() == wanted.result(), (case, where)
            came, error = wanted.result()
            assert error is not None
            assert len(came) >= (3 if case[1] == "stream" and where == "inside" else 0)


@pytest.mark.parametrize("endpoint", [*CALLS])
@pytest.mark.parametrize("asks", [False, True])
def test_no_frame_is_held_but_the_last(endpoint: str, asks: bool) -> None:
    """The upstream sends a frame when the caller has the one before; the last one and the result
    come together."""
    path = f"/v1{endpoint}"
    _, body = CALLS[endpoint]
    more: dict[str, Any] = {"logprobs": True, "top_logprobs": 5} if asks else {}
    if endpoint == "/completions":
        more = {"logprobs": 2} if asks else {}
    if endpoint == "/responses":
        more = {"include": ["message.output_text.logprobs"]} if asks else {}
    body = {**body, **more, "model": "m", "stream": True}
    frames = frames_of(endpoint, body)
    released = threading.Semaphore(0)

    def paced(request: Request) -> Any:
        yield from event_stream(ends=False)
        for frame in frames_of(endpoint, json.loads(request.body)):
            while not released.acquire(blocking=False):
                yield 0.002
            yield event_stream(frame)[1]
        yield b"0\r\n\r\n"

    with ScriptedUpstream(paced) as upstream, running_gateway(upstream.url) as gateway:
        connection = http.client.HTTPConnection(gateway.url.removeprefix("http://"), timeout=60)
        connection.request("POST", path, json.dumps(body).encode())
        answer = connection.getresponse()  # the head comes before any frame
        found = []
        for _ in frames[:-1]:
            released.release()
            text = b""
            while not text.endswith(b"\n\n"):
                text += answer.read1()
            found.append(text)
        released.release()
        rest = answer.read()
        connection.close()
    assert found == frames[:-1]
    assert rest.startswith(b": gatekeeper {")
    assert rest.partition(b"\n\n")[2] == frames[-1]
