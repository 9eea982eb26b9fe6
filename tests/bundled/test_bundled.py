"""The bundled model: its weights, its adapter, its tasks."""

import json
import random
import sys
from collections.abc import Mapping
from itertools import islice
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import gatekeeper.bundled
from gatekeeper.adapters.bundled import BundledModel
from gatekeeper.errors import BadInputError, MissingDependencyError
from gatekeeper.io.tasks import Task, read_tasks
from tools.bundled.tasks import asserts_of, held_out, training_stream

Weights = Mapping[str, NDArray[np.float64]]


@pytest.fixture(scope="module")
def model() -> BundledModel:
    return BundledModel()


@pytest.fixture(scope="module")
def tasks() -> list[Task]:
    return read_tasks(gatekeeper.bundled.TASKS)


def slow_llama(weights: Weights, config: Mapping[str, Any], ids: list[int]) -> NDArray[np.float64]:
    """Log-probabilities (T, V) after each of `ids` (T,), one plain matrix product at a time."""
    heads, eps = config["num_attention_heads"], config["rms_norm_eps"]
    width = config["hidden_size"] // heads

    def norm(x: NDArray[np.float64], name: str) -> NDArray[np.float64]:
        return x / np.sqrt((x**2).mean(-1, keepdims=True) + eps) * weights[name]

    frequency = config["rope_theta"] ** (-np.arange(0, width, 2) / width)
    angle = np.arange(len(ids))[:, None] * frequency

    def turn(x: NDArray[np.float64]) -> NDArray[np.float64]:
        a, b = x[:, : width // 2], x[:, width // 2 :]
        return np.concatenate(
            [a * np.cos(angle) - b * np.sin(angle), b * np.cos(angle) + a * np.sin(angle)], 1
        )

    embedding = weights["model.embed_tokens.weight"]
    x = embedding[ids]
    future = np.triu(np.full((len(ids), len(ids)), -np.inf), 1)
    for layer in range(config["num_hidden_layers"]):
        w = {
            name.split(".", 3)[3].removesuffix(".weight"): value
            for name, value in weights.items()
            if name.startswith(f"model.layers.{layer}.")
        }
        normed = norm(x, f"model.layers.{layer}.input_layernorm.weight")
        q, k, v = (normed @ w[f"self_attn.{p}_proj"].T for p in "qkv")
        mixed = []
        for h in range(heads):
            part = slice(h * width, (h + 1) * width)
            score = turn(q[:, part]) @ turn(k[:, part]).T / np.sqrt(width) + future
            attention = np.exp(score - score.max(-1, keepdims=True))
            mixed.append(attention / attention.sum(-1, keepdims=True) @ v[:, part])
        x = x + np.concatenate(mixed, 1) @ w["self_attn.o_proj"].T
        normed = norm(x, f"model.layers.{layer}.post_attention_layernorm.weight")
        gate = normed @ w["mlp.gate_proj"].T
        x = x + (gate / (1 + np.exp(-gate)) * (normed @ w["mlp.up_proj"].T)) @ w["mlp.down_proj"].T
    logits = norm(x, "model.norm.weight") @ embedding.T
    return logits - np.logaddexp.reduce(logits, axis=-1, keepdims=True)


def test_onnx_agrees_with_the_safetensors(model: BundledModel, tasks: list[Task]) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    load_file = pytest.importorskip("safetensors.numpy").load_file
    folder = gatekeeper.bundled.MODEL
    weights = {k: v.astype(np.float64) for k, v in load_file(folder / "model.safetensors").items()}
    config = json.loads((folder / "config.json").read_text())
    tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    some = tasks[:6]
    for g, task in zip(
        model.generate([t["prompt"] for t in some], ids=[t["id"] for t in some]), some, strict=True
    ):
        prompt = tokenizer.encode(f"<|task|>{task['prompt']}<|answer|>").ids
        answer = tokenizer.encode(f"{g.text}<|end|>").ids
        rows = slow_llama(weights, config, prompt + answer)[len(prompt) - 1 : -1]
        top = np.sort(rows, -1)
        assert rows.argmax(-1).tolist() == answer
        assert (g.prompt_tokens, g.output_tokens) == (len(prompt), len(answer))
        np.testing.assert_allclose(g.logprob, rows[np.arange(len(answer)), answer], atol=1e-3)
        np.testing.assert_allclose(g.top1, top[:, -1], atol=1e-3)
        np.testing.assert_allclose(g.top2, top[:, -2], atol=1e-3)


@pytest.mark.parametrize("temperature", [0.0, 0.8])
def test_an_item_does_not_depend_on_its_batch(
    model: BundledModel, tasks: list[Task], temperature: float
) -> None:
    prompts, ids = [t["prompt"] for t in tasks[:8]], [t["id"] for t in tasks[:8]]
    together = model.generate(prompts, ids=ids, temperature=temperature, seed=3)
    for prompt, name, g in zip(prompts, ids, together, strict=True):
        (alone,) = model.generate([prompt], ids=[name], temperature=temperature, seed=3)
        assert (alone.id, alone.text, alone.finish_reason) == (g.id, g.text, g.finish_reason)
        np.testing.assert_allclose(alone.logprob, g.logprob, atol=1e-4)
        np.testing.assert_allclose(alone.top2, g.top2, atol=1e-3)


def test_sampling_is_reproducible_and_varies_with_seed_and_id(model: BundledModel) -> None:
    prompts = ["What is 874 \\times 963?"] * 4
    ids = ["a", "b", "c", "d"]

    def texts(seed: int) -> list[str]:
        return [g.text for g in model.generate(prompts, ids=ids, temperature=1.5, seed=seed)]

    assert texts(1) == texts(1)
    assert texts(1) != texts(2)
    assert len(set(texts(1))) > 1


def test_length_limit_and_end_token(model: BundledModel) -> None:
    full, cut = (
        model.generate(["What is 5 + 6?"], ids=["x"], max_new_tokens=n)[0] for n in (200, 2)
    )
    assert full.finish_reason == "stop"
    assert "<|end|>" not in full.text
    assert cut.finish_reason == "length"
    assert cut.output_tokens == cut.logprob.size == 2
    assert full.output_tokens == full.logprob.size == full.top2.size
    assert (full.top1 >= full.top2).all()
    assert full.token_coverage == 1.0
    np.testing.assert_array_equal(full.logprob, full.top1)  # greedy


def test_bad_input(model: BundledModel) -> None:
    with pytest.raises(BadInputError, match=r"id='long'.*room for 312"):
        model.generate(["1 " * 300], ids=["long"])
    with pytest.raises(BadInputError, match="1 prompt but 0 ids"):
        model.generate(["x"], ids=[])
    with pytest.raises(BadInputError, match="temperature=-1"):
        model.generate(["x"], ids=["x"], temperature=-1)
    assert model.generate([], ids=[]) == []


@pytest.mark.parametrize("package", ["onnxruntime", "tokenizers"])
def test_missing_dependency(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingDependencyError, match=rf"{package}.*\(extra demo\): pip install '"):
        BundledModel()


def test_the_model_is_small() -> None:
    folder = gatekeeper.bundled.MODEL
    assert sum(file.stat().st_size for file in folder.iterdir()) <= 8_000_000


def test_the_task_file_is_held_out(tasks: list[Task]) -> None:
    prompts = [task["prompt"] for task in tasks]
    assert all(map(held_out, prompts))
    assert len(set(prompts)) == len(prompts)
    assert len({task["id"] for task in tasks}) == len(tasks)
    assert [task["kind"] for task in tasks].count("code") == len(tasks) // 2
    stream = islice(training_stream(random.Random(0)), 20_000)
    assert not {draft.prompt for _, _, draft in stream} & set(prompts)


def test_reference_answers_are_right() -> None:
    """`asserts_of` runs the reference once; here each assert is run again, on its own."""
    for _, _, draft in islice(training_stream(random.Random(1)), 1_000):
        if draft.kind == "code":
            tests = asserts_of(draft)
            assert 3 <= len(tests) <= 5
            for test in tests:
                exec(f"{draft.answer}\n{test}", {})
        else:
            assert draft.answer.endswith(f"\\boxed{{{draft.gold}}}")
            steps = [line for line in draft.answer.splitlines() if line.count("=") == 1]
            for step in steps:
                left, right = step.split("=")
                if not left.isalpha():
                    assert eval(left) == int(right), (step, draft)
