"""OpenAI chat completions as Generations: from the package's own objects and from JSON."""

from __future__ import annotations

import copy
import itertools
import math
from math import nan
from typing import Any

import numpy as np
import pytest

from gatekeeper import BadInputError, Generation, SignalState, signals_of
from gatekeeper.convert import as_generation

openai_types = pytest.importorskip("openai.types")
chat_types = pytest.importorskip("openai.types.chat")

Position = dict[str, Any]


def alternative(token: str, logprob: float, *, raw: bool = True) -> dict[str, Any]:
    return {"token": token, "logprob": logprob, "bytes": list(token.encode()) if raw else None}


def position(token: str, logprob: float, *others: tuple[str, float], raw: bool = True) -> Position:
    top = [alternative(t, p, raw=raw) for t, p in others]
    return alternative(token, logprob, raw=raw) | {"top_logprobs": top}


def completion(
    content: list[Position] | None, *, text: str | None = "four", **changes: Any
) -> dict[str, Any]:
    logprobs = None if content is None else {"content": content, "refusal": None}
    message = {"role": "assistant", "content": text, "refusal": None}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": "tiny-1",
        "choices": [
            {"index": 0, "finish_reason": "stop", "message": message, "logprobs": logprobs}
        ],
        "usage": {"prompt_tokens": 12, "completion_tokens": 3, "total_tokens": 15},
    } | changes


@pytest.fixture(params=["object", "json"])
def read(request: pytest.FixtureRequest) -> Any:
    """Reads a response from its JSON, or as the `openai` package would hand it over."""

    def read(data: dict[str, Any], **arguments: Any) -> Generation:
        response = data
        if request.param == "object":
            response = chat_types.ChatCompletion.model_validate(data)
            before = response.model_dump_json()
        else:
            before = copy.deepcopy(data)
        found = as_generation(response, **arguments)
        after = response.model_dump_json() if request.param == "object" else data
        assert repr(after) == repr(before), "reading changed the caller's object"
        return found

    return read


def assert_arrays(found: Generation, *rows: tuple[float, float, float]) -> None:
    expected = np.array(rows, dtype=np.float64).reshape(-1, 3).T
    for got, want in zip((found.logprob, found.top1, found.top2), expected, strict=True):
        assert got.dtype == np.float64
        np.testing.assert_array_equal(got, want)


def test_everything_a_gate_needs_is_read(read: Any) -> None:
    found = read(
        completion(
            [
                position("f", -0.1, ("f", -0.1), ("g", -3.0), ("h", -4.0)),
                position("our", -0.7, ("our", -0.7), ("ive", -0.9)),
                position("!", -2.0, ("!", -2.0), ("?", -2.0)),
            ]
        )
    )
    assert_arrays(found, (-0.1, -0.1, -3.0), (-0.7, -0.7, -0.9), (-2.0, -2.0, -2.0))
    assert (found.id, found.text, found.model) == ("chatcmpl-1", "four", "tiny-1")
    assert (found.prompt_tokens, found.output_tokens) == (12, 3)
    assert (found.finish_reason, found.k_seen, found.token_coverage) == ("stop", 3, 1.0)
    signals = signals_of(found)
    assert signals.h1 == pytest.approx((0.1 + 0.7 + 2.0) / 3)
    assert (signals.h2, signals.state) == (0.0, SignalState.OK)


@pytest.mark.parametrize("raw", [True, False])
def test_the_order_of_top_logprobs_does_not_matter(read: Any, raw: bool) -> None:
    """vLLM puts the sampled token first, OpenAI the most likely: the margin is by value."""
    others = [("a", -0.4), ("b", -1.5), ("c", -2.5), ("d", -9.0)]
    for order in itertools.permutations(others):
        for token, logprob in others:
            found = read(completion([position(token, logprob, *order, raw=raw)]))
            assert_arrays(found, (logprob, -0.4, -1.5))


def test_a_sampled_token_outside_the_list_counts_among_the_candidates(read: Any) -> None:
    """Where it is the second or the first by value it makes the margin, else it does not."""
    found = read(
        completion(
            [
                position("z", -5.0, ("a", -0.4), ("b", -1.5)),
                position("z", -1.0, ("a", -0.4), ("b", -1.5)),
                position("z", -0.1, ("a", -0.4), ("b", -1.5)),
                position("z", -0.4, ("a", -0.4), ("b", -1.5)),  # a tie of two tokens: margin 0
            ]
        )
    )
    assert_arrays(
        found, (-5.0, -0.4, -1.5), (-1.0, -0.4, -1.0), (-0.1, -0.1, -0.4), (-0.4, -0.4, -0.4)
    )


def test_a_sampled_token_in_the_list_is_not_counted_twice(read: Any) -> None:
    """Two tokens of one spelling and different bytes are two; one token is one."""
    twice = {"token": "\ufffd", "logprob": -0.5, "bytes": [227]}
    other = {"token": "\ufffd", "logprob": -1.0, "bytes": [226]}
    found = read(
        completion(
            [
                {**twice, "top_logprobs": [twice, other]},
                {**other, "top_logprobs": [twice]},
            ]
        )
    )
    assert_arrays(found, (-0.5, -0.5, -1.0), (-1.0, -0.5, -1.0))


def test_one_alternative_gives_no_margin(read: Any) -> None:
    """k = 1, greedy: nothing is known of a second token, and none is made up."""
    found = read(completion([position("a", -0.2, ("a", -0.2)), position("b", -0.3, ("b", -0.3))]))
    assert_arrays(found, (-0.2, -0.2, nan), (-0.3, -0.3, nan))
    signals = signals_of(found)
    assert (found.k_seen, found.token_coverage) == (1, 0.0)
    assert (signals.state, signals.n_tokens, signals.n_margins) == (SignalState.PARTIAL, 2, 0)


def test_no_alternatives_at_all(read: Any) -> None:
    """`logprobs=True` without `top_logprobs`: the sampled token is all there is."""
    found = read(completion([position("a", -0.2)]))
    assert_arrays(found, (-0.2, -0.2, nan))
    assert found.k_seen == 0


def test_masked_tokens_come_as_minus_9999(read: Any) -> None:
    """A forced token under a grammar: an infinite margin, most confident."""
    found = read(completion([position("{", 0.0, ("{", 0.0), ("a", -9999.0), ("b", -9999.0))]))
    assert_arrays(found, (0.0, 0.0, -9999.0))
    signals = signals_of(found)
    assert (signals.h1, signals.h2, signals.h3) == (0.0, -math.inf, 0.0)


@pytest.mark.parametrize("content", [None, []])
def test_without_logprobs_the_signal_is_missing(read: Any, content: list[Any] | None) -> None:
    found = read(completion(content))
    assert_arrays(found)
    assert (found.text, found.k_seen, found.token_coverage) == ("four", 0, 0.0)
    assert signals_of(found).state is SignalState.MISSING


def test_an_empty_answer_is_an_answer(read: Any) -> None:
    """One end-of-text token, no text; a tool call or a refusal has `content` null."""
    for text in ("", None):
        found = read(completion([position("<|im_end|>", -0.1, ("a", -2.5))], text=text))
        assert found.text == ""
        assert_arrays(found, (-0.1, -0.1, -2.5))


def test_usage_may_be_absent(read: Any) -> None:
    found = read(completion([position("a", -0.2, ("b", -2.0))], usage=None))
    assert (found.prompt_tokens, found.output_tokens) == (None, None)


@pytest.mark.parametrize("n", [0, 2, 5])
def test_other_than_one_choice_is_refused(read: Any, n: int) -> None:
    """n > 1 would be n outputs under one id; the message says how many, and of what."""
    data = completion([position("a", -0.2, ("b", -2.0))])
    data["choices"] = [data["choices"][0] | {"index": i} for i in range(n)]
    with pytest.raises(BadInputError, match=rf"chatcmpl-1.*{n} choices"):
        read(data)


def test_an_id_can_be_given(read: Any) -> None:
    """For providers that number all alike or not at all."""
    data = completion([position("a", -0.2, ("b", -2.0))])
    assert read(data, id="mine").id == "mine"
    assert read(data | {"id": ""}, id="mine").id == "mine"
    assert read(data, id="Grüße/7").id == "Grüße/7"


@pytest.mark.parametrize("id", ["", "\ud800", "a\udfffb"])
def test_an_id_that_no_log_could_hold_is_refused(read: Any, id: str) -> None:
    """Empty, or with a lone surrogate, which is no text in any encoding."""
    with pytest.raises(BadInputError, match="id="):
        read(completion(None), id=id)
    with pytest.raises(BadInputError, match="id="):
        as_generation(completion(None, id=id))


@pytest.mark.parametrize("id", [7, b"x", 1.5, ("a",)])
def test_an_id_that_is_not_text_is_refused(id: object) -> None:
    with pytest.raises(BadInputError, match="id="):
        as_generation(completion(None), id=id)  # type: ignore[arg-type]


@pytest.mark.parametrize("response", [None, 7, "four", b"four", ["four"], {}, {"id": "x"}, object])
def test_what_is_no_response_is_refused(response: object) -> None:
    """By the name of its type."""
    with pytest.raises(BadInputError, match=type(response).__name__):
        as_generation(response)


def test_a_generation_passes_through() -> None:
    one = as_generation(completion([position("a", -0.2, ("b", -2.0))]))
    assert as_generation(one) is one
    renamed = as_generation(one, id="other")
    assert (renamed.id, one.id) == ("other", "chatcmpl-1")
    assert renamed.logprob is one.logprob


LEGACY = {
    "id": "cmpl-1",
    "object": "text_completion",
    "created": 1,
    "model": "tiny-1",
    "choices": [{"index": 0, "finish_reason": "stop", "text": "four", "logprobs": None}],
}
CHUNK = {
    "id": "chatcmpl-1",
    "object": "chat.completion.chunk",
    "created": 1,
    "model": "tiny-1",
    "choices": [{"index": 0, "finish_reason": None, "delta": {"content": "fo"}, "logprobs": None}],
}


@pytest.mark.parametrize("kind", ["object", "json"])
@pytest.mark.parametrize("shape", ["legacy completion", "chunk of a stream"])
def test_other_shapes_are_refused_not_read_as_empty_answers(kind: str, shape: str) -> None:
    """A text completion or one chunk of a stream has no message: taking it for a chat completion
    would verify "" instead of the answer, and find every one of them wrong."""
    cls, data = {
        "legacy completion": (openai_types.Completion, LEGACY),
        "chunk of a stream": (chat_types.ChatCompletionChunk, CHUNK),
    }[shape]
    response = cls.model_validate(data) if kind == "object" else data
    with pytest.raises(BadInputError):
        as_generation(response)


MALFORMED = {
    "choices is text": completion(None) | {"choices": "a"},
    "choices is a number": completion(None) | {"choices": 3},
    "choice is null": completion(None) | {"choices": [None]},
    "logprob is text": completion([{"token": "a", "logprob": "x", "top_logprobs": []}]),
    "alternative is text": completion(
        [{"token": "a", "logprob": -1.0, "top_logprobs": [{"token": "b", "logprob": "x"}]}]
    ),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_json_is_bad_input(name: str) -> None:
    """Not a TypeError from somewhere inside."""
    with pytest.raises(BadInputError):
        as_generation(MALFORMED[name])


def test_a_null_logprob_is_one_that_was_not_given() -> None:
    """As NaN, "where the provider gave none", beside a null alternative."""
    content = [
        {"token": "a", "logprob": None, "top_logprobs": [alternative("b", -1.0)]},
        {"token": "a", "logprob": -0.5, "top_logprobs": [{"token": "b", "logprob": None}]},
    ]
    assert_arrays(as_generation(completion(content)), (nan, -1.0, nan), (-0.5, -0.5, nan))
