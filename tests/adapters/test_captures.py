"""Recorded answers of a real vLLM server and engine, replayed through the real client and readers.

tests/live/capture.py recorded them: the same generation over every route. The truth is computed
here, position by position, from the offline dict lists. Where a route carries less, a reader may
leave values unknown, and must report that; it must never give another value.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import math
import re
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import httpx2
import numpy as np
import openai
import pytest

from gatekeeper import Budget, VerificationGate
from gatekeeper.adapters import openai as openai_reader
from gatekeeper.adapters import vllm as vllm_reader
from gatekeeper.signals import signals_of
from gatekeeper.types import Generation, SignalState

Json = dict[str, Any]
CAPTURES: dict[str, dict[str, Json]] = {
    path.stem: {capture["name"]: capture for capture in json.loads(path.read_text())}
    for path in sorted((Path(__file__).parent / "captures").glob("*.json"))
}
SCENARIOS = [name for name, captures in CAPTURES.items() if "dict-k5" in captures]
OVER_HTTP = [
    pytest.param(capture, id=f"{scenario}-{name}")
    for scenario in [*SCENARIOS, "others", "reasoned"]
    for name, capture in CAPTURES[scenario].items()
    if "path" in capture
]
BASE_URL = "http://vllm.test/v1"


# -- what is true ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Truth:
    """One completion by the offline dict list with the largest k: (L,) arrays, and the signals."""

    text: str
    logprob: np.ndarray
    top1: np.ndarray
    top2: np.ndarray

    @property
    def signals(self) -> tuple[float, float, float]:
        """Straight from the paper, with exp(-inf) = 0 for a margin over a masked token."""
        margins = [a - b for a, b in zip(self.top1, self.top2, strict=True)]
        n = len(margins)
        h1 = -sum(self.logprob) / n
        return h1, -min(margins), sum(math.exp(-max(m, -5.0)) for m in margins) / n


def truths(scenario: str) -> list[Truth]:
    captures = CAPTURES[scenario]
    output = captures.get("dict-k20", captures["dict-k5"])["output"]
    result = []
    for completion in output["outputs"]:
        chosen, top1, top2 = [], [], []
        for token, position in zip(completion["token_ids"], completion["logprobs"], strict=True):
            values = {id: logprob for id, logprob, *_ in position}
            first, second, *_ = sorted(values.values(), reverse=True)
            chosen.append(values[token])
            top1.append(first)
            top2.append(second)
        result.append(Truth(completion["text"], *map(np.array, (chosen, top1, top2))))
    return result


def assert_same(generation: Generation, truth: Truth) -> None:
    """Assert that a generation has every true value, to 1e-6."""
    signals = signals_of(generation)
    assert generation.text == truth.text
    assert generation.token_coverage == 1.0
    assert signals.state is SignalState.OK
    assert signals.n_tokens == len(truth.logprob)
    assert (signals.h1, signals.h2, signals.h3) == pytest.approx(truth.signals, abs=1e-6)


def assert_nothing_else(generation: Generation, truth: Truth) -> None:
    """Assert that each value is the true one or NaN; masked is -inf or less than -9998."""
    for name in ("logprob", "top1", "top2"):
        seen = getattr(generation, name)
        true = np.maximum(getattr(truth, name)[: len(seen)], -9999.0)
        known = ~np.isnan(seen)
        if name != "logprob":  # alone, they tell no margin
            known &= ~np.isnan(generation.top1 + generation.top2)
        np.testing.assert_allclose(np.maximum(seen, -9999.0)[known], true[known], atol=1e-9)


# -- replaying ------------------------------------------------------------------------------------


def in_pieces(body: str) -> Iterator[bytes]:
    """A body in the pieces of a network: cut anywhere, even within an event or a character."""
    data = body.encode()
    return (data[i : i + 97] for i in range(0, len(data), 97))


def answer(capture: Json, request: httpx2.Request, content: Any) -> httpx2.Response:
    assert request.url.path == capture["path"]
    assert json.loads(request.content) == capture["request"]
    headers = {"content-type": capture["content_type"]}
    return httpx2.Response(capture["status"], headers=headers, content=content)


def call(client: Any, path: str, request: Json) -> Any:
    """The call that makes the request; fields that OpenAI does not have go in `extra_body`."""
    create = {
        "/v1/chat/completions": client.chat.completions.create,
        "/v1/completions": client.completions.create,
        "/v1/responses": client.responses.create,
    }[path]
    known = inspect.signature(create).parameters
    arguments: Json = {k: v for k, v in request.items() if k in known}
    extra = {k: v for k, v in request.items() if k not in known}
    return create(**arguments, extra_body=extra or None)


def client_of(capture: Json) -> openai.OpenAI:
    transport = httpx2.MockTransport(lambda r: answer(capture, r, in_pieces(capture["body"])))
    return openai.OpenAI(
        base_url=BASE_URL,
        api_key="none",
        max_retries=0,
        http_client=httpx2.Client(transport=transport),
    )


def replay(capture: Json) -> Any:
    """The response through `OpenAI`; of a stream, its chunks."""
    with client_of(capture) as client:
        response = call(client, capture["path"], capture["request"])
        return list(response) if capture["request"].get("stream") else response


async def replay_async(capture: Json) -> Any:
    async def pieces() -> AsyncIterator[bytes]:
        for piece in in_pieces(capture["body"]):
            yield piece

    async def handle(request: httpx2.Request) -> httpx2.Response:
        return answer(capture, request, pieces())

    async with openai.AsyncOpenAI(
        base_url=BASE_URL,
        api_key="none",
        max_retries=0,
        http_client=httpx2.AsyncClient(transport=httpx2.MockTransport(handle)),
    ) as client:
        response = await call(client, capture["path"], capture["request"])
        return [chunk async for chunk in response] if capture["request"].get("stream") else response


def read(response: Any, **options: Any) -> list[Generation]:
    if not isinstance(response, list):
        return openai_reader.generations_of(response, **options)
    reader = openai_reader.StreamReader(strict=True, **options)
    for chunk in response:
        reader.add(chunk)
    return reader.generations()


def read_one(scenario: str, name: str, **options: Any) -> Generation:
    (generation,) = read(replay(CAPTURES[scenario][name]), **options)
    return generation


def same_generations(ones: Sequence[Generation], others: Sequence[Generation]) -> bool:
    def plain(generation: Generation) -> list[Any]:
        values = (getattr(generation, f.name) for f in fields(generation))
        return [v.tolist() if isinstance(v, np.ndarray) else v for v in values]

    return repr([plain(g) for g in ones]) == repr([plain(g) for g in others])


# -- offline objects, of the shapes that vllm.outputs and vllm.logprobs have ----------------------


@dataclass
class Logprob:
    logprob: float
    rank: int | None
    decoded_token: str | None


@dataclass
class FlatLogprobs(Sequence[dict[int, Logprob]]):
    start_indices: list[int]
    end_indices: list[int]
    token_ids: list[int]
    logprobs: list[float]
    ranks: list[int | None]
    decoded_tokens: list[str | None]

    def __len__(self) -> int:
        return len(self.start_indices)

    def __getitem__(self, position: Any) -> Any:
        entries = range(self.start_indices[position], self.end_indices[position])
        return {
            self.token_ids[i]: Logprob(self.logprobs[i], self.ranks[i], self.decoded_tokens[i])
            for i in entries
        }


@dataclass
class Completion:
    index: int
    text: str
    token_ids: list[int]
    cumulative_logprob: float | None
    finish_reason: str | None
    stop_reason: int | str | None
    logprobs: Any


@dataclass
class RequestOutput:
    request_id: str
    prompt: str | None
    prompt_token_ids: list[int] | None
    finished: bool
    outputs: list[Completion]


def as_object(output: Json) -> RequestOutput:
    def completion(fields: Json) -> Completion:
        logprobs = fields["logprobs"]
        if isinstance(logprobs, dict):
            logprobs = FlatLogprobs(**logprobs)
        elif logprobs is not None:
            logprobs = [{id: Logprob(*rest) for id, *rest in position} for position in logprobs]
        return Completion(**{**fields, "logprobs": logprobs})

    return RequestOutput(**{**output, "outputs": [completion(c) for c in output["outputs"]]})


def as_logged(output: Json) -> Json:
    """What `json.dumps` makes of the dict lists: token ids become strings."""

    def completion(fields: Json) -> Json:
        if not isinstance(fields["logprobs"], list):
            return fields
        positions = [
            {
                str(id): {"logprob": logprob, "rank": rank, "decoded_token": token}
                for id, logprob, rank, token in position
            }
            for position in fields["logprobs"]
        ]
        return {**fields, "logprobs": positions}

    return {**output, "outputs": [completion(c) for c in output["outputs"]]}


def read_offline(scenario: str, name: str, **options: Any) -> list[Generation]:
    return vllm_reader.generations_of(as_object(CAPTURES[scenario][name]["output"]), **options)


# -- every capture --------------------------------------------------------------------------------


def test_captures_are_small() -> None:
    folder = Path(__file__).parent / "captures"
    assert sum(path.stat().st_size for path in folder.iterdir()) <= 1_000_000


@pytest.mark.parametrize("capture", OVER_HTTP)
def test_async_json_and_sync_read_alike(capture: Json) -> None:
    found = read(replay(capture))
    assert found
    assert same_generations(read(asyncio.run(replay_async(capture))), found)
    if capture["request"].get("stream"):
        lines = capture["body"].splitlines()
        data = [line.removeprefix("data: ") for line in lines if line.startswith("data: {")]
        assert same_generations(read([json.loads(line) for line in data]), found)
    else:
        assert same_generations(read(json.loads(capture["body"])), found)


# Routes that lack the second most probable token of some or all positions.
POOR = {
    ("sampled", "chat-k1"),
    ("sampled", "chat-k2"),
    ("sampled", "responses-k1"),
    ("sampled", "responses-k2"),
    ("sampled", "completions-k1"),
    ("sampled", "completions-strings-k1"),
    ("sampled", "dict-k0"),
    ("sampled", "flat-k0"),
    ("sampled", "dict-k1"),
    ("sampled", "flat-k1"),
    ("pieces", "completions-strings-k5"),
}


@pytest.mark.parametrize(
    ("scenario", "name"),
    [
        (scenario, name)
        for scenario in SCENARIOS
        for name in CAPTURES[scenario]
        if not name.startswith("async")
    ],
)
def test_a_generation_is_the_same_over_all_routes(scenario: str, name: str) -> None:
    capture = CAPTURES[scenario][name]
    offline = "output" in capture
    found = read_offline(scenario, name) if offline else read(replay(capture))
    for generation, truth in zip(found, truths(scenario), strict=True):
        if (scenario, name) in POOR:
            assert generation.text == truth.text
            assert generation.token_coverage < 1.0
            assert signals_of(generation).state is SignalState.PARTIAL
            assert len(generation.logprob) == len(truth.logprob)
            assert_nothing_else(generation, truth)
        elif name.startswith("responses-stream") and generation.logprob.size < truth.logprob.size:
            # The stream has lost tokens without text, such as the one that ends the output.
            assert generation.text == truth.text
            assert generation.token_coverage == generation.logprob.size / truth.logprob.size
        else:
            assert_same(generation, truth)
    if offline:
        logged = vllm_reader.generations_of(as_logged(capture["output"]))
        assert same_generations(logged, found)


@pytest.mark.parametrize(
    ("scenario", "name"),
    [
        (scenario, name)
        for scenario in SCENARIOS
        for name in CAPTURES[scenario]
        if re.fullmatch("(chat|completions|responses)(-stream)?-k5", name)
    ],
)
def test_the_gate_asks_for_what_was_captured(scenario: str, name: str) -> None:
    """The user's request, which asks for no log-probabilities, leaves as the recorded one."""
    capture = CAPTURES[scenario][name]
    asked = {"logprobs", "top_logprobs", "include", "return_tokens_as_token_ids"}
    request = {k: v for k, v in capture["request"].items() if k not in asked}
    budget = Budget(fraction=0.5)
    with client_of(capture) as client, VerificationGate("random", budget=budget) as gate:
        wrapped = gate.wrap(client, return_tokens_as_token_ids=True)
        response = call(wrapped, capture["path"], request)
        if "-stream" in name:
            assert [c.to_json() for c in response] == [c.to_json() for c in replay(capture)]
        results = gate.results_of(response)
    assert [r.signals for r in results] == [signals_of(g) for g in read(replay(capture))]


@pytest.mark.parametrize("scenario", ["sampled", "two"])
@pytest.mark.parametrize("shape", ["dict", "flat"])
@pytest.mark.parametrize("kind", ["cumulative", "delta"])
def test_async_llm_reads_as_the_beginning(scenario: str, shape: str, kind: str) -> None:
    reader = vllm_reader.StreamReader(delta=kind == "delta")
    for chunk in CAPTURES[scenario][f"async-{kind}-{shape}-k2"]["chunks"]:
        reader.add(as_object(chunk))
    for generation, truth in zip(reader.generations(), truths(scenario), strict=True):
        first = slice(len(generation.logprob))
        assert len(generation.logprob) == generation.output_tokens == 8
        assert generation.token_coverage == 1.0
        assert generation.finish_reason == "length"
        assert truth.text.startswith(generation.text)
        for name in ("logprob", "top1", "top2"):
            np.testing.assert_array_equal(getattr(generation, name), getattr(truth, name)[first])


# -- what is peculiar to them ---------------------------------------------------------------------


def test_chat_at_k_2_loses_rank_2_where_the_sampled_token_is_another() -> None:
    """The sampled token comes first and the list is cut at k: its rank may be 2 or any other."""
    (truth,) = truths("sampled")
    assert (truth.logprob < truth.top2).sum() >= len(truth.logprob) / 2
    known = truth.logprob == truth.top1
    for name in ("chat-k2", "responses-k2"):
        generation = read_one("sampled", name)
        np.testing.assert_array_equal(~np.isnan(generation.top2), known)
        assert generation.token_coverage == np.mean(known)
        assert generation.k_seen == 2


def test_flat_logprobs_repeat_the_sampled_token() -> None:
    """A margin from the two largest of a slice would be 0 wherever the model was greedy."""
    flat = CAPTURES["greedy"]["flat-k5"]["output"]["outputs"][0]["logprobs"]
    width = flat["end_indices"][0]
    assert width == 5 + 1
    slices = [flat["logprobs"][i : i + width] for i in flat["start_indices"]]
    assert all(sorted(s)[-1] == sorted(s)[-2] for s in slices)
    (generation,) = read_offline("greedy", "flat-k5")
    assert (generation.top1 > generation.top2).all()


def test_two_tokens_of_one_probability_are_two() -> None:
    (truth,) = truths("tied")
    assert (truth.top1 == truth.top2).any()
    signals = signals_of(read_one("tied", "chat-k5"))
    assert math.copysign(1.0, signals.h2) == 1.0
    assert signals.h2 == 0.0


def test_pieces_of_characters_collide_where_tokens_are_named_by_text() -> None:
    def sizes(name: str) -> list[int]:
        body = json.loads(CAPTURES["pieces"][name]["body"])
        return [len(d) for d in body["choices"][0]["logprobs"]["top_logprobs"]]

    assert min(sizes("completions-k5")) >= 5 > min(sizes("completions-strings-k5"))


def test_responses_stream_loses_tokens_without_text() -> None:
    generation = read_one("pieces", "responses-stream-k5")
    (truth,) = truths("pieces")
    assert 0 < len(generation.logprob) < len(truth.logprob) == generation.output_tokens
    assert generation.token_coverage <= len(generation.logprob) / len(truth.logprob)
    assert read_one("pieces", "chat-stream-k5").token_coverage == 1.0


def test_the_end_token_counts_and_a_stop_string_is_not_cut_from_the_tokens() -> None:
    end = read_one("greedy", "chat-k5")
    assert (end.finish_reason, end.output_tokens) == ("stop", 14)
    assert len(end.text) == 17
    stopped = read_one("stopped", "chat-k5")
    assert stopped.text.endswith("\\b")
    assert len(stopped.logprob) == stopped.output_tokens == 9


@pytest.mark.parametrize("name", ["echo", "echo-stream"])
def test_an_echoed_prompt_is_no_output(name: str) -> None:
    (truth,) = truths("greedy")
    generation = read_one("others", name)
    signals = signals_of(generation)
    assert (signals.n_tokens, generation.output_tokens) == (14, 14)
    assert (signals.h1, signals.h2, signals.h3) == pytest.approx(truth.signals, abs=1e-6)


def test_an_echoed_prompt_of_unknown_length_leaves_nothing_known() -> None:
    generation = read_one("others", "echo-stream-without-usage")
    assert signals_of(generation).state is SignalState.MISSING


def test_all_tokens_of_a_tool_call_count_and_most_are_forced() -> None:
    plain, streamed = read_one("others", "tool"), read_one("others", "tool-stream")
    assert plain.text == streamed.text == ""
    assert len(plain.logprob) == plain.output_tokens > 40
    assert plain.token_coverage == 1.0
    np.testing.assert_array_equal(plain.logprob, streamed.logprob)
    free = read_one("others", "tool", skip_forced=True)
    assert 0 < len(free.logprob) == free.output_tokens < len(plain.logprob) / 2
    assert free.token_coverage == 1.0
    for name in ("responses-tool", "responses-tool-stream"):
        assert read_one("others", name).token_coverage == 0.0


@pytest.mark.parametrize(
    "name", ["dict-k5", "flat-k5", "chat-k5", "completions-k5", "responses-k5"]
)
def test_forced_tokens_are_skipped_over_all_routes(name: str) -> None:
    """-inf offline and -9999 over HTTP are the same."""
    (truth,) = truths("forced")
    free = np.isfinite(truth.top2)
    offline = name[:4] in ("dict", "flat")
    options = {"skip_forced": True}
    (generation,) = (
        read_offline("forced", name, **options)
        if offline
        else read(replay(CAPTURES["forced"][name]), **options)
    )
    assert 0 < free.sum() < len(free)
    np.testing.assert_array_equal(generation.logprob, truth.logprob[free])
    np.testing.assert_array_equal(generation.top2, truth.top2[free])


@pytest.mark.parametrize("name", ["chat-k3", "chat-stream-k3"])
def test_reasoning_is_separated_from_the_answer(name: str) -> None:
    everything = read_one("reasoned", name, scope="all")
    reasoning = read_one("reasoned", name, scope="reasoning")
    content = read_one("reasoned", name, scope="content")
    assert content.text == "\\boxed{77}"
    # "\\", "boxed", "{", "7", "7", "}" and the end token
    assert len(content.logprob) == content.output_tokens == 7
    assert len(reasoning.logprob) + 7 == len(everything.logprob)
    np.testing.assert_array_equal(
        np.concatenate([reasoning.logprob, content.logprob]), everything.logprob
    )


@pytest.mark.parametrize(
    ("name", "state"),
    [
        ("chat-none", SignalState.MISSING),
        ("completions-none", SignalState.MISSING),
        ("responses-none", SignalState.MISSING),
        ("responses-top-only", SignalState.MISSING),
        ("chat-k0", SignalState.PARTIAL),
        ("completions-k0", SignalState.PARTIAL),
        ("responses-include-only", SignalState.PARTIAL),
    ],
)
def test_half_a_request_gives_no_margin(name: str, state: SignalState) -> None:
    (truth,) = truths("greedy")
    generation = read_one("errors", name)
    assert generation.text == truth.text
    assert generation.token_coverage == 0.0
    signals = signals_of(generation)
    assert signals.state is state
    if state is SignalState.PARTIAL:
        assert signals.h1 == pytest.approx(truth.signals[0], abs=1e-6)
        assert math.isnan(signals.h2)


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("chat-k21", openai.BadRequestError),
        ("completions-k21", openai.BadRequestError),
        ("responses-k21", openai.BadRequestError),
        ("chat-top-without-logprobs", openai.BadRequestError),
        ("chat-unknown-model", openai.NotFoundError),
    ],
)
def test_refusals_of_the_server(name: str, error: type[openai.APIStatusError]) -> None:
    with pytest.raises(error):
        replay(CAPTURES["errors"][name])


@pytest.mark.parametrize("shape", ["dict", "flat"])
def test_logprobs_modes(shape: str) -> None:
    """Temperature 2 and top_k = 3, which only the processed values know."""
    (raw,) = read_offline("modes", f"raw_logprobs-{shape}")
    (processed,) = read_offline("modes", f"processed_logprobs-{shape}")
    (raw_logits,) = read_offline("modes", f"raw_logits-{shape}")
    (logits,) = read_offline("modes", f"processed_logits-{shape}")
    margin = raw.top1 - raw.top2
    for other, factor in ((processed, 2.0), (raw_logits, 1.0), (logits, 2.0)):
        assert other.text == raw.text
        np.testing.assert_allclose((other.top1 - other.top2) * factor, margin, atol=1e-5)
    assert signals_of(raw).state is signals_of(processed).state is SignalState.OK
    for generation in (raw_logits, logits):  # the margins stand, the likelihood is unknown
        signals = signals_of(generation)
        assert math.isnan(signals.h1)
        assert signals.h2 <= 0.0 < signals.h3 <= 1.0
