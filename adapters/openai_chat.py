"""Chat completions, and the token entries that the Responses API shares with them."""

from __future__ import annotations

from collections.abc import Sequence
from math import nan
from operator import attrgetter, itemgetter
from typing import Any

import numpy as np

from gatekeeper.adapters._positions import (
    Positions,
    Scope,
    count_of,
    field,
    has,
    list_of,
    make_generation,
    numbers,
    text_of,
)
from gatekeeper.types import FloatArray, Generation

__all__ = ["OF_VLLM", "chat_generations", "choice_id", "in_scope", "read_entries"]

OF_VLLM = ("stop_reason", "token_ids")  # fields that only vLLM's choices have, be they null


def chat_generations(response: Any, *, scope: Scope, skip_forced: bool) -> list[Generation]:
    """One per choice of a chat completion."""
    choices = list_of(response, "choices")
    return [
        _generation(response, choice, len(choices), scope=scope, skip_forced=skip_forced)
        for choice in choices
    ]


def _generation(
    response: Any, choice: Any, n: int, *, scope: Scope, skip_forced: bool
) -> Generation:
    message, logprobs = field(choice, "message"), field(choice, "logprobs")
    content, refusal = text_of(message, "content"), text_of(message, "refusal")
    entries = list_of(logprobs, "content") or list_of(logprobs, "refusal")
    usage = field(response, "usage")
    positions, output_tokens = in_scope(
        read_entries(entries, sampled_first=any(has(choice, name) for name in OF_VLLM)),
        entries,
        scope=scope,
        reasoning=text_of(message, "reasoning") or text_of(message, "reasoning_content"),
        content=content or refusal,
        # With n > 1 the usage is that of all choices together.
        total=count_of(usage, "completion_tokens") if n == 1 else None,
        thinking=count_of(field(usage, "completion_tokens_details"), "reasoning_tokens"),
    )
    return make_generation(
        positions,
        id=choice_id(response, choice, n),
        text=refusal or "" if content is None else content,
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


def read_entries(entries: list[Any], *, sampled_first: bool = False) -> Positions:
    """Positions of a list of `{token, bytes, logprob, top_logprobs}`, objects or dicts.

    The chosen token counts among the candidates where `top_logprobs` lacks it; a token is told
    by its text and bytes, never by its value, so that ties stay ties. Two cases in which the
    second most probable token is not in the response give no margin: the list has one token and
    the chosen one is another, less probable; and the server puts the sampled token first and cuts
    the list at k = 2 (vLLM: `sampled_first`), where it is not the most probable one.
    """
    try:
        chosen, top1, top2, k = _columns(entries)
    except (AttributeError, KeyError, TypeError):  # nulls, missing fields, objects beside dicts
        chosen, top1, top2, k = _columns([_completed(entry) for entry in entries])
    if k == 1 or (sampled_first and k == 2):
        top2[chosen < top1] = np.nan
    return Positions(chosen, top1, top2, k)


def _columns(entries: Sequence[Any]) -> tuple[FloatArray, FloatArray, FloatArray, int]:
    """Of the chosen tokens, and the two largest: one pass, for speed."""
    getter: Any = itemgetter if entries and isinstance(entries[0], dict) else attrgetter
    logprob_of, token_of = getter("logprob"), getter("token", "bytes")
    both_of = getter("logprob", "top_logprobs")
    chosen, top1, top2, k = [], [], [], 0
    for entry in entries:
        own, alternatives = both_of(entry)
        first = second = nan
        for value in map(logprob_of, alternatives):
            if value <= second:
                continue
            if value <= first:
                second = value
            elif value == value:  # larger than what there was, or the first: no NaN
                first, second = value, first
        # Only a token more probable than the second can change the two largest.
        if not own <= second and own == own:
            token = token_of(entry)
            for alternative in alternatives:
                if (other := token_of(alternative)) == token or _same(other, token):
                    break
            else:
                first, second = (first, own) if own < first else (own, first)
        chosen.append(own)
        top1.append(first)
        top2.append(second)
        if len(alternatives) > k:
            k = len(alternatives)
    return numbers(chosen), numbers(top1), numbers(top2), k


def _same(one: tuple[str, Any], other: tuple[str, Any]) -> bool:
    """Whether two (text, bytes) that differ are one token all the same."""
    # Streams of the Responses API lack bytes; of a token's id, vLLM gives different ones.
    return one[0] == other[0] and (None in (one[1], other[1]) or one[0].startswith("token_id:"))


def _completed(entry: Any) -> dict[str, Any]:
    """With every field that is read, and NaN for null."""
    (own,) = numbers([field(entry, "logprob")]).tolist()
    found = {"token": text_of(entry, "token") or "", "bytes": field(entry, "bytes"), "logprob": own}
    alternatives = [_completed(each) for each in list_of(entry, "top_logprobs")]
    return found | {"top_logprobs": alternatives}


def in_scope(
    positions: Positions,
    entries: Sequence[Any],
    *,
    scope: Scope,
    reasoning: str | None,
    content: str | None,
    total: int | None,
    thinking: int | None,
) -> tuple[Positions, int | None]:
    """The positions that count, and of how many output tokens they are.

    A reasoning parser splits the text, not the log-probabilities: vLLM's cover reasoning and
    answer, OpenAI's only the answer (`thinking` counts the tokens that they do not cover). Where
    the tokens do not spell the two texts, nothing is known of any position.
    """
    if scope == "all":
        return positions, total
    spoken = reasoning and reasoning.strip() and len(positions)
    first = _first_of_answer(entries, reasoning or "", content or "") if spoken else 0
    if first is None:
        return positions.unknown(), total
    hidden = (thinking or 0) if not first and len(positions) < (total or 0) else 0
    answer = positions.at(slice(first, None))
    if scope == "content":
        return answer, None if total is None else max(total - first - hidden, 0)
    before = None if total is None else total - len(answer) if first else hidden
    return positions.at(slice(first)), before


def _first_of_answer(entries: Sequence[Any], reasoning: str, content: str) -> int | None:
    """Index of the first token of the answer: what lies between the two is with the reasoning."""
    pieces = [_spelling(entry) for entry in entries]
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


def _spelling(entry: Any) -> str:
    token, raw = text_of(entry, "token"), field(entry, "bytes")
    try:
        return bytes(raw).decode("utf-8", "replace") if raw else token or ""
    except (TypeError, ValueError):
        return token or ""


def _ascii(text: str) -> str:
    return text.encode("ascii", "ignore").decode()
