"""Gemini's generateContent: JSON of the REST API, or objects of the package `google-genai`.

    config = {"response_logprobs": True, "logprobs": 5}
    client.models.generate_content(model=…, contents=…, config=config)

Names in camel case and in snake case are read alike; a list is the chunks of one stream. Without
`response_logprobs` a response may have `avgLogprobs` alone: then every position has this mean, so
that h1 is right and h2 and h3 are missing.

References
----------
The package google-genai 3.4: types.GenerateContentResponse, types.LogprobsResult.
"""

from __future__ import annotations

from dataclasses import dataclass
from dataclasses import field as made
from enum import Enum
from typing import Any

import numpy as np

from gatekeeper.adapters.fields import count_of, field, list_of, text_of
from gatekeeper.adapters.openai.entries import Entries
from gatekeeper.adapters.openai.scope import in_scope
from gatekeeper.adapters.positions import Positions, Scope, make_generation, numbers
from gatekeeper.errors import BadInputError
from gatekeeper.io.providers import attribute
from gatekeeper.types import Generation

__all__ = ["ends", "read", "recognises"]


def recognises(response: Any) -> bool:
    """Whether the response, or one of a list, has candidates, or feedback on a prompt that was
    blocked.
    """
    chunks = response if isinstance(response, list) else [response]
    return any(
        isinstance(attribute(chunk, "candidates"), list)
        or attribute(chunk, "promptFeedback") is not None
        or attribute(chunk, "prompt_feedback") is not None
        for chunk in chunks
    )


def ends(chunk: Any) -> dict[int, bool]:
    """By index, the candidates in a chunk: whether it is their last one, with a finish reason."""
    return {
        count_of(part, "index") or 0: bool(_field(part, "finish_reason"))
        for part in list_of(chunk, "candidates")
    }


@dataclass(slots=True)
class _Candidate:
    """One candidate so far."""

    text: str = ""
    thoughts: str = ""
    entries: Entries = made(default_factory=Entries)
    mean: Any = None  # log-probability
    tokens: int | None = None
    finish_reason: str | None = None


def read(response: Any, *, scope: Scope, skip_forced: bool) -> list[Generation]:
    """One Generation per candidate. Each of several has the response's id and its index.

    Parameters and errors are those of `gatekeeper.io.providers.Reader.read`.
    """
    chunks = response if isinstance(response, list) else [response]
    found: dict[int, _Candidate] = {}
    usage = id_ = model = None
    for chunk in chunks:
        usage = _field(chunk, "usage_metadata") or usage
        id_ = text_of({"responseId": _field(chunk, "response_id")}, "responseId") or id_
        model = text_of({"modelVersion": _field(chunk, "model_version")}, "modelVersion") or model
        for part in list_of(chunk, "candidates"):
            _add(found.setdefault(count_of(part, "index") or 0, _Candidate()), part)
    several = len(found) > 1
    return [
        _generation(
            candidate,
            usage,
            scope=scope,
            skip_forced=skip_forced,
            id=f"{id_}/{index}" if id_ and several else id_ or "",
            model=model,
            alone=not several,
        )
        for index, candidate in sorted(found.items())
    ]


def _add(candidate: _Candidate, part: Any) -> None:
    for piece in list_of(field(part, "content"), "parts"):
        text = text_of(piece, "text") or ""
        if field(piece, "thought"):
            candidate.thoughts += text
        else:
            candidate.text += text
    result = _field(part, "logprobs_result")
    candidate.entries.add(_entries(result))
    mean, count = _field(part, "avg_logprobs"), _field(part, "token_count")
    candidate.mean = candidate.mean if mean is None else mean
    candidate.tokens = count if isinstance(count, int) else candidate.tokens
    reason = _field(part, "finish_reason")
    if reason:
        candidate.finish_reason = str(reason.value if isinstance(reason, Enum) else reason)


def _generation(
    candidate: _Candidate, usage: Any, *, scope: Scope, skip_forced: bool, alone: bool, **more: Any
) -> Generation:
    total = candidate.tokens
    if total is None and alone:  # else the usage is the sum over the candidates
        total = _count(usage, "candidates_token_count")
    positions, output_tokens = in_scope(
        candidate.entries,
        sampled_first=False,
        scope=scope,
        reasoning=candidate.thoughts,
        content=candidate.text,
        total=total,
        thinking=None,
    )
    if not candidate.entries and candidate.mean is not None:
        (mean,) = numbers([candidate.mean])
        n = max(total or 0, 1)
        positions = Positions(np.full(n, mean), np.full(n, np.nan), np.full(n, np.nan))
    return make_generation(
        positions,
        text=candidate.text,
        prompt_tokens=_count(usage, "prompt_token_count"),
        output_tokens=output_tokens,
        finish_reason=candidate.finish_reason,
        skip_forced=skip_forced,
        **more,
    )


def _entries(result: Any) -> list[Any]:
    """A LogprobsResult as the entries of OpenAI's API."""
    chosen, top = _list(result, "chosen_candidates"), _list(result, "top_candidates")
    if chosen and top and len(chosen) != len(top):
        raise BadInputError(
            f"logprobsResult has {len(chosen)} chosenCandidates and {len(top)} topCandidates: "
            "one of each for every token is needed"
        )
    n = max(len(chosen), len(top))
    chosen, top = chosen or [None] * n, top or [None] * n
    return [
        _entry(own) | {"top_logprobs": [_entry(each) for each in list_of(others, "candidates")]}
        for own, others in zip(chosen, top, strict=True)
    ]


def _entry(candidate: Any) -> dict[str, Any]:
    return {
        "token": text_of(candidate, "token") or "",
        "logprob": _field(candidate, "log_probability"),
        "bytes": None,
    }


def _field(value: Any, name: str) -> Any:
    """A field by its name in snake case, or by the same name in camel case."""
    found = field(value, name)
    if found is None:
        first, *rest = name.split("_")
        found = field(value, first + "".join(word.title() for word in rest))
    return found


def _list(value: Any, name: str) -> list[Any]:
    return list_of({name: _field(value, name)}, name)


def _count(value: Any, name: str) -> int | None:
    return count_of({name: _field(value, name)}, name)
