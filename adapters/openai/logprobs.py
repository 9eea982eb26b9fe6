"""How log-probabilities are requested from OpenAI's APIs, and how a provider refuses them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

__all__ = [
    "ALTERNATIVES",
    "ENDPOINTS",
    "PARAMETERS",
    "REFUSALS",
    "endpoint_of",
    "for_chat",
    "is_refusal",
    "refuses_logprobs",
]

ALTERNATIVES = 5  # k: enough for a true margin from every server, and the maximum of some
REFUSALS = (400, 403, 422)  # status codes with which providers refuse a parameter


def refuses_logprobs(error: Any) -> bool:
    """Whether an APIStatusError of `openai` refuses the log-probabilities."""
    return is_refusal(error.status_code, f"{error} {error.body}")


def is_refusal(status: int, text: str) -> bool:
    """Whether an answer with this HTTP status and this text refuses the log-probabilities."""
    return status in REFUSALS and "logprobs" in text.lower()


def _at_least(k: object) -> int:
    """The caller's k, at least `ALTERNATIVES`; below 0, vLLM returns the whole vocabulary."""
    if type(k) is not int:
        return ALTERNATIVES
    return k if k < 0 else max(k, ALTERNATIVES)


def for_chat(body: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters that a chat completion needs for the signals; none with `logprobs=False`."""
    if body.get("logprobs") is False:
        return {}
    return {"logprobs": True, "top_logprobs": _at_least(body.get("top_logprobs"))}


def _for_completions(body: Mapping[str, Any]) -> dict[str, Any]:
    if body.get("logprobs") is False:
        return {}
    return {"logprobs": _at_least(body.get("logprobs"))}


def _for_responses(body: Mapping[str, Any]) -> dict[str, Any]:
    needed = "message.output_text.logprobs"
    include = body.get("include")
    include = list(include) if isinstance(include, list | tuple) else []
    return {
        "include": include if needed in include else [*include, needed],
        "top_logprobs": _at_least(body.get("top_logprobs")),
    }


PARAMETERS: Mapping[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
    "/chat/completions": for_chat,
    "/completions": _for_completions,
    "/responses": _for_responses,
}
"""By endpoint: the function from a request's body to the parameters that the signals need."""

ENDPOINTS = tuple(PARAMETERS)
"""The ends of the paths of requests for outputs; the first that fits counts."""


def endpoint_of(path: str) -> str | None:
    """The endpoint that a path ends with; None for one that generates no outputs."""
    path = path.rstrip("/")
    for endpoint in ENDPOINTS:
        if path.endswith(endpoint):
            return endpoint
    return None
