"""A content in parts, as Mistral has it: read as the same text, whole and streamed."""

from __future__ import annotations

from typing import Any

import pytest
from openai_json import THOUGHT, chunk, completion, thought
from wrapped_calls import make_gate

from gatekeeper import BadInputError, Verdict, signals_of
from gatekeeper.adapters.openai.call_settings import CallSettings
from gatekeeper.adapters.openai.observer import ResponseObserver
from gatekeeper.io.responses import as_generation, as_generations
from gatekeeper.types import GateResult, Undecided, UndecidedState


def text(piece: str) -> dict[str, str]:
    return {"type": "text", "text": piece}


def streamed(*contents: Any) -> list[dict[str, Any]]:
    """A stream of these contents, after the role."""
    parts = [{"index": 0, "delta": {"content": content}} for content in ("", *contents)]
    return [*map(chunk, parts), chunk({"index": 0, "delta": {}, "finish_reason": "stop"})]


def test_text_parts_are_joined() -> None:
    content = [text("The answer"), text(" is"), text(" 42")]
    whole = as_generation(completion(None, text=content))  # type: ignore[arg-type]
    parts = as_generation(streamed(content[:2], " 4", [text("2")]))
    assert (whole.text, parts.text) == ("The answer is 42", "The answer is 42")
    assert parts.finish_reason == "stop"


@pytest.mark.parametrize("thinking", ["7+8=é", [text("7+"), text("8=é")]])
@pytest.mark.parametrize("kind", ["thinking", "reasoning"])
@pytest.mark.parametrize("scope", ["content", "reasoning", "all"])
def test_thinking_is_reasoning(kind: str, thinking: Any, scope: Any) -> None:
    field = thought(THOUGHT, "7+8=é", "15")
    content = [{"type": kind, kind: thinking}, text("15")]
    data = thought(THOUGHT, None, content)  # type: ignore[arg-type]
    choice = data["choices"][0]
    delta = {"index": 0, "delta": {"content": content}, "logprobs": choice["logprobs"]}
    end = {"index": 0, "delta": {}, "finish_reason": "stop"}
    chunks = [chunk(delta), chunk(end, usage=data["usage"])]
    for response in (data, chunks):
        found, expected = (as_generations(r, scope=scope)[0] for r in (response, field))
        assert found.text == "15"
        assert found.output_tokens == expected.output_tokens
        assert repr(signals_of(found)) == repr(signals_of(expected))


def decided(response: Any) -> GateResult | Undecided:
    with make_gate(lambda output, task: output.text == task) as gate:
        if isinstance(response, list):
            stream = gate.observe_stream(response, "42")
            assert list(stream) == response
            return gate.result_of(stream)
        observer = ResponseObserver(gate, CallSettings(task="42"))
        observer.decide(observer.outputs_of(response))
        return observer.attachment.results[0]


def test_a_gate_decides_on_the_joined_text() -> None:
    parts = [text("4"), text("2")]
    for response in (completion(None, text=parts), streamed(parts)):  # type: ignore[arg-type]
        result = decided(response)
        assert not isinstance(result, Undecided)
        assert result.outcome is not None
        assert result.outcome.verdict is Verdict.PASSED


@pytest.mark.parametrize(
    "content",
    [[text("4"), {"type": "image_url", "image_url": {"url": "x"}}], [text("4"), 2], {"a": 1}, 42],
    ids=["image", "number", "object", "number alone"],
)
def test_a_content_that_is_not_text_is_unreadable(content: Any) -> None:
    for response in (completion(None, text=content), streamed("the ", content)):
        result = decided(response)
        assert isinstance(result, Undecided)
        assert result.state is UndecidedState.UNREADABLE
        assert "content" in result.error
        with pytest.raises(BadInputError, match="content"):
            as_generation(response)


def test_an_empty_list_is_an_empty_text() -> None:
    for response in (completion(None, text=[]), streamed([])):  # type: ignore[arg-type]
        assert as_generation(response).text == ""
