"""OpenAI's three APIs, as objects of the `openai` package or as their JSON.

Chat completions, legacy text completions and the Responses API, of OpenAI and of servers that
speak the same (vLLM and others). `openai` itself is not imported. Ask for log-probabilities with

    chat         logprobs=True, top_logprobs=5
    completions  logprobs=5, and on vLLM extra_body={"return_tokens_as_token_ids": True}
    Responses    include=["message.output_text.logprobs"], top_logprobs=5

With fewer, some positions have no margin: `k_seen` and `token_coverage` of the Generation show it.
"""

from __future__ import annotations

from typing import Any

from gatekeeper.adapters._positions import Scope, field
from gatekeeper.adapters.openai_chat import chat_generations
from gatekeeper.adapters.openai_completions import completion_generations
from gatekeeper.adapters.openai_responses import response_generation
from gatekeeper.adapters.openai_stream import StreamReader
from gatekeeper.errors import BadInputError
from gatekeeper.types import Generation

__all__ = [
    "ALTERNATIVES",
    "Scope",
    "StreamReader",
    "generation_of",
    "generations_of",
    "refuses_logprobs",
]

ALTERNATIVES = 5  # k: enough for a true margin from every server, and the most that some give
_REFUSALS = (400, 403, 422)  # status codes with which providers refuse a parameter


def refuses_logprobs(error: Any) -> bool:
    """Whether an APIStatusError of `openai` is about the log-probabilities asked for."""
    return error.status_code in _REFUSALS and "logprobs" in f"{error} {error.body}".lower()


def generations_of(
    response: Any, *, scope: Scope = "content", skip_forced: bool = False
) -> list[Generation]:
    """One Generation per choice of a completion, one for a Response.

    `scope` says which tokens count where reasoning came with the answer; `skip_forced` leaves out
    those that a grammar forced. Several choices get the response's id and their index: "id/0".
    A null log-probability is NaN. Raises BadInputError for anything else than a whole response.
    """
    choices = field(response, "choices")
    if isinstance(choices, list):
        if all(field(choice, "message") is not None for choice in choices):
            return chat_generations(response, scope=scope, skip_forced=skip_forced)
        if all(isinstance(field(choice, "text"), str) for choice in choices):
            return completion_generations(response, skip_forced=skip_forced)
        raise BadInputError(
            f"response {field(response, 'id')!r} has a choice with neither message nor text: a "
            "chunk of a stream? StreamReader reads those"
        )
    if isinstance(field(response, "output"), list):
        return [response_generation(response, scope=scope, skip_forced=skip_forced)]
    raise BadInputError(f"response={response!r:.80}: not a response of OpenAI's shape")


def generation_of(
    response: Any, *, scope: Scope = "content", skip_forced: bool = False
) -> Generation:
    """The one output of a response. Raises BadInputError where it has none or several."""
    found = generations_of(response, scope=scope, skip_forced=skip_forced)
    if len(found) != 1:
        raise BadInputError(
            f"response {field(response, 'id')!r} has {len(found)} choices: exactly one output is "
            "decided on at a time"
        )
    return found[0]
