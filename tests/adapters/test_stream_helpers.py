"""The package's helpers `chat.completions.stream()` and `responses.stream()`: one decision for each
output, however the caller reads them.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from typing import Any

import pytest
from openai import OpenAI
from openai_server import Server, expected_signals, text_of
from wrapped_calls import WAYS, Answer, Checker, ask, make_gate, new_client, opened

from gatekeeper import BadInputError, GateResult, Undecided, Verdict, VerificationGate
from gatekeeper.types import UndecidedState

HELPERS = ["chat, helper", "responses, helper"]
LAST = ("content.done", "response.completed")  # events after which an output is complete


async def called(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value


async def read_all(stream: Any) -> Any:
    if hasattr(stream, "__aiter__"):
        return [event async for event in stream]
    return list(stream)


async def read_by_next(stream: Any) -> None:
    while True:
        try:
            await called(stream.__anext__() if hasattr(stream, "__anext__") else next(stream))
        except (StopIteration, StopAsyncIteration):
            return


async def final(stream: Any) -> Any:
    name = "get_final_completion" if hasattr(stream, "get_final_completion") else None
    return await called(getattr(stream, name or "get_final_response")())


async def final_twice(stream: Any) -> None:
    assert await final(stream) == await final(stream)


async def until_done(stream: Any) -> None:
    assert await called(stream.until_done()) is stream


async def leave_at_the_end(stream: Any) -> None:
    iterator = aiter(stream) if hasattr(stream, "__aiter__") else iter(stream)
    while True:
        event = await anext(iterator) if hasattr(stream, "__aiter__") else next(iterator)
        if event.type in LAST:
            return


async def raise_at_the_end(stream: Any) -> None:
    await leave_at_the_end(stream)
    raise KeyError("of the caller")


async def leave_early(stream: Any) -> None:
    await called(stream.__anext__() if hasattr(stream, "__anext__") else next(stream))


USES: dict[str, Callable[[Any], Any]] = {
    use.__name__: use
    for use in (
        read_all,
        read_by_next,
        final,
        final_twice,
        until_done,
        leave_at_the_end,
        raise_at_the_end,
        leave_early,
    )
}


@pytest.mark.parametrize("kind", ["OpenAI", "AsyncOpenAI"])
@pytest.mark.parametrize("way", HELPERS)
@pytest.mark.parametrize("use", USES)
def test_every_use_of_a_helper(server: Server, way: str, use: str, kind: str) -> None:
    prompt, checker = f"{use} {way} {kind}", Checker()

    async def run() -> None:
        async with new_client(server, kind) as client:
            with make_gate(checker) as gate, gate.task(text_of(prompt)):
                try:
                    async with opened(WAYS[way](gate.wrap(client), prompt)) as stream:
                        await USES[use](stream)
                except KeyError:
                    assert use == "raise_at_the_end"
                (result,) = gate.results_of(stream)
                if use == "leave_early":
                    assert result == Undecided("", UndecidedState.UNFINISHED)
                    assert gate.status().seen == 0
                    return
                assert isinstance(result, GateResult)
                assert result.outcome is not None
                assert result.outcome.verdict is Verdict.PASSED
                assert result.signals.h1 == pytest.approx(expected_signals(prompt)[0])
                assert gate.status().seen == 1
                assert len(checker.saw) == 1

    asyncio.run(run())


def helper_of(client: Any, name: str, prompt: str) -> Any:
    if name == "chat, helper":
        return client.chat.completions.stream(
            model="m",
            messages=ask(prompt),
            response_format=Answer,
            n=2,
            logprobs=True,
            top_logprobs=5,
        )
    return client.responses.stream(
        model="m", input=prompt, include=["message.output_text.logprobs"], top_logprobs=5
    )


@pytest.mark.parametrize("kind", ["OpenAI", "AsyncOpenAI"])
@pytest.mark.parametrize("way", HELPERS)
def test_a_helper_that_is_observed(server: Server, way: str, kind: str) -> None:
    """Its events are read, unchanged and in their order."""

    async def run() -> None:
        async with new_client(server, kind) as client:
            async with opened(helper_of(client, way, "seen")) as stream:
                plain = await read_all(stream)
            with make_gate() as gate:
                async with opened(helper_of(client, way, "seen")) as stream:
                    observed = gate.observe_stream(stream)
                    assert await read_all(observed) == plain
                results = gate.results_of(observed)
                prompts = ["seen 0", "seen 1"] if way == "chat, helper" else ["seen"]
                assert [gate.output(r.id).text for r in results] == list(map(text_of, prompts))
                for result, prompt in zip(results, prompts, strict=True):
                    assert isinstance(result, GateResult)
                    assert result.signals.h1 == pytest.approx(expected_signals(prompt)[0])

    asyncio.run(run())


@pytest.mark.parametrize("way", HELPERS)
def test_a_helper_of_a_wrapped_client_is_not_observed(
    client: OpenAI, gate: VerificationGate, way: str
) -> None:
    """It would be decided on twice."""
    with (
        WAYS[way](gate.wrap(client), "twice") as stream,
        pytest.raises(BadInputError, match="passes through a gate already"),
    ):
        gate.observe_stream(stream)


@pytest.mark.parametrize("way", HELPERS)
def test_a_helper_that_was_not_entered(client: OpenAI, gate: VerificationGate, way: str) -> None:
    with pytest.raises(BadInputError, match="of a context manager: enter it first"):
        gate.observe_stream(helper_of(client, way, "not entered"))
