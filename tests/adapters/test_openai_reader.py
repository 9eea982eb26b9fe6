"""OpenAI's three APIs as Generations: from the package's own objects, from JSON, from streams."""

from __future__ import annotations

import contextlib
import copy
import itertools
import math
import random
from math import nan
from typing import Any

import numpy as np
import pytest
from odd_json import mutated

from gatekeeper import BadInputError, Generation, SignalState, signals_of
from gatekeeper.adapters.openai import StreamReader, generation_of, generations_of
from gatekeeper.io.responses import as_generation, as_generations

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


CHUNK = {
    "id": "chatcmpl-1",
    "object": "chat.completion.chunk",
    "created": 1,
    "model": "tiny-1",
    "choices": [{"index": 0, "finish_reason": None, "delta": {"content": "fo"}, "logprobs": None}],
}


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


# -- several choices -----------------------------------------------------------------------------


def choices(*contents: list[Position]) -> dict[str, Any]:
    one = completion(None)
    message = one["choices"][0]
    many = [message | {"index": i, "logprobs": {"content": c}} for i, c in enumerate(contents)]
    return one | {"choices": many}


def test_several_choices_are_several_outputs() -> None:
    """Each its own length and name; the usage is that of all together, so nobody's."""
    a, b = position("a", -0.1, ("b", -2.0)), position("b", -0.7, ("a", -0.9))
    first, second = as_generations(choices([a], [b, a]))
    assert (first.id, second.id) == ("chatcmpl-1/0", "chatcmpl-1/1")
    assert_arrays(first, (-0.1, -0.1, -2.0))
    assert_arrays(second, (-0.7, -0.7, -0.9), (-0.1, -0.1, -2.0))
    assert (first.output_tokens, second.token_coverage) == (None, 1.0)
    assert [g.id for g in as_generations(choices([a], [b]), id="mine")] == ["mine/0", "mine/1"]
    assert as_generations(completion([a]))[0].id == "chatcmpl-1"
    assert as_generations(completion(None, choices=[])) == []


# -- k ---------------------------------------------------------------------------------------------


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
    alternative's those of the placeholder: one token all the same."""
    chosen = {"token": "token_id:7", "logprob": -0.1, "bytes": [97]}
    same = {"token": "token_id:7", "logprob": -0.1, "bytes": list(b"token_id:7")}
    other = {"token": "token_id:8", "logprob": -2.0, "bytes": list(b"token_id:8")}
    found = as_generation(completion([chosen | {"top_logprobs": [same, other]}]))
    assert_arrays(found, (-0.1, -0.1, -2.0))


# -- values ----------------------------------------------------------------------------------------


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
    """A server that does not compute them is not certain."""
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


# -- which tokens are counted ----------------------------------------------------------------------


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


THOUGHT = ["<think>", "7+", "8", "=é", "</think>", "\n", "15", "<|end|>"]


def thought(tokens: list[str], reasoning: str, content: str | None, **more: Any) -> dict[str, Any]:
    entries = [
        position(t, -0.1 * (i + 1), (t, -0.1 * (i + 1)), ("x", -9.0)) for i, t in enumerate(tokens)
    ]
    data = completion(entries, text=content)
    data["choices"][0]["message"][more.pop("name", "reasoning")] = reasoning
    data["usage"]["completion_tokens"] = len(tokens)
    return data | more


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
    """Which of them are the answer's cannot be known: missing, not wrong."""
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


# -- text completions ------------------------------------------------------------------------------


def legacy(
    *positions: tuple[str, float | None, dict[str, float] | None], **usage: int
) -> dict[str, Any]:
    tokens, chosen, top = (list(column) for column in zip(*positions, strict=True))
    logprobs = {"tokens": tokens, "token_logprobs": chosen, "top_logprobs": top, "text_offset": []}
    counts = {"prompt_tokens": 2, "completion_tokens": len(tokens), "total_tokens": 0} | usage
    choice = {"index": 0, "finish_reason": "length", "text": "four", "logprobs": logprobs}
    return {
        "id": "cmpl-1",
        "object": "text_completion",
        "created": 1,
        "model": "tiny-1",
        "choices": [choice],
        "usage": counts,
    }


@pytest.fixture(params=["object", "json"])
def read_legacy(request: pytest.FixtureRequest) -> Any:
    def read(data: dict[str, Any]) -> Generation:
        if request.param == "object":
            return as_generation(openai_types.Completion.construct(**data))
        return as_generation(data)

    return read


def test_text_completions_are_read(read_legacy: Any) -> None:
    """The chosen token is added where the dict lacks it: k + 1 entries, or k."""
    found = read_legacy(
        legacy(
            ("a", -0.1, {"a": -0.1, "b": -3.0}),
            ("b", -0.9, {"a": -0.7, "b": -0.9}),
            ("z", -5.0, {"z": -5.0, "a": -0.4, "b": -1.5}),
            ("z", -5.0, {"b": -1.5, "a": -0.4}),
        )
    )
    assert_arrays(
        found, (-0.1, -0.1, -3.0), (-0.9, -0.7, -0.9), (-5.0, -0.4, -1.5), (-5.0, -0.4, -1.5)
    )
    assert (found.id, found.text, found.model) == ("cmpl-1", "four", "tiny-1")
    assert (found.prompt_tokens, found.output_tokens, found.k_seen) == (2, 4, 3)


@pytest.mark.parametrize(
    "logprobs", [None, {"tokens": [], "token_logprobs": [], "top_logprobs": []}]
)
def test_a_text_completion_without_logprobs_is_missing(read_legacy: Any, logprobs: Any) -> None:
    data = legacy(("a", -0.1, None))
    data["choices"][0]["logprobs"] = logprobs
    assert signals_of(read_legacy(data)).state is SignalState.MISSING


def test_texts_that_collide_give_no_margin_rather_than_a_wrong_one(read_legacy: Any) -> None:
    """Byte pieces and special tokens are all "" or a replacement character, and overwrite each
    other: fewer candidates than elsewhere. With token ids as keys nothing collides."""
    clean = ("a", -0.1, {"a": -0.1, "b": -3.0, "c": -4.0})
    found = read_legacy(
        legacy(
            clean,
            ("a", -0.3, {"a": -0.3, "": -6.0}),  # "" twice: one was lost
            ("", -0.2, {"": -5.0, "a": -2.0}),  # the chosen one overwritten: all three are known
            ("z", -9.0, {"z": -9.0, "\ufffd": -1.0, "a": -2.0}),  # 4 were to be expected
            ("z", -9.0, {"z": -9.0, "b": -1.0, "a": -2.0}),  # z is the third: nothing lost
        )
    )
    assert_arrays(
        found,
        (-0.1, -0.1, -3.0),
        (-0.3, -0.3, nan),
        (-0.2, -0.2, -2.0),
        (-9.0, -1.0, nan),
        (-9.0, -1.0, -2.0),
    )
    by_id = {"token_id:1": -0.1, "token_id:2": -3.0, "token_id:3": -4.0}
    fewer = {"token_id:1": -0.3, "token_id:2": -6.0}
    found = read_legacy(legacy(("token_id:1", -0.1, by_id), ("token_id:1", -0.3, fewer)))
    assert_arrays(found, (-0.1, -0.1, -3.0), (-0.3, -0.3, -6.0))


def test_a_text_completion_with_k_1_has_no_margins(read_legacy: Any) -> None:
    """Two entries only where the sampled token is another, and then the second is not there."""
    found = read_legacy(legacy(("a", -0.1, {"a": -0.1}), ("z", -5.0, {"z": -5.0, "a": -0.4})))
    assert_arrays(found, (-0.1, -0.1, nan), (-5.0, -0.4, nan))


def test_echo_puts_the_prompt_first(read_legacy: Any) -> None:
    """Its tokens are no output; where nobody says how many they are, none is known."""
    rows = [
        ("What", None, None),
        ("?", -8.0, {"?": -8.0, "!": -1.0}),
        ("four", -0.1, {"four": -0.1, "five": -3.0}),
    ]
    data = legacy(*rows, completion_tokens=1)
    found = read_legacy(data)
    assert_arrays(found, (-0.1, -0.1, -3.0))
    assert found.token_coverage == 1.0
    rows.append(("five", -3.0, {"four": -0.1, "five": -3.0}))  # k = 2, whatever the first lacks
    found = read_legacy(legacy(*rows, completion_tokens=2))
    assert_arrays(found, (-0.1, -0.1, -3.0), (-3.0, -0.1, -3.0))
    assert signals_of(as_generation(data | {"usage": None})).state is SignalState.MISSING


def test_a_null_first_logprob_without_echo_is_only_that(read_legacy: Any) -> None:
    found = read_legacy(legacy(("a", None, None), ("b", -0.1, {"b": -0.1, "c": -3.0})))
    assert_arrays(found, (nan, nan, nan), (-0.1, -0.1, -3.0))


# -- the Responses API -----------------------------------------------------------------------------


def responded(entries: list[Position] | None, *, text: str = "four", **more: Any) -> dict[str, Any]:
    part = {"type": "output_text", "text": text, "annotations": [], "logprobs": entries}
    message = {
        "type": "message",
        "id": "m",
        "role": "assistant",
        "status": "completed",
        "content": [part],
    }
    usage = {
        "input_tokens": 12,
        "output_tokens": len(entries or []),
        "total_tokens": 0,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens_details": {"reasoning_tokens": 0},
    }
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "model": "tiny-1",
        "status": "completed",
        "output": [message],
        "parallel_tool_calls": False,
        "tool_choice": "none",
        "tools": [],
        "usage": usage,
    } | more


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


# -- streams ---------------------------------------------------------------------------------------


def chunk(*parts: dict[str, Any], **more: Any) -> dict[str, Any]:
    return CHUNK | {"choices": list(parts)} | more


def delta(
    index: int, text: str | None, entries: list[Position] | None, **more: Any
) -> dict[str, Any]:
    logprobs = None if entries is None else {"content": entries, "refusal": None}
    content = {"content": text} if text is not None else {}
    return {"index": index, "delta": content, "logprobs": logprobs, "finish_reason": None} | more


A, B, C = (position(t, p, (t, p), ("x", -4.0)) for t, p in (("a", -0.1), ("b", -0.2), ("c", -0.3)))
USAGE = {"prompt_tokens": 12, "completion_tokens": 3, "total_tokens": 15}
STREAM = [
    chunk(delta(0, "", None)),  # the role chunk
    chunk(),  # Azure's content filter
    chunk(delta(0, "ab", [A, B])),  # several tokens
    chunk({"index": 0, "finish_reason": None}),  # no delta
    chunk(delta(0, "", [C])),  # tokens without text
    chunk(delta(0, None, None, finish_reason="stop")),
    chunk(usage=USAGE),
]


@pytest.fixture(params=["object", "json"])
def read_stream(request: pytest.FixtureRequest) -> Any:
    def read(chunks: list[dict[str, Any]], **options: Any) -> list[Generation]:
        reader = StreamReader(**options)
        for data in chunks:
            made = chat_types.ChatCompletionChunk.construct(**data)
            reader.add(made if request.param == "object" else copy.deepcopy(data))
        return reader.generations()

    return read


def test_a_stream_is_the_response_it_is_parts_of(read_stream: Any) -> None:
    """With `choices: []`, without a delta, null logprobs, tokens without text: all tolerated."""
    (found,) = read_stream(STREAM, strict=True)
    assert_arrays(found, (-0.1, -0.1, -4.0), (-0.2, -0.2, -4.0), (-0.3, -0.3, -4.0))
    assert (found.id, found.text, found.model) == ("chatcmpl-1", "ab", "tiny-1")
    assert (found.finish_reason, found.output_tokens, found.token_coverage) == ("stop", 3, 1.0)


def test_a_streamed_refusal_keeps_its_text(read_stream: Any) -> None:
    """After a role chunk with `content: ""`, as OpenAI sends it; in a whole response likewise."""
    refused = [
        {**delta(0, None, None), "delta": {"refusal": piece}, "logprobs": {"refusal": [entry]}}
        for piece, entry in (("N", A), ("o.", B))
    ]
    (found,) = read_stream([chunk(delta(0, "", None)), *(chunk(part) for part in refused)])
    assert found.text == "No."
    assert_arrays(found, (-0.1, -0.1, -4.0), (-0.2, -0.2, -4.0))
    data = completion(None, text="")
    data["choices"][0]["message"]["refusal"] = "No."
    assert as_generation(data).text == "No."


def test_a_stream_whose_chunks_differ_in_kind_is_read(read_stream: Any) -> None:
    """Most chunks are alike and are read quickly; none of what others have is lost."""
    first = chunk(delta(0, "a", [A])) | {"id": "", "model": ""}
    usage = chunk(delta(0, "c", [C]), usage=USAGE)
    extra = delta(0, "b", [B]) | {"delta": {"content": "b", "reasoning": "hm"}}
    both = delta(0, "b", [B])
    both["delta"] |= {"refusal": "No"}
    chunks = [first, chunk(delta(0, "b", [B])), usage, chunk(extra), chunk(both)]
    chunks += [chunk(delta(0, "a", [A]), delta(0, "b", [B])), chunk(delta(0, "c", [C]))]
    (found,) = read_stream(chunks, scope="all")
    assert (found.text, found.id, found.model) == ("abcbbabc", "chatcmpl-1", "tiny-1")
    assert found.prompt_tokens == 12
    assert found.logprob.tolist() == [-0.1, -0.2, -0.3, -0.2, -0.2, -0.1, -0.2, -0.3]


def test_chunks_are_read_when_they_come_and_not_kept() -> None:
    """What a caller does to a chunk afterwards changes nothing."""
    reader = StreamReader(strict=True)
    for data in STREAM:
        made = chat_types.ChatCompletionChunk.construct(**copy.deepcopy(data))
        reader.add(made)
        for part in made.choices:
            if getattr(part, "logprobs", None):
                part.logprobs.content[0].logprob = part.logprobs.content[0].top_logprobs = None
                part.logprobs.content.clear()
    assert_arrays(reader.generations()[0], *((p, p, -4.0) for p in (-0.1, -0.2, -0.3)))


def test_a_list_of_chunks_is_a_response() -> None:
    assert_arrays(as_generation(STREAM), *((p, p, -4.0) for p in (-0.1, -0.2, -0.3)))


def test_a_truncated_stream_has_no_finish_reason(read_stream: Any) -> None:
    (found,) = read_stream(STREAM[:3])
    assert (found.text, found.finish_reason, found.output_tokens) == ("ab", None, None)
    assert found.logprob.size == 2
    assert read_stream([]) == read_stream(STREAM[1:2]) == []


def test_choices_of_a_stream_interleave(read_stream: Any) -> None:
    chunks = [
        chunk(delta(1, "b", [B])),
        chunk(delta(0, "a", [A]), delta(1, "c", [C])),
        chunk(delta(0, None, None, finish_reason="length")),
    ]
    first, second = read_stream(chunks)
    assert (first.id, first.text, first.finish_reason) == ("chatcmpl-1/0", "a", "length")
    assert (second.id, second.text, second.finish_reason) == ("chatcmpl-1/1", "bc", None)
    assert_arrays(second, (-0.2, -0.2, -4.0), (-0.3, -0.3, -4.0))


def test_a_stream_of_vllm_is_known_as_such(read_stream: Any) -> None:
    """Also when it broke off: `token_ids` is in every chunk."""
    z = position("z", -5.0, ("z", -5.0), ("a", -0.4))
    (found,) = read_stream([chunk(delta(0, "z", [z], token_ids=None))])
    assert_arrays(found, (-5.0, -0.4, nan))


def test_a_stream_of_a_text_completion() -> None:
    rows = [("a", -0.1, {"a": -0.1, "x": -4.0}), ("b", -0.2, {"b": -0.2, "x": -4.0})]
    chunks = [legacy(row) | {"usage": None} for row in rows]
    for part in chunks:
        part["choices"][0]["finish_reason"] = None
    (found,) = as_generations(chunks)
    assert_arrays(found, (-0.1, -0.1, -4.0), (-0.2, -0.2, -4.0))
    assert (found.text, found.finish_reason) == ("fourfour", None)


def events(final: dict[str, Any] | None, *deltas: tuple[str, list[Position]]) -> list[Any]:
    at = {"output_index": 0, "content_index": 0, "item_id": "m"}
    start = responded(None, output=[], usage=None, status="in_progress")
    kind = "response.output_text.delta"
    middle = [{"type": kind, "delta": text, "logprobs": top} | at for text, top in deltas]
    end = [] if final is None else [{"type": "response.completed", "response": final}]
    return [{"type": "response.created", "response": start}, *middle, *end]


def test_a_stream_of_the_responses_api() -> None:
    """The last event has it all; what the deltas have more is taken from them, and what neither
    has lowers the coverage: vLLM loses the tokens whose text is empty."""
    whole = responded([A, B, C], text="abc")
    found = as_generation(events(whole, ("a", [A]), ("bc", [B, C])))
    assert repr(signals_of(found)) == repr(signals_of(as_generation(whole)))
    assert (found.id, found.text, found.token_coverage) == ("resp_1", "abc", 1.0)

    bare = responded(None, text="abc", usage=whole["usage"])
    found = as_generation(events(bare, ("a", [A]), ("bc", [C])))
    assert found.logprob.size == 2
    assert (found.text, found.finish_reason) == ("abc", "stop")
    assert found.token_coverage == pytest.approx(2 / 3)

    broken = as_generation(events(None, ("a", [A])))
    assert (broken.id, broken.text, broken.finish_reason) == ("resp_1", "a", None)
    assert_arrays(broken, (-0.1, -0.1, -4.0))


ODD = [
    None,
    7,
    "x",
    {},
    [],
    {"choices": 3},
    {"choices": [None]},
    {"choices": [{"index": "a"}]},
    {"type": "response.output_text.delta", "delta": 3},
    {"type": "error", "message": "no"},
    {"choices": [{"index": 0, "delta": 5, "logprobs": 5}], "usage": 3},
    {"type": 7},
    {"type": "response.completed", "response": {"output": 3}},
]


@pytest.mark.parametrize("odd", ODD, ids=repr)
def test_an_odd_chunk_is_passed_over_unless_strict(odd: Any) -> None:
    """A caller's own loop over a stream never breaks because of the gate."""
    for stream in (STREAM[:3], events(None, ("a", [A]))):
        reader = StreamReader()
        for data in (odd, *stream, odd):
            reader.add(data)
        assert {"ab", "a"} & {g.text for g in reader.generations()}


@pytest.mark.parametrize("odd", [None, 7, {}, {"choices": [{"index": "a"}]}], ids=repr)
def test_an_odd_chunk_is_refused_if_strict(odd: Any) -> None:
    with pytest.raises(BadInputError):
        StreamReader(strict=True).add(odd)


def test_odd_logprobs_in_a_stream_leave_the_text() -> None:
    bad = [chunk(delta(0, "four", [{"token": "a", "logprob": "x"}], finish_reason="stop"))]
    reader = StreamReader()
    reader.add(bad[0])
    (found,) = reader.generations()
    assert (found.id, found.text, found.finish_reason) == ("chatcmpl-1", "four", "stop")
    assert signals_of(found).state is SignalState.MISSING
    with pytest.raises(BadInputError):
        as_generations(bad)


# -- the definition once more, slowly ---------------------------------------------------------


def any_position(rng: random.Random) -> Position:
    """Ties, nulls, masked, unsorted, pieces of characters, from 0 to 20 alternatives, the chosen
    token among them or not, under its own value or another."""

    def one() -> dict[str, Any]:
        token = rng.choice(["a", " b", "é", "Ġc", "", "\ufffd", "d\ufffd"])
        value = rng.choice([None, nan, -0.5, -0.5, -2.0, 0.0, -9999.0, -rng.expovariate(0.3)])
        raw = rng.choice([list(token.encode()), [227], None])
        return {"token": token, "logprob": value, "bytes": raw}

    top = [one() for _ in range(rng.choice([0, 1, 2, 3, 5, 20]))]
    chosen = dict(rng.choice(top)) if top and rng.random() < 0.7 else one()
    if top and rng.random() < 0.3:
        chosen["logprob"] = rng.choice(top)["logprob"]
    return chosen | {"top_logprobs": top}


def by_definition(entry: Position) -> tuple[float, float, float]:
    """Chosen, largest and second largest: the chosen token is one more where it is not listed."""
    known = [each for each in entry["top_logprobs"] if each["token"] == entry["token"]]
    if entry["token"] == "" or "\ufffd" in entry["token"]:
        raw = entry["bytes"]
        known = [each for each in known if None in (raw, each["bytes"]) or raw == each["bytes"]]
    candidates = entry["top_logprobs"] if known else [*entry["top_logprobs"], entry]
    values = [nan if each["logprob"] is None else each["logprob"] for each in (entry, *candidates)]
    ordered = sorted((v for v in values[1:] if not math.isnan(v)), reverse=True)
    return values[0], *[*ordered, nan, nan][:2]  # type: ignore[return-value]


@pytest.mark.parametrize("seed", range(3))
def test_any_entries_are_read_as_defined_whole_or_in_pieces(read_stream: Any, seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(50):
        entries = [any_position(rng) for _ in range(rng.randint(1, 12))]
        rows = [by_definition(entry) for entry in entries]
        if max(len(entry["top_logprobs"]) for entry in entries) == 1:
            rows = [(own, first, nan if own < first else second) for own, first, second in rows]
        whole = completion(entries)
        for response in (whole, chat_types.ChatCompletion.construct(**whole)):
            assert_arrays(as_generation(response), *rows)
        parts = [delta(0, "", [])]
        while entries:
            n = rng.choice([1, 1, 3])
            parts.append(delta(0, "".join(entry["token"] for entry in entries[:n]), entries[:n]))
            entries = entries[n:]
        (found,) = read_stream([chunk(part) for part in parts], strict=True)
        assert_arrays(found, *rows)


# -- anything --------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_whatever_json_says_is_read_or_bad_input(seed: int) -> None:
    """Not a TypeError from somewhere inside; and a stream's reader that is not strict never
    raises."""
    rng = random.Random(seed)
    shapes = [
        thought(THOUGHT, "7+8=é", "15"),
        legacy(("a", None, None), ("b", -0.1, {"b": -0.1, "c": -3.0})),
        responded([A, B]),
    ]
    streams = [STREAM, events(responded([A, B]), ("a", [A]))]
    for _ in range(300):
        for shape in shapes:
            with contextlib.suppress(BadInputError):
                generations_of(mutated(shape, rng), scope=rng.choice(["content", "all"]))
        for stream in streams:
            reader = StreamReader()
            for data in mutated(stream, rng):
                reader.add(data)
            reader.generations()
