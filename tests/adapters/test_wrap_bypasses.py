"""`gate.wrap`: requests and readings that could bypass the gate pass through it, or are refused."""

from __future__ import annotations

import asyncio
import inspect
import json
import sys
from types import ModuleType
from typing import Any, Self

import httpx2
import pytest
from openai import OpenAI
from openai.types.chat import ChatCompletion
from openai_server import Server, text_of
from wrapped_calls import ask, chat_call, make_gate, new_client, opened

from gatekeeper import BadInputError, GateResult, Generation, Verdict, VerificationGate
from gatekeeper.types import Undecided, UndecidedState

KINDS = ["OpenAI", "AsyncOpenAI"]


async def called(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value


# -- requests ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "url", ["chat/completions", "/chat/completions?a=b", "{}/chat/completions"]
)
def test_every_form_of_a_path(
    server: Server, client: OpenAI, gate: VerificationGate, url: str
) -> None:
    body = {"model": "m", "messages": ask(url)}
    answer = gate.wrap(client).post(url.format(server.url), cast_to=ChatCompletion, body=body)
    assert gate.result_of(answer).verified
    assert server.sent["top_logprobs"] == 5


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("given", [{"content": b'{"model": "m"}'}, {"body": [1]}, {"body": "x"}])
def test_a_body_that_cannot_be_read(server: Server, given: dict[str, Any], kind: str) -> None:
    """One that is not of such an endpoint passes."""

    async def run() -> None:
        async with new_client(server, kind) as client:
            with make_gate() as gate:
                wrapped, before = gate.wrap(client), len(server.requests)
                with pytest.raises(BadInputError, match="would bypass the gate: give a dict"):
                    await called(wrapped.post("/responses", cast_to=object, **given))
                assert len(server.requests) == before
                if "content" in given:
                    await called(wrapped.post("/embeddings", cast_to=object, **given))
                    assert server.sent == {"model": "m"}

    asyncio.run(run())


@pytest.mark.parametrize("cast_to", [httpx2.Response, object, str, dict[str, Any]])
@pytest.mark.parametrize("kind", KINDS)
def test_every_type_of_an_answer(server: Server, cast_to: Any, kind: str) -> None:
    prompt = f"typed {cast_to} {kind}"
    body = {"model": "m", "messages": ask(prompt)}

    async def run() -> None:
        async with new_client(server, kind) as client:
            with make_gate() as gate, gate.task(text_of(prompt), id="a"):
                wrapped = gate.wrap(client)
                await called(wrapped.post("/chat/completions", cast_to=cast_to, body=body))
                result = gate.find("a")
                assert result is not None
                assert result.outcome is not None
                assert result.outcome.verdict is Verdict.PASSED
                assert gate.status().seen == 1

    asyncio.run(run())


class OpenedError(Exception):
    """A WebSocket was opened."""


@pytest.mark.parametrize("kind", [*KINDS, "AzureOpenAI", "AsyncAzureOpenAI"])
def test_a_websocket_of_the_responses_api_is_refused(
    server: Server, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its outputs would not reach the gate. Those of other APIs are opened."""

    class Stub(ModuleType):
        def connect(self, *args: Any, **how: Any) -> Any:
            raise OpenedError

        _WebSocketConnect = _recv_bytes = connect

    for name in ("websockets.sync.client", "websockets.asyncio.client", "openai.lib._websocket"):
        monkeypatch.setitem(sys.modules, name, Stub(name))

    async def run() -> None:
        async with new_client(server, kind) as client:
            with make_gate() as gate:
                wrapped = gate.wrap(client).with_options(timeout=9)
                for responses in (wrapped.responses, wrapped.beta.responses):
                    with pytest.raises(BadInputError, match="WebSocket of the Responses API"):
                        await called(responses.connect().enter())
                others = [client.responses.connect()]
                if kind in KINDS:  # Azure's have a class of their own
                    others.append(wrapped.realtime.connect(model="m"))
                for other in others:
                    with pytest.raises(OpenedError):
                        await called(other.enter())

    asyncio.run(run())


# -- answers -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("how", ["parse", "read", "text", "json"])
def test_a_streaming_response_that_is_read_whole(server: Server, how: str, kind: str) -> None:
    """As bytes, as text or parsed: one decision, at the first reading."""
    prompt = f"whole {how} {kind}"

    async def run() -> None:
        async with new_client(server, kind) as client:
            with make_gate() as gate, gate.task(text_of(prompt)):
                completions = gate.wrap(client).chat.completions.with_streaming_response
                async with opened(completions.create(model="m", messages=ask(prompt))) as response:
                    assert gate.result_of(response) == Undecided("", UndecidedState.UNFINISHED)
                    await called(getattr(response, how)())
                    result = gate.result_of(response)
                    assert json.loads(await called(response.text())) == await called(
                        response.json()
                    )
                    parsed = await called(response.parse())
                assert isinstance(result, GateResult)
                assert result.outcome is not None
                assert result.outcome.verdict is Verdict.PASSED
                assert repr(gate.result_of(parsed)) == repr(result)
                assert gate.status().seen == 1

    asyncio.run(run())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("stream", [False, True])
def test_an_error_about_one_output_does_not_hide_the_others(
    server: Server, stream: bool, kind: str
) -> None:
    """If strict, it is raised when all outputs are decided on."""

    async def run() -> None:
        async with new_client(server, kind) as client:
            with make_gate() as gate, gate.task(id="mine"):
                gate.maybe_verify(Generation("mine/1", "another text"))
                wrapped = gate.wrap(client, strict=True)
                with pytest.raises(BadInputError, match="'mine/1' already names another"):
                    await read(await called(chat_call(wrapped, "n", n=3, stream=stream)))
                assert gate.find("mine/0") is not None
                assert gate.find("mine/2") is not None
                assert gate.status().seen == 3

    async def read(answer: Any) -> None:
        if stream:
            [chunk async for chunk in answer] if hasattr(answer, "__aiter__") else list(answer)

    asyncio.run(run())


# -- copies --------------------------------------------------------------------------------------


def test_a_client_that_cannot_be_copied(server: Server, gate: VerificationGate) -> None:
    class Tenant(OpenAI):
        def __init__(self, tenant: str) -> None:
            super().__init__(base_url=server.url, api_key=tenant)

    with Tenant("k") as client, pytest.raises(BadInputError, match="Tenant cannot be copied: its"):
        gate.wrap(client)


def test_copies_by_a_class_of_the_callers_own(server: Server, gate: VerificationGate) -> None:
    """Its `with_options` is called, and gives a client behind the gate."""

    class Mine(OpenAI):
        def with_options(self, **changes: Any) -> Self:  # type: ignore[override]
            copied = self.copy(**changes)
            copied.organization = "mine"
            return copied

    with Mine(base_url=server.url, api_key="k") as mine:
        copied = gate.wrap(mine).with_options(timeout=9)
        assert copied.organization == "mine"
        assert gate.result_of(chat_call(copied, "copied")).verified
