"""Chat completions as Generations: from the package's own objects and from JSON."""

from __future__ import annotations

import copy
import itertools
import math
from math import nan
from typing import Any

import numpy as np
import pytest
from openai_json import (
    CHUNK,
    THOUGHT,
    Position,
    alternative,
    assert_arrays,
    completion,
    position,
    thought,
)

from gatekeeper import BadInputError, Generation, SignalState, signals_of
from gatekeeper.adapters.openai import generation_of
from gatekeeper.io.responses import as_generation, as_generations

openai_types = pytest.importorskip("openai.types")
chat_types = pytest.importorskip("openai.types.chat")


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
    """It changes the margin if it is the first or the second by value."""
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
    """k = 1, greedy: the second token is unknown, so there is no margin."""
    found = read(completion([position("a", -0.2, ("a", -0.2)), position("b", -0.3, ("b", -0.3))]))
    assert_arrays(found, (-0.2, -0.2, nan), (-0.3, -0.3, nan))
    signals = signals_of(found)
    assert (found.k_seen, found.token_coverage) == (1, 0.0)
    assert (signals.state, signals.n_tokens, signals.n_margins) == (SignalState.PARTIAL, 2, 0)


def test_no_alternatives_at_all(read: Any) -> None:
    """`logprobs=True` without `top_logprobs`: only the sampled token has a value."""
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
def test_an_object_that_is_not_a_response_is_refused(response: object) -> None:
    """The message names its type."""
    with pytest.raises(BadInputError, match=type(response).__name__):
        as_generation(response)


def test_a_generation_passes_through() -> None:
    one = as_generation(completion([position("a", -0.2, ("b", -2.0))]))
    assert as_generation(one) is one
    renamed = as_generation(one, id="other")
    assert (renamed.id, one.id) == ("other", "chatcmpl-1")
    assert renamed.logprob is one.logprob


@pytest.mark.parametrize("kind", ["object", "json"])
def test_one_chunk_of_a_stream_is_refused_not_read_as_an_empty_answer(kind: str) -> None:
    """It has no message: taking it for a completion would verify "" instead of the answer."""
    chunk = chat_types.ChatCompletionChunk.model_validate(CHUNK) if kind == "object" else CHUNK
    with pytest.raises(BadInputError, match="StreamReader"):
        as_generation(chunk)


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


def choices(*contents: list[Position]) -> dict[str, Any]:
    one = completion(None)
    message = one["choices"][0]
    many = [message | {"index": i, "logprobs": {"content": c}} for i, c in enumerate(contents)]
    return one | {"choices": many}


def test_several_choices_are_several_outputs() -> None:
    """Each has its own length and name; the usage is the sum, so no output gets it."""
    a, b = position("a", -0.1, ("b", -2.0)), position("b", -0.7, ("a", -0.9))
    first, second = as_generations(choices([a], [b, a]))
    assert (first.id, second.id) == ("chatcmpl-1/0", "chatcmpl-1/1")
    assert_arrays(first, (-0.1, -0.1, -2.0))
    assert_arrays(second, (-0.7, -0.7, -0.9), (-0.1, -0.1, -2.0))
    assert (first.output_tokens, second.token_coverage) == (None, 1.0)
    assert [g.id for g in as_generations(choices([a], [b]), id="mine")] == ["mine/0", "mine/1"]
    assert as_generations(completion([a]))[0].id == "chatcmpl-1"
    assert as_generations(completion(None, choices=[])) == []


def test_k_cut_to_1_leaves_the_second_unknown(read: Any) -> None:
    """The sampled token need not be the second: of a list of one it makes no margin."""
    found = read(completion([position("z", -5.0, ("a", -0.4)), position("a", -0.4, ("a", -0.4))]))
    assert_arrays(found, (-5.0, -0.4, nan), (-0.4, -0.4, nan))
    assert (found.k_seen, found.token_coverage) == (1, 0.0)


@pytest.mark.parametrize("marker", ["stop_reason", "token_ids"])
def test_vllm_cuts_the_list_at_k_after_the_sampled_token(read: Any, marker: str) -> None:
    """At k = 2 rank 2 is lost where another token was sampled; from k = 3 on nothing is.
    Order does not tell: a server is known to be vLLM by its own fields."""
    content = [
        position("a", -0.4, ("a", -0.4), ("b", -1.5)),
        position("z", -5.0, ("z", -5.0), ("a", -0.4)),
        position("z", -5.0, ("a", -0.4), ("z", -5.0)),
    ]
    data = completion(content)
    assert_arrays(read(data), (-0.4, -0.4, -1.5), (-5.0, -0.4, -5.0), (-5.0, -0.4, -5.0))
    data["choices"][0][marker] = None
    assert_arrays(read(data), (-0.4, -0.4, -1.5), (-5.0, -0.4, nan), (-5.0, -0.4, nan))
    content[1] = position("z", -5.0, ("z", -5.0), ("a", -0.4), ("b", -1.5))
    data = completion(content[:2])
    data["choices"][0][marker] = None
    assert_arrays(read(data), (-0.4, -0.4, -1.5), (-5.0, -0.4, -1.5))


def test_token_ids_in_place_of_texts_are_tokens_of_their_own() -> None:
    """With `return_tokens_as_token_ids` the chosen token's bytes are those of its text, and an
    alternative's those of the placeholder: they are compared as one token."""
    chosen = {"token": "token_id:7", "logprob": -0.1, "bytes": [97]}
    same = {"token": "token_id:7", "logprob": -0.1, "bytes": list(b"token_id:7")}
    other = {"token": "token_id:8", "logprob": -2.0, "bytes": list(b"token_id:8")}
    found = as_generation(completion([chosen | {"top_logprobs": [same, other]}]))
    assert_arrays(found, (-0.1, -0.1, -2.0))


def test_exact_ties_are_two_tokens(read: Any) -> None:
    found = read(completion([position("a", -0.7, ("a", -0.7), ("b", -0.7), ("c", -3.0))]))
    assert_arrays(found, (-0.7, -0.7, -0.7))
    assert signals_of(found).h2 == 0.0


def test_logits_are_flagged(read: Any) -> None:
    """The margins stand; h1 would be no likelihood: signals are partial."""
    found = signals_of(read(completion([position("a", 3.0, ("a", 3.0), ("b", 1.0))])))
    assert (found.state, found.h2) == (SignalState.PARTIAL, -2.0)
    assert math.isnan(found.h1)


def test_all_zero_logprobs_are_missing(read: Any) -> None:
    """A server that does not compute them is not taken for a certain model."""
    zero = position("a", 0.0, ("a", 0.0), ("b", 0.0))
    assert signals_of(read(completion([zero] * 3))).state is SignalState.MISSING


def test_skip_forced_drops_what_a_grammar_forced() -> None:
    """And nothing else: neither a certain token with an alternative, nor one that lacks them."""
    forced = position("{", 0.0, ("{", 0.0), ("a", -9999.0), ("b", -9999.0))
    free = position("a", -0.5, ("a", -0.5), ("b", -1.5), ("c", -9999.0))
    certain = position("b", 0.0, ("b", 0.0), ("a", -20.0))
    bare = position("c", 0.0)
    data = completion([forced, free, forced, certain, bare])
    data["usage"]["completion_tokens"] = 6
    found = generation_of(data, skip_forced=True)
    assert_arrays(found, (-0.5, -0.5, -1.5), (0.0, 0.0, -20.0), (0.0, 0.0, nan))
    assert (found.output_tokens, found.token_coverage) == (4, 0.5)
    assert generation_of(data).logprob.size == 5


def test_a_stop_string_is_cut_from_the_text_and_not_from_the_tokens(read: Any) -> None:
    """ "modec" came from `mode` + `call`: tokens are matched by token, never by length of text."""
    tokens = [position(t, -0.5, (t, -0.5), ("x", -2.0)) for t in ("mode", "call", "<|im_end|>")]
    found = read(completion(tokens, text="modec"))
    assert (found.logprob.size, found.token_coverage) == (3, 1.0)


def test_tokens_that_were_not_reported_lower_the_coverage(read: Any) -> None:
    data = completion([position("a", -0.5, ("a", -0.5), ("b", -1.0))])
    data["usage"]["completion_tokens"] = 4
    assert read(data).token_coverage == 0.25


def test_a_refusal_has_logprobs_of_its_own(read: Any) -> None:
    data = completion(None, text=None)
    data["choices"][0]["message"]["refusal"] = "No."
    entries = [position("No.", -0.2, ("Yes", -1.8))]
    data["choices"][0]["logprobs"] = {"content": None, "refusal": entries}
    found = read(data)
    assert found.text == "No."
    assert_arrays(found, (-0.2, -0.2, -1.8))


def test_a_tool_call_has_no_text(read: Any) -> None:
    """vLLM gives the tokens of the call, OpenAI none."""
    for content in (None, [position("{", -0.2, ("a", -1.8))]):
        data = completion(content, text=None)
        call = {"name": "f", "arguments": "{}"}
        data["choices"][0]["message"]["tool_calls"] = [
            {"id": "c", "type": "function", "function": call}
        ]
        found = read(data)
        assert (found.text, found.logprob.size) == ("", len(content or []))


@pytest.mark.parametrize("name", ["reasoning", "reasoning_content"])
@pytest.mark.parametrize(
    ("tokens", "reasoning", "content", "first"),
    [
        (THOUGHT, "7+8=é", "15", 5),
        (THOUGHT, "\n7+8=é\n", "\n15", 5),  # parsers strip
        (["7+8", "=\ufffd", "\ufffd", "</think>", "15"], "7+8=é", "15", 3),  # é in two tokens
        (["15", "</think>", "15", "<|15|>"], "15", "15", 1),  # the reasoning says the answer
        (["a", "b"], "ab", None, 2),  # cut short while thinking
        (["a", "</think>", "{", "}"], "a", "", 1),  # a tool call
    ],
)
def test_scope_splits_reasoning_from_the_answer(
    read: Any, name: str, tokens: list[str], reasoning: str, content: str | None, first: int
) -> None:
    data = thought(tokens, reasoning, content, name=name)
    for token in data["choices"][0]["logprobs"]["content"]:
        if "\ufffd" in token["token"]:
            token["bytes"] = list(token["token"].encode())
    whole = generation_of(data, scope="all")
    answer, before = read(data), generation_of(data, scope="reasoning")
    assert whole.logprob.size == len(tokens)
    split = len(tokens) - answer.logprob.size
    assert split == before.logprob.size
    assert first <= split <= first + 1  # what lies between belongs to either
    np.testing.assert_array_equal(answer.logprob, whole.logprob[split:])
    np.testing.assert_array_equal(before.logprob, whole.logprob[:split])
    assert (answer.output_tokens, before.output_tokens) == (len(tokens) - split, split)
    assert answer.text == before.text == (content or "")


def test_tokens_that_do_not_spell_the_texts_are_of_no_scope(read: Any) -> None:
    """It is unknown which of them are the answer's: the values are missing."""
    data = thought(["token_id:1", "token_id:2"], "because", "15")
    for entry in data["choices"][0]["logprobs"]["content"]:
        entry["bytes"] = None
    assert signals_of(read(data)).state is SignalState.MISSING
    assert signals_of(generation_of(data, scope="all")).state is SignalState.OK


def test_hidden_reasoning_is_not_missing_from_the_answer(read: Any) -> None:
    """OpenAI counts reasoning tokens and shows none of them."""
    data = completion([position("4", -0.5, ("4", -0.5), ("5", -1.0))])
    data["usage"] |= {
        "completion_tokens": 65,
        "completion_tokens_details": {"reasoning_tokens": 64},
    }
    assert read(data).token_coverage == 1.0
    assert generation_of(data, scope="all").token_coverage == pytest.approx(1 / 65)
    assert generation_of(data, scope="reasoning").token_coverage == 0.0
