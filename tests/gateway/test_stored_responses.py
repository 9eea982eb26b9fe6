"""Responses that are read after they were created are those that callers would have without the
gateway."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from typing import Any

import openai
import pytest
from openai_server import ENDPOINTS
from running_gateway import running_gateway
from scripted_upstream import Request, ScriptedUpstream, event_stream, reply
from test_faults_for_clients import frames_of
from test_passing import send

from gatekeeper.gateway import stored
from gatekeeper.gateway.logprobs import requested
from gatekeeper.gateway.stored import StoredResponses

NEEDED = "message.output_text.logprobs"
ASKED: list[dict[str, Any]] = [
    {},
    {"include": [NEEDED], "top_logprobs": 2},
    {"include": [NEEDED], "top_logprobs": 7},
    {"top_logprobs": 0},
]


class Store:
    """An upstream that stores responses with all that was requested, as vLLM does."""

    def __init__(self) -> None:
        self.found: dict[str, dict[str, Any]] = {}
        self.packs = False

    def __call__(self, request: Request) -> Any:
        method = request.head.split(b" ")[0]
        path, _, query = request.path.removeprefix("/v1/responses").partition("?")
        _, id_, *rest = [*path.split("/"), ""]
        if not id_:
            asked = json.loads(request.body)
            self.found[f"resp-{asked['input']}"] = asked
            if asked.get("stream"):
                return event_stream(*frames_of("/responses", asked))
            return [reply(json.dumps(self._of(asked)).encode())]
        if id_ not in self.found:
            return [reply(b'{"error": {"message": "no such response"}}', status="404 Not Found")]
        asked = self.found[id_]
        if method == b"DELETE":
            del self.found[id_]
            return [reply(json.dumps({"id": id_, "object": "response.deleted"}).encode())]
        if "stream=true" in query:
            return event_stream(*frames_of("/responses", asked))
        value = self._of(asked)
        if rest[0] == "input_items":  # of the response before this one
            value = {"object": "list", "data": [{"id": "x", "type": "message"}, *value["output"]]}
        body = json.dumps(value).encode()
        if not self.packs:
            return [reply(body)]
        return [reply(gzip.compress(body), headers=["content-encoding: gzip"])]

    @staticmethod
    def _of(asked: dict[str, Any]) -> dict[str, Any]:
        number = asked.get("top_logprobs", 0)
        found: dict[str, Any] = ENDPOINTS["/responses"][0](asked) | {"top_logprobs": number}
        found["output"][0]["id"] = f"msg-{asked['input']}"
        return found


@pytest.fixture
def upstream() -> Iterator[ScriptedUpstream]:
    with ScriptedUpstream(Store()) as upstream:
        yield upstream


@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize("packs", [False, True])
def test_stored_responses_are_the_same(asked: dict[str, Any], packs: bool) -> None:
    """However they are read, and whoever reads them."""

    def read(url: str) -> list[Any]:
        at, got = url.removesuffix("/v1"), []
        body = {"model": "m", "input": "ask", **asked}
        for path, method in [
            ("", "GET"),
            ("?include[]=x", "GET"),
            ("?stream=true&starting_after=1", "GET"),
            ("/input_items", "GET"),
            ("/cancel", "POST"),
            ("-unknown", "GET"),
            ("", "DELETE"),
            ("", "GET"),
        ]:
            if not got:
                send(at, "/v1/responses", json.dumps(body).encode())
            got.append(send(at, f"/v1/responses/resp-ask{path}", None, method=method))
            got[-1][2].pop("content-encoding", None)
            if packs and got[-1][3].startswith(b"\x1f\x8b"):
                got[-1] = (*got[-1][:3], gzip.decompress(got[-1][3]))
        return got

    store = Store()
    store.packs = packs
    with ScriptedUpstream(store) as upstream:
        wanted = read(upstream.url)
        assert [status for status, *_ in wanted] == [200] * 5 + [404, 200, 404]
        with running_gateway(upstream.url) as gateway:
            assert read(gateway.url) == wanted


def test_a_response_in_the_background_that_is_read_while_it_is_streamed(
    upstream: ScriptedUpstream,
) -> None:
    """Through the real client, which leaves the stream and goes on later."""
    with running_gateway(upstream.url) as gateway:
        found = []
        for url in (upstream.url, f"{gateway.url}/v1"):
            with openai.OpenAI(base_url=url, api_key="k", max_retries=0) as client:
                asked: Any = {"model": "m", "input": "ask", "background": True}
                with client.responses.create(**asked, stream=True) as stream:
                    begun = next(iter(stream))
                again = client.responses.retrieve("resp-ask", stream=True)
                found.append((begun, list(again), client.responses.retrieve("resp-ask")))
        assert found[0] == found[1]
        assert found[1][2].output[0].content[0].logprobs == []  # type: ignore[union-attr]


def test_responses_that_were_created_last_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored, "ROOM", 4)
    known, own, other = StoredResponses("own", None), requested("/responses", {}), "other"  # type: ignore[arg-type]
    for i in range(9):
        known.add({"id": f"r{i}", "output": [{"id": f"m{i}", "type": "message"}]}, own, other)  # type: ignore[arg-type]
        known.add({"id": f"n{i}", "store": False}, own, other)  # type: ignore[arg-type]
    assert known.of("/v1/responses/r6") is None
    assert known.of("/v1/responses/n8") is None
    assert known.of("/v1/responses/r8").upstream == known.of("/v1/responses/r7").upstream == "other"  # type: ignore[union-attr]
