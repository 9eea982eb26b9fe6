"""Gates, verifiers and every way to call a client of the `openai` package."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
from loopback import PATIENCE
from openai import (
    AsyncAzureOpenAI,
    AsyncOpenAI,
    AzureOpenAI,
    OpenAI,
)
from openai.types.chat import ChatCompletion
from openai_server import Server
from pydantic import BaseModel

from gatekeeper import (
    Budget,
    Generation,
    Outcome,
    Random,
    Verdict,
    VerificationGate,
)


class Checker:
    """Passes an output that equals the task; keeps what it was given."""

    def __init__(self) -> None:
        self.saw: list[tuple[Generation, Any]] = []

    def verify(self, generation: Generation, task: Any) -> Outcome:
        self.saw.append((generation, task))
        return Outcome(Verdict.PASSED if generation.text == task else Verdict.FAILED)


class AsyncChecker:
    def __init__(self) -> None:
        self.saw: list[tuple[Generation, Any]] = []

    async def averify(self, generation: Generation, task: Any) -> Outcome:
        await anyio.sleep(0)  # on trio, too
        self.saw.append((generation, task))
        return Outcome(Verdict.PASSED if generation.text == task else Verdict.FAILED)


def make_gate(verifier: Any = None, **options: Any) -> VerificationGate:
    """Verifies everything: the budget is never tight."""
    policy = options.pop("policy", None) or Random(0.5, warmup=10_000, seed=0)
    return VerificationGate(
        policy, budget=Budget(total=100_000), verifier=verifier or Checker(), **options
    )


def ask(prompt: str) -> list[Any]:
    return [{"role": "user", "content": prompt}]


class Answer(BaseModel):
    answer: str


ChatWay = Callable[..., Any]


def chat_call(client: Any, prompt: str, **how: Any) -> Any:
    return client.chat.completions.create(model="m", messages=ask(prompt), **how)


WAYS: dict[str, ChatWay] = {
    "chat": chat_call,
    "chat, stream": lambda c, q, **k: chat_call(c, q, stream=True, **k),
    "chat, with_options": lambda c, q, **k: chat_call(c.with_options(timeout=9), q, **k),
    "chat, copy": lambda c, q, **k: chat_call(c.copy(max_retries=0), q, **k),
    "chat, parse": lambda c, q, **k: c.chat.completions.parse(
        model="m", messages=ask(q), response_format=Answer, **k
    ),
    "chat, beta parse": lambda c, q, **k: c.beta.chat.completions.parse(
        model="m", messages=ask(q), response_format=Answer, **k
    ),
    "chat, helper": lambda c, q, **k: c.chat.completions.stream(
        model="m", messages=ask(q), response_format=Answer, **k
    ),
    "chat, raw": lambda c, q, **k: c.chat.completions.with_raw_response.create(
        model="m", messages=ask(q), **k
    ),
    "chat, raw of the client": lambda c, q, **k: c.with_raw_response.chat.completions.create(
        model="m", messages=ask(q), **k
    ),
    "chat, raw parse": lambda c, q, **k: c.chat.completions.with_raw_response.parse(
        model="m", messages=ask(q), response_format=Answer, **k
    ),
    "chat, raw stream": lambda c, q, **k: c.chat.completions.with_raw_response.create(
        model="m", messages=ask(q), stream=True, **k
    ),
    "chat, streaming response": lambda c, q, **k: c.chat.completions.with_streaming_response.create(
        model="m", messages=ask(q), **k
    ),
    "chat, streamed streaming response": lambda c, q, **k: (
        c.chat.completions.with_streaming_response.create(
            model="m", messages=ask(q), stream=True, **k
        )
    ),
    "chat, post": lambda c, q, extra_body=None, **k: c.post(
        "/chat/completions",
        cast_to=ChatCompletion,
        body={"model": "m", "messages": ask(q), **k},
        options={"extra_json": extra_body} if extra_body else {},
    ),
    "completions": lambda c, q, **k: c.completions.create(model="m", prompt=q, **k),
    "completions, stream": lambda c, q, **k: c.completions.create(
        model="m", prompt=q, stream=True, **k
    ),
    "responses": lambda c, q, **k: c.responses.create(model="m", input=q, **k),
    "responses, stream": lambda c, q, **k: c.responses.create(model="m", input=q, stream=True, **k),
    "responses, parse": lambda c, q, **k: c.responses.parse(
        model="m", input=q, text_format=Answer, **k
    ),
    "responses, helper": lambda c, q, **k: c.responses.stream(
        model="m", input=q, text_format=Answer, **k
    ),
    "responses, raw": lambda c, q, **k: c.responses.with_raw_response.create(
        model="m", input=q, **k
    ),
    "responses, beta": lambda c, q, **k: c.beta.responses.create(model="m", input=q, **k),
}


@asynccontextmanager
async def opened(thing: Any) -> AsyncIterator[Any]:
    """The result of a call, sync or async, with or without a context manager."""
    if hasattr(thing, "__aenter__") and not inspect.isawaitable(thing):
        async with thing as inner:
            yield inner
    elif inspect.isawaitable(thing):
        yield await thing
    elif type(thing).__name__.endswith("Manager"):
        with thing as inner:
            yield inner
    else:
        yield thing


async def read_to_the_end(thing: Any) -> list[Any]:
    """Parse a raw response, iterate over a stream; returns all objects on the way."""
    if hasattr(thing, "http_response"):
        parsed = thing.parse()
        parsed = await parsed if inspect.isawaitable(parsed) else parsed
        return [thing, *(await read_to_the_end(parsed))]
    if hasattr(thing, "__aiter__"):
        return [thing, [item async for item in thing]]
    if hasattr(thing, "__next__"):
        return [thing, list(thing)]
    return [thing]


@asynccontextmanager
async def new_client(server: Server, kind: str) -> AsyncIterator[Any]:
    if "Azure" in kind:
        at = {"azure_endpoint": server.url.removesuffix("/v1"), "api_version": "1"}
    else:
        at = {"base_url": server.url}
    # The client's own 5 s to connect are too few for 1,000 calls at once on a loaded machine.
    client: Any = KINDS[kind](api_key="k", timeout=PATIENCE, **at)
    try:
        yield client
    finally:
        closing = client.close()
        if inspect.isawaitable(closing):
            await closing


KINDS: dict[str, Any] = {
    kind.__name__: kind for kind in (OpenAI, AsyncOpenAI, AzureOpenAI, AsyncAzureOpenAI)
}
