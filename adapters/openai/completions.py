"""Legacy text completions: parallel arrays, alternatives keyed by the token's text."""

from __future__ import annotations

from typing import Any

import numpy as np

from gatekeeper.adapters.fields import count_of, field, list_of, text_of
from gatekeeper.adapters.openai.chat import choice_id
from gatekeeper.adapters.openai.entries import entries_of
from gatekeeper.adapters.positions import Positions, flat, make_generation, numbers, two_largest
from gatekeeper.errors import BadInputError
from gatekeeper.types import Generation
from gatekeeper.wording import counted

__all__ = ["completion_generations"]


def completion_generations(response: Any, *, skip_forced: bool) -> list[Generation]:
    """One Generation per choice of a text completion."""
    choices = list_of(response, "choices")
    n = len(choices)
    usage = field(response, "usage")
    prompt, total = count_of(usage, "prompt_tokens"), count_of(usage, "completion_tokens")
    outputs = [
        entries_of(logprobs, "content").positions()
        if field(logprobs, "content") is not None  # of llama-server: the entries of chats
        else _read(logprobs)
        for logprobs in (field(choice, "logprobs") for choice in choices)
    ]
    if any(_first_is_null(choice) for choice in choices):
        # `echo=True` puts the prompt in front, whose first token has no probability.
        length = sum(map(len, outputs))
        if prompt is not None and total is not None and length == n * prompt + total:
            outputs = [positions.at(slice(prompt, None)) for positions in outputs]
        elif length != total:  # several prompts, whose lengths are unknown, or no usage
            outputs = [positions.unknown() for positions in outputs]
    return [
        make_generation(
            positions,
            id=choice_id(response, choice, n),
            text=text_of(choice, "text") or "",
            prompt_tokens=prompt,
            output_tokens=total if n == 1 else None,
            model=text_of(response, "model"),
            finish_reason=text_of(choice, "finish_reason"),
            skip_forced=skip_forced,
        )
        for choice, positions in zip(choices, outputs, strict=True)
    ]


def _first_is_null(choice: Any) -> bool:
    chosen = list_of(field(choice, "logprobs"), "token_logprobs")
    return bool(chosen) and chosen[0] is None


def _read(logprobs: Any) -> Positions:
    """Positions of `{tokens, token_logprobs, top_logprobs}`.

    In a dict keyed by text, tokens with the same text (pieces of a character; special tokens,
    whose text is "") overwrite each other, and the lost value is unknown. So a position that may
    have lost a token has no margin: one with fewer candidates than the others; or with as many,
    where a chosen token outside the k most probable should have added one and the texts are of
    the kind that collides. The token-id keys of vLLM's `return_tokens_as_token_ids` avoid this.
    """
    own = list_of(logprobs, "token_logprobs")
    tokens, dicts = list_of(logprobs, "tokens"), list_of(logprobs, "top_logprobs")
    chosen = numbers(own)
    if not dicts:
        return Positions(chosen, chosen.copy(), np.full(len(own), np.nan))
    if not len(tokens) == len(dicts) == len(own):
        raise BadInputError(
            f"logprobs has {counted(len(tokens), 'token')}, {len(own)} token_logprobs and "
            f"{len(dicts)} top_logprobs: the three lists must have the same length"
        )
    if not all(isinstance(token, str) for token in tokens):
        raise BadInputError(f"tokens={tokens!r:.80}: texts are needed")
    candidates = [_candidates(*position) for position in zip(tokens, own, dicts, strict=True)]
    lengths = [len(values) for values in candidates]
    values = numbers(flat(candidates))
    top1, top2 = two_largest(values, lengths)
    counts = np.array(lengths)
    if not all(token.startswith("token_id:") for token in tokens):
        last = chosen <= -two_largest(-values, lengths)[0]  # the chosen token is the least probable
        k = max(counts[~last].max(initial=0), counts.max(initial=0) - 1)
        collide = np.array([_may_collide(alternatives) for alternatives in dicts])
        top2[(counts < k) | ((counts == k) & last & collide)] = np.nan
    given = counts[[bool(alternatives) for alternatives in dicts]]
    if given.max(initial=0) == 2 and given.min() == 1:  # k = 1: the second is absent
        top2[chosen < top1] = np.nan
    return Positions(chosen, top1, top2, max(len(alternatives or ()) for alternatives in dicts))


def _candidates(token: Any, own: Any, alternatives: Any) -> list[Any]:
    if not alternatives:
        return [own]
    if not isinstance(alternatives, dict):
        raise BadInputError(f"top_logprobs={alternatives!r:.80}: a dict per position is needed")
    values = list(alternatives.values())
    # With another value, the entry of that text is another token's, which overwrote the chosen one.
    return values if alternatives.get(token) == own else [*values, own]


def _may_collide(alternatives: dict[str, Any] | None) -> bool:
    return any(not text or "\ufffd" in text for text in alternatives or ())
