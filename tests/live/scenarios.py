"""The same request over every route: the chat, completions and Responses API, and offline.

`SCENARIOS` is what `capture.py` records and `check.py` compares. On the CPU, in float32, without
prefix caching and one at a time, vLLM computes the same figures for all of them, bit by bit; so
a difference is a reader's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["ENGINE", "ENVIRONMENT", "MODEL_NAME", "SCENARIOS", "Scenario"]

MODEL_NAME = "tiny"
ENVIRONMENT = {
    "VLLM_CPU_KVCACHE_SPACE": "1",  # GiB
    "VLLM_LOGGING_LEVEL": "ERROR",
    "VLLM_NO_USAGE_STATS": "1",
    "HF_HUB_OFFLINE": "1",
}
ENGINE = {
    "dtype": "float32",
    "max_model_len": 512,
    "max_num_seqs": 16,
    "enforce_eager": True,
    "seed": 0,
    "enable_prefix_caching": False,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    name: str
    prompt: str
    max_tokens: int
    temperature: float = 0.0
    seed: int | None = None
    n: int = 1
    stop: str | None = None
    regex: str | None = None  # the grammar the output is forced into

    def _common(self) -> dict[str, Any]:
        extra = {} if self.regex is None else {"structured_outputs": {"regex": self.regex}}
        return {
            "model": MODEL_NAME,
            "temperature": self.temperature,
            **({"extra_body": extra} if extra else {}),
        }

    def chat(self, k: int | None = None, **more: Any) -> dict[str, Any]:
        """Arguments of `client.chat.completions.create`; no log-probabilities for `k` None."""
        return {
            **self._common(),
            "messages": [{"role": "user", "content": self.prompt}],
            "max_tokens": self.max_tokens,
            **_given(seed=self.seed, stop=self.stop, n=self.n if self.n > 1 else None),
            **({} if k is None else {"logprobs": True, "top_logprobs": k}),
            **more,
        }

    def completions(
        self, k: int | None = None, *, token_ids: bool = True, **more: Any
    ) -> dict[str, Any]:
        """Arguments of `client.completions.create`; the prompt as the chat template writes it."""
        common = self._common()
        if token_ids and k is not None:
            common["extra_body"] = {
                **common.get("extra_body", {}),
                "return_tokens_as_token_ids": True,
            }
        return {
            **common,
            "prompt": self.raw_prompt,
            "max_tokens": self.max_tokens,
            **_given(seed=self.seed, stop=self.stop, n=self.n if self.n > 1 else None, logprobs=k),
            **more,
        }

    def responses(self, k: int | None = None, **more: Any) -> dict[str, Any]:
        """Arguments of `client.responses.create`, which knows no `n`."""
        common = self._common()
        extra = {**common.pop("extra_body", {}), **_given(seed=self.seed, stop=self.stop)}
        return {
            **common,
            "input": self.prompt,
            "max_output_tokens": self.max_tokens,
            **({} if k is None else {"include": ["message.output_text.logprobs"]}),
            **_given(top_logprobs=k, extra_body=extra or None),
            **more,
        }

    def sampling(self, k: int | None = None, **more: Any) -> dict[str, Any]:
        """Arguments of `vllm.SamplingParams`; `structured_outputs` is still a dict."""
        return {
            "temperature": self.temperature,
            "max_tokens": self.max_tokens,
            "n": self.n,
            **_given(seed=self.seed, stop=self.stop, logprobs=k),
            **({} if self.regex is None else {"structured_outputs": {"regex": self.regex}}),
            **more,
        }

    @property
    def raw_prompt(self) -> str:
        return f"<|task|>{self.prompt}<|answer|>"


def _given(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


SCENARIOS: Mapping[str, Scenario] = {
    s.name: s
    for s in [
        # Ends with a generated end-of-sequence token, which has log-probabilities but no text.
        Scenario(name="greedy", prompt="Compute 7 + 8.", max_tokens=24),
        # Random text on purpose: most tokens are outside the top 2, some are pieces of a character.
        Scenario(
            name="sampled",
            prompt="Tell me a story about a fox.",
            max_tokens=20,
            temperature=2.0,
            seed=4,
        ),
        Scenario(
            name="two",
            prompt="Tell me a story about a fox.",
            max_tokens=10,
            temperature=2.0,
            seed=1,
            n=2,
        ),
        # The backslash, the word and the braces are forced, the digits are not.
        Scenario(
            name="forced", prompt="Compute 7 + 8.", max_tokens=24, regex=r"\\boxed\{[0-9]{2}\}"
        ),
        # Three tokens per character, whose first two have no text: in `/v1/completions` all the
        # alternatives of such a position go by the same string.
        Scenario(
            name="pieces",
            prompt="Compute 7 + 8.",
            max_tokens=10,
            temperature=2.0,
            seed=0,
            regex="[一-鿿]{3}",
        ),
        # The stop string is cut out of the middle of the text, not out of the log-probabilities.
        Scenario(name="stopped", prompt="Compute 7 + 8.", max_tokens=24, stop="oxed"),
    ]
}
