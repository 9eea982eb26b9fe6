"""`gate.wrap`: the real `openai` package against a real server on loopback.

The server answers `/chat/completions`, `/completions` and `/responses` as OpenAI does, plainly and
as a stream, with the log-probabilities that it is asked for and no others. What it answers follows
from the prompt alone; words in the prompt ask it to misbehave.
"""

from __future__ import annotations

import asyncio
import copy
import gc
import inspect
import json
import pickle
import random
import threading
import weakref
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
import trio
from breaking_log import Breaking
from openai import (
    APIStatusError,
    AsyncAzureOpenAI,
    AsyncOpenAI,
    AzureOpenAI,
    BadRequestError,
    LengthFinishReasonError,
    OpenAI,
)
from openai.resources.chat.completions import Completions
from openai.types.chat import ChatCompletion
from pydantic import BaseModel

from gatekeeper import (
    BadInputError,
    Budget,
    GatekeeperError,
    Generation,
    Outcome,
    Random,
    SignalState,
    Verdict,
    VerificationGate,
    VerifierUnavailableError,
)
from gatekeeper.types import Undecided, UndecidedState

PATIENCE = 300.0  # seconds: only against hanging for ever, on a machine that is busy
HEADERS = {"content-type": "application/json", "retry-after-ms": "1"}


# -- the server ----------------------------------------------------------------------------------


def text_of(prompt: str) -> str:
    return json.dumps({"answer": f"{prompt} {len(prompt) * 7919}"})


def tokens_of(prompt: str) -> list[tuple[str, list[float]]]:
    """Tokens of the answer, each with the descending log-probabilities of 20 alternatives.

    The chosen token is the first or the third of them.
    """
    rng = random.Random(prompt)
    text = text_of(prompt)
    pieces = [text[i : i + 5] for i in range(0, len(text), 5)]
    return [(p, sorted((-rng.expovariate(0.2) for _ in range(20)), reverse=True)) for p in pieces]


def chosen(prompt: str, i: int) -> int:
    return 2 if (len(prompt) + i) % 3 == 0 else 0


def expected_signals(prompt: str) -> tuple[float, float, float]:
    """h1, h2, h3 by the definitions, one token after the other."""
    import math

    tokens = [values for _, values in tokens_of(prompt)]
    margins = [v[0] - v[1] for v in tokens]
    h1 = sum(-v[chosen(prompt, i)] for i, v in enumerate(tokens)) / len(tokens)
    return h1, -min(margins), sum(math.exp(-m) for m in margins) / len(margins)


def chat_logprobs(prompt: str, k: int) -> list[dict[str, Any]]:
    entries = []
    for i, (token, values) in enumerate(tokens_of(prompt)):
        at = chosen(prompt, i)
        names = [token if j == at else f"{token}~{j}" for j in range(20)]
        if "logits" in prompt:
            values = [v + 30.0 for v in values]
        ranked = [
            {"token": names[j], "logprob": values[j], "bytes": list(names[j].encode())}
            for j in range(20)
        ]
        top = ranked[: 1 if "k1" in prompt else k]
        entries.append({**ranked[at], "top_logprobs": top})
    return entries


def prompt_of(body: Mapping[str, Any]) -> str:
    if "messages" in body:
        return str(body["messages"][-1]["content"])
    return str(body.get("prompt") or body.get("input"))


def id_of(prompt: str, kind: str) -> str:
    return "" if "noid" in prompt else "same" if "sameid" in prompt else f"{kind}-{prompt}"


def head(prompt: str, kind: str, object_: str) -> dict[str, Any]:
    return {"id": id_of(prompt, kind), "object": object_, "created": 1, "model": "m"}


USAGE = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}


def chat(body: Mapping[str, Any]) -> dict[str, Any]:
    prompt = prompt_of(body)
    choices = []
    for i in range(body.get("n") or 1):
        name = f"{prompt} {i}" if body.get("n") else prompt
        logprobs = None
        if body.get("logprobs") and "null" not in prompt:
            entries = chat_logprobs(name, body.get("top_logprobs", 0))
            logprobs = {"content": entries, "refusal": None}
        message: dict[str, Any] = {"role": "assistant", "content": text_of(name), "refusal": None}
        if "refuse" in prompt:
            message |= {"content": None, "refusal": text_of(name)}
            logprobs = logprobs and {"content": None, "refusal": logprobs["content"]}
        if "calltool" in prompt:
            call = {"name": "f", "arguments": text_of(name)}
            message |= {"content": None, "tool_calls": [TOOL_CALL | {"function": call}]}
        reason = "length" if "length" in prompt else "stop"
        choices.append(
            {"index": i, "finish_reason": reason, "message": message, "logprobs": logprobs}
        )
    if "empty" in prompt:
        choices = []
    return head(prompt, "chatcmpl", "chat.completion") | {"choices": choices, "usage": USAGE}


TOOL_CALL = {"id": "call_1", "type": "function"}


def chat_chunks(body: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Like OpenAI's: a role chunk, one chunk per token, a last one; choices interleaved."""
    whole = chat(body)
    base = {**whole, "object": "chat.completion.chunk", "choices": []}
    del base["usage"]

    def chunk(i: int, delta: dict[str, Any], logprobs: Any = None, reason: Any = None) -> Any:
        choice = {"index": i, "delta": delta, "logprobs": logprobs, "finish_reason": reason}
        return base | {"choices": [choice]}

    yield base  # Azure's filter results come so
    for choice in whole["choices"]:
        content = choice["message"]["content"] and ""
        yield chunk(choice["index"], {"role": "assistant", "content": content})
    for position in range(
        max((len(text_of(f"{prompt_of(body)} 0")), 0)) if whole["choices"] else 0
    ):
        for choice in whole["choices"]:
            message, logprobs = choice["message"], choice["logprobs"] or {}
            entries = logprobs.get("content") or logprobs.get("refusal")
            name = "refusal" if message["refusal"] else "content"
            pieces = split(message[name] or "")
            if position >= len(pieces):
                continue
            own = [entries[position]] if entries else None
            yield chunk(choice["index"], {name: pieces[position]}, own and {"content": own})
    if "cut" in prompt_of(body):
        return
    for choice in whole["choices"]:
        for call in choice["message"].get("tool_calls", ()):
            yield chunk(choice["index"], {"tool_calls": [{"index": 0, **call}]})
        yield chunk(choice["index"], {}, None, choice["finish_reason"])
    if (body.get("stream_options") or {}).get("include_usage"):
        yield base | {"usage": USAGE}


def split(text: str) -> list[str]:
    return [text[i : i + 5] for i in range(0, len(text), 5)]


def completion(body: Mapping[str, Any]) -> dict[str, Any]:
    prompt = prompt_of(body)
    logprobs = None
    if body.get("logprobs"):
        entries = chat_logprobs(prompt, body["logprobs"])
        logprobs = {
            "tokens": [e["token"] for e in entries],
            "token_logprobs": [e["logprob"] for e in entries],
            "top_logprobs": [
                {a["token"]: a["logprob"] for a in [*e["top_logprobs"], e]} for e in entries
            ],
            "text_offset": [5 * i for i in range(len(entries))],
        }
    choice = {"index": 0, "finish_reason": "stop", "text": text_of(prompt), "logprobs": logprobs}
    return head(prompt, "cmpl", "text_completion") | {"choices": [choice], "usage": USAGE}


def completion_chunks(body: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    whole = completion(body)
    (choice,) = whole["choices"]
    del whole["usage"]
    for i, piece in enumerate(split(choice["text"])):
        logprobs = choice["logprobs"]
        own = logprobs and {name: [values[i]] for name, values in logprobs.items()}
        part = {"index": 0, "text": piece, "logprobs": own, "finish_reason": None}
        yield whole | {"choices": [part]}
    yield whole | {"choices": [choice | {"text": "", "logprobs": None}]}


def response(body: Mapping[str, Any]) -> dict[str, Any]:
    prompt = prompt_of(body)
    logprobs: Any = []
    if "message.output_text.logprobs" in (body.get("include") or ()):
        logprobs = chat_logprobs(prompt, body.get("top_logprobs", 0))
    part = {"type": "output_text", "text": text_of(prompt), "annotations": [], "logprobs": logprobs}
    message = {"type": "message", "id": "msg_1", "status": "completed", "role": "assistant"}
    return {
        "id": id_of(prompt, "resp"),
        "object": "response",
        "created_at": 1,
        "status": "completed",
        "model": "m",
        "output": [] if "empty" in prompt else [message | {"content": [part]}],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": {
            "input_tokens": 11,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": 7,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": 18,
        },
    }


def response_events(body: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    whole = response(body)
    (message,) = whole["output"]
    (part,) = message["content"]
    started = {**whole, "status": "in_progress", "output": []}
    where = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
    bare = part | {"text": "", "logprobs": []}
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": started},
        {"type": "response.output_item.added", "item": message | {"content": []}} | where,
        {"type": "response.content_part.added", "part": bare} | where,
    ]
    for i, piece in enumerate(split(part["text"])):
        own = part["logprobs"][i : i + 1]
        events.append(
            {"type": "response.output_text.delta", "delta": piece, "logprobs": own} | where
        )
    events += [
        {"type": "response.output_text.done", "text": part["text"], "logprobs": []} | where,
        {"type": "response.content_part.done", "part": part} | where,
        {"type": "response.output_item.done", "item": message} | where,
        {"type": "response.completed", "response": whole},
    ]
    for number, event in enumerate(events):
        yield event | {"sequence_number": number}


ENDPOINTS = {
    "/chat/completions": (chat, chat_chunks),
    "/completions": (completion, completion_chunks),
    "/responses": (response, response_events),
}


class Server:
    """HTTP/1.1 with kept-alive connections, in a thread of its own."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, dict[str, Any]]] = []
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)
        self._seen: Counter[str] = Counter()

    def __enter__(self) -> Server:
        self._thread.start()
        assert self._ready.wait(PATIENCE)
        return self

    def __exit__(self, *exception: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(PATIENCE)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def sent(self) -> dict[str, Any]:
        """The body of the last request."""
        return self.requests[-1][1]

    async def _serve(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        server = await asyncio.start_server(self._handle, "127.0.0.1", 0, backlog=2000)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._stop.wait()
        server.close()
        handlers = asyncio.all_tasks() - {asyncio.current_task()}
        for handler in handlers:
            handler.cancel()
        await asyncio.gather(*handlers)
        await asyncio.sleep(0.01)  # for the transports to close

    async def _handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
                path = head.split(" ", 2)[1].partition("?")[0]
                size = int(head.partition("content-length:")[2].split("\r\n")[0] or 0)
                body = json.loads(await reader.readexactly(size) or b"{}")
                path = "/" + path.partition("/v1/")[2] if "/v1/" in path else path
                self.requests.append((path, body))
                await self._answer(path, body, writer)
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    async def _answer(self, path: str, body: Any, writer: asyncio.StreamWriter) -> None:
        path = "/chat/completions" if path.endswith("/chat/completions") else path  # Azure's
        prompt = prompt_of(body)
        self._seen[prompt] += 1
        if path not in ENDPOINTS:
            self._send(writer, 200, {"object": "list", "data": []})
        elif "flaky" in prompt and self._seen[prompt] == 1:
            self._send(writer, 500, {"error": {"message": "busy"}})
        elif "unrelated" in prompt:
            self._send(writer, 400, {"error": {"message": "messages: too long"}})
        elif "reasoner" in body["model"] and (
            body.get("logprobs") or body.get("top_logprobs") or body.get("include")
        ):
            status = int(body["model"].removeprefix("reasoner-"))
            error = {"message": "You are not allowed to request logprobs from this model"}
            self._send(writer, status, {"error": error})
        elif "nojson" in prompt:
            self._send(writer, 200, None)
        elif body.get("stream"):
            await self._stream(writer, path, body)
        else:
            self._send(writer, 200, ENDPOINTS[path][0](body))
        await writer.drain()

    def _send(self, writer: asyncio.StreamWriter, status: int, payload: object) -> None:
        data = b"hello" if payload is None else json.dumps(payload).encode()
        headers = HEADERS | ({"content-type": "text/plain"} if payload is None else {})
        headers |= {"content-length": str(len(data))}
        self._begin(writer, status, headers)
        writer.write(data)

    def _begin(self, writer: asyncio.StreamWriter, status: int, headers: dict[str, str]) -> None:
        lines = [f"HTTP/1.1 {status} x", *(f"{k}: {v}" for k, v in headers.items()), "", ""]
        writer.write("\r\n".join(lines).encode())

    async def _stream(self, writer: asyncio.StreamWriter, path: str, body: Any) -> None:
        self._begin(
            writer, 200, {"content-type": "text/event-stream", "transfer-encoding": "chunked"}
        )
        prompt = prompt_of(body)
        for i, payload in enumerate(ENDPOINTS[path][1](body)):
            event = f"event: {payload['type']}\n" if path == "/responses" else ""
            self._chunk(writer, f"{event}data: {json.dumps(payload)}\n\n")
            if i == 3 and "drop" in prompt:
                writer.transport.abort()
                raise ConnectionError
        if path != "/responses" and "cut" not in prompt:
            self._chunk(writer, "data: [DONE]\n\n")
        self._chunk(writer, "")

    def _chunk(self, writer: asyncio.StreamWriter, text: str) -> None:
        data = text.encode()
        writer.write(b"%x\r\n%s\r\n" % (len(data), data))


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server() as server:
        yield server


# -- clients, gates, and how calls are made ------------------------------------------------------


class Checker:
    """Passes what equals the task; remembers what it saw."""

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


@pytest.fixture
def gate() -> Iterator[VerificationGate]:
    with make_gate() as gate:
        yield gate


@pytest.fixture
def client(server: Server) -> Iterator[OpenAI]:
    with OpenAI(base_url=server.url, api_key="k", timeout=PATIENCE) as client:
        yield client


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
    """What a call gives, sync or async, managed or not."""
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
    """Parse what is raw, iterate over what streams; all objects that were met."""
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
    # Its own 5 s to connect are few for 1,000 at once on a machine that is busy.
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
    """n > 1: one result for each, of ids that tell them apart, plainly and interleaved."""
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


def test_objects_say_the_same_as_their_json(
    client: OpenAI, gate: VerificationGate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a version of the package that no longer shows the JSON, the objects are read."""
    wrapped = gate.wrap(client)
    of_json = gate.result_of(chat_call(wrapped, "same"))
    monkeypatch.delattr(type(wrapped), "_process_response_data")
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


# -- what leaves, and what does not --------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "given", "sent"),
    [
        ("chat", {}, {"logprobs": True, "top_logprobs": 5}),
        ("chat", {"logprobs": True}, {"logprobs": True, "top_logprobs": 5}),
        ("chat", {"logprobs": True, "top_logprobs": 2}, {"logprobs": True, "top_logprobs": 5}),
        ("chat", {"logprobs": True, "top_logprobs": 20}, {"logprobs": True, "top_logprobs": 20}),
        ("chat", {"logprobs": True, "top_logprobs": -1}, {"logprobs": True, "top_logprobs": -1}),
        ("chat", {"logprobs": None}, {"logprobs": True, "top_logprobs": 5}),
        ("chat", {"logprobs": False}, {"logprobs": False}),
        ("chat", {"extra_body": {"top_logprobs": 7}}, {"logprobs": True, "top_logprobs": 7}),
        ("chat", {"extra_body": {"logprobs": False}}, {"logprobs": False}),
        ("completions", {}, {"logprobs": 5}),
        ("completions", {"logprobs": 0}, {"logprobs": 5}),
        ("completions", {"logprobs": 9}, {"logprobs": 9}),
        ("completions", {"extra_body": {"logprobs": False}}, {"logprobs": False}),
        (
            "responses",
            {},
            {"include": ["message.output_text.logprobs"], "top_logprobs": 5},
        ),
        (
            "responses",
            {"include": ["reasoning.encrypted_content"], "top_logprobs": 8},
            {
                "include": ["reasoning.encrypted_content", "message.output_text.logprobs"],
                "top_logprobs": 8,
            },
        ),
    ],
)
def test_what_is_asked_for(
    server: Server,
    client: OpenAI,
    gate: VerificationGate,
    path: str,
    given: dict[str, Any],
    sent: dict[str, Any],
) -> None:
    """At least k = 5, never less than the caller wants, on a copy of the caller's own objects."""
    before = copy.deepcopy(given)
    answer = WAYS[path](gate.wrap(client), f"asked {path} {given}", **given)
    assert given == before
    asked = ("logprobs", "top_logprobs", "include", "gatekeeper")
    assert {name: server.sent[name] for name in asked if name in server.sent} == sent
    result = gate.result_of(answer)
    assert not isinstance(result, Undecided)
    missing = sent.get("logprobs") is False
    assert (result.signals.state is SignalState.MISSING) is missing


def test_token_ids_as_keys(server: Server, client: OpenAI, gate: VerificationGate) -> None:
    """Only where asked for, and only of legacy completions."""
    wrapped = gate.wrap(client, return_tokens_as_token_ids=True).with_options(timeout=5)
    WAYS["completions"](wrapped, "ids")
    assert server.sent["return_tokens_as_token_ids"] is True
    WAYS["completions"](wrapped, "ids 2", extra_body={"return_tokens_as_token_ids": False})
    WAYS["chat"](wrapped, "ids 3")
    assert "return_tokens_as_token_ids" not in server.sent


def test_other_endpoints_pass_untouched(
    server: Server, client: OpenAI, gate: VerificationGate
) -> None:
    wrapped = gate.wrap(client)
    wrapped.models.list()
    wrapped.post("/responses/compact", cast_to=object, body={"input": "x"})
    wrapped.post("/embeddings", cast_to=object, body={"input": "x"})
    assert server.sent == {"input": "x"}
    assert gate.status().seen == 0


def test_the_callers_client_stays_as_it_is(server: Server, client: OpenAI) -> None:
    """Its attributes and class, while a gate is around its copy and after; and it holds no gate."""
    chat_call(client, "first")  # fills its caches
    before, kind = dict(vars(client)), type(client)
    members = set(vars(kind))
    gate = make_gate()
    wrapped = gate.wrap(client)
    assert type(wrapped) is type(gate.wrap(OpenAI(api_key="k", http_client=client._client)))
    chat_call(wrapped, "second")
    chat_call(client, "third")
    assert "logprobs" not in server.sent
    assert vars(client) == before
    assert type(client) is kind
    assert set(vars(kind)) == members
    gone = weakref.ref(gate)
    gate.close()
    del gate, wrapped
    gc.collect()
    assert gone() is None
    assert chat_call(client, "fourth").choices[0].message.content == text_of("fourth")


def test_what_is_returned_can_be_copied_and_kept(client: OpenAI, gate: VerificationGate) -> None:
    """The result goes with copies and pickles; the gate does not, and dumps show neither."""
    answer = chat_call(gate.wrap(client), "kept")
    result = gate.result_of(answer)
    for again in (
        answer.model_copy(),
        answer.model_copy(deep=True),
        copy.deepcopy(answer),
        pickle.loads(pickle.dumps(answer)),
    ):
        assert repr(gate.result_of(again)) == repr(result)  # NaN equals NaN
        assert again == answer
    assert ChatCompletion.model_validate(answer.model_dump()) == answer
    assert "gatekeeper" not in answer.model_dump_json()
    assert not isinstance(result, Undecided)
    assert repr(gate.maybe_verify(answer)) == repr(result)  # known: nothing is charged twice


# -- refusals, retries, and other errors of the provider -----------------------------------------


@pytest.mark.parametrize("status", [400, 403, 422])
@pytest.mark.parametrize("way", ["chat", "chat, stream", "chat, raw", "responses"])
def test_a_model_that_refuses_logprobs(
    server: Server, client: OpenAI, gate: VerificationGate, status: int, way: str
) -> None:
    """Asked once more without, and not again; the signals are missing, the gate decides."""
    model = f"reasoner-{status}"

    def call(wrapped: Any, prompt: str, **more: Any) -> Any:
        return WAYS[way](wrapped, prompt, extra_body={"model": model, **more})

    with make_gate() as gate:
        wrapped = gate.wrap(client)
        for i, requests in enumerate((2, 1, 1)):
            before = len(server.requests)
            used = wrapped.with_options(timeout=5) if i == 2 else wrapped
            answer = call(used, f"reason {status} {way} {i}")
            if "stream" in way:
                list(answer)
            assert len(server.requests) - before == requests
            result = gate.result_of(answer)
            assert not isinstance(result, Undecided)
            assert result.verified
            assert result.signals.state is SignalState.MISSING
        assert gate.status().missing_signal == 3
        if way != "responses":
            with pytest.raises(APIStatusError):  # the caller's own wish, refused
                call(wrapped, "own wish", logprobs=True)
        chat_call(wrapped, "another model")
        assert server.sent["logprobs"] is True


def test_other_errors_are_the_callers(
    server: Server, client: OpenAI, gate: VerificationGate
) -> None:
    wrapped = gate.wrap(client)
    before = len(server.requests)
    with pytest.raises(BadRequestError, match="too long"):
        chat_call(wrapped, "unrelated")
    assert len(server.requests) - before == 1
    assert gate.status().seen == 0
    assert gate.result_of(chat_call(wrapped, "flaky")).verified  # the package tried twice
    assert gate.status().seen == 1


@pytest.mark.parametrize("kind", ["OpenAI", "AsyncOpenAI"])
@pytest.mark.parametrize("way", ["chat, parse", "chat, raw parse", "chat, helper"])
def test_an_output_that_parse_does_not_like(server: Server, way: str, kind: str) -> None:
    """LengthFinishReasonError is the caller's, as ever; the output was generated and is decided."""
    prompt = f"length {way} {kind}"
    checker: Any = AsyncChecker() if kind.startswith("Async") else Checker()
    received: list[Any] = []

    async def run() -> None:
        async with new_client(server, kind) as client:
            with make_gate(checker) as gate:
                wrapped = gate.wrap(client)
                with pytest.raises(LengthFinishReasonError) as caught:  # noqa: PT012
                    async with opened(WAYS[way](wrapped, prompt)) as answer:
                        received.append(answer)
                        await read_to_the_end(answer)
                for thing in received or (caught.value, caught.value.completion):
                    assert gate.result_of(thing).verified
                ((generation, _),) = checker.saw
                assert generation.text == text_of(prompt)
                assert generation.finish_reason == "length"

    asyncio.run(run())


# -- whatever is wrong has a name ----------------------------------------------------------------


@pytest.mark.parametrize("kind", ["OpenAI", "AsyncOpenAI"])
@pytest.mark.parametrize(
    ("prompt", "way", "state"),
    [
        ("empty", "chat", UndecidedState.EMPTY),
        ("empty", "chat, stream", UndecidedState.EMPTY),
        ("empty", "responses", UndecidedState.EMPTY),
        ("cut", "chat, stream", UndecidedState.UNFINISHED),
        ("nojson", "chat, raw", UndecidedState.UNREADABLE),
    ],
)
def test_outputs_that_cannot_be_decided_on(
    server: Server, prompt: str, way: str, state: UndecidedState, kind: str
) -> None:
    """The call goes on and `result_of` names it; only `strict` raises it."""

    async def call(wrapped: Any) -> Any:
        async with opened(WAYS[way](wrapped, prompt)) as answer:
            await read_to_the_end(answer)
        return answer

    async def run() -> None:
        async with new_client(server, kind) as client:
            with make_gate(AsyncChecker()) as gate:
                result = gate.result_of(await call(gate.wrap(client)))
                assert isinstance(result, Undecided)
                assert result.state is state
                assert result.error.startswith("BadInputError: ")
                assert (result.verified, result.outcome, result.decision) == (False, None, None)
                with pytest.raises(BadInputError):
                    await call(gate.wrap(client, strict=True))
                assert gate.status().seen == 0

    asyncio.run(run())


@pytest.mark.parametrize(
    ("prompt", "state", "k"),
    [
        ("null", SignalState.MISSING, 0),
        ("k1", SignalState.PARTIAL, 1),
        ("logits", SignalState.PARTIAL, 5),
    ],
)
@pytest.mark.parametrize("way", ["chat", "chat, stream"])
def test_outputs_without_all_signals(
    client: OpenAI, gate: VerificationGate, prompt: str, way: str, state: SignalState, k: int
) -> None:
    answer = WAYS[way](gate.wrap(client), f"{prompt} {way}")
    if "stream" in way:
        list(answer)
    result = gate.result_of(answer)
    assert not isinstance(result, Undecided), result
    assert result.signals.state is state
    assert result.verified
    assert gate.output(result.id).k_seen == k


def test_ids_that_are_missing_or_come_twice(client: OpenAI, tmp_path: Path) -> None:
    """Each output has an id of its own and its own task, though texts be equal; one that the log
    of an earlier process has goes on there."""
    log = tmp_path / "run.db"
    checker = Checker()
    with make_gate(checker, log=log) as gate:
        wrapped, other = gate.wrap(client), gate.wrap(client)
        ids = []
        for i, prompt in enumerate(["noid", "noid", "sameid 1", "sameid 2", "sameid 2"]):
            with gate.task(i):
                result = gate.result_of(chat_call(other if i % 2 else wrapped, prompt))
            assert result.verified
            ids.append(result.id)
        assert len(set(ids)) == 5
        assert ids[2:] == ["same", "same#2", "same#3"]
        assert [task for _, task in checker.saw] == list(range(5))
    with make_gate(checker, log=log) as gate:
        wrapped = gate.wrap(client)
        assert gate.result_of(chat_call(wrapped, "sameid 1")).id == "same"
        assert gate.result_of(chat_call(wrapped, "sameid 9")).id == "same#4"
        assert len(checker.saw) == 6


class Raising(Checker):
    def verify(self, generation: Generation, task: Any) -> Outcome:
        raise ConnectionError("no daemon")


@pytest.mark.parametrize("kind", ["OpenAI", "AsyncOpenAI"])
@pytest.mark.parametrize("way", ["chat", "chat, stream", "chat, raw"])
def test_trouble_of_the_gate_is_not_the_callers(
    server: Server, caplog: pytest.LogCaptureFixture, way: str, kind: str
) -> None:
    """A broken log, a closed gate, an id that is taken, settings that are none, a verifier that
    cannot tell: the call goes on, and the result says so. With `strict` they raise."""
    log = Breaking()
    closed = make_gate()
    closed.close()
    cases: list[tuple[VerificationGate, Any, str]] = [
        (closed, {}, "GatekeeperError: this gate is closed"),
        (make_gate(log=log), {}, "LogError: disk full"),
        (make_gate(), {"id": "taken"}, "BadInputError: id='taken' already names another"),
        (make_gate(), {"id": 5}, "BadInputError: id=5: give a non-empty"),
        (make_gate(), {"verfy": "always"}, "BadInputError: gatekeeper={'verfy'"),
        (make_gate(), {"verify": "often"}, "BadInputError: verify='often': choose one of auto"),
        (make_gate(), "always", "BadInputError: gatekeeper='always'"),
    ]
    log.full = True

    async def call(wrapped: Any, prompt: str, settings: Any) -> Any:
        body = {"gatekeeper": settings}
        async with opened(WAYS[way](wrapped, prompt, extra_body=body)) as answer:
            await read_to_the_end(answer)
        return answer

    async def run() -> None:
        async with new_client(server, kind) as client:
            for i, (gate, settings, error) in enumerate(cases):
                if settings == {"id": "taken"}:
                    await gate.amaybe_verify(
                        Generation("taken", "x", *([[]] * 3)),
                        force=True,  # type: ignore[arg-type]
                    )
                result = gate.result_of(await call(gate.wrap(client), f"trouble {i}", settings))
                assert isinstance(result, Undecided)
                assert result.state is UndecidedState.GATE_ERROR
                assert result.error.startswith(error)
                assert error.partition(": ")[2] in caplog.text
                with pytest.raises(GatekeeperError):
                    await call(gate.wrap(client, strict=True), f"trouble {i}", settings)
                assert "gatekeeper" not in server.sent

            gate = make_gate(Raising())
            result = gate.result_of(await call(gate.wrap(client), "down", {}))
            assert not isinstance(result, Undecided)
            assert result.outcome is not None
            assert result.outcome.verdict is Verdict.INFRA_ERROR
            with pytest.raises(VerifierUnavailableError):
                await call(gate.wrap(client, strict=True), "down", {})

    asyncio.run(run())


def test_a_stream_that_is_not_read_to_its_end(
    client: OpenAI, gate: VerificationGate, caplog: pytest.LogCaptureFixture
) -> None:
    """Left before the output is complete: not seen. Left at the last token: decided."""
    caplog.set_level("INFO", "gatekeeper")
    wrapped = gate.wrap(client)
    with chat_call(wrapped, "left", stream=True) as stream:
        for chunk in stream:
            if chunk.choices and chunk.choices[0].delta.content:
                break
    assert gate.result_of(stream) == Undecided("", UndecidedState.UNFINISHED)
    del stream
    gc.collect()
    assert "'chatcmpl-left': not read to its end" in caplog.text
    assert gate.status().seen == 0
    with chat_call(wrapped, "left late", stream=True) as stream:
        for chunk in stream:
            if chunk.choices and chunk.choices[0].finish_reason:
                break
    assert gate.result_of(stream).verified


def test_a_stream_that_breaks_off(client: OpenAI, gate: VerificationGate) -> None:
    """The package's error is the caller's, also with `strict`; the output is not decided on."""
    for strict in (False, True):
        stream = chat_call(gate.wrap(client, strict=strict), "drop", stream=True)
        with pytest.raises(Exception, match=r"Connection error|peer closed"):
            list(stream)
        result = gate.result_of(stream)
        assert isinstance(result, Undecided)
        assert result.state is UndecidedState.UNFINISHED
        assert "Connection error" in result.error or "peer closed" in result.error
    assert gate.status().seen == 0


# -- settings of a call --------------------------------------------------------------------------


def test_settings_of_a_call(server: Server, client: OpenAI) -> None:
    """By `gate.task`, by `extra_body`, which goes first; of this gate only."""
    checker = Checker()
    with (
        make_gate(checker, policy=Random(0.001, warmup=0, seed=3)) as gate,
        make_gate() as other,
    ):
        wrapped, others = gate.wrap(client), other.wrap(client)
        assert not gate.result_of(chat_call(wrapped, "auto")).verified
        with gate.task("T", id="mine", verify="always"):
            assert gate.result_of(chat_call(wrapped, "one")).id == "mine"
            body = {"gatekeeper": {"id": "his", "verify": "auto"}}
            result = gate.result_of(chat_call(wrapped, "two", extra_body=body))
            assert (result.id, result.verified) == ("his", False)
            with gate.task(verify="never"):
                result = gate.result_of(chat_call(wrapped, "three"))
                assert result == Undecided("", UndecidedState.SKIPPED)
                assert "logprobs" not in server.sent
            assert other.result_of(chat_call(others, "four")).id == "chatcmpl-four"
            stream = chat_call(wrapped, "five", stream=True, extra_body={"gatekeeper": {"id": "5"}})
        list(stream)  # the settings are those of the call
        assert gate.result_of(stream).id == "5"
        assert gate.result_of(chat_call(wrapped, "six")).id == "chatcmpl-six"
        assert [(g.id, t) for g, t in checker.saw] == [("mine", "T"), ("5", "T")]
        assert gate.status().seen == 5
        with pytest.raises(BadInputError, match="scope='text': choose one of content"):
            gate.task(scope="text")  # type: ignore[arg-type]


def test_what_did_not_come_through_a_gate(client: OpenAI, gate: VerificationGate) -> None:
    with pytest.raises(BadInputError, match="did not pass through this gate"):
        gate.result_of(chat_call(client, "bare"))


# -- other tools, other clients ------------------------------------------------------------------


def test_patches_of_other_tools_are_reported(
    server: Server, client: OpenAI, gate: VerificationGate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever was replaced on the client would be lost or go round the gate; classes may be
    patched, and the wrapped client too, as long as the replacement calls what was there."""
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


def test_what_is_no_client(gate: VerificationGate) -> None:
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


@pytest.mark.parametrize("verifier", [AsyncChecker, Checker])
def test_1000_calls_at_once(server: Server, verifier: Any, tmp_path: Path) -> None:
    """No result is lost, and each belongs to its own id, text, task and tokens."""
    checker = verifier()
    prompts = [f"many {i}" + (" sameid" if i % 10 == 0 else "") for i in range(1000)]

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
        policy = Random(0.5, warmup=200, seed=1)
        async with new_client(server, "AsyncOpenAI") as client:
            with make_gate(checker, policy=policy, log=tmp_path / "run.db") as gate:
                wrapped = gate.wrap(client)
                calls = [one(gate, wrapped, i, prompt) for i, prompt in enumerate(prompts)]
                results = await asyncio.wait_for(asyncio.gather(*calls), PATIENCE)
                assert gate.status().seen == 1000
                assert gate.status().held == 0.0
                for result, prompt in zip(results, prompts, strict=True):
                    assert gate.output(result.id).text == text_of(prompt)
        return results

    results = asyncio.run(run())
    assert len({result.id for result in results}) == 1000
    for i, (result, prompt) in enumerate(zip(results, prompts, strict=True)):
        h = result.signals
        assert (h.h1, h.h2, h.h3) == pytest.approx(expected_signals(prompt), abs=1e-9)
        if i % 2:
            assert result.id == f"mine-{i}"
        if result.verified:
            assert result.outcome.verdict is Verdict.PASSED  # the task is this call's
    assert 600 < sum(result.verified for result in results) < 800
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
