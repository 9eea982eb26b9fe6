"""`gate.wrap`: other tools and clients, observed streams, and many calls at once."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest
import trio
from loopback import PATIENCE
from openai import OpenAI
from openai.resources.chat.completions import Completions
from openai_server import Server, chat_chunks, expected_signals, response_events, text_of
from wrapped_calls import AsyncChecker, Checker, ask, chat_call, make_gate, new_client

from gatekeeper import (
    BadInputError,
    Random,
    Verdict,
    VerificationGate,
)
from gatekeeper.types import Undecided, UndecidedState

# -- other tools, other clients ------------------------------------------------------------------


def test_patches_of_other_tools_are_reported(
    server: Server, client: OpenAI, gate: VerificationGate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A replacement on the client would be lost or would bypass the gate. Classes may be patched,
    and the wrapped client too, as long as the replacement calls the original."""
    seen: list[str] = []

    def calling(original: Any) -> Any:
        def replacement(*args: Any, **kwargs: Any) -> Any:
            seen.append("called")
            return original(*args, **kwargs)

        return replacement

    requesting = OpenAI(base_url=server.url, api_key="k", http_client=client._client)
    requesting.request = calling(requesting.request)  # type: ignore[method-assign]
    with pytest.raises(BadInputError, match=r"replaced OpenAI\.request .*wrap the client first"):
        gate.wrap(requesting)
    creating = OpenAI(base_url=server.url, api_key="k", http_client=client._client)
    creating.chat.completions.create = calling(creating.chat.completions.create)  # type: ignore[method-assign]
    _ = creating.chat.with_raw_response, creating.with_streaming_response
    with pytest.raises(BadInputError, match=r"replaced Completions\.create "):
        gate.wrap(creating)

    proxied = OpenAI(base_url=server.url, api_key="k", http_client=client._client)
    proxied.__dict__["chat"] = object()
    with pytest.raises(BadInputError, match=r"replaced OpenAI\.chat "):
        gate.wrap(proxied)

    wrapped = gate.wrap(client)
    with pytest.raises(BadInputError, match="wrapped already"):
        gate.wrap(wrapped)
    wrapped.request = calling(wrapped.request)  # type: ignore[method-assign]
    wrapped.chat.completions.create = calling(wrapped.chat.completions.create)  # type: ignore[method-assign]
    assert gate.result_of(chat_call(wrapped, "patched after")).verified
    assert len(seen) == 2
    monkeypatch.setattr(Completions, "create", calling(Completions.create))
    monkeypatch.setattr(OpenAI, "request", calling(OpenAI.request))
    assert gate.result_of(chat_call(gate.wrap(client), "patched classes")).verified
    assert len(seen) == 4


def test_an_object_that_is_not_a_client(gate: VerificationGate) -> None:
    with pytest.raises(BadInputError, match="give a client of openai"):
        gate.wrap(object())


def test_a_class_of_the_callers_own(server: Server, gate: VerificationGate) -> None:
    class Mine(OpenAI):
        pass

    with Mine(base_url=server.url, api_key="k") as mine:
        wrapped = gate.wrap(mine)
        assert isinstance(wrapped, Mine)
        assert gate.result_of(chat_call(wrapped, "mine")).verified


# -- streams without a wrapped client ------------------------------------------------------------


def test_observed_streams(server: Server) -> None:
    """Objects and dicts, sync and async, lists of a log: untouched, and decided on."""
    prompt = "observed"
    body = {"model": "m", "messages": ask(prompt), "logprobs": True, "top_logprobs": 5}

    async def run() -> None:
        chunks = list(chat_chunks(body))
        with make_gate() as gate:
            plain = gate.observe_stream(iter(chunks), text_of(prompt))
            assert gate.result_of(plain) == Undecided("", UndecidedState.UNFINISHED)
            assert next(plain) is chunks[0]
            assert all(a is b for a, b in zip(plain, chunks[1:], strict=True))
            check(gate, plain)
            async with new_client(server, "OpenAI") as client:
                stream = client.post(
                    "/chat/completions", cast_to=object, body=body | {"stream": True}, stream=True
                )
                observed = gate.observe_stream(stream, text_of(prompt), id="sync")
                assert list(observed) == chunks
                check(gate, observed)
                with pytest.raises(BadInputError, match="through a gate already"):
                    gate.observe_stream(chat_call(gate.wrap(client), "x", stream=True))
            async with new_client(server, "AsyncOpenAI") as client:
                stream = await chat_call(client, prompt, logprobs=True, top_logprobs=5, stream=True)
                observed = gate.observe_stream(stream, text_of(prompt), id="async")
                await anext(observed)
                assert len([chunk async for chunk in observed]) == len(chunks) - 1
                check(gate, observed)
            responses = gate.observe_stream(
                response_events({"input": prompt, **WANTED}), text_of(prompt), id="events"
            )
            list(responses)
            check(gate, responses)
            garbage = gate.observe_stream([1, None, {"choices": [{"index": []}]}])
            assert list(garbage) == [1, None, {"choices": [{"index": []}]}]
            assert isinstance(gate.result_of(garbage), Undecided)
            with pytest.raises(BadInputError):
                list(gate.observe_stream([1], strict=True))
            with pytest.raises(BadInputError, match="give an iterable"):
                gate.observe_stream(5)

    def check(gate: VerificationGate, observed: Any) -> None:
        result = gate.result_of(observed)
        assert not isinstance(result, Undecided), result
        assert result.outcome is not None
        assert result.outcome.verdict is Verdict.PASSED
        assert result.signals.h1 == pytest.approx(expected_signals(prompt)[0])

    asyncio.run(run())


WANTED = {"include": ["message.output_text.logprobs"], "top_logprobs": 5}


# -- many at once --------------------------------------------------------------------------------


@pytest.mark.parametrize(("verifier", "n"), [(AsyncChecker, 400), (Checker, 200)])
def test_many_calls_at_once(server: Server, verifier: Any, n: int, tmp_path: Path) -> None:
    """No result is lost, and each belongs to its own id, text, task and tokens."""
    checker = verifier()
    prompts = [f"many {i}" + (" sameid" if i % 10 == 0 else "") for i in range(n)]

    async def one(gate: VerificationGate, client: Any, i: int, prompt: str) -> Any:
        stream = i % 3 == 0
        if i % 2:
            with gate.task(text_of(prompt), id=f"mine-{i}"):
                answer = await chat_call(client, prompt, stream=stream)
        else:
            settings = {"gatekeeper": {"task": text_of(prompt)}}
            answer = await chat_call(client, prompt, stream=stream, extra_body=settings)
        if stream:
            text = "".join([c.choices[0].delta.content or "" async for c in answer if c.choices])
        else:
            text = answer.choices[0].message.content
        assert text == text_of(prompt)
        return gate.result_of(answer)

    async def run() -> list[Any]:
        policy = Random(0.5, warmup=n // 5, seed=1)
        async with new_client(server, "AsyncOpenAI") as client:
            with make_gate(checker, policy=policy, log=tmp_path / "run.db") as gate:
                wrapped = gate.wrap(client)
                calls = [one(gate, wrapped, i, prompt) for i, prompt in enumerate(prompts)]
                results = await asyncio.wait_for(asyncio.gather(*calls), PATIENCE)
                assert gate.status().seen == n
                assert gate.status().held == 0.0
                for result, prompt in zip(results, prompts, strict=True):
                    assert gate.output(result.id).text == text_of(prompt)
        return results

    results = asyncio.run(run())
    assert len({result.id for result in results}) == n
    for i, (result, prompt) in enumerate(zip(results, prompts, strict=True)):
        h = result.signals
        assert (h.h1, h.h2, h.h3) == pytest.approx(expected_signals(prompt), abs=1e-9)
        if i % 2:
            assert result.id == f"mine-{i}"
        if result.verified:
            assert result.outcome.verdict is Verdict.PASSED  # the task is this call's
    assert 0.55 * n < sum(result.verified for result in results) < 0.85 * n
    assert len(checker.saw) == sum(result.verified for result in results)


def test_a_client_on_trio(server: Server) -> None:
    """Outputs are decided on and verified without asyncio's event loop, too."""
    prompts = [f"trio {i}" for i in range(20)]
    results: dict[str, Any] = {}

    async def one(gate: VerificationGate, client: Any, prompt: str) -> None:
        with gate.task(text_of(prompt)):
            results[prompt] = gate.result_of(await chat_call(client, prompt))

    async def run() -> None:
        async with new_client(server, "AsyncOpenAI") as client:
            with make_gate(AsyncChecker()) as gate:
                async with trio.open_nursery() as nursery:
                    for prompt in prompts:
                        nursery.start_soon(one, gate, gate.wrap(client), prompt)

    trio.run(run)
    for prompt in prompts:
        h = results[prompt].signals
        assert (h.h1, h.h2, h.h3) == pytest.approx(expected_signals(prompt), abs=1e-9)
        assert results[prompt].outcome.verdict is Verdict.PASSED


@pytest.mark.parametrize("stream", [False, True])
def test_a_caller_that_is_cancelled_while_it_waits_for_a_verdict(
    server: Server, stream: bool
) -> None:
    """All outputs of its answer are decided on, each once, and nothing stays reserved."""

    class Held:
        def __init__(self) -> None:
            self.begun = asyncio.Event()

        async def averify(self, generation: Any, task: Any) -> Any:
            self.begun.set()
            await asyncio.sleep(PATIENCE)

    async def run() -> None:
        verifier, answers = Held(), []
        async with new_client(server, "AsyncOpenAI") as client:
            with make_gate(verifier) as gate, gate.task(id="mine"):

                async def call() -> None:
                    answers.append(await chat_call(gate.wrap(client), "c", n=3, stream=stream))
                    [chunk async for chunk in answers[0]]

                calling = asyncio.create_task(call())
                await verifier.begun.wait()
                calling.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await calling
                status = gate.status()
                assert (status.seen, status.held, status.warmup_held) == (3, 0.0, 0.0)
                assert all(gate.find(f"mine/{i}") is not None for i in range(3))
                for answer in answers:
                    assert [result.id for result in gate.results_of(answer)] == [
                        f"mine/{i}" for i in range(3)
                    ]

    asyncio.run(run())


def test_threads_share_a_wrapped_client(client: OpenAI) -> None:
    """Each thread has its own `gate.task`."""
    checker = Checker()
    errors: list[BaseException] = []
    with make_gate(checker) as gate:
        wrapped = gate.wrap(client)

        def work(worker: int) -> None:
            try:
                for i in range(10):
                    prompt = f"thread {worker} {i}"
                    with gate.task(text_of(prompt), id=prompt):
                        result = gate.result_of(chat_call(wrapped, prompt))
                    assert result.id == prompt
                    assert result.outcome is not None
                    assert result.outcome.verdict is Verdict.PASSED
            except BaseException as e:
                errors.append(e)

        crew = [threading.Thread(target=work, args=(i,), daemon=True) for i in range(16)]
        for thread in crew:
            thread.start()
        for thread in crew:
            thread.join(PATIENCE)
    assert not errors
    assert len(checker.saw) == 160
