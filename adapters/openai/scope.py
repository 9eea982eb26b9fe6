"""Which of an output's tokens count: those of the answer, those of the reasoning, or both."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gatekeeper.adapters.openai.entries import Entries
from gatekeeper.adapters.positions import Positions, Scope

__all__ = ["in_scope"]


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
    """Select the positions that count.

    A reasoning parser splits the text, not the log-probabilities: those of vLLM cover reasoning
    and answer, those of OpenAI only the answer. Where the tokens do not spell the two texts, the
    values of all positions are unknown.

    Parameters
    ----------
    entries : Entries
        The token entries of the output.
    sampled_first : bool
        See `Entries.positions`.
    scope : {"content", "reasoning", "all"}
        Which tokens count.
    reasoning, content : str
        The text of the reasoning and of the answer.
    total : int or None
        Tokens of the output, as the usage counts them.
    thinking : int or None
        Tokens of the reasoning, as the usage counts them.

    Returns
    -------
    positions : Positions
    output_tokens : int or None
        How many output tokens the positions stand for; None where the usage is unknown.
    """
    positions = entries.positions(sampled_first=sampled_first)
    if scope == "all":
        return positions, total
    reasoned = reasoning and reasoning.strip() and len(positions)
    first = _first_of_answer(entries.texts(), reasoning or "", content) if reasoned else 0
    if first is None:
        return positions.unknown(), total
    hidden = (thinking or 0) if not first and len(positions) < (total or 0) else 0
    answer = positions.at(slice(first, None)) if first else positions
    if scope == "content":
        return answer, None if total is None else max(total - first - hidden, 0)
    before = None if total is None else total - len(answer) if first else hidden
    return positions.at(slice(first)), before


def _first_of_answer(pieces: Sequence[str], reasoning: str, content: str) -> int | None:
    """Index of the answer's first token; text between the two belongs to the reasoning."""
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
