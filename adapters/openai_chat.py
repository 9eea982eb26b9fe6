"""Chat completions, and the scopes that the Responses API shares with them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gatekeeper.adapters._positions import (
    Positions,
    Scope,
    count_of,
    field,
    fields,
    list_of,
    make_generation,
    text_of,
)
from gatekeeper.adapters.openai_entries import Entries, entries_of
from gatekeeper.types import Generation

__all__ = ["OF_VLLM", "chat_generations", "choice_id", "in_scope"]

OF_VLLM = {"stop_reason", "token_ids"}  # fields that only vLLM's choices have, be they null


def chat_generations(response: Any, *, scope: Scope, skip_forced: bool) -> list[Generation]:
    """One per choice of a chat completion."""
    response = fields(response)
    choices = list_of(response, "choices")
    return [
        _generation(response, choice, len(choices), scope=scope, skip_forced=skip_forced)
        for choice in choices
    ]


def _generation(
    response: Any, choice: Any, n: int, *, scope: Scope, skip_forced: bool
) -> Generation:
    choice = fields(choice)
    message, logprobs = fields(choice.get("message")), fields(choice.get("logprobs"))
    text = text_of(message, "content") or text_of(message, "refusal") or ""
    entries = entries_of(logprobs, "content") or entries_of(logprobs, "refusal")
    usage = fields(response.get("usage"))
    positions, output_tokens = in_scope(
        entries,
        sampled_first=not OF_VLLM.isdisjoint(choice),
        scope=scope,
        reasoning=text_of(message, "reasoning") or text_of(message, "reasoning_content"),
        content=text,
        # With n > 1 the usage is that of all choices together.
        total=count_of(usage, "completion_tokens") if n == 1 else None,
        thinking=count_of(field(usage, "completion_tokens_details"), "reasoning_tokens"),
    )
    return make_generation(
        positions,
        id=choice_id(response, choice, n),
        text=text,
        prompt_tokens=count_of(usage, "prompt_tokens"),
        output_tokens=output_tokens,
        model=text_of(response, "model"),
        finish_reason=text_of(choice, "finish_reason"),
        skip_forced=skip_forced,
    )


def choice_id(response: Any, choice: Any, n: int) -> str:
    """The response's id; of one choice among several, the id and its index."""
    id_ = text_of(response, "id") or ""
    return f"{id_}/{count_of(choice, 'index') or 0}" if n > 1 else id_


def in_scope(
    entries: Entries,
    *,
    sampled_first: bool,
    scope: Scope,
    reasoning: str | None,
    content: str,
    total: int | None,
    thinking: int | None,
) -> tuple[Positions, int | None]:
    """The positions that count, and of how many output tokens they are.

    A reasoning parser splits the text, not the log-probabilities: vLLM's cover reasoning and
    answer, OpenAI's only the answer (`thinking` counts the tokens that they do not cover). Where
    the tokens do not spell the two texts, nothing is known of any position.
    """
    positions = entries.positions(sampled_first=sampled_first)
    if scope == "all":
        return positions, total
    spoken = reasoning and reasoning.strip() and len(positions)
    first = _first_of_answer(entries.texts(), reasoning or "", content) if spoken else 0
    if first is None:
        return positions.unknown(), total
    hidden = (thinking or 0) if not first and len(positions) < (total or 0) else 0
    answer = positions.at(slice(first, None)) if first else positions
    if scope == "content":
        return answer, None if total is None else max(total - first - hidden, 0)
    before = None if total is None else total - len(answer) if first else hidden
    return positions.at(slice(first)), before


def _first_of_answer(pieces: Sequence[str], reasoning: str, content: str) -> int | None:
    """Index of the first token of the answer: what lies between the two is with the reasoning."""
    for spell in (str, _ascii):  # a character split over tokens has no spelling of its own
        tokens = [spell(piece) for piece in pieces]
        before, after = spell(reasoning).strip(), spell(content).strip()
        whole = "".join(tokens)
        start = whole.find(before) if before else -1
        end = start + len(before)
        if after:
            at = whole.find(after, end) if start >= 0 else whole.rfind(after)
        else:
            at = end if start >= 0 else -1
        if at < 0:
            continue
        ends = np.cumsum([len(token) for token in tokens])
        return int(np.searchsorted(ends, at, side="right"))
    return None


def _ascii(text: str) -> str:
    return text.encode("ascii", "ignore").decode()
