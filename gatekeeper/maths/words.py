"""Answers in words, and the names of figures."""

from __future__ import annotations

import re

from gatekeeper.maths import exact

__all__ = ["same_points", "same_text"]

_TEXT = re.compile(r"\\text\{([^{}]*)\}")
_POINTS = re.compile(r"(?:(\\angle)\s?)?([A-Z]{3,})")
_FILLER_WORDS = frozenset(("a", "an", "the"))


def same_text(gold: str, answer: str) -> bool | None:
    """Whether the words are the same; None where neither side has words alone."""
    wanted, given = _TEXT.fullmatch(gold), _TEXT.fullmatch(answer)
    if wanted is None and given is None:
        return None
    if given is None and "\\" in answer and exact.value(answer) is None:
        return None
    # A short word, such as "up", may lack its \text.
    return _words(wanted[1] if wanted else gold) == _words(given[1] if given else answer)


def _words(text: str) -> list[str]:
    words = re.findall(r"[^\W_]+|[<>/]", text.lower())
    articles = [word in _FILLER_WORDS for word in words[:-1]] + [False]  # but player A
    kept = [w.removesuffix("s") for w, article in zip(words, articles, strict=False) if not article]
    return kept if any(len(word) > 1 for word in kept) else words  # "b, a" has no article


def same_points(gold: str, answer: str) -> bool | None:
    """ABC is not ACB, as a product would be; an angle may be read from either side."""
    wanted, given = _POINTS.fullmatch(gold), _POINTS.fullmatch(answer)
    if wanted is None or given is None:
        return None
    spellings = (given[2], given[2][::-1]) if wanted[1] and given[1] else (given[2],)
    return wanted[2] in spellings
