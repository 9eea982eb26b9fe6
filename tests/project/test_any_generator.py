"""docs/any-generator.md: each program runs as it stands, and prints what the page shows.

Servers on loopback stand in for the providers', with answers of the bundled model in their shapes
(`provider_shapes`), and a module for the package transformers.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from provider_shapes import provider_server
from serving import serving

from gatekeeper.adapters.bundled import BundledModel, Decoding
from gatekeeper.io.providers import PROVIDERS

PAGE = (Path(__file__).parents[2] / "docs" / "any-generator.md").read_text()
SECTIONS = {part.partition("\n")[0]: part for part in PAGE.split("\n## ")[1:]}
PROGRAM = re.compile(r"```python\n(.*?)```\n\n```\n(.*?)```", re.DOTALL)
PROGRAMS = {
    name: PROGRAM.findall(text)[0] for name, text in SECTIONS.items() if "```python" in text
}


@pytest.fixture(scope="module")
def environment() -> Iterator[dict[str, str]]:
    """Where the programs find their servers: what a reader would set."""
    with serving() as openai, provider_server() as url:
        addresses = ("LLAMA_SERVER", "OLLAMA_HOST", "GOOGLE_GEMINI_BASE_URL", "ANTHROPIC_BASE_URL")
        keys = ("OPENAI_API_KEY", "GEMINI_API_KEY", "ANTHROPIC_API_KEY")
        found = dict.fromkeys(addresses, url) | dict.fromkeys(keys, "none")
        yield found | {"OPENAI_BASE_URL": str(openai.base_url)}


def transformers() -> ModuleType:
    """Stands in for the package: the same calls, answered by the ONNX runtime with arrays."""
    model = BundledModel(threads=1)

    class Inputs(dict[str, Any]):
        pass

    class Tokenizer:
        def __call__(self, texts: list[str], *, return_tensors: str) -> Inputs:
            assert return_tensors == "pt"
            ids = np.array([model.tokenizer.encode(text).ids for text in texts])
            return Inputs(input_ids=ids, attention_mask=np.ones_like(ids))

        def decode(self, tokens: Any, *, skip_special_tokens: bool) -> str:
            text: str = model.tokenizer.decode(
                tokens.tolist(), skip_special_tokens=skip_special_tokens
            )
            return text

    class Model:
        end = model.tokenizer.token_to_id("<|end|>")
        generation_config = SimpleNamespace(eos_token_id=end)

        def generate(self, *, input_ids: Any, max_new_tokens: int, **settings: Any) -> Any:
            assert settings.pop("attention_mask").shape == input_ids.shape
            expected = {"do_sample": False, "output_logits": True, "return_dict_in_generate": True}
            assert settings == expected
            size = model.tokenizer.get_vocab_size()
            item = Decoding("0", input_ids[0].tolist(), temperature=0.0, seed=0, k=size)
            model.decode([item], max_new_tokens)
            steps = []
            for tokens, values in item.best:  # the whole vocabulary, by rank
                step = np.empty((1, size), np.float32)
                step[0, tokens] = values
                steps.append(step)
            sequences = np.array([[*item.prompt, *item.tokens]])
            return SimpleNamespace(sequences=sequences, logits=tuple(steps), scores=None)

    module = ModuleType("transformers")
    module.AutoTokenizer = SimpleNamespace(from_pretrained=lambda _: Tokenizer())  # type: ignore[attr-defined]
    module.AutoModelForCausalLM = SimpleNamespace(from_pretrained=lambda _: Model())  # type: ignore[attr-defined]
    return module


@pytest.mark.parametrize("section", PROGRAMS)
def test_a_program_runs(
    section: str,
    environment: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    program, printed = PROGRAMS[section]
    monkeypatch.chdir(tmp_path)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setitem(sys.modules, "transformers", transformers())
    exec(compile(program, section, "exec"), {"__name__": "__main__"})
    assert capsys.readouterr().out == printed


def test_the_page_has_every_provider_and_every_way_in() -> None:
    named = PAGE.lower().replace("llama-server", "llamacpp")
    for name, provider in PROVIDERS.items():
        if provider.reader and name != "arrays":
            assert name in named, name
    assert len(PROGRAMS) == len(re.findall("```python", PAGE)) == 10
