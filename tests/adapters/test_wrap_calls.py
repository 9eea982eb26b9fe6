"""`gate.wrap`: every way to call the real `openai` package against a server on loopback."""

from __future__ import annotations

import asyncio
import copy
import gc
from typing import Any

import pytest
from openai import OpenAI
from openai_server import Server, expected_signals, text_of
from pydantic import BaseModel
from wrapped_calls import (
    KINDS,
    WAYS,
    AsyncChecker,
    Checker,
    chat_call,
    make_gate,
    new_client,
    opened,
    read_to_the_end,
)

from gatekeeper import (
    BadInputError,
    SignalState,
    Verdict,
    VerificationGate,
)
from gatekeeper.adapters.openai.client import _Exchange
from gatekeeper.types import Undecided

# -- every way to call ---------------------------------------------------------------------------


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", ["OpenAI", "AsyncOpenAI"])
def test_every_way_to_call(server: Server, way: str, kind: str) -> None:
    """The verifier sees the text and the task of this call, the signals are those of its tokens,
    and what the caller gets is what an unwrapped client gives."""
    prompt = f"q {way} {kind}"
    checker: Any = AsyncChecker() if kind.startswith("Async") else Checker()

    async def run() -> None:
        async with new_client(server, kind) as client:
            await compare(client)

    async def compare(client: Any) -> None:
        gate = make_gate(checker)
        wrapped = gate.wrap(client)
        assert isinstance(wrapped, type(client))
        extra = {"gatekeeper": {"task": text_of(prompt)}, "seed": 7}
        before = copy.deepcopy(extra)
        async with opened(WAYS[way](wrapped, prompt, extra_body=extra)) as thing:
            *things, items = await read_to_the_end(thing)
        assert extra == before
        body = server.sent
        assert "gatekeeper" not in body
        assert body["seed"] == 7
        for one in [*things, *([] if isinstance(items, list) else [items])]:
            result = gate.result_of(one)
            assert not isinstance(result, Undecided), result
            assert result.verified
            assert result.outcome is not None
            assert result.outcome.verdict is Verdict.PASSED
            assert result.signals.state is SignalState.OK
            h = result.signals
            assert (h.h1, h.h2, h.h3) == pytest.approx(expected_signals(prompt), abs=1e-9)
        ((generation, task),) = checker.saw
        assert (generation.text, task) == (text_of(prompt), text_of(prompt))
        assert generation.id == result.id

        same = {name: value for name, value in body.items() if name not in ("model", "messages")}
        same = {
            k: v for k, v in same.items() if k in ("seed", "logprobs", "top_logprobs", "include")
        }
        async with opened(WAYS[way](client, prompt, extra_body=same)) as thing:
            *plain_things, plain_items = await read_to_the_end(thing)
        assert list(map(dumped, things)) == list(map(dumped, plain_things))
        assert dumped(items) == dumped(plain_items)
        assert list(map(type, things)) == list(map(type, plain_things))

    asyncio.run(run())


def dumped(thing: Any) -> Any:
    if isinstance(thing, list):
        return list(map(dumped, thing))
    if isinstance(thing, BaseModel):
        texts = repr(thing), thing.model_dump_json(warnings=False)
        return *texts, thing.model_dump(warnings=False), list(dict(thing))
    return type(thing)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("stream", [False, True], ids=["plain", "stream"])
def test_every_client(server: Server, kind: str, stream: bool) -> None:
    """Azure puts the model into the path; the outputs are decided on all the same."""
    prompt = f"q {kind} {stream}"
    checker: Any = AsyncChecker() if kind.startswith("Async") else Checker()

    async def run() -> None:
        async with new_client(server, kind) as client:
            with make_gate(checker) as gate:
                wrapped = gate.wrap(client)
                assert isinstance(wrapped, KINDS[kind])
                with gate.task(text_of(prompt)):
                    call = chat_call(wrapped, prompt, stream=stream)
                    async with opened(call) as answer:
                        await read_to_the_end(answer)
                result = gate.result_of(answer)
                assert result.outcome is not None
                assert result.outcome.verdict is Verdict.PASSED

    asyncio.run(run())
    path, body = server.requests[-1]
    assert ("/deployments/m/" in path) is ("Azure" in kind)
    assert body["top_logprobs"] == 5


def test_several_outputs(client: OpenAI, gate: VerificationGate) -> None:
    """n > 1: one result for each, with different ids, in one piece and interleaved."""
    wrapped = gate.wrap(client)
    for stream in (False, True):
        prompt = f"several {stream}"
        tasks = {text_of(f"{prompt} {i}") for i in range(3)}
        answer = chat_call(wrapped, prompt, n=3, stream=stream)
        if stream:
            assert len(list(answer)) > 3 * 3
        results = gate.results_of(answer)
        assert [r.id for r in results] == [f"chatcmpl-{prompt}/{i}" for i in range(3)]
        assert {gate.output(r.id).text for r in results} == tasks
        for i, result in enumerate(results):
            assert not isinstance(result, Undecided)
            assert result.signals.h1 == pytest.approx(expected_signals(f"{prompt} {i}")[0])
        with pytest.raises(BadInputError, match="3 outputs: ask results_of"):
            gate.result_of(answer)
    named = chat_call(wrapped, "named", n=2, extra_body={"gatekeeper": {"id": "mine"}})
    assert [r.id for r in gate.results_of(named)] == ["mine/0", "mine/1"]


def test_a_call_waits_for_no_garbage_collection(client: OpenAI, gate: VerificationGate) -> None:
    """What a call read goes with its answer: in a cycle it would stay until a collection."""
    wrapped = gate.wrap(client)
    chat_call(wrapped, "first")  # what is made once
    gc.collect()
    gc.disable()
    try:
        chat_call(wrapped, "second")
        kept = [one for one in gc.get_objects() if type(one) is _Exchange]
    finally:
        gc.enable()
    assert kept == []


@pytest.mark.parametrize(
    "hooks", [["_process_response_data"], ["_process_response_data", "_process_response"]]
)
def test_objects_say_the_same_as_their_json(
    client: OpenAI, gate: VerificationGate, monkeypatch: pytest.MonkeyPatch, hooks: list[str]
) -> None:
    """Of a version of the package that shows less, the body or the objects are read."""
    wrapped = gate.wrap(client)
    of_json = gate.result_of(chat_call(wrapped, "same"))
    for hook in hooks:
        monkeypatch.delattr(type(wrapped), hook)
    of_objects = gate.result_of(chat_call(wrapped, "same", extra_body={"gatekeeper": {"id": "b"}}))
    assert not isinstance(of_json, Undecided)
    assert not isinstance(of_objects, Undecided)
    assert of_objects.signals == of_json.signals
    assert gate.output("b").text == gate.output(of_json.id).text


@pytest.mark.parametrize("stream", [False, True], ids=["plain", "stream"])
def test_tool_calls_and_refusals(client: OpenAI, gate: VerificationGate, stream: bool) -> None:
    for prompt in (f"calltool {stream}", f"refuse {stream}"):
        answer = chat_call(gate.wrap(client), prompt, stream=stream)
        if stream:
            list(answer)
        result = gate.result_of(answer)
        assert not isinstance(result, Undecided)
        assert result.verified
        text = gate.output(result.id).text
        assert text == (text_of(prompt) if "refuse" in prompt else "")
