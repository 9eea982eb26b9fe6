"""Wrong arguments of adapters, generators and record files: one message with the value."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import openai
import pytest
from openai.types.chat import ChatCompletion

from gatekeeper import BadInputError, Budget, Generation, Record, Signals, VerificationGate
from gatekeeper.adapters.bundled import BundledModel
from gatekeeper.adapters.generate import bundled_generator, openai_generator, vllm_generator
from gatekeeper.adapters.harness.gate import GateOptions
from gatekeeper.adapters.lm_eval.grading import Grading
from gatekeeper.adapters.openai import StreamReader, generations_of
from gatekeeper.adapters.vllm import StreamReader as VLLMStreamReader
from gatekeeper.adapters.vllm import prepared
from gatekeeper.analysis.replay import replay
from gatekeeper.analysis.score import estimate_score
from gatekeeper.io.record_table import RecordTable
from gatekeeper.io.records import write_records
from gatekeeper.io.responses import as_generations
from gatekeeper.policies import CST

Call = Callable[..., object]
ANSWER = ChatCompletion.construct(id="a", choices=[])
CLIENT = openai.OpenAI(api_key="none", base_url="http://127.0.0.1:9/v1")
RECORD: dict[str, Any] = {
    "id": "a",
    "signals": Signals(0.1, -0.2, 0.3),
    "cost_estimate": 1.0,
    "cost": 1.0,
    "error": 0,
}


@pytest.fixture
def gate() -> Iterator[VerificationGate]:
    with VerificationGate("random", budget=Budget(fraction=0.5)) as made:
        yield made


@pytest.mark.parametrize(
    "client",
    [
        None,
        "client",
        openai.OpenAI,
        openai,
        CLIENT.chat,
        CLIENT.chat.completions,
        CLIENT.with_raw_response,
        ANSWER,
    ],
)
def test_what_is_no_client(gate: VerificationGate, client: Any) -> None:
    """A part of a client, and an answer, are from the package, too."""
    with pytest.raises(BadInputError, match=r"^client=.*: give "):
        gate.wrap(client)


def test_a_word_is_no_truth_value(gate: VerificationGate) -> None:
    """ "no" would count as true."""
    calls: list[tuple[str, Call]] = [
        ("strict", lambda value: gate.wrap(CLIENT, strict=value)),
        (
            "return_tokens_as_token_ids",
            lambda value: gate.wrap(CLIENT, return_tokens_as_token_ids=value),
        ),
        ("strict", lambda value: gate.watch(strict=value)),
        ("strict", lambda value: gate.observe_stream([], strict=value)),
        ("strict", lambda value: StreamReader(strict=value)),
        ("skip_forced", lambda value: StreamReader(skip_forced=value)),
        ("skip_forced", lambda value: as_generations(ANSWER, skip_forced=value)),
        ("delta", lambda value: VLLMStreamReader(delta=value)),
        ("skip_forced", lambda value: VLLMStreamReader(skip_forced=value)),
    ]
    for name, call in calls:
        for value in ("no", None, 2):
            with pytest.raises(BadInputError, match=f"^{name}={value!r}: give True or False"):
                call(value)


def test_a_scope_that_does_not_exist() -> None:
    """It would count as "reasoning"."""
    for call in (
        lambda value: as_generations(ANSWER, scope=value),
        lambda value: as_generations(Generation("a", "x"), scope=value),
        lambda value: generations_of(ANSWER, scope=value),
        lambda value: StreamReader(scope=value),
    ):
        with pytest.raises(BadInputError, match=r"^scope='answer': choose one of content, reas"):
            call("answer")


@pytest.mark.parametrize("stream", [ANSWER, {"choices": []}, {"done": True, "response": "x"}])
def test_a_whole_response_is_no_stream(gate: VerificationGate, stream: Any) -> None:
    """A caller who forgot stream=True would iterate over its fields."""
    with pytest.raises(BadInputError, match=r"is a whole response: pass it to gate.maybe_verify"):
        gate.observe_stream(stream)


@pytest.mark.parametrize("stream", ["data: {}", b"data: {}", {"a": 1}, None, 3, len])
def test_what_is_no_stream(gate: VerificationGate, stream: Any) -> None:
    shown = re.escape(f"stream={stream!r}")
    with pytest.raises(BadInputError, match=f"^{shown}: give an iterable of chunks"):
        gate.observe_stream(stream)


@pytest.mark.parametrize("name", [3, "", "x" * 2000, ["a"]])
def test_what_cannot_be_an_outputs_id(gate: VerificationGate, name: Any) -> None:
    with pytest.raises(BadInputError, match=r"^id=.*: give a string of 1 to 1024 bytes"):
        gate.watch(id=name)


def test_what_vllm_does_not_return() -> None:
    for value in (None, "x", [3], {"text": "x"}):
        with pytest.raises(BadInputError, match=r"^params=.*: give a SamplingParams of vLLM"):
            prepared(value)
        with pytest.raises(BadInputError, match=r"^output=.*: not a RequestOutput of vLLM"):
            VLLMStreamReader().add(value)


def test_impossible_sampling() -> None:
    model = BundledModel(threads=1)
    calls: list[Call] = [
        lambda **given: model.generate(["x"], ids=["a"], **given),
        bundled_generator,
        lambda **given: openai_generator("m", **given),
        lambda **given: vllm_generator("m", **given),
    ]
    for call in calls:
        for temperature in ("hot", None, -1, np.nan, np.inf):
            with pytest.raises(BadInputError, match=r"^temperature=.*: give a finite number of at"):
                call(temperature=temperature)
        for seed in ("x", None, -1, 1.5, True):
            with pytest.raises(BadInputError, match=r"^seed=.*: must be a whole number of at"):
                call(seed=seed)


def test_what_the_bundled_model_cannot_take() -> None:
    model = BundledModel(threads=1)
    for prompts, ids, shown in (
        (None, ["a"], "prompts=None: give a list"),
        ("x", "a", "prompts='x': give a list"),
        (["x"], [3], "one of ids=3: a string"),
        ([None], ["a"], "one of prompts=None: a string"),
        (["x", "y"], ["a"], "2 prompts but 1 ids"),
    ):
        with pytest.raises(BadInputError, match=f"^{shown}"):
            model.generate(prompts, ids=ids)  # type: ignore[arg-type]
    for tokens in (0, 1.5, 10**6):
        with pytest.raises(BadInputError, match=r"^max_new_tokens=.*: must be a whole number from"):
            model.generate(["x"], ids=["a"], max_new_tokens=tokens)  # type: ignore[arg-type]
    for name in ("threads", "batch_size"):
        with pytest.raises(BadInputError, match=f"^{name}=0: must be a whole number"):
            BundledModel(**{name: 0})  # type: ignore[arg-type]
    with pytest.raises(BadInputError, match=r"^folder='nowhere': it has no file model.onnx"):
        BundledModel("nowhere")  # type: ignore[arg-type]


def test_what_is_no_endpoint() -> None:
    for model in (None, "", 3):
        with pytest.raises(BadInputError, match=r"^model=.*: give the model's name"):
            openai_generator(model)  # type: ignore[arg-type]
    with pytest.raises(
        BadInputError, match=r"^base_url \(not shown, .* is not a text: give the base"
    ):
        openai_generator("m", base_url=3)  # type: ignore[arg-type]
    with pytest.raises(BadInputError, match="2 prompts but 1 ids"):
        openai_generator("m", api_key="none")(["x", "y"], ["a"])


@pytest.mark.parametrize(
    ("records", "shown"),
    [
        (None, r"records=None: give a list of gatekeeper.Record"),
        ({"id": "a"}, r"records={'id': 'a'}: give a list"),
        ([None], r"records has None: give objects of type gatekeeper.Record"),
        ([{"id": "a"}], r"records has {'id': 'a'}: give objects"),
        ([Record(**RECORD | {"signals": (1, 2, 3)})], r"id='a': signals=\(1, 2, 3\): give Signals"),
        ([Record(**RECORD | {"signals": None})], r"id='a': signals=None: give Signals"),
        ([Record(**RECORD, meta=[1])], r"id='a': meta=\[1\]: give a dict"),  # type: ignore[arg-type]
        ([Record(**RECORD | {"error": np.ones(2)})], r"id='a': field 'error' is array"),
        ([Record(**RECORD | {"signals": Signals(np.ones(2), 0, 0)})], r"field 'h1' is array"),  # type: ignore[arg-type]
    ],
)
def test_what_is_no_record(tmp_path: Path, records: Any, shown: str) -> None:
    with pytest.raises(BadInputError, match=shown):
        write_records(tmp_path / "records.jsonl", records)
    assert not list(tmp_path.iterdir())
    with pytest.raises(BadInputError, match=shown):
        RecordTable.of(records)


def test_signals_that_are_none_in_an_analysis() -> None:
    odd: Any = Record(**RECORD | {"signals": None})
    with pytest.raises(BadInputError, match="signals=None: give Signals"):
        estimate_score([odd])
    with pytest.raises(BadInputError, match="signals=None: give Signals"):
        replay([odd], CST(0.2), 0.2, warmup=0)


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ({"row": "x"}, "row='x': must be a whole number"),
        ({"end": "x"}, "end='x': give a token id"),
        ({"end": 1.5}, "end=1.5: give a token id"),
        ({"sequences": [[1], [1, 2]]}, r"sequences=.*: rows of one length"),
    ],
)
def test_scores_with_odd_settings(given: Any, shown: str) -> None:
    with pytest.raises(BadInputError, match=shown):
        Generation.from_scores("x", [np.zeros((1, 4))], **{"sequences": [[1]], **given})


def test_options_of_a_harness() -> None:
    for name in ("total", "warmup"):
        for value in ("x", 0, 1.5):
            with pytest.raises(BadInputError, match=f"^{name}=.*: must be a whole number"):
                GateOptions(**{name: value})
    with pytest.raises(BadInputError, match=r"^-S warmup=7 is for finding errors: add -S goal=err"):
        GateOptions(warmup=7).check_goal("-S {}={}")
    GateOptions(warmup=7, goal="errors").check_goal("-S {}={}")
    for passing in (np.nan, np.inf, "1"):  # NaN: every answer would be wrong
        with pytest.raises(BadInputError, match=r"^passing=.*: give a finite number"):
            Grading(passing=passing)  # type: ignore[arg-type]
