"""Streams of OpenAI's APIs as Generations; any entries are read as the plain definition does."""

from __future__ import annotations

import contextlib
import copy
import math
import random
from collections.abc import Iterator
from math import nan
from typing import Any

import pytest
from odd_json import mutated
from openai_json import (
    THOUGHT,
    Position,
    assert_arrays,
    chunk,
    completion,
    legacy,
    position,
    responded,
    thought,
)

from gatekeeper import BadInputError, Generation, SignalState, signals_of
from gatekeeper.adapters.openai import StreamReader, generations_of
from gatekeeper.io.responses import as_generation, as_generations

openai_types = pytest.importorskip("openai.types")
chat_types = pytest.importorskip("openai.types.chat")


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


def test_a_stream_is_read_as_the_whole_response(read_stream: Any) -> None:
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
    """Most chunks are alike and take the fast path; no field of the others is lost."""
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
    """A caller may change a chunk afterwards."""
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


def test_an_empty_finish_reason_is_none() -> None:
    """As servers send it that have no null: an output that is cut off has no verdict."""
    reader = StreamReader()
    for text in ("a", "b"):
        reader.add(chunk(delta(0, text, [A], finish_reason="")))
    assert not reader.is_complete(1)
    assert [g.finish_reason for g in reader.generations()] == [None]


def test_an_index_below_0_loses_no_text(read_stream: Any) -> None:
    (found,) = read_stream([chunk(delta(-1, "a", [A])), chunk(delta(-1, "b", [B]))])
    assert found.text == "ab"


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


@contextlib.contextmanager
def only(what: str) -> Iterator[None]:
    """BadInputError is raised about this value or not at all."""
    error = None
    try:
        yield
    except BadInputError as e:
        error = e
    assert error is None or str(error).startswith(what)


@pytest.mark.parametrize("seed", range(4))
def test_whatever_json_says_is_read_or_bad_input(seed: int) -> None:
    """Not a TypeError from somewhere inside; and a stream's reader that is not strict raises only
    where the text itself cannot be read."""
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
            with only("content"):
                reader.generations()
