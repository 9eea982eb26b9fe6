"""Ollama, llama-server, Anthropic, Gemini, transformers: their shapes give the model's own values.

The bundled model's answers, in the shape of each provider, are read back and compared with what
the model itself reports.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import astuple
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from provider_shapes import (
    Answer,
    K,
    anthropic,
    anthropic_stream,
    gemini,
    gemini_stream,
    in_snake_case,
    llama,
    llama_cpp_python,
    llama_openai,
    llama_stream,
    ollama,
    ollama_stream,
)

from gatekeeper import (
    BadInputError,
    Budget,
    Generation,
    UndecidedState,
    Verdict,
    VerificationGate,
)
from gatekeeper.adapters.bundled import BundledModel
from gatekeeper.cli import main
from gatekeeper.io.responses import as_generation, as_generations
from gatekeeper.signals import signals_of

PROMPT = "What is 47 + 95 - 18?"


@pytest.fixture(scope="module")
def model() -> BundledModel:
    return BundledModel(threads=1)


@pytest.fixture(scope="module")
def answer(model: BundledModel) -> Answer:
    return Answer(model, PROMPT)


@pytest.fixture(scope="module")
def expected(model: BundledModel) -> Generation:
    return model.generate([PROMPT], ids=["a"])[0]


def objects(value: Any) -> Any:
    """As the objects of a package: attributes in place of keys."""
    if isinstance(value, dict):
        return SimpleNamespace(**{name: objects(each) for name, each in value.items()})
    return [objects(each) for each in value] if isinstance(value, list) else value


SHAPES: dict[str, Callable[[Answer], Any]] = {
    "ollama chat": lambda a: ollama(a, chat=True),
    "ollama generate": lambda a: ollama(a, chat=False),
    "ollama chat stream": lambda a: ollama_stream(a, chat=True),
    "ollama generate stream": lambda a: ollama_stream(a, chat=False),
    "llama-server": llama,
    "llama-server, probs": lambda a: llama(a, key="probs"),
    "llama-server after sampling": lambda a: llama(a, entries="probs"),
    "llama-server, old": lambda a: llama(a, entries="old"),
    "llama-server stream": llama_stream,
    "llama-server, OpenAI's completions": llama_openai,
    "llama-cpp-python chat": llama_cpp_python,
    "gemini": gemini,
    "gemini stream": gemini_stream,
    "gemini, snake case": lambda a: in_snake_case(gemini(a)),
}


@pytest.mark.parametrize("as_objects", [False, True], ids=["json", "objects"])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_shape_gives_the_models_own_values(
    answer: Answer, expected: Generation, shape: str, as_objects: bool
) -> None:
    response = SHAPES[shape](answer)
    found = as_generation(objects(response) if as_objects else response, id="a")
    assert (found.id, found.text) == ("a", expected.text)
    assert found.output_tokens == expected.output_tokens
    assert found.prompt_tokens == expected.prompt_tokens
    assert (found.finish_reason or "").lower() == expected.finish_reason
    assert found.model
    for name in ("logprob", "top1", "top2"):
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), atol=1e-6)
    assert found.token_coverage == 1.0
    assert found.k_seen >= K


@pytest.mark.parametrize("as_objects", [False, True], ids=["json", "objects"])
def test_anthropic_has_no_log_probabilities(answer: Answer, as_objects: bool) -> None:
    """Text, counts and the reason are read; the decision is a draw, or of features."""
    expected = ("msg_1", answer.text, answer.prompt_tokens, answer.tokens, "claude-1")
    for response, reason in (
        (anthropic(answer), "end_turn"),
        (anthropic(answer, tool=True), "tool_use"),
        (anthropic_stream(answer), "end_turn"),
    ):
        found = as_generation(objects(response) if as_objects else response)
        assert (
            found.id,
            found.text,
            found.prompt_tokens,
            found.output_tokens,
            found.model,
        ) == expected
        assert found.finish_reason == reason
        assert found.logprob.size == 0
    with VerificationGate("cst", budget=Budget(fraction=0.5)) as gate:
        gate.maybe_verify(anthropic(answer))
        assert gate.status().missing_signal == 1


STREAMS = {
    **{name: shape for name, shape in SHAPES.items() if "stream" in name},
    "anthropic": anthropic_stream,
}


@pytest.mark.parametrize("as_objects", [False, True], ids=["json", "objects"])
@pytest.mark.parametrize("shape", STREAMS)
def test_a_stream_is_observed(answer: Answer, shape: str, as_objects: bool) -> None:
    """Chunks pass unchanged, the last one once the gate has decided; a stream that is cut off or
    of no known shape is not decided on."""
    chunks = STREAMS[shape](answer)
    chunks = objects(chunks) if as_objects else chunks
    whole = as_generation(chunks, id="whole")

    async def later() -> AsyncIterator[Any]:
        for chunk in chunks:
            yield chunk

    async def read(stream: Any) -> list[Any]:
        return [chunk async for chunk in stream]

    def cut() -> Iterator[Any]:
        yield from chunks[: len(chunks) // 2]
        raise ConnectionError("cut")

    with VerificationGate("cst", budget=Budget(fraction=0.5), verifier=is_right) as gate:
        stream = gate.observe_stream(iter(chunks), answer.text, id="sync")
        for chunk, sent in zip(stream, chunks, strict=False):
            assert chunk is sent
            if chunk is chunks[-1]:
                break  # as after `if chunk["done"]`
        assert gate.result_of(stream).outcome.verdict is Verdict.PASSED
        for name in ("text", "finish_reason", "output_tokens"):
            assert getattr(gate.output("sync"), name) == getattr(whole, name)
        np.testing.assert_equal(astuple(gate.result_of(stream).signals), astuple(signals_of(whole)))
        stream = gate.observe_stream(later(), answer.text, id="async")
        assert asyncio.run(read(stream)) == chunks
        assert gate.result_of(stream).outcome.verdict is Verdict.PASSED
        broken = gate.observe_stream(cut(), answer.text, id="cut")
        with pytest.raises(ConnectionError):
            list(broken)
        assert gate.result_of(broken).state is UndecidedState.UNFINISHED
        short = gate.observe_stream(chunks[: len(chunks) // 2], answer.text, id="short")
        list(short)
        assert gate.result_of(short).state is UndecidedState.UNFINISHED
        unknown = gate.observe_stream(["It", "is", "5."])
        assert list(unknown) == ["It", "is", "5."]
        assert gate.result_of(unknown).state is UndecidedState.UNREADABLE
        assert "gate.maybe_verify(Generation(id, text), task)" in gate.result_of(unknown).error
        assert gate.status().seen == 2


def is_right(output: Generation, task: Any) -> bool:
    return output.text == task


def test_gemini_with_the_mean_alone(answer: Answer, expected: Generation) -> None:
    found = as_generation(gemini(answer, logprobs=False))
    signals, full = signals_of(found), signals_of(expected)
    assert signals.h1 == pytest.approx(full.h1)
    assert signals.n_tokens == full.n_tokens
    assert np.isnan([signals.h2, signals.h3]).all()


def test_several_candidates_and_several_responses(answer: Answer) -> None:
    two = gemini(answer)
    two["candidates"] += [{**two["candidates"][0], "index": 1}]
    assert [g.id for g in as_generations(two)] == ["r1/0", "r1/1"]
    batch = [llama(answer), llama(answer) | {"index": 1, "content": "other"}]  # of two prompts
    assert [(g.id, g.text) for g in as_generations(batch, id="b")] == [
        ("b/0", answer.text),
        ("b/1", "other"),
    ]


def test_thoughts_do_not_count_unless_they_are_asked_for(answer: Answer) -> None:
    """Whether a server's tokens have the thoughts or not."""
    thought = "It adds."
    entry = {"token": thought, "logprob": -3.0, "bytes": None, "top_logprobs": []}
    before = Answer.__new__(Answer)
    before.__dict__ = {**vars(answer), "entries": [entry, *answer.entries]}
    for response in (
        ollama(before, chat=True, thinking=thought),
        ollama(before, chat=False, thinking=thought),
        gemini(before, thoughts=thought),
    ):
        n = len(answer.entries)
        for scope, size in (("content", n), ("reasoning", 1), ("all", n + 1)):
            (found,) = as_generations(response, id="a", scope=scope)  # type: ignore[arg-type]
            assert found.logprob.size == size
            assert found.text == answer.text
    (found,) = as_generations(gemini(answer, thoughts=thought), scope="content")
    assert found.logprob.size == n


def test_the_chosen_token_alone(answer: Answer) -> None:
    """Without alternatives there is h1, and no margin."""
    bare = Answer.__new__(Answer)
    entries = [{**entry, "top_logprobs": []} for entry in answer.entries]
    bare.__dict__ = {**vars(answer), "entries": entries}
    mean = -np.mean([entry["logprob"] for entry in entries])
    for response in (ollama(bare, chat=True), llama(bare), gemini(bare)):
        signals = signals_of(as_generation(response, id="a"))
        assert signals.h1 == pytest.approx(mean)
        assert np.isnan(signals.h2)


def test_gatekeeper_signals_reads_them_all(
    answer: Answer, expected: Generation, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    responses = {name: shape(answer) for name, shape in SHAPES.items()}
    responses["anthropic"] = anthropic(answer)
    file = tmp_path / "responses.jsonl"
    lines = [json.dumps({"id": name, "response": one}) for name, one in responses.items()]
    file.write_text("\n".join(lines))
    assert main(["signals", str(file), "--json"]) == 0
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["id"] for line in found] == list(responses)
    h1 = signals_of(expected).h1
    assert [line["h1"] for line in found[:-1]] == pytest.approx([h1] * len(SHAPES), abs=1e-6)
    assert found[-1]["signal"] == "missing"


@pytest.mark.parametrize(
    ("response", "said"),
    [
        ({"done": True, "response": "x", "logprobs": 3}, "logprobs=3: a list is needed"),
        ({"done": True, "message": {"content": 3}}, "content=3: text is needed"),
        ({"stop": True, "content": "x", "probs": [{"p": 1}]}, "no entry of a token"),
        (
            {"stop": True, "content": "x", "probs": [{"content": "x", "probs": [{"prob": 7}]}]},
            "prob=7: a probability from 0 to 1",
        ),
        ({"candidates": [{"content": {"parts": 3}}]}, "parts=3: a list is needed"),
        (
            {
                "candidates": [
                    {
                        "logprobsResult": {
                            "chosenCandidates": [{}, {}],
                            "topCandidates": [{"candidates": []}],
                        }
                    }
                ]
            },
            "2 chosenCandidates and 1 topCandidates",
        ),
        ({"candidates": []}, "0 choices"),
        ({"type": "message", "stop_reason": None, "content": "x"}, "content='x': a list"),
        ({"done": True, "response": "x"}, "needs an id of its own"),
        ({"text": "x"}, "has no known shape"),
    ],
    ids=str,
)
def test_unreadable_responses_are_named(response: Any, said: str) -> None:
    with pytest.raises(BadInputError) as caught:
        as_generation(response)
    assert said in str(caught.value)


# -- scores of transformers ------------------------------------------------------------------------


def scores_of(model: BundledModel, prompts: list[str]) -> tuple[Any, Any]:
    """What `generate` returns for a batch: token ids with padding, raw scores of each step."""
    session, end = model._session, model.tokenizer.token_to_id("<|end|>")
    items = [model.encode(prompt) for prompt in prompts]
    width = max(map(len, items))
    rows = [[end] * (width - len(tokens)) + tokens for tokens in items]
    steps = []
    for _ in range(40):
        ids = np.array(rows, np.int64)
        mask = np.array([[0] * (width - len(t)) + [1] * len(t) for t in items], np.int64)
        mask = np.pad(mask, ((0, 0), (0, ids.shape[1] - width)), constant_values=1)
        past = {
            name: np.zeros((len(rows), heads, 0, head_width), np.float32)
            for name, (_, heads, _, head_width) in model._past.items()
        }
        positions = np.maximum(mask.cumsum(1) - 1, 0)
        inputs = {"input_ids": ids, "position_ids": positions, "attention_mask": mask, **past}
        logits = session.run(None, inputs)[0]
        steps.append(logits)
        for row, best in zip(rows, logits.argmax(-1), strict=True):
            row.append(end if end in row[width:] else int(best))
        if all(end in row[width:] for row in rows):
            break
    return np.array(rows), tuple(steps)


def test_scores_give_the_models_own_values(model: BundledModel) -> None:
    """A batch with padding, whole and by row; as a result, as arrays, with any constant added."""
    prompts = [PROMPT, "What is 12 + 30?"]
    end = model.tokenizer.token_to_id("<|end|>")
    sequences, steps = scores_of(model, prompts)
    expected = model.generate(prompts, ids=["0", "1"])
    results = [
        SimpleNamespace(sequences=sequences, logits=steps, scores=None),
        {"sequences": sequences, "scores": [step + 17 for step in steps], "beam_indices": None},
    ]
    for row, generation in enumerate(expected):
        found = [
            Generation.from_scores(generation.text, result, row=row, end=end, id=str(row))
            for result in results
        ]
        found.append(Generation.from_scores("", steps, sequences.tolist(), row=row, end=[end, 3]))
        for one in found:
            for name in ("logprob", "top1", "top2"):
                np.testing.assert_allclose(getattr(one, name), getattr(generation, name), atol=1e-4)
            assert one.output_tokens == generation.output_tokens
            assert one.token_coverage == 1.0
    alone = [step[1] for step in steps]
    one = Generation.from_scores("", alone, sequences[1], end=end)
    np.testing.assert_allclose(one.logprob, expected[1].logprob, atol=1e-4)


def test_masked_scores() -> None:
    """-inf of a processor is an impossible token: it has no probability and makes no margin."""
    inf = np.inf
    steps = [[[1.0, 0.0, -inf]], [[2.0, -inf, -inf]], [[-inf, -inf, -inf]], [[0.5, 0.5, np.nan]]]
    found = Generation.from_scores("t", steps, [[9, 0, 0, 2, 1]], model="m", finish_reason="stop")
    assert found.logprob.tolist()[:2] == pytest.approx([-np.log1p(np.exp(-1)), 0.0])
    assert found.top2.tolist()[:2] == [pytest.approx(-1 - np.log1p(np.exp(-1))), -inf]
    assert np.isnan(found.logprob[2:]).all()
    assert (found.k_seen, found.model, found.finish_reason) == (3, "m", "stop")
    assert signals_of(found).h2 == pytest.approx(-1.0)
    tie = Generation.from_scores("t", [[[1.0, 1.0]]], [[0]])
    assert tie.top1 == tie.top2


class Tensor:
    """Like a tensor of torch on a device, which numpy refuses."""

    def __init__(self, values: Any, *, on: str = "cuda") -> None:
        self.values, self.on = np.asarray(values), on
        self.shape = self.values.shape

    def __len__(self) -> int:
        return len(self.values)

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise TypeError("can't convert cuda:0 device type tensor to numpy")

    def __getitem__(self, row: int) -> Tensor:
        return Tensor(self.values[row])

    def detach(self) -> Tensor:
        return self

    def cpu(self) -> Tensor:
        return Tensor(self.values, on="cpu")

    def is_floating_point(self) -> bool:
        return bool(self.values.dtype.kind == "f")

    def double(self) -> Tensor:
        return Tensor(self.values.astype(np.float64), on=self.on)

    def numpy(self) -> Any:
        assert self.on == "cpu"
        return self.values


def test_tensors_on_a_device() -> None:
    steps = [[[1.0, 0.0]], [[0.0, 3.0]]]
    expected = Generation.from_scores("t", steps, [[0, 1]])
    found = Generation.from_scores(
        "t", tuple(Tensor(np.float16(step)) for step in steps), Tensor([[0, 1]])
    )
    np.testing.assert_allclose(found.logprob, expected.logprob)


@pytest.mark.parametrize(
    ("arguments", "more", "said"),
    [
        (([[[0.0, 1.0]]],), {}, "sequences=None"),
        (({"sequences": [[1]]},), {}, "result has no scores"),
        (({"sequences": [[1]], "scores": [[[0.0, 1.0]]], "beam_indices": [[0]]},), {}, "num_beams"),
        (
            ({"sequences": [[1]], "logits": [[[0.0, 1.0]]], "sequences_scores": [-1.0]},),
            {},
            "result of beam search",
        ),
        (([[[0.0, 1.0]] * 2, [[0.0, 1.0]] * 2], [[1, 1]]), {}, "2 rows and sequences 1"),
        (([[[0.0, 1.0]]], [[0.5]]), {}, "token ids are needed"),
        (([[[0.0, 1.0]]], [[2]]), {}, "token 2 in sequences: scores has 2 tokens"),
        (([[[0.0, 1.0]]] * 3, [[1, 1]]), {}, "3 steps and sequences of 2 tokens"),
        (([[[0.0, 1.0]]], [[1]]), {"row": 1}, "row=1: sequences has 1 row, from 0"),
        (([[[0.0, 1.0]] * 2], [[1], [1]]), {}, "give end=tokenizer.eos_token_id"),
        (([[0.0, 1.0]], [[1], [1]]), {"end": 0}, "shape (2,): (2, vocabulary)"),
        ((3, [[1]]), {}, "one array (rows, vocabulary) per step"),
        (([[["a", "b"]]], [[1]]), {}, "scores=['a', 'b']: an array of numbers"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_scores_that_cannot_be(arguments: Any, more: Any, said: str) -> None:
    with pytest.raises(BadInputError) as caught:
        Generation.from_scores("t", *arguments, **more)
    assert said in str(caught.value)
