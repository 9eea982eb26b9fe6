"""`gate.wrap`: what a wrapped client sends and returns, and the errors of the provider."""

from __future__ import annotations

import asyncio
import copy
import gc
import pickle
import weakref
from typing import Any

import pytest
from openai import (
    APIStatusError,
    BadRequestError,
    LengthFinishReasonError,
    OpenAI,
)
from openai.types.chat import ChatCompletion
from openai_server import Server, text_of
from wrapped_calls import (
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
    SignalState,
    VerificationGate,
)
from gatekeeper.types import Undecided

# -- requests to the provider --------------------------------------------------------------------


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
def test_requested_log_probabilities(
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
            with pytest.raises(APIStatusError):  # the caller's own request, refused
                call(wrapped, "own request", logprobs=True)
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
    """The caller gets LengthFinishReasonError; the output was generated, so it has a decision."""
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
