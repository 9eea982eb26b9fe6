"""OpenAI chat completions, as objects of the `openai` package or as their JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from gatekeeper.errors import BadInputError
from gatekeeper.types import Generation

__all__ = ["generation_of"]


def generation_of(response: Any) -> Generation:
    """The one choice of a chat completion, with the two largest log-probabilities per position.

    Ask for them with `logprobs=True, top_logprobs=5`; without, the result has no positions and
    its signals are missing. Order within `top_logprobs` does not matter; the chosen token counts
    among the candidates where the list lacks it. A null log-probability is NaN. Raises
    BadInputError for several choices and for what is no chat completion.
    """
    choices = _get(response, "choices")
    if not isinstance(choices, list):
        raise BadInputError(f"choices={choices!r:.80}: not a chat completion of OpenAI's shape")
    if len(choices) != 1:
        raise BadInputError(
            f"response {_get(response, 'id')!r} has {len(choices)} choices: exactly one output is "
            "decided on at a time"
        )
    choice = choices[0]
    message = _get(choice, "message")
    if message is None:
        raise BadInputError(
            f"response {_get(response, 'id')!r} has no message: only chat completions are read, "
            "not legacy completions or stream chunks"
        )
    positions = _get(_get(choice, "logprobs"), "content") or []
    if not isinstance(positions, list):
        raise BadInputError(f"logprobs.content={positions!r:.80}: a list is needed")
    chosen = np.full(len(positions), np.nan)
    top1, top2 = chosen.copy(), chosen.copy()
    k_seen = 0
    for i, position in enumerate(positions):
        chosen[i] = own = _logprob(position)
        alternatives = _get(position, "top_logprobs") or []
        token = (_get(position, "token"), _get(position, "bytes"))
        candidates = [_logprob(a) for a in alternatives]
        if not any((_get(a, "token"), _get(a, "bytes")) == token for a in alternatives):
            candidates.append(own)
        k_seen = max(k_seen, len(alternatives))
        first, second = sorted([*candidates, np.nan, np.nan], key=_descending)[:2]
        top1[i], top2[i] = first, second
    usage = _get(response, "usage")
    return Generation(
        id=_get(response, "id") or "",
        text=_get(message, "content") or "",
        logprob=chosen,
        top1=top1,
        top2=top2,
        prompt_tokens=_get(usage, "prompt_tokens"),
        output_tokens=_get(usage, "completion_tokens"),
        model=_get(response, "model"),
        finish_reason=_get(choice, "finish_reason"),
        k_seen=k_seen,
    )


def _logprob(entry: Any) -> float:
    value = _get(entry, "logprob")
    if value is None:
        return float("nan")
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise BadInputError(f"logprob={value!r:.80}: a number is needed")
    return float(value)


def _descending(value: float) -> float:
    return float("inf") if value != value else -value


def _get(value: Any, name: str) -> Any:
    """An attribute or a key; None where there is none."""
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)
