"""Streams, the Responses API and tool calls of the bundled server, by the real `openai` client."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
import pytest
from openai import OpenAI, pydantic_function_tool
from pydantic import BaseModel
from serving import serving

from gatekeeper import Budget, Generation, VerificationGate
from gatekeeper.adapters.bundled import BundledModel
from gatekeeper.adapters.openai import StreamReader, generations_of
from gatekeeper.testing import ScriptedVerifier

MODEL = BundledModel.name
QUESTION = "What is 12 + 30?"
ANSWER = "12+30=42\n\\boxed{42}"
INCLUDE: Any = ["message.output_text.logprobs"]


@pytest.fixture(scope="module")
def client() -> Iterator[OpenAI]:
    with serving() as client:
        yield client


def chat(client: OpenAI, **settings: Any) -> Any:
    messages = [{"role": "user", "content": QUESTION}]
    body = {"model": MODEL, "messages": messages, "logprobs": True, "top_logprobs": 5, **settings}
    return client.chat.completions.create(**body)


def completion(client: OpenAI, **settings: Any) -> Any:
    prompts = [f"<|task|>{QUESTION}<|answer|>", "漢字"]
    body: dict[str, Any] = {"model": MODEL, "prompt": prompts, "logprobs": 5, **settings}
    return client.completions.create(**body)


def response(client: OpenAI, **settings: Any) -> Any:
    """`n` and `stop` are not of this API."""
    names = {"max_tokens": "max_output_tokens"}
    body = {names.get(name, name): value for name, value in settings.items()}
    extra = {"seed": body.pop("seed", None)}
    for name in ("n", "stop", "stream_options"):
        body.pop(name, None)
    return client.responses.create(
        model=MODEL, input=QUESTION, include=INCLUDE, top_logprobs=5, extra_body=extra, **body
    )


def assert_same(found: list[Generation], expected: list[Generation]) -> None:
    assert len(found) == len(expected)
    for a, b in zip(found, expected, strict=True):
        assert (a.text, a.finish_reason, a.output_tokens) == (
            b.text,
            b.finish_reason,
            b.output_tokens,
        )
        for name in ("logprob", "top1", "top2"):
            np.testing.assert_allclose(getattr(a, name), getattr(b, name), atol=1e-5)
        assert a.logprob.size > 0


@pytest.mark.parametrize("ask", [chat, completion, response], ids=lambda f: f.__name__)
@pytest.mark.parametrize(
    "settings",
    [
        {"temperature": 0},
        {"temperature": 0, "stop": ["nowhere", "xed{4"]},  # begins within a token
        {"temperature": 0, "max_tokens": 5},
        {"temperature": 6.0, "seed": 5, "n": 2, "max_tokens": 60},  # parts of characters
    ],
    ids=["greedy", "stop", "length", "hot"],
)
def test_a_stream_is_the_whole_answer_in_pieces(
    client: OpenAI, ask: Any, settings: dict[str, Any]
) -> None:
    """Text, tokens, log-probabilities, finish reasons and usage."""
    whole = ask(client, **settings)
    options = {"stream": True, "stream_options": {"include_usage": True}}
    reader, usage, seen = StreamReader(strict=True), None, 0
    for chunk in ask(client, **settings, **options):
        reader.add(chunk)
        seen += 1
        done = getattr(chunk, "response", chunk)
        usage = getattr(done, "usage", None) or usage
    assert seen > 5
    assert_same(reader.generations(), generations_of(whole))
    assert usage == whole.usage
    if ask is chat and "stop" in settings:
        assert whole.choices[0].message.content == "12+30=42\n\\bo"
        assert whole.choices[0].finish_reason == "stop"


def test_a_stream_comes_while_the_model_writes(client: OpenAI) -> None:
    """The first text is there long before the last: it is left, and nothing waits for the rest."""
    with chat(client, stream=True, temperature=0, max_tokens=200) as stream:
        texts = [chunk.choices[0].delta.content for _, chunk in zip(range(3), stream, strict=False)]
    assert texts == ["", "1", "2"]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("ask", [chat, completion, response], ids=lambda f: f.__name__)
def test_around_it_a_gate_sees_every_output(client: OpenAI, ask: Any, stream: bool) -> None:
    """`wrap` asks for the log-probabilities itself; the caller sees what it sees without."""
    verifier = ScriptedVerifier([])
    with VerificationGate("cst", budget=Budget(fraction=0.5), verifier=verifier) as gate:
        wrapped = gate.wrap(client)
        if ask is chat:
            body = {"messages": [{"role": "user", "content": QUESTION}]}
            answer = wrapped.chat.completions.create(
                model=MODEL, temperature=0, stream=stream, **body
            )
        elif ask is completion:
            prompt = f"<|task|>{QUESTION}<|answer|>"
            answer = wrapped.completions.create(
                model=MODEL, prompt=prompt, temperature=0, stream=stream
            )
        else:
            answer = wrapped.responses.create(
                model=MODEL, input=QUESTION, temperature=0, stream=stream
            )
        if stream:
            assert len(list(answer)) > 10
        result = gate.result_of(answer)
        assert gate.output(result.id).text == ANSWER
        assert gate.status().missing_signal == 0
        assert verifier.calls == [result.id]


class Convert(BaseModel):
    """Arguments of every kind."""

    number: int
    share: float
    unit: Literal["m", "km"]
    exact: bool
    note: str | None
    tags: list[str]


def test_a_request_with_tools_gets_a_call_that_fits_its_schema(client: OpenAI) -> None:
    """Whole and streamed: the package itself validates the arguments."""
    tool: Any = pydantic_function_tool(Convert)
    request: Any = {
        "model": MODEL,
        "messages": [{"role": "user", "content": QUESTION}],
        "temperature": 0,
        "tools": [tool],
    }
    expected = Convert(number=42, share=42.0, unit="m", exact=False, note=ANSWER, tags=[])
    parsed = client.chat.completions.parse(**request)
    with client.chat.completions.stream(**request) as stream:
        for _ in stream:
            pass
        streamed = stream.get_final_completion()
    for answer in (parsed, streamed):
        (choice,) = answer.choices
        assert (choice.finish_reason, choice.message.content) == ("tool_calls", None)
        (call,) = choice.message.tool_calls or []
        assert call.function.name == "Convert"
        assert call.function.parsed_arguments == expected

    # The loop that agents have ends: after the tool's result the answer is text.
    result = {"role": "tool", "tool_call_id": call.id, "content": "42 m"}
    request["messages"] += [choice.message.model_dump(exclude_none=True), result]
    after = client.chat.completions.create(**request)
    assert (after.choices[0].message.content, after.choices[0].finish_reason) == (ANSWER, "stop")
    forced = client.chat.completions.create(**request, tool_choice="required")
    assert forced.choices[0].finish_reason == "tool_calls"
    none = client.chat.completions.create(**request, tool_choice="none", logprobs=True)
    assert none.choices[0].message.tool_calls is None


def test_tools_of_the_responses_api(client: OpenAI) -> None:
    def function(name: str) -> Any:
        parameters = {"type": "object", "properties": {"query": {"type": "string"}}}
        return {"type": "function", "name": name, "parameters": parameters, "strict": False}

    request: Any = {
        "model": MODEL,
        "input": [{"role": "user", "content": [{"type": "input_text", "text": QUESTION}]}],
        "temperature": 0,
        "tools": [{"type": "web_search"}, function("first"), function("second")],
    }
    whole = client.responses.create(**request, tool_choice={"type": "function", "name": "second"})
    with client.responses.stream(**request) as stream:
        kinds = [event.type for event in stream]
        streamed = stream.get_final_response()
    assert "response.function_call_arguments.delta" in kinds
    for answer, name in ((whole, "second"), (streamed, "first")):
        (item,) = answer.output
        assert item.type == "function_call"
        assert (item.name, json.loads(item.arguments)) == (name, {"query": ANSWER})
        result = {"type": "function_call_output", "call_id": item.call_id, "output": "42"}
        again = client.responses.create(**{**request, "input": [*request["input"], item, result]})
        assert again.output_text == ANSWER


def test_a_cut_response_is_incomplete(client: OpenAI) -> None:
    for stream in (False, True):
        answer = response(client, temperature=0, max_tokens=5, stream=stream)
        if stream:
            answer = list(answer)[-1].response
        assert answer.status == "incomplete"
        assert answer.incomplete_details.reason == "max_output_tokens"
        assert answer.output_text == "12+30"
        assert generations_of(answer)[0].finish_reason == "length"
