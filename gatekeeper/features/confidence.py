"""The confidence that the model states in its answer, and the prompt that asks for it."""

from __future__ import annotations

import re
from typing import Any

from gatekeeper.types import Generation

__all__ = ["CONFIDENCE_PROMPT", "stated_confidence"]

CONFIDENCE_PROMPT = (
    "After your answer, write one last line of the form\n"
    "Confidence: N%\n"
    "where N, from 0 to 100, is the probability that your answer is correct."
)
"""Append it to the prompt of a task."""

_SAID = re.compile(
    r"\b(?:confidence|probability|certainty)\b[^\n\d%a-z]{0,8}(?:level|score)?"
    r"[^\n\d%a-z]{0,8}(?:is|of)?[^\n\d%a-z]{0,8}"
    r"(?:(?P<number>\.\d+|(?<![^.]\.)\d{1,3}(?:[.,]\d+)?)"
    r"(?:[^\S\n]*(?:(?P<percent>\\?%+|per ?cent)"
    r"|(?:/|(?:out\s+)?of)[^\S\n]*(?P<most>\d+(?:[.,]\d+)?)))?"
    r"|(?P<word>almost certain|very high|high|medium|moderate|very low|low))",
    re.IGNORECASE,
)
_GOES_ON = re.compile(r"[^\W_]|[%‰％/]|\\[a-z,]|[-–.,:]\d|[^\S\n]+(?:/|out\s+of\b)", re.IGNORECASE)
_NEGATIVE = re.compile(r"[^\w‑–−-][‑–−-]\Z")  # a dash after a word separates
_WORDS = {  # only their order matters: features enter by rank
    "almost certain": 0.97,
    "very high": 0.95,
    "high": 0.8,
    "medium": 0.5,
    "moderate": 0.5,
    "low": 0.2,
    "very low": 0.05,
}


def stated_confidence(generation: Generation, task: Any = None) -> float | None:
    """The last confidence stated: "Confidence: 85%", "0.85", "0,85", "8/10", "4 out of 5", "high".

    A number above 1 without a unit is read as percent.

    Returns
    -------
    float or None
        In [0, 1]; None where none is stated, or the number fits no scale.
    """
    said = list(_SAID.finditer(generation.text))
    if not said:
        return None
    last = said[-1]
    if last["word"]:
        return _WORDS[last["word"].lower()]
    if _NEGATIVE.search(generation.text[last.start() : last.start("number")]):
        return None
    if _GOES_ON.match(generation.text, last.end()):  # a range, a date, 1e-3, another unit
        return None
    value = _float(last["number"])
    if last["most"]:
        whole = _float(last["most"])
    else:
        whole = 100.0 if last["percent"] or value > 1.0 else 1.0
    return value / whole if value <= whole and whole else None


def _float(number: str) -> float:
    return float(number.replace(",", "."))
