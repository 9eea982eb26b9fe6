"""The programs of docs/vllm.md, as they stand, on engines and a server that are there already."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path
from typing import Any
from unittest.mock import patch

import openai
import vllm

from gatekeeper import Budget, VerificationGate
from gatekeeper.adapters.vllm import StreamReader, prepared
from gatekeeper.testing import ScriptedVerifier

__all__ = ["on_engine", "on_llm", "on_server"]

PAGE = Path(__file__).parents[2] / "docs" / "vllm.md"
OFFLINE, STREAMED, SERVED = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
PROMPT = "What is 2 + 3?"


def _gate() -> VerificationGate:
    return VerificationGate("random", budget=Budget(fraction=0.5), verifier=ScriptedVerifier())


def on_llm(llm: Any) -> None:
    with patch.object(vllm, "LLM", lambda name: llm), _gate() as gate:
        exec(OFFLINE, {"prompts": [PROMPT] * 2, "tasks": [{"id": "a"}, {"id": "b"}], "gate": gate})
        _check(gate, 2)


async def on_engine(engine: Any) -> None:
    params = prepared(vllm.SamplingParams(max_tokens=16))
    with _gate() as gate:
        names: dict[str, Any] = {"StreamReader": StreamReader, "engine": engine, "gate": gate}
        names |= {"prompt": PROMPT, "params": params, "request_id": "page", "task": None}
        exec(f"async def program():\n{textwrap.indent(STREAMED, '    ')}", names)
        await names["program"]()
        _check(gate, 1)


def on_server(base_url: str, model: str) -> None:
    program = SERVED.replace("http://127.0.0.1:8000/v1", base_url).replace("my-model", model)
    assert base_url in program
    assert model in program
    messages = [{"role": "user", "content": PROMPT}]
    with _gate() as gate:
        exec(program, {"OpenAI": openai.OpenAI, "gate": gate, "messages": messages})
        _check(gate, 1)


def _check(gate: VerificationGate, n: int) -> None:
    status = gate.status()
    assert (status.seen, status.warmup_verified, status.missing_signal) == (n, n, 0), status
