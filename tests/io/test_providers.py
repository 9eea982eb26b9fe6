"""A provider is one line of the table, and one file."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from gatekeeper import BadInputError, Budget, Generation, VerificationGate
from gatekeeper.cli import main
from gatekeeper.io.providers import PROVIDERS, Provider, generator_names, generator_of
from gatekeeper.io.responses import as_generation, as_generations

RESPONSE = {"id": "a", "acme": {"said": ["four"], "logprobs": [-0.1], "second": [-2.4]}}


class Client:
    """A client of the provider's own package."""

    def __init__(self) -> None:
        self.gate: VerificationGate | None = None


Client.__module__ = "acme.client"


def acme() -> ModuleType:
    """The file of a provider: its reader, its wrapper and its generator."""

    def recognises(response: Any) -> bool:
        return isinstance(response, dict) and "acme" in response

    def read(response: Any, *, scope: str, skip_forced: bool) -> list[Generation]:
        found = response["acme"]
        chosen, second = np.array(found["logprobs"]), np.array(found["second"])
        return [
            Generation(response["id"], text, chosen, chosen, second, finish_reason=scope)
            for text in found["said"]
        ]

    def wrap(gate: VerificationGate, client: Client, **options: bool) -> Client:
        assert options == {"strict": True, "return_tokens_as_token_ids": False}
        wrapped = Client()
        wrapped.gate = gate
        return wrapped

    def generator(model: str, *, temperature: float) -> Any:
        def generate(prompts: list[str], ids: list[str]) -> list[Generation]:
            text = f"{model} at {temperature}"
            nothing = np.empty(0)
            return [Generation(id_, text, nothing, nothing, nothing) for id_ in ids]

        return generate

    module = ModuleType("acme_adapter")
    vars(module).update(recognises=recognises, read=read, wrap=wrap, generator=generator)
    return module


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "acme_adapter", acme())
    line = Provider(
        responses="a response of Acme",
        reader="acme_adapter",
        wrapper="acme_adapter",
        generator="acme_adapter:generator",
    )
    monkeypatch.setitem(PROVIDERS, "acme", line)


def test_without_its_line_a_provider_is_unknown() -> None:
    with pytest.raises(BadInputError, match="no known shape") as refused:
        as_generation(RESPONSE)
    assert "an output of vLLM" in str(refused.value)
    assert "Acme" not in str(refused.value)
    gate = VerificationGate("cst", budget=Budget(fraction=0.5))
    with gate, pytest.raises(BadInputError, match="give a client of openai"):
        gate.wrap(Client())


@pytest.mark.usefixtures("provider")
def test_its_responses_are_read() -> None:
    found = as_generation(RESPONSE)
    assert (found.id, found.text, found.top2.tolist()) == ("a", "four", [-2.4])
    two = {**RESPONSE, "acme": {**RESPONSE["acme"], "said": ["four", "five"]}}  # type: ignore[dict-item]
    several = as_generations(two, id="b", scope="all")
    assert [(g.id, g.text, g.finish_reason) for g in several] == [
        ("b/0", "four", "all"),
        ("b/1", "five", "all"),
    ]
    with pytest.raises(BadInputError, match="a response of Acme"):
        as_generation({"other": 1})
    with VerificationGate("cst", budget=Budget(fraction=0.5)) as gate:
        assert gate.maybe_verify(RESPONSE).id == "a"


@pytest.mark.usefixtures("provider")
def test_its_clients_are_wrapped() -> None:
    with VerificationGate("cst", budget=Budget(fraction=0.5)) as gate:
        wrapped = gate.wrap(Client(), strict=True)
        assert wrapped.gate is gate
        with pytest.raises(BadInputError, match="give a client of openai, acme"):
            gate.wrap(object())


@pytest.mark.usefixtures("provider")
def test_the_commands_know_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    responses = tmp_path / "responses.jsonl"
    responses.write_text(json.dumps(RESPONSE) + "\n")
    assert main(["signals", str(responses), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["id"] == "a"

    assert generator_names() == ["acme", "bundled", "openai", "vllm"]
    tasks, log = tmp_path / "tasks.jsonl", tmp_path / "run.db"
    tasks.write_text('{"id": "t", "prompt": "p", "kind": "math", "gold": "4"}\n')
    command = ["run", str(tasks), "--generator", "acme", "--log", str(log), "--json"]
    assert main([*command, "--model", "m", "--temperature", "0.5"]) == 0
    assert json.loads(capsys.readouterr().out)["missing_signal"] == 1
    (answer,) = generator_of("acme")("m", temperature=0.5)(["p"], ["t"])
    assert answer.text == "m at 0.5"
    assert main(command) == 2
    assert "--generator acme needs --model" in capsys.readouterr().err
