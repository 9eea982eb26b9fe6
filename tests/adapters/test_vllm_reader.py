"""vLLM's outputs as Generations; and the same generation through every shape there is."""

from __future__ import annotations

import contextlib
import copy
import json
import math
import random
from dataclasses import asdict, dataclass, field
from math import inf, nan
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from odd_json import mutated

from gatekeeper import BadInputError, Generation, Signals, SignalState, signals_of
from gatekeeper.adapters.vllm import StreamReader, generation_of, generations_of, prepared
from gatekeeper.io.responses import as_generation, as_generations

SETTINGS = settings(derandomize=True, deadline=None, database=None, max_examples=150)


# Stand-ins with the attributes of vllm 0.32, which ordinary tests do not install.


@dataclass
class Logprob:
    logprob: float
    rank: int | None = None
    decoded_token: str | None = None


@dataclass
class FlatLogprobs:
    start_indices: list[int] = field(default_factory=list)
    end_indices: list[int] = field(default_factory=list)
    token_ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    ranks: list[int | None] = field(default_factory=list)
    decoded_tokens: list[str | None] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.start_indices)

    def __getitem__(self, i: int) -> dict[int, Logprob]:
        if i >= len(self):
            raise IndexError(i)
        return {
            self.token_ids[j]: Logprob(self.logprobs[j], self.ranks[j])
            for j in range(self.start_indices[i], self.end_indices[i])
        }


@dataclass
class CompletionOutput:
    index: int
    text: str
    token_ids: Any
    logprobs: Any
    finish_reason: str | None = "stop"


@dataclass
class RequestOutput:
    request_id: str
    prompt_token_ids: list[int] | None
    outputs: list[CompletionOutput]
    prompt_logprobs: Any = None


@dataclass
class SamplingParams:
    logprobs: int | None = None
    logprob_token_ids: list[int] | None = None

    def clone(self) -> SamplingParams:
        return copy.deepcopy(self)


Row = tuple[int, list[tuple[int, float]]]  # sampled token; (token, logprob) of the whole vocabulary


def step(row: Row, k: int) -> list[tuple[int, float, int]]:
    """(token, logprob, rank) as vLLM's sampler gives them: sampled first, then ranks 1 to k."""
    sampled, vocabulary = row
    ranked = sorted(vocabulary, key=lambda entry: -entry[1])
    own = dict(vocabulary)[sampled]
    rank = sum(value >= own for _, value in vocabulary)  # as vLLM counts, ties and all
    top = [(token, value, i) for i, (token, value) in enumerate(ranked[:k], 1)]
    return [(sampled, own, rank), *top]


def as_dicts(rows: list[Row], k: int) -> list[dict[int, Logprob]]:
    return [{token: Logprob(value, rank) for token, value, rank in step(r, k)} for r in rows]


def as_flat(rows: list[Row], k: int) -> FlatLogprobs:
    flat = FlatLogprobs()
    for row in rows:
        flat.start_indices.append(len(flat.logprobs))
        for token, value, rank in step(row, k):
            flat.token_ids.append(token)
            flat.logprobs.append(value)
            flat.ranks.append(rank)
            flat.decoded_tokens.append(None)
        flat.end_indices.append(len(flat.logprobs))
    return flat


def output(rows: list[Row], logprobs: Any, **changes: Any) -> RequestOutput:
    tokens = [sampled for sampled, _ in rows]
    return RequestOutput("7", [1, 2, 3], [CompletionOutput(0, "four", tokens, logprobs, **changes)])


def assert_arrays(found: Generation, *rows: tuple[float, float, float]) -> None:
    expected = np.array(rows, dtype=np.float64).reshape(-1, 3).T
    for got, want in zip((found.logprob, found.top1, found.top2), expected, strict=True):
        np.testing.assert_array_equal(got, want)


GREEDY = (0, [(0, -0.1), (1, -3.0), (2, -4.0)])
SECOND = (1, [(0, -0.4), (1, -1.5), (2, -4.0)])
LAST = (2, [(0, -0.4), (1, -1.5), (2, -4.0)])
TIE = (1, [(0, -0.7), (1, -0.7), (2, -4.0)])
ROWS = [GREEDY, SECOND, LAST, TIE]
TRUE = [(-0.1, -0.1, -3.0), (-1.5, -0.4, -1.5), (-4.0, -0.4, -1.5), (-0.7, -0.7, -0.7)]


@pytest.mark.parametrize("shape", [as_dicts, as_flat])
def test_an_output_is_read(shape: Any) -> None:
    found = generation_of(output(ROWS, shape(ROWS, 2)))
    assert_arrays(found, *TRUE)
    assert (found.id, found.text, found.finish_reason) == ("7", "four", "stop")
    assert (found.prompt_tokens, found.output_tokens, found.token_coverage) == (3, 4, 1.0)


def test_flat_repeats_the_sampled_token() -> None:
    """Sorting the slice would give margin 0 wherever the sampled token is the top one."""
    flat = as_flat([GREEDY], 2)
    assert flat.logprobs == [-0.1, -0.1, -3.0]
    assert signals_of(generation_of(output([GREEDY], flat))).h2 == pytest.approx(-2.9)


def test_flat_whose_ranks_are_none_is_read_by_value() -> None:
    """With `logprob_token_ids` ranks are positions in that list; entries appended dict by dict do
    not repeat the sampled token."""
    odd = FlatLogprobs(
        [0, 4], [4, 7], [2, 2, 1, 0, 0, 1, 2], [-4.0, -4.0, -1.5, -0.4, -0.1, -3.0, -4.0]
    )
    odd.ranks = [9, 1, 2, 3, 1, 2, 3]
    found = generation_of(output([LAST, GREEDY], odd))
    assert_arrays(found, (-4.0, -0.4, -1.5), (-0.1, -0.1, -3.0))


def test_values_have_precedence_over_ranks() -> None:
    """Under `logprob_token_ids` it is the position in that list."""
    dicts = as_dicts(ROWS, 2)
    for each in dicts:
        for i, entry in enumerate(reversed(each.values())):
            entry.rank = i + 1
    assert_arrays(generation_of(output([LAST], dicts[2:3])), TRUE[2])


@pytest.mark.parametrize("shape", [as_dicts, as_flat])
def test_k_1_has_a_margin_only_where_the_sampled_token_is_second(shape: Any) -> None:
    """Two entries only if the sampled token is outside; its rank says whether it is the second."""
    found = generation_of(output(ROWS[:3], shape(ROWS[:3], 1)))
    assert_arrays(found, (-0.1, -0.1, nan), (-1.5, -0.4, -1.5), (-4.0, -0.4, nan))
    assert found.token_coverage == pytest.approx(1 / 3)
    assert signals_of(found).state is SignalState.PARTIAL


@pytest.mark.parametrize("shape", [as_dicts, as_flat])
def test_k_0_has_no_margins(shape: Any) -> None:
    found = generation_of(output(ROWS, shape(ROWS, 0)))
    assert signals_of(found).n_margins == 0
    assert signals_of(found).h1 == pytest.approx((0.1 + 1.5 + 4.0 + 0.7) / 4)


def test_logprobs_none_is_missing() -> None:
    found = generation_of(output(ROWS, None))
    assert (signals_of(found).state, found.output_tokens) == (SignalState.MISSING, 4)


@pytest.mark.parametrize("shape", [as_dicts, as_flat])
def test_the_whole_vocabulary(shape: Any) -> None:
    """`logprobs=-1`."""
    assert_arrays(generation_of(output(ROWS, shape(ROWS, 3))), *TRUE)


@pytest.mark.parametrize("shape", [as_dicts, as_flat])
def test_masked_tokens_and_forced_positions(shape: Any) -> None:
    rows = [(0, [(0, 0.0), (1, -inf), (2, -inf)]), (0, [(0, -0.5), (1, -1.5), (2, -inf)])]
    whole = signals_of(generation_of(output(rows, shape(rows, 2))))
    assert (whole.h2, whole.h3) == (-1.0, pytest.approx(math.exp(-1.0) / 2))
    found = generation_of(output(rows, shape(rows, 2)), skip_forced=True)
    assert_arrays(found, (-0.5, -0.5, -1.5))
    assert found.token_coverage == 1.0


@pytest.mark.parametrize("shape", [as_dicts, as_flat])
def test_logits_mode_is_flagged(shape: Any) -> None:
    rows = [(0, [(0, 10.0), (1, 9.0), (2, -1.0)])]
    found = signals_of(generation_of(output(rows, shape(rows, 2))))
    assert math.isnan(found.h1)
    assert (found.h2, found.state) == (-1.0, SignalState.PARTIAL)


def test_a_generated_eos_counts_and_empty_text_is_an_output() -> None:
    found = generation_of(output([GREEDY], as_dicts([GREEDY], 2), finish_reason="stop"))
    assert found.logprob.size == 1


def test_prompt_logprobs_are_not_the_outputs() -> None:
    one = output([GREEDY], as_dicts([GREEDY], 2))
    one.prompt_logprobs = [None, {5: Logprob(-9.0, 4)}]
    assert_arrays(generation_of(one), TRUE[0])


def test_tokens_without_entries_lower_the_coverage() -> None:
    """Entries are matched by token id: one that is not there, or is for another token, is none."""
    found = generation_of(output(ROWS, as_dicts(ROWS[:2], 2)))
    assert (found.logprob.size, found.token_coverage) == (2, 0.5)
    other = output([GREEDY], as_dicts([GREEDY], 2))
    other.outputs[0].token_ids = [99]
    assert_arrays(generation_of(other), (nan, -0.1, -3.0))


def test_several_completions_and_several_requests() -> None:
    """Named request/index; a list is read in order."""
    many = output([GREEDY], as_dicts([GREEDY], 2))
    many.outputs.append(CompletionOutput(1, "five", [1, 2], as_dicts([SECOND, LAST], 2)))
    assert [g.id for g in generations_of(many)] == ["7/0", "7/1"]
    assert [g.logprob.size for g in as_generations([many, many])] == [1, 2, 1, 2]
    with pytest.raises(BadInputError, match="2 completions"):
        generation_of(many)
    with pytest.raises(BadInputError, match="2 choices"):
        as_generation(many)
    assert [g.id for g in as_generations(many, id="x")] == ["x/0", "x/1"]


@pytest.mark.parametrize("shape", [as_dicts, as_flat])
@pytest.mark.parametrize("delta", [False, True])
def test_streams_of_async_llm(shape: Any, delta: bool) -> None:
    """CUMULATIVE repeats everything, DELTA sends slices; completions interleave."""
    reader = StreamReader(delta=delta)
    for i in range(len(ROWS)):
        part = slice(i, i + 1) if delta else slice(0, i + 1)
        parts = [
            CompletionOutput(
                j, "four"[part], [r[0] for r in rows[part]], shape(rows[part], 2), None
            )
            for j, rows in enumerate((ROWS, ROWS[::-1]))
        ]
        reader.add(RequestOutput("7", [1, 2, 3], parts[:: 1 if i % 2 else -1]))
    first, second = reader.generations()
    assert_arrays(first, *TRUE)
    assert_arrays(second, *TRUE[::-1])
    assert (first.id, first.text, first.finish_reason) == ("7/0", "four", None)
    assert StreamReader().generations() == []


def test_prepared_raises_and_never_lowers() -> None:
    """On a clone. `False` stays, and with `logprob_token_ids` no k can be set."""
    cases = {None: 2, 0: 2, 1: 2, 2: 2, 5: 5, -1: -1}
    for asked, given_ in cases.items():
        params = SamplingParams(asked)
        assert prepared(params).logprobs == given_
        assert params.logprobs == asked
    assert prepared(SamplingParams(False)).logprobs is False
    assert prepared(SamplingParams(None, [5])).logprobs is None
    assert prepared(SamplingParams(3), 5).logprobs == 5


@pytest.mark.parametrize(
    "bad",
    [
        None,
        7,
        {},
        {"outputs": 3},
        {"outputs": [{}]},
        {"outputs": [{"token_ids": 3}]},
        {"outputs": [{"token_ids": [1], "logprobs": 3}]},
        {"outputs": [{"token_ids": [1], "logprobs": [3]}]},
        {"outputs": [{"token_ids": [1], "logprobs": [{"1": {"logprob": "x"}}]}]},
        {"outputs": [{"token_ids": [1], "logprobs": {"start_indices": 3}}]},
        {"outputs": [{"token_ids": [1], "logprobs": {"start_indices": [0], "logprobs": [-1.0]}}]},
    ],
    ids=repr,
)
def test_an_object_that_is_not_an_output_is_bad_input(bad: Any) -> None:
    with pytest.raises(BadInputError):
        generations_of(bad)


@pytest.mark.parametrize("seed", range(2))
def test_whatever_json_says_is_read_or_bad_input(seed: int) -> None:
    """Not a TypeError from somewhere inside."""
    rng = random.Random(seed)
    dicts, flat = (asdict(output(ROWS, shape(ROWS, 2))) for shape in (as_dicts, as_flat))
    for _ in range(400):
        for data in (dicts, json.loads(json.dumps(dicts)), flat):
            with contextlib.suppress(BadInputError):
                generations_of(mutated(data, rng))


# -- every shape -----------------------------------------------------------------------------------


VALUES = st.one_of(
    st.floats(-20.0, 0.0, width=32), st.sampled_from([0.0, -0.5, -0.5, -1.0]), st.just(-inf)
)


@st.composite
def rows_of(draw: st.DrawFn) -> list[Row]:
    size = draw(st.integers(6, 8))
    rows = []
    for _ in range(draw(st.integers(1, 8))):
        values = draw(st.lists(VALUES, min_size=size, max_size=size))
        if all(value == -inf for value in values):
            values[0] = 0.0
        rows.append((draw(st.integers(0, size - 1)), list(enumerate(values))))
    return rows


def slow_signals(rows: list[Row]) -> Signals:
    """From the whole vocabulary, which no provider shows."""
    columns = []
    for sampled, vocabulary in rows:
        top1, top2 = sorted((value for _, value in vocabulary), reverse=True)[:2]
        columns.append((dict(vocabulary)[sampled], top1, top2))
    return signals_of(Generation("g", "", *np.array(columns).T))


def http(value: float) -> float:
    return max(value, -9999.0)


def entry(row: Row, k: int, shuffle: Any) -> dict[str, Any]:
    """Of chat and Responses: texts and bytes, cut at k."""
    sampled, own, _ = step(row, k)[0]
    unique = list({token: value for token, value, _ in step(row, k)}.items())[:k]
    shuffle.shuffle(unique)
    made = [{"token": f"<{t}>", "bytes": [t], "logprob": http(v)} for t, v in unique]
    return {"token": f"<{sampled}>", "bytes": [sampled], "logprob": http(own), "top_logprobs": made}


def completion_logprobs(rows: list[Row], k: int, text: str, shuffle: Any) -> dict[str, Any]:
    top = []
    for row in rows:
        unique = [(text.format(t), http(v)) for t, v, _ in step(row, k)]
        shuffle.shuffle(unique)
        top.append(dict(unique))
    return {
        "tokens": [text.format(sampled) for sampled, _ in rows],
        "token_logprobs": [http(dict(vocabulary)[sampled]) for sampled, vocabulary in rows],
        "top_logprobs": top,
    }


@SETTINGS
@given(
    rows=rows_of(), k=st.integers(3, 5), shuffle=st.randoms(use_true_random=False), data=st.data()
)
def test_one_generation_has_one_set_of_signals_through_every_shape(
    rows: list[Row], k: int, shuffle: Any, data: st.DataObject
) -> None:
    """Whatever the order of the alternatives: that of the full distribution."""
    expected = slow_signals(rows)
    entries = [entry(row, k, shuffle) for row in rows]
    message = {"role": "assistant", "content": "x"}
    chat = {"index": 0, "message": message, "logprobs": {"content": entries}, "stop_reason": None}
    part = {"type": "output_text", "text": "x", "logprobs": entries}
    dicts = as_dicts(rows, k)
    shuffled = [dict(shuffle.sample(list(d.items()), len(d))) for d in dicts]
    tokens = [sampled for sampled, _ in rows]
    plain = {
        "request_id": "a",
        "outputs": [
            {
                "token_ids": tokens,
                "logprobs": [{t: asdict(e) for t, e in d.items()} for d in shuffled],
            }
        ],
    }
    cuts = sorted(data.draw(st.lists(st.integers(0, len(rows)), max_size=3)))
    slices = [slice(a, b) for a, b in zip([0, *cuts], [*cuts, len(rows)], strict=True)]
    shapes: dict[str, Any] = {
        "vLLM dicts": output(rows, dicts),
        "vLLM dicts, shuffled": output(rows, shuffled),
        "vLLM flat": output(rows, as_flat(rows, k)),
        "vLLM dicts, JSON": json.loads(json.dumps(plain)),
        "vLLM flat, JSON": {
            "outputs": [{"token_ids": tokens, "logprobs": asdict(as_flat(rows, k))}]
        },
        "chat": {"id": "a", "choices": [chat]},
        "chat, stream": [
            {"id": "a", "choices": [{"index": 0, "delta": {}, "logprobs": {"content": entries[s]}}]}
            for s in slices
        ],
        "completions, ids": {
            "choices": [
                {"text": "x", "logprobs": completion_logprobs(rows, k, "token_id:{}", shuffle)}
            ]
        },
        "completions, texts": {
            "choices": [{"text": "x", "logprobs": completion_logprobs(rows, k, "<{}>", shuffle)}]
        },
        "Responses": {"object": "response", "output": [{"type": "message", "content": [part]}]},
        "Responses, stream": [
            {"type": "response.output_text.delta", "delta": "x", "logprobs": entries[s]}
            for s in slices
        ],
    }
    for name, response in shapes.items():
        (found,) = as_generations(response, id="a")
        assert repr(signals_of(found)) == repr(expected), name


@SETTINGS
@given(rows=rows_of(), k=st.integers(2, 5), shuffle=st.randoms(use_true_random=False))
def test_colliding_texts_give_the_right_margin_or_none(
    rows: list[Row], k: int, shuffle: Any
) -> None:
    """All tokens but two have no text of their own, as pieces of characters have none."""
    clean = (0, [(i, -0.1 - i) for i in range(len(rows[0][1]))])
    rows = [clean, *rows]
    chosen, top = [], []
    for row in rows:
        names = {
            t: ("", "\ufffd")[t % 2] if t > 1 and row is not clean else f"<{t}>" for t in range(8)
        }
        chosen.append(names[row[0]])
        top.append({names[t]: http(v) for t, v, _ in step(row, k)})
    logprobs = completion_logprobs(rows, k, "{}", shuffle) | {"tokens": chosen, "top_logprobs": top}
    found = as_generation({"id": "a", "choices": [{"text": "x", "logprobs": logprobs}]})
    for i, (_, vocabulary) in enumerate(rows):
        top1, top2 = sorted((http(value) for _, value in vocabulary), reverse=True)[:2]
        assert math.isnan(found.top2[i]) or (found.top1[i], found.top2[i]) == (top1, top2)
    assert not math.isnan(found.top2[0])
