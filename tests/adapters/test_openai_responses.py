"""Objects of the Responses API as Generations."""

from __future__ import annotations

from typing import Any

import pytest
from openai_json import (
    assert_arrays,
    position,
    responded,
)

from gatekeeper import Generation, SignalState, signals_of
from gatekeeper.adapters.openai import generation_of

openai_types = pytest.importorskip("openai.types")
chat_types = pytest.importorskip("openai.types.chat")


@pytest.fixture(params=["object", "json"])
def read_response(request: pytest.FixtureRequest) -> Any:
    responses = pytest.importorskip("openai.types.responses")

    def read(data: dict[str, Any], **options: Any) -> Generation:
        response = responses.Response.construct(**data) if request.param == "object" else data
        return generation_of(response, **options)

    return read


def test_responses_are_read(read_response: Any) -> None:
    entries = [position("fo", -0.1, ("fo", -0.1), ("x", -3.0)), position("ur", -0.5, ("x", -0.7))]
    found = read_response(responded(entries))
    assert_arrays(found, (-0.1, -0.1, -3.0), (-0.5, -0.5, -0.7))
    assert (found.id, found.text, found.model) == ("resp_1", "four", "tiny-1")
    assert (found.prompt_tokens, found.output_tokens, found.k_seen) == (12, 2, 2)
    assert (found.finish_reason, found.token_coverage) == ("stop", 1.0)


@pytest.mark.parametrize("entries", [None, []])
def test_responses_without_logprobs_are_missing(read_response: Any, entries: Any) -> None:
    """`include` alone gives empty lists, `top_logprobs` alone null."""
    assert signals_of(read_response(responded(entries))).state is SignalState.MISSING


def test_a_response_cut_short_ended_for_length(read_response: Any) -> None:
    found = read_response(
        responded(None, status="incomplete", incomplete_details={"reason": "max_output_tokens"})
    )
    assert found.finish_reason == "length"


def test_a_response_of_a_tool_call_or_a_refusal(read_response: Any) -> None:
    call = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
    assert read_response(responded(None, output=[call])).text == ""
    data = responded(None)
    data["output"][0]["content"] = [{"type": "refusal", "refusal": "No."}]
    assert read_response(data).text == "No."


def test_a_response_with_reasoning_is_split(read_response: Any) -> None:
    tokens = ["<think>", "hm", "</think>", "4", "<|end|>"]
    data = responded([position(t, -0.5, (t, -0.5), ("x", -1.0)) for t in tokens], text="4")
    thinking = {"type": "reasoning_text", "text": "hm"}
    item = {"type": "reasoning", "id": "r", "summary": [], "content": [thinking]}
    data["output"].insert(0, item)
    assert read_response(data).logprob.size == 2
    assert read_response(data, scope="reasoning").logprob.size == 3
    assert read_response(data, scope="all").logprob.size == 5
