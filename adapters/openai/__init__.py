"""OpenAI's three APIs, as objects of the `openai` package or as their JSON.

Chat completions, legacy text completions and the Responses API, of OpenAI and of servers with the
same API (vLLM and others). `openai` itself is not imported, except by `openai.client`.
Request log-probabilities with

    chat         logprobs=True, top_logprobs=5
    completions  logprobs=5, and on vLLM extra_body={"return_tokens_as_token_ids": True}
    Responses    include=["message.output_text.logprobs"], top_logprobs=5

With fewer, some positions have no margin: `k_seen` and `token_coverage` of the Generation show it.
"""

from gatekeeper.adapters.openai.logprobs import ALTERNATIVES, REFUSALS, refuses_logprobs
from gatekeeper.adapters.openai.reader import generation_of, generations_of
from gatekeeper.adapters.openai.stream import StreamReader
from gatekeeper.adapters.positions import Scope

__all__ = [
    "ALTERNATIVES",
    "REFUSALS",
    "Scope",
    "StreamReader",
    "generation_of",
    "generations_of",
    "refuses_logprobs",
]
