"""Ex-ante cost ĉ: what verifying an output will cost, estimated before it is verified.

The policies divide the score by ĉ and CST partitions by it, so only ratios matter; the unit must be
one for the whole stream. Any function of (generation, task) that returns a float > 0 can be used.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gatekeeper.types import Generation

__all__ = ["constant", "output_length", "prompt_length"]

CHARACTERS_PER_TOKEN = 4.0  # rule of thumb for English text, used only where tokens are unknown


def prompt_length(generation: Generation, task: Any) -> float:
    """Prompt tokens: the paper's proxy (Section "Costs, Noise, and Baselines").

    Where the provider counted none: the characters of `task["prompt"]` ÷ 4; else 1.
    """
    if generation.prompt_tokens is not None:
        return float(max(generation.prompt_tokens, 1))
    prompt = task.get("prompt") if isinstance(task, Mapping) else None
    return max(len(prompt) / CHARACTERS_PER_TOKEN, 1.0) if isinstance(prompt, str) else 1.0


def output_length(generation: Generation, task: Any) -> float:
    """Output tokens, else positions with a log-probability, else the characters of the text ÷ 4."""
    tokens = generation.output_tokens or generation.logprob.size
    return float(max(tokens or len(generation.text) / CHARACTERS_PER_TOKEN, 1.0))


def constant(generation: Generation, task: Any) -> float:
    """1 for all: ranks by the score alone."""
    return 1.0
