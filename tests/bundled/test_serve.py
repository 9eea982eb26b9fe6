"""The bundled model over HTTP, asked by the real `openai` client."""

from __future__ import annotations

import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from http.client import HTTPConnection
from typing import Any

import numpy as np
import pytest
from openai import APIStatusError, BadRequestError, NotFoundError, OpenAI
from serving import serving

import gatekeeper.bundled
from gatekeeper import Budget, Generation, VerificationGate
from gatekeeper.adapters.bundled import BundledModel
from gatekeeper.adapters.openai import generation_of, generations_of
from gatekeeper.io.tasks import read_tasks
from gatekeeper.testing import ScriptedVerifier

MODEL = BundledModel.name
TASKS = read_tasks(gatekeeper.bundled.TASKS)[:8]
WITH_LOGPROBS = {"logprobs": True, "top_logprobs": 5}


@pytest.fixture(scope="module")
def client() -> Iterator[OpenAI]:
    with serving() as client:
        yield client


def message(text: str) -> dict[str, Any]:
    return {"model": MODEL, "messages": [{"role": "user", "content": text}]}


def assert_same(a: Generation, b: Generation) -> None:
    assert (a.text, a.prompt_tokens, a.output_tokens) == (b.text, b.prompt_tokens, b.output_tokens)
    assert a.finish_reason == b.finish_reason
    for name in ("logprob", "top1", "top2"):
        np.testing.assert_allclose(getattr(a, name), getattr(b, name), atol=1e-3)


def test_it_answers_as_the_model_does(client: OpenAI) -> None:
    """Chat, completions as text and as token ids: the same output, the same signals."""
    model = BundledModel()
    expected = model.generate([t["prompt"] for t in TASKS], ids=[t["id"] for t in TASKS])
    for task, generation in zip(TASKS, expected, strict=True):
        chat = client.chat.completions.create(
            **message(task["prompt"]), temperature=0, max_tokens=200, **WITH_LOGPROBS
        )
        assert_same(generation_of(chat), generation)
        raw = f"<|task|>{task['prompt']}<|answer|>"
        for prompt in (raw, model.encode(task["prompt"])):
            text = client.completions.create(
                model=MODEL, prompt=prompt, temperature=0, max_tokens=200, logprobs=5
            )
            assert_same(generation_of(text), generation)


def test_choices_seeds_and_stops(client: OpenAI) -> None:
    def texts(**more: Any) -> list[str]:
        answer = client.completions.create(
            model=MODEL, prompt=["漢字 one", "two"], max_tokens=20, n=2, logprobs=3, **more
        )
        assert [choice.index for choice in answer.choices] == [0, 1, 2, 3]
        assert all(g.token_coverage == 1.0 for g in generations_of(answer))
        assert answer.usage is not None
        assert answer.usage.completion_tokens == sum(
            len(c.logprobs.tokens or []) for c in answer.choices if c.logprobs
        )
        return [choice.text for choice in answer.choices]

    assert len(set(texts(temperature=2.0, seed=1))) == 4
    assert texts(temperature=2.0, seed=1) == texts(temperature=2.0, seed=1)
    assert texts(temperature=2.0) != texts(temperature=2.0)

    (choice,) = client.chat.completions.create(
        **message("What is 12 + 30?"), temperature=0, stop=["nowhere", "box"], logprobs=True
    ).choices
    assert choice.message.content == "12+30=42\n\\"
    assert choice.finish_reason == "stop"
    assert choice.logprobs is not None
    tokens = [entry.token for entry in choice.logprobs.content or []]
    assert "".join(tokens) == "12+30=42\n\\boxed"  # up to the token that completes the stop


def test_a_prompt_that_is_too_long_keeps_its_end(client: OpenAI) -> None:
    answer = client.chat.completions.create(**message("word " * 2000), max_tokens=1000)
    assert answer.usage is not None
    assert answer.usage.total_tokens <= gatekeeper.bundled.CONTEXT_LENGTH


@pytest.mark.parametrize(
    "change",
    [
        {"messages": []},
        {"messages": [{"role": "system", "content": "x"}]},
        {"top_logprobs": 5},
        {"logprobs": True, "top_logprobs": 21},
        {"temperature": -1},
        {"n": 0},
        {"max_tokens": 0},
        {"stop": [1]},
        {"stream": "yes"},
        {"seed": "x"},
    ],
    ids=str,
)
def test_what_is_wrong_is_said(client: OpenAI, change: dict[str, Any]) -> None:
    with pytest.raises(BadRequestError) as caught:
        client.chat.completions.create(**message("x") | change)
    assert next(iter(change)).removeprefix("top_") in str(caught.value)


def test_other_refusals(client: OpenAI) -> None:
    assert [model.id for model in client.models.list()] == [MODEL]
    with pytest.raises(
        NotFoundError, match="'other' does not exist: this server has gatekeeper-bundled"
    ):
        client.chat.completions.create(**message("x") | {"model": "other"})
    with pytest.raises(NotFoundError, match="no such path"):
        client.embeddings.create(model=MODEL, input="x")
    for prompt in ([], "", [[]], [99_999], [1.5]):
        with pytest.raises(BadRequestError, match="prompt"):
            client.completions.create(model=MODEL, prompt=prompt)
    with pytest.raises(BadRequestError, match="echo"):
        client.completions.create(model=MODEL, prompt="x", echo=True)
    connection = HTTPConnection(client.base_url.host, client.base_url.port)
    for body, complaint in ((b"{", b"not JSON"), (b"[]", b"JSON object")):
        connection.request("POST", "/v1/completions", body)
        answer = connection.getresponse()
        assert answer.status == 400
        assert complaint in answer.read()
    connection.close()


def test_refusing_logprobs() -> None:
    """As some models of OpenAI do; a wrapped client then asks without."""
    gate = VerificationGate("cst", budget=Budget(fraction=0.5), verifier=ScriptedVerifier([]))
    with serving(refuse_logprobs=True) as client, gate:
        with pytest.raises(APIStatusError, match="not allowed to request logprobs"):
            client.chat.completions.create(**message("x"), logprobs=True)
        response = gate.wrap(client).chat.completions.create(**message("What is 5 + 6?"))
        assert response.choices[0].logprobs is None
        assert gate.status().missing_signal == 1


def test_the_command() -> None:
    command = [sys.executable, "-m", "gatekeeper.bundled.serve", "--port"]
    with subprocess.Popen([*command, "0"], stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            line = server.stdout.readline()
            assert line.startswith("serving on http://127.0.0.1:")
            url = line.split()[-1]
            with urllib.request.urlopen(f"{url}/models") as answer:
                assert MODEL.encode() in answer.read()
            port = url.split(":")[-1].partition("/")[0]
            second = subprocess.run([*command, port], capture_output=True, text=True)
        finally:
            server.terminate()
    assert second.returncode == 2
    assert second.stderr.startswith(f"port={port}: the server cannot listen on it")
    assert second.stderr.count("\n") == 1
