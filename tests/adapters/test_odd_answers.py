"""Answers that a provider should not give: missing parts, odd values, streams that break off.

Each is read, or named by a BadInputError; a stream that is observed reaches its caller unchanged.
"""

from __future__ import annotations

from typing import Any

import pytest

from gatekeeper import BadInputError, Budget, GateResult, Generation, Undecided, VerificationGate
from gatekeeper.adapters.openai import StreamReader
from gatekeeper.io.responses import as_generation, as_generations
from gatekeeper.types import UndecidedState

MALFORMED = [{"token": "a", "logprob": "x", "top_logprobs": []}]


def observed(chunks: list[Any], *, breaks: bool = False) -> list[GateResult | Undecided]:
    """The results of a stream that its caller reads to the end."""

    def stream() -> Any:
        yield from chunks
        if breaks:
            raise ConnectionError

    with VerificationGate("random", budget=Budget(fraction=0.5)) as gate:
        found = gate.observe_stream(stream())
        if breaks:
            with pytest.raises(ConnectionError):
                list(found)
        else:
            assert list(found) == chunks
        return gate.results_of(found)


def candidate(index: int, text: str, reason: str | None = None) -> dict[str, Any]:
    found = {"index": index, "content": {"parts": [{"text": text}]}, "finishReason": reason}
    return {"candidates": [found]}


def llama(index: int, content: str, *, stop: bool) -> dict[str, Any]:
    return {
        "index": index,
        "content": content,
        "stop": stop,
        "stop_type": "eos" if stop else "none",
    }


@pytest.mark.parametrize(
    "odd", [{"candidates": "x"}, {"candidates": [{"index": "first"}]}, None, 3, "data: [DONE]"]
)
def test_an_odd_chunk_does_not_break_the_callers_stream(odd: Any) -> None:
    observed([candidate(0, "a"), odd, candidate(0, "b", "STOP")])


CHUNKS = {
    "chat": [
        {"choices": [{"index": 0, "delta": {"content": "ab"}}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
    ],
    "response": [
        {"type": "response.output_text.delta", "delta": "ab"},
        {"type": "response.completed", "response": {"status": "completed", "output": []}},
    ],
    "gemini": [candidate(0, "a"), candidate(0, "b", "STOP")],
    "llamacpp": [llama(0, "a", stop=False), llama(0, "b", stop=True)],
    "ollama": [{"done": False, "response": "a"}, {"done": True, "response": "b"}],
    "anthropic": [
        {"type": "message_start", "message": {"id": "m", "usage": {}}},
        {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "ab"}},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
        {"type": "message_stop"},
    ],
}


@pytest.mark.parametrize("name", CHUNKS)
@pytest.mark.parametrize("odd", [{"usageMetadata": {"promptTokenCount": 3}}, {"type": "ping"}])
def test_a_stream_may_begin_with_chunks_that_have_no_shape(name: str, odd: Any) -> None:
    """Such as those with a usage alone, however many."""
    for count in (1, 2, 5):
        (result,) = observed([odd] * count + CHUNKS[name])
        assert isinstance(result, GateResult)
        if name not in ("chat", "response"):  # of these, a list has chunks alone
            (found,) = as_generations([odd] * count + CHUNKS[name], id="a")
            assert found.text == "ab"


@pytest.mark.parametrize(
    "chunks",
    [
        [candidate(0, "a"), candidate(1, "b"), candidate(0, "c", "STOP")],
        [llama(0, "a", stop=False), llama(1, "b", stop=False), llama(0, "c", stop=True)],
    ],
)
def test_an_output_of_several_that_breaks_off_is_not_decided_on(chunks: list[Any]) -> None:
    """The end of one is not the end of the others, whether the stream ends or raises."""
    (broken,) = observed(chunks, breaks=True)
    assert isinstance(broken, Undecided)
    found = observed(chunks)
    assert [isinstance(result, GateResult) for result in found] == [True, False]
    assert isinstance(found[1], Undecided)
    assert found[1].state is UndecidedState.UNFINISHED


def test_a_response_with_malformed_log_probabilities_keeps_its_text() -> None:
    """Without deltas before it, and where they have less."""
    part = {"type": "output_text", "text": "whole", "logprobs": MALFORMED}
    last = {"id": "r", "status": "completed", "output": [{"content": [part]}]}
    whole = {"type": "response.completed", "response": last}
    delta = {"type": "response.output_text.delta", "delta": "who", "logprobs": MALFORMED}
    for events in ([whole], [delta, whole]):
        reader = StreamReader()
        for event in events:
            reader.add(event)
        (found,) = reader.generations()
        assert (found.id, found.text, found.finish_reason) == ("r", "whole", "stop")
        (result,) = observed(events)
        assert isinstance(result, GateResult)


def odd_shapes() -> list[Any]:
    vllm = {"request_id": "v", "outputs": [{"text": "a", "token_ids": [3]}]}
    with_rows = [{**vllm["outputs"][0], "logprobs": rows} for rows in ([[]], "x", [""])]  # type: ignore[index]
    return [
        *({**vllm, "outputs": [output]} for output in with_rows),
        {"generations": [True]},
        {"generations": [[{"type": "ChatGeneration"}, 3], 7]},
        {"kind": "response", "parts": 3},
        {"logprob": [10**400], "top1": [-0.1], "top2": [-0.2]},
        {"id": "a", "done": True, "response": "x", "eval_count": 10**400},
    ]


@pytest.mark.parametrize("response", odd_shapes())
def test_an_odd_response_is_named(response: Any) -> None:
    with pytest.raises(BadInputError):
        as_generations(response, id="a")


def test_a_prompt_that_was_blocked_has_no_output() -> None:
    """Gemini answers without candidates: a known shape, and nothing to decide on."""
    blocked = {"promptFeedback": {"blockReason": "SAFETY"}, "modelVersion": "g"}
    assert as_generations(blocked) == []
    for shape in (blocked, {"prompt_feedback": {"block_reason": "SAFETY"}, "candidates": None}):
        with pytest.raises(BadInputError, match=r"has 0 choices: exactly one is needed"):
            as_generation(shape, id="a")
        (result,) = observed([shape])
        assert isinstance(result, Undecided)
        assert result.state is UndecidedState.EMPTY


def test_a_negative_count_is_unknown() -> None:
    """Some servers send -1 for it."""
    found = as_generation(
        {"done": True, "response": "x", "eval_count": -1, "prompt_eval_count": -1}, id="a"
    )
    assert (found.output_tokens, found.prompt_tokens) == (None, None)
    for value in (-1, 2**53 + 1, 1.5, True, "3"):
        for name in ("prompt_tokens", "output_tokens", "k_seen"):
            with pytest.raises(BadInputError, match=f"{name}=.*: must be a whole number from 0"):
                Generation("a", "x", **{name: value})  # type: ignore[arg-type]


def test_parts_may_be_a_tuple() -> None:
    response = {"kind": "response", "parts": ({"part_kind": "text", "content": "x"},)}
    assert as_generation(response, id="a").text == "x"
